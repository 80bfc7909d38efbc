"""Provide one interface to NumPy arrays and torch tensors, for the fast executor and for heads.

:class:`Arrays` combines a library (with the names of the array API), a device and a floating-point
type. The class adds operations that the array API lacks: sums and maxima over segments, running maxima,
and strided views. The functions at module level examine, convert or combine arrays of either library.
This module uses torch only if torch has already been imported. Most operations on tensors propagate
gradients wherever PyTorch does.

>>> arrays = Arrays(np.zeros(3))
>>> arrays.segment_sums(np.array([1.0, 2.0, 4.0, np.inf]), np.array([0, 2]), np.array([2, 3]))
array([3., 4.])
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, TypeAlias

import array_api_compat
import numpy as np
from numpy.typing import NDArray

from locum.errors import InputError

#: A NumPy array or a torch tensor.
Array: TypeAlias = Any

#: Whether NumPy defines all names of the array API, which is true since version 2.1.
_NUMPY_IS_ENOUGH = hasattr(np, "cumulative_sum")


def namespace(array: Array) -> Any:
    """Return the library of an array, with the names of the array API.

    NumPy is used directly if possible, because wrapping it would import all of NumPy, including f2py.

    >>> namespace(np.zeros(3)).concat([[1], [2]])
    array([1, 2])
    """
    if _NUMPY_IS_ENOUGH and isinstance(array, np.ndarray | np.generic):
        return np
    return array_api_compat.array_namespace(array)


def is_tensor(value: object) -> bool:
    """Return whether a value is a torch tensor, without importing torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def is_floating(array: Any) -> bool:
    """Return whether an array or a tensor contains floating-point numbers."""
    return bool(array.dtype.is_floating_point if is_tensor(array) else array.dtype.kind == "f")


def floating(array: Any) -> Any:
    """Return an array or a tensor in floating point; other types are converted to float64."""
    if is_floating(array):
        return array
    return array.double() if is_tensor(array) else array.astype(np.float64)


def is_finite(array: Any) -> bool:
    """Return whether an array or a tensor contains no infinity and no NaN."""
    return bool(array.isfinite().all() if is_tensor(array) else np.isfinite(array).all())


def largest(array: Any) -> float:
    """Return the largest absolute value in an array, or infinity if the array contains a NaN.

    The result is 0 for an empty array. It is also correct for the smallest int64.
    """
    if not math.prod(array.shape):
        return 0.0
    if is_floating(array):
        greatest = float(abs(array).max())
        return math.inf if math.isnan(greatest) else greatest
    return max(-int(array.min()), int(array.max()))


def is_readable(tensor: Array) -> bool:
    """Return whether the numbers in a tensor can be read.

    The numbers cannot be read if :func:`is_traced` is true, or while a CUDA graph is captured.
    """
    torch: Any = sys.modules["torch"]
    recorded = tensor.is_cuda and torch.cuda.is_current_stream_capturing()
    return not (recorded or is_traced(tensor))


def is_traced(tensor: Array) -> bool:
    """Return whether a tensor is transformed by ``torch.func`` or of a subclass other than
    ``Parameter``, or whether ``torch.compile`` or ``torch.export`` is running.

    The numbers of such a tensor may not be known yet.
    """
    torch: Any = sys.modules["torch"]
    kind = type(tensor)  # FakeTensors and similar tensors have other keys
    if kind is not torch.Tensor and kind is not torch.nn.Parameter:
        return True
    mapped = torch._C._functorch.is_functorch_wrapped_tensor(tensor)
    return bool(mapped or torch.compiler.is_compiling())


@contextmanager
def lasting() -> Iterator[None]:
    """Enter a context: tensors created in it remain valid after inference mode and ``torch.func``."""
    torch: Any = sys.modules["torch"]
    with torch.inference_mode(False):
        if torch._C._functorch.peek_interpreter_stack() is None:
            yield
            return
        from torch._functorch.pyfunctorch import temporarily_clear_interpreter_stack

        with temporarily_clear_interpreter_stack():
            yield


