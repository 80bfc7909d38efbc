"""Matrices as users hand them over: NumPy arrays, lists, or torch tensors; checked here, once.

What comes in as a torch tensor stays one (its type and device are those of the answer); everything
else becomes a NumPy array of floats. torch is never imported: only a tensor that is already there
is asked for anything.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from locum.errors import InputError
from locum.execution.arrays import Array, is_readable, is_tensor, numpy_of


def matrix(
    value: Any,
    name: str,
    shape: tuple[int | None, int | None] = (None, None),
    *,
    copy: bool = True,
) -> Array:
    """Return ``value`` as a finite matrix of this shape (None: any), or raise an error that names it.

    What is kept must be a copy, or it changes with the user's array; what is only read need not be.
    """
    array = real_numbers(value, name, copy=copy)
    if 0 in array.shape:
        raise InputError(f"{name}: expected one entry or more, got the shape {_shape(array.shape)}")
    if array.ndim != 2:
        raise InputError(f"{name}: expected a matrix, got the shape {_shape(array.shape)}")
    _require_shape(array, name, shape)
    return array


def row(value: Any, name: str, columns: int) -> Array:
    """Return ``value`` as a 1×columns matrix: a bias or a gain, given as a vector or as one row."""
    array = real_numbers(value, name)
    if array.ndim == 1:
        array = array.reshape(1, -1)
    if array.ndim != 2:
        raise InputError(f"{name}: expected a vector, got the shape {_shape(array.shape)}")
    _require_shape(array, name, (1, columns))
    return array


def real_numbers(value: Any, name: str, *, copy: bool = True) -> Array:
    """Read ``value`` as an array of finite real numbers, of any shape."""
    if is_tensor(value):
        return _tensor(value, name)
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise InputError(f"{name} is a masked array, whose mask means nothing here: fill it first")
    try:
        array = np.asarray(value)
    except ValueError:
        raise InputError(f"{name} is ragged: its rows have different lengths") from None
    if array.dtype.kind not in "biuf":
        raise InputError(f"{name}: expected real numbers, got the type {array.dtype}")
    array = array.astype(np.float64, copy=copy)
    if not np.isfinite(array).all():
        raise _not_finite(array, name)
    return array


def computable(value: Any, name: str) -> Array:
    """Read ``value`` as numbers to compute with: half types in single precision.

    Squares of deviations overflow in float16, and an ε of 1e-12 is 0 there; torch's own norms and
    softmaxes accumulate in float32, too. Results are rounded once (:func:`as_given`).
    """
    array = real_numbers(value, name, copy=False)
    return array.float() if is_half(array) else array


def stacked_rows(matrices: Sequence[Array]) -> Array:
    """Return matrices of one kind and width, one below the other; one alone is not copied."""
    if len(matrices) == 1:
        return matrices[0]
    if not is_tensor(matrices[0]):
        return np.concatenate(matrices)
    torch: Any = sys.modules["torch"]
    return torch.cat(list(matrices))


def contiguous(array: Array) -> Array:
    """Lay an array out row by row, as tokens lie: else every run would copy it."""
    return array.contiguous() if is_tensor(array) else np.ascontiguousarray(array)


def is_half(array: Array) -> bool:
    """Return whether an array is a tensor of float16 or bfloat16."""
    return is_tensor(array) and array.dtype.is_floating_point and array.dtype.itemsize == 2


def as_given(result: Array, original: Any) -> Array:
    """Round a result to the half type that was given, if it was one."""
    return result.to(original.dtype) if is_half(original) else result


def require_readable(tensor: Array, name: str) -> None:
    """Refuse a tensor whose numbers cannot be read as they are."""
    torch: Any = sys.modules["torch"]
    dtype, dense = tensor.dtype, tensor.layout is torch.strided
    if dense and dtype.is_floating_point and dtype.itemsize > 1 and not tensor.is_meta:
        return
    if not dense:
        raise InputError(f"{name} is a sparse tensor: expected a dense one; try .to_dense()")
    if tensor.is_meta:
        raise InputError(f"{name} is on the meta device: it has a shape, but no numbers")
    if tensor.is_complex() or tensor.is_quantized:
        raise InputError(f"{name}: expected real numbers, got the type {tensor.dtype}")
    if dtype.is_floating_point:
        raise InputError(f"{name} is of type {tensor.dtype}, which has no arithmetic: try .float()")


def _tensor(value: Array, name: str) -> Array:
    require_readable(value, name)
    tensor = value if value.dtype.is_floating_point else value.double()
    if not is_readable(tensor):  # traced, compiled or mapped: there are no numbers yet
        return tensor
    # A finite sum has finite terms only, and is quicker than a look at each of them.
    if not (math.isfinite(tensor.sum().item()) or bool(tensor.isfinite().all())):
        raise _not_finite(tensor, name)
    return tensor


def _not_finite(array: Array, name: str) -> InputError:
    """Name the first entry that is not a finite number."""
    entries = numpy_of(array)
    index = np.unravel_index(int(np.flatnonzero(~np.isfinite(entries.ravel()))[0]), entries.shape)
    place = ", ".join(str(int(i)) for i in index)
    return InputError(f"{name} has {entries[index]} at [{place}]: only finite numbers can be simulated")


def _require_shape(array: Array, name: str, shape: tuple[int | None, int | None]) -> None:
    actual = tuple(array.shape)
    if any(want is not None and want != size for want, size in zip(shape, actual, strict=True)):
        rows, columns = shape
        expected = f"{rows}×{columns}"
        if rows is None or columns is None:
            expected = f"{columns} columns" if rows is None else f"{rows} rows"
        raise InputError(f"{name}: expected {expected}, got {_shape(actual)}")


def _shape(shape: Sequence[int]) -> str:
    return "×".join(map(str, shape)) or "that of a single number"
