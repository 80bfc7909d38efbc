"""Read rows and columns of two matrices with one head, so that a product needs a single selector.

In this module, a *line* is a row of A or a column of B. A feed-forward *scatters* every entry of A
along the inner dimension, of size k, into k s-ops. The t-th s-op equals the entry if the entry has
index t in its row, and is 0 at all other positions. The entries of B are scattered along their columns.
One selector then reads row i of A and column j of B together. The head computes 2k means over the
selected keys. Each mean, multiplied by the number of keys, is one of the 2k numbers that entry (i, j)
of the product needs. All means use the same selector, so they are one head with 2k values.

One head suffices only if no position belongs to both matrices, since a head that reads a position reads
all of its values. Two heads are used unless the ranges of positions are known to be disjoint.
"""

from __future__ import annotations

from dataclasses import dataclass

from locum.constructions.matrix import Matrix
from locum.constructions.sizes import Size, largest, number_of, plus, times
from locum.errors import GraphError
from locum.rasp.handles import SOp
from locum.rasp.python import aggregate, indices, maximum, select, where

#: OUTSIDE is the line number of positions that belong to no line. A query that needs no line requests
#: NONE.
OUTSIDE, NONE = -1, -2


@dataclass(frozen=True)
class Lines:
    """The entries of a matrix arranged in lines of equal length (its rows or its columns)."""

    values: SOp
    #: The index of the line of each position, and the index within the line, or OUTSIDE.
    line: SOp
    place: SOp
    #: Number of entries in a line.
    size: int

    def scattered(self, t: Size) -> SOp:
        """Return the s-op of the entries with index ``t`` in their lines; it is 0 at all other
        positions.
        """
        return where(self.place == t, self.values, 0)

    def beside(self, others: Lines, first: Size) -> Lines:
        """Return the lines of both objects, with the lines of ``others`` numbered from ``first``.

        Both must be lines of the same s-op and of equal length.
        """
        if self.values is not others.values or self.size != others.size:
            raise GraphError("expected lines of the same s-op and of the same size, got different ones")
        return Lines(
            self.values,
            where(others.line >= 0, plus(others.line, first), self.line),
            where(others.place >= 0, others.place, self.place),
            self.size,
        )


def rows_of(m: Matrix) -> Lines:
    """Return the rows of a matrix as :class:`Lines`."""
    row, column = entries_of(m)
    return Lines(m.sop, row, column, number_of(m.columns, "the inner dimension (recipe scatter)"))


def columns_of(m: Matrix) -> Lines:
    """Return the columns of a matrix as :class:`Lines`."""
    return rows_of(m.transpose(0, 1))


def entries_of(m: Matrix) -> tuple[SOp, SOp]:
    """Return two s-ops: the row and the column of the matrix entry at each position.

    Both are OUTSIDE (−1) at positions without an entry.
    """
    rows, columns, row_stride, column_stride = (
        number_of(size, "a size of a matrix whose lines are read together (recipe scatter)")
        for size in (*m.shape, *m.strides)
    )
    if columns > 1 and (rows == 1 or row_stride < column_stride):
        column, row = entries_of(m.transpose(0, 1))
        return row, column
    if (rows > 1 and row_stride <= (columns - 1) * column_stride) or (
        columns > 1 and not column_stride
    ):
        raise GraphError(
            f"expected entries at different positions, got a {m.shape_label} matrix with several "
            "entries at one"
        )
    row_stride = max(row_stride, 1)  # for a single entry it may be 0
    within = indices - m.offset
    row, rest = within // row_stride, within % row_stride
    column = rest // column_stride if column_stride > 1 else rest
    there = (within >= 0) & (row < rows) & (column < columns)
    if column_stride > 1:
        there = there & (rest % column_stride == 0)
    return where(there, row, OUTSIDE), where(there, column, OUTSIDE)


def gathered(t: SOp, left: Lines, right: Lines, i: SOp, j: SOp, apart: bool) -> tuple[SOp, SOp]:
    """Return two s-ops: the entry with index ``t`` in line i of ``left``, and in line j of ``right``.

    If ``apart`` is true, one head reads the entries for all t. Otherwise, the two sides may overlap,
    and two heads are used. The s-ops i and j depend on the position. The value of i must be a valid
    line everywhere, so that every query selects keys. At positions where j is NONE, one head reads only
    the left line; the right value is 0, and the left value is a multiple of the entry. With two heads,
    line 0 is read instead of NONE.
    """
    if not apart:
        ours, theirs = select(left.line, i, "=="), select(right.line, maximum(j, 0), "==")
        return (
            left.size * aggregate(ours, left.scattered(t)),
            right.size * aggregate(theirs, right.scattered(t)),
        )
    both = select(left.line, i, "==") | select(right.line, j, "==")
    count = left.size + right.size
    return count * aggregate(both, left.scattered(t)), count * aggregate(both, right.scattered(t))


def lie_apart(a: Matrix, b: Matrix) -> bool:
    """Return whether two matrices are known to have disjoint ranges of positions."""
    return _ends_before(a, b) or _ends_before(b, a)


def _ends_before(a: Matrix, b: Matrix) -> bool:
    gap = largest(plus(a.end, times(b.offset, -1)))
    return gap is not None and gap <= 0
