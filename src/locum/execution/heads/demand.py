"""Which values are needed: a walk from the result back to the tokens, before anything is run.

In comes a program and the positions at which its value is wanted; out comes, for each s-op that
depends on tokens, the :class:`Points` at which somebody reads it. A head that nobody reads at a query
is not run there; a head is read wherever it can matter:

- a summed body only where it is not 0 (``support.py``);
- a branch of ``if_else`` only where a static condition chooses it;
- the values of ``aggregate`` only at keys that some live row may select: keys that no comparison
  rules out for all of them. Keys are compared at *all* positions, whatever is read of them later.

The bounds err on the side of too much. One that was too small is noticed: the kernel counts over all
keys, ``best`` finds no rank where none was computed, and no value is read where none is stored.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from locum.analysis.selectors import (
    Best,
    Formula,
    Literal,
    bests,
    bound,
    formula_of,
    literals,
)
from locum.execution.heads import numbers
from locum.execution.heads.points import Points, product
from locum.execution.heads.statics import MAX_CELLS, Statics
from locum.execution.heads.support import conditions, is_about_rows, narrowed
from locum.graph import Node, Sort, postorder, sort_of


class PointDemand:
    """What is needed of each s-op that depends on tokens."""

    def __init__(self, roots: Mapping[Node, NDArray[np.int64]], statics: Statics) -> None:
        self.statics = statics
        self.everywhere = np.arange(statics.length, dtype=np.int64)
        self.points: dict[Node, Points] = {}
        #: Where the body of a sum is not 0.
        self.summed: dict[Node, Points] = {}
        #: The selector of each head, and the keys that it may select.
        self.formulas: dict[Node, Formula] = {}
        self.reachable: dict[Node, NDArray[np.int64]] = {}
        #: The keys among which each ``best`` may look for its maximum.
        self.ranked: dict[Best, NDArray[np.int64]] = {}
        for root, positions in roots.items():
            if sort_of(root) is Sort.SELECTOR:
                self.attention(root, root, product((), positions), None)
            else:
                self.require(root, product((), positions))
        for node in reversed(list(postorder(*roots))):  # all who read a node come before it
            if node in self.points:
                self.inputs_of(node, self.points[node])

    def require(self, node: Node, points: Points) -> None:
        """Note that someone reads the node there."""
        if node in self.statics or points.positions.size == 0:
            return
        points = points.onto(node.free)
        known = self.points.get(node)
        self.points[node] = points if known is None else known.joined(points)

    def inputs_of(self, node: Node, points: Points) -> None:
        """Require what a node that is read at ``points`` reads itself."""
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
        """Return where a branch is chosen, if that is known and the same for all heads."""
        if condition not in self.statics or condition.free or not points.is_product:
            return points
        chosen = self.statics.at(condition, product((), points.together)) != 0
        kept = np.broadcast_to(chosen == holds, points.together.shape)
        return product(points.families, points.together[kept])

    def attention(self, node: Node, selector: Node, points: Points, values: Node | None) -> None:
        """Require what a head reads: queries at its rows, all keys, values where it may select."""
        formula = self.formulas[node] = formula_of(selector)
        rows = live_rows(formula, points, self.statics)
        for literal in literals(formula):
            self.require(literal.key, product(literal.key.free, self.everywhere))
            self.require(literal.query, points)
        reachable = self.reachable[node] = self.reachable_keys(formula, points, rows)
        if values is not None:
            self.require(values, product(values.free, reachable))
        for part in bests(formula):  # its maximum is over what *it* selects, not over what all select
            self.ranked[part] = self.reachable_keys(part.selected, points, rows)
            self.require(part.score, product(part.score.free, self.ranked[part]))

    def reads(self, node: Node) -> list[Node]:
        """Return the s-ops that a node reads, those of its selector included."""
        if node not in self.formulas:
            return list(node.inputs)
        formula = self.formulas[node]
        compared = [side for literal in literals(formula) for side in (literal.key, literal.query)]
        scores = [part.score for part in bests(formula)]
        return [*compared, *scores, *(node.inputs[1:] if node.op == "aggregate" else ())]

    def reachable_keys(
        self, formula: Formula, points: Points, rows: NDArray[np.bool_] | None
    ) -> NDArray[np.int64]:
        """Return the keys that no comparison rules out for all live rows."""

        def admitted(literal: Literal) -> NDArray[np.bool_] | None:
            if literal.key not in self.statics or literal.query not in self.statics:
                return None
            if literal.key.free or self.statics.is_position_free(literal.key):
                return None
            queries = _chosen(self.statics.at(literal.query, points), rows)
            if queries.size == 0:
                return np.zeros(len(self.everywhere), dtype=np.bool_)
            keys = self.statics.at(literal.key, product((), self.everywhere))
            if np.isnan(keys).any() or np.isnan(queries).any():
                return None
            predicate = literal.ordered
            if predicate == "==":
                return np.isin(keys, queries)
            if predicate == "!=":
                return keys != queries[0] if (queries == queries[0]).all() else None
            loosest = queries.max() if predicate.startswith("<") else queries.min()
            return np.asarray(numbers.compare(self.statics.arrays, predicate, keys, loosest))

        known = bound(formula, admitted, np.logical_and, np.logical_or)
        return self.everywhere if known is None else self.everywhere[known]


def live_rows(formula: Formula, points: Points, statics: Statics) -> NDArray[np.bool_] | None:
    """Return which rows a static comparison does not empty; broadcasts to the points. None: all."""

    def admitted(literal: Literal) -> NDArray[np.bool_] | None:
        if not is_about_rows(literal, statics):
            return None
        keys, queries = (statics.at(node, points) for node in (literal.key, literal.query))
        if np.broadcast(keys, queries).size > MAX_CELLS:
            return None
        sides = statics.arrays, literal.predicate, keys, queries
        return np.asarray(numbers.compare(*sides, negated=literal.negated))

    known = bound(formula, admitted, np.logical_and, np.logical_or)
    if points.valid is None:
        return known
    return points.valid if known is None else known & points.valid


def _chosen(queries: NDArray[Any], rows: NDArray[np.bool_] | None) -> NDArray[Any]:
    """Return the queries of the live rows (or more, if telling them apart would take too long)."""
    if rows is None:
        return queries.reshape(-1)
    together = np.broadcast_shapes(queries.shape, rows.shape)
    if not rows.any() or math.prod(together) > MAX_CELLS:
        return queries.reshape(-1)[: None if rows.any() else 0]
    return np.broadcast_to(queries, together)[np.broadcast_to(rows, together)]
