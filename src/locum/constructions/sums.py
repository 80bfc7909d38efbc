"""Compute sums from means, along rows and over all entries (Proposition AHAT).

Attention computes means. A feed-forward multiplies a mean by the number of keys to obtain the sum. This
number is a constant factor if it is known, and otherwise ``selector_width``. The numbers of heads are
stated for matrices in row-major order from position 0. For other views, further heads may be needed to
copy the entries.
"""

from __future__ import annotations

from locum.constructions.matrix import Matrix, as_matrix, coordinates, same_row
from locum.constructions.sizes import Size, plus, require_same, same_size, times
from locum.errors import GraphError
from locum.rasp.handles import Selector, SOp
from locum.rasp.python import aggregate, indices, select, selector_width, where


def summed(selector: Selector, values: SOp, count: Size | None = None) -> SOp:
    """Return the sum of the selected values: their mean times the number of selected keys.

    ``count`` is this number, if it is known.

    >>> from locum import full, tokens
    >>> summed(full, tokens, 3)([1, 2, 4])
    [7.0, 7.0, 7.0]
    """
    mean = aggregate(selector, values)
    return (selector_width(selector) if count is None else count) * mean


def row_means(m: Matrix) -> Matrix:
    """Return a matrix of the same shape in which every entry is the mean of its row.

    The means need one head. A matrix that is not compact needs a second head.
    """
    m = m.compact()
    mean = aggregate(same_row(m), m.inside_or(0))
    return m.derive(where(m.inside, mean, 0), m.rows, m.columns)


def row_sums(m: Matrix) -> Matrix:
    """Return a matrix of the same shape in which every entry is the sum of its row."""
    means = row_means(m)
    return means.map(means.columns * means.sop)


def total(m: Matrix) -> Matrix:
    """Return the sum of all entries as a 1×1 matrix.

    The s-op of the result equals the sum at every position.
    """
    m = m.compact()
    return m.derive(summed(select(indices, m.size, "<"), m.sop, m.size), 1, 1)


def broadcast_row(m: Matrix, rows: Size) -> Matrix:
    """Return a matrix with ``rows`` copies of a 1×c matrix as rows, with at most one head."""
    require_same(m.rows, 1, f"broadcast_row: expected a matrix of one row, got {m.shape_label}")
    _, j = coordinates(m.columns)
    return m.derive(m.at(0, j), rows, m.columns)


def broadcast_column(m: Matrix, columns: Size) -> Matrix:
    """Return a matrix with ``columns`` copies of an r×1 matrix as columns, with at most one head."""
    problem = f"broadcast_column: expected a matrix of one column, got {m.shape_label}"
    require_same(m.columns, 1, problem)
    i, _ = coordinates(columns)
    return m.derive(m.at(i, 0), m.rows, columns)


def append_ones(m: Matrix) -> Matrix:
    """Append a column of ones to ``m``, so that a product can include biases, with at most one head.

    >>> from locum import tokens
    >>> append_ones(Matrix(tokens, 2, 1)).run([5, 6]).tolist()
    [[5.0, 1.0], [6.0, 1.0]]
    """
    wider = plus(m.columns, 1)
    i, j = coordinates(wider)
    entry = where(j < m.columns, m.at(i, j), 1)
    return m.derive(where(indices < times(m.rows, wider), entry, 0), m.rows, wider)


def add(a: Matrix, b: Matrix) -> Matrix:
    """Return the elementwise sum a + b; no head is needed if both matrices have the same positions."""
    a, b = _alike(a, b, f"cannot add a {_shape(b)} matrix to a {_shape(a)} one")
    return _merged(a, b, a.sop + b.sop)


def multiply(a: Matrix, b: Matrix) -> Matrix:
    """Return the elementwise product of ``a`` and ``b``."""
    problem = f"cannot multiply a {_shape(a)} matrix by a {_shape(b)} one, entry by entry"
    a, b = _alike(a, b, problem)
    return _merged(a, b, a.sop * b.sop)


def scale(a: Matrix, factor: float | Matrix) -> Matrix:
    """Multiply every entry of ``a`` by ``factor``, which is a number or a 1×1 matrix."""
    if not isinstance(factor, Matrix):
        return a.map(factor * a.sop)
    if (factor.rows, factor.columns) != (1, 1):
        raise GraphError(f"scale: expected a number or a 1×1 matrix, got a {factor.shape_label} matrix")
    return _merged(a, factor, factor.at(0, 0) * a.sop)


def _alike(a: Matrix, b: Matrix, problem: str) -> tuple[Matrix, Matrix]:
    """Return both matrices with corresponding entries at the same positions.

    If necessary, the entries are copied to row-major order from position 0.
    """
    require_same(a.rows, b.rows, problem)
    require_same(a.columns, b.columns, problem)
    if all(map(same_size, (a.offset, *a.strides), (b.offset, *b.strides))):
        return a, b
    return a.compact(), b.compact()


def _merged(a: Matrix, b: Matrix, sop: SOp) -> Matrix:
    """Return the matrix of ``sop`` at the positions of ``a``, with the inputs and error messages of
    both matrices.
    """
    known = a.derive(sop, a.rows, a.columns, b)
    return a.map(sop).replace(reads=known.reads, storage=known.storage, names=known.names)


def _shape(m: Matrix) -> str:
    return as_matrix(m, "this operation").shape_label
