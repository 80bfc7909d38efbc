"""One attention head of each kind, as the formula it is: what U computes, on views of one sequence.

Each function takes the input of the queries, X, that of the keys, Y (X itself, or a memory), and
``of``, which gives the view of a matrix of T by its name; and gives the steps by their names, the last
of them the head's output. In a family of heads the views move with the head, and nothing else changes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from understudy.constructions import Matrix, hardmax, matmul, softmax, transpose
from understudy.constructions.matrix import Size
from understudy.errors import GraphError
from understudy.simulators.order import AttentionOrder

#: The view of a matrix of T, by name.
Of = Callable[[str], Matrix]
#: Intermediate results by name, in order.
Steps = dict[str, Matrix]

RECIPES = ("paper", "fetch", "tiled")


@dataclass(frozen=True)
class Style:
    """How U computes what it computes: recipes of the constructions, and how exponentials are taken."""

    recipe: str
    stable: bool
    base: float | None

    def __post_init__(self) -> None:
        if self.recipe not in RECIPES:
            raise GraphError(f"there is no recipe {self.recipe!r}: choose one of {', '.join(RECIPES)}")

    def matmul(self, a: Matrix, b: Matrix) -> Matrix:
        """The product, in this recipe."""
        return matmul(a, b, self.recipe)

    def transpose(self, m: Matrix) -> Matrix:
        """The transpose: the paper's head, or a view."""
        return transpose(m, "paper" if self.recipe == "paper" else "view")

    def softmax(self, m: Matrix, mask: str | Size | Matrix | None) -> Matrix:
        """Softmax of the rows: a head per row in the paper's recipe, else one for all."""
        recipe = "paper" if self.recipe == "paper" else "frugal"
        return softmax(m, self.base, self.stable, mask, recipe)


def softmax_head(order: AttentionOrder, X: Matrix, Y: Matrix, of: Of, style: Style) -> Steps:
    """σ(X A Yᵀ) Y V (Theorem 1)."""
    mm = style.matmul
    projected = mm(X, of("A"))
    keys = style.transpose(Y)
    scores = mm(projected, keys)
    mask = _mask(order, of)
    if order.pooling == "softmax":
        weights = style.softmax(scores, mask)
    else:
        weights = hardmax(scores, unique=order.pooling == "unique", mask=mask)
    values = mm(Y, of("V"))
    return {
        "XA": projected,
        "Xᵀ": keys,
        "scores": scores,
        "softmax": weights,
        "XV": values,
        "output": mm(weights, values),
    }


def _mask(order: AttentionOrder, of: Of) -> str | Size | Matrix | None:
    match order.mask:
        case "matrix":
            return of("mask")
        case "rows":
            return of("rows").at(0, 0)
    return order.mask


#: A head of each kind.
HEADS: dict[str, Callable[[AttentionOrder, Matrix, Matrix, Of, Style], Steps]] = {
    "softmax": softmax_head,
}
