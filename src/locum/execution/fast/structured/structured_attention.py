"""Compute attention on structured selectors, and on other selectors in bounded memory.

``best`` needs no separate algorithm: the result contains the selected keys whose score *equals* the
largest selected score. This condition is an equality of codes of scores, and can be combined with other
selectors.

A mean is the sum over the selected keys, divided by their number. If one key is selected, its value is
unchanged; if no key is selected, the result is the default. If every query is known to select the same
keys, the result is constant. Such a result is usually stored as a scalar, except on tensors.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

from locum.execution.arrays import Array, Arrays
from locum.execution.fast.structured.columns import Column, column, ranks_of
from locum.execution.fast.structured.logic import choose, comparable, compare
from locum.execution.fast.structured.series import (
    Series,
    Unstructured,
    as_array,
    constant,
)
from locum.execution.fast.structured.structured_selectors import (
    Structure,
    conjunction,
    everything,
    negation,
    nothing,
    of_keys,
    of_queries,
    within,
)
from locum.graph import COMPARISONS, Atom
from locum.graph.atoms import INT64_LIMIT, LARGEST_EXACT
from locum.graph.traversal import last_uses, walk

#: Maximum number of elements of a pattern that are in memory at a time.
CELLS = 2**22
#: Maximum length of sequences of which all pairs of positions are compared.
LONGEST = 2**16


@dataclass(frozen=True, eq=False)
class PairComparison:
    """The comparison ``key ? query`` for every pair of positions, computed from the values."""

    arrays: Arrays
    keys: Series
    queries: Series
    predicate: str

    def rows(self, start: int, stop: int) -> Array:
        """Return the pattern [query, key] of the queries in ``range(start, stop)``."""
        keys, queries = comparable(self.arrays, self.keys, self.queries)
        rows = queries.data if queries.constant else queries.data[start:stop, None]
        here = keys.data if keys.constant else keys.data[None, :]
        pattern = COMPARISONS[self.predicate].holds(here, rows)
        return self.arrays.xp.broadcast_to(pattern, (stop - start, self.arrays.size))


@dataclass(frozen=True, eq=False)
class CombinedSelection:
    """A selector that combines other selectors for all pairs of positions.

    ``op`` is selector_and, selector_or, selector_not, or ``same`` for an unchanged operand.
    """

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
        """Return the rows of the pattern in ``range(start, stop)``.

        Patterns of operands are freed after their last use.
        """
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
        """All parts, operands first, each with the parts that are not needed after it."""
        roots: list[Selection | PairComparison] = [self]
        return last_uses(list(walk(roots, _operands)), _operands, roots)

    def chunks(self) -> Iterator[Array]:
        """Yield the pattern in blocks of rows."""
        self.arrays.count("mask")
        step = max(1, CELLS // self.arrays.size)
        for start in range(0, self.arrays.size, step):
            yield self.rows(start, min(start + step, self.arrays.size))

    @cached_property
    def counts(self) -> Array:
        """The number of keys that each query selects."""
        whole = self.arrays.to_int
        return self._joined(lambda rows: self.arrays.xp.sum(whole(rows), axis=1))

    def only(self) -> Array:
        """Return the selected key of each query that selects exactly one key."""
        whole = self.arrays.to_int
        return self._joined(lambda rows: whole(self.arrays.xp.argmax(whole(rows), axis=1)))

    def sums(self, values: Array) -> Array:
        """Return the sum of the values at each query's keys."""
        zero = self.arrays.full(1, 0, values.dtype)
        xp = self.arrays.xp
        return self._joined(
            lambda rows: xp.sum(xp.where(rows, values[None, :], zero), axis=1, dtype=values.dtype)
        )

    def maxima(self, values: Array) -> Array:
        """Return the maximum of non-negative integers at each query's keys, or −1 if it has no keys."""
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


def select(arrays: Arrays, keys: Series, queries: Series, predicate: str) -> Structure:
    """Return the selector that selects the keys k with keys[k] ? queries[q] for each query q."""
    if keys.constant or queries.constant or keys.is_number != queries.is_number:
        holds = compare(arrays, keys, queries, predicate)
        if holds.constant:
            return everything(arrays) if holds.data else nothing(arrays)
        return of_keys(arrays, holds.data) if queries.constant else of_queries(arrays, holds.data)
    codes = column(arrays, keys)
    below, not_above = codes.locate(queries)
    first, end = arrays.same(0), arrays.same(codes.size)
    if predicate == "!=":
        return negation(within(arrays, codes, below, not_above))
    low, high = {
        "==": (below, not_above),
        "<": (first, below),
        "<=": (first, not_above),
        ">": (not_above, end),
        ">=": (below, end),
    }[predicate]
    return within(arrays, codes, low, high)


