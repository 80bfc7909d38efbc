"""Define U of width 1: three attention layers with one head each, if T has one head.

A feed-forward scatters entries along the inner dimension, and one head then reads a row and a column
together (``constructions/lines.py``). This head computes a product. XA and XV are computed as one
product, since both have the rows of X on the left. On the right are the columns of A, followed by the
columns of V. Each entry of XA or XV reads one of these columns. The sums of the softmax use the same
entries as the last product, and the division follows the product.

A head reads all values at a position. Matrices that one head reads together must therefore be at
different positions: XA follows X, and XV follows the scores. A product is 0 outside its entries, so it
can be added to the other values, as in a residual stream. If these matrices need more positions than
the input has tokens (for one head, if n > d), the sequence is padded.
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
    """Return the steps of σ(X A Xᵀ) X V.

    If T has one head, the output is computed by three heads in successive layers. With the mask "rows",
    one more head reads the number of visible rows.
    """
    if order.kind != "softmax" or order.pooling != "softmax":
        raise GraphError("the width-1 recipe is for softmax attention (kind and pooling softmax)")
    if order.bias or Y is not X:
        raise GraphError("the width-1 recipe is for self-attention without biases in its projections")
    if order.mask in ("matrix", "keys"):
        raise GraphError(
            "the width-1 recipe requires a causal mask or no mask, since another head would have to "
            f"read a mask of {order.mask}"
        )
    n, d, d_v = X.places.rows, order.d, order.d_v
    behind_X = X.places.positions.stop
    behind_scores = max(behind_X + n * d, n * n)
    XA, XV = Matrix(X.sop, n, d, behind_X), Matrix(X.sop, n, d_v, behind_scores)
    projections = _projections(X, of("A"), of("V"), XA, XV)
    known = X.derive(projections, n, d, of("A"), of("V"), room=XV.end)
    first = known.map(where(X.inside, X.sop, 0) + projections)  # contains X, then XA and XV
    projected, keys = first.replace(offset=behind_X), first.transpose(0, 1)
    scores = style.matmul(projected, keys)
    second = scores.sop + projections  # contains the scores, then XV
    values = known.replace(sop=second, shape=(n, d_v), strides=(d_v, 1), offset=behind_scores)
    mask = mask_of(order, X, of)
    return {
        "XA": projected,
        "Xᵀ": keys,
        "scores": scores,
        "softmax": style.softmax(scores, mask),  # for inspection; the output does not depend on it
        "XV": values,
        "output": weighted_mean(style.exponentials(scores, mask), values, "scatter"),
    }


def _projections(X: Matrix, A: Matrix, V: Matrix, XA: Matrix, XV: Matrix) -> SOp:
    """Return the s-op of the products XA and XV, computed by one head, each at its positions."""
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
