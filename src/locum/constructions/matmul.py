"""Multiply matrices of any shape by four recipes (Lemma matmul, Algorithm 3, Listing 3).

Let A be an r×k matrix and B a k×c matrix.

- ``paper``: r heads fetch the rows of A, and c heads fetch the columns of B. Then r·c heads add up the
  products, each at the position of one entry. The entry (l, l') belongs at position l·c + l', not l·k +
  l' (erratum E6). The number k may be an s-op, so that one network works for all k.
- ``fetch``: every entry of the result fetches the k pairs that it needs, with 2k heads in one layer.
  Positions after the end of the result repeat entry (0, 0), so that no selection is empty and no mask
  is needed.
- ``tiled``: as with ``paper``, k may be an s-op, but fewer heads are normally needed. Each group of k
  positions computes an α×β tile of the result with α + β fetching heads, and one head adds up the
  products. The number k occurs only in functions of ``indices``, and no selection is empty.
- ``scatter``: a feed-forward scatters the entries along k (``lines.py``), and one head reads them.
  Positions after the end of the result are 0. If A and B may overlap, two heads read the entries, and
  these positions repeat entry (0, 0).

Another construction, ``own_token_product``, uses 2k − 1 heads in one layer and places the entries of
the result at positions of tokens.

The paper's condition is k ≥ rc/(r + c). Otherwise, the result has more entries than the inputs have
tokens, and the sequence is padded if necessary.

>>> from locum import tokens
>>> from locum.constructions.layout import concatenate
>>> a, b = concatenate(tokens, (2, 2), (2, 2))
>>> matmul(a, b).run([1, 2, 3, 4, 5, 6, 7, 8]).tolist()
[[19.0, 22.0], [43.0, 50.0]]
>>> [matmul(a, b, recipe).sop.architecture.heads for recipe in ("paper", "fetch", "tiled", "scatter")]
[[4, 4], [4], [2, 1], [1]]
"""

from __future__ import annotations

import itertools
import math

from locum.constructions.lines import NONE, columns_of, gathered, lie_apart, rows_of
from locum.constructions.matrix import Matrix, as_matrix, coordinates
from locum.constructions.sizes import number_of, plus, require_same, times
from locum.errors import GraphError
from locum.rasp.handles import SOp
from locum.rasp.python import aggregate, family, indices, minimum, select, sum_over, where


def matmul(a: Matrix, b: Matrix, recipe: str = "paper") -> Matrix:
    """Return the matrix product a · b; ``recipe`` is "paper", "fetch", "tiled" or "scatter"."""
    a, b = factors(a, b)
    if recipe not in _RECIPES:
        raise GraphError(f"matmul: expected one of the recipes {', '.join(_RECIPES)}, got {recipe!r}")
    return _RECIPES[recipe](a, b)


def factors(a: Matrix, b: Matrix) -> tuple[Matrix, Matrix]:
    """Return both arguments, or raise an error if they are not matrices or their inner dimensions are
    different numbers.
    """
    a, b = as_matrix(a, "matmul"), as_matrix(b, "matmul")
    require_same(
        a.columns,
        b.rows,
        f"cannot multiply a {a.shape_label} matrix by a {b.shape_label} one: "
        f"the inner dimensions {a.columns} and {b.rows} differ",
    )
    return a, b


def weighted_mean(weights: Matrix, values: Matrix, recipe: str = "fetch") -> Matrix:
    """Return, for each row of ``weights``, the mean of the rows of ``values`` with these weights.

    The weights need not sum to 1. The product is divided by the sums of the weights, which are computed
    from entries that the product reads. The number of heads is therefore the same as for the product.
    The mean is undefined if the weights of a row sum to 0. ``recipe`` is "fetch" or "scatter".

    >>> from locum import tokens
    >>> from locum.constructions.layout import concatenate
    >>> weighted_mean(*concatenate(tokens, (1, 2), (2, 2))).run([1, 3, 10, 20, 30, 40]).tolist()
    [[25.0, 35.0]]
    """
    weights, values = factors(weights, values)
    if recipe not in _PAIRS:
        raise GraphError(f"weighted_mean: expected the recipe {', '.join(_PAIRS)}, got {recipe!r}")
    t, weight, value = _PAIRS[recipe](weights, values)
    mean = sum_over(t, weight * value) / sum_over(t, weight)
    return weights.derive(mean, weights.rows, values.columns, values)


