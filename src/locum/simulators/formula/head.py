"""Define the attention head of each kind as a formula on views of one sequence.

The arguments of each function in ``HEADS`` include X, the input of the queries, and Y, the input of the
keys. Y is X itself or a memory. ``of`` is a function from the name of a matrix of T to its view. Each
of these functions returns the steps by name; the last step is the output of the head. In a family of
heads, only the views depend on the head.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

from locum.constructions import (
    Matrix,
    add,
    broadcast_row,
    elu_plus_one,
    hardmax,
    matmul,
    multiply,
    row_sums,
    softmax,
    transpose,
    weighted_mean,
)
from locum.constructions.activations import ACTIVATIONS
from locum.constructions.matrix import coordinates
from locum.constructions.sizes import Size
from locum.constructions.softmax import kept_entries
from locum.errors import GraphError
from locum.rasp.python import constant, exp, where
from locum.settings import require_choice, require_number
from locum.simulators.attention_order import AttentionOrder

#: A function from the name of a matrix of T to its view.
Of = Callable[[str], Matrix]
#: Intermediate results by name, in order.
Steps = dict[str, Matrix]

#: Recipes of U. The first three compute products in different ways. "inverse" is the alternative
#: construction (``inverse_recipe.py``), and "width-1" has one head in each layer (``width_one.py``).
RECIPES = ("paper", "fetch", "tiled", "inverse", "width-1")

#: The score of a hidden key. This score is never the row maximum, and its exponential after subtracting
#: the maximum is 0. In single precision, the score is −∞.
HIDDEN = -sys.float_info.max


@dataclass(frozen=True)
class Style:
    """The recipe that U uses, and the form of the exponentials in a softmax."""

    recipe: str
    stable: bool
    base: float | None
    #: Whether a softmax may be divided by its sums after the product with the values.
    divide_last: bool = True

    def __post_init__(self) -> None:
        require_choice(self.recipe, RECIPES, "recipe", error=GraphError)
        if self.recipe == "width-1" and self.stable:
            raise GraphError(
                "the width-1 recipe has one head in each layer, and a stable softmax needs another for "
                "the greatest score of each row: leave stable out, or choose another recipe"
            )
        if self.base is not None:
            require_number(self.base, "base", above=0, error=GraphError)

    def matmul(self, a: Matrix, b: Matrix) -> Matrix:
        """Return the matrix product a · b, computed by the recipe of this style."""
        return matmul(a, b, {"inverse": "fetch", "width-1": "scatter"}.get(self.recipe, self.recipe))

    def transpose(self, m: Matrix) -> Matrix:
        """Return the transpose of a matrix, by a head in the paper's recipe, and otherwise as a
        view.
        """
        return transpose(m, "paper" if self.recipe == "paper" else "view")

    def softmax(self, m: Matrix, mask: str | Size | Matrix | None) -> Matrix:
        """Return the softmax of the rows.

        The paper's recipe computes the row sums with one head per row, and all other recipes with one
        head for all rows.
        """
        recipe = "paper" if self.recipe == "paper" else "frugal"
        return softmax(m, self.base, self.stable, mask, recipe)

    def exponentials(self, scores: Matrix, mask: str | Size | Matrix | None) -> Matrix:
        """Return the numerators of a softmax without a stable shift, for scores that are finite at
        every position.
        """
        power = exp(scores.sop) if self.base is None else constant(self.base) ** scores.sop
        if mask is None:
            return scores.map(power)
        kept, others = kept_entries(scores, mask)
        return scores.derive(where(kept, power, 0), scores.rows, scores.columns, *others)

    def divides_last(self, order: AttentionOrder) -> bool:
        """Return whether the softmax is divided by its row sums after the product with the values.

        This order saves the layer that computes the sums, since the product can compute them. The
        result is true only for the recipe fetch without a stable shift, and for masks with which every
        row has a visible key.
        """
        fits = self.recipe == "fetch" and not self.stable and self.divide_last
        return fits and order.mask in (None, "causal", "rows")


def softmax_head(order: AttentionOrder, X: Matrix, Y: Matrix, of: Of, style: Style) -> Steps:
    """Return the steps of σ(X A Yᵀ) Y V (Theorem 1), where σ is the softmax or hard attention."""
    mm = style.matmul
    projected = mm(X, of("A"))
    keys = style.transpose(Y)
    scores = mm(projected, keys)
    mask = mask_of(order, X, of)
    if order.pooling == "softmax":
        # Another base may be at most 1; low scores then do not have small weights.
        padded = order.mask == "keys" and style.base is None
        weights = style.softmax(
            _hide_others(order, scores, of) if padded else scores, None if padded else mask
        )
    else:
        weights = hardmax(scores, unique=order.pooling == "unique", mask=mask)
    values = mm(Y, of("V"))
    if order.pooling == "softmax" and style.divides_last(order):
        output = weighted_mean(style.exponentials(scores, mask), values)
    else:
        output = mm(weights, values)
    return {
        "XA": projected,
        "Xᵀ": keys,
        "scores": scores,
        "softmax": weights,
        "XV": values,
        "output": output,
    }


def factored_head(order: AttentionOrder, X: Matrix, Y: Matrix, of: Of, style: Style) -> Steps:
    """Return the steps of σ((X W_Q + b_Q)(Y W_K + b_K)ᵀ)(Y V + b_V), a head with A = W_Q W_Kᵀ in two
    factors.

    Queries and keys may have rotary position embeddings, q∘C + (qR)∘S, where the tables C and S have a
    row for each position. Scores may have a bias.
    """

    def projected(m: Matrix, weights: str, bias: str) -> Matrix:
        product = style.matmul(m, of(weights))
        return add(product, broadcast_row(of(bias), product.rows)) if order.bias else product

    def turned(m: Matrix) -> Matrix:
        if not order.rotary:
            return m
        across = multiply(style.matmul(m, of("rotation")), of("sines"))
        return add(multiply(m, of("cosines")), across)

    queries = turned(projected(X, "W_Q", "b_Q"))
    keys, values = turned(projected(Y, "W_K", "b_K")), projected(Y, "V", "b_V")
    scores = style.matmul(queries, style.transpose(keys))
    if order.score_bias:
        scores = add(scores, of("score_bias"))
    weights = style.softmax(_hide_others(order, scores, of), None)
    return {
        "queries": queries,
        "keys": keys,
        "scores": scores,
        "softmax": weights,
        "XV": values,
        "output": style.matmul(weights, values),
    }


def _hide_others(order: AttentionOrder, scores: Matrix, of: Of) -> Matrix:
    """Replace the scores of hidden keys by the most negative float, so that their weights are 0.

    This needs one pass over the scores, while a masked softmax needs several. Every row must have a
    visible key, which the modules ensure.
    """
    i, j = coordinates(scores.columns)
    match order.mask:
        case None:
            return scores
        case "causal":
            kept, others = j <= i, []
        case "keys":
            others = [of("attention_mask")]
            kept = others[0].at(0, j) != 0
        case _:
            others = [of("mask").compact()]
            kept = others[0].sop != 0
    lowered = where(scores.inside, where(kept, scores.sop, HIDDEN), 0)
    return scores.derive(lowered, scores.rows, scores.columns, *others)


def mask_of(order: AttentionOrder, X: Matrix, of: Of) -> str | Size | Matrix | None:
    """Return the mask of an order as an argument for ``softmax``."""
    match order.mask:
        case "matrix":
            return of("mask")
        case "rows":
            return of("rows").at(0, 0)
        case "keys":
            return broadcast_row(of("attention_mask"), X.rows)
    return order.mask


def linear_head(order: AttentionOrder, X: Matrix, Y: Matrix, of: Of, style: Style) -> Steps:
    """Return the steps of linear attention, φ(X W_Q) φ(Y W_K)ᵀ Y V with the feature map φ.

    With a feature map other than identity, the weights of each row are divided by their sum.
    """
    mm = style.matmul
    queries, keys = mm(X, of("W_Q")), mm(Y, of("W_K"))
    if order.feature_map == "elu+1":
        queries, keys = elu_plus_one(queries), elu_plus_one(keys)
    scores = mm(queries, style.transpose(keys))
    weights = _without_others(scores, mask_of(order, X, of))
    if order.feature_map != "identity":
        weights = _divided_by_row_sums(weights)
    return _weighted(queries, keys, scores, weights, mm(Y, of("V")), style)


def linformer_head(order: AttentionOrder, X: Matrix, Y: Matrix, of: Of, style: Style) -> Steps:
    """Return the steps of a Linformer head, σ((X W_Q)(E Y W_K)ᵀ) F Y V."""
    mm = style.matmul
    queries, keys = mm(X, of("W_Q")), mm(mm(of("E"), Y), of("W_K"))
    scores = mm(queries, style.transpose(keys))
    weights = style.softmax(scores, None)
    values = mm(mm(of("F"), Y), of("V"))
    return {
        "queries": queries,
        "keys": keys,
        "scores": scores,
        "softmax": weights,
        "XV": values,
        "output": mm(weights, values),
    }


def performer_head(order: AttentionOrder, X: Matrix, Y: Matrix, of: Of, style: Style) -> Steps:
    """Return the steps of a Performer head, φ(X W_Q) φ(Y W_K)ᵀ Y V with weights divided by their row
    sums.

    The features are φ(z) = exp(Ωz − |z|²/2)/√m.
    """
    mm = style.matmul

    def features(z: Matrix) -> Matrix:
        projected = mm(z, transpose(of("omega")))
        i, _ = coordinates(order.rank)
        squares = row_sums(multiply(z, z)).at(i, 0)
        exponent = where(projected.inside, projected.sop - 0.5 * squares, 0)
        return projected.map(order.rank**-0.5 * exp(exponent))

    queries, keys = features(mm(X, of("W_Q"))), features(mm(Y, of("W_K")))
    scores = mm(queries, style.transpose(keys))
    weights = _divided_by_row_sums(scores)
    return _weighted(queries, keys, scores, weights, mm(Y, of("V")), style)


def sumformer_head(order: AttentionOrder, X: Matrix, Y: Matrix, of: Of, style: Style) -> Steps:
    """Return the steps of a Sumformer head, ψ(xᵢ, Σⱼ φ(yⱼ)); the sum is a row of ones times φ(Y)."""
    mm, activate = style.matmul, ACTIVATIONS[order.nonlinearity]
    features = activate(mm(Y, of("W_phi")))
    # A constant s-op instead of a constant matrix: it needs no lookup, so this remains a product.
    ones = Matrix(constant(1), 1, Y.rows, reads=0)
    total = mm(ones, features)
    seen = broadcast_row(mm(total, of("W_sum")), X.rows)
    units = activate(add(mm(X, of("W_x")), seen))
    return {"features": features, "sum": total, "units": units, "output": mm(units, of("V"))}


def _weighted(
    queries: Matrix, keys: Matrix, scores: Matrix, weights: Matrix, values: Matrix, style: Style
) -> Steps:
    """Return the steps of an attention head whose weights are already computed."""
    return {
        "queries": queries,
        "keys": keys,
        "scores": scores,
        "weights": weights,
        "XV": values,
        "output": style.matmul(weights, values),
    }


def _without_others(scores: Matrix, mask: str | Size | Matrix | None) -> Matrix:
    """Replace the entries of hidden keys in ``scores`` by 0."""
    if mask is None:
        return scores
    kept, others = kept_entries(scores, mask)
    return scores.derive(where(kept, scores.sop, 0), scores.rows, scores.columns, *others)


def _divided_by_row_sums(m: Matrix) -> Matrix:
    """Divide each row of a matrix by the sum of its entries.

    Outside the matrix, the divisor is 1, since RASP divides at every position.
    """
    sums = row_sums(m)
    return m.map(m.sop / where(m.inside, sums.sop, 1))


#: The formula of the attention head of each kind.
HEADS: dict[str, Callable[[AttentionOrder, Matrix, Matrix, Of, Style], Steps]] = {
    "softmax": softmax_head,
    "factored": factored_head,
    "linear": linear_head,
    "linformer": linformer_head,
    "performer": performer_head,
    "sumformer": sumformer_head,
}
