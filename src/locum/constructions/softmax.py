"""Compute the softmax of each row of a matrix (Lemma softmax, Algorithm 2, Listing 2).

The paper's form divides exp(x) by the sum of exp(x) over the row. This form uses a separate head for
each row, that is, a family of r heads. The base in the listing is 2.73, while the paper's figure was
made with 2.718 (erratum E1); the default in Locum is e. By default, a hard-attention head (``best``)
determines the row maximum, which is subtracted to avoid overflow. ``stable=False`` is the paper's form.

>>> from locum import tokens
>>> softmax(Matrix(tokens, 2, 2)).run([0, 0, 3000, -3000]).tolist()
[[0.5, 0.5], [1.0, 0.0]]
"""

from __future__ import annotations

from locum.constructions.matrix import Matrix, as_matrix, coordinates, greatest, same_row
from locum.constructions.sizes import Size, number_of, plus, require_same, times
from locum.errors import GraphError
from locum.rasp.handles import Selector, SOp
from locum.rasp.python import (
    aggregate,
    constant,
    exp,
    family,
    indices,
    select,
    sum_over,
    where,
)


def softmax(
    m: Matrix,
    base: float | None = None,
    stable: bool = True,
    mask: str | Size | Matrix | None = None,
    recipe: str = "paper",
) -> Matrix:
    """Return the softmax of each row of ``m``.

    Masked entries become 0, and a row without unmasked entries is 0. ``mask`` determines the entries to
    keep:

    - "causal": the columns j ≤ i in row i;
    - a number or an s-op: this number of columns, counted from the first one;
    - a matrix: the entries at which the matrix is not 0.

    The recipe ``paper`` computes the row sums with one head per row, and ``frugal`` with one head for
    all rows.
    """
    m = as_matrix(m, "softmax").compact()
    if base is not None and not base > 0:
        raise GraphError(f"base of a softmax: expected a positive number, got {base!r}")
    kept, reads = kept_entries(m, mask)
    everything = m.derive(m.sop, m.rows, m.columns, *reads)
    safe = where(kept, m.sop, 0)
    if stable:
        visible = same_row(m) & select(kept, True, "==")
        # Subtract the entry with the largest weight, which is the minimum if the base is below 1.
        weighty = safe if base is None or base >= 1 else -safe
        safe = where(kept, safe - aggregate(greatest(visible, weighty), safe), 0)
    power = exp(safe) if base is None else constant(base) ** safe
    weight = where(kept, power, 0)
    rows = _row_sums(m, weight, recipe)
    # The denominator is 1 at masked entries and outside the matrix: RASP divides at every position.
    return everything.map(weight / where(kept, rows, 1))


def _row_sums(m: Matrix, weight: SOp, recipe: str) -> SOp:
    if recipe == "frugal":
        return m.columns * aggregate(same_row(m), weight)
    if recipe != "paper":
        raise GraphError(f"softmax: expected the recipe paper or frugal, got {recipe!r}")
    l = family(number_of(m.rows, "the number of rows (recipe paper)"))
    block = _in_row(m, l, keys=True) & _in_row(m, l, keys=False)
    return sum_over(l, m.columns * aggregate(block, weight))


def _in_row(m: Matrix, row: SOp, keys: bool) -> Selector:
    """Return a selector that selects the positions row·c to (row + 1)·c − 1, as in the listing.

    The condition applies to keys, or to queries if ``keys`` is false.
    """
    begin = times(row, m.columns)
    end = plus(begin, m.columns)
    if keys:
        return select(indices, begin, ">=") & select(indices, end, "<")
    return select(begin, indices, "<=") & select(end, indices, ">")


def kept_entries(m: Matrix, mask: str | Size | Matrix | None) -> tuple[SOp, list[Matrix]]:
    """Return an s-op that is true at the unmasked positions of a row-major matrix, and a list of the
    matrices that the mask reads.
    """
    i, j = coordinates(m.columns)
    if mask is None:
        return m.inside, []
    if isinstance(mask, Matrix):
        problem = f"a {mask.shape_label} mask does not fit a {m.shape_label} matrix"
        require_same(mask.rows, m.rows, problem)
        require_same(mask.columns, m.columns, problem)
        mask = mask.compact()
        return m.inside & (mask.sop != 0), [mask]
    if isinstance(mask, SOp) or (type(mask) is int and mask >= 0):
        return m.inside & (j < mask), []
    if isinstance(mask, str) and mask == "causal":
        return m.inside & (j <= i), []
    raise GraphError(
        f"expected 'causal', a number of columns or a matrix as the mask, got {mask!r}; try "
        "constant_matrix(array)"
    )
