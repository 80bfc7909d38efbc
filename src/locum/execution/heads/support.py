"""Determine the values that a run needs, and the members of a sum that can be non-zero.

In the paper's matrix product, a head selects keys only for the single query l·c + m. The other rows of
the head are empty and have the value 0. In the program, this is visible as a comparison that does not
depend on the key, or as a condition ``where(…, x, 0)``. If one side of a comparison depends only on the
head and the other side only on the position, the comparison can often be solved by sorting. The heads
are then not tested at every position.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from locum.execution.elementwise import truth
from locum.execution.heads import head_numbers
from locum.execution.heads.head_strings import is_text
from locum.execution.heads.points import MAX_CELLS, Points, Statics, product
from locum.graph import COMPARISONS, Node, Sort, postorder, sort_of
from locum.graph.operations import PREDICATE_OF
from locum.graph.selector_normal_form import (
    Best,
    Formula,
    Literal,
    bests,
    bound,
    conjuncts,
    formula_of,
    literals,
)


@dataclass(frozen=True)
class SupportCondition:
    """The comparison left ? right, or its negation.

    If ``right`` is None, the condition is that ``left`` is true.
    """

    left: Node
    predicate: str = "!="
    right: Node | None = None
    negated: bool = False


def conditions(body: Node, statics: Statics) -> list[SupportCondition]:
    """Return static conditions that are necessary for ``body`` to be non-zero."""
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
    """Return whether a comparison is static and does not depend on the key.

    If such a comparison must hold for all selected keys and is false for a query, the row of this query
    is empty.
    """
    return statics.is_position_free(literal.key) and literal.query in statics


def narrowed(supports: list[SupportCondition], points: Points, statics: Statics) -> Points:
    """Return the points at which all support conditions hold.

    The positions of all heads are padded to the same number. If there are no conditions, if the points
    are not a product of heads and positions, or if the analysis would need too much memory, all points
    are returned.
    """
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
    """Return whether a factor is static, independent of the position, and finite.

    The product of 0 and such a factor is 0, while the product of 0 and infinity is NaN.
    """
    if not statics.is_position_free(node):
        return False
    values = statics.at(node, product(node.free, np.zeros(1, dtype=np.int64)))
    return not is_text(values) and bool(np.isfinite(values).all())


def _split(condition: Node) -> list[SupportCondition]:
    """Split a condition on positions into comparisons and other conditions that must all hold."""
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
    """Return points that include all points where the conditions hold; None if there are too many."""
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
            if any(map(is_text, compared)):
                continue
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
    """Sort positions by the value of one s-op; return the order, and the range of each head in it."""
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
    """Return only the points where ``holds`` is True, with ascending positions for each head.

    Padding is computed like all other points, so it must be a valid position. A head is padded with its
    first position; a head without positions is padded with the first position of all heads.
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


