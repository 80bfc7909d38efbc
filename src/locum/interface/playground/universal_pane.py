"""U on a T and an X of the page: the tokens ⟨T, X⟩, every step, and its rounding error."""

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
from locum.proofs import certify as certify_result
from locum.proofs.claims.named import claim as named_claim
from locum.simulators import UniversalSimulator
from locum.simulators.formula.head import RECIPES
from locum.simulators.modules.attention import Attention

#: By how much a weight may be off.
CLOSE = 1e-6

#: Digits of the arithmetic that floats are held against.
_PRECISE = Context(prec=60)

Matrix = list[list[float]]


def require_right(
    X: Matrix, A: Matrix, temperature: float, weights: Matrix, base: float | None = None
) -> None:
    """Refuse attention weights that are not those of X A Xᵀ as these decimals say it.

    ``base`` is that of the exponential, e if None; below 1 the least scores have the greatest weight.
    """
    for query, (row, computed) in enumerate(zip(_scores(X, A), weights, strict=True)):
        exact = _weights(row, Fraction(repr(temperature)), 1.0 if base is None else math.log(base))
        off = [key for key, pair in enumerate(zip(exact, computed, strict=True)) if not _close(*pair)]
        if off:
            size = max(abs(float(score)) for score in row)
            raise InputError(
                "temperature: expected scores that floats tell apart as their decimals do; those of "
                f"row {query} of X with the rows {', '.join(map(str, off))}, of up to {size:.2g}, "
                "are rounded by more than they differ; try numbers such as 0.5 and 0.25, smaller ones, "
                "or a higher temperature"
            )


def off(X: Matrix, A: Matrix, V: Matrix, temperature: float, result: Matrix) -> float:
    """Return how far a result is from T(X) of these decimals, at most: 60 digits against floats.

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
    """Return the softmax of exact scores to 60 digits; at temperature 0, all on the greatest."""
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
    """Return X A Xᵀ, of the decimals as they are written."""
    x = _exact(X)
    return _product(_product(x, _exact(A)), [list(column) for column in zip(*x, strict=True)])


def _weights(scores: list[Fraction], temperature: Fraction, logarithm: float) -> list[float]:
    """Return the softmax of exact scores, by its base's logarithm; at temperature 0, the greatest."""
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


#: Heads of a step that are named.
MAX_NAMED = 40

#: A head that was trained, not constructed: 1,500 steps of Adam on random rows (u, v, 1), to give
#: everywhere the u and v of the row with the greatest u. Its mean squared error is 0.01.
TRAINED = {
    "X": [[0.3, -0.5, 1.0], [0.9, 0.4, 1.0], [-0.7, 0.8, 1.0], [0.1, -0.9, 1.0]],
    "A": [[1.974, -0.062, -0.636], [0.014, -0.028, -0.421], [14.224, -0.06, -0.139]],
    "V": [[0.993, -0.03], [0.0, 1.033], [0.014, 0.022]],
}
#: What the page offers to begin with.
PRESETS = {
    "Figure 2": {"X": figure2.X.tolist(), "A": figure2.T.A.tolist(), "V": figure2.T.V.tolist()},
    "A trained head": TRAINED,
}
#: What a request means that does not say: the same as the page.
DEFAULTS: dict[str, Any] = {"recipe": "paper", "base": None, "temperature": 1.0}


@dataclass(frozen=True)
class Simulation:
    """A T and an X of the page, and how U is made: what a request says."""

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
        """n, d and d_v."""
        return [len(self.X), len(self.A), len(self.V[0])]

    def parts(self) -> tuple[Attention, UniversalSimulator, Any]:
        """Return T, the U of its order, and X."""
        if self.temperature == 0 and self.base is not None:
            raise InputError("base: expected none at temperature 0, where there is no exponential")
        hard = self.temperature == 0
        scores = np.array(self.A) if hard else np.array(self.A) / self.temperature
        T = Attention(scores, np.array(self.V), pooling="average" if hard else "softmax")
        U = UniversalSimulator.of(T, len(self.X), recipe=self.recipe, base=self.base)
        return T, U, np.array(self.X)


def explain(**fields: Any) -> dict[str, Any]:
    """Run U on ⟨T, X⟩ step by step, each beside the direct formula.

    T attends by softmax(X (A/t) Xᵀ) with the temperature t; at t = 0 it is average-hard attention.
    """
    asked = Simulation(**fields)
    X, A, base, temperature = asked.X, asked.A, asked.base, asked.temperature
    T, U, x = asked.parts()
    explanation = U.explain(T, x)
    weights = next(step for step in explanation if step.name == "softmax")
    # What U is off by is shown; what the direct formula is off by would not be. Of ties both keep all.
    for matrix in (weights.direct, weights.matrix) if temperature == 0 else (weights.direct,):
        require_right(X, A, temperature, matrix.tolist())
    if base is not None:  # then U is not what the direct formula gives
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
        # The direct formula is in floats, too: what both are rounded by is not an error between them.
        "precise": off(X, A, asked.V, temperature, explanation.steps[-1].matrix.tolist()),
    }


def certify(**fields: Any) -> dict[str, Any]:
    """Enclose the true T(X), and bound what float64 can lose on these numbers."""
    asked = Simulation(**fields)
    if asked.base is not None:
        raise InputError("base: expected none, since T(X) has the exponential of base e; try without")
    T, U, x = asked.parts()
    if asked.temperature and not _divides(asked.A, asked.temperature, T.A):
        raise InputError(
            f"temperature: expected one by which A is divided without rounding, got "
            f"{asked.temperature}; try 1, 0.5 or 2"
        )
    certified = certify_result(U, T, x)
    seen = max(0.0, certified.seen(U(T, x)))
    return {"text": str(certified), "seen": seen, **certified.to_dict()}


def prove(certificate: bool, **fields: Any) -> dict[str, Any]:
    """Prove for all T and X of this order that this very U computes T(X).

    At temperature 0 that is hard attention; at any other, T has A divided by it, and all A are meant.
    """
    asked = Simulation(**fields)
    if asked.base is not None:
        raise InputError(f"base: expected e, the base of what is proven, got {asked.base:g}; try e")
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
    """Say whether A divided by the temperature is exact: T(X) is enclosed, not a neighbour's."""
    pairs = zip((x for row in A for x in row), np.ravel(scores).tolist(), strict=True)
    return all(Fraction(x) == Fraction(y) * Fraction(temperature) for x, y in pairs)


def _heads(value: Any) -> dict[str, Any]:
    """Count the heads of a step's program, and name the selectors of its last layer."""
    size = architecture(value.sop)
    last = size.structure[-1] if size.structure else ()
    named = [f"{abbreviate(head.selector)} ×{head.members}" for head in last[:MAX_NAMED]]
    return {"layers": size.layers, "heads": size.heads, "selectors": named}


__all__ = ["PRESETS", "RECIPES", "certify", "explain", "prove"]
