"""U, the universal simulator: ⟨T, X⟩ in, T(X) out (Theorem 1, its corollaries, Theorem on H heads).

The program is built from the order alone; one U serves every T of that order. The paper asks for
n ≤ min(d, d_v); any order works here, since the sequence is padded where a product needs room
(erratum E17).

>>> import numpy as np
>>> from locum.simulators.modules.attention import Attention
>>> U = UniversalSimulator(2, 2, 1)
>>> T = Attention(A=[[1.0, 0.0], [0.0, 1.0]], V=[[1.0], [2.0]])
>>> X = np.array([[1.0, 0.0], [0.0, 1.0]])
>>> bool(np.allclose(U(T, X), T(X), rtol=0, atol=1e-14))
True
>>> print(U.architecture)
5 layers, heads [10, 4, 1, 1, 2], width 10
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from locum.constructions import Matrix
from locum.errors import ExecutionError, GraphError, InputError
from locum.language.python import tokens
from locum.simulators.arrays import Array, matrix, numpy_of
from locum.simulators.formula.formulas import Formula, views_of
from locum.simulators.formula.head import Style
from locum.simulators.formula.inverse_form import inverse_steps
from locum.simulators.layout import Layout
from locum.simulators.modules.attention import Attention
from locum.simulators.modules.layer import Layer
from locum.simulators.modules.module import Module, Numbers
from locum.simulators.order import KINDS, AttentionOrder, Order, choose, whole
from locum.simulators.simulator import Simulator

if TYPE_CHECKING:
    from locum.simulators.explain import Explanation
    from locum.transformer import CompiledTransformer


class UniversalSimulator(Simulator):
    """One network for all T of one order."""

    def __init__(
        self,
        n: int,
        d: int,
        d_v: int | None = None,
        heads: int = 1,
        feed_forward: tuple[int, int] | None = None,
        kind: str = "softmax",
        norm: str = "none",
        mask: str | None = None,
        recipe: str = "fetch",
        *,
        residual: bool | None = None,
        activation: str = "relu",
        feed_forward_bias: bool = False,
        feed_forward_residual: bool | None = None,
        affine: bool = False,
        epsilon: float = 1e-5,
        bias: bool = False,
        combine: str = "concatenate",
        projection: int | None = None,
        output_bias: bool = False,
        pooling: str = "softmax",
        memory: int = 0,
        width: int | None = None,
        rank: int | None = None,
        hidden: int | None = None,
        feature_map: str = "identity",
        stable: bool | None = None,
        base: float | None = None,
    ) -> None:
        """For T of order (n, d, d_v), or (n, d, d_v, d1, d2) with ``feed_forward=(d1, d2)``.

        - ``recipe``: fetch (default), paper (the paper's heads and layers), tiled, width-1 (three
          heads, one above the other: ``width_one.py``), or inverse (the alternative construction, for
          non-singular A and V: ``inverse_form.py``).
        - ``stable``: whether the greatest score of a row is taken off before the exponential. It is,
          except in the recipes paper and width-1, where scores above 709 overflow. ``base``: if not e.
        - ``residual``: an encoder, X + attention(X); so where there is a feed-forward or a norm.
        - ``projection``: the columns of W_O (0: none); d in an encoder of several heads.
        - ``bias``, ``output_bias``, ``feed_forward_bias``, ``affine``: whether T has biases in its
          projections, behind W_O, in its feed-forward; gains and biases in its norms.
        - ``memory``: so many rows that X attends to instead of itself.
        - ``width`` (columns of W_Q and W_K), ``rank`` (rows of E and F; features), ``hidden``
          (Sumformer) and ``feature_map`` (linear) belong to the other kinds.

        ``UniversalSimulator.of(T, n)`` finds all of these from a T.
        """
        if mask is not None and not isinstance(mask, str):
            raise GraphError('the mask itself belongs to T: say mask="matrix" here, and give it to T')
        choose(mask, (None, "causal", "matrix"), "mask")
        n, d, d_v = whole(n, "n"), whole(d, "d"), whole(d if d_v is None else d_v, "d_v")
        choose(kind, KINDS, "kind")
        heads, feed_forward = whole(heads, "heads"), _pair(feed_forward)
        residual = (feed_forward is not None or norm != "none") if residual is None else residual
        if projection is None:
            projection = d if residual and heads > 1 and combine == "concatenate" else 0
        defaults = {
            "factored": {"width": d},
            "linear": {"width": d},
            "linformer": {"width": d, "rank": max(1, n // 2)},
            "performer": {"width": d, "rank": d},
            "sumformer": {"rank": d, "hidden": d},
        }.get(kind, {})
        given = {"width": width, "rank": rank, "hidden": hidden}
        for name, value in given.items():
            if value is not None and name not in defaults:
                raise GraphError(f"{name} is {value!r}, but kind {kind} has no such size")
        sizes = {
            name: whole(value if given[name] is None else given[name], name)
            for name, value in defaults.items()
        }
        attention = AttentionOrder(
            kind, d, d_v, heads, combine, projection, output_bias, bias, mask, pooling,
            width=sizes.get("width", 0), rank=sizes.get("rank", 0), hidden=sizes.get("hidden", 0),
            feature_map=feature_map,
        )  # fmt: skip
        order = Order(
            n,
            attention,
            memory,
            residual=residual,
            feed_forward=feed_forward,
            feed_forward_bias=feed_forward_bias,
            feed_forward_residual=(
                feed_forward is not None and norm != "none"
                if feed_forward_residual is None
                else feed_forward_residual
            ),
            activation=activation,
            norm=norm,
            affine=affine,
            epsilon=epsilon,
        )
        self._build(order, recipe, stable, base)

    @classmethod
    def from_order(
        cls,
        order: Order,
        recipe: str = "fetch",
        stable: bool | None = None,
        base: float | None = None,
        *,
        divide_last: bool = True,
    ) -> Self:
        """The simulator of an order.

        ``divide_last``: whether a plain softmax may be divided by its sums after the product, which
        saves a layer; networks that approximate divisions do better with shares than with sums.
        """
        made = cls.__new__(cls)
        made._build(order, recipe, stable, base, divide_last=divide_last)
        return made

    @classmethod
    def of(
        cls,
        T: Module,
        n: int,
        memory: int = 0,
        recipe: str = "fetch",
        stable: bool | None = None,
        base: float | None = None,
    ) -> Self:
        """The simulator of the order that T has on n rows: for this T, and every other like it."""
        return cls.from_order(require_module(T).order(n, memory), recipe, stable, base)

    def _build(
        self,
        order: Order,
        recipe: str,
        stable: bool | None,
        base: float | None,
        *,
        divide_last: bool = True,
    ) -> None:
        stable = recipe not in ("paper", "width-1") if stable is None else stable
        if base is not None and not order.attention.exponential:
            attention = order.attention
            which = attention.kind if attention.pooling == "softmax" else f"{attention.pooling} pooling"
            raise GraphError(f"base is that of the softmax, and {which} has none: leave it out")
        self.order = order
        self.style = Style(recipe, stable, base, divide_last)
        layout = Layout(order.blocks())
        formula = Formula(views_of(layout), self.style)
        memory = layout.view(tokens, "M") if order.memory else None
        output = formula.layer(order, layout.view(tokens, "X"), memory)
        super().__init__(layout, output, formula.steps)

    def encode(self, T: Module, X: Array, memory: Array | None = None) -> Array:
        """⟨T, X⟩ as tokens: X, then the matrices of T, then blanks. An array of the kind of X."""
        return self.flattened(self.parts_of(T, X, memory))

    def parts_of(self, T: Module, X: Array, memory: Array | None = None) -> list[Array]:
        """The same, matrix by matrix: what is run."""
        X, memory = self.check(T, X, memory)
        matrices = T.matrices() | {"X": [X]}
        if memory is not None:
            matrices["M"] = [memory]
        return self.parts(matrices, X)

    def __call__(
        self, T: Module, X: Array, memory: Array | None = None, *, executor: str | None = None
    ) -> Array:
        """T(X), computed by U: tokens in, matrix out. NumPy gives NumPy, torch gives torch."""
        return self.run_parts(self.output, self.parts_of(T, X, memory), executor)

    def run_parts(self, value: Matrix, parts: Sequence[Array], executor: str | None = None) -> Array:
        """As all simulators do; an exponential that overflows says what helps."""
        try:
            return super().run_parts(value, parts, executor)
        except ExecutionError as error:
            if self.style.stable or error.kind != "OverflowError":
                raise
            raise ExecutionError(
                f"{error.problem}; here exponentials are taken of the scores as they are, and above "
                "709 (for base e) they overflow: stable=True takes the greatest score off before, and "
                'so do all recipes but paper and width-1, such as recipe="fetch"',
                "the softmax of the scores",
                kind=error.kind,
            ) from None

    def check(self, T: Module, X: Array, memory: Array | None = None) -> tuple[Array, Array | None]:
        """X and the memory as arrays, if they and T are of this simulator's order."""
        order = self.order
        require_module(T, X)
        X = matrix(X, "X", (order.n, order.attention.d), copy=False)
        if (memory is None) != (order.memory == 0):
            wanted = f"a memory of {order.memory} rows" if order.memory else "no memory"
            raise InputError(f"this simulator takes {wanted}")
        if memory is not None:
            block = self.layout.block("M")
            memory = matrix(memory, "the memory", (block.rows, block.columns))
        self.check_module(T)
        return X, memory

    def check_module(self, T: Module) -> None:
        """Refuse a T of another order, and say in what it differs."""
        order = self.order
        found = T.order(order.n, order.memory)
        if found != order:
            raise InputError(
                f"T is of order {found}, but this simulator is for {order}: T has "
                f"{'; '.join(order.differences(found))}. UniversalSimulator.of(T, n) makes the one "
                "that fits; a smaller T runs on this one by embed(T, X)"
            )

    def direct_steps(self, T: Module, X: Array, memory: Array | None = None) -> dict[str, Numbers]:
        """The steps of the simulation, computed directly."""
        found = T.steps(X, memory)
        if self.style.recipe == "inverse":
            attention = T.attention if isinstance(T, Layer) else T
            assert isinstance(attention, Attention)
            attended = found["norm1"] if self.order.norm == "pre" else numpy_of(X)
            found |= inverse_steps(attention, attended)
        return found

    def embed(self, T: Module, X: Array, *, executor: str | None = None) -> Array:
        """A smaller T on this U, exactly (Corollary hierarchy, corrected: see ``hierarchy.py``)."""
        from locum.simulators.hierarchy import embed

        return embed(self, require_module(T, X), X, executor=executor)

    def explain(
        self, T: Module, X: Array, memory: Array | None = None, *, executor: str | None = None
    ) -> Explanation:
        """Every step of the simulation, its matrix, and its error against direct computation."""
        from locum.simulators.explain import explain

        return explain(self, T, X, memory, executor=executor)

    @cached_property
    def masked(self) -> UniversalSimulator:
        """The same simulator with one more token: how many rows of X count."""
        attention = replace(self.order.attention, mask="rows")
        style = self.style
        order = replace(self.order, attention=attention)
        return type(self).from_order(order, style.recipe, style.stable, style.base)

    def compile(self, recipe: str | None = None, **options: Any) -> CompiledTransformer:
        """U as the weights of a transformer (``compiling.py``): built from the order alone.

        ``recipe``: this simulator's own, or paper, fetch, tiled, width-1, inverse; or native, on a host
        with softmax heads. Options as of ``locum.compile``.
        """
        from locum.simulators.weights import compile_simulator

        return compile_simulator(self, recipe, **options)

    def describe(self) -> str:
        """What it is, in words: order, tokens, layers and heads."""
        style = self.style
        base = "e" if style.base is None else f"{style.base:g}"
        blanks = self.length - self.layout.size
        return "\n".join(
            [
                f"U for T of order {self.order}",
                f"recipe {style.recipe}, {'stable' if style.stable else 'plain'} softmax, base {base}",
                f"{self.length} tokens" + (f", {blanks} of them blank" if blanks else ""),
                str(self.layout),
                f"{self.architecture}; program {self.hash[:12]}",
            ]
        )

    def __repr__(self) -> str:
        return f"<U for T of order {self.order}: {self.length} tokens, {self.architecture}>"


def _pair(feed_forward: Any) -> tuple[int, int] | None:
    """d1 and d2, if there is a feed-forward."""
    if feed_forward is None:
        return None
    if not isinstance(feed_forward, (tuple, list)) or len(feed_forward) != 2:
        raise GraphError(f"feed_forward is (d1, d2), two whole numbers, but got {feed_forward!r}")
    return whole(feed_forward[0], "d1"), whole(feed_forward[1], "d2")


def require_module(T: Any, X: Any = None) -> Module:
    """T, if it is one, and not in the place of X."""
    if isinstance(X, Module) and not isinstance(T, Module):
        raise InputError("T and X are in each other's place: T comes first, as in U(T, X)")
    if not isinstance(T, Module):
        raise InputError(
            f"T must be an Attention, a MultiHeadAttention, an Encoder or another module of "
            f"locum.simulators, not {type(T).__name__}"
        )
    return T
