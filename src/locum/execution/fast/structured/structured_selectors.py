"""Represent selectors on N positions in O(N) memory, as disjoint unions of boxes.

A :class:`Box` selects key k for query q if three conditions hold. A mask of keys is true at k, and a
mask of queries is true at q. For some columns, the code of k is in one of a few intervals that depend
on q. A comparison of keys with queries is at most one box. ``==`` and order comparisons have one
interval, and ``!=`` has two intervals. A comparison with a constant is a mask.

A :class:`Structure` is a small set of disjoint boxes, so its sums and counts are sums over the boxes.
Structures are closed under and, or, not:

- and: each pair of boxes is intersected, and so are the intervals of each column;
- not: pairs that fail the first condition of a box, or meet it and fail the second, and so on;
- or: the pairs of one structure, and the pairs of the other structure that are not in the first.

``key_ranges.py`` determines how a box is summed. Too many boxes or intervals raise
:class:`Unstructured`.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

from locum.execution.arrays import Array, Arrays
from locum.execution.fast.structured import range_reductions
from locum.execution.fast.structured.columns import Column
from locum.execution.fast.structured.key_ranges import KeyRange, Solved, solve, solve_signed
from locum.execution.fast.structured.range_reductions import Slots, coalesced, gaps, intersection
from locum.execution.fast.structured.series import Unstructured

MAX_BOXES = 16
MAX_SLOTS = 8


@dataclass(frozen=True, eq=False)
class Box:
    """The pairs of a query and a key that meet every condition.

    Conditions are intervals of codes, a mask of keys, and a mask of queries.
    """

    parts: dict[Column, Slots] = field(default_factory=dict)
    keys: Array | None = None
    queries: Array | None = None

    @property
    def conditions(self) -> int:
        """Number of conditions: columns with intervals, and masks."""
        return len(self.parts) + (self.keys is not None) + (self.queries is not None)


@dataclass(frozen=True, eq=False)
class Structure:
    """A selector as a union of disjoint boxes."""

    arrays: Arrays
    boxes: tuple[Box, ...]

    @cached_property
    def solved(self) -> list[Solved]:
        """The keys of each box: ranges of one order, at most one key for each query, or two orders."""
        solved = self._plain
        return self._solve(trees=True) if solved is None else solved

    @cached_property
    def counted(self) -> list[tuple[int, Solved]]:
        """Parts with signs, whose counts and sums of integers are added (+1) or subtracted (−1).

        For example, "not equal and before" is "before" minus "equal and before". Each of these parts
        needs one order, while a part of ``solved`` needs two.
        """
        if self._plain is not None:
            return [(1, part) for part in self._plain]
        for trees in (False, True):
            try:
                return [
                    (sign * inner, part)
                    for box in self.boxes
                    for sign, cell in _signed_cells(self.arrays, box)
                    for inner, part in solve_signed(self.arrays, cell, trees)
                ]
            except Unstructured:
                continue
        return [(1, part) for part in self.solved]

    @cached_property
    def _plain(self) -> list[Solved] | None:
        """The parts of all boxes if no part needs two orders at once, else None."""
        try:
            return self._solve(trees=False)
        except Unstructured:
            return None

    def _solve(self, trees: bool) -> list[Solved]:
        return [solve(self.arrays, cell, trees) for box in self.boxes for cell in _cells(box)]

    @cached_property
    def counts(self) -> Array:
        """The number of keys that each query selects."""
        if self.fetched_in_order is not None:
            return self.arrays.same(1)
        if self.equality is not None:
            return self.arrays.take(self.equality.counts, self.equality.codes)
        return range_reductions.signed(
            self.counted, lambda parts: range_reductions.counts(self.arrays, parts)
        )

    def only(self) -> Array:
        """Return the selected key of each query that selects exactly one key."""
        if self.fetched_in_order is not None:
            self.arrays.count("gather")
            return self.fetched_in_order.places_in_order
        if all(sign > 0 for sign, _ in self.counted):
            return range_reductions.only(self.arrays, [part for _, part in self.counted])
        return self.sums(self.arrays.arange(self.arrays.size))  # the sum of one position

    def sums(self, values: Array) -> Array:
        """Return the sum of the values at each query's keys.

        Sums of integers may subtract excluded keys.
        """
        if not self.arrays.is_int(values):
            return range_reductions.sums(self.arrays, self.solved, values)
        return range_reductions.signed(
            self.counted, lambda parts: range_reductions.sums(self.arrays, parts, values)
        )

    def maxima(self, values: Array) -> Array:
        """Return the maximum of non-negative integers at each query's keys, or −1 if it has no keys."""
        return range_reductions.maxima(self.arrays, self.solved, values)

    @cached_property
    def ranking(self) -> Column | None:
        """The column whose ranks are the counts of this selector, or None if there is none.

        Each query must select all smaller keys and all equal keys before it. An example is ``select(x,
        x, "<") | select(x, x, "==") & select(indices, indices, "<")``.
        """
        plain = [box.parts for box in self.boxes if box.keys is None and box.queries is None]
        if len(self.boxes) != 2 or len(plain) != 2:
            return None
        lesser, equal = sorted(plain, key=len)
        positions = next((column for column in equal if column.is_positions), None)
        (column, *others) = lesser
        if others or positions is None or equal.keys() != {column, positions}:
            return None
        slots = (*lesser[column], *equal[column], *equal[positions])
        places = self.arrays.places
        expected = ((None, column.codes), (column.codes, column.after), (None, places))
        same = len(slots) == 3 and all(map(self._is_interval, slots, expected))
        return column if same else None

    def _is_interval(self, slot: tuple[Array, Array], expected: tuple[Array | None, Array]) -> bool:
        """Return whether an interval is known to equal ``expected``, in which None means 0."""
        low, first = slot[0], expected[0]
        from_first = low is first if first is not None else self.arrays.is_same(low, 0)
        return from_first and slot[1] is expected[1]

    @cached_property
    def fetched_in_order(self) -> Column | None:
        """The column in whose order each query q selects only the key at index q, or None if no such
        column is known.
        """
        if self._comparison is None:
            return None
        column, slot = self._comparison
        each = (self.arrays.places, self.arrays.after)
        return column.ranked if self._is_interval(slot, each) else None

    @property
    def is_solved(self) -> bool:
        """Whether :attr:`solved` is known to succeed.

        The value is True if :attr:`fetched_in_order` or :attr:`equality` is known.
        """
        return self.fetched_in_order is not None or self.equality is not None

    @cached_property
    def equality(self) -> Column | None:
        """The column if each query selects exactly the keys equal to its own key, else None."""
        if self._comparison is None:
            return None
        column, (low, high) = self._comparison
        return column if low is column.codes and high is column.after else None

    @cached_property
    def _comparison(self) -> tuple[Column, tuple[Array, Array]] | None:
        """The column and its interval if these are the only condition, else None."""
        if len(self.boxes) == 1 and self.boxes[0].conditions == 1:
            for column, slots in self.boxes[0].parts.items():
                if len(slots) == 1:
                    return column, slots[0]
        return None

    @property
    def uniform(self) -> bool:
        """Whether every query is known to select the same keys."""
        return all(not box.parts and box.queries is None for box in self.boxes)

    def rows(self, start: int, stop: int) -> Array:
        """Return the rows of the boolean pattern [query, key] in ``range(start, stop)``."""
        arrays = self.arrays
        pattern = arrays.xp.zeros(
            (stop - start, arrays.size), dtype=arrays.xp.bool, device=arrays.device
        )
        for box in self.boxes:
            pattern = pattern | _rows(arrays, box, start, stop)
        return pattern


