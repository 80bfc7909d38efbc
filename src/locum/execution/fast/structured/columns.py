"""Encode keys by rank, so that comparisons become intervals of integers.

A :class:`Column` assigns an integer code to every key. Smaller keys have smaller codes, and equal keys
have equal codes. A comparison other than ``!=`` is then an interval of codes for each query, for keys
of any type. Integers in a small range need no sorting: their codes are their differences from the start
of the range. Most other keys are sorted once. Positions are their own codes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from locum.execution.arrays import Array, Arrays
from locum.execution.fast.structured.series import Series, Unstructured, as_whole
from locum.graph.atoms import LARGEST_EXACT

#: Strings of at most this many characters are packed into a 63-bit integer, which sorts much faster.
_PACKED = 3


@dataclass(frozen=True, eq=False)
class Column:
    """The codes of the keys of one series: ``codes[k]`` is in 0 … size − 1.

    ``given`` is the array of codes, or a function that returns it and is called on first use.
    """

    arrays: Arrays
    given: Array | Callable[[], Array]
    size: int
    #: For integers in a small range, code c belongs to the key ``offset + c``. Otherwise None.
    offset: int | None
    #: For all other keys, code c belongs to the key ``values[c]``. Strings are packed if they are all
    #: short. Otherwise None.
    values: Array | None
    #: The type of the keys and, for integers, a bound on their absolute values.
    kind: str = "int"
    magnitude: int = 0
    is_positions: bool = False
    #: If the codes are ranks of another column, this other column. Code c then belongs to the key at
    #: index c in the order of the other column.
    ranked: Column | None = None

    @cached_property
    def codes(self) -> Array:
        """The code of each key."""
        return self.given() if callable(self.given) else self.given

    @cached_property
    def after(self) -> Array:
        """The codes plus 1; the interval [``codes[k]``, ``after[k]``) contains only the code of k."""
        return self.arrays.after if self.is_positions else self.codes + 1

    def locate(self, queries: Series) -> tuple[Array, Array]:
        """Return, for each query, the number of codes of smaller keys, and of smaller or equal keys."""
        arrays, xp = self.arrays, self.arrays.xp
        if queries.cache.get("column") is self:
            return self.codes, self.after
        if queries.is_indices and self.offset == 0 and self.size == arrays.size:
            return arrays.places, arrays.after
        _refuse_nan(arrays, queries)
        sought, values = self._comparable(queries)
        if self.offset is None:
            return arrays.search(values, sought, "left"), arrays.search(values, sought, "right")
        lowest = highest = sought
        if queries.kind == "float":
            wide = arrays.cast(sought, xp.float64)
            lowest, highest = xp.ceil(wide), xp.floor(wide)
        # Subtract the offset first: at 2⁵³ a float cannot represent a difference of 1.
        places = lowest - self.offset, highest - self.offset + 1
        below, not_above = (arrays.to_int(xp.clip(place, 0, self.size)) for place in places)
        return below, not_above

    def _comparable(self, queries: Series) -> tuple[Array, Array]:
        """Return queries and ascending keys in one type that compares them as Python does.

        If the column has an offset, None is returned in place of the keys.
        """
        arrays = self.arrays
        values: Any = self.values
        if self.kind == "string":
            if values.dtype.kind != "i":
                return queries.data, values
            if queries.data.dtype.itemsize <= 4 * _PACKED:
                return _packed(queries.data), values
            return queries.data, _unpacked(values)
        whole = as_whole(arrays, queries)
        if self.kind == whole.kind:
            sought = arrays.detached(whole.data)
        elif max(self.magnitude, whole.magnitude) > LARGEST_EXACT:
            raise Unstructured("integers beyond 53 bits are combined with floats")
        else:
            sought = arrays.cast(arrays.detached(whole.data), arrays.xp.float64)
            values = None if values is None else arrays.cast(values, arrays.xp.float64)
        if values is not None and values.dtype != sought.dtype:  # tensors of different float types
            sought, values = (arrays.cast(array, arrays.xp.float64) for array in (sought, values))
        return sought, values

    @cached_property
    def direction(self) -> int:
        """1 if codes never decrease with the position, −1 if they never increase, else 0."""
        if self.is_positions:
            return 1
        arrays, codes = self.arrays, self.codes
        if not arrays.on_torch and 0 in (_direction(codes[:64]), _direction(codes[-64:])):
            return 0  # the common case, in which the remaining codes are not read
        return _direction(codes)

    @cached_property
    def injective(self) -> bool:
        """Whether all keys are different."""
        if self.is_positions or self.ranked is not None:
            return True
        return self.size >= self.arrays.size and self.arrays.largest(self.counts) == 1

    @cached_property
    def position_of(self) -> Array:
        """For each code, the position of the key with this code, or −1 if there is no such key.

        All keys must be different.
        """
        if self.is_positions:
            return self.codes
        if self.ranked is not None:
            return self.ranked.places_in_order
        return self.arrays.table(self.size, self.codes, self.arrays.places, missing=-1)

    @cached_property
    def order(self) -> Array | None:
        """The positions sorted by their codes, or None if all positions are already sorted."""
        return None if self.direction > 0 else self.arrays.order(self.codes, self.size)

    @property
    def places_in_order(self) -> Array:
        """The positions sorted by their codes."""
        return self.arrays.places if self.order is None else self.order

    @cached_property
    def rank(self) -> Array:
        """The rank of each key in the order of the codes; equal keys are ordered by position."""
        order = self.order
        if order is None:
            return self.arrays.places
        return self.arrays.table(self.arrays.size, order, self.arrays.places)

    @property
    def sorted_keys(self) -> Array | None:
        """The keys in ascending order if they are integers in a small range, else None."""
        if self.offset is None:
            return None
        keys = self.arrays.arange(self.size) + self.offset
        return self.arrays.xp.repeat(keys, self.counts)

    @cached_property
    def counts(self) -> Array:
        """The number of keys with each code."""
        return self.arrays.numbers_of(self.codes, self.size)

    @cached_property
    def starts(self) -> Array:
        """The number of keys with a code below c, for c = 0 … size."""
        return self.arrays.sums_before(self.counts)

    @cached_property
    def start_of_own(self) -> Array:
        """For each key, the number of keys with a smaller code."""
        return self.arrays.take(self.starts, self.codes)

    @cached_property
    def end_of_own(self) -> Array:
        """For each key, the number of keys with an equal or smaller code."""
        return self.arrays.take(self.starts, self.after)

    def before(self, codes: Array) -> Array:
        """Return the number of keys with a code below each given number in 0 … size."""
        if codes is self.codes:
            return self.start_of_own
        if codes is self.after:
            return self.end_of_own
        if self.arrays.uniform(codes):
            return self.arrays.same(int(self.starts[int(codes[0])]))
        return self.arrays.take(self.starts, codes)


def column(arrays: Arrays, keys: Series) -> Column:
    """Return the column of a series of keys or scores, from the cache of the series if possible.

    The series must not be constant.
    """
    if "column" not in keys.cache:
        keys.cache["column"] = _column(arrays, keys)
    made: Column = keys.cache["column"]
    return made


def _column(arrays: Arrays, keys: Series) -> Column:
    if keys.is_indices:
        return Column(arrays, keys.data, arrays.size, 0, None, "int", arrays.size, is_positions=True)
    _refuse_nan(arrays, keys)
    if keys.kind == "string":
        packs = keys.data.dtype.itemsize <= 4 * _PACKED
        return _sorted(arrays, keys, _packed(keys.data) if packs else keys.data)
    keys = as_whole(arrays, keys)
    if keys.kind == "int":
        low, high = keys.bounds
        if high - low >= min(2**16, few(arrays.size)):  # otherwise loose bounds suffice
            low, high = arrays.range_of(keys.data)
        if high - low < few(arrays.size) and max(-low, high) <= LARGEST_EXACT:
            codes = keys.data - low if low else keys.data
            return Column(arrays, codes, high - low + 1, low, None, "int", keys.magnitude)
    return _sorted(arrays, keys, arrays.detached(keys.data))


def texts_of_few(arrays: Arrays, keys: Series) -> Series | None:
    """Convert integers in a small range to strings if they have few distinct values, or return None.

    Each distinct value is converted once. The strings are compared by the ranks of these texts, so the
    series is not sorted.
    """
    codes = column(arrays, keys)
    if codes.offset is None:
        return None
    present = arrays.positions(codes.counts > 0)
    number = int(present.shape[0])
    if number > arrays.size // 4:
        return None
    texts = np.array([str(code + codes.offset) for code in present.tolist()])
    ascending, ranks = np.unique(texts, return_inverse=True)
    rank = arrays.take(arrays.table(codes.size, present, ranks), codes.codes)
    values = _packed(ascending) if ascending.dtype.itemsize <= 4 * _PACKED else ascending
    made = Column(arrays, rank, number, None, values, "string")
    return Series(arrays.take(ascending, rank), "string", cache={"column": made})


def ranks_of(column: Column) -> Column:
    """Return the column whose codes are the ranks of a column's keys, computed on first use."""
    size = column.arrays.size
    return Column(column.arrays, lambda: column.rank, size, 0, None, "int", size, ranked=column)


