"""Define U, the universal simulator, which maps ⟨T, X⟩ to T(X) (Theorem 1, its corollaries, Theorem on
H heads).

The program does not depend on T: one U simulates every T of its order. The paper requires n ≤ min(d,
d_v). In Locum any order is supported, since the sequence is padded if a product needs more positions
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

from typing import TYPE_CHECKING, Any, Self

from locum.errors import GraphError, InputError
from locum.execution.arrays import Array
from locum.simulators.formula.head import Style
from locum.simulators.hierarchy import embed
from locum.simulators.layer_simulator import Explanation, LayerSimulator, explain, require_module
from locum.simulators.modules.module import Module
from locum.simulators.order import Order

if TYPE_CHECKING:
    from locum.networks.transformer import CompiledTransformer
    from locum.simulators.specialised import Specialised


class UniversalSimulator(LayerSimulator):
    """One network that simulates every T of one order: ``U(T, X)`` returns T(X).

    >>> import numpy as np
    >>> from locum import Attention
    >>> U = UniversalSimulator(3, 2, 2)
    >>> T, X = Attention(A=np.eye(2), V=np.tri(2)), np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> bool(np.abs(U(T, X) - T(X)).max() < 1e-14)
    True
    >>> UniversalSimulator.of(T, 3).order == U.order
    True
    >>> small = Attention(A=[[1.0]], V=[[2.0]])
    >>> bool(np.abs(U.embed(small, X[:, :1]) - small(X[:, :1])).max() < 1e-14)
    True
    >>> print(U.specialise(T).architecture)
    5 layers, heads [4, 5, 1, 1, 3], width 5
    >>> U.compile("native", attention="softmax", tolerance=0.01).error_bound <= 0.01
    True
    """

    def __init__(
        self,
        order: Order | int,
        d: int | None = None,
        d_v: int | None = None,
        *,
        recipe: str = "fetch",
        stable: bool | None = None,
        base: float | None = None,
    ) -> None:
        """Build U for an order.

        - ``order``: ``Order.of(n, d, d_v, heads=…, feed_forward=…)``, or the order of a given T,
          ``T.order(n)``. ``UniversalSimulator(n, d, d_v)`` uses ``Order.of(n, d, d_v)``.
        - ``recipe``: fetch, paper, tiled, width-1 or inverse. The recipe paper uses the paper's heads
          and layers. For several heads, it encodes X once, while the paper encodes a copy of X for each
          head. For a T with one head, the recipe width-1 uses three heads in successive layers
          (``formula/width_one.py``). The recipe inverse is the alternative construction for
          non-singular A and V (``formula/inverse_recipe.py``).
        - ``stable``: whether the row maximum is subtracted from the scores before the exponential. The
          default is true, except in the recipes paper and width-1, where scores above 709 overflow.
        - ``base``: base of the softmax, by default e. With another base, the result differs from T(X).
        """
        if not isinstance(order, Order):
            order = Order.of(order, d, d_v)
        elif d is not None or d_v is not None:
            raise GraphError("expected an Order, or the integers n, d and d_v, got both")
        if stable is None:
            stable = recipe not in ("paper", "width-1")
        attention = order.attention
        if base is not None and not attention.exponential:
            kind = attention.kind if attention.pooling == "softmax" else f"{attention.pooling} pooling"
            raise GraphError(f"base: expected softmax attention, got {kind}; try it without base")
        super().__init__(order, Style(recipe, stable, base))

    @classmethod
    def of(
        cls,
        T: Module,
        n: int,
        memory: int = 0,
        *,
        recipe: str = "fetch",
        stable: bool | None = None,
        base: float | None = None,
    ) -> Self:
        """Build U for the order of T on n rows; the result simulates every T of this order."""
        order = require_module(T).order(n, memory)
        return cls(order, recipe=recipe, stable=stable, base=base)

    def embed(self, T: Module, X: Array, *, executor: str | None = None) -> Array:
        """Compute T(X) for a T whose order is at most as large as the order of this U (see
        ``hierarchy.py``).

        Only softmax and linear attention without a mask or with a causal mask are supported.
        """
        self._require_one("embed")
        return embed(self, require_module(T, X), X, executor=executor)

    def explain(
        self, T: Module, X: Array, memory: Array | None = None, *, executor: str | None = None
    ) -> Explanation:
        """Run every step of the simulation separately and compare each step with direct computation."""
        self._require_one("explain")
        return explain(self, T, X, memory, executor=executor)

    def compile(self, recipe: str | None = None, **options: Any) -> CompiledTransformer:
        """Compile U to the weights of a transformer, which do not depend on T.

        ``recipe`` is one of U's recipes, or ``native``, which uses a softmax head of the transformer as
        the simulated softmax. ``options`` are options of ``locum.compile``. By default, feed-forwards
        are MLPs of ReLU units, which support numbers between −1 and 1, or in
        ``ranges=(low, high)``. ``feed_forward="exact"`` uses symbolic feed-forwards, which are executed
        as instructions and support all numbers.
        """
        from locum.simulators.universal_weights import (
            compile_simulator,  # the compiler is imported only here
        )

        return compile_simulator(self, recipe, **options)

    def specialise(self, T: Module) -> Specialised:
        """Specialise U for one T; the input of the result is only X (``specialised.py``)."""
        from locum.simulators.specialised import Specialised  # the compiler is imported only here

        return Specialised(self, require_module(T))

    def _require_one(self, method: str) -> None:
        if self.order.batch > 1:
            raise InputError(
                f"{method}: expected a U for one X, got one for {self.order.batch} at once"
            )

    def describe(self) -> str:
        """Return a text that describes U: order, recipe, tokens, layout, layers and heads."""
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
