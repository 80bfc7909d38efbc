"""Whether rounding decided what is shown of U: attention weights against those of the numbers as typed.

Floats hold neither 0.1 nor large products exactly. That matters little, but where scores tie, or are so
large that what they are rounded by outweighs a temperature, other keys win and the result is another.

>>> require_right([[0.5], [0.25]], [[1.0]], 0.0, [[1.0, 0.0], [1.0, 0.0]])
>>> require_right([[0.1], [0.1]], [[1.0]], 0.0, [[1.0, 0.0], [0.5, 0.5]])
Traceback (most recent call last):
locum.errors.InputError: temperature: expected scores that floats tell apart as their decimals do; ...
"""

from __future__ import annotations

import math
from fractions import Fraction

from locum.errors import InputError

#: By how much a weight may be off.
CLOSE = 1e-6

Matrix = list[list[float]]


def require_right(
    X: Matrix, A: Matrix, temperature: float, weights: Matrix, base: float | None = None
) -> None:
    """Refuse attention weights that are not those of X A Xᵀ as these decimals say it.

    ``base`` is that of the exponential, e if None; below 1 the least scores have the greatest weight.
    """
    x, a = ([[Fraction(repr(entry)) for entry in row] for row in rows] for rows in (X, A))
    scores = _product(_product(x, a), [list(column) for column in zip(*x, strict=True)])
    for query, (row, found) in enumerate(zip(scores, weights, strict=True)):
        exact = _weights(row, Fraction(repr(temperature)), 1.0 if base is None else math.log(base))
        off = [key for key, pair in enumerate(zip(exact, found, strict=True)) if not _close(*pair)]
        if off:
            size = max(abs(float(score)) for score in row)
            raise InputError(
                "temperature: expected scores that floats tell apart as their decimals do; those of "
                f"row {query} of X with the rows {', '.join(map(str, off))}, of up to {size:.2g}, "
                "are rounded by more than they differ; try numbers such as 0.5 and 0.25, smaller ones, "
                "or a higher temperature"
            )


def _weights(scores: list[Fraction], temperature: Fraction, logarithm: float) -> list[float]:
    """Softmax of exact scores, by a base of this logarithm; at temperature 0, all on the greatest."""
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
