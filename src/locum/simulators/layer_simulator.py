"""U for one order: its program, and running it on ⟨T, X⟩.

The program is built from the order and the style alone, before any T is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from locum.constructions import Matrix
from locum.errors import ExecutionError, InputError
from locum.execution.arrays import Array, numpy_of
from locum.language.python import tokens
from locum.simulators.formula.head import Style
from locum.simulators.formula.inverse import inverse_steps
from locum.simulators.formula.layer import Formula, views_of
from locum.simulators.layout import Layout
from locum.simulators.matrices import matrix
from locum.simulators.modules.attention import Attention
from locum.simulators.modules.layer import Layer
from locum.simulators.modules.module import Module, Numbers
from locum.simulators.order import Order
from locum.simulators.simulator import Simulator


class LayerSimulator(Simulator):
    """The program for all T of one order: an attention, an encoder or a decoder layer."""

    def __init__(self, order: Order, style: Style) -> None:
        """Write the formula of ``order`` in the recipe that ``style`` names."""
        self.order = order
        self.style = style
        layout = Layout(order.blocks())
        formula = Formula(views_of(layout), style)
        memory = layout.view(tokens, "M") if order.memory else None
        output = formula.layer(order, layout.view(tokens, "X"), memory)
        super().__init__(layout, output, formula.steps)

    def encode(self, T: Module, X: Array, memory: Array | None = None) -> Array:
        """Flatten ⟨T, X⟩ into tokens: X, then the matrices of T, then blanks; an array of X's kind."""
        return self.flattened(self.parts_of(T, X, memory))

    def parts_of(self, T: Module, X: Array, memory: Array | None = None) -> list[Array]:
        """List the matrices of ⟨T, X⟩ in the order of the sequence: what is run."""
        X, memory = self.check(T, X, memory)
        matrices = T.matrices() | {"X": [X]}
        if memory is not None:
            matrices["M"] = [memory]
        return self.parts(matrices, X)

    def __call__(
        self, T: Module, X: Array, memory: Array | None = None, *, executor: str | None = None
    ) -> Array:
        """Compute T(X) by U: tokens in, matrix out. NumPy gives NumPy, torch gives torch."""
        return self.run_parts(self.output, self.parts_of(T, X, memory), executor)

    def run_parts(self, value: Matrix, parts: Sequence[Array], executor: str | None = None) -> Array:
        """Run the program of ``value``; where an exponential overflows, say what helps."""
        try:
            return super().run_parts(value, parts, executor)
        except ExecutionError as error:
            if self.style.stable or error.kind != "OverflowError":
                raise
            raise ExecutionError(
                f"{error.problem}; this U takes exponentials of the scores as they are, and above 709 "
                "(for base e) they overflow: stable=True subtracts the row maximum first, as all "
                'recipes but paper and width-1 do, such as recipe="fetch"',
                "the softmax of the scores",
                kind=error.kind,
            ) from None

    def check(self, T: Module, X: Array, memory: Array | None = None) -> tuple[Array, Array | None]:
        """Return X and the memory as arrays, if they and T are of this simulator's order."""
        order = self.order
        require_module(T, X)
        X = matrix(X, "X", (order.n, order.attention.d), copy=False)
        if (memory is None) != (order.memory == 0):
            expected = f"a memory of {order.memory} rows" if order.memory else "no memory"
            raise InputError(f"this simulator takes {expected}")
        if memory is not None:
            block = self.layout.block("M")
            memory = matrix(memory, "the memory", (block.rows, block.columns))
        self.check_module(T)
        return X, memory

    def check_module(self, T: Module) -> None:
        """Refuse a T of another order, and say how it differs."""
        order = self.order
        order_of_T = T.order(order.n, order.memory)
        if order_of_T != order:
            raise InputError(
                f"T is of order {order_of_T}, but this simulator is for {order}: T has "
                f"{'; '.join(order.differences(order_of_T))}. UniversalSimulator.of(T, n) makes one "
                "that fits; a smaller T runs on this one by embed(T, X)"
            )

    def direct_steps(self, T: Module, X: Array, memory: Array | None = None) -> dict[str, Numbers]:
        """Compute the steps of the simulation directly, by NumPy."""
        steps = T.steps(X, memory)
        if self.style.recipe == "inverse":
            attention = T.attention if isinstance(T, Layer) else T
            assert isinstance(attention, Attention)
            attended = steps["norm1"] if self.order.norm == "pre" else numpy_of(X)
            steps |= inverse_steps(attention, attended)
        return steps

    @cached_property
    def masked(self) -> LayerSimulator:
        """The same simulator with one more token: how many rows of X count."""
        attention = replace(self.order.attention, mask="rows")
        return LayerSimulator(replace(self.order, attention=attention), self.style)


def require_module(T: Any, X: Any = None) -> Module:
    """Return T if it is a module and does not stand in the place of X."""
    if isinstance(X, Module) and not isinstance(T, Module):
        raise InputError("T and X are in each other's place: T comes first, as in U(T, X)")
    if not isinstance(T, Module):
        raise InputError(
            "T must be an Attention, a MultiHeadAttention, an Encoder or another module of "
            f"locum.simulators, got {type(T).__name__}"
        )
    return T
