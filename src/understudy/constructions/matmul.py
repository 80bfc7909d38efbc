"""The matrix product (Lemma matmul, Algorithm 3, Listing 3), at any shape, in three recipes.

- ``paper``: r heads fetch the rows of A, c heads the columns of B, r·c heads add up the products, each
  at the position of its entry. Erratum E6: the entry (l, l') belongs at l·c + l', not l·k + l'. The
  number k may be an s-op, so that one network serves all k.
- ``fetch``: every entry fetches the k pairs it needs itself: 2k heads in one layer.
- ``tiled``: as the paper's, for all k at once, with few heads: group g of k positions multiplies an
  α×β tile of the result (α + β fetching heads), and one head adds up.

Where the result has more entries than the inputs have tokens (k < rc/(r + c), the paper's condition),
the sequence is padded.

>>> from understudy import tokens
>>> from understudy.constructions.layout import concatenate
>>> a, b = concatenate(tokens, (2, 2), (2, 2))
>>> matmul(a, b).run([1, 2, 3, 4, 5, 6, 7, 8]).tolist()
[[19.0, 22.0], [43.0, 50.0]]
>>> matmul(a, b).sop.architecture.heads, matmul(a, b, recipe="fetch").sop.architecture.heads
([4, 4], [4])
"""

from __future__ import annotations

import itertools
import math

from understudy.constructions.matrix import (
    Matrix,
    as_matrix,
    coordinates,
    number_of,
    plus,
    require_same,
    times,
)
from understudy.errors import GraphError
from understudy.language.python import aggregate, family, indices, select, sum_over, where


def matmul(a: Matrix, b: Matrix, recipe: str = "paper") -> Matrix:
    """a · b. Recipes: paper, fetch, tiled."""
    a, b = as_matrix(a, "matmul"), as_matrix(b, "matmul")
    require_same(
        a.columns,
        b.rows,
        f"cannot multiply a {a.shape} matrix by a {b.shape} one: "
        f"the inner dimensions {a.columns} and {b.rows} differ",
    )
    if recipe not in _RECIPES:
        raise GraphError(f"matmul has no recipe {recipe!r}: choose one of {', '.join(_RECIPES)}")
    return _RECIPES[recipe](a, b)


def _paper(a: Matrix, b: Matrix) -> Matrix:
    r, k, c = number_of(a.rows, "the rows of A"), a.columns, number_of(b.columns, "the columns of B")
    l, m = family(r), family(c)
    t = indices % k
    row = a.at(l, t)  # R_l: row l of A, over and over
    column = b.at(t, m)  # R'_m: column m of B
    first_k = select(indices, k, "<")
    place = first_k & select(plus(times(l, c), m), indices, "==")  # R''
    product = k * sum_over(l, m, aggregate(place, row * column))
    return a.derive(product, r, c, b, room=k)


def _fetch(a: Matrix, b: Matrix) -> Matrix:
    i, j = coordinates(b.columns)
    t = family(number_of(a.columns, "the inner dimension (recipe fetch)"))
    product = sum_over(t, a.at(i, t) * b.at(t, j))
    return a.derive(where(indices < times(a.rows, b.columns), product, 0), a.rows, b.columns, b)


def _tiled(a: Matrix, b: Matrix) -> Matrix:
    r, k, c = number_of(a.rows, "the rows of A"), a.columns, number_of(b.columns, "the columns of B")
    height, width = tile(r, c)
    across = math.ceil(c / width)
    tiles = math.ceil(r / height) * across
    u, v = family(height), family(width)
    t, group = indices % k, indices // k
    row = a.at(plus(times(group // across, height), u), t)
    column = b.at(t, plus(times(group % across, width), v))
    i, j = coordinates(c)
    # One head: each entry looks at the group that has its tile; which of the tile's products it
    # reads there is settled position by position.
    its_group = select(group, plus(times(i // height, across), j // width), "==")
    mine = (i % height == u) & (j % width == v)
    product = sum_over(u, v, where(mine, times(k, aggregate(its_group, row * column)), 0))
    return a.derive(where(indices < r * c, product, 0), r, c, b, room=times(k, tiles))


def tile(r: int, c: int) -> tuple[int, int]:
    """The tile with the fewest fetching heads such that r + c groups hold all of the result.

    >>> tile(3, 4), tile(8, 8)
    ((1, 2), (2, 2))
    """
    fits = (
        (height, width)
        for height, width in itertools.product(range(1, r + 1), range(1, c + 1))
        if math.ceil(r / height) * math.ceil(c / width) <= r + c
    )
    return min(fits, key=lambda shape: (sum(shape), shape))


_RECIPES = {"paper": _paper, "fetch": _fetch, "tiled": _tiled}
