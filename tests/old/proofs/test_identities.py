"""What prover or checker takes for the same is the same, and lies between the bounds it is given.

Open booleans, rows and choices are known by numbers, one for each way of writing. Random programs are
run on indeterminates in truthful cases, a condition among what is known; at the point of the case,
everything that has one number must have one value, and every value must be what exact evaluation gives.
This finds confusions that no decided value shows, such as a number that meant something else before.
"""

from __future__ import annotations

import contextlib
from collections.abc import Hashable, Mapping
from fractions import Fraction
from typing import Any

from flint import fmpq
from hypothesis import given, settings

from locum.errors import ExecutionError, InputError
from locum.execution import dense
from locum.graph import Node, postorder
from locum.proofs.checker.case_evaluation import Evaluator
from locum.proofs.checker.proof_case import Case as CheckedCase
from locum.proofs.checker.proof_case import NoValueError, Open
from locum.proofs.checker.quotients import WIDTH, Quotient
from locum.proofs.prover.booleans import Boolean
from locum.proofs.prover.cases import Case, Questions
from locum.proofs.prover.ring import Ratio, Ring, SlotsError, UnsupportedError
from locum.proofs.prover.symbolic import SymbolicDomain
from tests.old.proofs.random_claims import chains, integer_points, points
from tests.old.proofs.test_decided_values import (
    EXACT,
    NAMES,
    asked,
    at_point,
    checker_value,
    polynomial_at,
    question_of,
    truthful,
)


def truths(program: Node, point: list[Fraction]) -> dict[Node, list[Any]]:
    """The value of every node that has one: scalars by position, or rows of bits by query."""
    tokens = [fmpq(x.numerator, x.denominator) for x in point]
    known: dict[Node, Any] = {}
    for node in postorder(program):
        try:
            known[node] = dense.evaluate(node, tokens, EXACT, known=known)
        except ExecutionError:
            continue
    return {
        node: [EXACT.result(value) for value in values]
        if isinstance(values, list)
        else [sum(1 << k for k, cell in enumerate(row) if cell) for row in values]
        for node, values in known.items()
    }


class Meanings:
    """What each number stands for, at one point."""

    def __init__(self, known: Mapping[Hashable, Any] | None = None) -> None:
        self.known = dict(known or {})

    def meet(self, key: Hashable, true: Any) -> None:
        """Note what a number stands for, or compare."""
        before = self.known.setdefault(key, true)
        assert before == true, f"{key} is {before}, and {true} elsewhere"


# The checker --------------------------------------------------------------------------------------


def checker_is_consistent(program: Node, point: list[Fraction], integer: bool) -> None:
    """Evaluate a condition, then state it with some signs, then evaluate a program."""
    true = truths(program, point)
    for told in (0, 1, 5, 9):
        case = CheckedCase(len(NAMES), integer)
        meanings = Meanings({("variable", n): x for n, x in enumerate(point)})
        greater = case.apply("maximum", *case.entries[:2])
        meet_in_checker(greater, max(point[:2]), case, meanings)
        case.facts.state(greater.top, frozenset((_sign(max(point[:2])),)))
        for polynomial in asked(point)[:told]:
            sign = _sign(polynomial_at(polynomial, dict(enumerate(point))))
            case.facts.state(polynomial, frozenset((sign,)))
        evaluator = Evaluator(case, case.entries)
        with contextlib.suppress(NoValueError, InputError):
            evaluator.evaluate(program)
        for (node, heads), values in evaluator.values.items():
            if not heads and node in true:
                for value, one in zip(values, true[node], strict=True):
                    meet_in_checker(value, one, case, meanings)


def _sign(value: Fraction) -> int:
    return (value > 0) - (value < 0)


