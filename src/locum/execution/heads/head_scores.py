"""Encode keys and queries as vectors whose products are scores, and sum the selected values.

Keys and queries are first mapped to non-negative integers in the same order. Integers in a small range
are mapped to their differences from the smallest one, and all other numbers to their ranks. Two kinds
of comparisons have a *full* score, which selected keys reach and no key exceeds:

- ``==``: the vectors contain the L bits as ±1. The product is L for equal numbers, and at most L − 2
  for different numbers.
- ``<``, ``<=``, ``>``, ``>=`` with few distinct queries: queries are one-hot vectors, and keys have a 1
  for each distinct query that they satisfy. The product is 1 or 0. A comparison with one number, such
  as ``indices < k``, needs one coordinate.

A conjunction of these comparisons is one product of the concatenated vectors. A key reaches the sum of
the full scores if and only if it reaches each full score. These keys have the largest score, so the
head is a hard-attention head. If there is no such key, the row is empty.

Each other comparison is a separate product, which is positive for the selected keys:

- ``<``, ``<=``, ``>``, ``>=`` with many distinct queries: q − k by digits of 8 bits, positive where k <
  q.
- ``!=``: twice the number of bits that differ.

No short vectors could give all selected keys of these comparisons the same score. For this, N ordered
keys need N − 1 coordinates, since their sets of maxima are nested faces of a polytope.

Every coordinate, product and sum is an integer that float32 represents exactly. For a single comparison
of the first two kinds, these integers are below 256 and also exact in bfloat16.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from locum.execution.arrays import Array, Arrays
from locum.execution.heads import head_numbers
from locum.execution.heads.head_numbers import ElementError
from locum.execution.heads.head_strings import comparable

#: Maximum number of distinct queries for which each one gets a separate coordinate.
MAX_DISTINCT = 256
#: Maximum number of bits of a number that is compared by its digits, so that sums of the digits are
#: exact in float32.
MAX_BITS = 24
_DIGIT = 8


@dataclass(frozen=True)
class Code:
    """A comparison of keys with queries, with their integers and the vectors that encode them."""

    keys: Array
    queries: Array
    predicate: str
    bits: int
    #: The distinct queries, if each one has a coordinate, else None.
    distinct: Array | None
    #: Whether exactly the selected keys reach the largest score, so that codes can be concatenated.
    maximal: bool

    @cached_property
    def separates(self) -> bool:
        """Whether the comparison is ``==`` with different keys; at most one key then satisfies it."""
        arrays = Arrays(self.keys)
        return self.predicate == "==" and different(arrays, self.keys).shape[0] == self.keys.shape[0]

    @property
    def full(self) -> int:
        """The lowest score of a selected key."""
        if self.predicate == "==":
            return self.bits
        return 2 if self.predicate == "!=" else 1

    @property
    def width(self) -> int:
        """Number of coordinates of a query or key vector."""
        if self.distinct is not None:
            return int(self.distinct.shape[0])
        if self.predicate in ("==", "!="):
            return self.bits + (self.predicate == "!=")
        return 2 * (MAX_BITS // _DIGIT) + 1

    @property
    def largest(self) -> int:
        """Upper bound on the absolute values of all coordinates and scores."""
        return 2 * self.bits if self.predicate in ("==", "!=") or self.maximal else 2**MAX_BITS

    def key_vectors(self, arrays: Arrays) -> Array:
        """Return the vectors of all keys as an array [coordinate, key] of integers or booleans."""
        if self.distinct is not None:
            keys, distinct = self.keys[None, :], self.distinct[:, None]
            return head_numbers.compare(arrays, self.predicate, keys, distinct)
        if self.predicate in ("==", "!="):
            bits = _signs(arrays, self.keys, self.bits)
            return _with_ones(arrays, bits, 1) if self.predicate == "!=" else bits
        digits = _digits(arrays, self.keys)
        ones = arrays.xp.ones_like(digits)
        sign = -1 if self.predicate.startswith("<") else 1
        return _with_ones(arrays, arrays.xp.concat([ones, sign * digits], axis=0), 1)

    def query_vectors(self, arrays: Arrays, begin: int, end: int) -> Array:
        """Return the vectors of the queries ``begin`` to ``end`` as an array [coordinate, row]."""
        queries = self.queries[begin:end]
        if self.distinct is not None:
            return queries[None, :] == self.distinct[:, None]
        if self.predicate in ("==", "!="):
            bits = _signs(arrays, queries, self.bits)
            return _with_ones(arrays, -bits, self.bits) if self.predicate == "!=" else bits
        digits = _digits(arrays, queries)
        ones = arrays.xp.ones_like(digits)
        sign = 1 if self.predicate.startswith("<") else -1
        slack = 1 if self.predicate.endswith("=") else 0
        return _with_ones(arrays, arrays.xp.concat([sign * digits, ones], axis=0), slack)


def code_of(arrays: Arrays, keys: Array, queries: Array, predicate: str) -> Code:
    """Return the code of a comparison of keys with queries by ``predicate``."""
    keys, queries = numbered(arrays, *comparable(predicate, keys, queries))
    most = max(head_numbers.largest(arrays, keys), head_numbers.largest(arrays, queries))
    bits = max(1, most.bit_length())
    if predicate in ("==", "!="):
        return Code(keys, queries, predicate, bits, None, maximal=predicate == "==")
    distinct = different(arrays, queries)
    if distinct.shape[0] <= MAX_DISTINCT:
        return Code(keys, queries, predicate, bits, distinct, maximal=True)
    if bits > MAX_BITS:
        raise ElementError(f"more than 2^{MAX_BITS} different numbers are compared", "refused")
    return Code(keys, queries, predicate, bits, None, maximal=False)


def different(arrays: Arrays, codes: Array) -> Array:
    """Return the distinct values among non-negative integers, ascending.

    The time is linear in the number of integers and in the largest one.
    """
    marks = arrays.full((head_numbers.largest(arrays, codes) + 1,), False, arrays.xp.bool)
    marks[codes] = True
    return arrays.xp.nonzero(marks)[0]


def numbered(arrays: Arrays, keys: Array, queries: Array) -> tuple[Array, Array]:
    """Map keys and queries to non-negative integers that have the same order and equalities."""
    xp = arrays.xp
    together = xp.concat(head_numbers.alike(arrays, keys, queries))
    if arrays.is_int(together):
        least, most = int(xp.min(together)), int(xp.max(together))
        if most - least < 2**MAX_BITS:
            together = together - least
            return together[: keys.shape[0]], together[keys.shape[0] :]
    elif bool(xp.any(xp.isnan(together))):
        raise ElementError("cannot rank NaN: executor='heads' compares keys by rank", "refused")
    ranks = arrays.to_int(xp.unique_inverse(together).inverse_indices).reshape(together.shape)
    return ranks[: keys.shape[0]], ranks[keys.shape[0] :]


def _signs(arrays: Arrays, codes: Array, bits: int) -> Array:
    places = arrays.arange(bits)[:, None]
    return 2 * ((codes[None, :] >> places) & 1) - 1


def _digits(arrays: Arrays, codes: Array) -> Array:
    places = _DIGIT * arrays.arange(MAX_BITS // _DIGIT)[:, None]
    return codes[None, :] & (((1 << _DIGIT) - 1) << places)


def _with_ones(arrays: Arrays, vectors: Array, value: int) -> Array:
    more = arrays.full((1, vectors.shape[1]), value, arrays.int)
    return arrays.xp.concat([vectors, more], axis=0)


def unreachable() -> ElementError:
    """Return the error for a selected key that was considered unreachable, which indicates a bug."""
    return ElementError("a key was selected that had been found unreachable", "internal")


@dataclass
class HeadValues:
    """The values of a head at the keys that it may select, for all rows or for each member."""

    #: [member or 1, key]
    array: Array
    #: Ascending positions of the keys.
    positions: NDArray[np.int64]
    #: For each row of the head, the index of its member; None if all rows share the values.
    member: Array | None
    #: Whether all values are finite.
    finite: bool
    #: The values if they are strings; ``array`` then contains their indices in this list.
    texts: Sequence[Any] | None = None

    def type(self, arrays: Arrays) -> Any:
        """Return the type in which the values of the head are summed."""
        return arrays.int if arrays.is_int(self.array) else self.array.dtype

    def between(self, start: int, stop: int) -> tuple[int, int]:
        """Return the range of indices of the keys whose positions are in [start, stop)."""
        first, last = np.searchsorted(self.positions, [start, stop])
        return int(first), int(last)

    def columns(self, arrays: Arrays, mask: Array, start: int, keys: tuple[int, int]) -> Array:
        """Return the columns of ``mask`` that belong to a range of keys.

        The first column of ``mask`` belongs to position ``start``. ``keys`` is a range of indices of
        keys.
        """
        places = self.positions[slice(*keys)] - start
        if len(places) == mask.shape[1]:
            return mask
        if int(places[-1]) - int(places[0]) + 1 == len(places):
            return mask[:, int(places[0]) : int(places[-1]) + 1]
        return arrays.xp.take(mask, arrays.put(places), axis=1)

    def total(
        self, arrays: Arrays, chosen: Array, rows: tuple[int, int], keys: tuple[int, int]
    ) -> Array:
        """Return, for each of the given rows, the sum of the values at the chosen keys."""
        if self.member is None:
            values = self.array[0, slice(*keys)]
            if self.finite and not arrays.is_int(values):
                return arrays.xp.astype(chosen, values.dtype) @ values
            values = values[None, :]
        else:
            values = self.array[self.member[slice(*rows)], slice(*keys)]
        if arrays.is_bool(values):
            values = arrays.to_int(values)
        zero = arrays.xp.zeros_like(values[:1, :1])
        return arrays.xp.sum(arrays.xp.where(chosen, values, zero), axis=1)

    def at(self, arrays: Arrays, keys: Array) -> tuple[Array, Array]:
        """Return the number of keys and the sum of values of rows that select at most one key.

        ``keys`` contains the selected key of each row, or −1 if there is none. The sum of a row without
        a key is arbitrary.
        """
        hit = keys >= 0
        places = np.full(int(self.positions[-1]) + 2, -1, dtype=np.int64)
        places[self.positions] = np.arange(len(self.positions))
        beyond = len(places) - 1
        column = arrays.put(places)[arrays.xp.where(hit & (keys < beyond), keys, beyond)]
        if bool(arrays.xp.any(hit & (column < 0))):
            raise unreachable()
        column = arrays.xp.where(hit, column, 0)
        member = 0 if self.member is None else self.member
        return arrays.to_int(hit), self.array[member, column]
