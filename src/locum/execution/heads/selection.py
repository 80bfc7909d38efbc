"""Prepare the selector of a head for execution: find live rows, encode comparisons, form groups.

The rows of all members of a family are run together if the members have the same *keys*. Members with
different keys cannot share key vectors, so their rows are run in separate groups.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from locum.execution.arrays import Array, Arrays, namespace
from locum.execution.heads import head_numbers
from locum.execution.heads.head_attention import ScoredSelector, unranked
from locum.execution.heads.head_numbers import ElementError
from locum.execution.heads.head_scores import HeadValues, code_of, numbered
from locum.execution.heads.head_strings import comparable, is_text, number_values, ranks_of
from locum.execution.heads.points import MAX_CELLS, Points, Positions, in_order, product
from locum.execution.heads.support import PointDemand
from locum.graph import Node, size_of
from locum.graph.selector_normal_form import (
    AllOf,
    Best,
    Formula,
    Literal,
    bests,
    bound,
    conjuncts,
    literals,
)

#: Function that returns the values of a node in the layout of the given points.
Read = Callable[[Node, Points], Array]


class Selection:
    """A selector at the needed points, with its live rows and the groups of heads that run them."""

    def __init__(
        self, arrays: Arrays, demand: PointDemand, read: Read, formula: Formula, points: Points
    ) -> None:
        self.arrays = arrays
        self.ranked = demand.ranked
        self.statics = demand.statics
        self.read = read
        self.points = points
        self.everywhere = np.arange(self.statics.length, dtype=np.int64)
        self.row_truths: dict[Literal, Array] = {}
        for literal in literals(formula):
            if self.statics.is_position_free(literal.key):  # holds for all keys of a row, or for none
                self.row_truths[literal] = self.flat(self.row_truth(literal))
        live = bound(formula, self.row_truths.get, _both, _either)
        if points.valid is not None:
            valid = self.flat(arrays.put(points.valid))
            live = valid if live is None else live & valid
        #: The indices of the live rows, or None for all, and the number of members with a live row.
        self.live: Array | None = None
        self.live_heads = math.prod(points.shape[:-1])
        if live is not None and not bool(arrays.xp.all(live)):
            self.live = arrays.xp.nonzero(live)[0]
            of_heads = arrays.xp.any(live.reshape((self.live_heads, -1)), axis=1)
            self.live_heads = int(arrays.xp.sum(arrays.to_int(of_heads)))
        self.formula = self.among_live(formula)

    @property
    def rows(self) -> int:
        """Number of live rows."""
        return self.points.rows if self.live is None else int(self.live.shape[0])

    def row_truth(self, literal: Literal) -> Array:
        """Return, for each row, whether a comparison that does not depend on the key holds."""
        if (
            literal.query in self.statics
        ):  # on the host in float64, since the type of the tokens may have a lower precision
            sides = literal.key, literal.predicate, literal.query
            return self.arrays.put(self.statics.compare(*sides, self.points, negated=literal.negated))
        key, query = self.read(literal.key, self.points), self.read(literal.query, self.points)
        return head_numbers.compare(self.arrays, literal.predicate, key, query, negated=literal.negated)

    def flat(self, array: Array) -> Array:
        """Return an array with one element per row, broadcast and flattened."""
        return self.arrays.xp.broadcast_to(array, self.points.shape).reshape(-1)

    def among_live(self, formula: Formula) -> Formula:
        """Return the formula without the comparisons that hold in every live row."""
        kept = tuple(
            part
            for part in conjuncts(formula)
            if not (isinstance(part, Literal) and part in self.row_truths)
        )
        return kept[0] if len(kept) == 1 else AllOf(kept)

    def heads(self, memory: int) -> Iterator[tuple[Array | None, ScoredSelector]]:
        """Yield selectors with shared keys, each with the indices of its rows, or None for all rows."""
        if self.rows == 0:
            return
        scored = [part for part in literals(self.formula) if part not in self.row_truths]
        keyed = [part.key for part in scored] + [part.score for part in bests(self.formula)]
        families = in_order({family for node in keyed for family in node.free})
        queries = {part: self.queries(part) for part in scored}
        if not families:
            yield self.live, self.head(queries, self.live, {}, memory)
            return
        index = self.points.member_index(families)
        assert index is not None
        members = self.arrays.put(index)
        rows = self.arrays.arange(self.points.rows) if self.live is None else self.live
        members = members[rows]
        for member in np.unique(self.arrays.fetch(members)).tolist():
            chosen = rows[members == member]
            values = np.unravel_index(member, tuple(map(size_of, families)))
            here = {family: int(value) for family, value in zip(families, values, strict=True)}
            yield chosen, self.head(queries, chosen, here, memory)

    def head(
        self, queries: dict[Literal, Array], rows: Array | None, here: dict[Node, int], memory: int
    ) -> ScoredSelector:
        """Return the scored selector for the given rows, which have the same keys."""

        codes = {
            part: code_of(self.arrays, *self.sides(part, query, rows, here), part.ordered)
            for part, query in queries.items()
        }
        ranking = {part: self.score(part, here) for part in bests(self.formula)}
        truths = {
            part: truth if rows is None else truth[rows] for part, truth in self.row_truths.items()
        }
        count = self.points.rows if rows is None else int(rows.shape[0])
        return ScoredSelector(
            self.arrays, self.formula, codes, truths, ranking, count, self.statics.length, memory
        )

    def queries(self, literal: Literal) -> Array:
        """Return the values of the query of a comparison for all rows.

        The values are on the host if the key and the query of the comparison are both static.
        """
        if self.is_static(literal):
            queries = self.statics.at(literal.query, self.points)
            return np.broadcast_to(queries, self.points.shape).reshape(-1)
        return self.flat(self.read(literal.query, self.points))

    def is_static(self, literal: Literal) -> bool:
        """Return whether a comparison depends only on positions and heads."""
        return literal.key in self.statics and literal.query in self.statics

    def sides(
        self, literal: Literal, queries: Array, rows: Array | None, here: dict[Node, int]
    ) -> tuple[Array, Array]:
        """Return the keys and the queries of a comparison for the given rows.

        If both are static, they are first mapped to integers on the host.
        """
        if not self.is_static(literal):
            chosen = queries if rows is None else queries[rows]
            return self.keys(self.read, literal.key, here, self.everywhere), chosen
        chosen = queries if rows is None else queries[self.arrays.fetch(rows)]
        keys = self.keys(self.statics.at, literal.key, here, self.everywhere)
        keys, chosen = numbered(self.statics.arrays, *comparable(literal.ordered, keys, chosen))
        return self.arrays.put(keys), self.arrays.put(chosen)

    def keys(self, read: Read, node: Node, here: dict[Node, int], positions: Positions) -> Array:
        """Return the values of a key s-op at the given positions, for one member of its families."""
        sizes = tuple(map(size_of, in_order(node.free)))
        if int(np.prod(sizes)) * len(positions) > 8 * MAX_CELLS:
            raise ElementError("the heads compare too many different keys", "too large")
        values = read(node, product(node.free, positions))
        xp = namespace(values)
        values = xp.broadcast_to(values, (*sizes, len(positions)))
        return values[tuple(here[family] for family in in_order(node.free))]

    def score(self, best: Best, here: dict[Node, int]) -> Array:
        """Return the scores by which ``best`` ranks all keys.

        Keys that ``best`` cannot select have the value of :func:`unranked`.
        """
        static, ranked = best.score in self.statics, self.ranked[best]
        arrays = self.statics.arrays if static else self.arrays
        score = self.keys(self.statics.at if static else self.read, best.score, here, ranked)
        if is_text(score):
            score = ranks_of(score)
        if arrays.is_int(score):
            score = arrays.to_int(score)
        elif bool(arrays.xp.any(arrays.xp.isnan(score))):
            raise ElementError("cannot rank NaN: best compares keys by rank", "refused")
        elif static:  # ranks are exact in any type
            score = arrays.to_int(arrays.xp.unique_inverse(score).inverse_indices)
        score = self.arrays.put(score) if static else score
        if len(ranked) == self.statics.length:
            return score
        everywhere = self.arrays.full((self.statics.length,), unranked(self.arrays, score), score.dtype)
        everywhere[self.arrays.put(ranked)] = score
        return everywhere

    def values(self, node: Node, reachable: Any) -> Callable[[Array | None], HeadValues]:
        """Return a function from the rows of a head to its values at the ``reachable`` keys."""
        arrays, families = self.arrays, in_order(node.free)
        array = self.read(node, product(families, reachable))
        array = arrays.xp.broadcast_to(array, (*map(size_of, families), len(reachable)))
        array = array.reshape((-1, len(reachable)))
        finite, texts = True, None
        if is_text(array):
            texts, array = number_values(array)
        if arrays.is_int(array):
            head_numbers.require_room(head_numbers.largest(arrays, array) * len(reachable))
        else:
            finite = bool(arrays.xp.all(arrays.xp.isfinite(array)))
        index = self.points.member_index(families)
        member = None if index is None else arrays.put(index)

        def of_rows(rows: Array | None) -> HeadValues:
            own = member if member is None or rows is None else member[rows]
            return HeadValues(array, reachable, own, finite, texts)

        return of_rows


def _both(a: Array, b: Array) -> Array:
    return a & b


def _either(a: Array, b: Array) -> Array:
    return a | b
