"""Tensors of numbers that depend on positions and shapes alone."""

from __future__ import annotations

from typing import Any

from locum.constructions.tensor import Layout, Tensor
from locum.language.python import indices
from locum.torch.numbers import convert, is_float, rounded, scalar
from locum.torch.table import operation


@operation("creation", "full", "full_like", "new_full")
def full(out: Layout, shape: Any, *values: Any, **options: Any) -> Tensor:
    """Return the same number everywhere."""
    return out.result(scalar(values[-1], out.dtype))


@operation("creation", "zeros", "zeros_like", "new_zeros", "_efficientzerotensor")
def zeros(out: Layout, *arguments: Any, **options: Any) -> Tensor:
    """Return 0 everywhere."""
    return out.result(scalar(0, out.dtype))


@operation(
    "creation",
    "empty.memory_format",
    "empty_like",
    "empty_permuted",
    "empty_strided",
    "new_empty",
    "new_empty_strided",
)
def empty(out: Layout, *arguments: Any, **options: Any) -> Tensor:
    """Return 0 everywhere; PyTorch returns any numbers."""
    return out.result(scalar(0, out.dtype))


@operation("creation", "ones", "ones_like", "new_ones")
def ones(out: Layout, *arguments: Any, **options: Any) -> Tensor:
    """Return 1 everywhere."""
    return out.result(scalar(1, out.dtype))


@operation("creation", "scalar_tensor")
def scalar_tensor(out: Layout, value: Any, **options: Any) -> Tensor:
    """Return a number as a tensor without dimensions."""
    return out.result(scalar(value, out.dtype))


@operation("creation", "arange.start_step")
def arange(out: Layout, start: Any, end: Any, step: Any = 1, **options: Any) -> Tensor:
    """Return start, start + step, …; floats are rounded once."""
    dtype = "float64" if is_float(out.dtype) else out.dtype
    value = scalar(start, dtype) + convert(indices, "int64", dtype) * scalar(step, dtype)
    return out.result(rounded(value, out.dtype))
