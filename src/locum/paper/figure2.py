"""Reproduce the paper's demonstration (Figure 2): its matrices, every printed number, and U's results.

The figure was made with 2.718 for e, although the listing contains 2.73 (erratum E1). :func:`figure2`
computes the figure with any base, by default with e. The result can be compared with the printed digits
and errors.

>>> demonstration = figure2(base=2.718)
>>> demonstration.reproduced, f"{demonstration['softmax'].error:.6e}"
(True, '3.376358e-06')
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from locum.simulators.layer_simulator import ExplainedStep, Explanation, explain
from locum.simulators.modules.attention import Attention
from locum.simulators.universal import UniversalSimulator

X = np.array([[0.8, 0.2, 0.5], [0.1, 0.9, 0.4], [0.6, 0.3, 0.7]])
T = Attention(
    A=[[0.1, 0.2, 0.3], [0.4, 0.5, 0.6], [0.7, 0.8, 0.9]],
    V=[[0.1, 0.7, 0.4], [1.0, 0.3, 0.9], [0.5, 0.2, 0.6]],
)


@dataclass(frozen=True)
class Printed:
    """The printed matrix and the printed error of one step of the figure."""

    name: str
    formula: str
    #: The printed entries, which have at most three digits after the decimal point.
    matrix: str
    #: The printed error; 0 if the figure prints "= 0" or "≈ 0.0".
    error: float

    @property
    def values(self) -> list[float]:
        """The printed entries, row by row."""
        return [float(number) for number in self.matrix.split()]


#: The printed content of each step, by the name of the step in U.
PRINTED = {
    "Xᵀ": Printed("XT", "Xᵀ", "0.8 0.1 0.6 0.2 0.9 0.3 0.5 0.4 0.7", 0.0),
    "XA": Printed("Y1", "X A", "0.51 0.66 0.81 0.65 0.79 0.93 0.67 0.83 0.99", 0.0),
    "scores": Printed("Y2", "Y1 XT", "0.945 0.969 1.071 1.143 1.148 1.278 1.197 1.21 1.344", 0.0),
    "softmax": Printed(
        "Y3", "softmax(Y2)", "0.317 0.324 0.359 0.318 0.319 0.363 0.315 0.319 0.365", 3.376358e-06
    ),
    "XV": Printed("Y4", "X V", "0.53 0.72 0.8 1.11 0.42 1.09 0.71 0.65 0.93", 0.0),
    "output": Printed(
        "Y", "Y3 Y4", "0.783 0.598 0.941 0.780 0.599 0.940 0.781 0.599 0.940", 3.040329e-07
    ),
}


@dataclass(frozen=True)
class Demonstration:
    """The steps of Figure 2 as computed by U."""

    simulator: UniversalSimulator
    explanation: Explanation

    def __getitem__(self, name: str) -> ExplainedStep:
        return self.explanation[name]

    def agrees(self, name: str) -> bool:
        """Return whether U reproduces every printed digit of a step."""
        computed = self.explanation[name].matrix.ravel().round(3)
        return bool(np.array_equal(computed, PRINTED[name].values))

    @property
    def reproduced(self) -> bool:
        """Whether U reproduces every printed digit of the figure."""
        return all(self.agrees(name) for name in PRINTED)


def figure2(
    base: float | None = None, recipe: str = "paper", executor: str | None = None
) -> Demonstration:
    """Run the figure's T and X on U; ``base`` is the base of the exponential, and None selects e."""
    U = UniversalSimulator(3, 3, 3, recipe=recipe, base=base)
    return Demonstration(U, explain(U, T, X, executor=executor))
