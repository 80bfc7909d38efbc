"""Connect simulators in series in one program: the result of one simulator is the X of the next.

The tokens are X and the matrices of T₁, T₂, …; all data between the layers remain inside the program.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from locum.errors import GraphError, InputError
from locum.execution.arrays import Array
from locum.rasp.python import tokens
from locum.simulators.formula.layer import Formula, NamedStep, views_of
from locum.simulators.layer_simulator import require_module
from locum.simulators.matrices import as_given, computable
from locum.simulators.modules.module import Module
from locum.simulators.simulator import Simulator
from locum.simulators.token_layout import Layout, numbered
from locum.simulators.universal import UniversalSimulator


class Stack(Simulator):
    """Simulators connected in series, as one program.

    >>> import numpy as np
    >>> from locum import Attention, UniversalSimulator
    >>> U = UniversalSimulator(3, 2, 2)
    >>> T, X = Attention(np.eye(2), np.eye(2)), np.ones((3, 2))
    >>> bool(np.abs(Stack([U, U])([T, T], X) - T(T(X))).max() < 1e-13)
    True
    """

    def __init__(self, simulators: Sequence[UniversalSimulator]) -> None:
        """Connect simulators in series; the shape of each result must be the shape of the next X."""
        if not isinstance(simulators, Sequence):
            raise GraphError(f"expected a list of simulators, got {type(simulators).__name__}")
        self.simulators = tuple(simulators)
        if not self.simulators:
            raise GraphError("expected one simulator or more, got an empty list")
        for simulator in self.simulators:
            if not isinstance(simulator, UniversalSimulator):
                raise GraphError(
                    f"expected UniversalSimulators, got {type(simulator).__name__}: "
                    "Stack.of([T₁, T₂, …], n) makes them of T's"
                )
        for below, above in zip(self.simulators, self.simulators[1:], strict=False):
            shape = (below.order.n, below.order.columns)
            taken = (above.order.n, above.order.attention.d)
            if shape != taken:
                shapes = [f"{rows}×{columns}" for rows, columns in (shape, taken)]
                raise GraphError(
                    f"expected a simulator that takes {shapes[0]}, as the one before gives, got one "
                    f"that takes {shapes[1]}"
                )
        if any(simulator.order.memory for simulator in self.simulators):
            raise GraphError(
                "expected encoders and self-attentions in a stack, got a simulator that requires a "
                "memory"
            )
        if any(simulator.order.batch > 1 for simulator in self.simulators):
            raise GraphError("expected simulators for one X in a stack, got a simulator for a batch")
        blocks = [self.simulators[0].layout.block("X")]
        for number, simulator in enumerate(self.simulators, start=1):
            blocks += numbered(simulator.layout.blocks.values(), number)
        layout = Layout(blocks)
        value = layout.view(tokens, "X")
        steps: list[NamedStep] = []
        for number, simulator in enumerate(self.simulators, start=1):
            formula = Formula(views_of(layout, f"{number}: "), simulator.style)
            value = formula.layer(simulator.order, value, None)
            steps += [replace(step, name=f"{number}: {step.name}") for step in formula.steps]
        super().__init__(layout, value, steps)

    @classmethod
    def of(cls, modules: Sequence[Module], n: int, recipe: str = "fetch") -> Stack:
        """Return the stack for these modules T₁, T₂, … on n rows.

        The stack also simulates all other modules of the same orders.
        """
        return cls([UniversalSimulator.of(T, n, recipe=recipe) for T in modules])

    def encode(self, modules: Sequence[Module], X: Array) -> Array:
        """Flatten ⟨T₁, T₂, …, X⟩ into tokens."""
        return self.flattened(self.parts_of(modules, X))

    def parts_of(self, modules: Sequence[Module], X: Array) -> list[Array]:
        """Return the matrices of ⟨T₁, T₂, …, X⟩ in the order of the sequence."""
        if not isinstance(modules, Sequence):
            raise InputError(f"expected a list of T's, got {type(modules).__name__}")
        if len(modules) != len(self.simulators):
            raise InputError(f"expected {len(self.simulators)} T's, got {len(modules)}")
        X = computable(X, "X")
        matrices = {"X": [X]}
        for number, (T, simulator) in enumerate(zip(modules, self.simulators, strict=True), start=1):
            simulator.check_module(require_module(T))
            matrices |= {f"{number}: {name}": copies for name, copies in T.matrices().items()}
        return self.parts(matrices, X)

    def __call__(self, modules: Sequence[Module], X: Array, *, executor: str | None = None) -> Array:
        """Compute … T₂(T₁(X)) with one program."""
        return as_given(self.run_parts(self.output, self.parts_of(modules, X), executor), X)

    def __repr__(self) -> str:
        orders = " → ".join(str(simulator.order) for simulator in self.simulators)
        return f"<stack of U's for T's of orders {orders}: {self.length} tokens, {self.architecture}>"
