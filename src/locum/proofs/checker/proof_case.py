"""Represent values in one case of a proof, with elementwise operations and bounds of exp, log and √.

A value at one position is a bool, an int, a Fraction, a :class:`Quotient` in the variables of the case,
or one of the following:

- :class:`Open`: a boolean that the facts of the case do not decide;
- :data:`UNKNOWN`: a value without any known property, which may be undefined.

An undefined operation raises :class:`NoValueError` or returns :data:`UNKNOWN`. If the result of an
operation depends on an undecided comparison, the operation returns a variable, an open boolean or
:data:`UNKNOWN`. Variables that represent results, and open booleans, have a key that depends on the
operation and its operands. The same operation on the same operands therefore returns the same variable
or open boolean, unless an operand is unknown.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from locum.errors import InputError
from locum.graph.operations import TRANSCENDENTAL
from locum.proofs.checker.exponentials import Exponentials, keep_exponent
from locum.proofs.checker.quotients import (
    ANY,
    Facts,
    Quotient,
    Rational,
    Signs,
    Variable,
    exponents,
    multiply_signs,
    sign_of,
    simplify,
)

Interval = tuple[Fraction, Fraction]
#: Number of bits after the binary point of rounded bounds, and the largest absolute argument of an
#: exponential.
_BITS = 400
_LARGEST = 10_000


def enclose(name: str, low: Rational, high: Rational) -> Interval | None:
    """Enclose the values of exp, log or sqrt on the interval from ``low`` to ``high``.

    The function must be defined on the whole interval. Return None for all other functions.
    """
    function = {"exp": _exp, "log": _log, "sqrt": _sqrt}.get(name)
    return None if function is None else (function(Fraction(low))[0], function(Fraction(high))[1])


def _down(x: Fraction) -> Fraction:
    return Fraction((x.numerator << _BITS) // x.denominator, 1 << _BITS)


def _up(x: Fraction) -> Fraction:
    return -_down(-x)


def _exp(x: Fraction) -> Interval:
    """Enclose exp(x), x ≥ 0: sum the power series at y = x/2ᵏ ≤ 1/2, and square the sum k times.

    The remainder of the series is at most the last term that is added. For x < 0, enclose 1/exp(−x).
    """
    if abs(x) > _LARGEST:
        raise InputError(f"exp: expected an argument from −{_LARGEST:,} to {_LARGEST:,}, got another")
    if x < 0:
        low, high = _exp(-x)
        return 1 / high, 1 / low
    halvings = max(0, x.numerator.bit_length() - x.denominator.bit_length() + 2)
    low, high = least, most = Fraction(1), Fraction(1)
    y = _down(x / 2**halvings), _up(x / 2**halvings)
    for n in range(1, 100):
        least, most = _down(least * y[0] / n), _up(most * y[1] / n)
        low, high = low + least, high + most
    high += most
    for _ in range(halvings):
        low, high = _down(low * low), _up(high * high)
    return low, high


def _log(x: Fraction) -> Interval:
    r"""Enclose log x as g + log(1 + e), where g is a float close to log x and e = x/exp(g) − 1.

    For |e| ≤ 1/2, e − e² ≤ log(1 + e) ≤ e.
    """
    guess = Fraction(math.log(x.numerator) - math.log(x.denominator))
    low, high = _exp(guess)
    least, most = x / high - 1, x / low - 1
    if abs(least) > Fraction(1, 2) or abs(most) > Fraction(1, 2):
        raise InputError("log: expected a number whose logarithm is close to a float")
    return _down(guess + least - least * least), _up(guess + most)


def _sqrt(x: Fraction) -> Interval:
    root = math.isqrt((x.numerator << 2 * _BITS) // x.denominator)
    return Fraction(root, 1 << _BITS), Fraction(root + 1, 1 << _BITS)


Value: TypeAlias = Any
#: A function that maps the exponent of an exponential, and the earlier exponentials, to powers of
#: earlier exponentials and a divisor of the remaining exponent.
Combine: TypeAlias = Callable[[Quotient, Exponentials], tuple[list[tuple[int, int]], int]]

UNKNOWN = object()
COMPARISONS: dict[str, Signs] = {
    "equal": frozenset((0,)),
    "not_equal": frozenset((-1, 1)),
    "less": frozenset((-1,)),
    "less_equal": frozenset((-1, 0)),
    "greater": frozenset((1,)),
    "greater_equal": frozenset((0, 1)),
}


class NoValueError(InputError):
    """Raised for an undefined operation, such as a division by zero."""


@dataclass(frozen=True)
class Open:
    """An undecided boolean; booleans with the same ``number`` are equal."""

    number: int


def is_rational(value: Value) -> bool:
    """Return whether a value is an int or a Fraction, not a boolean."""
    return type(value) is int or isinstance(value, Fraction)


def is_number(value: Value) -> bool:
    """Return whether a value is known to be a number, not a boolean."""
    return is_rational(value) or isinstance(value, Quotient)


def is_boolean(value: Value) -> bool:
    """Return whether a value is known to be a boolean."""
    return isinstance(value, (bool, Open))


class Case:
    """One case of a proof: its facts and variables, and elementwise operations on values."""

    def __init__(self, entries: int, integer: bool, combine: Combine = keep_exponent) -> None:
        self.facts = Facts()
        self.integer = integer
        self.combine = combine
        self.entries: list[Value] = [self.facts.new(Variable("entry")) for _ in range(entries)]
        self.exponentials: Exponentials = []
        self._known: dict[Hashable, Quotient] = {}
        self._numbers: dict[Hashable, int] = {}
        self._on_numbers: dict[str, Callable[..., Value]] = {
            "add": self._add,
            "subtract": lambda a, b: self._add(a, self._multiply(-1, b)),
            "multiply": self._multiply,
            "negate": lambda a: self._multiply(-1, a),
            "divide": self._divide,
            "modulo": self._modulo,
            "floor_divide": lambda a, b: self.apply("floor", self.apply("divide", a, b)),
            "power": self._power,
            "absolute": self._absolute,
            "exp": self._exp,
            "floor": lambda a: self._round(math.floor, a),
            "round": lambda a: self._round(round, a),
            "lookup": self._lookup,
        }
        for name in ("sqrt", *TRANSCENDENTAL):
            self._on_numbers.setdefault(name, lambda a, name=name: self._function(name, a))
        self._on_values: dict[str, Callable[..., Value]] = {
            "minimum": lambda a, b: self._if_else(self.compare("less", a, b), a, b),
            "maximum": lambda a, b: self._if_else(self.compare("greater", a, b), a, b),
            "and": lambda a, b: self._all_of([self._truth(a), self._truth(b)]),
            "or": lambda a, b: self._any_of([self._truth(a), self._truth(b)]),
            "not": lambda a: self._not(self._truth(a)),
            "if_else": self._if_else,
            "indicator": lambda a: self._if_else(a, 1, 0),
            "member": lambda a, values: self._any_of([self.compare("equal", a, b) for b in values]),
        }

    def apply(self, name: str, *values: Value, **attributes: Any) -> Value:
        """Apply the elementwise operation ``name``.

        Arithmetic with an unknown operand returns :data:`UNKNOWN`.
        """
        if name in COMPARISONS:
            return self.compare(name, *values)
        if name in self._on_values:
            return self._on_values[name](*values, **attributes)
        if name not in self._on_numbers:
            raise InputError(f"program: expected operations on real numbers, got {name[:40]}")
        if any(value is UNKNOWN for value in values):
            return UNKNOWN
        result = self._on_numbers[name](*map(self.to_number, values), **attributes)
        constant = result.rational if isinstance(result, Quotient) else None
        return result if constant is None else constant

    def apply_strict(self, name: str, *values: Value) -> Value:
        """Apply an operation of a formula; return :data:`UNKNOWN` if any operand is unknown."""
        return UNKNOWN if any(value is UNKNOWN for value in values) else self.apply(name, *values)

    def _number(self, key: Hashable) -> int:
        return self._numbers.setdefault(key, len(self._numbers))

    def identity(self, value: Value) -> int:
        """Return an id that structurally equal values share.

        Each unknown value receives a new id.
        """
        if isinstance(value, Quotient):
            return self._number(("quotient", value.key))
        if isinstance(value, Open):
            return value.number
        if value is UNKNOWN:
            return self._number(("unknown", len(self._numbers)))
        return self._number((type(value) is bool, value))

    def choose(self, key: Hashable, candidates: Sequence[Value], mean: bool = False) -> Value:
        """Return a value that represents one of ``candidates``, or a number between the candidates.

        Calls with equal keys return equal values. If all candidates are booleans, and ``mean`` is
        False, the result is an open boolean. Otherwise, the result is UNKNOWN if a candidate is not a
        number.
        """
        if all(map(is_boolean, candidates)) and not mean:
            return Open(self._number(key))
        if not all(map(is_number, candidates)):
            return UNKNOWN
        if key not in self._known:
            rational = all(map(is_rational, candidates))
            bounds = (min(candidates), max(candidates)) if rational else None
            self._known[key] = self.facts.new(Variable("choice", None, bounds))
        return self._known[key]

    def to_number(self, value: Value) -> Value:
        """Convert a boolean to 0 or 1, or to a variable if it is open; keep other values unchanged."""
        if isinstance(value, Open):
            return self._if_else(value, 1, 0)
        return int(value) if isinstance(value, bool) else value

    def compare(self, name: str, a: Value, b: Value) -> Value:
        """Compare two values by the sign of a − b; ``name`` is the comparison, such as ``"less"``."""
        if a is UNKNOWN or b is UNKNOWN:
            return Open(self.identity(UNKNOWN))
        a, b, holds = self.to_number(a), self.to_number(b), COMPARISONS[name]
        if is_rational(a) and is_rational(b):
            return sign_of(a - b) in holds
        value = Quotient.of(self._add(a, self._multiply(-1, b)))
        signs = self.facts.sign(value)
        if signs <= holds or not signs & holds:
            return signs <= holds
        # Differences that are positive multiples of each other share an id. The negation of a
        # comparison is represented by the negated boolean of this comparison.
        side, one = sign_of(value.top.leading), holds if len(holds) == 1 else ANY - holds
        odd = frozenset(factor for factor, power in value.factors.items() if power % 2)
        key = ("sign", value.top.monic(), odd, frozenset(side * sign for sign in one))
        return Open(self._number(key)) if one == holds else self._not(Open(self._number(key)))

    def _truth(self, value: Value) -> Value:
        return value if is_boolean(value) else self.compare("not_equal", value, 0)

    def _not(self, truth: Value) -> Value:
        return Open(self._number(("not", truth.number))) if isinstance(truth, Open) else not truth

    def _all_of(self, truths: Sequence[Value]) -> Value:
        """Return the conjunction of booleans, which is False if any boolean is False."""
        if any(truth is False for truth in truths):
            return False
        numbers = sorted({truth.number for truth in truths if isinstance(truth, Open)})
        if len(numbers) < 2:
            return Open(numbers[0]) if numbers else True
        return Open(self._number(("and", *numbers)))

    def _any_of(self, truths: Sequence[Value]) -> Value:
        return self._not(self._all_of([self._not(truth) for truth in truths]))

    def _if_else(self, condition: Value, then: Value, otherwise: Value) -> Value:
        truth = self._truth(condition)
        if isinstance(truth, bool):
            return then if truth else otherwise
        key = ("if", truth.number, self.identity(then), self.identity(otherwise))
        return then if key[2] == key[3] else self.choose(key, [then, otherwise])

    def _lookup(self, a: Value, table: Sequence[tuple[Value, Value]]) -> Value:
        """Return the table entry whose key equals ``a``.

        Keys are compared in order. Return :data:`UNKNOWN` if a comparison is undecided before a key is
        equal. Raise :class:`NoValueError` if no key is equal.
        """
        for key, entry in table:
            answer = self.compare("equal", a, key)
            if answer is not False:
                return entry if answer is True else UNKNOWN
        raise NoValueError("the lookup table has no entry for a value")

    def _known_signs(self, value: Value) -> Signs:
        """Return the possible signs of a value.

        For a sum or a quotient, these are the recorded signs, which are found without factoring.
        """
        value = Quotient.of(value)
        single = len(value.top.terms) <= 1 and not value.factors
        return self.facts.sign(value) if single else value.signs

    def _add(self, a: Value, b: Value) -> Value:
        """Return a + b.

        If both operands are known to be non-negative, record that the sum is non-negative, or positive
        if one of them is positive.
        """
        if is_rational(a) and is_rational(b):
            return simplify(a + b)
        if a == 0 or b == 0:
            return a if b == 0 else b
        result = Quotient.of(a) + Quotient.of(b)
        signs = self._known_signs(a) | self._known_signs(b)
        if -1 not in signs:
            zero = 0 in self._known_signs(a) and 0 in self._known_signs(b)
            result.signs &= signs if zero else signs - {0}
        return result

    def _multiply(self, a: Value, b: Value) -> Value:
        """Return a · b and record its sign; a square is non-negative."""
        if is_rational(a) and is_rational(b):
            return simplify(a * b)
        if a == 0 or b == 0:
            return 0
        a, b = Quotient.of(a), Quotient.of(b)
        result = a * b
        result.signs &= multiply_signs(self._known_signs(a), self._known_signs(b))
        result.signs -= {-1} if a.key == b.key else set()
        return result

    def _divide(self, a: Value, b: Value) -> Value:
        """Return a / b, or :data:`UNKNOWN` if it is undecided whether b is 0."""
        zero = self.compare("equal", b, 0)
        if zero is True:
            raise NoValueError("division by zero")
        if isinstance(zero, Open):
            return UNKNOWN
        inverse = Quotient.of(b).inverse()
        inverse.signs &= self._known_signs(b)
        return self._multiply(a, inverse)

    def _modulo(self, a: Value, b: Value) -> Value:
        """Return the remainder a − b·⌊a / b⌋.

        The result is :data:`UNKNOWN` unless both operands are rational, or ``a`` is an integer
        polynomial in integer entries and ``b`` is a positive integer.
        """
        if is_rational(a) and is_rational(b):
            if b == 0:
                raise NoValueError("remainder by zero")
            return simplify(a % b)
        if type(b) is not int or b < 1 or not self._is_integral(a):
            return UNKNOWN
        rests, terms = self.facts.remainders, a.top.terms.items()
        if any((v, b) not in rests for monomial, _ in terms for v, _ in exponents(monomial)):
            return self.choose(("modulo", self.identity(a), b), [0, b - 1])
        return sum(c * math.prod(rests[v, b] ** p for v, p in exponents(m)) for m, c in terms) % b

    def _is_integral(self, value: Quotient) -> bool:
        """Return whether a value is a polynomial with integer coefficients in integer entries."""
        terms, count = value.top.terms.items(), len(self.entries)
        variables = (variable for monomial, _ in terms for variable, _ in exponents(monomial))
        integers = all(type(coefficient) is int for _, coefficient in terms)
        return self.integer and not value.factors and integers and all(v < count for v in variables)

    def _round(self, function: Callable[[Rational], int], a: Value) -> Value:
        if is_rational(a):
            return function(a)
        return a if self._is_integral(a) else UNKNOWN

    def _absolute(self, a: Value) -> Value:
        if is_rational(a):
            return abs(a)
        signs = self.facts.sign(a)
        if -1 in signs and 1 in signs:
            return self._new_function("absolute", a)
        return a if -1 not in signs else self._multiply(-1, a)

    def _power(self, a: Value, b: Value) -> Value:
        """Return a to the power of b as a product or its inverse, a power of √a, exp(b · log a), or 0.

        Return :data:`UNKNOWN`, or raise :class:`NoValueError`, if the case does not show that one of
        these forms is defined.
        """
        if is_rational(b) and Fraction(b).denominator == 1:
            if b < 0:
                return self._divide(1, self._power(a, -b))
            return simplify(Fraction(a) ** int(b)) if is_rational(a) else a ** int(b)
        if is_rational(b) and Fraction(b).denominator == 2:
            root = self._function("sqrt", a)
            return root if root is UNKNOWN else self._power(root, Fraction(b).numerator)
        if is_rational(a) and is_rational(b) and a <= 0:
            if a < 0 or b < 0:
                raise NoValueError("a power of a number that is not positive")
            return 0
        if self.compare("greater", a, 0) is not True:
            return UNKNOWN
        return self._exp(self._multiply(b, self._function("log", a)))

    def _function(self, name: str, a: Value) -> Value:
        """Return √a, or a transcendental function of ``a``, as a number or a quotient of variables.

        Return :data:`UNKNOWN` if it is undecided whether the function is defined.
        """
        if name in ("log", "sqrt"):
            outside = self.compare("less" if name == "sqrt" else "less_equal", a, 0)
            if outside is True:
                raise NoValueError(f"{name} is undefined for this argument")
            if isinstance(outside, Open):
                return UNKNOWN
        if is_rational(a) and (name, a) == ("log", 1):
            return 0
        if name == "tanh":  # (exp(2a) − 1) / (exp(2a) + 1)
            power = self._exp(self._multiply(2, a))
            return self._divide(self._add(power, -1), self._add(power, 1))
        if is_rational(a) and name == "sqrt":
            root = Fraction(math.isqrt(Fraction(a).numerator), math.isqrt(Fraction(a).denominator))
            if root * root == a:
                return simplify(root)
        return self._new_function(name, Quotient.of(a))

    def _new_function(self, name: str, argument: Quotient) -> Quotient:
        """Return the variable that represents the function ``name`` of ``argument``."""
        key = (name, argument.key)
        if key not in self._known:
            bounds = self.facts.bounds(argument)
            if name in ("log", "sqrt") and bounds is not None and bounds[0] <= 0:
                bounds = None
            enclosed = None if bounds is None else enclose(name, *bounds)
            self._known[key] = self.facts.new(Variable(name, argument, enclosed))
        return self._known[key]

    def _exp(self, a: Value) -> Quotient:
        """Return e to the power of ``a`` as a product of powers of variables.

        The identity exp(a) = exp((a − Σ nᵢaᵢ)/m)ᵐ · Π exp(aᵢ)^nᵢ holds for all aᵢ, nᵢ and m ≠ 0. The aᵢ
        are exponents of earlier exponentials, and ``combine`` chooses the nᵢ and m.
        """
        rest, value = Quotient.of(a), Quotient.of(1)
        key = ("exponential", rest.key)
        if key not in self._known:
            powers, divisor = self.combine(rest, self.exponentials)
            for number, power in powers:
                argument, variable = self.exponentials[number]
                rest, value = rest - argument * Quotient.of(power), value * variable**power
            if rest.top:
                rest = rest * Quotient.of(Fraction(1, divisor))
                variable = self._new_function("exp", rest)
                self.exponentials.append((rest, variable))
                value = value * variable**divisor
            self._known[key] = value
        return self._known[key]
