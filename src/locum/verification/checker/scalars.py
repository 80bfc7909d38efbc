"""The checker's scalars: what every elementwise operation gives in one case of a proof.

Comparisons and what depends on them are in ``decisions.py``; here is arithmetic over the real numbers,
and the table of all operations.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from locum.errors import InputError
from locum.graph.operations import ROUNDINGS, TRANSCENDENTAL
from locum.verification.checker import enclosures
from locum.verification.checker.decisions import HOLDS, Decisions
from locum.verification.checker.knowledge import ANY, NOT_NEGATIVE, POSITIVE, Knowledge, Signs
from locum.verification.checker.polynomials import MAX_BITS, TooLargeError, exponents, limited_bits
from locum.verification.checker.quotients import Quotient, Rational
from locum.verification.checker.values import (
    UNKNOWN,
    Missing,
    Open,
    Scalar,
    is_number,
    is_rational,
    length,
    simple,
    without_value,
)

#: Functions of real numbers that are known by their arguments only.
_OPAQUE = ("sqrt", *(name for name in TRANSCENDENTAL if name != "exp"))


class Scalars(Decisions):
    """Elementwise operations in one case."""

    def __init__(self, knowledge: Knowledge, integer: bool) -> None:
        super().__init__(knowledge, integer)
        self.operations: dict[str, Callable[..., Scalar]] = {
            "add": self._arithmetic(lambda a, b: a + b, self._sum),
            "subtract": self._arithmetic(lambda a, b: a - b, self.numbers.subtract),
            "multiply": self._arithmetic(lambda a, b: a * b, self._product),
            "negate": self._arithmetic(lambda a: -a, self.numbers.negate),
            "divide": self._on_numbers(self.divide),
            "modulo": self._on_numbers(self.modulo),
            "floor_divide": self._on_numbers(self.floor_divide),
            "power": self._on_numbers(self.power),
            "absolute": self._on_numbers(self.absolute),
            "exp": self._on_numbers(lambda a: self.plain(self.numbers.exp(self.quotient(a)))),
            "floor": self._on_numbers(lambda a: self.rounded("floor", math.floor, a)),
            "round": self._on_numbers(lambda a: self.rounded("round", round, a)),
            "minimum": lambda a, b: self.if_else(self.compare("less", a, b), a, b),
            "maximum": lambda a, b: self.if_else(self.compare("greater", a, b), a, b),
            "and": lambda a, b: self.all_of([self.truth(a), self.truth(b)]),
            "or": lambda a, b: self.negation(
                self.all_of([self.negation(self.truth(a)), self.negation(self.truth(b))])
            ),
            "not": lambda a: self.negation(self.truth(a)),
            "if_else": self.if_else,
            "indicator": lambda a: self.if_else(self.truth(a), 1, 0),
            "member": self.member,
            "lookup": self.lookup,
        }
        for name in HOLDS:
            self.operations[name] = lambda a, b, name=name: self.compare(name, a, b)
        for name in ROUNDINGS:
            self.operations[name] = _reject_rounding
        for name in _OPAQUE:
            self.operations[name] = self._on_numbers(lambda a, name=name: self.opaque(name, a))

    def _on_numbers(self, function: Callable[..., Scalar]) -> Callable[..., Scalar]:
        def operation(*values: Scalar) -> Scalar:
            trouble = without_value(values)
            # Greatest common divisors of long numbers take the square of their bits.
            self.numbers.spend(sum(map(length, values)) ** 2 >> 16)
            return function(*map(self.numeric, values)) if trouble is None else trouble

        return operation

    def _arithmetic(
        self, concrete: Callable[..., Rational], symbolic: Callable[..., Quotient]
    ) -> Callable[..., Scalar]:
        def function(*values: Scalar) -> Scalar:
            if all(map(is_rational, values)):
                result = simple(concrete(*values))
                limited_bits(result.numerator)
                limited_bits(result.denominator)
                return result
            return self.plain(symbolic(*map(self.quotient, values)))

        return self._on_numbers(function)

    def _product(self, a: Quotient, b: Quotient) -> Quotient:
        """Return a · b; a square is not negative."""
        result = self.numbers.multiply(a, b)
        if len(a.top) > 1 and a.key == b.key:
            self.knowledge.note(result, NOT_NEGATIVE)
        return result

    def _sum(self, a: Quotient, b: Quotient) -> Quotient:
        """Return a + b.

        Note that it is not negative if both are not, and positive if one of them is.
        """
        result = self.numbers.add(a, b)
        if self.numbers.state.signs:
            signs = [self._noted(part) for part in (a, b)]
            if all(one <= NOT_NEGATIVE for one in signs):
                strict = any(0 not in one for one in signs)
                self.knowledge.note(result, POSITIVE if strict else NOT_NEGATIVE)
        return result

    def _noted(self, value: Quotient) -> Signs:
        """Return what is known of a sign without a search."""
        if len(value.top) > 1 and self.knowledge.noted(value.top) == ANY:
            return ANY
        return self.knowledge.sign(value)

    # Arithmetic -----------------------------------------------------------------------------------

    def divide(self, a: Scalar, b: Scalar) -> Scalar:
        """Return a / b; UNKNOWN where b may be 0."""
        zero = self.compare("equal", b, 0)
        if isinstance(zero, Open):
            return UNKNOWN
        if zero:
            return Missing("division by zero")
        if is_rational(a) and is_rational(b):
            return simple(Fraction(a) / b)
        return self.plain(self.numbers.divide(self.quotient(a), self.quotient(b)))

    def modulo(self, a: Scalar, b: Scalar) -> Scalar:
        """Return a − b·⌊a / b⌋."""
        zero = self.compare("equal", b, 0)
        if isinstance(zero, Open):
            return UNKNOWN
        if zero:
            return Missing("remainder by zero")
        if is_rational(a) and is_rational(b):
            return simple(a % b)
        key = ("modulo", self.identity_of(a), self.identity_of(b))
        if type(b) is int and b > 0 and self._is_integral(a):
            rest = self._remainder(a, b)
            if rest is not None:
                return rest
            return self.numbers.choice((*key, "integers"), 0, b - 1, integer=True)
        return self.numbers.choice(key)

    def _is_integral(self, a: Scalar) -> bool:
        """Return whether a value is a polynomial with integer coefficients in integer entries."""
        if not self.integer or not isinstance(a, Quotient) or a.scale != 1 or a.factors:
            return False
        entries = len(self.numbers.entries)
        return all(variable < entries for variable in a.top.variables)

    def _remainder(self, a: Quotient, modulus: int) -> int | None:
        total = 0
        for monomial, coefficient in a.top.terms.items():
            product = coefficient
            for variable, power in exponents(monomial):
                rest = self.knowledge.remainders.get((variable, modulus))
                if rest is None:
                    return None
                product *= rest**power
            total += product
        return total % modulus

    def floor_divide(self, a: Scalar, b: Scalar) -> Scalar:
        """Return ⌊a / b⌋."""
        rest = self.modulo(a, b)
        if not is_number(rest):
            return rest
        operations = self.operations
        return self.divide(operations["subtract"](a, rest), b)

    def power(self, a: Scalar, b: Scalar) -> Scalar:
        """Return a to the power of b, where it is a real number."""
        if is_rational(b) and Fraction(b).denominator == 1:
            exponent = int(b)
            if exponent < 0:
                below = self.power(a, -exponent)
                return self.divide(1, below)
            if is_rational(a):
                _limited(a, exponent)
                return simple(Fraction(a) ** exponent)
            return self.plain(self.numbers.power(self.quotient(a), exponent))
        if is_rational(a) and a == 1:
            return 1
        positive = self.compare("greater", a, 0)
        if is_rational(a) and is_rational(b):
            if a < 0:
                return Missing("a negative number to a power that is not an integer")
            if a == 0:
                return 0 if b > 0 else Missing("zero to a negative power")
            root = _root(Fraction(a), Fraction(b).denominator)
            if root is not None:
                return self.power(root, Fraction(b).numerator)
        if positive is not True:
            return UNKNOWN
        if is_rational(a):
            return self.plain(self.numbers.exp(self.quotient(b), Fraction(a)))
        return self.numbers.function("power", self._pair(a, b))

    def _pair(self, a: Scalar, b: Scalar) -> Quotient:
        return self.numbers.choice(("pair", self.identity_of(a), self.identity_of(b)))

    def absolute(self, a: Scalar) -> Scalar:
        """Return |a|."""
        if is_rational(a):
            return abs(a)
        signs = self.knowledge.sign(a)
        if signs <= {0, 1}:
            return a
        if signs <= {-1, 0}:
            return self.plain(self.numbers.negate(a))
        return self.numbers.function("absolute", a)

    def opaque(self, name: str, a: Scalar) -> Scalar:
        """Return tanh, erf, log or √: exact where that is simple, else known by its argument."""
        if name in ("log", "sqrt"):
            below = self.compare("less" if name == "sqrt" else "less_equal", a, 0)
            if isinstance(below, Open):
                return UNKNOWN
            if below:
                return Missing(f"{name} is not defined there")
        if is_rational(a):
            root = _root(Fraction(a), 2) if name == "sqrt" else None
            if root is not None:
                return simple(root)
            if a == (1 if name == "log" else 0):
                return 0
        return self.numbers.function(name, self.quotient(a))

    def rounded(self, name: str, function: Callable[[Any], int], a: Scalar) -> Scalar:
        """Apply floor or round, halves to even."""
        if is_rational(a):
            return function(a)
        if self._is_integral(a):
            return a
        return self.numbers.choice((name, self.identity_of(a)))


def _reject_rounding(a: Scalar) -> Scalar:
    """Reject a program that rounds: claims are about real numbers."""
    raise InputError("the program rounds to a floating-point type; claims are about real numbers")


def _limited(base: Rational, exponent: int) -> None:
    size = max(base.numerator.bit_length(), base.denominator.bit_length())
    if size * exponent > MAX_BITS and base not in (-1, 0, 1):
        raise TooLargeError(f"a number has more than {MAX_BITS:,} bits")


def _root(value: Fraction, degree: int) -> Fraction | None:
    """Return the rational root of a positive number, if there is one."""
    if degree > MAX_BITS:
        return None
    parts = []
    for part in (value.numerator, value.denominator):
        root = _integer_root(part, degree)
        if root is None:
            return None
        parts.append(root)
    return Fraction(*parts)


def _integer_root(value: int, degree: int) -> int | None:
    root = enclosures.root_below(value, degree)
    return root if root**degree == value else None
