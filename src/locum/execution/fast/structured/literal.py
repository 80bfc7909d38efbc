"""Evaluate selectors without structure in bounded memory: a few rows of the pattern at a time.

Every pair is looked at, so the time is O(N²); the memory is O(N), some millions of cells whatever N is.
This is the answer of last resort for sequences on which dense execution would take minutes; it is
asked for with ``allow_masks`` and counted as ``mask``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from locum.execution.arrays import Array, Arrays
from locum.execution.fast.structured.logic import comparable
from locum.execution.fast.structured.selectors import Structure
from locum.execution.fast.structured.series import Series, Unstructured
from locum.graph import COMPARISONS
from locum.graph.traversal import last_uses, walk

#: Cells of the pattern that are held at a time.
CELLS = 2**22
#: Longer sequences are not compared pair by pair: it would take many minutes.
LONGEST = 2**16


@dataclass(frozen=True, eq=False)
class PairComparison:
    """key ? query for every pair, by the values themselves."""

    arrays: Arrays
    keys: Series
    queries: Series
    predicate: str

    def rows(self, start: int, stop: int) -> Array:
        """Return the pattern of some of the queries."""
        keys, queries = comparable(self.arrays, self.keys, self.queries)
        rows = queries.data if queries.constant else queries.data[start:stop, None]
        here = keys.data if keys.constant else keys.data[None, :]
        pattern = COMPARISONS[self.predicate].holds(here, rows)
        return self.arrays.xp.broadcast_to(pattern, (stop - start, self.arrays.size))


@dataclass(frozen=True, eq=False)
class CombinedSelection:
    """A selector made of others by ``op``: selector_and, selector_or, selector_not, or ``same``."""

    arrays: Arrays
    op: str
    operands: tuple[Selection | PairComparison, ...]
    uniform = False

    def __post_init__(self) -> None:
        if self.arrays.size > LONGEST:
            raise Unstructured(
                f"a selector without structure: all pairs of {self.arrays.size:,} positions would have "
                f"to be compared (the limit is {LONGEST:,} positions)"
            )

    def rows(self, start: int, stop: int) -> Array:
        """Return rows of the pattern; operands first, each kept as long as it is needed."""
        held: dict[Selection | PairComparison, Array] = {}
        for part, done_with in self.steps:
            if isinstance(part, CombinedSelection):
                held[part] = _COMBINE[part.op](*(held[operand] for operand in part.operands))
            else:
                held[part] = part.rows(start, stop)
            for other in done_with:
                del held[other]
        return held[self]

    @cached_property
    def steps(self) -> list[tuple[Selection | PairComparison, list[Selection | PairComparison]]]:
        """All it is made of, operands first, each with those that are not needed after it."""
        roots: list[Selection | PairComparison] = [self]
        return last_uses(list(walk(roots, _operands)), _operands, roots)

    def chunks(self) -> Iterator[Array]:
        """Iterate over the pattern, some rows at a time."""
        self.arrays.count("mask")
        step = max(1, CELLS // self.arrays.size)
        for start in range(0, self.arrays.size, step):
            yield self.rows(start, min(start + step, self.arrays.size))

    @cached_property
    def counts(self) -> Array:
        """How many keys each query selects."""
        whole = self.arrays.to_int
        return self._joined(lambda rows: self.arrays.xp.sum(whole(rows), axis=1))

    def only(self) -> Array:
        """Return the key of each query that selects exactly one."""
        whole = self.arrays.to_int
        return self._joined(lambda rows: whole(self.arrays.xp.argmax(whole(rows), axis=1)))

    def sums(self, values: Array) -> Array:
        """Sum values over each query's keys."""
        zero = self.arrays.full(1, 0, values.dtype)
        xp = self.arrays.xp
        return self._joined(
            lambda rows: xp.sum(xp.where(rows, values[None, :], zero), axis=1, dtype=values.dtype)
        )

    def maxima(self, values: Array) -> Array:
        """Return the maximum of non-negative integers over each query's keys; −1 without any."""
        none = self.arrays.full(1, -1)
        xp = self.arrays.xp
        return self._joined(lambda rows: xp.max(xp.where(rows, values[None, :], none), axis=1))

    def _joined(self, reduce: Callable[[Array], Array]) -> Array:
        return self.arrays.xp.concat([reduce(rows) for rows in self.chunks()])


#: The value of a selector.
Selection: TypeAlias = Structure | CombinedSelection


def _operands(part: Selection | PairComparison) -> tuple[Selection | PairComparison, ...]:
    return part.operands if isinstance(part, CombinedSelection) else ()


_COMBINE: dict[str, Callable[..., Array]] = {
    "same": lambda a: a,
    "selector_and": lambda a, b: a & b,
    "selector_or": lambda a, b: a | b,
    "selector_not": lambda a: ~a,
}
