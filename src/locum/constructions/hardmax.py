"""Build the weights of average and unique hard attention (GAHAT and GUHAT in the preliminaries).

*Average* hard attention assigns equal weights to all maxima of a row, like softmax in the limit of
temperature 0.
*Unique* hard attention selects the leftmost maximum. The paper's network uses average hard attention.

>>> from locum import tokens
>>> scores = Matrix(tokens, 1, 3)
>>> hardmax(scores).run([2, 1, 2]).tolist(), hardmax(scores, unique=True).run([2, 1, 2]).tolist()
([[0.5, 0.0, 0.5]], [[1.0, 0.0, 0.0]])
"""

from __future__ import annotations

from locum.constructions.matrix import Matrix, as_matrix, greatest, same_row
from locum.constructions.sizes import Size
from locum.constructions.softmax import kept_entries
from locum.rasp.python import aggregate, indicator, indices, select, where


def hardmax(m: Matrix, unique: bool = False, mask: str | Size | Matrix | None = None) -> Matrix:
    """Return the hard-attention weights of each row of ``m``; a row without unmasked entries is 0.

    The weights are equal for all maxima of a row, or 1 for the leftmost maximum if ``unique`` is true.
    Two entries are equal maxima only if they are exactly equal. ``mask`` is described in
    :func:`~locum.constructions.softmax.softmax`.
    """
    m = as_matrix(m, "hardmax").compact()
    kept, reads = kept_entries(m, mask)
    everything = m.derive(m.sop, m.rows, m.columns, *reads)
    visible = same_row(m) & select(kept, True, "==")
    leftmost = greatest(visible, where(kept, m.sop, 0))
    if unique:
        return everything.map(indicator(kept & (aggregate(leftmost, indices, -1) == indices)))
    ties = indicator(kept & (m.sop == aggregate(leftmost, m.sop)))
    count = m.columns * aggregate(same_row(m), ties)
    return everything.map(where(kept, ties / where(kept, count, 1), 0))
