"""Count and sum keys that are in a range of each of two orders, and merge columns of intervals.

The time is O(N log N). An example is the number of larger earlier tokens of each token. The keys of a
query are a prefix of one order, here the order of positions. Their ranks in another order, here the
order of tokens, are in an interval.

The ranks are the leaves of a binary tree, and each node contains its keys in the first order. An
interval of ranks is covered by O(log N) nodes, and a prefix of the keys of each of these nodes is
summed. Sums are therefore sums of prefix sums of nodes. Sums are never subtracted, so digits do not
cancel and infinities do not spread. All queries descend the tree together, level by level.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeAlias

from locum.execution.arrays import Array, Arrays
from locum.execution.fast.structured.columns import Column


class _Level(NamedTuple):
    """The nodes of one width in order, and the keys of these nodes that each query uses."""

    width: int
    #: The keys of all nodes, one node after another, in the first order within each node.
    keys: Array
    #: For one or two nodes of each query, the start of the node and the number of keys used from it.
    taken: list[tuple[Array, Array]]


@dataclass(frozen=True, eq=False)
class Dominance:
    """For each query, the keys among the first ``stop`` keys of one order with ranks in [low, high)."""

    arrays: Arrays
    #: The keys in the first order, as positions.
    order: Array
    #: The rank of each of these keys in the second order; a permutation of 0 … M − 1.
    ranks: Array
    stop: Array
    low: Array
    high: Array

    @cached_property
    def counts(self) -> Array:
        """The number of keys of each query.

        >>> import numpy as np
        >>> tokens, at = np.array([2, 0, 1]), np.arange(3)
        >>> earlier_and_greater = Dominance(Arrays(at), at, tokens, at, tokens, at * 0 + 3)
        >>> earlier_and_greater.counts
        array([0, 1, 1])
        """
        total = self.arrays.full(self.stop.shape[0], 0)
        for level in self._levels():
            for _, number in level.taken:
                total = total + number
        return total

    def reduced(self, values: Array, neutral: int, combine: Callable[[Array, Array], Array]) -> Array:
        """Return, for each query, the values at its keys combined by ``combine``, or ``neutral``.

        ``combine`` adds two arrays, or returns their maximum.
        """
        xp, arrays = self.arrays.xp, self.arrays
        empty = arrays.full(1, neutral, values.dtype)
        total = arrays.full(self.stop.shape[0], neutral, values.dtype)
        is_sum = combine is not xp.maximum
        for level in self._levels():
            prefixes = _by_node(arrays, arrays.take(values, level.keys), level.width, neutral, is_sum)
            for start, number in level.taken:
                place = xp.clip(start + number - 1, 0, None)
                total = combine(total, xp.where(number > 0, arrays.take(prefixes, place), empty))
        return total

    def _levels(self) -> Iterator[_Level]:
        """Yield the keys that each query uses, level by level from the root to the leaves.

        The root contains all keys, and a leaf contains one key.
        """
        arrays, xp = self.arrays, self.arrays.xp
        size = int(self.ranks.shape[0])
        some = (self.low < self.high) & (self.stop > 0)
        if not arrays.any(some):
            return
        arrays.count("tree")
        first, last = xp.where(some, self.low, 0), xp.where(some, self.high - 1, 0)
        # For the nodes on the paths to the first and to the last rank: the number of keys before
        # ``stop``.
        in_first = in_last = xp.where(some, self.stop, 0)
        is_prefix = arrays.all(first == 0)
        places = arrays.arange(size)
        ranks, keys = self.ranks, self.order
        for shift in reversed(range((size - 1).bit_length())):
            half = 1 << shift
            is_left = (ranks & half) == 0
            lefts = arrays.sums_before(arrays.to_int(is_left))

            def split(
                rank: Array, inside: Array, shift: int = shift, lefts: Array = lefts
            ) -> tuple[Array, Array]:
                """Return the start of the node of a rank, and how many of the first ``inside`` keys of
                the node belong to its left child.
                """
                node = (rank >> (shift + 1)) << (shift + 1)
                return node, arrays.take(lefts, node + inside) - arrays.take(lefts, node)

            # Use siblings of the two paths below the node where the paths separate: left siblings of
            # the path to the last rank, and right siblings of the path to the first rank.
            node, left = split(last, in_last)
            goes_right = (last & half) != 0
            apart = goes_right
            if not is_prefix:
                apart = (last >> (shift + 1)) != (first >> (shift + 1))
            taken = [(node, xp.where(goes_right & apart, left, 0))]
            in_last = xp.where(goes_right, in_last - left, left)
            if not is_prefix:
                node, left = split(first, in_first)
                goes_left = (first & half) == 0
                taken.append((node + half, xp.where(goes_left & apart, in_first - left, 0)))
                in_first = xp.where(goes_left, left, in_first - left)
            node, left = split(ranks, places - ((ranks >> (shift + 1)) << (shift + 1)))
            place = xp.where(is_left, node + left, places + half - left)
            origin = arrays.table(size, place, places)
            ranks, keys = arrays.take(ranks, origin), arrays.take(keys, origin)
            yield _Level(half, keys, taken)
        leaves = [(last, in_last)]
        if not is_prefix:
            leaves.append((first, xp.where(first == last, 0, in_first)))
        yield _Level(1, keys, leaves)


def _by_node(arrays: Arrays, values: Array, width: int, neutral: int, is_sum: bool) -> Array:
    """Return cumulative sums or maxima of values that restart at every node."""
    if width == 1:
        return values
    missing = -int(values.shape[0]) % width
    filler = arrays.full(missing, neutral, values.dtype)
    rows = arrays.xp.concat([values, filler]).reshape(-1, width)
    if is_sum:
        return arrays.xp.cumulative_sum(rows, axis=1, dtype=values.dtype).reshape(-1)
    running = rows.cummax(1).values if arrays.on_torch else arrays.xp.maximum.accumulate(rows, axis=1)
    return running.reshape(-1)


#: A column with an interval [low, high) of its codes for each query.
Part: TypeAlias = tuple[Column, Array, Array]


def along_positions(arrays: Arrays, wide: list[Part]) -> list[Part]:
    """Join columns that are monotone in the position into one interval of positions."""
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
    """Convert intervals that are the same for all queries to a mask of keys.

    Return the other intervals, and the mask combined with ``keys``, or None if there is no mask.
    """
    kept = []
    for column, low, high in wide:
        if arrays.any((low != low[0]) | (high != high[0])):
            kept.append((column, low, high))
            continue
        mask = (low[0] <= column.codes) & (column.codes < high[0])
        keys = mask if keys is None else keys & mask
    return kept, keys


def as_blocks(arrays: Arrays, wide: list[Part]) -> tuple[list[Part], list[Part]]:
    """Convert intervals that are equal or disjoint to equalities of block indices.

    Return the equalities and the remaining columns. The last remaining column is not converted.
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
        if int(starts.shape[0]) == 0:  # no query has an interval, so there are no blocks
            continue
        # The block of a code is the one with the last start that is not above the code, if the code is
        # below the stop of this block.
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
    """Return starts and stops of the blocks that intervals form, and the block index of each query.

    Queries with an empty interval have the block index 0. If two intervals overlap without being equal,
    the result is None.
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