def _direction(codes: Array) -> int:
    """Return 1 if codes never decrease, −1 if they never increase, else 0."""
    if bool((codes[1:] >= codes[:-1]).all()):
        return 1
    return -1 if bool((codes[1:] <= codes[:-1]).all()) else 0


def few(size: int) -> int:
    """Return the maximum size of a table, which grows linearly with the length of the sequence."""
    return 4 * size + 1024


def _sorted(arrays: Arrays, keys: Series, data: Array) -> Column:
    arrays.count("sort")
    values, codes = arrays.xp.unique_inverse(data)
    codes = arrays.to_int(codes.reshape(-1))
    return Column(arrays, codes, int(values.shape[0]), None, values, keys.kind, keys.magnitude)


def _packed(strings: Array) -> Array:
    """Pack strings of at most three characters into integers that have the same order.

    Each character uses 21 bits.
    """
    width = strings.dtype.itemsize // 4
    letters = np.ascontiguousarray(strings).view(np.uint32).reshape(strings.shape[0], width)
    packed = np.zeros(strings.shape[0], dtype=np.int64)
    for place in range(_PACKED):
        packed <<= 21
        if place < width:
            packed |= letters[:, place]
    return packed


def _unpacked(packed: Array) -> Array:
    letters = np.stack([(packed >> shift) & (2**21 - 1) for shift in (42, 21, 0)], axis=1)
    return letters.astype(np.uint32).view(f"U{_PACKED}").reshape(-1)


def _refuse_nan(arrays: Arrays, value: Series) -> None:
    if value.kind == "float" and arrays.any(arrays.xp.isnan(value.data)):
        raise Unstructured("NaN cannot be ordered")
