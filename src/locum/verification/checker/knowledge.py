"""What a case of a proof states, and what follows for the signs of polynomials.

A :class:`Knowledge` has the stated signs of polynomials and remainders of entries. The sign of a
polynomial is known if it is a product of polynomials whose signs are stated or known by themselves:
exponentials are positive, even powers are not negative, choices lie between their bounds. Of a square,
and of a sum of squares and of what is not negative, the sign is *noted* when it is computed: in the
polynomial that comes of it nothing can be seen of that any more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import cache, reduce
from typing import TypeAlias

from locum.verification.checker.numbers import Numbers
from locum.verification.checker.polynomials import Polynomial, exponents
from locum.verification.checker.quotients import Quotient

Signs: TypeAlias = frozenset[int]
ANY: Signs = frozenset((-1, 0, 1))
NOT_NEGATIVE: Signs = frozenset((0, 1))
POSITIVE: Signs = frozenset((1,))
#: What an operation on bounds costs, in steps.
BOUND = 500
#: Bits that are kept of long bounds.
_KEPT_BITS = 512


def times(*parts: Signs) -> Signs:
    """Return the signs that a product can have."""
    return reduce(_product_of_two, parts, POSITIVE)


@cache
def _product_of_two(one: Signs, other: Signs) -> Signs:
    return frozenset(a * b for a in one for b in other)


def to_the(signs: Signs, power: int) -> Signs:
    """Return the signs that a positive power can have."""
    return signs if power % 2 else frozenset(sign * sign for sign in signs)


class Knowledge:
    """Statements, each about a polynomial without content and with a positive leading coefficient."""

    def __init__(
        self,
        numbers: Numbers,
        stated: Mapping[Polynomial, Signs] | None = None,
        remainders: Mapping[tuple[int, int], int] | None = None,
    ) -> None:
        self.numbers = numbers
        self.stated = dict(stated or {})
        #: (entry, modulus) → the remainder of an integer entry.
        self.remainders = dict(remainders or {})
        self._signs: dict[Polynomial, Signs] = {}
        self._of_variables: dict[int, Signs] = {}
        self._powers: dict[tuple[int, int], tuple[Fraction, Fraction]] = {}

    def with_sign(self, polynomial: Polynomial, allowed: Signs) -> Knowledge:
        """Add a statement; those about one polynomial are intersected."""
        self.numbers.spend(20 + len(polynomial) + len(self.stated) + len(self.remainders))
        content = polynomial.content
        primitive = polynomial.without(content)
        if content < 0:
            allowed = frozenset(-sign for sign in allowed)
        before = self.stated.get(primitive, ANY)
        return Knowledge(self.numbers, {**self.stated, primitive: before & allowed}, self.remainders)

    def with_remainder(self, entry: int, modulus: int, rest: int) -> Knowledge:
        """Add the remainder of an entry."""
        self.numbers.spend(20 + len(self.stated) + len(self.remainders))
        remainders = {**self.remainders, (entry, modulus): rest}
        return Knowledge(self.numbers, self.stated, remainders)

    # Signs ----------------------------------------------------------------------------------------

    def sign(self, value: Quotient) -> Signs:
        """Return the signs that a quotient can have; its denominator is not 0."""
        parts = [self.possible(value.top)]
        for number, power in value.factors:
            signs = self.possible(self.numbers.factor(number)) - {0}
            parts.append(to_the(signs, power))
        return times(*parts)

    def possible(self, polynomial: Polynomial) -> Signs:
        """Return the signs that a polynomial can have."""
        if polynomial not in self._signs:
            self.numbers.spend(self.numbers.reading(polynomial))
            self._signs[polynomial] = self._possible(polynomial)
        return self._signs[polynomial]

    def _possible(self, polynomial: Polynomial) -> Signs:
        if polynomial.is_constant:
            value = polynomial.terms.get(0, 0)
            return frozenset(((value > 0) - (value < 0),))
        return self._of_factors(polynomial) & self.noted(polynomial)

    def note(self, value: Quotient, signs: Signs) -> None:
        """Note what signs a quotient can have, as far as those of its denominator are known."""
        below = self.sign(Quotient(Polynomial.constant(1), 1, value.factors))
        if len(below) == 1 and not value.top.is_constant:
            content = value.top.content
            possible = times(signs, below, frozenset((1 if content > 0 else -1,)))
            primitive, noted = value.top.without(content), self.numbers.state.signs
            noted[primitive] = noted.get(primitive, ANY) & possible

    def noted(self, polynomial: Polynomial) -> Signs:
        """Return what was noted of a polynomial."""
        if not self.numbers.state.signs:
            return ANY
        content = polynomial.content
        signs = self.numbers.state.signs.get(polynomial.without(content), ANY)
        return times(signs, frozenset((1 if content > 0 else -1,)))

    def _of_factors(self, polynomial: Polynomial) -> Signs:
        content = polynomial.content
        powers = polynomial.least_powers()
        rest = polynomial.over_monomial(powers).without(content)
        parts = [frozenset((1 if content > 0 else -1,))]
        parts += [to_the(self.variable(v), power) for v, power in powers.items()]
        for factor in self.stated:
            if factor.is_constant or len(factor) == 1:
                continue  # single variables are looked at above
            while not rest.is_constant:
                self.numbers.spend(20 + 2 * (len(rest) + len(factor)))
                quotient = rest.divided_by(factor, self.numbers.spend)
                if quotient is None:
                    break
                rest = quotient
                parts.append(self.stated[factor] & self.plain(factor))
        if not rest.is_constant:
            parts.append(self.plain(rest))
        elif rest.terms.get(0, 1) < 0:
            parts.append(frozenset((-1,)))
        return times(*parts)

    def variable(self, number: int) -> Signs:
        """Return the signs that a variable can have."""
        if number not in self._of_variables:
            self._of_variables[number] = self._variable(number)
        return self._of_variables[number]

    def _variable(self, number: int) -> Signs:
        signs = self.stated.get(Polynomial.variable(number), ANY)
        variable = self.numbers.variables[number]
        if variable.kind == "exp":
            return signs & POSITIVE
        if variable.kind in ("absolute", "sqrt"):
            assert variable.argument is not None
            return signs & to_the(self.sign(variable.argument), 2)
        if variable.kind == "choice" and variable.low is not None and variable.high is not None:
            return signs & _between(variable.low, variable.high)
        return signs

    def plain(self, polynomial: Polynomial) -> Signs:
        """Return what the terms one by one tell of the sign of their sum."""
        sides: set[int] = set()
        strict = False
        for monomial, coefficient in polynomial.terms.items():
            side = 1 if coefficient > 0 else -1
            signs = times(*(to_the(self.variable(v), power) for v, power in exponents(monomial)))
            if not signs <= NOT_NEGATIVE:
                if signs <= {-1, 0}:
                    side = -side
                else:
                    return self._by_bounds(polynomial)
            sides.add(side)
            strict = strict or 0 not in signs
        if len(sides) > 1:
            return self._by_bounds(polynomial)
        return frozenset(sides if strict else {*sides, 0})

    def _by_bounds(self, polynomial: Polynomial) -> Signs:
        """Return what bounds tell, if every variable has them."""
        bounds = self.bounds(polynomial)
        return ANY if bounds is None else _between(*bounds)

    def bounds(self, polynomial: Polynomial) -> tuple[Fraction, Fraction] | None:
        """Enclose a polynomial, if every variable has bounds."""
        low = high = Fraction(0)
        for monomial, coefficient in polynomial.terms.items():
            least = most = Fraction(coefficient)
            for number, power in exponents(monomial):
                self.numbers.spend(BOUND * power.bit_length())
                variable = self.numbers.variables[number]
                if variable.low is None or variable.high is None:
                    return None
                key = (number, power)
                if key not in self._powers:
                    self._powers[key] = _raised(Fraction(variable.low), Fraction(variable.high), power)
                ends = [x * y for x in (least, most) for y in self._powers[key]]
                least, most = _outward(min(ends), max(ends))
            low, high = _outward(low + least, high + most)
        return low, high

    # Consequences ---------------------------------------------------------------------------------

    def vanishes(self, polynomial: Polynomial) -> bool:
        """Return whether a polynomial is 0: itself, by a factor, or as a combination of what is 0."""
        if not polynomial or self.possible(polynomial) == {0}:
            return True
        zeros: list[Polynomial] = []
        for zero, signs in self.stated.items():
            if signs == {0} and not zero.is_constant:
                reduced = self._reduced(zero, zeros)
                if reduced:
                    zeros = [r for r in (self._reduced(z, [reduced]) for z in zeros) if r]
                    zeros.append(reduced)
        return bool(zeros) and not self._reduced(polynomial, zeros)

    def _reduced(self, polynomial: Polynomial, zeros: Sequence[Polynomial]) -> Polynomial:
        for _ in range(len(zeros) + 1):
            for zero in zeros:
                self.numbers.spend(20 + self.numbers.reading(polynomial) + len(zero))
                polynomial = polynomial.remainder(zero, self.numbers.spend)
        return polynomial

    def refuted_by(self, bounds: Sequence[tuple[Polynomial, int]]) -> bool:
        """Return whether ±p ≥ 0, all known here, add up to something that cannot be."""
        total, strict = Polynomial.constant(0), False
        for polynomial, side in bounds:
            signs = self.possible(polynomial)
            self.numbers.spend(20 + len(polynomial))
            if not signs:
                return True
            if type(side) is not int or side not in (1, -1) or -side in signs:
                return False
            total = total + polynomial.scaled(side)
            strict = strict or 0 not in signs
        if not bounds or not total.is_constant:
            return False
        value = total.terms.get(0, 0)
        return value < 0 or (value == 0 and strict)


def _raised(low: Fraction, high: Fraction, power: int) -> tuple[Fraction, Fraction]:
    """Enclose the powers of the numbers between two bounds."""
    result = Fraction(1), Fraction(1)
    while power:
        if power % 2:
            result = _product(result, (low, high))
        low, high = _product((low, high), (low, high))
        power //= 2
    return result


def _product(a: tuple[Fraction, Fraction], b: tuple[Fraction, Fraction]) -> tuple[Fraction, Fraction]:
    ends = [x * y for x in a for y in b]
    return _outward(min(ends), max(ends))


def _outward(low: Fraction, high: Fraction) -> tuple[Fraction, Fraction]:
    """Shorten bounds of very many digits, to the safe side."""
    return _shortened(low, math.floor), _shortened(high, math.ceil)


def _shortened(value: Fraction, towards: Callable[[Fraction], int]) -> Fraction:
    if max(value.numerator.bit_length(), value.denominator.bit_length()) < 4 * _KEPT_BITS:
        return value
    size = value.numerator.bit_length() - value.denominator.bit_length()
    scale = Fraction(2) ** (_KEPT_BITS - size)
    return towards(value * scale) / scale


def _between(low: Fraction | int, high: Fraction | int) -> Signs:
    """Return the signs of the numbers from ``low`` to ``high``."""
    signs = {0} if low <= 0 <= high else set()
    return frozenset(signs | ({1} if high > 0 else set()) | ({-1} if low < 0 else set()))
