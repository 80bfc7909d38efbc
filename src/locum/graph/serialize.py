"""Write graphs as JSON and read them, and compute a hash that is the same on every machine.

The file contains a flat list of nodes, each ``[operation, [indices of its inputs], attributes]``.
Inputs precede the nodes that use them, and the last node is the root. JSON distinguishes ``1``,
``1.0``, ``true`` and ``"1"``. JSON has no infinities and no NaN; these floats are written as
``{"float": "inf"}``, with ``"-inf"`` and ``"nan"`` accordingly. Very large integers are written in
hexadecimal, as ``{"int": "0x…"}``. Nodes are checked against the table of operations, so an invalid
file raises :class:`GraphError`. No code in the file is executed.

>>> from locum.graph.operations import build
>>> program = build("negate", build("indices"))
>>> dumps(program)
'{"format":"locum.graph","version":1,"nodes":[["indices",[],{}],["negate",[0],{}]]}'
>>> loads(dumps(program)) is program
True
>>> stable_hash(program)[:16]
'fdcf04de6f011e37'
"""

from __future__ import annotations

import contextlib
import copyreg
import gc
import hashlib
import json
import math
from collections.abc import Callable, Iterator
from typing import Any

from locum.budget import MAX_BITS
from locum.errors import GraphError, InputError
from locum.files import parse_json
from locum.graph.atoms import Attribute, is_atom, is_unprintable, short
from locum.graph.families import sum_over
from locum.graph.node import Node
from locum.graph.operations import build
from locum.graph.traversal import depends_on, postorder
from locum.graph.wellformed import problems

FORMAT = "locum.graph"
VERSION = 1
#: Maximum number of nodes in a graph that is read from JSON.
MAX_NODES = 500_000
#: Number of rebuilt nodes, for each node of the file, that are allowed while families are bound. A
#: constant number is allowed in addition.
_REBUILT = 10
#: Maximum nesting of lists in attributes: atoms, lists of atoms, or lists of pairs of atoms.
_DEEPEST = 2


def dumps(root: Node) -> str:
    """Return the graph below ``root`` as one line of JSON."""
    numbers: dict[Node, int] = {}
    rows: list[list[Any]] = []
    for node in postorder(root):
        numbers[node] = len(rows)
        attributes = {name: encode_attribute(value) for name, value in node.attributes.items()}
        rows.append([node.op, [numbers[i] for i in node.inputs], attributes])
    return json.dumps(
        {"format": FORMAT, "version": VERSION, "nodes": rows}, separators=(",", ":"), allow_nan=False
    )


def loads(text: str) -> Node:
    """Read a graph from JSON text written by :func:`dumps`.

    If the original graph is still in memory, the same object is returned. Graphs of more than 500,000
    nodes and integers of more than about a million bits raise :class:`GraphError`.
    """
    with _without_collector():
        return _read(text)


def _read(text: str) -> Node:
    try:
        data = parse_json(text)
    except (InputError, TypeError) as error:
        raise GraphError(f"this is not a graph: it is not JSON ({error})") from None
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise GraphError(f'this is not a graph: it lacks "format": "{FORMAT}"')
    version = data.get("version")
    if type(version) is not int or version != VERSION:
        raise GraphError(f"expected a graph of version {VERSION}, got one of version {_shown(version)}")
    rows = data.get("nodes")
    if not isinstance(rows, list) or not rows:
        raise GraphError(
            f'this is not a graph: expected a list of nodes as "nodes", got {_shown(rows)}'
        )
    if len(rows) > MAX_NODES:
        raise GraphError(f"expected a graph of at most {MAX_NODES:,} nodes, got {len(rows):,}")
    return _Reading(rows).root


def stable_hash(root: Node) -> str:
    """Return the SHA-256 hash of the JSON text of a graph; the hash is the same on every machine."""
    return hashlib.sha256(dumps(root).encode()).hexdigest()


