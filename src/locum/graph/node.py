"""Define the node: an operation with its inputs and attributes, immutable and interned.

Interned means that building the same node twice returns the same object. Equality of programs is
therefore identity (``is``), common subexpressions are shared automatically, and nodes are cheap
dictionary keys. The pool of nodes holds weak references, so unused programs are freed.

Building a node does not use the table of operations (``operations.py``). Only two facts about binding
are built in: a ``family`` is a parameter, and ``sum_over`` binds the families among its inputs.

Names of s-ops, source positions and results are stored outside of nodes.

>>> indices = Node("indices")
>>> Node("add", (indices, Node("constant", (), {"value": 1}))) is Node(
...     "add", (indices, Node("constant", (), {"value": 1}))
... )
True
>>> Node("constant", (), {"value": 1}) is Node("constant", (), {"value": 1.0})
False
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Hashable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, NoReturn, Protocol, cast
from weakref import WeakValueDictionary

from locum.errors import GraphError
from locum.graph.atoms import Atom, Attribute, identity
from locum.shared_state import Lock

#: The intern pool. The lock makes lookup and insertion atomic, so that two threads cannot both build
#: the same node.
_pool: WeakValueDictionary[Hashable, Node] = WeakValueDictionary()
_lock = Lock()
#: Parts of the names of unnamed families. Two families with the same name and size would be one node.
#: The random part distinguishes processes, since programs are sent between processes as JSON.
_process = os.urandom(4).hex()
_numbers = itertools.count()


def _rename_process() -> None:
    global _process
    _process = os.urandom(4).hex()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_rename_process)

_NO_ATTRIBUTES: Mapping[str, Attribute] = MappingProxyType({})
_CLOSED: frozenset[Node] = frozenset()


class _Fields:
    """The fields of a node under construction."""

    __slots__ = ("__weakref__", "_free", "attributes", "depth", "height", "inputs", "op")

    op: str
    inputs: tuple[Node, ...]
    attributes: Mapping[str, Attribute]
    #: Length of the longest path to a leaf.
    depth: int
    #: Maximum number of nested ``sum_over``, which occurs in names of bound families (``families.py``).
    height: int
    _free: frozenset[Node]


class Node(_Fields):
    """One operation applied to input nodes; ``operations.build`` creates valid nodes."""

    __slots__ = ()

    #: Function that prints a node in one line; set by ``printer.py``, which depends on the operations.
    printer: ClassVar[Callable[[Node], str]]

    def __new__(
        cls,
        op: str,
        inputs: tuple[Node, ...] = (),
        attributes: Mapping[str, Attribute] | None = None,
    ) -> Node:
        """Return the node in the pool with this operation, inputs and attributes, or create the
        node.
        """
        named = sorted(attributes.items()) if attributes else ()
        key = (op, inputs, tuple([(name, identity(value)) for name, value in named]))
        pooled = _pool.get(key)
        if pooled is not None:  # the common case; reading needs no lock
            return pooled
        with _lock:
            pooled = _pool.get(key)
            if pooled is not None:
                return pooled
            depth, height, closed = -1, 0, True
            for part in inputs:  # the hot loop of a million nodes, so without function calls
                if part.depth > depth:
                    depth = part.depth
                if part.height > height:
                    height = part.height
                if part._free or part.op == "family":
                    closed = False
            fields = _Fields()
            fields.op = op
            fields.inputs = inputs
            fields.attributes = MappingProxyType(dict(named)) if named else _NO_ATTRIBUTES
            fields.depth = depth + 1
            fields.height = height + 1 if op == "sum_over" else height
            fields._free = _CLOSED if closed else _free_families(op, inputs)
            fields.__class__ = cls  # the node is immutable from here on
            node = cast(Node, fields)
            _pool[key] = node
            return node

    @property
    def free(self) -> frozenset[Node]:
        """The family parameters that occur in the node and that no ``sum_over`` in the node binds."""
        return frozenset((self,)) if self.op == "family" else self._free

    # Attributes of particular operations, as defined in the table of operations.

    def _attribute(self, name: str) -> Any:
        if name not in self.attributes:
            raise AttributeError(f"{self.op} has no {name}")
        return self.attributes[name]

    @property
    def value(self) -> Atom:
        """The atom of a ``constant``."""
        return cast(Atom, self._attribute("value"))

    @property
    def default(self) -> Atom:
        """The result of an ``aggregate`` at queries that select no key."""
        return cast(Atom, self._attribute("default"))

    @property
    def predicate(self) -> str:
        """The comparison operator of a ``select``, such as ``"=="``."""
        return cast(str, self._attribute("predicate"))

    @property
    def cast(self) -> str:
        """The conversion that ``tokens`` applies to each input value."""
        return cast(str, self._attribute("cast"))

    @property
    def size(self) -> int:
        """The number of heads in a ``family``."""
        return cast(int, self._attribute("size"))

    @property
    def name(self) -> str:
        """The name of a ``family``."""
        return cast(str, self._attribute("name"))

    @property
    def members(self) -> tuple[Atom, ...]:
        """The set of atoms of a ``member``, which tests whether its input is in this set."""
        return cast("tuple[Atom, ...]", self._attribute("values"))

    @property
    def table(self) -> tuple[tuple[Atom, Atom], ...]:
        """The table of a ``lookup``, as pairs of key and value."""
        return cast("tuple[tuple[Atom, Atom], ...]", self._attribute("table"))

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"nodes are immutable: cannot set {name}; build a new node instead")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"nodes are immutable: cannot delete {name}")

    def __copy__(self) -> Node:
        return self

    def __deepcopy__(self, memo: object) -> Node:
        return self

    def __repr__(self) -> str:
        return f"<{self.op}: {Node.printer(self)}>"


class HasNode(Protocol):
    """A protocol for objects that represent a node, such as an s-op of the Python interface."""

    @property
    def node(self) -> Node:
        """The node that the object represents."""
        ...


def node_of(program: Node | HasNode) -> Node:
    """Return the node of a program, which is given as a node or as an object with an attribute
    ``node``.
    """
    node = program if isinstance(program, Node) else getattr(program, "node", None)
    if not isinstance(node, Node):
        raise GraphError(f"expected a program (an s-op or a selector), got {program!r}")
    return node


def _free_families(op: str, inputs: tuple[Node, ...]) -> frozenset[Node]:
    if op == "sum_over":
        return inputs[0].free.difference(inputs[1:])
    return frozenset().union(*(node.free for node in inputs))


def fresh_name() -> str:
    """Return a family name that no node in the pool uses."""
    return f"~{_process}.{next(_numbers)}"


def pool_size() -> int:
    """Count the live nodes; tests use this count to check that the pool holds weak references."""
    return len(_pool)