def everything(arrays: Arrays) -> Structure:
    """Return the selector that selects every key for every query."""
    return Structure(arrays, (Box(),))


def nothing(arrays: Arrays) -> Structure:
    """Return the selector that selects no key for any query."""
    return Structure(arrays, ())


def within(arrays: Arrays, column: Column, low: Array, high: Array) -> Structure:
    """Return the selector that selects, for each query, the keys whose codes are in [low, high)."""
    if arrays.uniform(low) and arrays.uniform(high):
        return of_keys(arrays, (low[0] <= column.codes) & (column.codes < high[0]))
    return _structure(arrays, [_tidy(arrays, Box({column: ((low, high),)}))])


def of_keys(arrays: Arrays, mask: Array) -> Structure:
    """Return the selector that selects the keys where ``mask`` is True, for every query."""
    return _structure(arrays, [_tidy(arrays, Box(keys=mask))])


def of_queries(arrays: Arrays, mask: Array) -> Structure:
    """Return the selector that selects all keys for the queries where ``mask`` is True."""
    return _structure(arrays, [_tidy(arrays, Box(queries=mask))])


def conjunction(a: Structure, b: Structure) -> Structure:
    """Return the intersection of two selectors."""
    if len(a.boxes) * len(b.boxes) > MAX_BOXES**2:
        raise Unstructured("a selector with too many cases")
    return _structure(a.arrays, [_meet(a.arrays, x, y) for x in a.boxes for y in b.boxes])


def disjunction(a: Structure, b: Structure) -> Structure:
    """Return the union of two selectors, as disjoint boxes."""
    if _work(a) > _work(b):
        a, b = b, a
    try:
        added = conjunction(b, negation(a))
    except Unstructured:
        a, b = b, a
        added = conjunction(b, negation(a))
    return _structure(a.arrays, [*a.boxes, *added.boxes])


def negation(a: Structure) -> Structure:
    """Return the complement of a selector."""
    result = everything(a.arrays)
    for box in a.boxes:
        result = conjunction(result, _structure(a.arrays, list(_without(a.arrays, box))))
    return result


# Boxes --------------------------------------------------------------------------------------------


def _structure(arrays: Arrays, boxes: list[Box | None]) -> Structure:
    kept = _merged([box for box in boxes if box is not None])
    if len(kept) > MAX_BOXES:
        raise Unstructured("a selector with too many cases")
    return Structure(arrays, tuple(kept))


