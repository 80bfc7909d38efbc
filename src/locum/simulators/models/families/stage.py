"""What stands before, between and after layers: sums, products, norms and activations, as a program.

A :class:`Stage` is a list of such operations with their matrices; its program (:class:`StageSimulator`)
depends on the operations and on the shapes alone.

>>> import numpy as np
>>> stage = Stage().add("positions").product(np.array([[2.0], [1.0]]), np.array([5.0]))
>>> stage(np.ones((1, 2)), {"positions": np.ones((1, 2))}).tolist()
[[11.0]]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from locum.constructions import Matrix, add, broadcast_row, layer_norm, matmul, rms_norm
from locum.constructions.activations import ACTIVATIONS
from locum.execution.arrays import Array
from locum.language.python import tokens, where
from locum.simulators.formula.layer import NamedStep
from locum.simulators.layout import Block, Layout
from locum.simulators.prepared import Prepared
from locum.simulators.simulator import Simulator


class Operation(NamedTuple):
    """One step: add, product, layer_norm, rms_norm, an activation; with the blocks that it has."""

    kind: str
    name: str
    columns: int = 0
    blocks: tuple[str, ...] = ()


#: The norm of each row, by a gain, a bias and an ε that come with the run.
NORM = Operation("layer_norm", "norm", blocks=("gain", "bias", "epsilon"))


@dataclass
class Stage:
    """Operations on rows, one after another, and their matrices by the names of their blocks."""

    operations: list[Operation] = field(default_factory=list)
    matrices: dict[str, Array] = field(default_factory=dict)
    _prepared: dict[object, Prepared] = field(default_factory=dict, repr=False)

    def add(self, name: str) -> Stage:
        """Add rows that come with every run, under this name."""
        self.operations.append(Operation("add", name))
        return self

    def product(self, weights: Array, bias: Array | None = None) -> Stage:
        """Multiply by weights (inputs×outputs), and add a bias."""
        return self._with("product", {"W": weights} | ({} if bias is None else {"b": bias}))

    def norm(self, kind: str, epsilon: float, gain: Array | None, bias: Array | None = None) -> Stage:
        """Norm each row: ``kind`` is layer_norm or rms_norm."""
        parts = {"gain": gain, "bias": bias, "epsilon": np.full((1, 1), epsilon)}
        return self._with(kind, {name: part for name, part in parts.items() if part is not None})

    def scale(self, factor: float) -> Stage:
        """Multiply every number by a factor."""
        return self._with("scale", {"factor": np.full((1, 1), factor)})

    def activate(self, activation: str) -> Stage:
        """Apply an activation to every number."""
        self.operations.append(Operation(activation, activation))
        return self

    def _with(self, kind: str, parts: Mapping[str, Array]) -> Stage:
        name = f"{kind} {len(self.operations)}"
        columns = parts["W"].shape[1] if kind == "product" else 0
        self.operations.append(Operation(kind, name, columns, tuple(parts)))
        for part, array in parts.items():
            self.matrices[f"{name} {part}"] = array.reshape(1, -1) if array.ndim == 1 else array
        return self

    def __call__(
        self,
        X: Array,
        others: Mapping[str, Array] | None = None,
        *,
        every: int = 1,
        executor: str | None = None,
    ) -> Array:
        """Run it on the rows of X, or on each ``every``-th of them, from the first on."""
        if not self.operations and every == 1:
            return X
        key = (tuple(X.shape), every, X.dtype, getattr(X, "device", None))
        if key not in self._prepared:
            simulator = stage_simulator(X.shape[0], X.shape[1], tuple(self.operations), every)
            matrices = {name: [matrix] for name, matrix in self.matrices.items()}
            self._prepared[key] = Prepared(simulator, matrices, X)
        return self._prepared[key](X, others, executor=executor)


class StageSimulator(Simulator):
    """The program of some operations on n rows of d columns; ``every``: on every so-manieth row."""

    def __init__(self, n: int, d: int, operations: tuple[Operation, ...], every: int = 1) -> None:
        blocks, columns, rows = [Block("X", n, d)], d, n // every
        for operation in operations:
            if operation.kind == "add":
                blocks.append(Block(operation.name, rows, columns))
            sizes = {"W": (columns, operation.columns), "b": (1, operation.columns)}
            sizes |= {"gain": (1, columns), "bias": (1, columns)}
            sizes |= {"epsilon": (1, 1), "factor": (1, 1)}
            blocks += [Block(f"{operation.name} {part}", *sizes[part]) for part in operation.blocks]
            columns = operation.columns or columns
        layout = Layout(blocks)
        value = layout.view(tokens, "X")
        if every > 1:
            value = Matrix(tokens, rows, d, 0, row_stride=every * d)
        steps = []
        for operation in operations:
            value = _applied(operation, value, layout)
            steps.append(NamedStep(operation.name, value))
        super().__init__(layout, value, steps)


def _applied(operation: Operation, x: Matrix, layout: Layout) -> Matrix:
    parts = {part: layout.view(tokens, f"{operation.name} {part}") for part in operation.blocks}
    match operation.kind:
        case "add":
            return add(x, layout.view(tokens, operation.name))
        case "product":
            product = matmul(x, parts["W"], "fetch")
            return add(product, broadcast_row(parts["b"], x.rows)) if "b" in parts else product
        case "scale":
            x, factor = x.compact(), parts["factor"]
            scaled = where(x.inside, x.sop * factor.at(0, 0), 0)
            return x.derive(scaled, x.rows, x.columns, factor)
        case "layer_norm":
            return layer_norm(x, parts.get("gain"), parts.get("bias"), parts["epsilon"])
        case "rms_norm":
            return rms_norm(x, parts.get("gain"), parts["epsilon"])
    return ACTIVATIONS[operation.kind](x)


@lru_cache(maxsize=64)
def stage_simulator(
    n: int, d: int, operations: tuple[Operation, ...], every: int = 1
) -> StageSimulator:
    """Return the program of some operations, built once."""
    return StageSimulator(n, d, operations, every)
