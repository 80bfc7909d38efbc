"""Represent families of heads: one node for many heads.

``family(size)`` is a symbolic head index l ∈ {0, …, size−1} that may occur in any expression.
``sum_over((l, m), body)`` is the sum of the body over all values of l and m. The r·c heads of the
paper's matrix product are therefore one node, a sum over l and l' (Algorithm 3), instead of r·c nodes.
Expanding a family gives exactly the paper's heads. ``architecture`` counts all of these heads, and
executors can compute the sum without expanding the family.

The name of a bound index is irrelevant: ``Σ_l f(l)`` and ``Σ_m f(m)`` are the same program and must be
the same object. In ``sum_over``, the name of a bound family therefore depends only on its index and
on the *height* of the body (Axelsson and Claessen, 2013). The height is the depth of nested sums. Inner
sums have smaller heights, so no name can be captured.

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
    """Return a family of ``size`` heads: a symbolic head index with the values 0 … size−1.

    Without a ``name``, the family differs from all other families.
    """
    if type(size) is not int or not 1 <= size <= LARGEST_FAMILY:
        raise GraphError(
            f"family: expected a size from 1 to {LARGEST_FAMILY}, an integer, got {short(size)}"
        )
    if name is not None and not name.isidentifier():
        raise GraphError(f"family: expected an identifier as its name, such as row, got {name!r}")
    return build("family", size=size, name=fresh_name() if name is None else name)


def sum_over(families: Sequence[Node], body: Node) -> Node:
    """Return the sum of ``body`` over all values of ``families``; the node does not depend on the names
    of the families.
    """
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
    """Raise :class:`GraphError` if ``body`` contains the bound index of another sum.

    This happens if the body was extracted from that sum. Indices with greater heights than the new sum
    are allowed, since they may belong to enclosing sums.
    """
    for family in body.free.difference(families):
        name = family.name
        if name.startswith("#") and int(name[1:].split(".")[0]) <= body.height + 1:
            raise GraphError(
                "sum_over: expected a body without the index of another sum, got a part of another "
                "sum; try building it again from family(…)"
            )


def canonical(height: int, slot: int, size: int) -> Node:
    """Return the family that a ``sum_over`` of this ``height`` binds at the index ``slot``.

    The name is not an identifier, so :func:`family` rejects it as a name from a user.
    """
    return build("family", name=f"#{height}.{slot}", size=size)


def size_of(family: Node) -> int:
    """Return the number of heads in a family."""
    return family.size


def members(families: Sequence[Node]) -> Iterator[dict[Node, int]]:
    """Yield every assignment of values to ``families`` as a dictionary; the last family varies
    fastest.
    """
    for values in itertools.product(*(range(size_of(f)) for f in families)):
        yield dict(zip(families, values, strict=True))


def opened(root: Node) -> Node:
    """Return a graph with unique names of bound families, so that parts can be moved between sums.

    The result is not in the normal form of :func:`sum_over`; :func:`closed` restores that form.
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
    """Return the graph with the names of bound families that :func:`sum_over` chooses, which undoes
    :func:`opened`.
    """

    def name_by_height(node: Node) -> Node:
        return sum_over(node.inputs[1:], node.inputs[0]) if node.op == "sum_over" else node

    return transform(root, name_by_height) if root.height else root


def substitute(root: Node, replacements: Mapping[Node, Node]) -> Node:
    """Return a graph in which each node of ``replacements`` is replaced by the node that it maps to.

    This function can be used to run one program on the output of another.

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
