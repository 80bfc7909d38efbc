"""Which heads of a family can add anything, and where: the points at which a summed body is not 0.

A head of the paper's matrix product selects keys for the one query l·c + m; at all others its row is
empty and it gives 0. The reason stands in the program: a comparison that does not depend on the key,
or a condition ``where(…, x, 0)``. Those that compare a number of the head with a number of the
position are solved by sorting, never by trying all heads at all positions.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from locum.analysis.selectors import Literal, conjuncts, formula_of
from locum.execution.elementwise import truth
from locum.execution.heads.points import Points, product
from locum.execution.heads.statics import MAX_CELLS, Statics
from locum.graph import COMPARISONS, Node
from locum.graph.operations import PREDICATE_OF


@dataclass(frozen=True)
class SupportCondition:
    """left ? right (or, negated, that this is not so); without a right side, that left is true."""

    left: Node
    predicate: str = "!="
    right: Node | None = None
    negated: bool = False


def conditions(body: Node, statics: Statics) -> list[SupportCondition]:
    """Return the static conditions without which ``body`` is exactly 0."""
    supports: list[SupportCondition] = []
    while True:
        if body.op == "aggregate" and _is_zero(body.default):
            for part in conjuncts(formula_of(body.inputs[0])):
                if isinstance(part, Literal) and is_about_rows(part, statics):
                    supports.append(
                        SupportCondition(part.key, part.predicate, part.query, part.negated)
                    )
            return supports
        if body.op == "if_else" and body.inputs[0] in statics and _is_zero_constant(body.inputs[2]):
            supports += _split(body.inputs[0])
            body = body.inputs[1]
        elif body.op == "negate":
            body = body.inputs[0]
        elif body.op == "multiply" and any(_is_finite(i, statics) for i in body.inputs):
            body = body.inputs[1 if _is_finite(body.inputs[0], statics) else 0]
        else:
            return supports


def is_about_rows(literal: Literal, statics: Statics) -> bool:
    """Return whether a comparison is static and does not depend on the key: it empties whole rows."""
    return statics.is_position_free(literal.key) and literal.query in statics


def narrowed(supports: list[SupportCondition], points: Points, statics: Statics) -> Points:
    """Return the points at which all conditions hold (padded to one number per head), or all points."""
    if not supports or not points.is_product:
        return points
    start = _solved(supports, points, statics)
    if start is None:
        return points
    holds = np.ones((1,) * len(start.shape), np.bool_) if start.valid is None else start.valid
    for condition in supports:
        holds = holds & _holds(condition, start, statics)
    return _compressed(start, holds)


def _is_zero(value: Any) -> bool:
    return not isinstance(value, str) and value == 0


def _is_zero_constant(node: Node) -> bool:
    return node.op == "constant" and _is_zero(node.value)


def _is_finite(node: Node, statics: Statics) -> bool:
    """Return whether a factor leaves 0 as it is: infinity would not."""
    if not statics.is_position_free(node):
        return False
    values = statics.at(node, product(node.free, np.zeros(1, dtype=np.int64)))
    return bool(np.isfinite(values).all())


def _split(condition: Node) -> list[SupportCondition]:
    """Return a condition on positions as comparisons that must all hold."""
    parts, stack = [], [condition]
    while stack:
        node = stack.pop()
        if node.op == "and":
            stack.extend(node.inputs)
        elif node.op in PREDICATE_OF:
            parts.append(SupportCondition(node.inputs[0], PREDICATE_OF[node.op], node.inputs[1]))
        else:
            parts.append(SupportCondition(node))
    return parts


def _holds(condition: SupportCondition, points: Points, statics: Statics) -> NDArray[np.bool_]:
    if condition.right is None:
        return np.asarray(truth(statics.arrays, statics.at(condition.left, points)))
    sides = condition.left, condition.predicate, condition.right
    return statics.compare(*sides, points, negated=condition.negated)


def _solved(supports: list[SupportCondition], points: Points, statics: Statics) -> Points | None:
    """Return points that include all at which the conditions hold; None if there would be too many."""
    groups: dict[Node, list[tuple[str, Node]]] = defaultdict(list)
    for condition in supports:
        ordered = (
            COMPARISONS[condition.predicate].negation if condition.negated else condition.predicate
        )
        sides = [(condition.left, ordered, condition.right)]
        if condition.right is not None:
            sides.append((condition.right, COMPARISONS[ordered].converse, condition.left))
        for member, predicate, position in sides:
            if position is None or position.free or predicate == "!=":
                continue
            if not statics.is_position_free(member):
                continue
            compared = statics.at(member, points), statics.at(position, product((), points.together))
            if not (condition.negated and any(np.isnan(side).any() for side in compared)):
                groups[position].append((predicate, member))
    best: tuple[NDArray[Any], NDArray[Any], NDArray[Any]] | None = None
    for position, comparisons in groups.items():
        candidate = _ranges(position, comparisons, points, statics)
        if best is None or (candidate[2] - candidate[1]).sum() < (best[2] - best[1]).sum():
            best = candidate
    if best is None:
        return points if points.rows <= MAX_CELLS else None
    order, low, high = best
    counts = np.maximum(high - low, 0)
    longest = int(counts.max())
    if longest * points.rows // points.shape[-1] > MAX_CELLS:
        return None
    steps = np.arange(max(longest, 1))
    places = order[np.minimum(low + steps, len(order) - 1)]
    return Points(points.families, points.positions.reshape(-1)[places], steps < counts)


def _ranges(
    position: Node, comparisons: list[tuple[str, Node]], points: Points, statics: Statics
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Sort positions by one of their numbers; return them, and the range that each head admits."""
    values = np.broadcast_to(statics.at(position, product((), points.together)), points.shape[-1:])
    order = np.argsort(values, kind="stable")
    ascending = values[order]
    low: NDArray[Any] = np.zeros((1,) * len(points.shape), dtype=np.int64)
    high: NDArray[Any] = np.full_like(low, len(ascending))
    for predicate, member in comparisons:  # member ? number
        values = statics.at(member, points)
        first = np.searchsorted(ascending, values, side="left")
        last = np.searchsorted(ascending, values, side="right")
        if predicate in ("==", "<="):
            low = np.maximum(low, first)
        if predicate == "<":
            low = np.maximum(low, last)
        if predicate in ("==", ">="):
            high = np.minimum(high, last)
        if predicate == ">":
            high = np.minimum(high, first)
    low, high = np.broadcast_arrays(low, high)
    return order, low, high


def _compressed(points: Points, holds: NDArray[np.bool_]) -> Points:
    """Return only the points that hold, each head's in ascending order.

    Padding is computed like the rest, so it must be where values are: a head's own first point, or (if
    it has none) the first of all.
    """
    shape = np.broadcast_shapes(holds.shape, points.positions.shape)
    holds = np.broadcast_to(holds, shape)
    counts = holds.sum(axis=-1, keepdims=True)
    valid = np.arange(int(counts.max())) < counts
    beyond = np.iinfo(np.int64).max
    ascending = np.sort(np.where(holds, points.positions, beyond), axis=-1)[..., : valid.shape[-1]]
    if valid.all():
        return Points(points.families, ascending)
    padding = np.where(counts > 0, ascending[..., :1], ascending.min())
    return Points(points.families, np.where(valid, ascending, padding), valid)
