"""Sum and maximise over each query's range of keys, without ever visiting a pair.

Which way depends on the ranges, and each is counted:

- none longer than one key: a gather;
- all from the first key on, or all to the last: one cumulative sum (a *scan*);
- equal or disjoint (blocks, groups): one sum per *segment*, fetched by its queries. Never differences
  of one long cumulative sum, which would lose everything next to a large value elsewhere;
- any others (windows): a tree of pairwise sums, of which each query adds O(log N) nodes (a scan);
- keys by two orders at once: a *tree* of prefix sums (``dominance.py``).

Nothing outside a range takes part, so infinities do not leak.
"""

from __future__ import annotations

from collections.abc import Callable

from locum.execution.arrays import Array, Arrays
from locum.execution.fast.structured.dominance import Dominance
from locum.execution.fast.structured.partitions import blocks
from locum.execution.fast.structured.ranges import Gather, Solved


def counts(arrays: Arrays, solved: list[Solved]) -> Array:
    """Count the keys of each query in all parts."""
    total = arrays.full(arrays.size, 0)
    for part in solved:
        total = total + number_of_keys(arrays, part)
    return total


def number_of_keys(arrays: Arrays, part: Solved) -> Array:
    """Count the keys of each query in one part."""
    if isinstance(part, Gather):
        return arrays.to_int(part.present)
    return part.counts if isinstance(part, Dominance) else part.high - part.low


def only(arrays: Arrays, solved: list[Solved]) -> Array:
    """Return the key of each query that has exactly one (0 for the others)."""
    arrays.count("gather")
    key = arrays.full(arrays.size, 0)
    for part in solved:
        if isinstance(part, Gather):
            key = arrays.xp.where(part.present, part.key, key)
            continue
        if isinstance(part, Dominance):
            only = part.reduced(arrays.arange(arrays.size), -1, arrays.xp.maximum)
            key = arrays.xp.where(only >= 0, only, key)
            continue
        some = part.low < part.high
        if part.order is None:
            key = arrays.xp.where(some, part.low, key)
        elif part.order.shape[0]:
            place = arrays.xp.where(some, part.low, 0)
            key = arrays.xp.where(some, arrays.take(part.order, place), key)
    return key


def sums(arrays: Arrays, solved: list[Solved], values: Array) -> Array:
    """Sum the values of each query's keys; 0 without any."""

    def plus(a: Array, b: Array) -> Array:
        return a + b

    total = arrays.full(arrays.size, 0, values.dtype)
    for part in solved:
        total = total + _reduced(arrays, part, values, 0, plus, arrays.sums_before, arrays.segment_sums)
    return total


def signed(counted: list[tuple[int, Solved]], reduce: Callable[[list[Solved]], Array]) -> Array:
    """Add up counts, or sums of integers, of parts that are added (+1) and subtracted (−1)."""
    added, subtracted = ([part for sign, part in counted if sign == s] for s in (1, -1))
    return reduce(added) - reduce(subtracted) if subtracted else reduce(added)


def maxima(arrays: Arrays, solved: list[Solved], values: Array) -> Array:
    """Return the maximum of non-negative integers over each query's keys; −1 without any."""
    highest = arrays.full(arrays.size, -1)
    for part in solved:
        maximum = _reduced(
            arrays,
            part,
            values,
            -1,
            arrays.xp.maximum,
            lambda array: arrays.greatest_before(array, -1),
            lambda array, starts, stops: arrays.segment_maxima(array, starts, stops, -1),
        )
        highest = arrays.xp.maximum(highest, maximum)
    return highest


def _reduced(
    arrays: Arrays,
    part: Solved,
    values: Array,
    neutral: int,
    combine: Callable[[Array, Array], Array],
    running: Callable[[Array], Array],
    by_segment: Callable[[Array, Array, Array], Array],
) -> Array:
    xp = arrays.xp
    empty = arrays.full(1, neutral, values.dtype)
    if isinstance(part, Gather):
        arrays.count("gather")
        return xp.where(part.present, arrays.take(values, part.key), empty)
    if isinstance(part, Dominance):
        return part.reduced(values, neutral, combine)
    low, high = part.low, part.high
    some = low < high
    longest = arrays.largest(high - low)
    if longest == 0:
        return arrays.full(arrays.size, neutral, values.dtype)
    sorted_values = values if part.order is None else arrays.take(values, part.order)
    if longest == 1:
        arrays.count("gather")
        return xp.where(some, arrays.take(sorted_values, xp.where(some, low, 0)), empty)
    cut = blocks(arrays, low, high, part.size)
    if cut is not None:
        arrays.count("segment")
        starts, stops, number = cut
        reduced = by_segment(sorted_values, starts, stops)
        return xp.where(some, arrays.take(reduced, number), empty)
    arrays.count("scan")
    if arrays.all((low == 0) | ~some):
        return xp.where(some, arrays.take(running(sorted_values), high), empty)
    if arrays.all((high == part.size) | ~some):
        backwards = running(xp.flip(sorted_values, axis=0))
        return xp.where(some, arrays.take(backwards, part.size - low), empty)
    return _tree(arrays, sorted_values, low, high, longest, neutral, combine)


def _tree(
    arrays: Arrays,
    level: Array,
    low: Array,
    high: Array,
    longest: int,
    neutral: int,
    combine: Callable[[Array, Array], Array],
) -> Array:
    """Reduce each range by nodes of a binary tree: those at its two ends, level by level."""
    xp = arrays.xp
    left = right = arrays.full(arrays.size, neutral, level.dtype)
    for _ in range(longest.bit_length() + 1):
        at_left = (low < high) & (low % 2 == 1)
        taken = arrays.take(level, xp.where(at_left, low, 0))
        left = xp.where(at_left, combine(left, taken), left)
        low = low + arrays.to_int(at_left)
        at_right = (low < high) & (high % 2 == 1)
        high = high - arrays.to_int(at_right)
        taken = arrays.take(level, xp.where(at_right, high, 0))
        right = xp.where(at_right, combine(taken, right), right)
        low, high = low // 2, high // 2
        if level.shape[0] % 2:
            level = arrays.padded(level, neutral)
        level = combine(level[0::2], level[1::2])
    return combine(left, right)
