"""Whatever the prover or the checker decides is what exact evaluation gives.

Random programs are run on indeterminates in random *truthful* cases: a point is drawn, and every
question is answered as it is true there. Each value that is decided must be the value at the point, and
if every operation is said to have a value then the program has one. Run on the code before the choices
this finds its leaks: bounds that were kept through ``and``, ``or``, means, negation and lookups, means
of booleans and lookups outside their table that counted as values.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from flint import fmpq
from hypothesis import given

from locum.errors import ExecutionError, InputError
from locum.execution import dense
from locum.execution.domains.exact import ExactDomain
from locum.graph import Node
from locum.proofs.checker.case_evaluation import Evaluator
from locum.proofs.checker.proof_case import UNKNOWN, NoValueError, Open
from locum.proofs.checker.proof_case import Case as CheckedCase
from locum.proofs.checker.proof_tree import Question
from locum.proofs.checker.quotients import ANY, Polynomial, Quotient, exponents
from locum.proofs.prover.booleans import Boolean
from locum.proofs.prover.cases import OPEN, Broken, Case, Questions, Undecided
from locum.proofs.prover.ring import Ratio, Ring, SlotsError, UnsupportedError
from locum.proofs.prover.symbolic import SymbolicDomain
from tests.old.proofs.random_claims import chains, integer_points, points

EXACT = ExactDomain()
NAMES = ["x", "y", "z"]
#: What ends a program on purpose: it has no value, or exact evaluation does not reach it.
LIMITS = ("refused", "OverflowError")


def exactly(program: Node, point: list[Fraction]) -> list[Any] | str | None:
    """The values at a point; the reason why there are none; None where exact arithmetic ends."""
    try:
        values = dense.evaluate(program, [fmpq(x.numerator, x.denominator) for x in point], EXACT)
    except ExecutionError as error:
        return None if error.kind in LIMITS or "not rational" in str(error) else error.kind
    return [EXACT.result(value) for value in values]


# The prover ---------------------------------------------------------------------------------------


def at_point(value: Ratio, point: list[Fraction]) -> Fraction | None:
    """A rational function at a point; None if it has choices or irrational functions in it."""
    ring = value.ring
    numbers = [fmpq(x.numerator, x.denominator) for x in point]
    numbers += [fmpq(0)] * (ring.context.nvars() - len(point))
    used = {v for p in (value.top, value.bottom) for v, degree in enumerate(p.degrees()) if degree}
    for variable in sorted(used):
        slot = ring.slot(variable)
        if slot is None:
            continue
        if slot.function != "absolute" or slot.argument is None:
            return None
        inner = at_point(slot.argument, point)
        if inner is None:
            return None
        numbers[variable] = abs(fmpq(*inner.as_integer_ratio()))
    result = value.top(*numbers) / value.bottom(*numbers)
    return Fraction(int(result.p), int(result.q))


def truthful(question: Question, questions: Questions, point: list[Fraction]) -> int | None:
    """The answer to a question at a point."""
    if question.relation == "%":
        return int(point[NAMES.index(question.polynomial)]) % question.modulus
    polynomial = questions.polynomials[question.polynomial]
    value = at_point(Ratio(questions.ring, polynomial, questions.ring.one), point)
    if value is None:
        return None
    return int(value > 0 if question.relation == ">" else value == 0)


def prover_agrees(program: Node, point: list[Fraction], integer: bool) -> None:
    truth = exactly(program, point)
    ring = Ring(NAMES, integer=integer, slots=80)
    questions = Questions(ring)
    case = Case(questions)
    for _ in range(12):
        questions.forget_choices()
        domain = SymbolicDomain(ring, case)
        try:
            values = dense.evaluate(program, ring.entries, domain)
        except (ExecutionError, UnsupportedError, SlotsError):
            return
        assert isinstance(values, list)
        if truth is not None:
            compare([prover_value(value, point) for value in values], domain.sites, truth)
        questions_left = [question_of(value) for value in [*domain.sites, *values]]
        question = next((one for one in questions_left if one is not None), None)
        if question is None:
            return
        answer = truthful(question, questions, point)
        if answer is None:
            return
        case = case.extended(question, answer)


def question_of(value: Any) -> Question | None:
    if isinstance(value, Ratio):
        result: Question | None = value.ring.blocking(value.top, value.bottom)
        return result
    return value.question if isinstance(value, (Undecided, Boolean)) else None


def prover_value(value: Any, point: list[Fraction]) -> Any:
    if isinstance(value, (*OPEN, Boolean)):
        return None
    return at_point(value, point) if isinstance(value, Ratio) else EXACT.result(value)


def compare(values: list[Any], sites: list[Any], truth: list[Any] | str) -> None:
    """Decided values are the true ones; a program without a value is not said to have one."""
    broken = [site for site in sites if isinstance(site, Broken)]
    if isinstance(truth, str):
        assert any(site is not None for site in sites), f"{truth}, but every site is fine"
        return
    assert not broken, f"there is a value, but {broken[0].reason}"
    for mine, true in zip(values, truth, strict=True):
        assert mine is None or mine == true, f"{mine} instead of {true}"


# The checker --------------------------------------------------------------------------------------


def checker_agrees(program: Node, point: list[Fraction], integer: bool) -> None:
    """The checker, told the signs of tokens and of their differences."""
    truth = exactly(program, point)
    for told in range(4):
        case = CheckedCase(len(NAMES), integer)
        for number, polynomial in enumerate(asked(point)[: 3 * told]):
            value = polynomial_at(polynomial, dict(enumerate(point)))
            sign = (value > 0) - (value < 0)
            allowed = frozenset((sign,)) if number % 2 else ANY - {-sign or 1}
            if sign in allowed:
                case.facts.state(polynomial, allowed)
        if integer:
            for entry, x in enumerate(point):
                for modulus in (2, 3):
                    case.facts.remainders[entry, modulus] = int(x) % modulus
        evaluator = Evaluator(case, case.entries)
        try:
            values = evaluator.evaluate(program)
        except NoValueError:
            assert truth is None or isinstance(truth, str), "there is a value, but none is found"
            continue
        except InputError:
            continue
        if isinstance(truth, str):
            assert evaluator.open_sites, f"{truth}, but every site is fine"
        elif truth is not None:
            for mine, true in zip(values, truth, strict=True):
                decided = checker_value(mine, case, dict(enumerate(point)))
                assert decided is None or decided == true, f"{decided} instead of {true}"


def asked(point: list[Fraction]) -> list[Polynomial]:
    x, y, z = (Polynomial.variable(n) for n in range(3))
    one = Polynomial.constant(1)
    less_x, less_y, less_z, less_one = (part.scale(-1) for part in (x, y, z, one))
    pairs = [x + less_y, y + less_z, less_x + z]
    return [x, y, z, *pairs, x + less_one, y.scale(2) + less_one, z + one]


def polynomial_at(polynomial: Polynomial, point: Mapping[int, Fraction]) -> Fraction:
    total = Fraction(0)
    for monomial, coefficient in polynomial.terms.items():
        product = Fraction(coefficient)
        for variable, power in exponents(monomial):
            product *= point[variable] ** power
        total += product
    return total


def checker_value(value: Any, case: CheckedCase, point: Mapping[int, Fraction]) -> Any:
    """A decided value, the variables standing for what ``point`` has of them; None if it has less."""
    if isinstance(value, Open) or value is UNKNOWN:
        return None
    if not isinstance(value, Quotient):
        return value
    extended = dict(point)
    used = {v for p in (value.top, *value.factors) for m in p.terms for v, _ in exponents(m)}
    for variable in used - extended.keys():
        meant = case.facts.variables[variable]
        inner = checker_value(meant.argument, case, point) if meant.kind == "absolute" else None
        if inner is None:
            return None
        extended[variable] = abs(inner)
    result = polynomial_at(value.top, extended)
    for factor, power in value.factors.items():
        result /= polynomial_at(factor, extended) ** power
    return result


# Properties ---------------------------------------------------------------------------------------


@given(chains(), points)
def test_random_programs_are_decided_truthfully_by_the_prover(program: Node, point: Any) -> None:
    prover_agrees(program, point, integer=False)


@given(chains(), integer_points)
def test_random_programs_over_the_integers_by_the_prover(program: Node, point: Any) -> None:
    prover_agrees(program, point, integer=True)


@given(chains(), points)
def test_random_programs_are_decided_truthfully_by_the_checker(program: Node, point: Any) -> None:
    checker_agrees(program, point, integer=False)


@given(chains(), integer_points)
def test_random_programs_over_the_integers_by_the_checker(program: Node, point: Any) -> None:
    checker_agrees(program, point, integer=True)