def numpy_of(array: Array) -> NDArray[np.float64]:
    """Return the numbers of an array or a tensor as a NumPy array of float64."""
    if is_tensor(array):
        array = array.detach().cpu().double().numpy()
    return np.asarray(array, dtype=np.float64)


def like(array: Array, model: Array) -> Array:
    """Convert an array or a tensor to the kind of array that ``model`` is.

    If ``model`` is a tensor, the result is a tensor of its dtype on its device. Otherwise the result is
    a NumPy array of float64.
    """
    if not is_tensor(model):
        return numpy_of(array)
    torch: Any = sys.modules["torch"]
    if is_tensor(array):
        return array.to(dtype=model.dtype, device=model.device)
    tensor = torch.from_numpy(np.ascontiguousarray(numpy_of(array))).to(model.dtype)
    moved = tensor.to(model.device)
    if moved is not tensor and tensor.numel() == 1 and is_readable(moved):
        moved.known_to_the_host = (_version(moved), tensor.item())  # reading it would wait for the GPU
    return moved


def known_number(tensor: Array) -> float | None:
    """Return the number in a one-element tensor, or None if reading it requires synchronisation with a
    GPU.

    The result is also None if the tensor requires a gradient or is traced.
    """
    if tensor.requires_grad or is_traced(tensor):
        return None
    if tensor.device.type == "cpu":
        return float(tensor.item())
    version, number = getattr(tensor, "known_to_the_host", (None, None))
    return number if version == _version(tensor) else None


def _version(tensor: Array) -> int:
    """Return how often a tensor was written to, or 0 for an inference tensor, which does not count."""
    return 0 if tensor.is_inference() else int(tensor._version)


def flat(parts: Sequence[Array]) -> Array:
    """Concatenate the entries of all parts, row by row, to one array."""
    if not is_tensor(parts[0]):
        return np.concatenate([part.ravel() for part in parts])
    torch: Any = sys.modules["torch"]
    return torch.cat([part.reshape(-1) for part in parts])


def below(upper: Array, lower: Array) -> Array:
    """Stack two matrices of the same kind and width vertically."""
    if not is_tensor(upper):
        return np.vstack([upper, lower])
    torch: Any = sys.modules["torch"]
    return torch.vstack([upper, lower])


def erf(x: Array) -> Array:
    """Return the error function, which NumPy lacks, in the type of ``x``.

    On a CPU, the function is computed in float64 and rounded, since the float32 function of some builds
    of PyTorch has absolute errors of 5e-7.

    >>> erf(np.array([0.0, 1.0])).round(4).tolist()
    [0.0, 0.8427]
    """
    if is_tensor(x):
        return x.double().erf().to(x.dtype) if x.device.type == "cpu" else x.erf()
    x = np.asarray(x)
    return np.fromiter(map(math.erf, x.ravel().tolist()), x.dtype, x.size).reshape(x.shape)


