"""A program as a compiler sees it: families written out, selectors counted, tables set aside."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from locum.graph import Node, build, members, postorder
from locum.graph.traversal import replace_families, with_inputs
from locum.rasp.handles import Selector, SOp


def expanded(root: Node) -> Node:
    """The program with every family written out, head by head."""
    new: dict[Node, Node] = {}
    for node in postorder(root):
        made = with_inputs(node, tuple(new[i] for i in node.inputs))
        if node.op == "sum_over":
            body, *families = made.inputs
            terms = [
                replace_families(body, {f: build("constant", value=v) for f, v in one.items()})
                for one in members(families)
            ]
            made = reduce(lambda a, b: build("add", a, b), terms)
        new[node] = made
    return new[root]


def distinct_selectors(program: SOp) -> list[int]:
    """For each attention layer, how many different selectors it has once families are written out.

    Every value is fetched as early as it can be.
    """
    layer: dict[Node, int] = {}
    result: dict[int, set[Node]] = {}
    for node in postorder(expanded(program.node)):
        below = [layer[i] for i in node.inputs]
        match node.op:
            case "select":
                layer[node] = 1 + max(below)
            case "aggregate":
                layer[node] = max(below[0], 1 + below[1])
                result.setdefault(layer[node], set()).add(node.inputs[0])
            case _:
                layer[node] = max(below, default=0)
    return [len(result[number]) for number in sorted(result)]


def empty_selections(program: SOp, tokens: Sequence[Any]) -> int:
    """How many queries of the heads that are read find no key."""
    selectors = {n.inputs[0] for n in postorder(expanded(program.node)) if n.op == "aggregate"}
    return sum(int((~Selector(s)(list(tokens)).any(axis=1)).sum()) for s in selectors)


def without_tables(root: Node) -> Node:
    """The program with all that depends on the position alone replaced by one and the same name.

    What is left is what a compiler puts into weights; numbers that depend on nothing stay.
    """
    positional: dict[Node, bool] = {}
    new: dict[Node, Node] = {}
    table, root = build("indices"), expanded(root)
    for node in postorder(root):
        inputs = node.inputs
        static = all(positional[i] or i.op == "constant" for i in inputs)
        positional[node] = node.op == "indices" or (
            static and node.op not in ("select", "aggregate") and any(positional[i] for i in inputs)
        )
        new[node] = table if positional[node] else with_inputs(node, tuple(new[i] for i in inputs))
    return new[root]
