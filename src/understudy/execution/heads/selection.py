"""From a selector at points to heads that can be run: rows flattened, keys compared, groups formed.

Rows of all members of a family are run together. Members whose *keys* differ (not only their queries)
cannot share key vectors, and are run group by group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from understudy.execution.heads import elementwise
from understudy.execution.heads.arrays import Array, Backend
from understudy.execution.heads.attention import Head
from understudy.execution.heads.elementwise import ElementError
from understudy.execution.heads.formulas import (
    All,
    Best,
    Formula,
    Literal,
    bests,
    bound,
    conjuncts,
    literals,
)
from understudy.execution.heads.points import Points, in_order, product
from understudy.execution.heads.scores import code_of
from understudy.execution.heads.statics import MAX_CELLS, Statics
from understudy.execution.heads.values import Values
from understudy.graph import Node, size_of

#: The values of a node, laid out for points.
Read = Callable[[Node, Points], Array]


class Selection:
    """A selector at points: which rows are live, and the heads that run them."""

    def __init__(
        self, backend: Backend, statics: Statics, read: Read, formula: Formula, points: Points
    ) -> None:
        self.backend = backend
        self.statics = statics
        self.read = read
        self.points = points
        self.everywhere = np.arange(statics.length, dtype=np.int64)
        self.row_truths: dict[Literal, Array] = {}
        for literal in literals(formula):
            if statics.is_position_free(literal.key):  # it adds the same to all scores of a row
                key, query = read(literal.key, points), read(literal.query, points)
                truth = elementwise.compare(backend, literal.predicate, key, query)
                self.row_truths[literal] = self.flat(truth)
        live = bound(formula, self.row_truths.get, _both, _either)
        if points.valid is not None:
            valid = self.flat(backend.put(points.valid))
            live = valid if live is None else live & valid
        #: The live rows, or None if all are.
        self.live: Array | None = None
        if live is not None and not bool(backend.xp.all(live)):
            self.live = backend.xp.nonzero(live)[0]
        self.formula = self.among_live(formula)

    @property
    def rows(self) -> int:
        """How many rows are run."""
        return self.points.rows if self.live is None else int(self.live.shape[0])

    def flat(self, array: Array) -> Array:
        """One element per row."""
        return self.backend.xp.broadcast_to(array, self.points.shape).reshape(-1)

    def among_live(self, formula: Formula) -> Formula:
        """The formula without the comparisons that hold in every live row."""
        kept = tuple(
            part
            for part in conjuncts(formula)
            if not (isinstance(part, Literal) and part in self.row_truths)
        )
        return kept[0] if len(kept) == 1 else All(kept)

    def heads(self, memory: int) -> Iterator[tuple[Array | None, Head]]:
        """Heads, each with the indices of its rows (None: all rows)."""
        if self.rows == 0:
            return
        scored = [part for part in literals(self.formula) if part not in self.row_truths]
        keyed = [part.key for part in scored] + [part.score for part in bests(self.formula)]
        families = in_order({family for node in keyed for family in node.free})
        queries = {part: self.flat(self.read(part.query, self.points)) for part in scored}
        if not families:
            yield self.live, self.head(queries, self.live, {}, memory)
            return
        index = self.points.member_index(families)
        assert index is not None
        members = self.backend.put(index)
        rows = self.backend.arange(self.points.rows) if self.live is None else self.live
        members = members[rows]
        for member in np.unique(self.backend.fetch(members)).tolist():
            chosen = rows[members == member]
            values = np.unravel_index(member, tuple(map(size_of, families)))
            here = {family: int(value) for family, value in zip(families, values, strict=True)}
            yield chosen, self.head(queries, chosen, here, memory)

    def head(
        self, queries: dict[Literal, Array], rows: Array | None, here: dict[Node, int], memory: int
    ) -> Head:
        """The head of some rows, whose keys are those of one member."""

        def of_rows(array: Array) -> Array:
            return array if rows is None else array[rows]

        codes = {
            part: code_of(self.backend, self.keys(part.key, here), of_rows(query), part.predicate)
            for part, query in queries.items()
        }
        ranking = {part: self.score(part, here) for part in bests(self.formula)}
        truths = {part: of_rows(truth) for part, truth in self.row_truths.items()}
        count = self.points.rows if rows is None else int(rows.shape[0])
        return Head(
            self.backend, self.formula, codes, truths, ranking, count, self.statics.length, memory
        )

    def keys(self, node: Node, here: dict[Node, int]) -> Array:
        """A node at all positions, for one member."""
        sizes = tuple(map(size_of, in_order(node.free)))
        if int(np.prod(sizes)) * self.statics.length > 8 * MAX_CELLS:
            raise ElementError("its heads have too many different keys to be compared", "too large")
        values = self.read(node, product(node.free, self.everywhere))
        values = self.backend.xp.broadcast_to(values, (*sizes, self.statics.length))
        return values[tuple(here[family] for family in in_order(node.free))]

    def score(self, best: Best, here: dict[Node, int]) -> Array:
        """What ``best`` ranks keys by; anything at keys that cannot be selected."""
        score = self.keys(best.score, here)
        if not self.backend.is_whole(score) and bool(self.backend.xp.any(self.backend.xp.isnan(score))):
            raise ElementError("best ranks by a number that is not one (nan)", "refused")
        return self.backend.to_int(score) if self.backend.is_whole(score) else score

    def values(self, node: Node, reachable: Any) -> Callable[[Array | None], Values]:
        """The values at the keys that may be selected, as the heads of some rows want them."""
        backend, families = self.backend, in_order(node.free)
        array = self.read(node, product(families, reachable))
        array = backend.xp.broadcast_to(array, (*map(size_of, families), len(reachable)))
        array = array.reshape((-1, len(reachable)))
        finite = True
        if backend.is_whole(array):
            elementwise.require_room(elementwise.largest(backend, array) * len(reachable))
        else:
            finite = bool(backend.xp.all(backend.xp.isfinite(array)))
        index = self.points.member_index(families)
        member = None if index is None else backend.put(index)

        def of_rows(rows: Array | None) -> Values:
            own = member if member is None or rows is None else member[rows]
            return Values(array, reachable, own, finite)

        return of_rows


def _both(a: Array, b: Array) -> Array:
    return a & b


def _either(a: Array, b: Array) -> Array:
    return a | b
