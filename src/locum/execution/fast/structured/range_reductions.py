"""Sum and maximise values over the interval of keys of each query, without visiting all pairs.

The method depends on the intervals. If several of these cases hold, one of their methods is used. Each
use of a method is counted under the name in italics:

- If no interval is longer than one key, a *gather* reads the value.
- If all intervals start at the first key, or all end at the last key, one cumulative sum (a *scan*) is
  sufficient.
- If intervals are equal or disjoint, one sum is computed for each *segment*. The sums are not
  differences of one long cumulative sum, which would lose precision after a large value.
- For all other intervals, there is a tree of pairwise sums, of which each query adds O(log N) nodes.
  This is also counted as a scan.
- If keys are restricted in two orders at once, there is a *tree* of prefix sums (``dominance.py``).

Floats outside of an interval are never added, so infinities do not spread.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import TypeAlias

from locum.execution.arrays import Array, Arrays
from locum.execution.fast.structured.dominance import Dominance, blocks
from locum.execution.fast.structured.key_ranges import Gather, Solved


def counts(arrays: Arrays, solved: list[Solved]) -> Array:
    """Return the number of keys of each query, summed over all parts."""
    added: list[Array] = []
    starts: list[Array] = []
    for part in solved:
        if isinstance(part, Gather):
            added.append(arrays.same(1) if part.present is None else arrays.to_int(part.present))
        elif isinstance(part, Dominance):
            added.append(part.counts)
        else:
            added.append(part.high)
            starts.append(part.low)
    subtracted: list[Array] = []
    for start in starts:
        place = next((n for n, end in enumerate(added) if end is start), None)
        if place is not None:  # the range starts where another one ends
            del added[place]
        elif not arrays.is_same(start, 0):
            subtracted.append(start)
    total = functools.reduce(operator.add, added) if added else arrays.same(0)
    return functools.reduce(operator.sub, subtracted, total)


def only(arrays: Arrays, solved: list[Solved]) -> Array:
    """Return the key of each query that has exactly one key.

    The result for queries without keys is 0.
    """
    arrays.count("gather")
    key = arrays.same(0)
    for part in solved:
        if isinstance(part, Gather):
            key = part.key if part.present is None else arrays.xp.where(part.present, part.key, key)
            continue
        if isinstance(part, Dominance):
            only = part.reduced(arrays.arange(arrays.size), -1, arrays.xp.maximum)
            key = arrays.xp.where(only >= 0, only, key)
            continue
        if arrays.uniform(part.low) and arrays.uniform(part.high):
            if part.low[0] < part.high[0]:
                place = int(part.low[0])
                key = arrays.same(place if part.order is None else int(part.order[place]))
            continue
        some = part.low < part.high
        if part.order is None:
            key = arrays.xp.where(some, part.low, key)
        elif part.order.shape[0]:
            place = arrays.xp.where(some, part.low, 0)
            key = arrays.xp.where(some, arrays.take(part.order, place), key)
    return key


def sums(arrays: Arrays, solved: list[Solved], values: Array) -> Array:
    """Return the sum of the values at each query's keys; the sum for no keys is 0."""

    def plus(a: Array, b: Array) -> Array:
        return a + b

    sums = [
        _reduced(arrays, part, values, 0, plus, arrays.sums_before, arrays.segment_sums)
        for part in solved
    ]
    if not arrays.is_int(values):
        sums.insert(0, arrays.same(0, values.dtype))  # the sum of −0.0 is 0.0
    return functools.reduce(plus, sums) if sums else arrays.same(0, values.dtype)


def signed(counted: list[tuple[int, Solved]], reduce: Callable[[list[Solved]], Array]) -> Array:
    """Combine counts, or sums of integers, of parts that are added (+1) or subtracted (−1)."""
    added, subtracted = ([part for sign, part in counted if sign == s] for s in (1, -1))
    return reduce(added) - reduce(subtracted) if subtracted else reduce(added)


def maxima(arrays: Arrays, solved: list[Solved], values: Array) -> Array:
    """Return the maximum of non-negative integers at each query's keys, or −1 if it has no keys."""
    highest = [
        _reduced(
            arrays,
            part,
            values,
            -1,
            arrays.xp.maximum,
            lambda array: arrays.greatest_before(array, -1),
            lambda array, starts, stops: arrays.segment_maxima(array, starts, stops, -1),
        )
        for part in solved
    ]
    return functools.reduce(arrays.xp.maximum, highest) if highest else arrays.same(-1)


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
        taken = arrays.take(values, part.key)
        return taken if part.present is None else xp.where(part.present, taken, empty)
    if isinstance(part, Dominance):
        return part.reduced(values, neutral, combine)
    low, high = part.low, part.high
    if arrays.is_same(low, 0) and high is arrays.after and part.order is None:
        arrays.count("scan")
        return running(values)[1:]  # the keys of each query are all positions up to the query
    if arrays.uniform(low) and arrays.uniform(high) and low[0] < high[0]:
        arrays.count("segment")
        sorted_values = values if part.order is None else arrays.take(values, part.order)
        return arrays.xp.broadcast_to(by_segment(sorted_values, low[:1], high[:1]), (arrays.size,))
    some = low < high
    longest = arrays.largest(high - low)
    if longest == 0:
        return arrays.same(neutral, values.dtype)
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
    """Reduce each range of keys by O(log N) nodes of a binary tree, level by level.

    On each level, at most one node at each end of the range is used.
    """
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


#: For each query, intervals [low, high) of codes, in ascending order.
Slots: TypeAlias = "tuple[tuple[Array, Array], ...]"


def gaps(arrays: Arrays, size: int, slots: Slots) -> Slots:
    """Return the gaps before, between and after the intervals."""
    edges = [arrays.same(0)]
    for low, high in slots:
        edges += [low, high]
    edges.append(arrays.same(size))
    return tuple((edges[i], edges[i + 1]) for i in range(0, len(edges), 2))


def intersection(arrays: Arrays, size: int, a: Slots, b: Slots) -> Slots:
    """Return the intersections of the intervals ``a`` and ``b`` in one column of ``size`` codes."""
    xp = arrays.xp
    if len(a) == len(b) == 1:
        for one, other in ((a[0], b[0]), (b[0], a[0])):
            if _contains(arrays, size, other, one):
                return (one,)
    result: list[tuple[Array, Array]] = []
    last = arrays.same(0)
    for low_a, high_a in a:
        for low_b, high_b in b:
            low, high = xp.maximum(low_a, low_b), xp.minimum(high_a, high_b)
            some = (
                low < high
            )  # move empty intervals to the end of the previous one, so that all are ascending
            low, high = xp.where(some, low, last), xp.where(some, high, last)
            result.append((low, high))
            last = high
    return tuple(result)


def _contains(
    arrays: Arrays, size: int, outer: tuple[Array, Array], inner: tuple[Array, Array]
) -> bool:
    """Return whether one interval is known to contain another, without comparing arrays."""
    low, high = outer
    from_first = low is inner[0] or arrays.is_same(low, 0)
    return from_first and (high is inner[1] or arrays.is_same(high, size))


def coalesced(arrays: Arrays, slots: Slots) -> Slots:
    """Join intervals that are adjacent for every query."""
    result = [slots[0]]
    for low, high in slots[1:]:
        if arrays.all(result[-1][1] == low):
            result[-1] = (result[-1][0], high)
        else:
            result.append((low, high))
    return tuple(result)
