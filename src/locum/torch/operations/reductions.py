"""Sums, means and maxima along dimensions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from locum.constructions.tensor import Layout, Tensor, reduce_sum
from locum.torch.numbers import computing_type, convert, rounded
from locum.torch.table import operation


def chosen(a: Tensor, dims: Any) -> list[int]:
    """Return dimensions as numbers from 0; all of them where none are given."""
    if dims is None or (not isinstance(dims, int) and not dims):
        return list(range(len(a.shape)))
    listed: Sequence[int] = [dims] if isinstance(dims, int) else dims
    return sorted(dim % max(len(a.shape), 1) for dim in listed) if a.shape else []


def total(out: Layout, a: Tensor, dims: Sequence[int]) -> Tensor:
    """Add up in the type that the result is computed in."""
    dtype = computing_type(out.dtype)
    from dataclasses import replace

    wide = Layout(out.shape, out.strides, dtype)
    converted = replace(a, sop=convert(a.sop, a.dtype, dtype), dtype=dtype)
    return reduce_sum(wide, converted, dims)


@operation("reductions", "sum.dim_IntList", "sum")
def sum_(out: Layout, a: Tensor, dims: Any = None, keep: bool = False, *, dtype: Any = None) -> Tensor:
    """Add up along dimensions."""
    return out.result(rounded(total(out, a, chosen(a, dims)).sop, out.dtype))


@operation("reductions", "mean.dim", "mean")
def mean(out: Layout, a: Tensor, dims: Any = None, keep: bool = False, *, dtype: Any = None) -> Tensor:
    """Average along dimensions."""
    along = chosen(a, dims)
    count = float(math.prod(a.shape[dim] for dim in along))
    return out.result(rounded(total(out, a, along).sop / count, out.dtype))
