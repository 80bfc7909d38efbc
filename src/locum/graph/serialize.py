"""Graph ↔ JSON, with a hash that is the same on every machine.

The file is flat: a list of nodes, inputs before their users, each ``[op, [numbers of its inputs],
attributes]``; the last is the root. JSON keeps ``1``, ``1.0``, ``true`` and ``"1"`` apart by
itself; the three floats it lacks are written ``{"float": "inf"}``, ``"-inf"`` and ``"nan"``, and
gigantic integers in hexadecimals, ``{"int": "0x…"}``.
Reading builds through the table of operations, so a damaged or hostile file gives a
:class:`GraphError`, and nothing in it is ever executed.

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
#: The most nodes of a graph that is read.
MAX_NODES = 500_000
#: How often a node may be rebuilt, on average, when families are bound.
_REBUILT = 10
#: Attributes are atoms, lists of atoms, or lists of pairs of them.
_DEEPEST = 2


def dumps(root: Node) -> str:
    """Write the graph below ``root`` as one line of JSON."""
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
    """Read the graph that :func:`dumps` wrote: the very same object while that one is alive."""
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
        raise GraphError(f"this graph has {len(rows):,} nodes; the limit is {MAX_NODES:,}")
    return _Reading(rows).root


def stable_hash(root: Node) -> str:
    """Hash the graph's JSON by SHA-256: equal for equal programs, everywhere and always."""
    return hashlib.sha256(dumps(root).encode()).hexdigest()


@contextlib.contextmanager
def _without_collector() -> Iterator[None]:
    """Switch the garbage collector off: a graph makes none, and to go through it takes as long."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class _Reading:
    """The nodes of a graph, built from their rows one by one."""

    def __init__(self, rows: list[Any]) -> None:
        self.nodes: list[Node] = []
        #: Nodes that may still be rebuilt when families are bound: in honest graphs sums are not
        #: nested deeply, and do not share large bodies.
        self.rebuilt_at_most = _REBUILT * len(rows) + MAX_NODES // 5
        sums = False
        for number, row in enumerate(rows):
            try:
                self.nodes.append(self.read(row))
            except GraphError as error:
                raise GraphError(f"node {number} of the graph: {error}") from None
            sums = sums or self.nodes[-1].op == "sum_over"
        #: Building checks all but the names of bound families.
        for problem in problems(self.root, program=False) if sums else ():
            raise GraphError(problem)

    @property
    def root(self) -> Node:
        """The last node."""
        return self.nodes[-1]

    def read(self, row: object) -> Node:
        """Build the node of one row."""
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
            # Re-binds, so that a file in which a person named the families is as good as ours.
            self.count(inputs[0], inputs[1:])
            return sum_over(inputs[1:], inputs[0])
        return build(op, *inputs, **decoded)

    def count(self, body: Node, families: list[Node]) -> None:
        """Count the nodes that are rebuilt when these families are bound."""
        for _ in postorder(body, into=depends_on(families)):
            self.rebuilt_at_most -= 1
            if self.rebuilt_at_most < 0:
                raise GraphError("its sums share bodies that are too large to read")


def encode_attribute(value: Attribute) -> Any:
    """Write an attribute as data that JSON can hold."""
    if isinstance(value, tuple):
        return [encode_attribute(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    if is_unprintable(value):
        return {"int": hex(value)}
    return value


def decode_attribute(value: Any, depth: int = 0) -> Attribute:
    """Read the attribute that :func:`encode_attribute` wrote; lists are tuples again."""
    if is_atom(value):
        return value
    if isinstance(value, list) and depth < _DEEPEST:
        return tuple([decode_attribute(part, depth + 1) for part in value])
    match value:
        case {"float": "inf" | "-inf" | "nan" as name, **rest} if not rest:
            return float(name)
        case {"int": str(digits), **rest} if not rest and len(digits) <= MAX_BITS // 4:
            try:
                return int(digits, 16)
            except ValueError:
                raise GraphError(f"{_shown(digits)} is not an integer in hexadecimals") from None
    raise GraphError(f"{_shown(value)} cannot be an attribute")


def _shown(value: object) -> str:
    """Mention a value of a file that nobody has looked at: it may be long, or deeply nested."""
    if isinstance(value, (list, dict)):
        return f"a {'list' if isinstance(value, list) else 'JSON object'} of {len(value)}"
    return short(value)


def _reduced(node: Node) -> tuple[Callable[[str], Node], tuple[str]]:
    """Pickle a node as JSON: no recursion however deep the graph, and interned on arrival."""
    return loads, (dumps(node),)


copyreg.pickle(Node, _reduced)