def meet_in_checker(value: Any, true: Any, case: CheckedCase, meanings: Meanings) -> None:
    if isinstance(value, tuple):
        for k, cell in enumerate(value):
            meet_in_checker(cell, bool(true >> k & 1), case, meanings)
    elif isinstance(value, Open):
        meanings.meet(("open", value.number), bool(true))
    elif isinstance(value, Quotient):
        for number, variable in enumerate(case.facts.variables):
            is_variable = value.top.terms == {1 << (WIDTH * number): 1}
            is_whole = value.rational is None and not value.factors
            if variable.kind == "choice" and is_variable and is_whole:
                assert variable.bounds is None or variable.bounds[0] <= true <= variable.bounds[1]
                meanings.meet(("variable", number), true)
        decided = checker_value(value, case, point_of(meanings))
        assert decided is None or decided == true, f"{decided} instead of {true}"
    elif isinstance(value, (bool, int, Fraction)):
        assert value == true, f"{value} instead of {true}"


def point_of(meanings: Meanings) -> dict[int, Fraction]:
    """What the variables stand for, as far as it is known."""
    return {key[1]: x for key, x in meanings.known.items() if key[0] == "variable"}  # type: ignore[index]


# The prover ---------------------------------------------------------------------------------------


def prover_is_consistent(program: Node, point: list[Fraction], integer: bool) -> None:
    ring = Ring(NAMES, integer=integer, slots=80)
    questions, true = Questions(ring), truths(program, point)
    case = Case(questions)
    for _ in range(6):
        questions.forget_choices()
        domain, meanings = SymbolicDomain(ring, case), Meanings()
        known: dict[Node, Any] = {}
        for node in postorder(program):
            try:
                known[node] = dense.evaluate(node, ring.entries, domain, known=known)
            except (ExecutionError, UnsupportedError, SlotsError):
                return
            rows = known[node] if isinstance(known[node], list) else list(known[node].ravel())
            expected = true.get(node)
            if expected is not None and not isinstance(known[node], list):
                expected = [bool(row >> k & 1) for row in expected for k in range(len(point))]
            for value, one in zip(rows, expected or rows, strict=True):
                if value is not one:
                    meet_in_prover(value, one, point, meanings)
        question = next((q for q in map(question_of, [*domain.sites, *rows]) if q is not None), None)
        answer = None if question is None else truthful(question, questions, point)
        if question is None or answer is None:
            return
        case = case.extended(question, answer)


def meet_in_prover(value: Any, true: Any, point: list[Fraction], meanings: Meanings) -> None:
    if isinstance(value, Boolean):
        assert value.value is None or value.value == true
        meanings.meet(("open", value.number, value.value), bool(true))
    elif isinstance(value, Ratio):
        slot = value.ring.behind(value.top) if value.bottom.is_one() else None
        if slot is not None and slot.function == "choice":
            exact = fmpq(*Fraction(true).as_integer_ratio())
            assert slot.low is None or slot.low <= exact
            assert slot.high is None or exact <= slot.high
            meanings.meet(("variable", slot.variable), true)
        decided = at_point(value, point)
        assert decided is None or decided == true, f"{decided} instead of {true}"


# Properties ---------------------------------------------------------------------------------------

#: Every node is evaluated several times: fewer programs than elsewhere.
few = settings(max_examples=settings().max_examples // 5)


@few
@given(chains(), points)
def test_random_programs_have_one_value_for_one_number_in_the_checker(
    program: Node, point: Any
) -> None:
    checker_is_consistent(program, point, integer=False)


@few
@given(chains(), integer_points)
def test_random_programs_over_the_integers_in_the_checker(program: Node, point: Any) -> None:
    checker_is_consistent(program, point, integer=True)


@few
@given(chains(), points)
def test_random_programs_have_one_value_for_one_number_in_the_prover(program: Node, point: Any) -> None:
    prover_is_consistent(program, point, integer=False)


@few
@given(chains(), integer_points)
def test_random_programs_over_the_integers_in_the_prover(program: Node, point: Any) -> None:
    prover_is_consistent(program, point, integer=True)
