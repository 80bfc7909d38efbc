"""Search for counterexamples: inputs for which a program does not compute the reference of its claim.

Inputs for which floating-point results differ are only candidates. The checker evaluates the candidates
exactly or with bounds.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import TypeAlias

from flint import fmpq, fmpq_mpoly

from locum.errors import ExecutionError, LocumError
from locum.execution import dense
from locum.execution.domains.floats import FloatDomain
from locum.proofs.checker.check import Refuted, check_refutation
from locum.proofs.claims.claim import Claim, meanings_in
from locum.proofs.prover.booleans import LimitError
from locum.proofs.prover.cases import Case

Number: TypeAlias = "int | Fraction"

_FLOAT = FloatDomain()
_APPLY = meanings_in(_FLOAT)
#: Differences up to this, relative to the largest expected entry or to 1, may be rounding errors.
_VISIBLE = 1e-9


def counterexample(
    claim: Claim, case: Case | None = None, *, seconds: float = 20.0, tries: int = 400, seed: int = 0
) -> Refuted | None:
    """Return the first counterexample that the checker accepts, or None if none is found."""
    usual = candidates(claim, tries, seed)
    simple = itertools.islice(usual, 30)
    of_case = iter(()) if case is None else itertools.islice(points_of(case, claim, seed), 10)
    tries_in_order = itertools.chain(
        ((entries, False) for entries in simple),
        ((entries, True) for entries in of_case),
        ((entries, False) for entries in usual),
    )
    started = time.process_time()
    for entries, of_the_case in tries_in_order:
        if time.process_time() - started > seconds:
            return None
        # Floats do not show every difference, so the checker evaluates points of the failing case
        # directly.
        try:
            suspicious = of_the_case or looks_wrong(claim, entries)
        except LimitError:
            return None
        if suspicious:
            refutation = confirmed(claim, entries)
            if refutation is not None:
                return refutation
    return None


def quick_counterexample(claim: Claim) -> Refuted | None:
    """Try two inputs that often refute false claims, and return a counterexample or None."""
    counting, *_, chosen = itertools.islice(candidates(claim, 4, 0), 7, 13)
    for entries in (chosen, counting):
        try:
            refutation = confirmed(claim, entries) if looks_wrong(claim, entries) else None
        except LimitError:
            return None
        if refutation is not None:
            return refutation
    return None


def confirmed(claim: Claim, entries: Sequence[Number]) -> Refuted | None:
    """Return the refutation of a claim by the input ``entries``, or None if the checker rejects it."""
    try:
        return check_refutation(claim, entries)
    except LocumError:
        return None


def candidates(claim: Claim, tries: int, seed: int) -> Iterator[tuple[Number, ...]]:
    """Yield inputs to try: constant inputs, counting inputs, and random inputs of increasing size."""
    count = len(claim.entries)
    for value in (1, 2, 3, 4, 5, -1, 0):
        yield (value,) * count
    yield tuple(i + 1 for i in range(count))
    yield tuple(-i - 1 for i in range(count))
    chance = random.Random(seed)
    for number in range(tries):
        reach = 1 + number // 20
        if claim.integer or number % 2 == 0:
            yield tuple(chance.randint(-reach, reach) for _ in range(count))
        else:
            yield tuple(Fraction(chance.randint(-8 * reach, 8 * reach), 8) for _ in range(count))


def looks_wrong(claim: Claim, entries: Sequence[Number]) -> bool:
    """Return whether the program and the reference differ in floating-point arithmetic for an input.

    An undefined program counts as different, unless a number is too large. Return False if the
    input does not clearly meet the conditions, or if the reference is undefined. Raise
    :class:`LimitError` if the program exceeds a limit of dense execution or is not supported by it.
    """
    numbers = [entry if claim.integer else float(entry) for entry in entries]
    try:
        for value, relation in claim.condition_values(numbers, _APPLY):
            if abs(value) < _VISIBLE or (relation == ">" and value < 0):
                return False
        expected = [float(value) for value in claim.expected(numbers, _APPLY)]
    except (ArithmeticError, ValueError):
        return False
    try:
        values = dense.evaluate(claim.program, claim.tokens(numbers), _FLOAT, claim.names)
    except ExecutionError as error:
        if error.kind in ("too large", "refused"):
            raise LimitError(str(error)) from None
        return error.kind != "OverflowError"
    result = [float(value) for value in claim.result(values)]
    scale = max(1.0, *map(abs, expected))
    return any(not abs(a - b) <= _VISIBLE * scale for a, b in zip(result, expected, strict=True))


# Points of a case ---------------------------------------------------------------------------------


def points_of(case: Case, claim: Claim, seed: int, tries: int = 60) -> Iterator[tuple[Number, ...]]:
    """Yield inputs that meet the assumptions of a case, found by solving the assumptions in order.

    Assumptions about functions such as exp are not checked.
    """
    chance = random.Random(seed)
    count = len(claim.entries)
    for number in range(tries):
        reach = 1 + number // 4
        point = [Fraction(chance.randint(-2 * reach, 2 * reach), 2) for _ in range(count)]
        if claim.integer:
            point = [Fraction(chance.randint(-reach, reach)) for _ in range(count)]
        _adjust(case, point, chance, claim.integer)
        if _meets(case, point):
            yield tuple(x.numerator if x.denominator == 1 else x for x in point)


def _adjust(case: Case, point: list[Fraction], chance: random.Random, integer: bool) -> None:
    """Change entries of ``point`` so that the assumptions of a case hold, if possible.

    For each violated assumption about a polynomial, change at most one entry in which the polynomial is
    linear.
    """
    solved: set[int] = set()
    for assumption in case.assumptions:
        question, answer = assumption.question, assumption.answer
        if question.relation == "%":
            entry = case.questions.ring.names.index(question.polynomial)
            point[entry] += (answer - point[entry]) % question.modulus
            continue
        polynomial = case.questions.polynomials[question.polynomial]
        if _holds(polynomial, question.relation, answer, point) is not False:
            continue
        size = Fraction(10) ** chance.choice((0, 0, 1, *range(-24, 8)))
        goal = Fraction(0) if (question.relation, answer) == ("=", 1) else size
        if (question.relation, answer) == (">", 0):
            goal = -size
        for variable, degree in enumerate(polynomial.degrees()[: len(point)]):
            if degree != 1 or variable in solved:
                continue
            slope = _value(polynomial.derivative(variable), point)
            here = _value(polynomial, point)
            if slope and here is not None:
                change = (goal - here) / slope
                if not integer or change.denominator == 1:
                    point[variable] += change
                    solved.add(variable)
                    break


def _value(polynomial: fmpq_mpoly, point: Sequence[Fraction]) -> Fraction | None:
    """Return the value of a polynomial at a point, or None if it contains functions of entries."""
    if any(polynomial.degrees()[len(point) :]):
        return None
    numbers = [fmpq(x.numerator, x.denominator) for x in point]
    padding = [fmpq(0)] * (len(polynomial.degrees()) - len(point))
    value = polynomial(*numbers, *padding)
    return Fraction(int(value.p), int(value.q))


def _holds(
    polynomial: fmpq_mpoly, relation: str, answer: int, point: Sequence[Fraction]
) -> bool | None:
    value = _value(polynomial, point)
    if value is None:
        return None
    return (value > 0 if relation == ">" else value == 0) == bool(answer)


def _meets(case: Case, point: Sequence[Fraction]) -> bool:
    for assumption in case.assumptions:
        question, answer = assumption.question, assumption.answer
        if question.relation == "%":
            entry = case.questions.ring.names.index(question.polynomial)
            if point[entry] % question.modulus != answer:
                return False
        else:
            polynomial = case.questions.polynomials[question.polynomial]
            if _holds(polynomial, question.relation, answer, point) is False:
                return False
    return True
