"""Convert conditions on codes to keys: usually, each query's keys are one range of one order.

A :class:`KeyRange` has one interval of codes for each column. If every query has at most one code in a
column, the column is an equality. Equalities determine a *group* of keys for each query, and one
further column may have longer intervals. If keys are sorted by group and then by this column, the keys
of each query are adjacent. Such keys are represented by :class:`Ranges`. If the group of each query has
at most one key, keys are not sorted by group. A :class:`Gather` then reads the key of the group, and
the other columns are tested.

Several columns of long intervals are merged into one if their structure allows it (``dominance.py``).
If two columns remain, keys may be restricted in two orders at once (``dominance.py``). If this is not
possible, or if more columns remain, :class:`Unstructured` is raised.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

from locum.execution.arrays import Array, Arrays
from locum.execution.fast.structured.columns import Column, few
from locum.execution.fast.structured.dominance import (
    Dominance,
    Part,
    along_positions,
    as_blocks,
    as_masks,
)
from locum.execution.fast.structured.series import Unstructured


@dataclass(frozen=True, eq=False)
class KeyRange:
    """Conditions on pairs of a query and a key.

    For each column and query, there is an interval [low, high) of codes. ``keys`` and ``queries`` are
    masks, or None.
    """

    parts: tuple[Part, ...]
    keys: Array | None
    queries: Array | None


@dataclass(frozen=True, eq=False)
class Gather:
    """At most one key for each query: ``key`` where the mask ``present`` is True (None: everywhere)."""

    key: Array
    present: Array | None


@dataclass(frozen=True, eq=False)
class Ranges:
    """A range [low, high) of keys for each query, in the order that sorts ``codes``.

    ``chosen`` contains the keys that are included, or None for all keys. ``codes`` contains their
    codes, or None if the keys are already sorted or if ``column`` determines the order.
    """

    arrays: Arrays
    low: Array
    high: Array
    chosen: Array | None
    codes: Array | None
    #: The column of these codes if they belong to one column, which is sorted only once.
    column: Column | None = None

    @cached_property
    def order(self) -> Array | None:
        """The included keys in sorted order, or None if these are all positions in order."""
        codes = self.codes
        if self.column is not None:
            return self.column.order
        if codes is None or self.arrays.all(codes[1:] >= codes[:-1]):  # blocks need no sorting
            return self.chosen
        order = self.arrays.order(codes, self.arrays.largest(codes) + 1)
        return order if self.chosen is None else self.arrays.take(self.chosen, order)

    @property
    def size(self) -> int:
        """Number of included keys."""
        keys = self.chosen if self.codes is None else self.codes
        return self.arrays.size if keys is None else int(keys.shape[0])


Solved: TypeAlias = Ranges | Gather | Dominance


@dataclass(frozen=True, eq=False)
class _Group:
    """Combined equalities: the group of each key, and the group of each query where ``present``."""

    keys: Array
    queries: Array
    size: int
    present: Array | None
    column: Column | None = None


def solve(arrays: Arrays, cell: KeyRange, trees: bool = True) -> Solved:
    """Return the keys of a cell as ranges, as a gather or, with ``trees``, as a :class:`Dominance`.

    A cell is a :class:`KeyRange`.
    """
    single: list[Part] = []
    wide: list[Part] = []
    for part in cell.parts:
        (single if _is_single(arrays, part) else wide).append(part)
    keys = cell.keys
    fetched = [part for part in single if part[0].injective]
    if fetched:
        return _fetch(arrays, fetched[0], cell)
    group = _group(arrays, single)
    gathered = _gather(arrays, group, wide, cell)
    if gathered is not None:
        return gathered
    if len(wide) > 1:
        wide = along_positions(arrays, wide)
    if len(wide) > 1:
        wide, keys = as_masks(arrays, wide, keys)
    if len(wide) > 1:
        blocks, wide = as_blocks(arrays, wide)
        group = _group(arrays, [*single, *blocks])
    if len(wide) > (2 if trees else 1):
        words = {2: "two", 3: "three"}.get(len(wide), "many")
        raise Unstructured(f"{words} comparisons of a selector select many keys in different orders")
    allowed = cell.queries
    if group is not None and group.present is not None:
        allowed = group.present if allowed is None else allowed & group.present
    chosen = None if keys is None else arrays.positions(keys)
    if len(wide) == 2:
        return _dominance(arrays, group, wide, chosen, allowed)
    return _ranges(arrays, group, wide[0] if wide else None, chosen, allowed)


def solve_signed(arrays: Arrays, cell: KeyRange, trees: bool) -> list[tuple[int, Solved]]:
    """Return a cell as parts with signs, for counts and sums of integers.

    An interval that does not start at 0 may become the difference of two intervals that do.
    """
    try:
        return [(1, solve(arrays, cell, trees))]
    except Unstructured:
        if not trees:
            raise
    for part in cell.parts:
        column, low, high = part
        if not arrays.all(low == 0) and arrays.largest(high - low) > 1:
            others = tuple(other for other in cell.parts if other is not part)
            first = arrays.same(0)
            return [
                (sign, solve(arrays, replace(cell, parts=(*others, (column, first, end))), trees))
                for sign, end in ((1, high), (-1, low))
            ]
    raise Unstructured("several comparisons of a selector select many keys in different orders")


def _dominance(
    arrays: Arrays, group: _Group | None, wide: list[Part], chosen: Array | None, allowed: Array | None
) -> Dominance:
    """Return the keys that are a prefix of one order and in a range of another order."""
    for (column, low, high), other in (wide, wide[::-1]):
        none = low >= high
        codes = column.codes if chosen is None else arrays.take(column.codes, chosen)
        number = int(codes.shape[0])
        before = _starts(arrays, codes, column.size)
        if arrays.all((low == 0) | none):
            order, stop = arrays.order(codes, column.size), arrays.take(before, high)
        elif arrays.all((high == column.size) | none):
            order = arrays.order(column.size - 1 - codes, column.size)
            stop = number - arrays.take(before, low)
        else:
            continue
        ranges = _ranges(arrays, group, other, chosen, allowed)
        order = order if chosen is None else arrays.take(chosen, order)
        ranked = arrays.arange(number) if ranges.order is None else ranges.order
        rank = arrays.table(arrays.size, ranked, arrays.arange(number))
        stop = arrays.xp.where(none, 0, stop)
        return Dominance(arrays, order, arrays.take(rank, order), stop, ranges.low, ranges.high)
    raise Unstructured("two comparisons of a selector select ranges of keys in different orders")


def _ranges(
    arrays: Arrays,
    group: _Group | None,
    wide: Part | None,
    chosen: Array | None,
    allowed: Array | None,
) -> Ranges:
    def of_chosen(codes: Array) -> Array:
        return codes if chosen is None else arrays.take(codes, chosen)

    codes: Array | None
    source: Column | None = None
    known = None
    if wide is not None and group is not None and chosen is None:
        known = _places_in_group(arrays, group, wide)
    if known is not None and group is not None:
        codes, source, (low, high) = None, group.column, known
    elif wide is not None and group is not None:
        column, low, high = wide
        codes = of_chosen(group.keys * column.size + column.codes)
        arrays.count("sort")
        ascending = arrays.xp.sort(codes)
        base = group.queries * column.size
        low, high = (arrays.search(ascending, base + bound, "left") for bound in (low, high))
    elif wide is not None and wide[0].is_positions:
        codes, (_, low, high) = None, wide
        if chosen is not None:
            mask = arrays.table(arrays.size, chosen, 1)
            before = arrays.sums_before(mask)
            low, high = arrays.take(before, low), arrays.take(before, high)
    elif wide is not None:
        column, low, high = wide
        codes, source = of_chosen(column.codes), column
        if chosen is None:
            low, high = column.before(low), column.before(high)
        else:
            before = _starts(arrays, codes, column.size)
            low, high = arrays.take(before, low), arrays.take(before, high)
    elif group is not None:
        codes, source = of_chosen(group.keys), group.column
        if chosen is None and source is not None and group.queries is source.codes:
            low, high = source.start_of_own, source.end_of_own
        else:
            before = _starts(arrays, codes, group.size)
            low, high = arrays.take(before, group.queries), arrays.take(before, group.queries + 1)
    else:
        codes = None
        low = arrays.same(0)
        high = arrays.same(arrays.size if chosen is None else int(chosen.shape[0]))
    if allowed is not None:
        high = arrays.xp.where(allowed, high, low)
    return Ranges(arrays, low, high, chosen, codes, source if chosen is None else None)


def _starts(arrays: Arrays, codes: Array, size: int) -> Array:
    return arrays.sums_before(arrays.numbers_of(codes, size))


def _is_single(arrays: Arrays, part: Part) -> bool:
    """Return whether every query has at most one code of a column."""
    column, low, high = part
    if low is column.codes and high is column.after:
        return True
    if not arrays.on_torch and any(high[n] - low[n] > 1 for n in arrays.samples):
        return False  # the remaining intervals are not read
    return arrays.largest(high - low) <= 1


def _places_in_group(arrays: Arrays, group: _Group, wide: Part) -> tuple[Array, Array] | None:
    """Return the ranges of keys that equal the query's key and are in an interval of positions.

    Keys are in the order of the group's column; equal keys are ordered by position. Each end of the
    interval must be 0, the query, the position after the query, or the length. Otherwise, return None.
    """
    column, source = wide[0], group.column
    if not column.is_positions or source is None or group.queries is not source.codes:
        return None
    places = []
    for bound in wide[1:]:
        if arrays.is_same(bound, 0):
            places.append(source.start_of_own)
        elif arrays.is_same(bound, arrays.size):
            places.append(source.end_of_own)
        elif bound is arrays.places:
            places.append(source.rank)
        elif bound is arrays.after:
            places.append(source.rank + 1)
        else:
            return None
    return places[0], places[1]


# Equalities ---------------------------------------------------------------------------------------


def _group(arrays: Arrays, single: list[Part]) -> _Group | None:
    """Combine several equalities into one equality of joint codes; return None if there are none."""
    joint: _Group | None = None
    for column, low, high in single:
        some = low < high
        present = None if arrays.all(some) else some
        codes = low if present is None else arrays.xp.where(some, low, 0)
        if joint is None:
            joint = _Group(column.codes, codes, column.size, present, column)
        else:
            joint = _joined(arrays, joint, column, codes, present)
    return joint


def _joined(
    arrays: Arrays, joint: _Group, column: Column, codes: Array, present: Array | None
) -> _Group:
    keys = joint.keys * column.size + column.codes
    queries = joint.queries * column.size + codes
    size = joint.size * column.size
    if joint.present is not None:
        present = joint.present if present is None else present & joint.present
    if size > few(arrays.size):  # rank the pairs that occur
        arrays.count("sort")
        pairs, keys = arrays.xp.unique_inverse(keys)
        keys, size = arrays.to_int(keys.reshape(-1)), int(pairs.shape[0])
        place = arrays.xp.clip(arrays.search(pairs, queries, "left"), None, size - 1)
        occurs = arrays.take(pairs, place) == queries
        present = occurs if present is None else present & occurs
        queries = arrays.xp.where(present, place, 0)
    return _Group(keys, queries, size, present)


def _fetch(arrays: Arrays, fetched: Part, cell: KeyRange) -> Gather:
    """Read the only possible key of each query, and test the other conditions.

    All keys of the column in ``fetched`` must be different.
    """
    column, low, high = fetched
    some = low < high
    key = arrays.take(column.position_of, low if arrays.all(some) else arrays.xp.where(some, low, 0))
    present = some & (key >= 0)
    if not arrays.all(present):
        key = arrays.xp.clip(key, 0, None)
    if cell.queries is not None:
        present = present & cell.queries
    if cell.keys is not None:
        present = present & arrays.take(cell.keys, key)
    present = _met(arrays, key, [p for p in cell.parts if p is not fetched], present)
    return Gather(key, None if arrays.all(present) else present)


def _met(arrays: Arrays, key: Array, parts: list[Part], met: Array) -> Array:
    """Return a mask of the queries whose key meets the conditions ``parts``, in addition to ``met``."""
    for column, low, high in parts:
        code = arrays.take(column.codes, key)
        met = met & (low <= code) & (code < high)
    return met


def _gather(arrays: Arrays, group: _Group | None, wide: list[Part], cell: KeyRange) -> Gather | None:
    """Return the only key of each query if equalities leave at most one, else None."""
    if group is None:
        return None
    positions = arrays.places
    codes = group.keys
    if cell.keys is not None:
        positions = arrays.positions(cell.keys)
        codes = arrays.take(codes, positions)
    if group.column is not None and cell.keys is None:
        counts = group.column.counts
    else:
        counts = arrays.numbers_of(codes, group.size)
    is_plain = group.present is None and cell.queries is None and not arrays.on_torch
    if is_plain and any(counts[group.queries[n]] > 1 for n in arrays.samples):
        return None  # the remaining numbers are not read
    number = arrays.take(counts, group.queries)
    if group.present is not None:
        number = arrays.xp.where(group.present, number, 0)
    if cell.queries is not None:
        number = arrays.xp.where(cell.queries, number, 0)
    if arrays.largest(number) > 1:
        return None
    key = arrays.take(arrays.table(group.size, codes, positions), group.queries)
    return Gather(key, _met(arrays, key, wide, number == 1))