def _merged(boxes: list[Box]) -> list[Box]:
    """Merge boxes that differ only in one mask, since a union of masks is one mask."""
    if len(boxes) < 2:
        return boxes
    for differ in ("keys", "queries"):
        same = "queries" if differ == "keys" else "keys"
        groups: dict[Hashable, Box] = {}
        for box in boxes:
            mask = getattr(box, differ)
            intervals = tuple(
                (column, *(id(bound) for slot in slots for bound in slot))
                for column, slots in box.parts.items()
            )
            signature = (mask is None, id(getattr(box, same)), intervals)
            if signature in groups and mask is not None:
                mask = mask | getattr(groups[signature], differ)
            groups[signature] = replace(box, **{differ: mask})
        boxes = list(groups.values())
    return boxes


def _work(a: Structure) -> int:
    return sum(1 + box.conditions for box in a.boxes)


def _meet(arrays: Arrays, a: Box, b: Box) -> Box | None:
    parts = dict(a.parts)
    for column, slots in b.parts.items():
        if column in parts:
            slots = intersection(arrays, column.size, parts[column], slots)
        parts[column] = slots
    shared = Box(parts, _both(a.keys, b.keys), _both(a.queries, b.queries))
    return _tidy(arrays, shared)


def _both(a: Array | None, b: Array | None) -> Array | None:
    if a is None or b is None:
        return b if a is None else a
    return a & b


def _without(arrays: Arrays, box: Box) -> Iterator[Box | None]:
    """Yield the complement of a box as disjoint boxes, with None in place of an empty box."""
    if box.queries is not None:
        yield _tidy(arrays, Box(queries=~box.queries))
    if box.keys is not None:
        yield _tidy(arrays, Box(keys=~box.keys, queries=box.queries))
    met: dict[Column, Slots] = {}
    for column, slots in box.parts.items():
        failed = {**met, column: gaps(arrays, column.size, slots)}
        yield _tidy(arrays, Box(failed, box.keys, box.queries))
        met[column] = slots


def _tidy(arrays: Arrays, box: Box) -> Box | None:
    """Drop conditions that are always true; return None if a condition is never true."""
    masks: list[Array | None] = []
    for mask in (box.keys, box.queries):
        if mask is None or arrays.all(mask):
            masks.append(None)
        elif not arrays.any(mask):
            return None
        else:
            masks.append(mask)
    parts = {}
    for column, slots in box.parts.items():
        kept = tuple((low, high) for low, high in slots if arrays.any_below(low, high))
        if not kept:
            return None
        if len(kept) > MAX_SLOTS:
            raise Unstructured("a selector with too many intervals for a query")
        kept = coalesced(arrays, kept)
        low, high = kept[0]
        first, end = arrays.same(0), arrays.same(column.size)
        if len(kept) > 1 or arrays.any_below(first, low) or arrays.any_below(high, end):
            parts[column] = kept
    return Box(parts, *masks)


def _cells(box: Box) -> list[KeyRange]:
    """Split a box into cells with one interval for each column."""
    cells = [KeyRange((), box.keys, box.queries)]
    for column, slots in box.parts.items():
        cells = [
            KeyRange((*cell.parts, (column, low, high)), cell.keys, cell.queries)
            for cell in cells
            for low, high in slots
        ]
        if len(cells) > MAX_BOXES:
            raise Unstructured("a selector with too many cases")
    return cells


def _signed_cells(arrays: Arrays, box: Box) -> list[tuple[int, KeyRange]]:
    """Split a box into cells with signs, by inclusion and exclusion.

    A column with few excluded codes becomes all of its codes minus the excluded codes.
    """
    signed = [(1, replace(box, parts={}))]
    for column, slots in box.parts.items():
        left_out = tuple((l, h) for l, h in gaps(arrays, column.size, slots) if arrays.any_below(l, h))
        few = len(left_out) < len(slots) and all(arrays.largest(h - l) <= 1 for l, h in left_out)
        signed = [
            (sign * factor, replace(other, parts={**other.parts, **part}))
            for sign, other in signed
            for factor, part in ([(1, {}), (-1, {column: left_out})] if few else [(1, {column: slots})])
        ]
        if len(signed) > MAX_BOXES:
            raise Unstructured("a selector with too many cases")
    return [(sign, cell) for sign, other in signed for cell in _cells(other)]


def _rows(arrays: Arrays, box: Box, start: int, stop: int) -> Array:
    pattern = arrays.xp.ones((stop - start, arrays.size), dtype=arrays.xp.bool, device=arrays.device)
    if box.keys is not None:
        pattern = pattern & box.keys[None, :]
    if box.queries is not None:
        pattern = pattern & box.queries[start:stop, None]
    for column, slots in box.parts.items():
        codes = column.codes[None, :]
        inside = [
            (low[start:stop, None] <= codes) & (codes < high[start:stop, None]) for low, high in slots
        ]
        pattern = pattern & functools.reduce(operator.or_, inside)
    return pattern
