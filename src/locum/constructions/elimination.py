"""Inversion at any order: Gauss–Jordan with pivoting, Newton–Schulz, Faddeev–LeVerrier.

All are programs of fixed depth for a given order. Gauss–Jordan works on [A, I] and costs three
layers a step; Newton–Schulz, X ← X(2I − AX), needs no pivots and converges quadratically;
Faddeev–LeVerrier needs traces and products only, and loses accuracy as the order grows.
"""

from __future__ import annotations

import math

from locum.constructions.matmul import matmul
from locum.constructions.matrix import Matrix, coordinates, greatest, same_row
from locum.constructions.sums import add
from locum.errors import GraphError
from locum.language.handles import SOp
from locum.language.python import aggregate, indicator, indices, select, where

#: What errors call a quotient that has no value.
_NO_PIVOT = "the elimination: no pivot is left but 0 (or rounding errors), the matrix is singular"
_NO_INVERSE = "the inverse: the last coefficient is 0, the matrix is singular"
_NO_START = "the first approximation: all entries are 0, the matrix is singular"
_NOT_FOUND = "the inverse: A·X is not I, the matrix is singular (or needs more steps)"
#: How far from I a product may be that is meant to be I.
_FAR = 0.01


def gauss_jordan(m: Matrix, r: int, tolerance: float) -> Matrix:
    """Eliminate on [A, I], rows scaled, with partial pivoting; the right half is the inverse."""
    width = 2 * r
    i, j = coordinates(width)
    inside = indices < r * width
    both = where(inside, where(j < r, m.at(i, j), indicator(j - r == i)), 0)
    # Every row divided by its largest entry: then pivots can be told from rounding errors.
    in_a = select(i, i, "==") & select(j, r, "<") & select(indices, r * width, "<")
    largest = aggregate(greatest(in_a, abs(both)), abs(both))
    x = both / where(inside, largest, 1)
    m = m.derive(m.sop, r, r, room=r * width, names={x: _NO_PIVOT})
    for step in range(r):
        current = Matrix(x, r, width)
        candidates = select(j, step, "==") & select(i, step, ">=") & select(indices, r * width, "<")
        pivot_row = aggregate(greatest(candidates, abs(x)), i)
        source = where(i == step, pivot_row, where(i == pivot_row, step, i))
        swapped = Matrix(where(inside, current.at(source, j), 0), r, width)
        pivot = swapped.at(step, step)
        ratio = swapped.at(step, j) / (where(abs(pivot) <= tolerance, 0, pivot) if tolerance else pivot)
        x = where(inside, where(i == step, ratio, swapped.sop - swapped.at(i, step) * ratio), 0)
        m = m.derive(m.sop, r, r, room=r * width, names={ratio: _NO_PIVOT})
    return Matrix(x, r, r, r, width, 1, m.reads, max(m.needs or 0, r * width), m.names)


def newton_schulz(m: Matrix, r: int, steps: int | None = None) -> Matrix:
    """Iterate X ← X(2I − AX) from X = Aᵀ / (‖A‖₁‖A‖∞), so many times; refuse if AX is not I then."""
    if steps is not None and (type(steps) is not int or steps < 0):
        raise GraphError(f"newton-schulz: expected an integer number of steps, got {steps!r}")
    a = m.compact()
    row_sizes = a.columns * aggregate(same_row(a), where(a.inside, abs(a.sop), 0))
    column = indices % a.columns
    entries = select(indices, a.count, "<")
    column_sizes = r * aggregate(select(column, column, "==") & entries, abs(a.sop))
    norms = [aggregate(greatest(entries, sizes), sizes) for sizes in (row_sizes, column_sizes)]
    start = a.view_transposed().compact()
    first = start.sop / (norms[0] * norms[1])
    x = start.derive(first, r, r, a, names={first: _NO_START})
    for _ in range(newton_steps(r) if steps is None else steps):
        residual = matmul(a, x, recipe="fetch")
        x = matmul(x, residual.map(_diagonal(r, 2) - residual.sop), recipe="fetch")
    return _verified(a, x, r)


def _verified(a: Matrix, x: Matrix, r: int) -> Matrix:
    """Return ``x``, unless a·x is far from I: then there is no inverse, or it was not found."""
    product = matmul(a, x, recipe="fetch")
    error = where(indices < r * r, abs(product.sop - _diagonal(r, 1)), 0)
    worst = aggregate(greatest(select(indices, r * r, "<"), error), error)
    checked = x.sop / where(worst < _FAR, 1, 0)  # also where it is not a number
    return x.derive(checked, r, r, a, product, names={checked: _NOT_FOUND})


def _diagonal(r: int, value: float | SOp) -> SOp:
    """Return the s-op of value · I."""
    i, j = coordinates(r)
    return where((i == j) & (indices < r * r), value, 0)


def newton_steps(order: int, condition: float = 1e3, epsilon: float = 1e-12) -> int:
    """Count the steps after which every matrix of this order and condition is inverted to ``epsilon``.

    The residual q of the start is at most 1 − 1/(r κ²), and each step squares it.

    >>> newton_steps(5, condition=10, epsilon=1e-8)
    14
    """
    return math.ceil(math.log2(math.log(1 / epsilon) * order * condition**2))


def faddeev_leverrier(m: Matrix, r: int) -> Matrix:
    """Compute characteristic polynomial and inverse: M ← AM + cI, c ← −tr(AM)/k; A⁻¹ = −M/c.

    The matrix is divided by its largest entry first; refused if the result is not an inverse.
    """
    a = m.compact()
    entries = select(indices, a.count, "<")
    largest = aggregate(greatest(entries, abs(a.sop)), abs(a.sop))
    unit = where(a.inside, a.sop, 0) / largest
    b = a.derive(unit, r, r, names={unit: _NO_INVERSE})

    def trace(matrix: Matrix) -> SOp:
        on_diagonal = select(indices % (r + 1), 0, "==") & select(indices, r * r, "<")
        return r * aggregate(on_diagonal, matrix.sop)

    x, c = b.derive(_diagonal(r, 1), r, r), -trace(b)
    for k in range(2, r + 1):
        x = add(matmul(b, x, recipe="fetch"), b.derive(_diagonal(r, c), r, r))
        c = -trace(matmul(b, x, recipe="fetch")) / k
    result = where(indices < r * r, -x.sop, 0) / c
    inverse_of_b = x.derive(result, r, r, b, names={result: _NO_INVERSE})
    checked = _verified(b, inverse_of_b, r)
    return checked.map(checked.sop / largest)
