"""Build cofactors, determinants and inverses (Lemma inversion, Algorithm 5, Listings 7 and 8).

For order 3, the paper uses cyclic offsets. The cofactor of (i, j) is a signed sum of products of
entries (i + u, j + v). Here u and v are from 1 to r − 1, and indices are taken modulo r. The same
method works for every order r, with a factor (−1)^(i+j) for even r. This method uses (r−1)² heads and
(r−1)! products, so it is practical up to order 5. Gauss–Jordan elimination and two iterative recipes
also work for every order (``elimination.py``).

A singular matrix has no inverse. With the recipes cofactor, paper and gauss-jordan, a matrix counts as
singular if its determinant or a pivot is at most ``tolerance`` times the size of its terms. (For
cofactor and paper, this size is the permanent of |A|.) The division by 0 then raises an error. In the
domain ``ieee``, and for PyTorch tensors with the fast executor, the quotient is infinite or NaN. With
``tolerance=0``, only 0 counts as 0. With the iterative recipes, the residual must be less than
``tolerance``. A larger or equal residual also leads to a division by 0. The tolerance is part of the
program, also in exact arithmetic.

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

#: Determinants and pivots up to this bound, relative to the size of their terms, count as 0.
TOLERANCE = 2.0**-48
#: By default, iterative recipes accept X if the entries of |AX − I| sum to less than this bound.
RESIDUAL = 2.0**-26
#: Maximum order for which cofactor is the default recipe. Elimination is more accurate above it.
LARGEST_COFACTOR_ORDER = 3

#: The error message for a determinant of 0.
SINGULAR = (
    "inverse: expected a non-singular matrix, got a determinant of 0 up to rounding; try "
    'recipe="gauss-jordan" if the matrix is only ill-conditioned'
)

RECIPES = ("paper", "cofactor", "gauss-jordan", "newton-schulz", "faddeev-leverrier")


def cofactor(m: Matrix, order: int | None = None) -> Matrix:
    """Return the matrix of cofactors of an r×r matrix, with at most (r−1)² heads in one layer.

    If the size of the matrix is an s-op, as in the paper's listing, ``order`` is required, and the size
    may need an earlier layer.
    """
    r = _order(m, order)
    i, j = coordinates(m.columns)
    return m.derive(where(indices < m.size, _cofactor_at(m, r, i, j), 0), m.rows, m.columns)


def _cofactor_at(m: Matrix, r: int, i: SOp, j: SOp, permanent: bool = False) -> SOp:
    """Return the cofactor of entry (i, j), where i and j are s-ops, at each position.

    With ``permanent``, all signs are positive and all entries are replaced by their absolute values. A
    small multiple of this result bounds the rounding errors of the cofactor. Both results need the same
    heads.
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
    """Return the determinant as a 1×1 matrix; its s-op equals the determinant at every position.

    The determinant is expanded along the first row. The recipe ``paper`` selects that row with one head
    and adds up its products over the whole input with another head. The recipe ``frugal`` uses one head
    for both.
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
    """Return the inverse of a matrix by one of the recipes that are listed below.

    The default recipe is cofactor up to order 3 and gauss-jordan for larger orders. The recipe paper
    requires order 3. The recipes differ in accuracy, in float64:

    - gauss-jordan: a relative error of about 2⁻⁵³ times the condition number, like
      ``numpy.linalg.inv``.
    - paper and cofactor: a relative error of about 2⁻⁵³ · ``per|A| / |det A|``, which can be much
      larger.
    - newton-schulz and faddeev-leverrier: a relative error of at most ``tolerance``, certified by the
      residual AX − I.

    The default of ``tolerance`` is 2⁻²⁶ for newton-schulz and faddeev-leverrier, and 2⁻⁴⁸ for the other
    recipes. In the other recipes, ``|det A| / per|A|`` or each pivot, relative to the entries of its
    row, must be larger than ``tolerance``. ``steps`` is the number of iterations of newton-schulz. The
    default is enough for condition numbers up to 1,000;
    :func:`~locum.constructions.elimination.newton_steps` computes the number for larger condition
    numbers.
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
    """Return the inverse as the adjugate divided by the determinant, in two layers."""
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
    """Return ``value``, or 0 if ``value`` is at most ``tolerance`` times ``size``, in every number
    domain.
    """
    return where(abs(value) <= tolerance * size, 0, value) if tolerance else value


def _order(m: Matrix, order: int | None) -> int:
    m = as_matrix(m, "this operation")
    require_same(m.rows, m.columns, f"expected a square matrix, got a {m.shape_label} one")
    if isinstance(m.rows, SOp):
        if order is None:
            raise GraphError(
                "expected the order of a matrix whose size is an s-op, got none; try order=3"
            )
        return order
    if order is not None:
        require_same(m.rows, order, f"a {m.shape_label} matrix is not of order {order}")
    return m.rows


def _is_even(permutation: tuple[int, ...]) -> bool:
    pairs = itertools.combinations(permutation, 2)
    return sum(a > b for a, b in pairs) % 2 == 0
