"""Run U on a T and an X from the page, and return its tokens and its steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from locum.errors import InputError
from locum.graph import abbreviate
from locum.graph.architecture import architecture
from locum.paper import figure2
from locum.simulators import UniversalSimulator
from locum.simulators.formula.head import RECIPES
from locum.simulators.modules.attention import Attention

#: Maximum error of an attention weight, and logarithm of a weight below this error.
CLOSE = 1e-6
SMALL = float(np.log(CLOSE))

Matrix = list[list[float]]


def require_distinct_scores(
    X: Matrix, A: Matrix, temperature: float, base: float | None = None
) -> None:
    """Raise an error if rounding of the scores X A Xᵀ could change an attention weight by more than
    ``CLOSE``.

    At temperature 0, scores that are equal in floats count as equal. ``base`` is the base of the
    exponential, where None means e. For a base below 1, the lowest scores have the largest weights.
    """
    x, a = np.array(X), np.array(A)
    factor = 1.0 if base is None else float(np.log(base))
    scores = factor * (x @ a @ x.T)
    # The rounding errors of a score, in U and in the direct formula, and those of the largest score.
    error = 2.0**-48 * abs(factor) * (np.abs(x) @ np.abs(a) @ np.abs(x).T)
    error += error.max(axis=1, keepdims=True)
    below = scores - scores.max(axis=1, keepdims=True)
    # Without the largest score of each row, and without the scores equal to it at temperature 0.
    others = below < 0 if temperature == 0 else np.ones_like(below, dtype=bool)
    others[np.arange(len(x)), scores.argmax(axis=1)] = False
    has_weight = below + error >= temperature * SMALL
    unclear = others & has_weight & (error > temperature * CLOSE)
    _require_none(unclear)


def _require_none(unclear: Any) -> None:
    """Raise an error if a weight of a query (a row) and a key (a column) is unclear."""
    if not unclear.any():
        return
    row = int(unclear.any(axis=1).argmax())
    keys = ", ".join(map(str, np.flatnonzero(unclear[row])))
    raise InputError(
        "temperature: expected scores that floats can distinguish; rounding may change which of the "
        f"rows of X are attended to by row {row} (row {keys}); try numbers such as 0.5 and 0.25, "
        "smaller ones, or a higher temperature"
    )


#: Maximum number of listed selectors of a step.
MAX_NAMED = 40

#: A head after 1,500 training steps with Adam. Its inputs are random rows (u, v, 1), and its target at
#: each position is (u, v) of the row with the largest u. The mean squared error is about 0.01.
TRAINED = {
    "X": [[0.3, -0.5, 1.0], [0.9, 0.4, 1.0], [-0.7, 0.8, 1.0], [0.1, -0.9, 1.0]],
    "A": [[1.974, -0.062, -0.636], [0.014, -0.028, -0.421], [14.224, -0.06, -0.139]],
    "V": [[0.993, -0.03], [0.0, 1.033], [0.014, 0.022]],
}
#: Preset matrices that the page offers.
PRESETS = {
    "Figure 2": {"X": figure2.X.tolist(), "A": figure2.T.A.tolist(), "V": figure2.T.V.tolist()},
    "A trained head": TRAINED,
}
#: Default options of U in requests and on the page.
DEFAULTS: dict[str, Any] = {"recipe": "paper", "base": None, "temperature": 1.0}


@dataclass(frozen=True)
class Simulation:
    """A simulation of U that a request describes: T, X and the options of U."""

    X: list[list[float]]
    A: list[list[float]]
    V: list[list[float]]
    recipe: str
    base: float | None
    temperature: float

    def __post_init__(self) -> None:
        n, d, d_v = self.shape
        shapes = {"X": (n, d), "A": (d, d), "V": (d, d_v)}
        for name, shape in shapes.items():
            matrix = getattr(self, name)
            if (len(matrix), len(matrix[0])) != shape:
                expected = "×".join(map(str, shape))
                raise InputError(f"{name}: expected {expected}, got {len(matrix)}×{len(matrix[0])}")

    @property
    def shape(self) -> list[int]:
        """The sizes n, d and d_v."""
        return [len(self.X), len(self.A), len(self.V[0])]

    def parts(self) -> tuple[Attention, UniversalSimulator, Any]:
        """Return T, the simulator U of its order, and X."""
        if self.temperature == 0 and self.base is not None:
            raise InputError(
                "base: expected no base at temperature 0, since hard attention has no exponential"
            )
        hard = self.temperature == 0
        scores = np.array(self.A) if hard else np.array(self.A) / self.temperature
        T = Attention(scores, np.array(self.V), pooling="average" if hard else "softmax")
        U = UniversalSimulator.of(T, len(self.X), recipe=self.recipe, base=self.base)
        return T, U, np.array(self.X)


def explain(**fields: Any) -> dict[str, Any]:
    """Run U on ⟨T, X⟩ step by step, and compare each step with a direct formula.

    T is attention with weights softmax(X (A/t) Xᵀ), where t is the temperature. At t = 0, T is
    average-hard attention.
    """
    asked = Simulation(**fields)
    T, U, x = asked.parts()
    require_distinct_scores(asked.X, asked.A, asked.temperature)
    if asked.base is not None:  # the direct formula has base e
        require_distinct_scores(asked.X, asked.A, asked.temperature, asked.base)
    explanation = U.explain(T, x)
    if asked.temperature == 0:  # U must not round equal scores to different ones
        weights = next(step for step in explanation if step.name == "softmax")
        _require_none(np.abs(weights.matrix - weights.direct) > CLOSE)
    programs = dict(U.each_step())
    tokens = U.encode(T, x).tolist()
    size = U.architecture
    return {
        "order": asked.shape,
        "recipe": asked.recipe,
        "architecture": {"layers": size.layers, "heads": size.heads, "width": size.width},
        "tokens": [{"entry": U.layout.entry(i), "value": value} for i, value in enumerate(tokens)],
        "steps": [
            step.to_dict() | {"direct": step.direct.tolist(), "made by": _heads(programs[step.name])}
            for step in explanation
        ],
        "error": explanation.error,
    }


def _heads(value: Any) -> dict[str, Any]:
    """Return the layers and heads of the program of a step, and the selectors of its last layer."""
    size = architecture(value.sop)
    last = size.structure[-1] if size.structure else ()
    named = [f"{abbreviate(head.selector)} ×{head.members}" for head in last[:MAX_NAMED]]
    return {"layers": size.layers, "heads": size.heads, "selectors": named}


__all__ = ["PRESETS", "RECIPES", "explain"]
