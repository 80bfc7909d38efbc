"""Reduce several columns of long intervals to fewer.

Keys of a query stand side by side in one order only. But a column that rises or falls with the position
says an interval of positions; one whose intervals are the same for every query only chooses keys; one
that cuts the keys into blocks (no two of its intervals overlap in part) is an equality with the number
of a block.
"""

from __future__ import annotations

from typing import TypeAlias

from locum.execution.arrays import Array, Arrays
from locum.execution.fast.structured.columns import Column

#: A column, and for each query an interval [low, high) of its codes.
Part: TypeAlias = tuple[Column, Array, Array]


def along_positions(arrays: Arrays, wide: list[Part]) -> list[Part]:
    """Join columns that rise or fall with the position into one interval of positions."""
    others = [part for part in wide if part[0].direction == 0]
    if len(wide) - len(others) < 2:
        return wide
    low, high = arrays.same(0), arrays.same(arrays.size)
    for column, first, last in wide:
        if column.direction == 0:
            continue
        last = arrays.xp.maximum(first, last)
        begin, end = column.before(first), column.before(last)
        if column.direction < 0:
            begin, end = arrays.size - end, arrays.size - begin
        low, high = arrays.xp.maximum(low, begin), arrays.xp.minimum(high, end)
    along = Column(arrays, arrays.places, arrays.size, 0, None, is_positions=True)
    return [*others, (along, low, arrays.xp.maximum(low, high))]


def as_masks(arrays: Arrays, wide: list[Part], keys: Array | None) -> tuple[list[Part], Array | None]:
    """Turn intervals that are the same for every query into a mask of keys."""
    kept = []
    for column, low, high in wide:
        if arrays.any((low != low[0]) | (high != high[0])):
            kept.append((column, low, high))
            continue
        mask = (low[0] <= column.codes) & (column.codes < high[0])
        keys = mask if keys is None else keys & mask
    return kept, keys


def as_blocks(arrays: Arrays, wide: list[Part]) -> tuple[list[Part], list[Part]]:
    """Turn intervals that are equal or disjoint into equalities with the number of a block.

    Gives these, and what is left. One column is left as it is: it may stay wide.
    """
    equalities: list[Part] = []
    kept = list(wide)
    for part in wide:
        if len(kept) == 1:
            break
        column, low, high = part
        cut = blocks(arrays, low, high, column.size)
        if cut is None:
            continue
        starts, stops, number = cut
        if int(starts.shape[0]) == 0:  # no query has an interval: nothing to number
            continue
        # Block of each code: the last start not above it, if the code lies before that block's stop.
        place = arrays.search(starts, column.codes, "right") - 1
        first = arrays.xp.clip(place, 0, None)
        inside = (place >= 0) & (column.codes < arrays.take(stops, first))
        size = int(starts.shape[0])
        codes = arrays.xp.where(inside, first, size)
        block = Column(arrays, codes, size + 1, 0, None)
        equalities.append((block, number, arrays.xp.where(low < high, number + 1, number)))
        kept = [other for other in kept if other is not part]
    return equalities, kept


def blocks(arrays: Arrays, low: Array, high: Array, size: int) -> tuple[Array, Array, Array] | None:
    """Return starts and stops of the blocks, and the number of each query's block.

    None if two of the intervals overlap without being equal; empty ones have no block (number 0).
    """
    some = low < high
    chosen = arrays.positions(some)
    first, last = arrays.take(low, chosen), arrays.take(high, chosen)
    stop_of = arrays.table(size + 1, first, last, missing=-1)
    if not arrays.all(arrays.take(stop_of, first) == last):
        return None
    starts = arrays.positions(stop_of >= 0)
    stops = arrays.take(stop_of, starts)
    if not arrays.all(stops[:-1] <= starts[1:]):
        return None
    number_of = arrays.table(size + 1, starts, arrays.arange(int(starts.shape[0])))
    return starts, stops, arrays.xp.where(some, arrays.take(number_of, low), 0)
