"""Tensors of numbers that depend on positions and shapes alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from locum.constructions.tensor import Layout, Tensor
from locum.language.python import indices
from locum.torch.numbers import convert, is_float, rounded, scalar
from locum.torch.table import operation


@operation("creation", "full", "full_like", "new_full")
def full(out: Layout, *arguments: Any, **options: Any) -> Tensor:
    """Return the same number everywhere."""
    return out.result(scalar(arguments[-1], out.dtype))


@operation("creation", "scalar_tensor")
def scalar_tensor(out: Layout, value: Any, **options: Any) -> Tensor:
    """Return a number as a tensor without dimensions."""
    return out.result(scalar(value, out.dtype))


def _filled(number: int, doc: str) -> Callable[..., Tensor]:
    def construct(out: Layout, *arguments: Any, **options: Any) -> Tensor:
        return out.result(scalar(number, out.dtype))

    construct.__doc__ = doc
    return construct


operation("creation", "ones", "ones_like", "new_ones")(_filled(1, "Return 1 everywhere."))
operation("creation", "zeros", "zeros_like", "new_zeros")(_filled(0, "Return 0 everywhere."))
operation(
    "creation",
    *("empty.memory_format", "empty_like", "empty_strided", "empty_permuted"),
    *("new_empty", "new_empty_strided"),
)(_filled(0, "Return 0 everywhere; PyTorch leaves the numbers undefined."))


@operation("creation", "arange.start_step")
def arange(out: Layout, start: Any, end: Any, step: Any = 1, **options: Any) -> Tensor:
    """Return start, start + step, …, of which floats are rounded once."""
    dtype = "float64" if is_float(out.dtype) else out.dtype
    value = scalar(start, dtype) + convert(indices, "int64", dtype) * scalar(step, dtype)
    return out.result(rounded(value, out.dtype))
