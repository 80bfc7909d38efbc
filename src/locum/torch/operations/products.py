"""Define the constructions of vector, matrix and grouped matrix products.

A product is a sum over a family of heads.
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import Any

from locum.constructions.tensor import Index, Layout, Tensor, contract, matmul, reduce_sum, sum_along
from locum.rasp.handles import SOp
from locum.rasp.python import constant, family, sum_over, where
from locum.torch.numbers import (
    cast,
    compute,
    computing_type,
    require,
    require_exact,
    rounded,
)
from locum.torch.operations.indexing_operations import raise_unsupported
from locum.torch.table import operation


@operation("products", "mm", "bmm", "mm.dtype", "bmm.dtype")
def product(out: Layout, a: Tensor, b: Tensor, dtype: Any = None) -> Tensor:
    """Return the matrix product of ``a`` and ``b``, or of each pair of matrices in a batch."""
    if a.dtype != out.dtype:
        a, b = cast(a, out.dtype), cast(b, out.dtype)
    total = matmul(out, a, b).sop
    require_exact_products(out, total)
    if a.shape[-1] == 1:  # PyTorch adds products to +0, so −0 becomes +0
        total = total + 0.0
    return out.result(rounded(total, out.dtype))


@operation("products", "addmm", "baddbmm", "addmm.dtype")
def addmm(
    out: Layout, c: Tensor, a: Tensor, b: Tensor, dtype: Any = None, *, beta: Any = 1, alpha: Any = 1
) -> Tensor:
    """Return beta · c + alpha · a b, where a b is a product of matrices."""
    wide = Layout(out.shape, out.strides, computing_type(out.dtype))
    return combine(out, c, matmul(wide, cast(a, wide.dtype), cast(b, wide.dtype)), beta, alpha)


@operation("products", "addbmm")
def addbmm(out: Layout, c: Tensor, a: Tensor, b: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """Return beta · c + alpha · Σ a b, where the sum of matrix products is over the batch."""
    wide = Layout(out.shape, out.strides, computing_type(out.dtype))
    batch = Layout.contiguous((a.shape[0], *out.shape), wide.dtype)
    products = matmul(batch, cast(a, wide.dtype), cast(b, wide.dtype))
    return combine(out, c, reduce_sum(wide, batch.rounded(products.sop), [0]), beta, alpha)


@operation("products", "dot", "mv")
def vector_product(out: Layout, a: Tensor, b: Tensor) -> Tensor:
    """Return the product of a matrix and a vector, or the dot product of two vectors."""
    total = _column(out.dtype, a, b).sop
    require_exact_products(out, total)
    return out.result(rounded(total, out.dtype))


def require_exact_products(out: Layout, total: SOp) -> None:
    """Require that sums of products of 32-bit integers are below 2⁵³ in magnitude, since larger sums
    are rounded. Results of 64 bits are always tested, and narrower integers have smaller products.
    """
    if out.dtype == "int32":
        require_exact(out, total)


@operation("products", "addmv")
def addmv(out: Layout, c: Tensor, a: Tensor, b: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """Return beta · c + alpha · a b, for a matrix ``a`` and a vector ``b``."""
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
    """Return the product of three tensors, expanded to a common shape and summed over ``sum_dims``."""
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
    """Return the product of ``a`` and the vector ``b`` as a matrix with one column.

    A vector ``a`` is treated as a matrix with one row.
    """
    rows = a if len(a.shape) == 2 else a.unsqueeze(0)
    return matmul(Layout.contiguous((rows.shape[0], 1), dtype), rows, b.unsqueeze(1))


def combine(out: Layout, c: Tensor, product: Tensor, beta: Any, alpha: Any) -> Tensor:
    """Return beta · c + alpha · product, where ``product`` is in the computing dtype of the result."""
    wide = Layout(out.shape, out.strides, product.dtype)
    if alpha != 1:
        product = compute(wide, lambda x, y: x * y, product, alpha)
    if beta == 0:  # c is not read, so NaN in c has no effect
        return out.result(rounded(product.sop, out.dtype))
    scaled = c if beta == 1 else compute(wide, lambda x, y: x * y, c, beta)
    return compute(out, lambda x, y: x + y, product, scaled)


@operation("products", "_grouped_mm")
def grouped_mm(
    out: Layout,
    a: Tensor,
    b: Tensor,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: Any = None,
) -> Tensor:
    """Return a matrix product for each group. The groups partition the rows of ``a``, the columns of
    ``b``, or the dimension over which the products are summed.

    ``offs`` contains the end of each group. Without ``offs``, the result is a batched matrix product.
    """
    if bias is not None:
        raise_unsupported("_grouped_mm", "a bias", "adding it to the product")
    dtype = computing_type(out.dtype)
    a, b = cast(a, dtype), cast(b, dtype)
    wide = Layout(out.shape, out.strides, dtype)
    if offs is None:
        return out.result(rounded(matmul(wide, a, b).sop, out.dtype))
    match len(a.shape), len(b.shape):
        case 2, 3:
            product = _multiply_rows(wide, a, b, offs)
        case 3, 2:
            flipped = Layout(wide.shape[::-1], wide.strides[::-1], dtype)
            product = _multiply_rows(flipped, b.transpose(0, 1), a.transpose(1, 2), offs)
        case _:
            product = _multiply_inner(wide, a, b, offs)
    return out.result(rounded(product.sop, out.dtype))


@operation("products", "transformers::grouped_mm_fallback")
def grouped_mm_fallback(out: Layout, a: Tensor, b: Tensor, offs: Tensor) -> Tensor:
    """Return the product of each group of rows with the matrix of its group."""
    return grouped_mm(out, a, b, offs)


@operation("products", "transformers::grouped_mm_fallback_backward")
def grouped_mm_fallback_backward(
    out: tuple[Layout, Layout], a: Tensor, b: Tensor, offs: Tensor, grad: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the gradients of the rows and of the matrices of a grouped matrix product."""
    return (
        grouped_mm(out[0], grad, b.transpose(1, 2), offs),
        grouped_mm(out[1], a.transpose(0, 1), grad, offs),
    )


