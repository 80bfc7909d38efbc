"""Define the formula of U: attention with all heads, and the encoder and decoder layers around it.

X, the memory, the matrices of T and the result are views of one sequence. Heads are a family h (Lemma
multi-head): one formula whose views depend on h, summed over h. The program does not depend on T. The
number of its nodes is bounded for all numbers of heads and, with the recipes fetch and paper, for all
sizes of the matrices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from locum.constructions import (
    Matrix,
    add,
    append_ones,
    broadcast_row,
    layer_norm,
    multiply,
    rms_norm,
)
from locum.constructions.activations import ACTIVATIONS
from locum.constructions.matrix import coordinates
from locum.constructions.multihead import block, stacked
from locum.constructions.sizes import number_of, plus, times
from locum.rasp.handles import SOp
from locum.rasp.python import family, indices, sum_over, tokens, where
from locum.simulators.attention_order import AttentionOrder
from locum.simulators.formula.head import HEADS, Style
from locum.simulators.formula.inverse_recipe import inverse_head
from locum.simulators.formula.width_one import width_one_head
from locum.simulators.order import Order
from locum.simulators.token_layout import Layout

#: The masks of which each item of a batch has a separate copy.
OF_EACH = ("mask", "attention_mask")
#: Recipes that compute the attention head by another formula.
FORMS = {"inverse": inverse_head, "width-1": width_one_head}
#: A function from the name of a matrix of T and a head (a family, or 0) to a view.
Views = Callable[[str, SOp | int], Matrix]
#: The matrices of key–value heads, which several query heads may share.
SHARED = {"W_K", "b_K", "V", "b_V"}


def views_of(layout: Layout, prefix: str = "") -> Views:
    """Return a function from a name and a head to the view of a matrix in ``layout``.

    ``prefix`` is prepended to the names.
    """
    return lambda name, head: layout.view(tokens, prefix + name, head)


@dataclass(frozen=True)
class NamedStep:
    """A named intermediate result of the program, with one matrix for each member of its families."""

    name: str
    value: Matrix
    #: The families of heads, each with its size; heads are numbered in the order of nested loops.
    families: tuple[tuple[SOp, int], ...] = ()
    #: The family of a batch, with its size.
    batch: tuple[SOp, int] | None = None


@dataclass
class Formula:
    """A builder for the program of one layer, which records the named steps."""

    views: Views
    style: Style
    steps: list[NamedStep] = field(default_factory=list)

    def layer(self, order: Order, X: Matrix, memory: Matrix | None) -> Matrix:
        """Return the matrix T(X) for an attention layer, an encoder layer or a decoder layer."""
        if not order.residual:
            keys = X if memory is None else memory
            attended = self.attention(order.attention, X, keys, order.batch)
            return self.named("output", attended)
        norms = _Norms(self, order)
        B = order.batch
        if order.parallel:
            attended = self.attention(order.attention, (z := norms.apply(X)), z, B, layer=True)
            y = self.named("residual", add(X, attended))
            return self.named("output", add(y, self.hidden_units(order, norms.apply(X))))
        y = self.sublayer(norms, X, lambda z: self.attention(order.attention, z, z, B, layer=True), "")
        cross = order.cross
        if cross is not None and memory is not None:

            def to_memory(z: Matrix) -> Matrix:
                return self.attention(cross, z, memory, B, "cross ", layer=True)

            y = self.sublayer(norms, y, to_memory, "cross ")
        if order.feed_forward is not None:
            y = self.feed_forward(order, norms, y)
        return self.named("output", y)

    def sublayer(
        self, norms: _Norms, y: Matrix, function: Callable[[Matrix], Matrix], prefix: str
    ) -> Matrix:
        """Return y + f(y) for a sublayer f, with the norm of the layer.

        The norm is before f (pre-norm), after the sum (post-norm) or missing.
        """
        inner = norms.apply(y) if norms.where == "pre" else y
        total = self.named(prefix + "residual", add(y, function(inner)))
        return norms.apply(total) if norms.where == "post" else total

    def attention(
        self,
        order: AttentionOrder,
        X: Matrix,
        Y: Matrix,
        batch: int = 1,
        prefix: str = "",
        layer: bool = False,
    ) -> Matrix:
        """Return the attention of X to Y with all heads combined.

        In a batch, X and Y contain the rows of all items, and rows attend only to rows of the same
        item. The views of X, Y and the masks then depend on a family b; the views of T's other matrices
        do not.
        """
        if order.bias and order.kind != "factored":
            X, Y = (append_ones(X), append_ones(Y)) if Y is not X else (append_ones(X),) * 2
        if batch == 1:
            result = self._heads(order, X, Y, 0, 1, prefix)
        else:
            b = family(batch)
            one = _part(X, b, batch)
            other = one if Y is X else _part(Y, b, batch)
            result = stacked(self._heads(order, one, other, b, batch, prefix), [(b, batch)])
        return self.named(prefix + "attention", result) if layer else result

    def _heads(
        self, order: AttentionOrder, X: Matrix, Y: Matrix, b: SOp | int, batch: int, prefix: str
    ) -> Matrix:
        """Return the attention of one X (item b of a batch) with all heads combined."""
        shared, size = order.shared_heads, order.heads // order.shared_heads
        group: SOp | int = family(shared) if shared > 1 else 0
        member: SOp | int = family(size) if size > 1 else 0
        h = plus(times(group, size), member)
        formula = FORMS.get(self.style.recipe, HEADS[order.kind])

        def view(name: str) -> Matrix:
            return self.views(prefix + name, b if name in OF_EACH else group if name in SHARED else h)

        head = formula(order, X, Y, view, self.style)
        both = ((group, shared), (member, size))
        families = tuple((part, count) for part, count in both if isinstance(part, SOp))
        in_batch = (b, batch) if isinstance(b, SOp) else None
        for name, value in head.items():
            if families or name != "output":
                called = f"{prefix}{'head' if name == 'output' else name}"
                self.steps.append(NamedStep(called, value, families, in_batch))
        result = head["output"]
        if order.projection:
            result = self.style.matmul(result, view("W_O"))
        if isinstance(h, SOp):
            heads = [part for part, _ in families]
            if order.combine == "concatenate" and not order.projection:
                result = _side_by_side(result, h, heads, order.heads)
            else:
                result = result.map(sum_over(*heads, result.sop))
        if order.output_bias:
            result = add(result, broadcast_row(self.views(prefix + "b_O", 0), result.rows))
        return result

    def feed_forward(self, order: Order, norms: _Norms, y: Matrix) -> Matrix:
        """Return the feed-forward sublayer for y, with the residual sum and norms of the order."""
        result = self.hidden_units(order, norms.apply(y) if norms.where == "pre" else y)
        if order.feed_forward_residual:
            result = add(y, result)
        return norms.apply(result) if norms.where == "post" else result

    def hidden_units(self, order: Order, y: Matrix) -> Matrix:
        """Return the feed-forward activation(y W1 + b1) W2 + b2, and record hidden units and result.

        With a gate, the hidden units are activation(y W_gate + b_gate) ∘ (y W1 + b1).
        """
        biased, activate = order.feed_forward_bias, ACTIVATIONS[order.activation]
        hidden = self.affine(y, "W1", "b1", biased)
        if order.gated:
            hidden = multiply(activate(self.affine(y, "W_gate", "b_gate", biased)), hidden)
        else:
            hidden = activate(hidden)
        result = self.affine(self.named("hidden", hidden), "W2", "b2", biased)
        return self.named("feed-forward", result)

    def affine(self, y: Matrix, weights: str, bias: str, biased: bool) -> Matrix:
        """Return y W + b, or y W if ``biased`` is false.

        ``weights`` and ``bias`` are the names of W and b among the matrices of T.
        """
        product = self.style.matmul(y, self.views(weights, 0))
        return add(product, broadcast_row(self.views(bias, 0), product.rows)) if biased else product

    def named(self, name: str, value: Matrix) -> Matrix:
        """Record a value as a named step and return it."""
        self.steps.append(NamedStep(name, value))
        return value


class _Norms:
    """The norms of a layer, in the order in which they are applied."""

    def __init__(self, formula: Formula, order: Order) -> None:
        self.formula = formula
        self.order = order
        self.where = order.norm
        self.count = 0

    def apply(self, y: Matrix) -> Matrix:
        """Apply the next norm of the layer to the rows of y, and record the result as a step."""
        self.count += 1
        parts = {name: self.formula.views(f"{name}{self.count}", 0) for name in self.order.norm_parts}
        parts["epsilon"] = self.formula.views("epsilon", 0)
        result = rms_norm(y, **parts) if self.order.rms else layer_norm(y, **parts)
        return self.formula.named(f"norm{self.count}", result)


def _part(m: Matrix, b: SOp, batch: int) -> Matrix:
    """Return the rows of item ``b`` of a batch of ``batch`` matrices, as a view."""
    rows = number_of(m.rows, "the rows of a batch") // batch
    return block(m.block(0, 0, rows, number_of(m.columns, "the columns of a batch")), b)


def _side_by_side(m: Matrix, h: SOp, families: Sequence[SOp], heads: int) -> Matrix:
    """Concatenate the n×d_v results of all heads into an n×(H·d_v) matrix, with one additional
    attention head.
    """
    assert isinstance(m.columns, int)
    i, j = coordinates(heads * m.columns)
    entry = where(j // m.columns == h, m.at(i, j % m.columns), 0)
    inside = indices < m.rows * (heads * m.columns)
    return m.derive(where(inside, sum_over(*families, entry), 0), m.rows, heads * m.columns)
