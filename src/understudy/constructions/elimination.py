"""Inversion at any order: Gauss–Jordan with pivoting, Newton–Schulz, Faddeev–LeVerrier.

All are programs of fixed depth for a given order. Gauss–Jordan works on [A, I] and costs three
layers a step; Newton–Schulz, X ← X(2I − AX), needs no pivots and converges quadratically;
Faddeev–LeVerrier needs traces and products only, and loses accuracy as the order grows.
"""

from __future__ import annotations

import math

from understudy.constructions.matmul import matmul
from understudy.constructions.matrix import Matrix, coordinates, same_row
from understudy.constructions.sums import add
from understudy.language.handles import SOp
from understudy.language.python import aggregate, best, full, indicator, indices, select, where

#: What errors call a quotient that has no value.
_NO_PIVOT = "the elimination: no pivot but 0 is left, the matrix is singular"
_NO_INVERSE = "the inverse: the last coefficient is 0, the matrix is singular"
_NO_START = "the first approximation: all entries are 0, the matrix is singular"


def gauss_jordan(m: Matrix, r: int, tolerance: float) -> Matrix:
    """Elimination on [A, I] with partial pivoting; the right half becomes the inverse."""
    width = 2 * r
    i, j = coordinates(width)
    inside = indices < r * width
    both = where(inside, where(j < r, m.at(i, j), indicator(j - r == i)), 0)
    entries = select(indices, r * width, "<") & select(j, r, "<")
    size = aggregate(best(entries, abs(both)), abs(both))  # the largest entry of A
    x = both
    for step in range(r):
        current = Matrix(x, r, width)
        candidates = select(j, step, "==") & select(i, step, ">=") & select(indices, r * width, "<")
        # The candidate of greatest absolute value; of several, the uppermost.
        pivot_row = aggregate(best(best(candidates, abs(x)), -indices), i)
        source = where(i == step, pivot_row, where(i == pivot_row, step, i))
        swapped = Matrix(where(inside, current.at(source, j), 0), r, width)
        pivot = swapped.at(step, step)
        checked = where(abs(pivot) <= tolerance * size, 0, pivot)
        ratio = swapped.at(step, j) / checked
        x = where(inside, where(i == step, ratio, swapped.sop - swapped.at(i, step) * ratio), 0)
        m = m.derive(m.sop, r, r, room=r * width, names={ratio: _NO_PIVOT})
    return Matrix(x, r, r, r, width, 1, m.reads, max(m.needs or 0, r * width), m.names)


def newton_schulz(m: Matrix, r: int, steps: int | None = None) -> Matrix:
    """X ← X(2I − AX) from X = Aᵀ / (‖A‖₁‖A‖∞), so many times."""
    a = m.compact()
    row_sizes = a.columns * aggregate(same_row(a), where(a.inside, abs(a.sop), 0))
    column = indices % a.columns
    same_column = select(column, column, "==") & select(indices, a.count, "<")
    column_sizes = r * aggregate(same_column, abs(a.sop))
    norms = [
        aggregate(best(select(indices, a.count, "<"), sizes), sizes)
        for sizes in (row_sizes, column_sizes)
    ]
    product = norms[0] * norms[1]
    start = a.view_transposed().compact()
    first = start.sop / product
    x = start.derive(first, r, r, a, names={first: _NO_START})
    i, j = coordinates(r)
    two = where((i == j) & (indices < r * r), 2, 0)
    for _ in range(newton_steps(r) if steps is None else steps):
        residual = matmul(a, x, recipe="fetch")
        x = matmul(x, residual.map(two - residual.sop), recipe="fetch")
    return x


def newton_steps(order: int, condition: float = 1e3, epsilon: float = 1e-12) -> int:
    """Steps after which every matrix of this order and condition is inverted to ``epsilon``.

    The residual q of the start is at most 1 − 1/(r κ²), and each step squares it.

    >>> newton_steps(5, condition=10, epsilon=1e-8)
    14
    """
    return math.ceil(math.log2(math.log(1 / epsilon) * order * condition**2))


def faddeev_leverrier(m: Matrix, r: int, tolerance: float) -> Matrix:
    """Characteristic polynomial and inverse together: M ← AM + cI, c ← −tr(AM)/k; A⁻¹ = −M/c."""
    a = m.compact()
    i, j = coordinates(r)
    diagonal = (i == j) & (indices < r * r)

    def identity(factor: SOp | float) -> Matrix:
        return a.derive(where(diagonal, factor, 0), r, r)

    def trace(matrix: Matrix) -> SOp:
        on_diagonal = select(indices % (r + 1), 0, "==") & select(indices, r * r, "<")
        return r * aggregate(on_diagonal, matrix.sop)

    x, c = identity(1), -trace(a)
    size = aggregate(best(full, abs(a.sop) * indicator(a.inside)), abs(a.sop))
    for k in range(2, r + 1):
        x = add(matmul(a, x, recipe="fetch"), identity(c))
        c = -trace(matmul(a, x, recipe="fetch")) / k
    checked = where(abs(c) <= tolerance * size**r, 0, c)
    result = where(indices < r * r, -x.sop, 0) / checked
    return x.derive(result, r, r, a, names={result: _NO_INVERSE})
