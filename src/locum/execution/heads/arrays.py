"""Arrays of NumPy and of torch behind one namespace, with the few things the array API lacks.

A :class:`Backend` is made from the tokens: their library, their device, the type of real numbers. It
comes with two further types: the one scores are computed in (bfloat16 on a GPU, where products of
small whole numbers are exact and twice as fast to write down; float32 elsewhere), and int64 for whole
numbers. torch is never imported here: it is present when a tensor came in, and not otherwise.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
from array_api_compat import array_namespace, is_torch_array

#: An array of NumPy or a tensor of torch.
Array: TypeAlias = Any

#: bfloat16 holds every whole number up to here.
LARGEST_IN_BFLOAT16 = 256
#: Memory for one chunk of scores and what is made of it, in bytes: on a GPU, and elsewhere.
MEMORY_ON_GPU = 4 * 2**30
MEMORY = 2**26


class Backend:
    """A library of arrays on a device, and a type of real numbers."""

    def __init__(self, like: Array, dtype: str | None = None) -> None:
        self.xp = array_namespace(like)
        self.torch = is_torch_array(like)
        self.device = like.device if self.torch else None
        self.on_gpu = self.torch and like.device.type != "cpu"
        given = str(like.dtype).removeprefix("torch.")
        self.real_name = dtype or (given if given.startswith(("float", "bfloat")) else "float64")
        self.real = getattr(self.xp, self.real_name, None)
        self.int64 = self.xp.int64
        self.memory = MEMORY_ON_GPU if self.on_gpu else MEMORY

    # Types ---------------------------------------------------------------------------------------

    def is_bool(self, array: Array) -> bool:
        """Whether it holds truth values."""
        return bool(self.xp.isdtype(array.dtype, "bool"))

    def is_whole(self, array: Array) -> bool:
        """Whether it holds whole numbers or truth values."""
        return bool(self.xp.isdtype(array.dtype, ("bool", "integral")))

    def to_real(self, array: Array) -> Array:
        """As real numbers."""
        return self.xp.astype(array, self.real, copy=False)

    def to_int(self, array: Array) -> Array:
        """As int64."""
        return self.xp.astype(array, self.int64, copy=False)

    def put(self, array: np.ndarray[Any, Any]) -> Array:
        """An array of the host here: floats as real numbers of this backend."""
        if array.dtype.kind == "f":
            return self.to_real(self._put(array))
        return self._put(array)

    def _put(self, array: np.ndarray[Any, Any]) -> Array:
        if not self.torch:
            return array
        contiguous = np.ascontiguousarray(array).reshape(array.shape)  # ascontiguous makes 0-d 1-d
        if not contiguous.flags.writeable:  # torch cannot express read-only memory
            contiguous = contiguous.copy()
        return self.xp.from_numpy(contiguous).to(self.device)

    def fetch(self, array: Array) -> np.ndarray[Any, Any]:
        """An array of this backend on the host."""
        return array.cpu().numpy() if self.torch else array  # type: ignore[no-any-return]

    def full(self, shape: tuple[int, ...], value: Any, dtype: Any) -> Array:
        """The same number everywhere."""
        return self.xp.full(shape, value, dtype=dtype, device=self.device)

    def arange(self, stop: int) -> Array:
        """0, 1, …, stop − 1."""
        return self.xp.arange(stop, dtype=self.int64, device=self.device)

    def wait(self) -> None:
        """Return when all that was asked of a GPU is done."""
        if self.on_gpu:
            self.xp.cuda.synchronize(self.device)

    # What the array API lacks ------------------------------------------------------------------------

    def score_type(self, largest: int) -> Any:
        """The type in which whole numbers up to ``largest`` are scored exactly."""
        if self.on_gpu and largest <= LARGEST_IN_BFLOAT16:
            return self.xp.bfloat16
        return self.xp.float32

    def row_maxima(self, scores: Array) -> tuple[Array, Array]:
        """The greatest score of each row, and where it is: one pass."""
        if self.torch:
            greatest, where = scores.max(dim=1)
            return greatest, where
        where = np.argmax(scores, axis=1)
        return np.take_along_axis(scores, where[:, None], axis=1)[:, 0], where

    def counts(self, mask: Array) -> Array:
        """How many are true in each row."""
        return mask.sum(dim=1) if self.torch else np.count_nonzero(mask, axis=1)

    def add_at(self, size: int, index: Array, values: Array) -> Array:
        """An array of zeros to which each value was added at its index."""
        total = self.full((size,), 0, values.dtype)
        if self.torch:
            return total.index_add_(0, index, values)
        np.add.at(total, index, values)
        return total

    def error_function(self, array: Array) -> Array:
        """erf of real numbers."""
        if self.torch:
            return self.xp.erf(array)
        return np.vectorize(math.erf, otypes=[array.dtype])(array)


def host() -> Backend:
    """NumPy with float64: where positions and everything that depends on them alone is computed."""
    return Backend(np.zeros(0))
