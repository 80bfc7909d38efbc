"""Cofactors, determinant and inverse (Lemma inversion, Algorithm 5, Listings 7 and 8), at any order.

The paper does order 3, with cyclic offsets: the cofactor of (i, j) is a signed sum of products of
entries (i + u, j + v), u and v from 1 to r − 1, indices modulo r. The same works at every order
((r−1)² heads, (r−1)! products), with a factor (−1)^(i+j) where r is even; sensible up to order 5.
Gauss–Jordan elimination (``elimination.py``) works at every order, and there are two more recipes.

A singular matrix has no inverse: its determinant or pivot is 0, or at most ``tolerance`` times the size
of what it was computed from (for the cofactor recipes, the permanent of |A|). Then the division fails,
and the error says so. The tolerance is part of the program, in exact arithmetic, too; with
``tolerance=0`` nothing but 0 counts as 0.

>>> from locum import tokens
>>> inverse(Matrix(tokens, 2, 2)).run([4, 7, 2, 6]).round(12).tolist()
[[0.6, -0.7], [-0.2, 0.4]]
"""

from __future__ import annotations

import itertools

from locum.constructions import elimination
from locum.constructions.matrix import Matrix, as_matrix, coordinates
from locum.constructions.sizes import require_same
from locum.constructions.transpose import transpose
from locum.errors import GraphError
from locum.rasp.handles import SOp
from locum.rasp.python import aggregate, constant, full, indices, length, select, where

#: Determinants and pivots below this, relative to what they are made of, count as 0.
TOLERANCE = 2.0**-48
#: The sum of the entries of |AX − I| must be below this for X to be accepted as an inverse of A.
RESIDUAL = 2.0**-26
#: The order up to which the cofactor recipe is the default: beyond, elimination is far more accurate.
LARGEST_COFACTOR_ORDER = 3

#: The message of errors.
SINGULAR = (
    "inverse: expected a non-singular matrix, got a determinant of 0 up to rounding; try "
    'recipe="gauss-jordan" if the matrix is only ill-conditioned'
)

RECIPES = ("paper", "cofactor", "gauss-jordan", "newton-schulz", "faddeev-leverrier")


def cofactor(m: Matrix, order: int | None = None) -> Matrix:
    """Return the matrix of cofactors: (r−1)² heads in one layer.

    ``order`` must be given where the size of the matrix is an s-op, as in the paper's listing.
    """
    r = _order(m, order)
    i, j = coordinates(m.columns)
    return m.derive(where(indices < m.size, _cofactor_at(m, r, i, j), 0), m.rows, m.columns)


def _cofactor_at(m: Matrix, r: int, i: SOp, j: SOp, permanent: bool = False) -> SOp:
    """Return the cofactor of entry (i, j), at each position that asks for one.

    As a ``permanent``, all signs plus and all entries absolute: what the cofactor's rounding errors
    are to be measured by. It reads the same entries, and so needs no further head.
    """
    total: SOp | None = None
    for columns in itertools.permutations(range(1, r)):
        product: SOp | None = None
        for u, v in enumerate(columns, start=1):
            entry = m.at((i + u) % m.rows, (j + v) % m.columns)
            entry = abs(entry) if permanent else entry
            product = entry if product is None else product * entry
        if product is None:  # order 1: the empty product
            return constant(1)
        signed = product if permanent or _is_even(columns) else -product
        total = signed if total is None else total + signed
    assert total is not None
    return total if permanent or r % 2 else where((i + j) % 2 == 0, total, -total)


def determinant(
    m: Matrix, cofactors: Matrix | None = None, order: int | None = None, recipe: str = "frugal"
) -> Matrix:
    """Return the determinant as a 1×1 matrix (its s-op has it everywhere).

    Expands along the first row. ``paper`` masks that row by one head and adds up by another, over the
    whole input; ``frugal`` does both with one.
    """
    r = _order(m, order)
    m = m.compact()
    cofactors = cofactor(m, r) if cofactors is None else cofactors.compact()
    products = m.sop * cofactors.sop
    if recipe == "paper":
        mask = select(indices, m.columns, "<") & select(indices, indices, "==")
        sop = length * aggregate(full, aggregate(mask, products))
    elif recipe == "frugal":
        sop = r * aggregate(select(indices, m.columns, "<"), products)
    else:
        raise GraphError(f"determinant: expected the recipe frugal or paper, got {recipe!r}")
    return m.derive(sop, 1, 1, cofactors)