class PointDemand:
    """The points at which each s-op that is not static is needed."""

    def __init__(self, roots: Mapping[Node, NDArray[np.int64]], statics: Statics) -> None:
        self.statics = statics
        self.everywhere = np.arange(statics.length, dtype=np.int64)
        self.points: dict[Node, Points] = {}
        #: For each ``sum_over``, the points at which its body can be non-zero.
        self.summed: dict[Node, Points] = {}
        #: The selector of each head as a formula, and the keys that the head may select.
        self.formulas: dict[Node, Formula] = {}
        self.reachable: dict[Node, NDArray[np.int64]] = {}
        #: The keys among which each ``best`` may find its maximum.
        self.ranked: dict[Best, NDArray[np.int64]] = {}
        for root, positions in roots.items():
            if sort_of(root) is Sort.SELECTOR:
                self.attention(root, root, product((), positions), None)
            else:
                self.require(root, product((), positions))
        for node in reversed(list(postorder(*roots))):  # all users of a node are visited before it
            if node in self.points:
                self.inputs_of(node, self.points[node])

    def require(self, node: Node, points: Points) -> None:
        """Record that a node is read at ``points``."""
        if node in self.statics or points.positions.size == 0:
            return
        points = points.onto(node.free)
        known = self.points.get(node)
        self.points[node] = points if known is None else known.joined(points)

    def inputs_of(self, node: Node, points: Points) -> None:
        """Record where the inputs of a node are needed, if the node is read at ``points``."""
        if node.op == "sum_over":
            body = node.inputs[0]
            everywhere = product(body.free, points.together)
            self.summed[node] = narrowed(conditions(body, self.statics), everywhere, self.statics)
            self.require(body, self.summed[node])
        elif node.op in ("aggregate", "selector_width"):
            values = node.inputs[1] if node.op == "aggregate" else None
            self.attention(node, node.inputs[0], points, values)
        elif node.op == "if_else":
            condition, then, otherwise = node.inputs
            self.require(condition, points)
            for branch, holds in ((then, True), (otherwise, False)):
                self.require(branch, self.branch_points(condition, points, holds))
        else:
            for i in node.inputs:
                self.require(i, points)

    def branch_points(self, condition: Node, points: Points, holds: bool) -> Points:
        """Return the points at which a branch of ``if_else`` is chosen.

        If the condition is not static or depends on heads, or if heads need different positions, all
        points are returned.
        """
        if condition not in self.statics or condition.free or not points.is_product:
            return points
        chosen = truth(self.statics.arrays, self.statics.at(condition, product((), points.together)))
        kept = np.broadcast_to(chosen == holds, points.together.shape)
        return product(points.families, points.together[kept])

    def attention(self, node: Node, selector: Node, points: Points, values: Node | None) -> None:
        """Record what a head reads: queries at its rows, all keys, and values at reachable keys."""
        formula = self.formulas[node] = formula_of(selector)
        rows = live_rows(formula, points, self.statics)
        for literal in literals(formula):
            self.require(literal.key, product(literal.key.free, self.everywhere))
            self.require(literal.query, points)
        reachable = self.reachable[node] = self.reachable_keys(formula, points, rows)
        if values is not None:
            self.require(values, product(values.free, reachable))
        for part in bests(
            formula
        ):  # ``best`` takes the maximum over the keys that its selector selects, not the whole formula
            self.ranked[part] = self.reachable_keys(part.selected, points, rows)
            self.require(part.score, product(part.score.free, self.ranked[part]))

    def reads(self, node: Node) -> list[Node]:
        """Return the s-ops that a node reads, including the s-ops in its selector."""
        if node not in self.formulas:
            return list(node.inputs)
        formula = self.formulas[node]
        compared = [side for literal in literals(formula) for side in (literal.key, literal.query)]
        scores = [part.score for part in bests(formula)]
        return [*compared, *scores, *(node.inputs[1:] if node.op == "aggregate" else ())]

    def reachable_keys(
        self, formula: Formula, points: Points, rows: NDArray[np.bool_] | None
    ) -> NDArray[np.int64]:
        """Return the keys that some live row may select, according to the static comparisons."""

        def admitted(literal: Literal) -> NDArray[np.bool_] | None:
            if literal.key not in self.statics or literal.query not in self.statics:
                return None
            if literal.key.free or self.statics.is_position_free(literal.key):
                return None
            queries = _chosen(self.statics.at(literal.query, points), rows)
            if queries.size == 0:
                return np.zeros(len(self.everywhere), dtype=np.bool_)
            keys = self.statics.at(literal.key, product((), self.everywhere))
            if is_text(keys) or is_text(queries):
                return None
            if np.isnan(keys).any() or np.isnan(queries).any():
                return None
            predicate = literal.ordered
            if predicate == "==":
                return np.isin(keys, queries)
            if predicate == "!=":
                return keys != queries[0] if (queries == queries[0]).all() else None
            loosest = queries.max() if predicate.startswith("<") else queries.min()
            return np.asarray(head_numbers.compare(self.statics.arrays, predicate, keys, loosest))

        known = bound(formula, admitted, np.logical_and, np.logical_or)
        return self.everywhere if known is None else self.everywhere[known]


def live_rows(formula: Formula, points: Points, statics: Statics) -> NDArray[np.bool_] | None:
    """Return a mask that is False for rows in which comparisons are known to exclude all keys, or None.

    These comparisons are static and do not depend on the key. The mask is also False for padding, and
    can be broadcast to the shape of ``points``. If the result is None, no row is known to be excluded.
    """

    def admitted(literal: Literal) -> NDArray[np.bool_] | None:
        if not is_about_rows(literal, statics):
            return None
        keys, queries = (statics.at(node, points) for node in (literal.key, literal.query))
        if np.broadcast(keys, queries).size > MAX_CELLS:
            return None
        sides = statics.arrays, literal.predicate, keys, queries
        return np.asarray(head_numbers.compare(*sides, negated=literal.negated))

    known = bound(formula, admitted, np.logical_and, np.logical_or)
    if points.valid is None:
        return known
    return points.valid if known is None else known & points.valid


def _chosen(queries: NDArray[Any], rows: NDArray[np.bool_] | None) -> NDArray[Any]:
    """Return the queries of the live rows, or of all rows if the selection needs too much memory."""
    if rows is None:
        return queries.reshape(-1)
    together = np.broadcast_shapes(queries.shape, rows.shape)
    if not rows.any() or math.prod(together) > MAX_CELLS:
        return queries.reshape(-1)[: None if rows.any() else 0]
    return np.broadcast_to(queries, together)[np.broadcast_to(rows, together)]
