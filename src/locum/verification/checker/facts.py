"""The facts of one case: signs of polynomials, remainders of entries, and what follows from them.

A variable is an entry of the input, a function of a value, or a *choice*: a real number that depends on
an undecided comparison.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from locum.verification.checker.quotients import Polynomial, Quotient, Rational, exponents

#: A set of signs that a value can have: −1, 0, 1.
Signs: TypeAlias = frozenset[int]
ANY: Signs = frozenset((-1, 0, 1))
Bounds: TypeAlias = "tuple[Rational, Rational] | None"


def multiply_signs(one: Signs, other: Signs, power: int = 1) -> Signs:
    """Return the signs that a product with a positive power can have."""
    return frozenset(a * (b if power % 2 else b * b) for a in one for b in other)


def sign_of(value: Rational) -> int:
    """Return −1, 0 or 1."""
    return (value > 0) - (value < 0)


@dataclass(frozen=True)
class Variable:
    """A variable: its kind, the argument of a function, and bounds."""

    kind: str
    argument: Quotient | None = None
    bounds: Bounds = None


class Facts:
    """What is known in one case."""

    def __init__(self) -> None:
        self.variables: list[Variable] = []
        #: Signs of monic polynomials that are not constant.
        self.stated: dict[Polynomial, Signs] = {}
        #: (entry, modulus) → the remainder of an integer entry.
        self.remainders: dict[tuple[int, int], int] = {}
        self._signs: dict[Polynomial, Signs] = {}

    def new(self, variable: Variable) -> Quotient:
        """Add a variable."""
        self.variables.append(variable)
        return Quotient(Polynomial.variable(len(self.variables) - 1))

    def state(self, polynomial: Polynomial, signs: Signs) -> None:
        """Add a fact about the sign of a polynomial; facts about constants are not used."""
        if polynomial.rational is None:
            signs = multiply_signs(signs, frozenset((sign_of(polynomial.leading),)))
            self.stated[polynomial.monic()] = self.stated.get(polynomial.monic(), ANY) & signs
            self._signs.clear()

    def sign(self, value: Quotient) -> Signs:
        """Return the signs that a quotient can have; its factors are not 0."""
        signs = self.sign_of_polynomial(value.top)
        for factor, power in value.factors.items():
            signs = multiply_signs(signs, self.sign_of_polynomial(factor) - {0}, power)
        return signs & value.signs

    def sign_of_polynomial(self, polynomial: Polynomial) -> Signs:
        """Return the signs that a polynomial can have: those of the product of its known factors."""
        if polynomial.rational is not None:
            return frozenset((sign_of(polynomial.rational),))
        if polynomial not in self._signs:
            signs: Signs = frozenset((sign_of(polynomial.leading),))
            powers, rest = polynomial.monic().split()
            for variable, power in powers.items():
                signs = multiply_signs(signs, self._sign_of_variable(variable), power)
            for factor, stated in self.stated.items():
                while rest.rational is None and (quotient := rest.over(factor)) is not None:
                    signs = multiply_signs(signs, stated & self._sign_of_sum(factor))
                    rest = quotient
            if rest.rational is None:
                signs = multiply_signs(signs, self._sign_of_sum(rest))
            self._signs[polynomial] = signs
        return self._signs[polynomial]

    def _sign_of_variable(self, number: int) -> Signs:
        signs, variable = self.stated.get(Polynomial.variable(number), ANY), self.variables[number]
        if variable.kind == "exp":
            return signs & {1}
        if variable.kind in ("absolute", "sqrt") and variable.argument is not None:
            return signs & multiply_signs(frozenset((1,)), self.sign(variable.argument), 2)
        return signs & _signs_between(variable.bounds)

    def _sign_of_sum(self, polynomial: Polynomial) -> Signs:
        """Return the sign that all terms share, or the signs between the bounds of the sum."""
        found: set[int] = set()
        strict = False
        for monomial, coefficient in polynomial.terms.items():
            signs: Signs = frozenset((sign_of(coefficient),))
            for variable, power in exponents(monomial):
                signs = multiply_signs(signs, self._sign_of_variable(variable), power)
            found |= signs
            strict = strict or 0 not in signs
        if {-1, 1} <= found:
            return _signs_between(self.bounds(Quotient(polynomial)))
        return frozenset(found - {0} if strict else found)

    def bounds(self, value: Quotient) -> Bounds:
        """Enclose a quotient; None if a variable has no bounds, or if a factor may be close to 0."""
        total = self._bounds_of_polynomial(value.top)
        for factor, power in value.factors.items():
            below = self._bounds_of_polynomial(factor)
            if total is None or below is None or below[0] <= 0 <= below[1]:
                return None
            for _ in range(power):
                total = _multiply_bounds(total, (1 / Fraction(below[1]), 1 / Fraction(below[0])))
        return total

    def _bounds_of_polynomial(self, polynomial: Polynomial) -> Bounds:
        low: Rational = 0
        high: Rational = 0
        for monomial, coefficient in polynomial.terms.items():
            term = (coefficient, coefficient)
            for number, power in exponents(monomial):
                bounds = self.variables[number].bounds
                if bounds is None:
                    return None
                for _ in range(power):
                    term = _multiply_bounds(term, bounds)
            low, high = low + term[0], high + term[1]
        return low, high

    def is_zero(self, polynomial: Polynomial) -> bool:
        """Tell whether a polynomial is 0, or a combination of polynomials that are stated to be 0."""
        if self.sign_of_polynomial(polynomial) == {0}:
            return True
        zeros: list[Polynomial] = []
        for zero, signs in self.stated.items():
            if signs == {0} and (rest := _reduce(zero, zeros)):
                zeros = [one for one in (_reduce(z, [rest]) for z in zeros) if one] + [rest]
        return not _reduce(polynomial, zeros)

    def contradict(self, bounds: Sequence[tuple[Polynomial, int]]) -> bool:
        """Tell whether bounds ±p ≥ 0 that hold here have a sum that cannot be: negative, or 0 > 0."""
        total, strict = Polynomial.constant(0), False
        for polynomial, side in bounds:
            signs = self.sign_of_polynomial(polynomial)
            if type(side) is not int or side not in (1, -1) or not signs or -side in signs:
                return not signs
            total, strict = total + polynomial.scale(side), strict or 0 not in signs
        value = total.rational
        return bool(bounds) and value is not None and (value < 0 or (value == 0 and strict))


def _reduce(polynomial: Polynomial, zeros: Sequence[Polynomial]) -> Polynomial:
    """Subtract multiples of the zeros."""
    for zero in [*zeros] * (len(zeros) + 1):
        _, polynomial = polynomial.divide(zero)
    return polynomial


def _multiply_bounds(one: tuple[Rational, Rational], other: tuple[Rational, Rational]) -> Any:
    ends = [x * y for x in one for y in other]
    return min(ends), max(ends)


def _signs_between(bounds: Bounds) -> Signs:
    """Return the signs of the numbers between two bounds."""
    return ANY if bounds is None else frozenset(range(sign_of(bounds[0]), sign_of(bounds[1]) + 1))
