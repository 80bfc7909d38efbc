"""Stage *normalise*: the program without families. Each head of a family becomes a head of its own.

What is the same in two heads is one node afterwards, since nodes are interned.

>>> from locum import family, indices, sum_over
>>> l = family(2)
>>> normalise(sum_over(l, indices * l).node)
<add: (indices * 0) + (indices * 1)>
"""

from __future__ import annotations

import math

from locum.compiler.program.origins import Origins
from locum.errors import CompileError
from locum.graph import Node, Sort, abbreviate, build, members, postorder, size_of, sort_of
from locum.graph.families import opened
from locum.graph.operations import constant
from locum.graph.traversal import replace_families, with_inputs

#: A network of more heads than this is not worth writing down as weights.
MAX_MEMBERS = 100_000


def normalise(root: Node, *, numeric: bool = False, origins: Origins | None = None) -> Node:
    """Expand every ``sum_over`` of ``root``, and write casts of ``numeric`` tokens as arithmetic."""
    if sort_of(root) is not Sort.SOP:
        raise CompileError(
            "expected an s-op to compile, got a selector; try aggregate or selector_width",
            abbreviate(root),
        )
    if root.free:
        raise CompileError(
            "expected a whole program, got one with families that are not summed over; try sum_over",
            abbreviate(root),
        )
    original, root = root, opened(root)
    if origins is not None:
        origins.renamed(original, root)
    members_in_all = sum(
        math.prod(size_of(f) for f in {*node.inputs[1:], *node.free})
        for node in postorder(root)
        if node.op == "sum_over"
    )
    if members_in_all > MAX_MEMBERS:
        raise CompileError(
            f"expected families of at most {MAX_MEMBERS:,} heads in all, got {members_in_all:,}; try a "
            "smaller shape",
            abbreviate(root),
        )
    new: dict[Node, Node] = {}
    for node in postorder(root):
        same = with_inputs(node, tuple(new[i] for i in node.inputs))
        if same.op == "sum_over":
            same = _written_out(same)
        elif same.op == "tokens" and numeric:
            same = _cast(same)
        new[node] = same
        if origins is not None:
            origins.rewrote(node, same)
    return new[root]


def _cast(node: Node) -> Node:
    """Return real-valued tokens, cast."""
    token, zero = build("tokens", cast="asis"), constant(0)
    match node.cast:
        case "bool":
            return build("not_equal", token, zero)
        case "int":
            towards_zero = build("negate", build("floor", build("negate", token)))
            return build("if_else", build("less", token, zero), towards_zero, build("floor", token))
        case "str":
            raise CompileError(
                "real-valued tokens have no text: compile with a vocabulary instead", abbreviate(node)
            )
        case _:
            return token


def _written_out(node: Node) -> Node:
    body, *families = node.inputs
    total: Node | None = None
    for member in members(families):
        term = replace_families(body, {family: constant(value) for family, value in member.items()})
        total = term if total is None else build("add", total, term)
    assert total is not None
    return total
