"""Convert and check matrices given by users: NumPy arrays, lists or PyTorch tensors.

PyTorch tensors remain tensors on their device, and integers in them become float64. All other values
become NumPy arrays of float64. This module does not import torch.
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
    """Return ``value`` as a finite matrix with this shape, or raise an error that contains ``name``.

    None in ``shape`` allows any size except 0. Arrays that are stored must be copied, so that later
    changes of the user's array have no effect. Tensors of floats are never copied.
    """
    array = real_numbers(value, name, copy=copy)
    if 0 in array.shape:
        raise InputError(f"{name}: expected one entry or more, got the shape {_shape(array.shape)}")
    if array.ndim != 2:
        raise InputError(f"{name}: expected a matrix, got the shape {_shape(array.shape)}")
    _require_shape(array, name, shape)
    return array


def row(value: Any, name: str, columns: int) -> Array:
    """Return ``value``, a vector or a matrix with one row, as a 1×columns matrix."""
    array = real_numbers(value, name)
    if array.ndim == 1:
        array = array.reshape(1, -1)
    if array.ndim != 2:
        raise InputError(f"{name}: expected a vector, got the shape {_shape(array.shape)}")
    _require_shape(array, name, (1, columns))
    return array


def real_numbers(value: Any, name: str, *, copy: bool = True) -> Array:
    """Return ``value`` as an array or tensor of finite real numbers, or raise an error that contains
    ``name``.

    Tensors without readable numbers, such as traced tensors, are not tested for finite entries.
    """
    if is_tensor(value):
        return _tensor(value, name)
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise InputError(
            f"{name}: expected an array without a mask, got a masked array; try {name}.filled(0)"
        )
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
    """Convert ``value`` to an array for computations; tensors of half precision become float32.

    In float16, squares of deviations can overflow and an ε of 1e-12 becomes 0. PyTorch's norms and
    softmaxes also accumulate in float32. Results are rounded once, by :func:`as_given`.
    """
    array = real_numbers(value, name, copy=False)
    return array.float() if is_half(array) else array


def stacked_rows(matrices: Sequence[Array]) -> Array:
    """Concatenate matrices of the same type and width vertically; a single matrix is returned without a
    copy.
    """
    if len(matrices) == 1:
        return matrices[0]
    if not is_tensor(matrices[0]):
        return np.concatenate(matrices)
    torch: Any = sys.modules["torch"]
    return torch.cat(list(matrices))


def contiguous(array: Array) -> Array:
    """Return an array in row-major order, which is the order of tokens, so that later runs need not
    copy it.
    """
    return array.contiguous() if is_tensor(array) else np.ascontiguousarray(array)


def is_half(array: Array) -> bool:
    """Return whether an array is a PyTorch tensor of type float16 or bfloat16."""
    return is_tensor(array) and array.dtype.is_floating_point and array.dtype.itemsize == 2


def as_given(result: Array, original: Any) -> Array:
    """Round ``result`` to the type of ``original`` if that is a tensor of float16 or bfloat16."""
    return result.to(original.dtype) if is_half(original) else result


def require_readable(tensor: Array, name: str) -> None:
    """Raise an error for a tensor that is sparse, on the meta device, complex, quantised, or of an
    8-bit floating-point type.
    """
    torch: Any = sys.modules["torch"]
    dtype, dense = tensor.dtype, tensor.layout is torch.strided
    if dense and dtype.is_floating_point and dtype.itemsize > 1 and not tensor.is_meta:
        return
    if not dense:
        raise InputError(f"{name}: expected a dense tensor, got a sparse one; try .to_dense()")
    if tensor.is_meta:
        raise InputError(f"{name}: expected a tensor with data, got one on the meta device")
    if tensor.is_complex() or tensor.is_quantized:
        raise InputError(f"{name}: expected real numbers, got the type {tensor.dtype}")
    if dtype.is_floating_point:
        raise InputError(f"{name}: expected a type with arithmetic, got {tensor.dtype}; try .float()")


def _tensor(value: Array, name: str) -> Array:
    require_readable(value, name)
    tensor = value if value.dtype.is_floating_point else value.double()
    if not is_readable(tensor):  # traced, compiled or mapped: there are no numbers yet
        return tensor
    # A finite sum has only finite terms, and is faster to test than each of them.
    if not (math.isfinite(tensor.sum().item()) or bool(tensor.isfinite().all())):
        raise _not_finite(tensor, name)
    return tensor


def _not_finite(array: Array, name: str) -> InputError:
    """Return the error for the first entry that is not a finite number."""
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
