"""Run U on a T and an X from the page, and return tokens, steps and rounding errors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from locum.errors import InputError
from locum.graph import abbreviate
from locum.graph.architecture import architecture
from locum.interface.playground import panes
from locum.paper import figure2
from locum.proofs.claims.named import claim as named_claim
from locum.simulators import UniversalSimulator
from locum.simulators.formula.head import RECIPES
from locum.simulators.modules.attention import Attention

#: Maximum error of an attention weight.
CLOSE = 1e-6

#: Precision of the reference arithmetic.
_PRECISE = Context(prec=60)

Matrix = list[list[float]]


def require_right(
    X: Matrix, A: Matrix, temperature: float, weights: Matrix, base: float | None = None
) -> None:
    """Raise an error if computed attention weights differ by more than ``CLOSE`` from the exact softmax
    of X A Xᵀ/t, where t is the temperature.

    At t = 0, the exact weights are average-hard attention. ``base`` is the base of the exponential,
    where None means e. For a base below 1, the lowest scores have the largest weights.
    """
    for query, (row, computed) in enumerate(zip(_scores(X, A), weights, strict=True)):
        exact = _weights(row, Fraction(repr(temperature)), 1.0 if base is None else math.log(base))
        off = [key for key, pair in enumerate(zip(exact, computed, strict=True)) if not _close(*pair)]
        if off:
            size = max(abs(float(score)) for score in row)
            raise InputError(
                f"temperature: expected scores that floats can distinguish; the scores of row {query} "
                f"of X with the rows {', '.join(map(str, off))}, of up to {size:.2g}, "
                "are rounded by more than they differ; try numbers such as 0.5 and 0.25, smaller ones, "
                "or a higher temperature"
            )


def off(X: Matrix, A: Matrix, V: Matrix, temperature: float, result: Matrix) -> float:
    """Return the largest difference between ``result`` and T(X); T(X) is computed with 60 digits.

    The entries of X, A and V are read as exact decimals.

    >>> X, V, third = [[0.1, 0.3]], [[3.0], [-1.0]], 0.1 * 3 - 0.3
    >>> third, off(X, [[0.0, 0.0], [0.0, 0.0]], V, 1.0, [[third]]) == third
    (5.551115123125783e-17, True)
    """
    values = _product(_exact(X), _exact(V))
    greatest = Decimal(0)
    for row, computed in zip(_scores(X, A), result, strict=True):
        weights = _precise_weights(row, Fraction(repr(temperature)))
        for column, number in enumerate(computed):
            terms = [_decimal(value[column]) for value in values]
            true = Decimal(0)
            for weight, term in zip(weights, terms, strict=True):
                true = _PRECISE.fma(weight, term, true)
            greatest = max(greatest, abs(_PRECISE.subtract(Decimal(number), true)))
    return float(greatest)


def _precise_weights(scores: list[Fraction], temperature: Fraction) -> list[Decimal]:
    """Return the softmax of exact scores to 60 digits.

    At temperature 0, the weight is distributed equally over the largest scores.
    """
    greatest = max(scores)
    if not temperature:
        powers = [Decimal(score == greatest) for score in scores]
    else:
        powers = [_PRECISE.exp(_decimal((score - greatest) / temperature)) for score in scores]
    total = sum(powers, Decimal(0))
    return [_PRECISE.divide(power, total) for power in powers]


def _decimal(number: Fraction) -> Decimal:
    return _PRECISE.divide(Decimal(number.numerator), Decimal(number.denominator))


def _exact(rows: Matrix) -> list[list[Fraction]]:
    return [[Fraction(repr(entry)) for entry in row] for row in rows]


def _scores(X: Matrix, A: Matrix) -> list[list[Fraction]]:
    """Return the exact scores X A Xᵀ, where the entries of X and A are read as decimals."""
    x = _exact(X)
    return _product(_product(x, _exact(A)), [list(column) for column in zip(*x, strict=True)])


def _weights(scores: list[Fraction], temperature: Fraction, logarithm: float) -> list[float]:
    """Return the softmax of exact scores, for the base with the natural logarithm ``logarithm``.

    At temperature 0, the weight is distributed equally over the largest scores.
    """
    greatest = max(scores)
    if not temperature:
        count = scores.count(greatest)
        return [1 / count if score == greatest else 0.0 for score in scores]
    first = greatest if logarithm > 0 else min(scores)
    exponents = [float((score - first) / temperature) * logarithm for score in scores]
    powers = [math.exp(max(exponent, -1e3)) for exponent in exponents]
    return [power / sum(powers) for power in powers]


def _close(one: float, other: float) -> bool:
    return abs(one - other) <= CLOSE


def _product(a: list[list[Fraction]], b: list[list[Fraction]]) -> list[list[Fraction]]:
    columns = list(zip(*b, strict=True))
    zero = Fraction(0)
    return [[sum((p * q for p, q in zip(r, c, strict=True)), zero) for c in columns] for r in a]


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
    X, A, base, temperature = asked.X, asked.A, asked.base, asked.temperature
    T, U, x = asked.parts()
    explanation = U.explain(T, x)
    weights = next(step for step in explanation if step.name == "softmax")
    # The page shows the error of U, but not the error of the direct formula. At temperature 0, both
    # must preserve ties.
    for matrix in (weights.direct, weights.matrix) if temperature == 0 else (weights.direct,):
        require_right(X, A, temperature, matrix.tolist())
    if base is not None:  # for another base, U differs from the direct formula
        require_right(X, A, temperature, weights.matrix.tolist(), base)
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
        # The direct formula also uses floats, so "error" excludes rounding errors that both share.
        "precise": off(X, A, asked.V, temperature, explanation.steps[-1].matrix.tolist()),
    }


def certify(**fields: Any) -> dict[str, Any]:
    """Compute certified bounds on T(X) and on the rounding errors of U in float64."""
    from locum.proofs import certify as certify_result  # needs python-flint

    asked = Simulation(**fields)
    if asked.base is not None:
        raise InputError("base: expected no base, since T(X) uses base e; try without a base")
    T, U, x = asked.parts()
    if asked.temperature and not _divides(asked.A, asked.temperature, T.A):
        raise InputError(
            f"temperature: expected a temperature by which A can be divided without rounding, got "
            f"{asked.temperature}; try 1, 0.5 or 2"
        )
    certified = certify_result(U, T, x)
    seen = max(0.0, certified.seen(U(T, x)))
    return {"text": str(certified), "seen": seen, **certified.to_dict()}


def prove(certificate: bool, **fields: Any) -> dict[str, Any]:
    """Prove that U computes T(X) for all T and X of this order.

    At temperature 0, the claim is about hard attention. At other temperatures, the claim is about all
    matrices A, and therefore also about A divided by the temperature.
    """
    asked = Simulation(**fields)
    if asked.base is not None:
        raise InputError(f"base: expected e, the base in the proof, got {asked.base:g}; try e")
    _, U, _ = asked.parts()
    name, chosen = ("hard_attention", None) if asked.temperature == 0 else ("attention", asked.recipe)
    panes.require_small(asked.shape)
    if named_claim(name, *asked.shape, recipe=chosen).program is not U.output.sop.node:
        raise InputError(
            f"recipe: expected fetch, the U that {name} is proven of, got {asked.recipe}; try fetch, "
            "or a temperature above 0"
        )
    return panes.prove(name, asked.shape, chosen, certificate)


def _divides(A: list[list[float]], temperature: float, scores: Any) -> bool:
    """Return whether A divided by the temperature is exact in floats, so that bounds apply to T(X)."""
    pairs = zip((x for row in A for x in row), np.ravel(scores).tolist(), strict=True)
    return all(Fraction(x) == Fraction(y) * Fraction(temperature) for x, y in pairs)


def _heads(value: Any) -> dict[str, Any]:
    """Return the layers and heads of the program of a step, and the selectors of its last layer."""
    size = architecture(value.sop)
    last = size.structure[-1] if size.structure else ()
    named = [f"{abbreviate(head.selector)} ×{head.members}" for head in last[:MAX_NAMED]]
    return {"layers": size.layers, "heads": size.heads, "selectors": named}


__all__ = ["PRESETS", "RECIPES", "certify", "explain", "prove"]
