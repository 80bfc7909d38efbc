"""Build MaxMin and GroupSort (Lemma MaxMin, Algorithm 4, Listing 5), and functions based on them.

GroupSort divides a sequence into groups of g entries and sorts each group in descending order. MaxMin
is GroupSort for g = 2. For MaxMin, in the recipe ``partner``, one head reads the partner of each
position, and the position keeps the maximum or the minimum. The recipe ``paper`` is the paper's listing
with a correction, since the printed listing fails if an odd position contains a negative number
(erratum E2). The general GroupSort computes the rank of each entry within its group and moves the entry
to that rank. For g > 1, the number of heads does not depend on g or on the length.

>>> from locum import tokens
>>> maxmin(Matrix(tokens, 1, 4)).run([1, -2, 3, 4]).tolist()
[[1.0, -2.0, 4.0, 3.0]]
>>> groupsort(Matrix(tokens, 2, 3), 3).run([1, -2, 3, 5, 4, 5]).tolist()
[[3.0, 1.0, -2.0], [5.0, 5.0, 4.0]]
"""

from __future__ import annotations

from locum.constructions.matrix import Matrix, as_matrix, coordinates, greatest
from locum.constructions.sizes import Size, number_of
from locum.errors import GraphError
from locum.rasp.handles import SOp
from locum.rasp.python import (
    aggregate,
    indices,
    maximum,
    minimum,
    select,
    selector_width,
    where,
)
from locum.settings import require_integer


def maxmin(m: Matrix, recipe: str = "partner") -> Matrix:
    """Sort entries 2t and 2t + 1 (in row-major order) for each t, the larger entry first."""
    m = as_matrix(m, "maxmin").compact()
    _require_groups(m, 2)
    if recipe == "partner":
        sorted_ = _by_partner(m.sop, m.size)
    elif recipe == "paper":
        sorted_ = _by_flipping(m.sop)
    else:
        raise GraphError(f"maxmin: expected the recipe partner or paper, got {recipe!r}")
    return m.derive(where(m.inside, sorted_, 0), m.rows, m.columns)


def _by_partner(x: SOp, count: Size) -> SOp:
    even = indices % 2 == 0
    # A single entry at the end (possible if the size is an s-op) is its own partner.
    other = where(even, minimum(indices + 1, count - 1), indices - 1)
    partner = aggregate(select(indices, other, "=="), x)
    return where(even, maximum(x, partner), minimum(x, partner))


def _by_flipping(x: SOp) -> SOp:
    """Sort pairs as in Algorithm 4: find the pairs in the wrong order and exchange their entries."""
    even = indices % 2 == 0
    itself = aggregate(select(indices, indices, "=="), x)
    following = aggregate(select(indices, indices + 1, "==") & select(0, indices % 2, "=="), x)
    flips = where(even & (itself - following < 0), 1, 0)  # the listing lacks `even`: erratum E2
    flips = flips + aggregate(select(indices + 1, indices, "=="), flips)
    other = indices + where(even, 1, -1)
    return where(flips == 1, aggregate(select(indices, other, "=="), x), itself)


def groupsort(m: Matrix, group: int) -> Matrix:
    """Sort each group of ``group`` consecutive entries (in row-major order) in descending order.

    Equal entries keep their order.
    """
    group = require_integer(group, "group", error=GraphError)
    m = as_matrix(m, "groupsort").compact()
    _require_groups(m, group)
    if group == 1:
        return m
    x = m.sop
    which = indices // group
    together = select(which, which, "==")
    before = select(x, x, ">") | (select(x, x, "==") & select(indices, indices, "<"))
    place = which * group + selector_width(together & before)
    moved = aggregate(select(place, indices, "=="), x)
    return m.derive(where(m.inside, moved, 0), m.rows, m.columns)


def maxout(m: Matrix, group: int, through: str = "best") -> Matrix:
    """Return the maximum of each group of ``group`` consecutive columns: an r×c matrix becomes
    r×(c/group).

    The default uses one hard-attention head (``best``) for a matrix in row-major order from position 0.
    With ``through="maxmin"``, ⌈log₂ group⌉ levels of MaxMin are used.
    """
    m = as_matrix(m, "maxout").compact()
    columns = number_of(m.columns, "the number of columns")
    if columns % require_integer(group, "group", error=GraphError):
        raise GraphError(f"maxout: expected groups that divide {m.columns} columns, got {group!r}")
    if group == 1:
        return m
    if through == "maxmin":
        return _tournament(m, group)
    if through != "best":
        raise GraphError(f"maxout: expected through='best' or through='maxmin', got {through!r}")
    which = indices // group
    winner = aggregate(greatest(select(which, which, "=="), m.sop), m.sop)
    every = m.derive(winner, m.rows, columns)
    return every.slice(1, 0, columns, group)


def _tournament(m: Matrix, group: int) -> Matrix:
    """Return the maximum of each group of columns by repeated maxima of pairs.

    If the number of entries in a group is odd, the last entry is paired with itself.
    """
    while group > 1:
        half, columns = (group + 1) // 2, number_of(m.columns, "columns")
        groups = columns // group
        i, j = coordinates(groups * 2 * half)
        # Column 2t + s of a group is its (2t + s)-th entry, or its last one if there is none.
        within = minimum(j % (2 * half), group - 1)
        paired = m.derive(m.at(i, j // (2 * half) * group + within), m.rows, groups * 2 * half)
        won = maxmin(paired)
        m = won.slice(1, 0, groups * 2 * half, 2)
        group = half
    return m


def interleaved(m: Matrix, other: SOp) -> Matrix:
    """Interleave the n entries of ``m`` with the values of ``other`` as a 1×2n matrix of pairs for
    MaxMin.
    """
    m = m.compact()
    count = m.size
    fetched = aggregate(select(indices, indices // 2, "=="), m.sop)
    partner = aggregate(select(indices, indices // 2, "=="), other)
    pair = where(indices % 2 == 0, fetched, partner)
    return m.derive(where(indices < 2 * count, pair, 0), 1, 2 * count)


def first_of_pairs(m: Matrix, rows: Size, columns: Size) -> Matrix:
    """Return the first entry of each pair in a compact 1×2n matrix, as a view with ``rows`` rows
    and ``columns`` columns.
    """
    return Matrix(m.sop, rows, columns, 0, 2 * columns, 2, m.reads, m.needs, m.names)


def _require_groups(m: Matrix, group: int) -> None:
    if type(m.size) is int and m.size % group:
        raise GraphError(
            f"expected groups that divide the {m.size} entries of a {m.shape_label} matrix, got {group}"
        )
