"""The few array operations of the structured evaluator, on NumPy arrays and torch tensors alike.

One :class:`Arrays` belongs to one run: it knows the namespace (``array_api_compat``) and the device of
the tokens, and counts the costly steps. What the array API has is used as it is; here is the little it
lacks: sums and maxima over contiguous segments, running maxima, tables. Torch is loaded only if a
tensor came in, and everything that touches values is differentiable there.

>>> import numpy as np
>>> arrays = Arrays(np.zeros(3))
>>> arrays.segment_sums(np.array([1.0, 2.0, 4.0, np.inf]), np.array([0, 2]), np.array([2, 3]))
array([3., 4.])
"""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any, TypeAlias

import array_api_compat
import numpy as np

from locum.errors import InputError

#: A NumPy array or a torch tensor.
Array: TypeAlias = Any


class Arrays:
    """The namespace, device and counters of one run on ``size`` positions."""

    def __init__(self, like: Array, counts: MutableMapping[str, int] | None = None) -> None:
        if not array_api_compat.is_array_api_obj(like):
            raise InputError(f"the tokens come as an array or a tensor, not as {type(like).__name__}")
        self.xp: Any = array_api_compat.array_namespace(like)
        self.device = array_api_compat.device(like)
        self.on_torch = array_api_compat.is_torch_array(like)
        self.size = len(like)
        self.counts: MutableMapping[str, int] = {} if counts is None else counts
        floating = self.on_torch and bool(self.xp.isdtype(like.dtype, "real floating"))
        #: What floats of the run are: the tensor's own type, double precision otherwise.
        self.float = like.dtype if floating else self.xp.float64

    def count(self, what: str) -> None:
        """Note one step of this kind: gather, mask, scan, sort or segment."""
        self.counts[what] = self.counts.get(what, 0) + 1

    # Making ---------------------------------------------------------------------------------------

    def arange(self, size: int) -> Array:
        """0, 1, … size − 1."""
        return self.xp.arange(size, dtype=self.xp.int64, device=self.device)

    def full(self, size: int, value: float, dtype: Any = None) -> Array:
        """The same number, ``size`` times; whole unless said otherwise."""
        return self.xp.full((size,), value, dtype=dtype or self.xp.int64, device=self.device)

    def cast(self, array: Array, dtype: Any) -> Array:
        """The array in another type (itself where it is of that type)."""
        return self.xp.astype(array, dtype, copy=False)

    def whole(self, array: Array) -> Array:
        """The array as 64-bit whole numbers."""
        return self.cast(array, self.xp.int64)

    def detached(self, array: Array) -> Array:
        """The array without its gradient: orders and counts have none."""
        return array.detach() if self.on_torch else array

    # Asking (on a device each of these waits for it) ----------------------------------------------

    def any(self, mask: Array) -> bool:
        """Whether any holds."""
        return bool(self.xp.any(mask))

    def all(self, mask: Array) -> bool:
        """Whether all hold."""
        return bool(self.xp.all(mask))

    def largest(self, array: Array) -> int:
        """The greatest whole number; 0 of none."""
        return int(self.xp.max(array)) if array.shape[0] else 0

    # Moving ---------------------------------------------------------------------------------------

    def take(self, array: Array, index: Array) -> Array:
        """``array[index]``."""
        return self.xp.take(array, index, axis=0)

    def order(self, codes: Array) -> Array:
        """The stable order that sorts ``codes``."""
        self.count("sort")
        return self.xp.argsort(codes, stable=True)

    def search(self, ascending: Array, wanted: Array, side: str) -> Array:
        """Where each of ``wanted`` would go in a sorted array."""
        return self.whole(self.xp.searchsorted(ascending, wanted, side=side))

    def positions(self, mask: Array) -> Array:
        """The positions at which ``mask`` holds."""
        return self.whole(self.xp.nonzero(mask)[0])

    def table(self, size: int, at: Array, values: Array, missing: int = 0) -> Array:
        """A table of whole numbers with ``values`` in the places ``at``."""
        made = self.full(size, missing)
        made[at] = values
        return made

    def numbers_of(self, codes: Array, size: int) -> Array:
        """How often each of 0 … size − 1 occurs."""
        return self.whole(self.xp.bincount(codes, minlength=size))

    def padded(self, array: Array, value: float) -> Array:
        """One element more at the end, so that every boundary is a legal place."""
        return self.xp.concat([array, self.full(1, value, array.dtype)])

    # Adding and comparing -------------------------------------------------------------------------

    def sums_before(self, array: Array) -> Array:
        """Cumulative sums with a 0 in front: place i has the sum of the first i."""
        first = self.full(1, 0, array.dtype)
        return self.xp.concat([first, self.xp.cumulative_sum(array, dtype=array.dtype)])

    def greatest_before(self, array: Array, least: int) -> Array:
        """Running maxima of whole numbers, with ``least`` in front."""
        first = self.full(1, least)
        if self.on_torch:
            running = self.xp.cummax(array, 0).values if array.shape[0] else array
        else:
            running = np.maximum.accumulate(array)
        return self.xp.concat([first, running])

    def segment_sums(self, array: Array, starts: Array, stops: Array) -> Array:
        """The sum of each of the disjoint, non-empty segments, in ascending order."""
        if not self.on_torch:
            return np.add.reduceat(self.padded(array, 0), _interleaved(starts, stops))[::2]
        inside, segment = self._members(starts, stops)
        zeros = self.full(starts.shape[0], 0, array.dtype)
        return zeros.index_add(0, segment, self.take(array, inside))

    def segment_maxima(self, array: Array, starts: Array, stops: Array, least: int) -> Array:
        """The greatest whole number of each of the disjoint, non-empty segments."""
        if not self.on_torch:
            return np.maximum.reduceat(self.padded(array, least), _interleaved(starts, stops))[::2]
        inside, segment = self._members(starts, stops)
        lows = self.full(starts.shape[0], least)
        return lows.scatter_reduce(0, segment, self.take(array, inside), "amax")

    def _members(self, starts: Array, stops: Array) -> tuple[Array, Array]:
        """For every element of every segment: its place, and which segment it is in."""
        lengths = stops - starts
        segment = self.xp.repeat(self.arange(starts.shape[0]), lengths)
        skipped = starts - self.sums_before(lengths)[:-1]
        return self.arange(segment.shape[0]) + self.take(skipped, segment), segment


def _interleaved(starts: Array, stops: Array) -> Array:
    """start, stop, start, stop …: every second stretch that ``reduceat`` makes of it is a segment."""
    return np.stack([starts, stops], axis=1).ravel()
