"""Compute with intervals of codes, a fixed small number of them for every query.

Slot after slot they ascend: 0 ≤ low ≤ high ≤ low' ≤ high' … ≤ size for each query, where low = high
says that the query does not use that slot.
"""

from __future__ import annotations

from typing import TypeAlias

from locum.execution.arrays import Array, Arrays

#: For each query the intervals [low, high) of codes, ascending: slot after slot.
Slots: TypeAlias = "tuple[tuple[Array, Array], ...]"


def gaps(arrays: Arrays, size: int, slots: Slots) -> Slots:
    """Return the intervals between, before and after."""
    edges = [arrays.same(0)]
    for low, high in slots:
        edges += [low, high]
    edges.append(arrays.same(size))
    return tuple((edges[i], edges[i + 1]) for i in range(0, len(edges), 2))


def intersection(arrays: Arrays, size: int, a: Slots, b: Slots) -> Slots:
    """Intersect the intervals of one column of ``size`` codes, given in two sets of slots."""
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
            some = low < high  # an empty one goes where the last one ended, to keep them ascending
            low, high = xp.where(some, low, last), xp.where(some, high, last)
            result.append((low, high))
            last = high
    return tuple(result)


def _contains(
    arrays: Arrays, size: int, outer: tuple[Array, Array], inner: tuple[Array, Array]
) -> bool:
    """Return whether intervals are known, without a look at the numbers, to lie in others."""
    low, high = outer
    from_first = low is inner[0] or arrays.is_same(low, 0)
    return from_first and (high is inner[1] or arrays.is_same(high, size))


def coalesced(arrays: Arrays, slots: Slots) -> Slots:
    """Join intervals that meet for every query."""
    result = [slots[0]]
    for low, high in slots[1:]:
        if arrays.all(result[-1][1] == low):
            result[-1] = (result[-1][0], high)
        else:
            result.append((low, high))
    return tuple(result)
