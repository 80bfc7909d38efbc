"""The checker's scalars: what every elementwise operation gives in one case of a proof.

A scalar is a bool, a rational number, a :class:`~locum.verification.checker.numbers.Quotient`, or

- :class:`Open`: a boolean that the case does not decide, known by what it depends on;
- :data:`UNKNOWN`: nothing is known, not even whether it is a boolean or a number;
- :class:`Missing`: there is no value, as after a division by zero.

Operations follow the definitions in ``graph/operations.py`` over the real numbers. A number that
depends on an open boolean is a *choice*: a variable of its own, one for each operation and operands, of
which nothing is used but bounds that hold of it alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from locum.graph.operations import TRANSCENDENTAL
from locum.verification.checker.knowledge import ANY, NOT_NEGATIVE, POSITIVE, Knowledge, Signs
from locum.verification.checker.numbers import Quotient, Rational
from locum.verification.checker.polynomials import MAX_BITS, TooLargeError, exponents, limited_bits

#: What may stand at one position.
Scalar: TypeAlias = Any


@dataclass(frozen=True)
class Open:
    """A boolean that the case does not decide; equal numbers, equal booleans."""

    number: int


@dataclass(frozen=True)
class Missing:
    """No value, and why."""

    reason: str


class _Unknown:
    def __repr__(self) -> str:
        return "unknown"


UNKNOWN = _Unknown()

#: What a comparison that is not of two numbers costs, in products of terms.
COMPARISON = 500

_HOLDS: dict[str, Signs] = {
    "equal": frozenset((0,)),
    "not_equal": frozenset((-1, 1)),
    "less": frozenset((-1,)),
    "less_equal": frozenset((-1, 0)),
    "greater": frozenset((1,)),
    "greater_equal": frozenset((0, 1)),
}
#: Functions of real numbers that are known by their arguments only.
_OPAQUE = ("sqrt", *(name for name in TRANSCENDENTAL if name != "exp"))


def is_rational(value: Scalar) -> bool:
    """Whether a value is a number without variables."""
    return type(value) is int or isinstance(value, Fraction)


def is_number(value: Scalar) -> bool:
    """Whether a value is certainly a number, not a boolean."""
    return is_rational(value) or isinstance(value, Quotient)


def is_boolean(value: Scalar) -> bool:
    """Whether a value is certainly a boolean."""
    return isinstance(value, (bool, Open))


class Scalars:
    """Elementwise operations in one case."""

    def __init__(self, knowledge: Knowledge, integer: bool) -> None:
        self.knowledge = knowledge
        self.numbers = knowledge.numbers
        #: Whether entries stand for integers.
        self.integer = integer
        self.identity = self.numbers.identity
        self._comparisons: dict[tuple[int, int, str], bool | Open] = {}
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
        for name in _HOLDS:
            self.operations[name] = lambda a, b, name=name: self.compare(name, a, b)
        for name in _OPAQUE:
            self.operations[name] = self._on_numbers(lambda a, name=name: self.opaque(name, a))

    # Forms of values ------------------------------------------------------------------------------

    def identity_of(self, value: Scalar) -> int:
        """The number of a value."""
        if isinstance(value, Quotient):
            return self.identity(("quotient", value.key))
        if isinstance(value, Open):
            return value.number
        if value is UNKNOWN or isinstance(value, Missing):
            return self.numbers.once()
        return self.identity((type(value) is bool, value))

    def quotient(self, value: Scalar) -> Quotient:
        """A number as a quotient."""
        return value if isinstance(value, Quotient) else self.numbers.number(value)

    def plain(self, value: Quotient) -> Scalar:
        """A quotient without variables as a rational number."""
        rational = value.rational
        return value if rational is None else rational

    def numeric(self, value: Scalar) -> Scalar:
        """A boolean as the number 0 or 1."""
        if isinstance(value, Open):
            return self.if_else(value, 1, 0)
        return int(value) if isinstance(value, bool) else value

    def _on_numbers(self, function: Callable[..., Scalar]) -> Callable[..., Scalar]:
        def operation(*values: Scalar) -> Scalar:
            trouble = without_value(values)
            return function(*map(self.numeric, values)) if trouble is None else trouble

        return operation

    def _arithmetic(
        self, concrete: Callable[..., Rational], symbolic: Callable[..., Quotient]
    ) -> Callable[..., Scalar]:
        def function(*values: Scalar) -> Scalar:
            if all(map(is_rational, values)):
                result = _simple(concrete(*values))
                limited_bits(result.numerator)
                limited_bits(result.denominator)
                return result
            return self.plain(symbolic(*map(self.quotient, values)))

        return self._on_numbers(function)

    def _product(self, a: Quotient, b: Quotient) -> Quotient:
        """a · b; a square is not negative."""
        result = self.numbers.multiply(a, b)
        if len(a.top) > 1 and a.key == b.key:
            self.knowledge.note(result, NOT_NEGATIVE)
        return result

    def _sum(self, a: Quotient, b: Quotient) -> Quotient:
        """a + b; a sum of what is not negative is not negative, and positive if one of them is."""
        result = self.numbers.add(a, b)
        if self.numbers.state.signs:
            signs = [self._noted(part) for part in (a, b)]
            if all(one <= NOT_NEGATIVE for one in signs):
                strict = any(0 not in one for one in signs)
                self.knowledge.note(result, POSITIVE if strict else NOT_NEGATIVE)
        return result

    def _noted(self, value: Quotient) -> Signs:
        """What is known of a sign without a search."""
        if len(value.top) > 1 and self.knowledge.noted(value.top) == ANY:
            return ANY
        return self.knowledge.sign(value)

    def choice(self, key: Hashable, candidates: Sequence[Scalar] = (), mean: bool = False) -> Quotient:
        """A number that depends on what is open; within the candidates, if these are rational."""
        if candidates and all(map(is_rational, candidates)):
            integer = not mean and all(type(value) is int for value in candidates)
            return self.numbers.choice(key, min(candidates), max(candidates), integer)
        return self.numbers.choice(key)

    # Booleans -------------------------------------------------------------------------------------

    def truth(self, value: Scalar) -> Scalar:
        """Whether a value is not 0."""
        if isinstance(value, (bool, Open, Missing)) or value is UNKNOWN:
            return value
        return self.compare("not_equal", value, 0)

    def negation(self, value: Scalar) -> Scalar:
        """not"""
        if isinstance(value, bool):
            return not value
        if isinstance(value, Open):
            return Open(self.identity(("not", value.number)))
        return value

    def all_of(self, values: Sequence[Scalar]) -> Scalar:
        """Whether all booleans hold: no, if one does not, whatever the others are."""
        missing = next((value for value in values if isinstance(value, Missing)), None)
        if missing is not None:
            return missing
        if any(value is False for value in values):
            return False
        if any(value is UNKNOWN for value in values):
            return UNKNOWN
        numbers = sorted({value.number for value in values if isinstance(value, Open)})
        if not numbers:
            return True
        return Open(numbers[0] if len(numbers) == 1 else self.identity(("and", *numbers)))

    def compare(self, name: str, a: Scalar, b: Scalar) -> Scalar:
        """A comparison by the sign of the difference."""
        trouble = without_value((a, b))
        if trouble is not None:
            return trouble
        a, b = self.numeric(a), self.numeric(b)
        if is_rational(a) and is_rational(b):
            return (a > b) - (a < b) in _HOLDS[name]
        key = (self.identity_of(a), self.identity_of(b), name)
        if key not in self._comparisons:
            self.numbers.spend(COMPARISON)
            difference = self.numbers.subtract(self.quotient(a), self.quotient(b))
            self._comparisons[key] = self.signed(difference, _HOLDS[name])
        return self._comparisons[key]

    def signed(self, value: Quotient, holds: Signs) -> bool | Open:
        """Whether the sign of a quotient is one of these."""
        signs = self.knowledge.sign(value)
        if signs <= holds:
            return True
        if not signs & holds:
            return False
        odd = tuple(number for number, power in value.factors if power % 2)
        content = value.top.content
        if content < 0:
            holds = frozenset(-sign for sign in holds)
        polynomial = value.top.without(content)
        if len(holds) == 2:
            return Open(self.identity(("not", self._sign_of(polynomial, odd, ANY - holds).number)))
        return self._sign_of(polynomial, odd, holds)

    def _sign_of(self, polynomial: Hashable, odd: tuple[int, ...], holds: Signs) -> Open:
        return Open(self.identity(("sign", polynomial, odd, holds)))

    def if_else(self, condition: Scalar, then: Scalar, otherwise: Scalar) -> Scalar:
        """``then`` where the condition holds; both are computed, so both must have a value."""
        answer = self.truth(condition)
        missing = next((v for v in (answer, then, otherwise) if isinstance(v, Missing)), None)
        if missing is not None:
            return missing
        if isinstance(answer, bool):
            return then if answer else otherwise
        if answer is UNKNOWN:
            return UNKNOWN
        mine, other = self.identity_of(then), self.identity_of(otherwise)
        if mine == other:
            return then
        key = ("if", answer.number, mine, other)
        if is_boolean(then) and is_boolean(otherwise):
            return Open(self.identity(key))
        if is_number(then) and is_number(otherwise):
            return self.choice(key, [then, otherwise])
        return UNKNOWN

    def member(self, value: Scalar, *, values: Sequence[Scalar]) -> Scalar:
        """Whether a value is one of these."""
        differs = [self.compare("not_equal", value, other) for other in values]
        return self.negation(self.all_of([without_value((value,)) or True, *differs]))

    def lookup(self, value: Scalar, *, table: Sequence[tuple[Scalar, Scalar]]) -> Scalar:
        """What a table has for a value; UNKNOWN where it may have nothing."""
        trouble = without_value((value,))
        if trouble is not None:
            return trouble
        value = self.numeric(value)
        candidates: list[tuple[Scalar, Scalar]] = []
        certain = False
        for key, entry in table:
            answer = self.compare("equal", value, key)
            if answer is True and not candidates:
                return entry
            if answer is not False:
                candidates.append((key, entry))
            if answer is True:
                certain = True
                break
        if not candidates:
            return Missing("the lookup table has no entry for a value")
        if not certain and not self._covered(value, [key for key, _ in candidates]):
            return UNKNOWN
        entries = [entry for _, entry in candidates]
        identity = ("lookup", self.identity_of(value), tuple(table))
        if all(map(is_boolean, entries)):
            return Open(self.identity(identity))
        return self.choice(identity, entries) if all(map(is_number, entries)) else UNKNOWN

    def _covered(self, value: Scalar, keys: Sequence[Scalar]) -> bool:
        """Whether an integer between bounds is certainly one of the keys."""
        variable = self.numbers.behind(value) if isinstance(value, Quotient) else None
        if variable is None or not variable.integer or variable.low is None or variable.high is None:
            return False
        if variable.high - variable.low > len(keys):
            return False
        return all(n in keys for n in range(int(variable.low), int(variable.high) + 1))

    # Arithmetic -----------------------------------------------------------------------------------

    def divide(self, a: Scalar, b: Scalar) -> Scalar:
        """a / b; UNKNOWN where b may be 0."""
        zero = self.compare("equal", b, 0)
        if isinstance(zero, Open):
            return UNKNOWN
        if zero:
            return Missing("division by zero")
        if is_rational(a) and is_rational(b):
            return _simple(Fraction(a) / b)
        return self.plain(self.numbers.divide(self.quotient(a), self.quotient(b)))

    def modulo(self, a: Scalar, b: Scalar) -> Scalar:
        """a − b·⌊a / b⌋"""
        zero = self.compare("equal", b, 0)
        if isinstance(zero, Open):
            return UNKNOWN
        if zero:
            return Missing("remainder by zero")
        if is_rational(a) and is_rational(b):
            return _simple(a % b)
        key = ("modulo", self.identity_of(a), self.identity_of(b))
        if type(b) is int and b > 0 and self._is_integral(a):
            rest = self._remainder(a, b)
            if rest is not None:
                return rest
            return self.numbers.choice((*key, "integers"), 0, b - 1, integer=True)
        return self.numbers.choice(key)

    def _is_integral(self, a: Scalar) -> bool:
        """Whether a value is a polynomial with integer coefficients in integer entries."""
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
        """⌊a / b⌋"""
        rest = self.modulo(a, b)
        if not is_number(rest):
            return rest
        operations = self.operations
        return self.divide(operations["subtract"](a, rest), b)

    def power(self, a: Scalar, b: Scalar) -> Scalar:
        """a to the power of b, where it is a real number."""
        if is_rational(b) and Fraction(b).denominator == 1:
            exponent = int(b)
            if exponent < 0:
                below = self.power(a, -exponent)
                return self.divide(1, below)
            if is_rational(a):
                _limited(a, exponent)
                return _simple(Fraction(a) ** exponent)
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
        """|a|"""
        if is_rational(a):
            return abs(a)
        signs = self.knowledge.sign(a)
        if signs <= {0, 1}:
            return a
        if signs <= {-1, 0}:
            return self.plain(self.numbers.negate(a))
        return self.numbers.function("absolute", a)

    def opaque(self, name: str, a: Scalar) -> Scalar:
        """tanh, erf, log and √: exact where that is simple, else known by the argument."""
        if name in ("log", "sqrt"):
            below = self.compare("less" if name == "sqrt" else "less_equal", a, 0)
            if isinstance(below, Open):
                return UNKNOWN
            if below:
                return Missing(f"{name} is not defined there")
        if is_rational(a):
            root = _root(Fraction(a), 2) if name == "sqrt" else None
            if root is not None:
                return _simple(root)
            if a == (1 if name == "log" else 0):
                return 0
        return self.numbers.function(name, self.quotient(a))

    def rounded(self, name: str, function: Callable[[Any], int], a: Scalar) -> Scalar:
        """floor and round, halves to even."""
        if is_rational(a):
            return function(a)
        if self._is_integral(a):
            return a
        return self.numbers.choice((name, self.identity_of(a)))


def without_value(values: Sequence[Scalar]) -> Scalar | None:
    """The first operand that is missing; else UNKNOWN, if one is; else None."""
    for value in values:
        if isinstance(value, Missing):
            return value
    return UNKNOWN if any(value is UNKNOWN for value in values) else None


def _simple(value: Rational) -> Rational:
    """A fraction without a denominator as an integer."""
    return value.numerator if isinstance(value, Fraction) and value.denominator == 1 else value


def _limited(base: Rational, exponent: int) -> None:
    size = max(base.numerator.bit_length(), base.denominator.bit_length())
    if size * exponent > MAX_BITS and base not in (-1, 0, 1):
        raise TooLargeError(f"a number has more than {MAX_BITS:,} bits")


def _root(value: Fraction, degree: int) -> Fraction | None:
    """The rational root of a positive number, if there is one."""
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
    low, high = 0, 1 << (value.bit_length() // degree + 1)
    while low < high:
        middle = (low + high) // 2
        if middle**degree < value:
            low = middle + 1
        else:
            high = middle
    return low if low**degree == value else None
