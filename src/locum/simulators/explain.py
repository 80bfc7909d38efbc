"""The steps of a simulation: what U has after each, and how far that is from direct computation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from locum.errors import InputError
from locum.execution.arrays import Array, numpy_of
from locum.html_table import matrix
from locum.simulators.layer_simulator import LayerSimulator
from locum.simulators.modules.module import Module, Numbers


@dataclass(frozen=True)
class ExplainedStep:
    """One step: U's matrix, NumPy's, and the greatest difference of their entries."""

    name: str
    matrix: Numbers
    direct: Numbers

    @property
    def error(self) -> float:
        """The largest absolute difference."""
        return float(np.abs(self.matrix - self.direct).max())

    def to_dict(self) -> dict[str, Any]:
        """Return a dictionary for scripts."""
        return {"name": self.name, "matrix": self.matrix.tolist(), "error": self.error}


@dataclass(frozen=True)
class Explanation:
    """All steps of a simulation, the last of them T(X)."""

    steps: tuple[ExplainedStep, ...]

    def __getitem__(self, name: str) -> ExplainedStep:
        for step in self.steps:
            if step.name == name:
                return step
        names = ", ".join(step.name for step in self.steps)
        raise InputError(f"expected one of the steps {names}, got {name!r}")

    def __iter__(self) -> Iterator[ExplainedStep]:
        return iter(self.steps)

    @property
    def error(self) -> float:
        """The error of the result."""
        return self.steps[-1].error

    def _repr_html_(self) -> str:
        return "".join(
            matrix(f"{step.name}, error {step.error:.1e}", step.matrix) for step in self.steps
        )

    def __str__(self) -> str:
        blocks = []
        for step in self.steps:
            rows, columns = step.matrix.shape
            table = np.array2string(step.matrix, precision=4, suppress_small=True, threshold=60)
            blocks.append(f"{step.name} ({rows}×{columns}), error {step.error:.1e}\n{table}")
        return "\n".join(blocks)


def explain(
    U: LayerSimulator,
    T: Module,
    X: Array,
    memory: Array | None = None,
    *,
    executor: str | None = None,
    finished: Callable[[str], None] = lambda name: None,
) -> Explanation:
    """Run each step by itself on the same tokens; ``finished`` is called with the name of each."""
    parts = U.parts_of(T, X, memory)
    matrices = {}
    for name, value in U.each_step():
        matrices[name] = numpy_of(U.run_parts(value, parts, executor))
        finished(name)
    direct = U.direct_steps(T, X, memory)
    return Explanation(
        tuple(ExplainedStep(name, matrix, direct[name]) for name, matrix in matrices.items())
    )
