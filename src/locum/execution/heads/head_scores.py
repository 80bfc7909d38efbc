"""Score keys by vectors, and sum the values of the selected keys.

Keys and queries are numbered first, in their order, by integers from 0 (their own values, if those
are whole and close together; else their ranks). Then

- ``==``: the L bits as ±1. The product is L for equal numbers and at most L − 2 for others.
- ``<``, ``<=``, ``>``, ``>=`` with few distinct queries: a query names its own among them (one-hot), a
  key says for each whether it satisfies it. The product is 1 or 0. A comparison with one number, as
  ``indices < k``, is one coordinate.

Both are at most their *full* score, so a conjunction of them is one product of the vectors joined
end to end: a key reaches the sum of the full scores just if it reaches each. What reaches it is where
the hard maximum lies, unless no key does; then the row is empty (in a network: a token of score
full − 1 wins, whose value is the default). The others are products of their own, whose sign decides,
since no short vectors could make the selected keys equal (N − 1 coordinates are needed for N ordered
keys: their sets of maxima are nested faces of a polytope):

- order with many distinct queries: q − k by digits of 8 bits, positive where k < q;
- ``!=``: twice the number of bits that differ.

Every coordinate, product and sum is an integer that float32 holds exactly; those of the first two
kinds are below 256, and bfloat16 holds them, too.
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

#: More distinct queries than this are not named one by one.
MAX_DISTINCT = 256
#: Numbers below 2²⁴: sums of their digits are exact in float32.
MAX_BITS = 24
_DIGIT = 8


@dataclass(frozen=True)
class Code:
    """One comparison: numbered keys [key] and queries [row], and how they become vectors."""

    keys: Array
    queries: Array
    predicate: str
    bits: int
    #: The distinct queries, if each is named by a coordinate.
    distinct: Array | None
    #: Whether the selected keys are the maxima, so that it can be joined to others.
    maximal: bool

    @cached_property
    def separates(self) -> bool:
        """Whether at most one key satisfies it, whatever the query."""
        arrays = Arrays(self.keys)
        return self.predicate == "==" and different(arrays, self.keys).shape[0] == self.keys.shape[0]

    @property
    def full(self) -> int:
        """The score from which on a key is selected."""
        if self.predicate == "==":
            return self.bits
        return 2 if self.predicate == "!=" else 1

    @property
    def width(self) -> int:
        """Coordinates of a vector."""
        if self.distinct is not None:
            return int(self.distinct.shape[0])
        if self.predicate in ("==", "!="):
            return self.bits + (self.predicate == "!=")
        return 2 * (MAX_BITS // _DIGIT) + 1

    @property
    def largest(self) -> int:
        """A bound for every coordinate and every score."""
        return 2 * self.bits if self.predicate in ("==", "!=") or self.maximal else 2**MAX_BITS

    def key_vectors(self, arrays: Arrays) -> Array:
        """Return [coordinate, key], small integers (or booleans for 1 and 0)."""
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
        """Return [coordinate, row] for some of the rows, likewise."""
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
    """Return how a comparison of these keys with these queries is scored."""
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
    """Return the distinct ones among integers from 0, ascending: by marking them."""
    marks = arrays.full((head_numbers.largest(arrays, codes) + 1,), False, arrays.xp.bool)
    marks[codes] = True
    return arrays.xp.nonzero(marks)[0]


def numbered(arrays: Arrays, keys: Array, queries: Array) -> tuple[Array, Array]:
    """Return keys and queries as integers from 0 that compare just as they do."""
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
    """Report that a bound on the keys that may be selected was too small: a mistake here."""
    return ElementError("a key was selected that had been found unreachable", "internal")


@dataclass
class HeadValues:
    """The values of a head at the keys it may select, the same for all rows or one row per member."""

    #: [member or 1, key]
    array: Array
    #: Ascending positions of the keys.
    positions: NDArray[np.int64]
    #: For each row of the head, its member; None: all rows share the values.
    member: Array | None
    #: Whether there is no infinity among them.
    finite: bool
    #: The values themselves, if there are strings; the array then has their numbers.
    texts: Sequence[Any] | None = None

    def type(self, arrays: Arrays) -> Any:
        """Return the type of sums."""
        return arrays.int if arrays.is_int(self.array) else self.array.dtype

    def between(self, start: int, stop: int) -> tuple[int, int]:
        """Return which of the keys lie in a range."""
        first, last = np.searchsorted(self.positions, [start, stop])
        return int(first), int(last)

    def columns(self, arrays: Arrays, mask: Array, start: int, keys: tuple[int, int]) -> Array:
        """Return the columns of a chunk that belong to these of the keys."""
        places = self.positions[slice(*keys)] - start
        if len(places) == mask.shape[1]:
            return mask
        if int(places[-1]) - int(places[0]) + 1 == len(places):
            return mask[:, int(places[0]) : int(places[-1]) + 1]
        return arrays.xp.take(mask, arrays.put(places), axis=1)

    def total(
        self, arrays: Arrays, chosen: Array, rows: tuple[int, int], keys: tuple[int, int]
    ) -> Array:
        """Return the sum over the chosen keys, for each of some rows."""
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
        """Return counts and sums where each row has found one key, or none (−1)."""
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
