"""Products of matrices: sums over a family of heads."""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import Any

from locum.constructions.tensor import Layout, Tensor, contract, matmul, reduce_sum
from locum.torch.numbers import cast, compute, computing_type, rounded
from locum.torch.table import operation


@operation("products", "mm", "bmm", "mm.dtype", "bmm.dtype")
def product(out: Layout, a: Tensor, b: Tensor, dtype: Any = None) -> Tensor:
    """Return the product of matrices, rounded once."""
    if a.dtype != out.dtype:
        a, b = cast(a, out.dtype), cast(b, out.dtype)
    total = matmul(out, a, b).sop
    if a.shape[-1] == 1:  # a sum starts at +0, also a sum of one product that is −0
        total = total + 0.0
    return out.result(rounded(total, out.dtype))


@operation("products", "addmm", "baddbmm", "addmm.dtype")
def addmm(
    out: Layout, c: Tensor, a: Tensor, b: Tensor, dtype: Any = None, *, beta: Any = 1, alpha: Any = 1
) -> Tensor:
    """Return beta · c + alpha · a b, rounded once."""
    wide = Layout(out.shape, out.strides, computing_type(out.dtype))
    return combine(out, c, matmul(wide, cast(a, wide.dtype), cast(b, wide.dtype)), beta, alpha)


@operation("products", "addbmm")
def addbmm(out: Layout, c: Tensor, a: Tensor, b: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """Return beta · c + alpha · Σ a b over the batch, rounded once."""
    wide = Layout(out.shape, out.strides, computing_type(out.dtype))
    batch = Layout.contiguous((a.shape[0], *out.shape), wide.dtype)
    products = matmul(batch, cast(a, wide.dtype), cast(b, wide.dtype))
    return combine(out, c, reduce_sum(wide, batch.rounded(products.sop), [0]), beta, alpha)


@operation("products", "dot", "mv")
def vector_product(out: Layout, a: Tensor, b: Tensor) -> Tensor:
    """Return the product of a vector, or a matrix, and a vector."""
    return out.result(rounded(_column(out.dtype, a, b).sop, out.dtype))


@operation("products", "addmv")
def addmv(out: Layout, c: Tensor, a: Tensor, b: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """Return beta · c + alpha · a b for a vector b, rounded once."""
    dtype = computing_type(out.dtype)
    column = _column(dtype, cast(a, dtype), cast(b, dtype))
    return combine(out, c, Layout(out.shape, out.strides, dtype).result(column.sop), beta, alpha)


@operation("products", "_trilinear")
def trilinear(
    out: Layout,
    a: Tensor,
    b: Tensor,
    c: Tensor,
    expand_a: Sequence[int],
    expand_b: Sequence[int],
    expand_c: Sequence[int],
    sum_dims: Sequence[int],
    unroll_dim: int = 1,
) -> Tensor:
    """Return the sum of products of three tensors along dimensions, rounded once."""
    dtype = computing_type(out.dtype)
    factors = []
    for tensor, places in zip((a, b, c), (expand_a, expand_b, expand_c), strict=True):
        tensor = cast(tensor, dtype)
        for dim in sorted(places):
            tensor = tensor.unsqueeze(dim)
        factors.append((tensor, string.ascii_lowercase[: len(tensor.shape)]))
    kept = "".join(letter for dim, letter in enumerate(factors[0][1]) if dim not in sum_dims)
    return out.rounded(contract(Layout(out.shape, out.strides, dtype), kept, *factors).sop)


def _column(dtype: str, a: Tensor, b: Tensor) -> Tensor:
    """Return a b for a vector b: one entry after another."""
    rows = a if len(a.shape) == 2 else a.unsqueeze(0)
    return matmul(Layout.contiguous((rows.shape[0], 1), dtype), rows, b.unsqueeze(1))


def combine(out: Layout, c: Tensor, product: Tensor, beta: Any, alpha: Any) -> Tensor:
    """Return beta · c + alpha · product, for a product in the type to compute in."""
    wide = Layout(out.shape, out.strides, product.dtype)
    if alpha != 1:
        product = compute(wide, lambda x, y: x * y, product, alpha)
    if beta == 0:  # then c is not read: its NaN do not count
        return out.result(rounded(product.sop, out.dtype))
    scaled = c if beta == 1 else compute(wide, lambda x, y: x * y, c, beta)
    return compute(out, lambda x, y: x + y, product, scaled)
