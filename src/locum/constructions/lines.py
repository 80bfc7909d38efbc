"""Rows and columns of matrices under one head: a product by a single selector.

A feed-forward *scatters* every entry of A along the inner dimension: k s-ops, the t-th of which has
the value where the entry stands at place t of its row, and 0 elsewhere; those of B likewise, along
their columns. Then one selector reads row i of A and column j of B together, and the 2k means over
it, times the number of keys, are the 2k numbers that entry (i, j) needs. All 2k are read through the
same selector, so they are one head of 2k values.

This works as long as no position belongs to both sides: a head that reads a position reads all that
is there.
"""

from __future__ import annotations

from dataclasses import dataclass

from locum.constructions.matrix import Matrix
from locum.constructions.sizes import Size, largest, number_of, plus, times
from locum.errors import GraphError
from locum.rasp.handles import SOp
from locum.rasp.python import aggregate, indices, maximum, select, where

#: The line that positions of no line belong to, and the one that queries ask for who want none.
OUTSIDE, NONE = -1, -2


@dataclass(frozen=True)
class Lines:
    """Values that lie in lines (the rows of a matrix, or its columns), all of them equally long."""

    values: SOp
    #: Which line a position belongs to, and its place in it; OUTSIDE where there is none.
    line: SOp
    place: SOp
    #: How many places a line has.
    size: int

    def scattered(self, t: Size) -> SOp:
        """Return the values that stand at place ``t`` of their lines; 0 elsewhere."""
        return where(self.place == t, self.values, 0)

    def beside(self, others: Lines, first: Size) -> Lines:
        """Return these lines and ``others`` of the same values, numbered from ``first`` on."""
        if self.values is not others.values or self.size != others.size:
            raise GraphError("lines are put together if they are of one s-op and of one size")
        return Lines(
            self.values,
            where(others.line >= 0, plus(others.line, first), self.line),
            where(others.place >= 0, others.place, self.place),
            self.size,
        )


def rows_of(m: Matrix) -> Lines:
    """Return the rows of a matrix as lines."""
    row, column = entries_of(m)
    return Lines(m.sop, row, column, number_of(m.columns, "the inner dimension (recipe scatter)"))


def columns_of(m: Matrix) -> Lines:
    """Return the columns of a matrix as lines."""
    return rows_of(m.transpose(0, 1))


def entries_of(m: Matrix) -> tuple[SOp, SOp]:
    """Return the row and column of the entry that lies at each position; OUTSIDE where none does."""
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
        raise GraphError(f"several entries of this {m.shape_label} matrix lie at one position")
    row_stride = max(row_stride, 1)  # of a single entry it may be 0
    within = indices - m.offset
    row, rest = within // row_stride, within % row_stride
    column = rest // column_stride if column_stride > 1 else rest
    there = (within >= 0) & (row < rows) & (column < columns)
    if column_stride > 1:
        there = there & (rest % column_stride == 0)
    return where(there, row, OUTSIDE), where(there, column, OUTSIDE)


def gathered(t: SOp, left: Lines, right: Lines, i: SOp, j: SOp, apart: bool) -> tuple[SOp, SOp]:
    """Return what stands at place ``t`` of line i of ``left``, and of line j of ``right``.

    One head for all t, or two where the sides are not ``apart``. i and j are functions of the position.
    i names a line everywhere, so that no query is left without keys; where j is NONE, only that line is
    read, and what comes from the right is 0 (of two heads, it is line 0).
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
    """Return whether two matrices are known to lie one behind the other, in either order."""
    return _ends_before(a, b) or _ends_before(b, a)


def _ends_before(a: Matrix, b: Matrix) -> bool:
    gap = largest(plus(a.end, times(b.offset, -1)))
    return gap is not None and gap <= 0