def _paper(a: Matrix, b: Matrix) -> Matrix:
    r, k, c = number_of(a.rows, "the rows of A"), a.columns, number_of(b.columns, "the columns of B")
    l, m = family(r), family(c)
    t = indices % k
    row = a.at(l, t)  # R_l: row l of A, repeated
    column = b.at(t, m)  # R'_m: column m of B
    first_k = select(indices, k, "<")
    place = first_k & select(plus(times(l, c), m), indices, "==")  # R''
    product = k * sum_over(l, m, aggregate(place, row * column))
    return a.derive(product, r, c, b, room=k)


def _fetch(a: Matrix, b: Matrix) -> Matrix:
    t, left, right = fetched(a, b)
    return a.derive(sum_over(t, left * right), a.rows, b.columns, b)


def _scatter(a: Matrix, b: Matrix) -> Matrix:
    t, left, right = _scattered(a, b)
    return a.derive(sum_over(t, left * right), a.rows, b.columns, b)


def fetched(a: Matrix, b: Matrix) -> tuple[SOp, SOp, SOp]:
    """Return a family t and, at entry (i, j) of the product, the factors A[i, t] and B[t, j], with two
    heads for each t.

    The family is an index of the inner dimension. The result is (t, A[i, t], B[t, j]).
    """
    t = family(number_of(a.columns, "the inner dimension (recipe fetch)"))
    i, j, inside = _entry(a, b)
    return t, a.at(where(inside, i, 0), t), b.at(t, where(inside, j, 0))


def _scattered(a: Matrix, b: Matrix) -> tuple[SOp, SOp, SOp]:
    """Return the same three s-ops as :func:`fetched`, but with one head for all values of t.

    If A and B may overlap, two heads are used. Positions after the end of the product can differ.
    """
    t = family(number_of(a.columns, "the inner dimension (recipe scatter)"))
    i, j, inside = _entry(a, b)
    i, j = where(inside, i, 0), where(inside, j, NONE)
    return t, *gathered(t, rows_of(a), columns_of(b), i, j, lie_apart(a, b))


def _entry(a: Matrix, b: Matrix) -> tuple[SOp, SOp, SOp]:
    """Return the row and column of each position of the product, and whether the position contains an
    entry.
    """
    return *coordinates(b.columns), indices < times(a.rows, b.columns)


def _tiled(a: Matrix, b: Matrix) -> Matrix:
    r, k, c = number_of(a.rows, "the rows of A"), a.columns, number_of(b.columns, "the columns of B")
    height, width = tile(r, c)
    across = math.ceil(c / width)
    tiles = math.ceil(r / height) * across
    u, v = family(height), family(width)
    t, group = indices % k, indices // k
    mine = where(group < tiles, group, 0)  # groups without a tile repeat the work of the first one
    row = a.at(_tiles_entry(mine // across, height, u, r), t)
    column = b.at(t, _tiles_entry(mine % across, width, v, c))
    i, j = coordinates(c)
    inside = indices < r * c
    # One head: each entry reads the group of its tile. The position determines which product of the
    # tile the entry uses.
    its_group = select(group, where(inside, plus(times(i // height, across), j // width), 0), "==")
    # A factor turns the mean into a sum. Like all terms with k, it depends only on the position.
    factor = where(inside & (i % height == u) & (j % width == v), k, 0)
    product = sum_over(u, v, factor * aggregate(its_group, row * column))
    return a.derive(product, r, c, b, room=times(k, tiles))


def _tiles_entry(tile: SOp, size: int, within: SOp, count: int) -> SOp:
    """Return the row (or column) with index ``within`` in a tile, or the last of ``count`` rows after
    the end.
    """
    entry = plus(times(tile, size), within)
    assert isinstance(entry, SOp)
    return minimum(entry, count - 1) if count % size else entry


def tile(r: int, c: int) -> tuple[int, int]:
    """Return the height and width of tiles with the fewest fetching heads, for an r×c result.

    At most r + c groups of positions are available, so at most r + c tiles may cover the result.

    >>> tile(3, 4), tile(8, 8)
    ((1, 2), (2, 2))
    """
    fits = (
        (height, width)
        for height, width in itertools.product(range(1, r + 1), range(1, c + 1))
        if math.ceil(r / height) * math.ceil(c / width) <= r + c
    )
    return min(fits, key=lambda shape: (sum(shape), shape))


_RECIPES = {"paper": _paper, "fetch": _fetch, "tiled": _tiled, "scatter": _scatter}
#: Recipes that read the pairs of factors for entry (i, j), one for each index of the inner dimension.
_PAIRS = {"fetch": fetched, "scatter": _scattered}
