"""Apply elementwise operations to symbolic values, in one case of a proof.

A value is a rational number, a boolean, a :class:`~locum.proofs.prover.ring.Ratio`, or an open
:class:`~locum.proofs.prover.booleans.Boolean`. A ``Broken`` result (``cases.py``) is undefined. An
``Undecided`` result may be undefined.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from flint import fmpq

from locum.execution.domains import AverageError, MissingError, NotRealError, Value
from locum.execution.domains.exact import ExactDomain
from locum.graph import OPERATIONS, Atom
from locum.proofs.prover.booleans import Boolean, boolean, lowered
from locum.proofs.prover.cases import (
    OPEN,
    POSITIVE_ONLY,
    Broken,
    Case,
    Undecided,
    first_open,
    integral,
    is_boolean,
    is_number,
    is_rational,
)
from locum.proofs.prover.ring import Ratio, Ring, Signs, UnsupportedError, is_constant

EXACT = ExactDomain()
#: Functions whose values are represented by one variable for each argument.
OPAQUE = ("tanh", "erf", "log", "sqrt")
#: Operations that may be undefined.
RISKY = frozenset(("divide", "modulo", "floor_divide", "power", "log", "sqrt", "lookup"))
NOT_NEGATIVE: Signs = frozenset((0, 1))
#: Errors of undefined operations.
NO_VALUE = (ZeroDivisionError, NotRealError, MissingError, AverageError)


class Elementwise:
    """The elementwise operations on scalars, in one case."""

    def __init__(self, ring: Ring, case: Case) -> None:
        self.ring = ring
        self.case = case
        #: The status of every operation that may be undefined; None if it is defined.
        self.sites: list[Undecided | Broken | None] = []
        arithmetic: dict[str, Callable[..., Value]] = {
            "add": self._add,
            "subtract": lambda a, b: a - b,
            "multiply": self._multiply,
            "negate": lambda a: -a,
            "divide": self._divide,
            "modulo": self._modulo,
            "floor_divide": self._floor_divide,
            "power": self._power,
            "absolute": self._absolute,
            "exp": lambda a: self.ring.exp(self.lift(a)),
            "floor": lambda a: self._rounded("floor", a),
            "round": lambda a: self._rounded("round", a),
            "equal": self._equal,
            "not_equal": lambda a, b: ~boolean(self._equal(a, b)),
            "less": self._less,
            "less_equal": lambda a, b: ~boolean(self._less(b, a)),
            "greater": lambda a, b: self._less(b, a),
            "greater_equal": lambda a, b: ~boolean(self._less(a, b)),
            **{name: self._opaque(name) for name in OPAQUE},
        }
        self.meanings: dict[str, Callable[..., Value]] = {
            name: self._strict(name, function) for name, function in arithmetic.items()
        }
        self.meanings |= {
            "minimum": lambda a, b: self.if_else(self.meanings["less"](a, b), a, b),
            "maximum": lambda a, b: self.if_else(self.meanings["greater"](a, b), a, b),
            "and": lambda a, b: self._join(a, b, False),
            "or": lambda a, b: self._join(a, b, True),
            "not": self._not,
            "indicator": lambda a: self.if_else(a, 1, 0),
            "if_else": self.if_else,
            "member": self._member,
            "lookup": self._lookup,
        }
        self.refusals = {
            name: "no rule for symbols is known"
            for name, row in OPERATIONS.items()
            if row.elementwise and name not in self.meanings
        }

    # Forms of values ------------------------------------------------------------------------------

    def _strict(self, name: str, function: Callable[..., Value]) -> Callable[..., Value]:
        """Extend a function of numbers to all operands.

        The result is exact for rational operands. If an operand is undecided or undefined, the result
        is this operand.
        """
        exact = EXACT.meanings.get(name)

        def meaning(*values: Value) -> Value:
            self.ring.limits.check_time()
            result: Value = first_open(values)
            if result is None:
                numbers = [self.numeric(value) for value in values]
                if exact is not None and all(map(is_rational, numbers)):
                    result = self._exactly(exact, function, numbers)
                else:
                    result = self._symbolically(function, numbers)
            if name in RISKY:
                self.sites.append(result if isinstance(result, OPEN) else None)
            return result

        return meaning

    def _exactly(
        self, exact: Callable[..., Value], function: Callable[..., Value], numbers: Sequence[Value]
    ) -> Value:
        try:
            return self.plain(exact(*numbers))
        except NO_VALUE as error:
            return Broken(str(error))
        except OverflowError as error:
            raise UnsupportedError(str(error)) from None
        except ValueError:  # The result is irrational, for example a root.
            return self.plain(function(*numbers))

    def _symbolically(self, function: Callable[..., Value], numbers: Sequence[Value]) -> Value:
        """Apply a function to symbols.

        If no rule exists for an operand with a choice, return an undecided value with the question of
        this choice.
        """
        try:
            return self.plain(function(*numbers))
        except UnsupportedError:
            symbols = [value for value in numbers if isinstance(value, Ratio)]
            question = self.ring.blocking(*(part for v in symbols for part in (v.top, v.bottom)))
            if question is None:
                raise
            return Undecided(question)

    def numeric(self, value: Value) -> Value:
        """Convert a boolean to 0 or 1, or to a choice if it is open; return numbers unchanged."""
        if isinstance(value, Boolean):
            return self.if_else(value, 1, 0)
        if isinstance(value, str):
            raise UnsupportedError("strings are not numbers")
        return int(value) if isinstance(value, bool) else value

    def lift(self, value: Value) -> Ratio:
        """Convert a number to a rational function."""
        return value if isinstance(value, Ratio) else self.ring.number(value)

    def plain(self, value: Value) -> Value:
        """Convert a constant function to a number, and a decided boolean to a Python boolean."""
        if isinstance(value, Boolean):
            return lowered(value)
        if isinstance(value, Ratio):
            constant = value.constant
            return value if constant is None else integral(constant)
        return integral(value) if isinstance(value, fmpq) else value

    def identity_of(self, value: Value) -> int:
        """Return an id that structurally equal values share.

        Each undecided or undefined value receives a new id.
        """
        number = self.ring.identities.number
        if isinstance(value, Boolean):
            return value.number if value.value is None else number(("boolean", value.value))
        if isinstance(value, OPEN):
            return self.ring.identities.once()
        if isinstance(value, bool):
            return number(("boolean", value))
        return number(("number", value if isinstance(value, Ratio) else str(value)))

    def _open(self, question: Any, key: Hashable) -> Boolean:
        number = self.ring.identities.number(key)
        return Boolean(None, question, number, self.ring.identities)

    # Booleans -------------------------------------------------------------------------------------

    def _less(self, a: Value, b: Value) -> Value:
        difference = self.plain(self.lift(b) - a)
        if not isinstance(difference, Ratio):
            return bool(difference > 0)
        answer = self.case.is_positive(difference)
        if isinstance(answer, Undecided):
            return self._open(answer.question, ("positive", difference))
        return answer

    def _equal(self, a: Value, b: Value) -> Value:
        difference = self.plain(self.lift(a) - b)
        if not isinstance(difference, Ratio):
            return bool(difference == 0)
        answer = self.case.is_zero(difference)
        if isinstance(answer, Undecided):
            return self._open(
                answer.question, ("zero", Ratio(self.ring, difference.top, self.ring.one))
            )
        return answer

    def truth(self, value: Value) -> Value:
        """Return whether a value is not 0; booleans are returned unchanged."""
        if isinstance(value, OPEN) or is_boolean(value):
            return value
        return self.meanings["not_equal"](value, 0)

    def _join(self, a: Value, b: Value, decisive: bool) -> Value:
        """Return a ∧ b, or a ∨ b if ``decisive`` is True.

        An operand equal to ``decisive`` decides the result, unless the other operand is undefined.
        """
        sides = self.truth(a), self.truth(b)
        trouble = first_open(sides)
        if isinstance(trouble, Broken):
            return trouble
        if decisive in [side for side in sides if isinstance(side, bool)]:
            return decisive
        if trouble is not None:
            return trouble
        one, other = map(boolean, sides)
        return lowered(one | other if decisive else one & other)

    def _not(self, a: Value) -> Value:
        answer = self.truth(a)
        return answer if isinstance(answer, OPEN) else lowered(~boolean(answer))

    def if_else(self, condition: Value, then: Value, otherwise: Value) -> Value:
        """Return ``then`` if the condition holds, else ``otherwise``.

        If the condition is open and the two values differ, the result is a choice for two numbers, an
        open boolean for two booleans, and otherwise undecided. If an operand is undefined, return it.
        """
        answer = self.truth(condition)
        broken = first_open((answer, then, otherwise))
        if isinstance(broken, Broken):
            return broken
        if isinstance(answer, Undecided):
            return answer
        if isinstance(answer, bool):
            return then if answer else otherwise
        mine, other = self.identity_of(then), self.identity_of(otherwise)
        if mine == other:
            return then
        key = ("if", answer.number, mine, other)
        if is_boolean(then) and is_boolean(otherwise):
            return self._open(answer.question, key)
        if is_number(then) and is_number(otherwise):
            return self.ring.choice(key, answer.question, [then, otherwise])
        return Undecided(answer.question)

    def _member(self, value: Value, *, values: tuple[Atom, ...]) -> Value:
        answers = [self.meanings["equal"](value, EXACT.constant(other)) for other in values]
        result: Value = first_open([value]) or False
        for answer in answers:
            result = self._join(result, answer, True)
        return result

    def _lookup(self, value: Value, *, table: tuple[tuple[Atom, Atom], ...]) -> Value:
        result = self._looked_up(value, table)
        self.sites.append(result if isinstance(result, OPEN) else None)
        return result

    def _looked_up(self, value: Value, table: tuple[tuple[Atom, Atom], ...]) -> Value:
        trouble = first_open([value])
        if trouble is not None:
            return trouble
        for key, entry in table:
            answer = self.meanings["equal"](value, EXACT.constant(key))
            if isinstance(answer, Boolean):
                return Undecided(answer.question)
            if answer is not False:
                return self.plain(EXACT.constant(entry)) if answer is True else answer
        return Broken("the lookup table has no entry for a value")

    # Arithmetic -----------------------------------------------------------------------------------

    def _multiply(self, a: Value, b: Value) -> Value:
        """Return a · b, and record that the square of a sum is non-negative."""
        result = a * b
        if isinstance(a, Ratio) and isinstance(b, Ratio) and len(a.top) > 1 and a == b:
            self.ring.note(result, NOT_NEGATIVE)
        return result

    def _add(self, a: Value, b: Value) -> Value:
        """Return a + b.

        Once any sign is recorded, record the signs of sums of operands that are known to be
        non-negative.
        """
        result = self.lift(a) + b
        if self.ring.signs and not is_constant(result.top):
            signs = [self._sign_at_once(part) for part in (a, b)]
            if all(one <= NOT_NEGATIVE for one in signs):
                strict = any(0 not in one for one in signs)
                self.ring.note(result, POSITIVE_ONLY if strict else NOT_NEGATIVE)
        return result

    def _sign_at_once(self, value: Value) -> Signs:
        """Return the signs of a value that are known without factoring a sum."""
        if not isinstance(value, Ratio):
            return frozenset(((value > 0) - (value < 0),))
        if len(value.top) == 1 and self.case.is_positive(value) is True:
            return POSITIVE_ONLY
        return self.ring.noted(value)

    def _divide(self, a: Value, b: Value) -> Value:
        zero = self.case.is_zero(b) if isinstance(b, Ratio) else b == 0
        if isinstance(zero, Undecided):
            return zero
        return Broken("division by zero") if zero else self.lift(a) / b

    def _modulo(self, a: Value, b: Value) -> Value:
        """Return the remainder of an integer polynomial, from the remainders of its entries.

        If the remainder of an entry is undecided, return a choice.
        """
        zero = self.case.is_zero(b) if isinstance(b, Ratio) else b == 0
        if isinstance(zero, Undecided):
            return zero
        if zero:
            return Broken("remainder by zero")
        if not self._is_integral(a) or type(b) is not int or b < 1:
            raise UnsupportedError("remainders are supported only for integers and a positive modulus")
        total = 0
        for powers, coefficient in a.top.to_dict().items():
            product = int(coefficient.p)
            for variable, power in enumerate(powers):
                if power:
                    rest = self.case.remainder(self.ring.names[variable], b)
                    if isinstance(rest, Undecided):
                        key = ("modulo", self.identity_of(a), b)
                        return self.ring.choice(key, rest.question, [0, b - 1])
                    product *= rest ** int(power)
            total += product
        return total % b

    def _is_integral(self, a: Value) -> bool:
        if not self.ring.integer or not isinstance(a, Ratio) or not a.bottom.is_one():
            return False
        names = len(self.ring.names)
        terms = a.top.to_dict().items()
        return all(c.q == 1 and not any(powers[names:]) for powers, c in terms)

    def _floor_divide(self, a: Value, b: Value) -> Value:
        rest = self._modulo(a, b)
        return rest if isinstance(rest, OPEN) else self._divide(self.lift(a) - rest, b)

    def _rounded(self, name: str, a: Value) -> Value:
        if self._is_integral(a):
            return a
        raise UnsupportedError(f"{name} of a symbol is not decided by cases")

    def _power(self, a: Value, b: Value) -> Value:
        if is_rational(b) and fmpq(b).q == 1:
            exponent = int(fmpq(b).p)
            if exponent < 0:
                return self._divide(1, self.plain(self.lift(a) ** -exponent))
            return self.lift(a) ** exponent
        if is_rational(a) and a == 1:
            return 1
        if is_rational(a) and a > 0:
            return self.ring.exp(self.lift(b), base=fmpq(a))
        raise UnsupportedError("a power with a symbolic exponent requires a positive base")

    def _absolute(self, a: Value) -> Value:
        positive = self.case.is_positive(a)
        if positive is True:
            return a
        negative = self.case.is_positive(-a)
        if negative is True or negative is False:
            return -a if negative else a
        if positive is False:
            return -a
        return self.ring.opaque("absolute", a)

    def _opaque(self, name: str) -> Callable[..., Value]:
        def function(a: Value) -> Value:
            if name in ("log", "sqrt"):
                outside = self._less(a, 0) if name == "sqrt" else ~boolean(self._less(0, a))
                outside = self.plain(outside)
                if isinstance(outside, Boolean):
                    return Undecided(outside.question)
                if outside:
                    return Broken(f"{name} is not defined there")
            if is_rational(a) and a == (1 if name == "log" else 0):
                return 0
            return self.ring.opaque(name, self.lift(a))

        return function
