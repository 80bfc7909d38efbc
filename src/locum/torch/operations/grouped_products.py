"""Products of matrices in groups, as in mixtures of experts: each group of rows has its own matrix.

``offs`` has the end of each group along the dimension that is grouped.
"""

from __future__ import annotations

from typing import Any

from locum.constructions.tensor import Index, Layout, Tensor, contract, matmul, sum_along
from locum.language.handles import SOp
from locum.language.python import constant, family, sum_over, where
from locum.torch.notes import require
from locum.torch.numbers import cast, computing_type, rounded
from locum.torch.operations.indexing import raise_unsupported
from locum.torch.table import operation


@operation("products", "_grouped_mm")
def grouped_mm(
    out: Layout,
    a: Tensor,
    b: Tensor,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: Any = None,
) -> Tensor:
    """Multiply each group of rows, columns or inner dimensions; the sums are rounded once."""
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
    """Multiply each group of rows by its matrix: the library's product for all types of numbers."""
    return grouped_mm(out, a, b, offs)


@operation("products", "transformers::grouped_mm_fallback_backward")
def grouped_mm_fallback_backward(
    out: tuple[Layout, Layout], a: Tensor, b: Tensor, offs: Tensor, grad: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the gradients of the rows and of the matrices."""
    return (
        grouped_mm(out[0], grad, b.transpose(1, 2), offs),
        grouped_mm(out[1], a.transpose(0, 1), grad, offs),
    )


def _multiply_rows(out: Layout, a: Tensor, b: Tensor, offs: Tensor) -> Tensor:
    """Multiply row s of a by the matrix of its group."""
    rows, groups = a.shape[0], b.shape[0]
    if 0 in (*a.shape, *b.shape):
        return out.result(constant(0.0))
    _require_all(offs, rows)
    if rows <= groups:  # reads the matrices of the rows' groups alone
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
    """Multiply the columns of a by the rows of b that a group has: one product for each group."""
    groups = offs.shape[0]
    if 0 in (*a.shape, *b.shape):
        return out.result(constant(0.0))
    columns = Layout.contiguous((groups, *a.shape), out.dtype)
    rows = Layout.contiguous((groups, *b.shape), out.dtype)
    # Both factors are 0 outside of the group, so that infinities there do not count.
    mine = columns.result(where(_member(columns, offs, 2), columns.read(a), 0.0))
    other = rows.result(where(_member(rows, offs, 1), rows.read(b), 0.0))
    return matmul(out, mine, other)


def _member(layout: Layout, offs: Tensor, dim: int) -> SOp:
    """Return whether an entry's place along a dimension is in the group of its first index."""
    index = layout.index
    return _group(offs, index[dim]) == index[0]


def _group(offs: Tensor, place: Index) -> SOp:
    """Return the group of a place: the number of groups that end before it or at it."""
    g = family(offs.shape[0])
    return sum_over(g, where(offs.at(g) <= place, 1.0, 0.0))


def _require_all(offs: Tensor, rows: int) -> None:
    """Note that the groups have all rows: PyTorch does not define other rows of the result."""
    end = offs.at(offs.shape[0] - 1)
    require(
        where(end >= rows, 0.0, 1.0),
        f"_grouped_mm: expected groups of all {rows} rows, got fewer; try removing the other rows",
    )