@contextlib.contextmanager
def _without_collector() -> Iterator[None]:
    """Disable the garbage collector in a ``with`` block.

    Graphs have no reference cycles, and scanning many new nodes for cycles is slow.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class _Reading:
    """The nodes of a graph that is read from JSON, built row by row."""

    def __init__(self, rows: list[Any]) -> None:
        self.nodes: list[Node] = []
        #: Remaining number of nodes that may be rebuilt while families are bound. In normal graphs,
        #: sums are not deeply nested and do not share large bodies.
        self.rebuilt_at_most = _REBUILT * len(rows) + MAX_NODES // 5
        sums = False
        for number, row in enumerate(rows):
            try:
                self.nodes.append(self.read(row))
            except GraphError as error:
                raise GraphError(f"node {number} of the graph: {error}") from None
            sums = sums or self.nodes[-1].op == "sum_over"
        # Building a node checks everything except the names of bound families.
        for problem in problems(self.root, program=False) if sums else ():
            raise GraphError(problem)

    @property
    def root(self) -> Node:
        """The root of the graph, which is the last node."""
        return self.nodes[-1]

    def read(self, row: object) -> Node:
        """Build the node that one row of the JSON list describes."""
        if not isinstance(row, list) or len(row) != 3:
            raise GraphError("expected [operation, [inputs], {attributes}]")
        op, numbers, attributes = row
        if not isinstance(op, str) or not isinstance(numbers, list) or not isinstance(attributes, dict):
            raise GraphError("expected [operation, [inputs], {attributes}]")
        nodes = self.nodes
        known = len(nodes)
        for number in numbers:
            if type(number) is not int or not 0 <= number < known:
                raise GraphError(f"its input {_shown(number)} is not the number of an earlier node")
        inputs = [nodes[number] for number in numbers]
        decoded = {name: decode_attribute(value) for name, value in attributes.items()}
        if op == "sum_over" and len(inputs) > 1 and not decoded:
            # Bind the families again, so that files with other family names are also accepted.
            self.count(inputs[0], inputs[1:])
            return sum_over(inputs[1:], inputs[0])
        return build(op, *inputs, **decoded)

    def count(self, body: Node, families: list[Node]) -> None:
        """Limit the number of nodes that are rebuilt when ``families`` are bound in ``body``.

        If too many nodes would be rebuilt in total, raise :class:`GraphError`.
        """
        for _ in postorder(body, into=depends_on(families)):
            self.rebuilt_at_most -= 1
            if self.rebuilt_at_most < 0:
                raise GraphError(
                    "expected sums with smaller bodies, got shared bodies that are too large to read"
                )


def encode_attribute(value: Attribute) -> Any:
    """Convert an attribute to JSON data."""
    if isinstance(value, tuple):
        return [encode_attribute(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    if is_unprintable(value):
        return {"int": hex(value)}
    return value


def decode_attribute(value: Any, depth: int = 0) -> Attribute:
    """Convert JSON data written by :func:`encode_attribute` to an attribute; lists become tuples."""
    if is_atom(value):
        return value
    if isinstance(value, list) and depth < _DEEPEST:
        return tuple([decode_attribute(part, depth + 1) for part in value])
    match value:
        case {"float": "inf" | "-inf" | "nan" as name, **rest} if not rest:
            return float(name)
        case {"int": str(digits), **rest} if not rest and len(digits) <= len("-0x") + MAX_BITS // 4:
            try:
                return int(digits, 16)
            except ValueError:
                raise GraphError(f"expected a hexadecimal integer, got {_shown(digits)}") from None
    raise GraphError(f"expected a valid attribute, got {_shown(value)}")


def _shown(value: object) -> str:
    """Return short text for an unchecked value from a file, which may be long or deeply nested."""
    if isinstance(value, (list, dict)):
        return f"a {'list' if isinstance(value, list) else 'JSON object'} of {len(value)}"
    return short(value)


def _reduced(node: Node) -> tuple[Callable[[str], Node], tuple[str]]:
    """Return the function and the argument that restore a pickled node from its JSON text.

    Reading JSON needs no recursion and interns the node.
    """
    return loads, (dumps(node),)


copyreg.pickle(Node, _reduced)
