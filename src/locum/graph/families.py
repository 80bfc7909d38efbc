"""Families of heads: one node that stands for many.

``family(size)`` is a symbolic head index l ∈ {0, …, size−1} that may occur in any expression;
``sum_over((l, m), body)`` adds the body over all its values. So the r·c heads of the paper's
matrix product are one node, Σ over l and l' (Algorithm 3), and not r·c of them. Expanding a
family gives exactly the paper's heads; ``analysis`` counts them all; executors need not expand.

A bound index has no name of its own: ``Σ_l f(l)`` and ``Σ_m f(m)`` are one program and must be one
object. ``sum_over`` therefore renames what it binds after the *height* of the body, that is after
how many sums are nested in it (the naming scheme of Axelsson and Claessen, 2013). Sums inside
have smaller heights, so no name can be captured.

>>> from locum.graph.operations import build
>>> def double(name):
...     l = family(3, name)
...     return sum_over((l,), build("add", build("indices"), l))
>>> double("l") is double("m")
True
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

from locum.errors import GraphError
from locum.graph.atoms import short
from locum.graph.node import Node, fresh_name
from locum.graph.operations import LARGEST_FAMILY, build
from locum.graph.traversal import postorder, replace_families, transform, with_inputs


def family(size: int, name: str | None = None) -> Node:
    """Make a head index 0 … size−1. Without a name it differs from every other."""
    if type(size) is not int or not 1 <= size <= LARGEST_FAMILY:
        raise GraphError(
            f"family: expected a size from 1 to {LARGEST_FAMILY}, an integer, got {short(size)}"
        )
    if name is not None and not name.isidentifier():
        raise GraphError(f"family: expected an identifier as its name, such as row, got {name!r}")
    return build("family", size=size, name=fresh_name() if name is None else name)


def sum_over(families: Sequence[Node], body: Node) -> Node:
    """Sum ``body`` over all values of ``families``, in a form that forgets their names."""
    if not families:
        raise GraphError("sum_over: expected one family or more, got none; try sum_over(l, body)")
    for node in families:
        if node.op != "family":
            raise GraphError(f"sum_over: expected families (family(4), say), got {node!r}")
    if len(set(families)) < len(families):
        raise GraphError("sum_over: expected different families, got the same family twice")
    _refuse_capture(body, families)
    bound = [canonical(body.height + 1, slot, size_of(f)) for slot, f in enumerate(families)]
    body = replace_families(body, dict(zip(families, bound, strict=True)))
    return build("sum_over", body, *bound)


def _refuse_capture(body: Node, families: Sequence[Node]) -> None:
    """Refuse indices of sums that the body was taken out of; those of outer sums stand higher."""
    for family in body.free.difference(families):
        name = family.name
        if name.startswith("#") and int(name[1:].split(".")[0]) <= body.height + 1:
            raise GraphError(
                "the body contains the index of another sum, of which it is only a part: "
                "build it from family(…) again instead of taking that sum apart"
            )


def canonical(height: int, slot: int, size: int) -> Node:
    """Return the family that a ``sum_over`` of this height binds in this place. No user can name it."""
    return build("family", name=f"#{height}.{slot}", size=size)


def size_of(family: Node) -> int:
    """Return the number of heads in a family."""
    return family.size


def members(families: Sequence[Node]) -> Iterator[dict[Node, int]]:
    """Enumerate all assignments of values to ``families``, the last one running fastest."""
    for values in itertools.product(*(range(size_of(f)) for f in families)):
        yield dict(zip(families, values, strict=True))


def opened(root: Node) -> Node:
    """Rename every bound family apart, so that parts of the graph can be moved freely.

    The result is not in the form :func:`sum_over` gives; :func:`closed` brings it back.
    """
    return transform(root, _rename_apart) if root.height else root


def _rename_apart(node: Node) -> Node:
    if node.op != "sum_over":
        return node
    body, *bound = node.inputs
    fresh = [family(size_of(f)) for f in bound]
    body = replace_families(body, dict(zip(bound, fresh, strict=True)))
    return Node("sum_over", (body, *fresh))


def closed(root: Node) -> Node:
    """Undo :func:`opened`: name every bound family by the height of its sum."""

    def name_by_height(node: Node) -> Node:
        return sum_over(node.inputs[1:], node.inputs[0]) if node.op == "sum_over" else node

    return transform(root, name_by_height) if root.height else root


def substitute(root: Node, replacements: Mapping[Node, Node]) -> Node:
    """Replace every occurrence of nodes, as when one program is run on another's output.

    >>> from locum.graph.operations import build
    >>> tokens, indices = build("tokens", cast="asis"), build("indices")
    >>> substitute(build("negate", tokens), {tokens: indices})
    <negate: -indices>
    """
    new: dict[Node, Node] = {}
    for node in postorder(root):
        if node in replacements:
            new[node] = opened(replacements[node])
        else:
            new[node] = _rename_apart(with_inputs(node, tuple([new[i] for i in node.inputs])))
    return closed(new[root])
