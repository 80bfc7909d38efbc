"""U of width 1: three attention layers of one head each.

Each product is a head that reads rows and columns together, behind a feed-forward that scatters entries
along the inner dimension (``constructions/lines.py``). XA and XV are one product: both have the rows of
X on the left, and on the right the columns of A and, numbered behind them, those of V; each position
asks for one column of the two. The sums of the softmax are those of the entries that the last product
reads anyway, and the division follows it.

A head reads all that is at a position, so what it reads together must lie apart, and in one layer: XA
lies behind X, and XV behind the scores. A product is 0 where no entry of it lies, so it is simply added
to what else is read with it, as in a residual stream. Where n > d all this takes more room than there
are tokens, and the sequence is padded.
"""

from __future__ import annotations

from locum.constructions import Matrix, weighted_mean
from locum.constructions.lines import NONE, columns_of, entries_of, gathered, rows_of
from locum.errors import GraphError
from locum.rasp.handles import SOp
from locum.rasp.python import family, maximum, sum_over, where
from locum.simulators.attention_order import AttentionOrder
from locum.simulators.formula.head import Of, Steps, Style, mask_of


def width_one_head(order: AttentionOrder, X: Matrix, Y: Matrix, of: Of, style: Style) -> Steps:
    """Return σ(X A Xᵀ) X V by three heads, one above the other."""
    if order.kind != "softmax" or order.pooling != "softmax":
        raise GraphError("the width-1 recipe is for softmax attention (kind and pooling softmax)")
    if order.bias or Y is not X:
        raise GraphError("the width-1 recipe is for self-attention without biases in its projections")
    if order.mask in ("matrix", "keys"):
        raise GraphError(
            f"the width-1 recipe takes a causal mask or none: a mask of {order.mask} among the tokens "
            "would have to be read by another head"
        )
    n, d, d_v = X.places.rows, order.d, order.d_v
    behind_X = X.places.positions.stop
    behind_scores = max(behind_X + n * d, n * n)
    XA, XV = Matrix(X.sop, n, d, behind_X), Matrix(X.sop, n, d_v, behind_scores)
    projections = _projections(X, of("A"), of("V"), XA, XV)
    known = X.derive(projections, n, d, of("A"), of("V"), room=XV.end)
    first = known.map(where(X.inside, X.sop, 0) + projections)  # X, and XA and XV behind it
    projected, keys = first.replace(offset=behind_X), first.transpose(0, 1)
    scores = style.matmul(projected, keys)
    second = scores.sop + projections  # the scores, and XV behind them
    values = known.replace(sop=second, shape=(n, d_v), strides=(d_v, 1), offset=behind_scores)
    mask = mask_of(order, X, of)
    return {
        "XA": projected,
        "Xᵀ": keys,
        "scores": scores,
        "softmax": style.softmax(scores, mask),  # to be looked at: the output is not made of it
        "XV": values,
        "output": weighted_mean(style.exponentials(scores, mask), values, "scatter"),
    }


def _projections(X: Matrix, A: Matrix, V: Matrix, XA: Matrix, XV: Matrix) -> SOp:
    """Return the products with A and with V by one head, each where it is to lie."""
    i, j = entries_of(XA)
    k, l = entries_of(XV)
    t, d = family(X.places.columns), X.places.columns
    left, right = gathered(
        t,
        rows_of(X),
        columns_of(A).beside(columns_of(V), d),
        maximum(maximum(i, k), 0),
        where(j >= 0, j, where(l >= 0, d + l, NONE)),
        apart=True,
    )
    return sum_over(t, left * right)