def inverse(
    m: Matrix,
    recipe: str | None = None,
    order: int | None = None,
    tolerance: float | None = None,
    steps: int | None = None,
) -> Matrix:
    """Invert. Recipes: paper (order 3), cofactor, gauss-jordan, newton-schulz, faddeev-leverrier.

    The default is cofactor up to order 3 and gauss-jordan beyond. The accuracy differs:

    - gauss-jordan: a relative error of about 2⁻⁵³ times the condition number, as ``numpy.linalg.inv``.
    - paper and cofactor: a relative error of about 2⁻⁵³ · ``per|A| / |det A|``, which can be
      much larger.
    - newton-schulz and faddeev-leverrier: a relative error of at most ``tolerance``, certified by the
      residual AX − I; otherwise an error is raised.

    ``tolerance`` is 2⁻²⁶ by default for the last two. For the others it is 2⁻⁴⁸: pivots, relative to
    the entries of their row, and ``|det A| / per|A|`` must be larger.
    ``steps`` is the number of iterations of newton-schulz. The default is enough for condition numbers
    up to 1,000; :func:`~locum.constructions.elimination.newton_steps` computes it for others.
    """
    r = _order(m, order)
    if recipe is None:
        recipe = "cofactor" if r <= LARGEST_COFACTOR_ORDER else "gauss-jordan"
    if tolerance is None:
        tolerance = RESIDUAL if recipe in ("newton-schulz", "faddeev-leverrier") else TOLERANCE
    match recipe:
        case "paper":
            if r != 3:
                raise GraphError(f"the paper's inverse: expected a matrix of order 3, got order {r}")
            cofactors = cofactor(m, r)
            det = determinant(m, cofactors, r, recipe="paper").sop
            i, j = coordinates(m.columns)
            sizes = cofactors.map(_cofactor_at(m, r, i, j, permanent=True))
            size = determinant(m.map(abs(m.sop)), sizes, r, recipe="paper").sop
            ratio = cofactors.sop / _unless_rounding(det, size, tolerance)
            named = cofactors.derive(ratio, m.rows, m.columns, m, names={ratio: SINGULAR})
            return transpose(named, recipe="paper")
        case "cofactor":
            return _by_adjugate(m, r, tolerance)
        case "gauss-jordan":
            return elimination.gauss_jordan(m, r, tolerance)
        case "newton-schulz":
            return elimination.newton_schulz(m, r, tolerance, steps)
        case "faddeev-leverrier":
            return elimination.faddeev_leverrier(m, r, tolerance)
    raise GraphError(f"inverse: expected one of the recipes {', '.join(RECIPES)}, got {recipe!r}")


def _by_adjugate(m: Matrix, r: int, tolerance: float) -> Matrix:
    """Fetch the adjugate already transposed, the determinant by one head: two layers."""
    i, j = coordinates(m.columns)
    inside = indices < m.size
    adjugate = where(inside, _cofactor_at(m, r, j, i), 0)
    products = where(inside, m.at(j, i), 0) * adjugate
    # Entries (i, 0) of the adjugate belong to the first row of the matrix.
    first = select(indices % m.columns, 0, "==") & select(indices, m.size, "<")
    det = r * aggregate(first, products)
    sizes = where(inside, abs(m.at(j, i)) * _cofactor_at(m, r, j, i, permanent=True), 0)
    ratio = adjugate / _unless_rounding(det, r * aggregate(first, sizes), tolerance)
    return m.derive(ratio, m.rows, m.columns, names={ratio: SINGULAR})


def _unless_rounding(value: SOp, size: SOp, tolerance: float) -> SOp:
    """Replace ``value`` by 0 if it is at most ``tolerance`` times ``size``, in every domain alike."""
    return where(abs(value) <= tolerance * size, 0, value) if tolerance else value


def _order(m: Matrix, order: int | None) -> int:
    m = as_matrix(m, "this operation")
    require_same(m.rows, m.columns, f"expected a square matrix, got a {m.shape_label} one")
    if isinstance(m.rows, SOp):
        if order is None:
            raise GraphError("expected the order of a matrix whose size is an s-op; try order=3")
        return order
    if order is not None:
        require_same(m.rows, order, f"a {m.shape_label} matrix is not of order {order}")
    return m.rows


def _is_even(permutation: tuple[int, ...]) -> bool:
    pairs = itertools.combinations(permutation, 2)
    return sum(a > b for a, b in pairs) % 2 == 0
