"""Represent cases of a proof: assumptions about signs and remainders, and undecided or undefined
operands.

A :class:`Case` decides comparisons from its assumptions, or returns :class:`Undecided` with a
:class:`Question`. A question is about the sign of an irreducible polynomial that contains no choices
(``ring.py``), or about a remainder of an entry.
Two kinds of contradictions are found in a case. The assumptions can leave a polynomial without a
possible sign. A few inequalities can contradict each other, such as p > 0 and q ≥ 0 although
p + q = 0.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from flint import fmpq, fmpq_mpoly, fmpz

from locum.execution.domains import Value
from locum.proofs.checker.proof_tree import Question
from locum.proofs.prover.booleans import Boolean
from locum.proofs.prover.ring import ANY, Ratio, Ring, Signs, is_constant

NEGATIVE, ZERO, POSITIVE = -1, 0, 1
POSITIVE_ONLY: Signs = frozenset((POSITIVE,))
#: Maximum number of inequalities in one contradiction.
_SUMMANDS = 4


@dataclass(frozen=True)
class Undecided:
    """A value that depends on the answer to ``question``, and about which nothing else is known."""

    question: Question


@dataclass(frozen=True)
class Assumption:
    """An assumption of a case: a question and its answer."""

    question: Question
    answer: int


class Questions:
    """The polynomials that occur in the questions of one proof, with cached factors and signs."""

    def __init__(self, ring: Ring) -> None:
        self.ring = ring
        self.polynomials: dict[str, fmpq_mpoly] = {}
        self._factors: dict[str, tuple[int, list[tuple[str, int]]]] = {}
        self._inherent: dict[str, Signs] = {}
        self._roots: dict[str, Ratio | None] = {}
        #: Names of polynomials that contain choices; their cached facts are removed with the choices.
        self._passing: list[str] = []

    def factors(self, polynomial: fmpq_mpoly) -> tuple[int, list[tuple[str, int]]]:
        """Return a sign and irreducible factors whose product has the sign of a polynomial.

        Each factor is a pair of the name of a polynomial and the power of this polynomial.
        """
        key = str(polynomial)
        if key not in self._factors:
            self._note(key, polynomial)
            if is_constant(polynomial):
                value = polynomial.leading_coefficient() if len(polynomial) else 0
                self._factors[key] = (value > 0) - (value < 0), []
            else:
                sign, factors = 1, list[tuple[str, int]]()
                for factor, power in _irreducible(polynomial):
                    leading = factor.leading_coefficient()
                    sign *= 1 if leading > 0 or power % 2 == 0 else -1
                    factors += self._signed(factor / leading, power)
                self._factors[key] = sign, factors
        return self._factors[key]

    def _signed(self, factor: fmpq_mpoly, power: int) -> list[tuple[str, int]]:
        """Return irreducible factors whose product has the sign of ``factor`` to the power ``power``.

        An absolute value |p| is replaced by the factors of p².
        """
        slot = self.ring.behind(factor)
        if slot is not None and slot.function == "absolute" and slot.argument is not None:
            _, inner = self.factors(slot.argument.top)
            return [(name, 2 * times * power) for name, times in inner]
        name = str(factor)
        self.polynomials[name] = factor
        self._note(name, factor)
        return [(name, power)]

    def _note(self, name: str, polynomial: fmpq_mpoly) -> None:
        if self.ring.is_passing(Ratio(self.ring, polynomial, self.ring.one)):
            self._passing.append(name)

    def forget_choices(self) -> None:
        """Remove polynomials with choices, because a choice belongs to one run in one case."""
        for name in self._passing:
            for memory in (self.polynomials, self._factors, self._inherent, self._roots):
                memory.pop(name, None)
        self._passing.clear()
        self.ring.forget_choices()

    def inherent(self, name: str) -> Signs:
        """Return the signs that a polynomial can have without any assumption."""
        if name not in self._inherent:
            self._inherent[name] = self._look(self.polynomials[name])
        return self._inherent[name]

    def under_root(self, name: str) -> Ratio | None:
        """Return p if the polynomial ``name`` is the square root √p, else None."""
        if name not in self._roots:
            slot = self.ring.behind(self.polynomials[name])
            is_root = slot is not None and slot.function == "sqrt"
            self._roots[name] = slot.argument if slot is not None and is_root else None
        return self._roots[name]

    def _look(self, polynomial: fmpq_mpoly) -> Signs:
        sides, strict = set[int](), False
        for powers, coefficient in polynomial.to_dict().items():
            signs: Signs = frozenset((POSITIVE if coefficient > 0 else NEGATIVE,))
            for variable, power in enumerate(powers):
                if power:
                    here = self._of_variable(variable)
                    signs = frozenset(a * b**power for a in signs for b in here)
            if signs == ANY or signs == {NEGATIVE, POSITIVE}:
                return self._by_bounds(polynomial)
            sides |= signs - {ZERO}
            strict = strict or ZERO not in signs
        if len(sides) > 1:
            return self._by_bounds(polynomial)
        return frozenset(sides if strict else sides | {ZERO})

    def _of_variable(self, variable: int) -> Signs:
        """Return the signs that a variable can have without any assumption."""
        slot = self.ring.slot(variable)
        if slot is None:
            return ANY
        if slot.function == "exp":
            return frozenset((POSITIVE,))
        if slot.function in ("absolute", "sqrt"):
            return frozenset((ZERO, POSITIVE))
        return _between(slot.low, slot.high)

    def _by_bounds(self, polynomial: fmpq_mpoly) -> Signs:
        """Return the signs that the bounds of all variables allow.

        All signs are possible if a variable has no bounds.
        """
        low = high = fmpq(0)
        for powers, coefficient in polynomial.to_dict().items():
            least = most = coefficient
            for variable in (v for v, power in enumerate(powers) for _ in range(power)):
                slot = self.ring.slot(variable)
                if slot is None or slot.low is None or slot.high is None:
                    return ANY
                ends = [x * y for x in (least, most) for y in (slot.low, slot.high)]
                least, most = min(ends), max(ends)
            low, high = low + least, high + most
        return _between(low, high)


def _between(low: fmpq | None, high: fmpq | None) -> Signs:
    """Return the signs of the numbers from ``low`` to ``high``, or all signs if a bound is missing."""
    if low is None or high is None:
        return ANY
    signs = {ZERO} if low <= 0 <= high else set()
    return frozenset(signs | ({POSITIVE} if high > 0 else set()) | ({NEGATIVE} if low < 0 else set()))


class Case:
    """A case of a proof: a sequence of assumptions and their consequences."""

    def __init__(self, questions: Questions, assumptions: Sequence[Assumption] = ()) -> None:
        self.questions = questions
        self.assumptions: list[Assumption] = []
        self._signs: dict[str, Signs] = {}
        self._remainders: dict[tuple[str, int], int] = {}
        for assumption in assumptions:
            self._assume(assumption)

    def extended(self, question: Question, answer: int) -> Case:
        """Return a new case with the answer to one more question as an assumption."""
        return Case(self.questions, [*self.assumptions, Assumption(question, answer)])

    def _assume(self, assumption: Assumption) -> None:
        self.assumptions.append(assumption)
        question, answer = assumption.question, assumption.answer
        if question.relation == "%":
            self._remainders[question.polynomial, question.modulus] = answer
            return
        sign = POSITIVE if question.relation == ">" else ZERO
        holds = frozenset((sign,)) if answer else ANY - {sign}
        self._signs[question.polynomial] = self.signs(question.polynomial) & holds

    def signs(self, name: str) -> Signs:
        """Return the signs that an irreducible polynomial can have under the assumptions."""
        signs = self._signs.get(name)
        if signs is None:
            signs = self.questions.inherent(name)
        below = self.questions.under_root(name)
        if below is not None and ZERO in signs and self.is_positive(below) is True:
            signs -= {ZERO}
        return signs

    # Answers --------------------------------------------------------------------------------------

    def is_zero(self, value: Ratio) -> bool | Undecided:
        """Return whether a value is 0, or an :class:`Undecided` with the open question."""
        if ZERO not in self.questions.ring.noted(value):
            return False
        constant, factors = self.questions.factors(value.top)
        if constant == 0 or any(self.signs(name) == {ZERO} for name, _ in factors):
            return True
        for name, _ in factors:
            if ZERO in self.signs(name):
                return self._ask(name, "=")
        return False

    def _ask(self, name: str, relation: str) -> Undecided:
        """Return an undecided value with a question about the polynomial ``name``.

        If the polynomial contains choices, the question decides one of the choices.
        """
        first: Question | None = self.questions.ring.blocking(self.questions.polynomials[name])
        return Undecided(first or Question(name, relation))

    def is_positive(self, value: Ratio) -> bool | Undecided:
        """Return whether a value is positive, or an undecided value with a question.

        The answer to this question helps to decide whether the value is positive.
        """
        noted = self.questions.ring.noted(value)
        if noted == POSITIVE_ONLY or POSITIVE not in noted:
            return noted == POSITIVE_ONLY
        constant, above = self.questions.factors(value.top)
        below_sign, below = self.questions.factors(value.bottom)
        if constant == 0 or any(self.signs(name) == {ZERO} for name, _ in above):
            return False
        possible = {constant * below_sign}
        for name, power in [*above, *below]:
            # A denominator is not 0: every division checks its divisor.
            signs = self.signs(name) - ({ZERO} if (name, power) in below else set())
            possible = {a * (b if power % 2 else b * b) for a in possible for b in signs}
        if possible == {POSITIVE}:
            return True
        if POSITIVE not in possible:
            return False
        for name, power in [*above, *below]:
            signs = self.signs(name)
            if power % 2 and POSITIVE in signs and len(signs) > 1:
                return self._ask(name, ">")
            if ZERO in signs and len(signs) > 1:
                return self._ask(name, "=")
        raise AssertionError("all signs are known, but not that of the product")

    def remainder(self, entry: str, modulus: int) -> int | Undecided:
        """Return an integer entry modulo ``modulus``, or an undecided value with this question."""
        value = self._remainders.get((entry, modulus))
        return Undecided(Question(entry, "%", modulus)) if value is None else value

    # Consequences ---------------------------------------------------------------------------------

    def vanishes(self, polynomial: fmpq_mpoly) -> bool:
        """Return whether a polynomial is known to be 0 in this case.

        The polynomial is divided by the polynomials that the assumptions set to 0. It is known to be 0
        if no remainder is left.
        """
        if polynomial.is_zero():
            return True
        zeros = [self.questions.polynomials[n] for n, s in self._signs.items() if s == {ZERO}]
        return remainder_by(polynomial, echelon(zeros)).is_zero()

    def contradiction(self) -> list[tuple[str, int]] | None:
        """Return inequalities of this case that contradict each other, or None if none are found.

        A pair (name, s) with s = ±1 represents the inequality s·p ≥ 0. The sum of all s·p is a negative
        constant, or 0 although one of the inequalities is strict. A polynomial without a possible sign
        is returned with s = 1 and s = −1. Otherwise, only contradictions with the latest assumption are
        found.
        """
        for name, signs in self._signs.items():
            if not signs:
                return [(name, POSITIVE), (name, NEGATIVE)]
        bounds: list[tuple[str, int, fmpq_mpoly, bool]] = []
        for name, signs in self._signs.items():
            polynomial = self.questions.polynomials[name]
            for side in (POSITIVE, NEGATIVE):
                if -side not in signs:
                    bounds.append((name, side, side * polynomial, ZERO not in signs))
        if not bounds or not self.assumptions:
            return None
        latest = self.assumptions[-1].question.polynomial
        last = [bound for bound in bounds if bound[0] == latest]
        others = [bound for bound in bounds if bound[0] != latest]
        for first in last:
            for count in range(min(_SUMMANDS, len(others) + 1)):
                for rest in itertools.combinations(others, count):
                    if _adds_up([first, *rest]):
                        return [(name, side) for name, side, _, _ in (first, *rest)]
        return None


def _adds_up(bounds: Sequence[tuple[str, int, fmpq_mpoly, bool]]) -> bool:
    total = bounds[0][2]
    for bound in bounds[1:]:
        total = total + bound[2]
    if not is_constant(total):
        return False
    value = total.leading_coefficient() if len(total) else 0
    return bool(value < 0 or (value == 0 and any(strict for *_, strict in bounds)))


def echelon(polynomials: Sequence[fmpq_mpoly]) -> list[fmpq_mpoly]:
    """Reduce polynomials by each other, and return the results, which have the same common zeros."""
    reduced: list[fmpq_mpoly] = []
    for polynomial in polynomials:
        rest = remainder_by(polynomial, reduced)
        if not rest.is_zero():
            reduced = [remainder_by(p, [rest]) for p in reduced]
            reduced = [p for p in reduced if not p.is_zero()] + [rest]
    return reduced


def remainder_by(polynomial: fmpq_mpoly, divisors: Sequence[fmpq_mpoly]) -> fmpq_mpoly:
    """Divide a polynomial by all divisors repeatedly, and return the remainder."""
    before: Any = None
    while before is None or (not polynomial.is_zero() and polynomial != before):
        before = polynomial
        for divisor in divisors:
            _, polynomial = divmod(polynomial, divisor)
    return polynomial


def _irreducible(polynomial: fmpq_mpoly) -> list[tuple[fmpq_mpoly, int]]:
    """Return the irreducible factors of a polynomial with their powers.

    Their product is equal to the polynomial up to a positive constant. A negative constant can be an
    additional factor.
    """
    if polynomial.total_degree() == 1:
        return [(polynomial, 1)]
    # A polynomial a·v + b of degree 1 in a variable v is irreducible if a and b have no common factor.
    # For differences of scores, this test is much faster than factoring.
    degrees = polynomial.degrees()
    linear = [variable for variable, degree in enumerate(degrees) if degree == 1]
    if linear and len(polynomial) > 2:
        parts = [(polynomial.derivative(variable), variable) for variable in linear[:8]]
        slope, variable = min(parts, key=lambda part: len(part[0]))
        rest = polynomial - slope * polynomial.context().gens()[variable]
        if is_constant(slope.gcd(rest)):
            return [(polynomial, 1)]
    constant, factors = polynomial.factor()
    parts = [(factor, int(power)) for factor, power in factors]
    return [(polynomial.context().constant(constant), 1), *parts] if constant < 0 else parts


@dataclass(frozen=True)
class Broken:
    """The result of an undefined operation, with the reason why it is undefined."""

    reason: str


#: The types of results that are undecided or undefined.
OPEN = (Undecided, Broken)


def first_open(values: Sequence[Value]) -> Undecided | Broken | None:
    """Return the first ``Broken`` operand, otherwise the first ``Undecided`` one, otherwise None."""
    first = None
    for value in values:
        if isinstance(value, Broken):
            return value
        if first is None and isinstance(value, Undecided):
            first = value
    return first


def is_rational(value: Value) -> bool:
    """Return whether a value is an int or an ``fmpq``, not a boolean."""
    return type(value) is int or isinstance(value, fmpq)


def is_number(value: Value) -> bool:
    """Return whether a value is known to be a number, not a boolean."""
    return is_rational(value) or isinstance(value, Ratio)


def is_boolean(value: Value) -> bool:
    """Return whether a value is known to be a boolean."""
    return isinstance(value, (bool, Boolean))


def integral(value: fmpq) -> Value:
    """Convert a rational number with denominator 1 to an int, and return other numbers unchanged."""
    return int(value.p) if fmpz(value.q) == 1 else value
