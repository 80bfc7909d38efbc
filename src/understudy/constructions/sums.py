"""From means to sums, along rows and over everything (Proposition AHAT).

Attention averages; a feed-forward can multiply by the number of keys and so recover the sum. Where
that number is known, it is a factor and costs nothing; elsewhere it is ``selector_width``.
"""

from __future__ import annotations

from understudy.constructions.matrix import Matrix, Size, coordinates, require_same, same_row
from understudy.language.handles import Selector, SOp
from understudy.language.python import aggregate, indices, select, selector_width, where


def summed(selector: Selector, values: SOp, count: Size | None = None) -> SOp:
    """The sum of the selected values: their mean, times how many they are.

    >>> from understudy import full, tokens
    >>> summed(full, tokens, 3)([1, 2, 4])
    [7.0, 7.0, 7.0]
    """
    mean = aggregate(selector, values)
    return (selector_width(selector) if count is None else count) * mean


def row_means(m: Matrix) -> Matrix:
    """The mean of each row, at every entry of the row: one head (aggregate *is* the mean)."""
    m = m.compact()
    mean = aggregate(same_row(m), m.inside_or(0))
    return m.derive(where(m.inside, mean, 0), m.rows, m.columns, m)


def row_sums(m: Matrix) -> Matrix:
    """The sum of each row, at every entry of the row."""
    means = row_means(m)
    return means.map(means.columns * means.sop)


def total(m: Matrix) -> SOp:
    """The sum of all entries, everywhere: one head."""
    m = m.compact()
    return summed(select(indices, m.count, "<"), m.sop, m.count)


def broadcast_row(m: Matrix, rows: Size) -> Matrix:
    """A 1×c matrix repeated in every one of ``rows`` rows: one head."""
    require_same(m.rows, 1, f"only a matrix of one row can be repeated in rows, not {m.shape}")
    _, j = coordinates(m.columns)
    return m.derive(m.at(0, j), rows, m.columns)


def broadcast_column(m: Matrix, columns: Size) -> Matrix:
    """An r×1 matrix repeated in every one of ``columns`` columns: one head."""
    require_same(m.columns, 1, f"only a matrix of one column can be repeated in columns, not {m.shape}")
    i, _ = coordinates(columns)
    return m.derive(m.at(i, 0), m.rows, columns)


def add(a: Matrix, b: Matrix) -> Matrix:
    """a + b, the residual sum: elementwise, no attention where both lie alike."""
    problem = f"cannot add a {b.shape} matrix to a {a.shape} one"
    require_same(a.rows, b.rows, problem)
    require_same(a.columns, b.columns, problem)
    a, b = a.compact(), b.compact()
    return a.derive(a.sop + b.sop, a.rows, a.columns, b)


def multiply(a: Matrix, b: Matrix) -> Matrix:
    """a · b entry by entry."""
    problem = f"cannot multiply a {a.shape} matrix by a {b.shape} one, entry by entry"
    require_same(a.rows, b.rows, problem)
    require_same(a.columns, b.columns, problem)
    a, b = a.compact(), b.compact()
    return a.derive(a.sop * b.sop, a.rows, a.columns, b)


def scale(a: Matrix, factor: float | SOp) -> Matrix:
    """Every entry times a number."""
    return a.map(factor * a.sop)