def _multiply_rows(out: Layout, a: Tensor, b: Tensor, offs: Tensor) -> Tensor:
    """Multiply each row of the matrix ``a`` by the matrix in ``b`` that belongs to the row's group."""
    rows, groups = a.shape[0], b.shape[0]
    if 0 in (*a.shape, *b.shape):
        return out.result(constant(0.0))
    _require_all(offs, rows)
    if rows <= groups:  # read only the matrices of the rows' groups
        row, column = out.index
        n = family(a.shape[1])
        group = _group(offs, row)
        return out.result(sum_over(n, a.at(row, n) * b.at(group, n, column)))
    layout = Layout.contiguous((groups, *out.shape), out.dtype)
    products = layout.result(contract(layout, "gij", (a, "ik"), (b, "gkj")).sop)
    own = _member(layout, offs, 1)
    chosen = layout.result(where(own, products.sop, 0.0))
    return out.result(out.read(sum_along(chosen, [0]).select(0, 0)))


def _multiply_inner(out: Layout, a: Tensor, b: Tensor, offs: Tensor) -> Tensor:
    """Multiply the columns of ``a`` by the rows of ``b`` within each group.

    The result contains one matrix product per group.
    """
    groups = offs.shape[0]
    if 0 in (*a.shape, *b.shape):
        return out.result(constant(0.0))
    columns = Layout.contiguous((groups, *a.shape), out.dtype)
    rows = Layout.contiguous((groups, *b.shape), out.dtype)
    # Both factors are 0 outside the group, so infinities there have no effect.
    mine = columns.result(where(_member(columns, offs, 2), columns.read(a), 0.0))
    other = rows.result(where(_member(rows, offs, 1), rows.read(b), 0.0))
    return matmul(out, mine, other)


def _member(layout: Layout, offs: Tensor, dim: int) -> SOp:
    """Return whether each entry of ``layout`` belongs to the group that its first index specifies.

    The index along ``dim`` determines the group of an entry.
    """
    index = layout.index
    return _group(offs, index[dim]) == index[0]


def _group(offs: Tensor, place: Index) -> SOp:
    """Return the group that contains index ``place``.

    The result is the number of group ends in ``offs`` that are at most ``place``.
    """
    g = family(offs.shape[0])
    return sum_over(g, where(offs.at(g) <= place, 1.0, 0.0))


def _require_all(offs: Tensor, rows: int) -> None:
    """Add a check to the program that the groups contain all ``rows`` rows.

    PyTorch leaves the entries of rows outside the groups undefined.
    """
    end = offs.at(offs.shape[0] - 1)
    require(
        where(end >= rows, 0.0, 1.0),
        f"_grouped_mm: expected groups of all {rows} rows, got fewer; try removing the other rows",
    )
