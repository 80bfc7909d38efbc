"""The values of a head at the keys it may select, and their sums over what it does select.

Values are chosen with ``where``, or multiplied by the 0s and 1s of what is selected only where all are
finite: an infinity at a key that is not selected must not leak (∞ · 0 is not 0).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from locum.execution.arrays import Array, Arrays
from locum.execution.heads.numbers import ElementError


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