class Arrays:
    """A library on a device, a floating-point type, and the number of positions of one run.

    ``like`` is an array of the required kind. Floats have the type named ``dtype``. By default, this is
    the type of ``like``, or float64 if ``like`` does not contain floats. ``counts`` records how often
    each costly operation was used.
    """

    def __init__(
        self,
        like: Array,
        dtype: str | None = None,
        counts: MutableMapping[str, int] | None = None,
        ieee: bool = False,
    ) -> None:
        #: Whether undefined operations return infinities and NaN instead of raising an error.
        self.ieee = ieee
        self.on_torch = is_tensor(like)
        if not (
            self.on_torch or isinstance(like, np.ndarray) or array_api_compat.is_array_api_obj(like)
        ):
            raise InputError(f"expected an array or a tensor, got {type(like).__name__}")
        self.xp: Any = namespace(like)
        self.device = array_api_compat.device(like)
        self.on_gpu = self.on_torch and like.device.type != "cpu"
        if dtype is None:
            own = str(like.dtype).removeprefix("torch.")
            dtype = own if own.startswith(("float", "bfloat")) else "float64"
        self.float_name = dtype
        self.float = getattr(self.xp, self.float_name, None)
        self.int = self.xp.int64
        self.size = like.shape[0] if like.ndim else 1
        self.counts: MutableMapping[str, int] = {} if counts is None else counts

    def count(self, what: str) -> None:
        """Increment the counter of an operation, such as "gather", "scan" or "sort"."""
        self.counts[what] = self.counts.get(what, 0) + 1

    def wait(self) -> None:
        """Wait until the GPU has finished."""
        if self.on_gpu:
            self.xp.cuda.synchronize(self.device)

    # Types ----------------------------------------------------------------------------------------

    def is_bool(self, array: Array) -> bool:
        """Return whether an array contains booleans."""
        return bool(self.xp.isdtype(array.dtype, "bool"))

    def is_int(self, array: Array) -> bool:
        """Return whether an array contains integers or booleans."""
        return bool(self.xp.isdtype(array.dtype, ("bool", "integral")))

    def cast(self, array: Array, dtype: Any) -> Array:
        """Return the array in another type, or the array itself if it has that type."""
        return array if array.dtype == dtype else self.xp.astype(array, dtype, copy=False)

    def to_int(self, array: Array) -> Array:
        """Return the array as int64."""
        return self.cast(array, self.int)

    def to_float(self, array: Array) -> Array:
        """Return the array in the floating-point type of the run."""
        return self.cast(array, self.float)

    # Creating and moving --------------------------------------------------------------------------

    def arange(self, size: int) -> Array:
        """Return the integers 0, 1, …, size − 1 as an array."""
        return self.xp.arange(size, dtype=self.int, device=self.device)

    @cached_property
    def places(self) -> Array:
        """The positions 0, 1, …, size − 1; every access returns the same array object."""
        return self.arange(self.size)

    @cached_property
    def after(self) -> Array:
        """The positions 1, 2, …, size; every access returns the same array object."""
        return self.places + 1

    def same(self, value: Any, dtype: Any = None) -> Array:
        """Return an array with the same number at each position.

        The number is stored once, so do not write to the array.
        """
        return self.xp.broadcast_to(self.full(1, value, dtype), (self.size,))

    def uniform(self, array: Array) -> bool:
        """Return whether an array is one-dimensional, not empty, and has stride 0.

        Such an array stores one number for all positions. Arrays of two or more positions from
        :meth:`same` are uniform.
        """
        strides = array.stride() if self.on_torch else array.strides
        return bool(strides == (0,)) and int(array.shape[0]) > 0

    def mapped(self, function: Callable[[Array], Array], array: Array) -> Array:
        """Apply an elementwise function to an array; for a uniform array, the function is computed
        once.
        """
        if self.uniform(array):
            return self.xp.broadcast_to(function(array[:1]), array.shape)
        return function(array)

    def is_same(self, array: Array, value: int) -> bool:
        """Return whether an array of integers is known to contain only ``value``."""
        return self.uniform(array) and int(array[0]) == value

    def full(self, shape: int | tuple[int, ...], value: Any, dtype: Any = None) -> Array:
        """Return an array that contains ``value`` everywhere, by default as int64.

        Floats beyond the range of a narrow dtype become infinite.
        """
        if self.on_torch and isinstance(value, float) and dtype is not None and dtype.is_floating_point:
            value = self.xp.asarray(value, dtype=self.xp.float64).to(dtype).item()
        return self.xp.full(shape, value, dtype=dtype or self.int, device=self.device)

    def put(self, array: np.ndarray[Any, Any], as_given: bool = False) -> Array:
        """Return a NumPy array on this device; floats are converted to the type of the run unless
        ``as_given``.
        """
        moved: Array = array
        if self.on_torch:
            contiguous = np.ascontiguousarray(array).reshape(
                array.shape
            )  # ascontiguousarray makes 0-d arrays 1-d
            if not contiguous.flags.writeable:  # torch cannot express read-only memory
                contiguous = contiguous.copy()
            moved = self.xp.from_numpy(contiguous).to(self.device)
        return self.to_float(moved) if array.dtype.kind == "f" and not as_given else moved

    def fetch(self, array: Array) -> np.ndarray[Any, Any]:
        """Return an array on this device as a NumPy array."""
        return array.cpu().numpy() if self.on_torch else array  # type: ignore[no-any-return]

    def copied(self, array: Array) -> Array:
        """Return a copy of an array, which shares no memory with it."""
        return array.contiguous().clone() if self.on_torch else np.array(array)

    def contiguous(self, array: Array) -> Array:
        """Return an array in row-major order, or the array itself if it is in this order."""
        return array.contiguous() if self.on_torch else np.ascontiguousarray(array)

    def detached(self, array: Array) -> Array:
        """Return an array without gradient, for sorting and counting."""
        return array.detach() if self.on_torch else array

    # Tests and reductions (they may synchronise with a GPU) ------------------------------------------

    def any(self, mask: Array) -> bool:
        """Return whether any element of a mask is true."""
        return bool(mask) if isinstance(mask, bool) else bool(self.xp.any(mask))

    def all(self, mask: Array) -> bool:
        """Return whether all elements of a mask are true."""
        return bool(mask) if isinstance(mask, bool) else bool(self.xp.all(mask))

    def largest(self, array: Array) -> int:
        """Return the maximum of an array of integers, or 0 for an empty array."""
        if self.uniform(array):
            return int(array[0])
        return int(self.xp.max(array)) if array.shape[0] else 0

    def any_below(self, low: Array, high: Array) -> bool:
        """Return whether ``low`` is less than ``high`` at some position."""
        if self.uniform(low) and self.uniform(high):
            return bool(low[0] < high[0])
        if not self.on_torch and any(low[n] < high[n] for n in self.samples):
            return True  # the common case, without reading all positions
        return self.any(low < high)

    @property
    def samples(self) -> tuple[int, int, int]:
        """The first, middle and last position, which are tested before all others."""
        return 0, self.size // 2, self.size - 1

    def range_of(self, array: Array) -> tuple[int, int]:
        """Return the minimum and maximum of an array of integers, or (0, 0) for an empty array."""
        if 0 in array.shape:
            return 0, 0
        integers = self.to_int(array)
        return int(self.xp.min(integers)), int(self.xp.max(integers))

    # Gathering and assembling ------------------------------------------------------------

    def take(self, array: Array, index: Array) -> Array:
        """Return ``array[index]``, as a view if the index is known to be a range."""
        if index is self.__dict__.get("places"):
            return array[: self.size]
        if index is self.__dict__.get("after"):
            return array[1 : self.size + 1]
        return self.xp.take(array, index, axis=0)

    def order(self, codes: Array, size: int) -> Array:
        """Return the stable order that sorts ``codes``, which are integers in 0 … size − 1.

        >>> Arrays(np.zeros(4)).order(np.array([2, 0, 2, 1]), 3)
        array([1, 3, 0, 2])
        """
        self.count("sort")
        if self.on_torch or size > 2**32:
            return self.xp.argsort(codes, stable=True)
        if size <= 2**16:  # NumPy has a radix sort for such integers
            return np.argsort(codes.astype(np.uint8 if size <= 2**8 else np.uint16), kind="stable")
        order = np.argsort(codes.astype(np.uint16), kind="stable")  # the lower 16 bits, then the upper
        upper = np.take(codes >> 16, order).astype(np.uint16)
        return np.take(order, np.argsort(upper, kind="stable"))

    def search(self, ascending: Array, values: Array, side: str) -> Array:
        """Return the index at which each of ``values`` would be inserted into a sorted array."""
        return self.to_int(self.xp.searchsorted(ascending, values, side=side))

    def positions(self, mask: Array) -> Array:
        """Return the positions at which ``mask`` is true."""
        return self.to_int(self.xp.nonzero(mask)[0])

    def table(self, size: int, at: Array, values: Array, missing: int = 0) -> Array:
        """Return an array of ``size`` integers: ``values`` at the indices ``at``, and ``missing``
        elsewhere.
        """
        array = self.full(size, missing)
        array[at] = values
        return array

    def numbers_of(self, codes: Array, size: int) -> Array:
        """Return how often each of the integers 0 … size − 1 occurs in ``codes``."""
        return self.to_int(self.xp.bincount(codes, minlength=size))

    def padded(self, array: Array, value: float) -> Array:
        """Append one element to an array, so that every boundary is a valid index."""
        return self.xp.concat([array, self.full(1, value, array.dtype)])

    def strided(self, array: Array, shape: Sequence[int], strides: Sequence[int], offset: int) -> Array:
        """Return a view of a contiguous array: the elements at offset + Σ index · stride in row-major
        order.
        """
        if self.on_torch:
            return array.as_strided(shape, strides, array.storage_offset() + offset)
        row = array.reshape(-1)[offset:]
        apart = tuple(stride * row.itemsize for stride in strides)
        return np.lib.stride_tricks.as_strided(row, shape, apart)

    def where(self, condition: Any, a: Any, b: Any) -> Array:
        """Return ``a`` where the condition holds, else ``b``."""
        if not self.on_torch:
            return self.xp.where(condition, a, b)
        torch: Any = sys.modules[
            "torch"
        ]  # with the array API, a single float64 would widen a whole array
        return torch.where(condition, a, b)

    # Adding and comparing -------------------------------------------------------------------------

    def sums_before(self, array: Array) -> Array:
        """Return cumulative sums after a leading 0: element i is the sum of the first i elements."""
        first = self.full(1, 0, array.dtype)
        return self.xp.concat([first, self.xp.cumulative_sum(array, dtype=array.dtype)])

    def greatest_before(self, array: Array, least: int) -> Array:
        """Return the running maxima of an array of integers, after a leading ``least``."""
        first = self.full(1, least)
        if self.on_torch:
            running = self.xp.cummax(array, 0).values if array.shape[0] else array
        else:
            running = np.maximum.accumulate(array)
        return self.xp.concat([first, running])

    def segment_sums(self, array: Array, starts: Array, stops: Array) -> Array:
        """Return the sum of each segment of an array.

        The segments are disjoint, non-empty and in ascending order.
        """
        if not self.on_torch:
            return np.add.reduceat(self.padded(array, 0), _interleaved(starts, stops))[::2]
        inside, segment = self._members(starts, stops)
        zeros = self.full(starts.shape[0], 0, array.dtype)
        return zeros.index_add(0, segment, self.take(array, inside))

    def segment_maxima(self, array: Array, starts: Array, stops: Array, least: int) -> Array:
        """Return the maximum of each segment of an array of integers.

        The segments are disjoint, non-empty and in ascending order.
        """
        if not self.on_torch:
            return np.maximum.reduceat(self.padded(array, least), _interleaved(starts, stops))[::2]
        inside, segment = self._members(starts, stops)
        lows = self.full(starts.shape[0], least)
        return lows.scatter_reduce(0, segment, self.take(array, inside), "amax")

    def _members(self, starts: Array, stops: Array) -> tuple[Array, Array]:
        """Return the index of every element of every segment, and the index of its segment."""
        lengths = stops - starts
        segment = self.xp.repeat(self.arange(starts.shape[0]), lengths)
        skipped = starts - self.sums_before(lengths)[:-1]
        return self.arange(segment.shape[0]) + self.take(skipped, segment), segment

    def row_maxima(self, scores: Array) -> tuple[Array, Array]:
        """Return the maximum of each row, and the column of this maximum."""
        if self.on_torch:
            greatest, where = scores.max(dim=1)
            return greatest, where
        where = np.argmax(scores, axis=1)
        return np.take_along_axis(scores, where[:, None], axis=1)[:, 0], where

    def row_counts(self, mask: Array) -> Array:
        """Return the number of true elements in each row of a mask."""
        return mask.sum(dim=1) if self.on_torch else np.count_nonzero(mask, axis=1)

    def add_at(self, size: int, index: Array, values: Array) -> Array:
        """Return an array of zeros to which each value was added at its index."""
        total = self.full(size, 0, values.dtype)
        if self.on_torch:
            return total.index_add_(0, index, values)
        np.add.at(total, index, values)
        return total


def _interleaved(starts: Array, stops: Array) -> Array:
    """Return start, stop, start, stop …, so that every second range of ``reduceat`` is a segment."""
    return np.stack([starts, stops], axis=1).ravel()