def best(arrays: Arrays, selection: Selection, score: Series) -> Selection:
    """Return the selector that keeps the selected keys with the highest score."""
    if score.constant:
        if score.kind == "float" and math.isnan(score.data):
            raise Unstructured("NaN cannot be ordered")
        return selection
    codes = column(arrays, score)
    highest = selection.maxima(codes.codes)
    low = arrays.mapped(lambda array: arrays.xp.clip(array, 0, None), highest)
    equal = within(arrays, codes, low, arrays.mapped(lambda array: array + 1, highest))
    if isinstance(selection, Structure):
        return conjunction(selection, equal)
    return CombinedSelection(arrays, "selector_and", (selection, equal))


def width(arrays: Arrays, selection: Selection) -> Series:
    """Return the number of keys that each query selects, as a series."""
    number = selection.counts
    if selection.uniform or arrays.uniform(number):
        return constant(int(number[0]))
    return Series(number, "int", (0, arrays.size))


def ranks(arrays: Arrays, keys: Column) -> Series:
    """Return the index of each key in the stable order of all keys, computed on first use."""
    column = ranks_of(keys)
    return Series(lambda: column.codes, "int", (0, arrays.size - 1), cache={"column": column})


def aggregate(arrays: Arrays, selection: Selection, values: Series, default: Atom) -> Series:
    """Return the mean of the values at each query's keys.

    The value of a single key is unchanged. If a query selects no key, the result is the default.
    """
    number = selection.counts
    most = arrays.largest(number)
    if most == 0:
        return constant(default)
    some = arrays.same(most > 0, arrays.xp.bool) if arrays.uniform(number) else number > 0
    if most == 1:
        chosen = _single(arrays, selection, values)
    else:
        chosen = _mean(arrays, selection, values, number, most)
    if arrays.all(some):
        return chosen
    return choose(arrays, some, chosen, constant(default))


def _single(arrays: Arrays, selection: Selection, values: Series) -> Series:
    if values.constant:
        return values
    order = selection.fetched_in_order if isinstance(selection, Structure) else None
    if order is not None and values.kind == "int" and values.cache.get("column") == order:
        keys = order.sorted_keys  # the values are the keys
        if keys is not None:
            arrays.count("sort")
            return Series(keys, "int", values.bounds)
    if _scalar(arrays, selection):
        return _constant(arrays.take(values.data, selection.only()[:1]), values.kind)
    chosen = arrays.take(values.data, selection.only())
    return Series(chosen, values.kind, values.bounds, values.mixed)


def _mean(arrays: Arrays, selection: Selection, values: Series, number: Array, most: int) -> Series:
    if values.kind not in ("int", "float"):
        raise Unstructured("means of strings or booleans are undefined")
    if values.kind == "int" and (
        values.magnitude > LARGEST_EXACT or values.magnitude * most >= INT64_LIMIT
    ):
        raise Unstructured("a sum of integers too large for an array")
    mixed = values.has_ints and _any_single(arrays, number)
    if values.constant:
        mean = Series(float(values.data), "float", mixed=mixed)
        # The mean is an int where one key is selected and a float where several are, so the series is
        # not constant.
        return replace(mean, given=as_array(arrays, mean)) if mixed else mean
    xp = arrays.xp
    # Double precision for any tensor type, since a long sum in single precision loses digits.
    data = values.data if values.kind == "int" else arrays.cast(values.data, xp.float64)
    total = arrays.cast(selection.sums(data), xp.float64)
    if values.kind == "float" and not arrays.on_torch and not arrays.all(xp.isfinite(total)):
        finite = data[xp.isfinite(data)]
        if finite.shape[0] and float(abs(finite).max()) > sys.float_info.max / len(data):
            raise Unstructured("a sum of floats that overflows")
    divisor = arrays.cast(number, xp.float64)
    mean = total / (divisor if arrays.all(number > 0) else xp.clip(divisor, 1, None))
    if _scalar(arrays, selection):
        return _constant(mean, "float")
    if values.kind == "float":
        mean = arrays.cast(mean, values.data.dtype)
    return Series(mean, "float", mixed=mixed)


def _any_single(arrays: Arrays, number: Array) -> bool:
    """Return whether any query selects exactly one key."""
    if not arrays.on_torch and 1 in (number[0], number[-1]):
        return True  # the remaining numbers are not read
    return arrays.any(number == 1)


def _scalar(arrays: Arrays, selection: Selection) -> bool:
    """Return whether the result is stored as a scalar; a tensor is kept for its gradient."""
    return selection.uniform and not arrays.on_torch


def _constant(array: Any, kind: str) -> Series:
    atom = array[0].item()
    return constant(str(atom) if kind == "string" else atom)
