"""First stage: the program without families. Each head of a family becomes a head of its own.

What is the same in two heads is one node afterwards, since nodes are interned.

>>> from understudy import family, indices, sum_over
>>> l = family(2)
>>> normalise(sum_over(l, indices * l).node)
<add: indices * 0 + indices * 1>
"""

from __future__ import annotations

import math

from understudy.errors import CompileError
from understudy.graph import Node, Sort, abbreviate, build, members, postorder, size_of, sort_of
from understudy.graph.families import opened
from understudy.graph.operations import constant
from understudy.graph.traversal import replace_families, with_inputs

#: A network of more heads than this is not worth writing down as weights.
MAX_MEMBERS = 100_000


def normalise(root: Node) -> Node:
    """``root`` with every ``sum_over`` written out."""
    if sort_of(root) is not Sort.SOP:
        raise CompileError(
            "a selector is no output of a transformer: aggregate with it, or take its width",
            abbreviate(root),
        )
    if root.free:
        raise CompileError(
            "only a whole program can be compiled: families of this one are not summed over",
            abbreviate(root),
        )
    root = opened(root)
    members_in_all = sum(
        math.prod(size_of(f) for f in {*node.inputs[1:], *node.free})
        for node in postorder(root)
        if node.op == "sum_over"
    )
    if members_in_all > MAX_MEMBERS:
        raise CompileError(
            f"its families have {members_in_all:,} heads in all; the limit is {MAX_MEMBERS:,}",
            abbreviate(root),
        )
    new: dict[Node, Node] = {}
    for node in postorder(root):
        same = with_inputs(node, tuple(new[i] for i in node.inputs))
        new[node] = _written_out(same) if same.op == "sum_over" else same
    return new[root]


def _written_out(node: Node) -> Node:
    body, *families = node.inputs
    total: Node | None = None
    for member in members(families):
        term = replace_families(body, {family: constant(value) for family, value in member.items()})
        total = term if total is None else build("add", total, term)
    assert total is not None
    return total
