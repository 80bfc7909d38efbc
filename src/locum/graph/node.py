"""The one node: an operation, its inputs and its attributes; immutable and interned.

Interned means that building the same thing twice gives the same object, so equality of programs
is identity (``is``), common subexpressions vanish by themselves, and a node can be a dictionary
key at no cost. The pool holds its nodes weakly: a program nobody holds is forgotten.

A node knows nothing of the table of operations (``operations.py``) but the two facts that binding
needs: a ``family`` is a parameter, and ``sum_over`` binds the families among its inputs.

Names, source positions and results live beside the graph, never in the node.

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

#: The intern pool. The lock makes lookup and insertion one step, so that two threads cannot both
#: build "the" node. The package has three more tables that change, each with a lock of its own: the
#: handles on nodes (``language/handles.py``, weak), the plans that are kept and the fallbacks that were
#: warned of (``execution/fast/execute.py``, bounded and weak).
_pool: WeakValueDictionary[Hashable, Node] = WeakValueDictionary()
_lock = Lock()
#: Names for families nobody named, part of the pool: a name given twice would be one node. The
#: first half tells processes apart, since parts of programs travel between them as JSON.
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
    """What a node holds, while it is being filled."""

    __slots__ = ("__weakref__", "_free", "attributes", "depth", "height", "inputs", "op")

    op: str
    inputs: tuple[Node, ...]
    attributes: Mapping[str, Attribute]
    #: Length of the longest path down to a leaf.
    depth: int
    #: How many ``sum_over`` are nested in it; bound families are named by it (``families.py``).
    height: int
    _free: frozenset[Node]


class Node(_Fields):
    """One operation applied to nodes. Make legal ones with ``operations.build``."""

    __slots__ = ()

    #: Prints a node in one line. Set by ``printer.py``, which knows the operations.
    printer: ClassVar[Callable[[Node], str]]

    def __new__(
        cls,
        op: str,
        inputs: tuple[Node, ...] = (),
        attributes: Mapping[str, Attribute] | None = None,
    ) -> Node:
        """Return the node of the pool that says this, or a new one."""
        named = sorted(attributes.items()) if attributes else ()
        key = (op, inputs, tuple([(name, identity(value)) for name, value in named]))
        pooled = _pool.get(key)
        if pooled is not None:  # most often; no lock is needed to read
            return pooled
        with _lock:
            pooled = _pool.get(key)
            if pooled is not None:
                return pooled
            depth, height, closed = -1, 0, True
            for part in inputs:  # a million of these: no calls
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
            fields.__class__ = cls  # from here on nothing of it can be set
            node = cast(Node, fields)
            _pool[key] = node
            return node

    @property
    def free(self) -> frozenset[Node]:
        """The family parameters that occur in it and that no ``sum_over`` in it binds."""
        return frozenset((self,)) if self.op == "family" else self._free

    # What some operations carry, by the table of operations.

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
        """What an ``aggregate`` gives where no key is selected."""
        return cast(Atom, self._attribute("default"))

    @property
    def predicate(self) -> str:
        """The comparison of a ``select``."""
        return cast(str, self._attribute("predicate"))

    @property
    def cast(self) -> str:
        """What ``tokens`` does to each input value."""
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
        """The atoms among which a ``member`` looks for its input."""
        return cast("tuple[Atom, ...]", self._attribute("values"))

    @property
    def table(self) -> tuple[tuple[Atom, Atom], ...]:
        """The pairs of key and value of a ``lookup``."""
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
    """A front end's handle on a node."""

    @property
    def node(self) -> Node:
        """The node it stands for."""
        ...


def node_of(program: Node | HasNode) -> Node:
    """Return the node of a program, whichever front end it comes from."""
    node = program if isinstance(program, Node) else getattr(program, "node", None)
    if not isinstance(node, Node):
        raise GraphError(f"expected a program (an s-op or a selector), got {program!r}")
    return node


def _free_families(op: str, inputs: tuple[Node, ...]) -> frozenset[Node]:
    if op == "sum_over":
        return inputs[0].free.difference(inputs[1:])
    return frozenset().union(*(node.free for node in inputs))


def fresh_name() -> str:
    """Make a family name that nothing in the pool bears."""
    return f"~{_process}.{next(_numbers)}"


def pool_size() -> int:
    """Count the nodes that are alive, for tests of the pool's weakness."""
    return len(_pool)
