"""Write the exponent of an exponential as a combination of the exponents of earlier exponentials."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, TypeAlias

from locum.proofs.checker.quotients import Quotient, exponents

#: The exponentials that are represented by variables, as pairs of an exponent and a variable.
Exponentials: TypeAlias = list[tuple[Quotient, Quotient]]
#: The coefficients of the terms of an exponent, by monomial and denominator.
Vector: TypeAlias = dict[Any, Fraction]


def keep_exponent(argument: Quotient, exponentials: Exponentials) -> tuple[list[tuple[int, int]], int]:
    """Use no earlier exponential: return no powers and the divisor 1."""
    return [], 1


class Combination:
    """A function that finds integer combinations of exponents, which it reduces by elimination."""

    def __init__(self) -> None:
        #: Reduced exponents: pivot, vector, and the coefficients of the exponents in the vector.
        self.rows: list[tuple[Any, Vector, dict[int, Fraction]]] = []
        self.known = 0

    def __call__(
        self, argument: Quotient, exponentials: Exponentials
    ) -> tuple[list[tuple[int, int]], int]:
        """Return powers of earlier exponentials, and a divisor of the remaining exponent."""
        for number in range(self.known, len(exponentials)):
            rest, combination = self._reduce(exponentials[number][0])
            if rest:
                pivot = next(iter(rest))
                scale = rest[pivot]
                parts = {k: -c / scale for k, c in combination.items()} | {number: 1 / scale}
                self.rows.append((pivot, {key: c / scale for key, c in rest.items()}, parts))
        self.known = len(exponentials)
        rest, combination = self._reduce(argument)
        if any(power.denominator != 1 for power in combination.values()):
            return [], 1
        powers = [(number, int(power)) for number, power in combination.items() if power]
        return powers, math.gcd(*(value.numerator for value in rest.values())) or 1

    def _reduce(self, argument: Quotient) -> tuple[Vector, dict[int, Fraction]]:
        """Subtract multiples of earlier exponents from an exponent.

        Return the remainder, and a mapping from the numbers of earlier exponents to the multiples
        that were subtracted.
        """
        rest, combination = _vector(argument), dict[int, Fraction]()
        for pivot, row, parts in self.rows:
            factor = rest.get(pivot)
            if factor:
                for key, value in row.items():
                    rest[key] = rest.get(key, Fraction(0)) - factor * value
                rest = {key: value for key, value in rest.items() if value}
                for number, value in parts.items():
                    combination[number] = combination.get(number, Fraction(0)) + factor * value
        return rest, combination


def _vector(argument: Quotient) -> Vector:
    """Return the terms of an exponent, with common variables of numerator and denominator cancelled."""
    vector: Vector = {}
    for monomial, coefficient in argument.top.terms.items():
        powers, factors = dict(exponents(monomial)), dict(argument.factors)
        for factor in argument.factors:
            single = list(exponents(max(factor.terms))) if len(factor.terms) == 1 else []
            for variable, _ in single:
                common = min(factors[factor], powers.get(variable, 0))
                factors[factor] -= common
                powers[variable] = powers.get(variable, 0) - common
        below = frozenset((factor, power) for factor, power in factors.items() if power)
        above = frozenset((variable, power) for variable, power in powers.items() if power)
        vector[above, below] = Fraction(coefficient)
    return vector
