"""Softmax of each row (Lemma softmax, Algorithm 2, Listing 2).

The paper's form is exp(x) over the row's sum of exp(x), each row's sum by a head of its own, that is
a family of r heads. Erratum E1: the listing's base is 2.73; the figure was made with 2.718; here it
is e unless ``base`` says otherwise. By default the row maximum is subtracted first (by a
hard-attention head, ``best``), so that nothing overflows; ``stable=False`` is the paper's plain form.

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
    """Return the softmax of the rows of ``m``.

    ``mask`` leaves entries out, which become 0: "causal" keeps column j ≤ row i; a number (or an s-op)
    keeps so many first columns; a matrix keeps where it is not 0. A row that keeps nothing is 0.
    Recipes: ``paper`` has one head per row, ``frugal`` one head for all.
    """
    m = as_matrix(m, "softmax").compact()
    if base is not None and not base > 0:
        raise GraphError(f"base of a softmax: expected a positive number, got {base!r}")
    kept, reads = kept_entries(m, mask)
    everything = m.derive(m.sop, m.rows, m.columns, *reads)
    safe = where(kept, m.sop, 0)
    if stable:
        visible = same_row(m) & select(kept, True, "==")
        # What is subtracted is the entry of greatest weight: the least, if the base is below 1.
        weighty = safe if base is None or base >= 1 else -safe
        safe = where(kept, safe - aggregate(greatest(visible, weighty), safe), 0)
    power = exp(safe) if base is None else constant(base) ** safe
    weight = where(kept, power, 0)
    rows = _row_sums(m, weight, recipe)
    # The denominator is guarded where there is no row: RASP divides at every position.
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
    """Select what lies in one row: from row·c up to (row + 1)·c, as the listing has it."""
    begin = times(row, m.columns)
    end = plus(begin, m.columns)
    if keys:
        return select(indices, begin, ">=") & select(indices, end, "<")
    return select(begin, indices, "<=") & select(end, indices, ">")


def kept_entries(m: Matrix, mask: str | Size | Matrix | None) -> tuple[SOp, list[Matrix]]:
    """Return which positions of a compact matrix count, and what else had to be read to know it."""
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
        f"expected the mask causal, a number of columns, or a matrix, got {mask!r}; constant_matrix "
        "makes a matrix of an array"
    )
