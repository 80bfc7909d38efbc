"""Hard attention's weights: what softmax tends to, in its two forms (GUHAT and GAHAT, preliminaries).

*Average* hard attention spreads the weight evenly over all greatest entries of a row; *unique* hard
attention gives it to the leftmost of them. The paper's network is of the former kind, as RASP is.

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
    """Weigh the greatest entries of each row that the mask keeps; a row that keeps none is 0.

    Entries tie only if they are equal to the last bit.
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
