"""Graph ↔ JSON, with a hash that is the same on every machine.

The file is flat: a list of nodes, inputs before their users, each ``[op, [numbers of its inputs],
attributes]``; the last is the root. JSON keeps ``1``, ``1.0``, ``true`` and ``"1"`` apart by
itself; the three floats it lacks are written ``{"float": "inf"}``, ``"-inf"`` and ``"nan"``, and
gigantic whole numbers in hexadecimals, ``{"int": "0x…"}``.
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

import copyreg
import hashlib
import json
import math
from collections.abc import Callable
from typing import Any

from locum.errors import GraphError
from locum.graph.atoms import Attribute, is_atom, is_unprintable
from locum.graph.families import sum_over
from locum.graph.node import Node
from locum.graph.operations import build
from locum.graph.traversal import postorder
from locum.graph.wellformed import problems

FORMAT = "locum.graph"
VERSION = 1


def dumps(root: Node) -> str:
    """The graph below ``root`` as one line of JSON."""
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
    """The graph that :func:`dumps` wrote: the very same object while that one is alive."""
    try:
        data = json.loads(text)
    except (ValueError, TypeError, RecursionError) as error:
        raise GraphError(f"this is not a graph: it is not JSON ({error})") from None
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise GraphError(f'this is not a graph: it lacks "format": "{FORMAT}"')
    if data.get("version") != VERSION:
        raise GraphError(
            f"this graph is of version {data.get('version')!r}; version {VERSION} is what can be read"
        )
    rows = data.get("nodes")
    if not isinstance(rows, list) or not rows:
        raise GraphError('this graph is empty: "nodes" must be a list of one node or more')
    nodes: list[Node] = []
    for number, row in enumerate(rows):
        try:
            nodes.append(_read(row, nodes))
        except GraphError as error:
            raise GraphError(f"node {number} of the graph: {error}") from None
    for problem in problems(nodes[-1], program=False):
        raise GraphError(problem)
    return nodes[-1]


def stable_hash(root: Node) -> str:
    """SHA-256 of the graph's JSON: equal for equal programs, everywhere and always."""
    return hashlib.sha256(dumps(root).encode()).hexdigest()


def _read(row: object, earlier: list[Node]) -> Node:
    match row:
        case [str(op), list(numbers), dict(attributes)]:
            pass
        case _:
            raise GraphError("it must be [operation, [inputs], {attributes}]")
    for number in numbers:
        if type(number) is not int or not 0 <= number < len(earlier):
            raise GraphError(f"its input {number!r} is not the number of an earlier node")
    inputs = [earlier[number] for number in numbers]
    decoded = {name: decode_attribute(value) for name, value in attributes.items()}
    if op == "sum_over" and len(inputs) > 1:
        # Re-binds, so that a file in which a person named the families is as good as ours.
        return sum_over(inputs[1:], inputs[0])
    return build(op, *inputs, **decoded)


def encode_attribute(value: Attribute) -> Any:
    """An attribute as data that JSON can hold."""
    if isinstance(value, tuple):
        return [encode_attribute(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    if is_unprintable(value):
        return {"int": hex(value)}
    return value


def decode_attribute(value: Any) -> Attribute:
    """The attribute that :func:`encode_attribute` wrote; lists are tuples again."""
    match value:
        case list():
            return tuple(decode_attribute(part) for part in value)
        case {"float": "inf" | "-inf" | "nan" as name, **rest} if not rest:
            return float(name)
        case {"int": str(digits), **rest} if not rest:
            try:
                return int(digits, 16)
            except ValueError:
                raise GraphError(f"{digits[:40]!r} is not a whole number in hexadecimals") from None
    if is_atom(value):
        return value
    raise GraphError(f"{value!r} cannot be an attribute")


def _reduced(node: Node) -> tuple[Callable[[str], Node], tuple[str]]:
    """Pickle a node as JSON: no recursion however deep the graph, and interned on arrival."""
    return loads, (dumps(node),)


copyreg.pickle(Node, _reduced)
