"""Whether rounding decided what is shown of U: results against those of the numbers as typed.

Floats hold neither 0.1 nor large products exactly. That matters little, but where scores tie, or are so
large that what they are rounded by outweighs a temperature, other keys win and the result is another:
such attention weights are refused. What X V and its mean are rounded by is told (:func:`off`).

>>> require_right([[0.5], [0.25]], [[1.0]], 0.0, [[1.0, 0.0], [1.0, 0.0]])
>>> require_right([[0.1], [0.1]], [[1.0]], 0.0, [[1.0, 0.0], [0.5, 0.5]])
Traceback (most recent call last):
locum.errors.InputError: temperature: expected scores that floats tell apart as their decimals do; ...
"""

from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction

from locum.errors import InputError

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
