"""Products of matrices: sums over a family of heads."""

from __future__ import annotations

from typing import Any

from locum.constructions.tensor import Layout, Tensor, contiguous_strides, matmul
from locum.torch.numbers import compute, computing_type, convert, rounded
from locum.torch.table import operation


@operation("products", "mm", "bmm")
def product(out: Layout, a: Tensor, b: Tensor) -> Tensor:
    """Multiply matrices; the sums are rounded once."""
    return out.result(rounded(matmul(out, a, b).sop, out.dtype))


@operation("products", "addmm", "baddbmm")
def addmm(out: Layout, c: Tensor, a: Tensor, b: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """Return beta · c + alpha · a b, rounded once."""
    dtype = computing_type(out.dtype)
    wide = Layout(out.shape, out.strides, dtype)
    whole = wide.result(convert(matmul(wide, a, b).sop, out.dtype, dtype))
    if alpha != 1:
        whole = compute(wide, lambda x, y: x * y, whole, alpha)
    if beta == 0:  # then c is not read: its NaN do not count
        return out.result(rounded(whole.sop, out.dtype))
    scaled = c if beta == 1 else compute(wide, lambda x, y: x * y, c, beta)
    return compute(out, lambda x, y: x + y, whole, scaled)


@operation("products", "dot", "mv")
def vector_product(out: Layout, a: Tensor, b: Tensor) -> Tensor:
    """Multiply a vector, or a matrix, by a vector."""
    rows = a if len(a.shape) == 2 else a.unsqueeze(0)
    shape = (rows.shape[0], 1)
    column = matmul(Layout(shape, contiguous_strides(shape), out.dtype), rows, b.unsqueeze(1))
    return out.result(rounded(column.sop, out.dtype))
