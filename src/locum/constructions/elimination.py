"""Invert matrices of any order by Gauss–Jordan with pivoting, Newton–Schulz or Faddeev–LeVerrier.

All three methods are programs of fixed depth for a given order and number of steps. Gauss–Jordan works
on [A, I] and uses two layers, and three more layers per step. Newton–Schulz, X ← X(2I − AX), needs no
pivots and converges quadratically. Faddeev–LeVerrier needs only traces, sums, products and divisions by
numbers, but loses accuracy as the order grows.
"""

from __future__ import annotations

import math

from locum.constructions.matmul import fetched, matmul
from locum.constructions.matrix import Matrix, coordinates, greatest, same_row
from locum.constructions.sums import add
from locum.errors import GraphError
from locum.rasp.handles import SOp
from locum.rasp.python import aggregate, indicator, indices, select, sum_over, where
from locum.settings import require_integer

#: Beginnings of error messages.
_NON_SINGULAR = "inverse: expected a non-singular matrix, got "
_NO_PIVOT = _NON_SINGULAR + "pivots of 0 up to rounding"
_NO_INVERSE = _NON_SINGULAR + "a determinant of 0"
_NO_START = _NON_SINGULAR + "a matrix of zeros"


def gauss_jordan(m: Matrix, r: int, tolerance: float) -> Matrix:
    """Return the inverse of ``m``, of order ``r``, by Gauss–Jordan elimination on [A, I] with partial
    pivoting.

    First, each row is divided by the largest absolute value of its entries in A. A pivot of absolute
    value at most ``tolerance`` counts as 0.
    """
    width = 2 * r
    i, j = coordinates(width)
    inside = indices < r * width
    both = where(inside, where(j < r, m.at(i, j), indicator(j - r == i)), 0)
    # Scale the largest absolute value of every row to 1, so that pivots can be distinguished from
    # rounding errors.
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
    return Matrix(x, r, r, r, width, 1, m.reads, max(m.needs, r * width), m.names)


def newton_schulz(m: Matrix, r: int, tolerance: float, steps: int | None = None) -> Matrix:
    """Return the inverse of ``m``, of order ``r``, by ``steps`` iterations X ← X(2I − AX).

    The iteration starts with X = Aᵀ / (‖A‖₁‖A‖∞). By default, ``steps`` is :func:`newton_steps` of r.
    After the last step, a bound on the rounding errors of float64 is added to the entries of |AX − I|.
    The matrix counts as singular unless the sum of these numbers is less than ``tolerance``.
    """
    enough = newton_steps(r)
    steps = enough if steps is None else require_integer(steps, "steps", 0, GraphError)
    a = m.compact()
    row_sizes = a.columns * aggregate(same_row(a), where(a.inside, abs(a.sop), 0))
    column = indices % a.columns
    entries = select(indices, a.size, "<")
    column_sizes = r * aggregate(select(column, column, "==") & entries, abs(a.sop))
    norms = [aggregate(greatest(entries, sizes), sizes) for sizes in (row_sizes, column_sizes)]
    start = a.transpose(0, 1).compact()
    first = start.sop / (norms[0] * norms[1])
    x = start.derive(first, r, r, a, names={first: _NO_START})
    for _ in range(steps):
        residual = matmul(a, x, recipe="fetch")
        x = matmul(x, residual.map(_diagonal(r, 2) - residual.sop), recipe="fetch")
    more = f"steps={max(2 * steps, enough)} or "
    return _verified(a, x, r, tolerance, f" after {steps} steps", more)


def _verified(
    a: Matrix, x: Matrix, r: int, tolerance: float, when: str = "", other: str = ""
) -> Matrix:
    """Return ``x`` if the entries of |AX − I| sum to less than ``tolerance``; otherwise divide by 0.

    Since X − A⁻¹ = A⁻¹(AX − I), the sum bounds ‖X − A⁻¹‖/‖A⁻¹‖ in the 1-, 2-, ∞- and Frobenius norms. A
    bound on the rounding errors of the product in float64 is added to each entry. Without this bound,
    the computed residual of a wrong inverse can be 0. The reason is that floating-point products of
    large entries are multiples of a number that exceeds the tolerance.
    """
    t, left, right = fetched(a, x)
    rounding = (r + 1) * 2.0**-52 * sum_over(t, abs(left) * abs(right))
    error = abs(sum_over(t, left * right) - _diagonal(r, 1)) + rounding
    error = where(indices < r * r, error, 0)
    residual = r * r * aggregate(select(indices, r * r, "<"), error)
    checked = x.sop / where(residual < tolerance, 1, 0)  # also if the residual is NaN
    reason = (
        f"inverse: expected the entries of |AX − I| to sum to less than {tolerance:.3g}{when}, "
        f'got more, as the matrix is singular or ill-conditioned; try {other}recipe="gauss-jordan"'
    )
    return x.derive(checked, r, r, a, names={checked: reason})


def _diagonal(r: int, value: float | SOp) -> SOp:
    """Return the s-op whose entries are the matrix value · I of order ``r``."""
    i, j = coordinates(r)
    return where((i == j) & (indices < r * r), value, 0)


def newton_steps(order: int, condition: float = 1e3, epsilon: float = 1e-12) -> int:
    """Return a number of Newton–Schulz steps that is enough for the accuracy ``epsilon``, without
    rounding errors.

    The matrix has the order r and a condition number of at most ``condition``, κ. The residual q of the
    first iterate is at most 1 − 1/(r κ²), and each step squares q.

    >>> newton_steps(5, condition=10, epsilon=1e-8)
    14
    """
    return math.ceil(math.log2(math.log(1 / epsilon) * order * condition**2))


def faddeev_leverrier(m: Matrix, r: int, tolerance: float) -> Matrix:
    """Return the inverse of ``m`` from its characteristic polynomial: M ← AM + cI, c ← −tr(AM)/k, A⁻¹ =
    −M/c.

    First, the matrix is divided by the largest absolute value of its entries. At the end, a bound on
    the rounding errors of float64 is added to the entries of |AX − I| for the result X. The matrix
    counts as singular unless the sum of these numbers is less than ``tolerance``.
    """
    a = m.compact()
    entries = select(indices, a.size, "<")
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
    checked = _verified(b, inverse_of_b, r, tolerance)
    return checked.map(checked.sop / largest)
