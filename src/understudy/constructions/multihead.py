"""The multi-head lemma: an operation on H blocks at once, without a second implementation.

The operation is applied to views whose offset contains a family parameter h, so its heads become
families of heads; then one head brings the H results together, one below the other. Blocks cannot
interfere: head h reads at its own offsets only. (Erratum E13: in the paper's form every ``length``
of a listing must become ``length/H``, too; here sizes are the block's own.)
"""

from __future__ import annotations

from collections.abc import Callable

from understudy.constructions.matrix import Matrix, number_of, plus, times
from understudy.errors import GraphError
from understudy.language.python import family, indices, sum_over, where


def multihead(operation: Callable[..., Matrix], heads: int, *firsts: Matrix) -> Matrix:
    """``operation`` on H sets of matrices, given the first set; the results stacked, (H·r)×c.

    The other blocks of each operand follow its first one: A⁰ ∥ A¹ ∥ … ∥ B⁰ ∥ B¹ ∥ …, as in the paper.

    >>> from understudy import tokens
    >>> from understudy.constructions.transpose import transpose
    >>> multihead(transpose, 2, Matrix(tokens, 1, 2)).run([1, 2, 3, 4]).tolist()
    [[1.0], [2.0], [3.0], [4.0]]
    """
    if type(heads) is not int or heads < 1:
        raise GraphError(f"multihead needs a whole number of heads, one or more, not {heads!r}")
    h = family(heads)
    views = []
    for first in firsts:
        size = number_of(first.rows, "rows") * number_of(first.columns, "columns")
        views.append(
            Matrix(
                first.sop,
                first.rows,
                first.columns,
                plus(first.offset, times(h, size)),
                first.row_stride,
                first.column_stride,
                names=first.names,
            )
        )
    result = operation(*views)
    r, c = number_of(result.rows, "rows"), number_of(result.columns, "columns")
    local = indices % (r * c)
    entry = result.at(local // c, local % c)
    stacked = sum_over(h, where(indices // (r * c) == h, entry, 0))
    return result.derive(stacked, heads * r, c)
