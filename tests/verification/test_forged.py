"""Files that were not written by the prover: what the checker accepts holds at sample points."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from locum.errors import InputError
from locum.graph import OPERATIONS, Node, build, sum_over
from locum.graph.operations import constant
from locum.proofs import RejectedError, check
from locum.proofs.claims.claim import Claim
from locum.proofs.claims.formula import Formula
from tests.verification.forger import INDICES, SHOWN, TOKENS, Forger, examine, forge, forge_refutation
from tests.verification.strict import ELEMENTWISE

X = Formula.input("X", 1, 1)
ONE = Formula.constant(1)
INVERSE = build("divide", constant(1), TOKENS)
NONE = build("select", INDICES, constant(-1), predicate="==")
HEADS = build("family", name="h", size=2)


def claim(program: Node, reference: Formula = ONE, *conditions: tuple[Formula, str]) -> Claim:
    """Return a claim about one token."""
    return Claim("own", (), program, (X,), ((0, 0, 0),), ((0,),), reference, False, conditions)


#: Programs that are 1 wherever 1/x has a value, and do not use 1/x.
UNUSED = {
    "if_else": build("if_else", build("greater_equal", INDICES, constant(0)), constant(1), INVERSE),
    "aggregate": build("aggregate", NONE, INVERSE, default=1),
    "and": build(
        "not",
        build("and", build("less", INDICES, constant(0)), build("greater", INVERSE, constant(0))),
    ),
    "best": build("add", constant(1), build("selector_width", build("best", NONE, INVERSE))),
    "family": sum_over(
        [HEADS],
        build("if_else", build("less", HEADS, constant(2)), constant(0.5), INVERSE),
    ),
}


@pytest.mark.parametrize("program", UNUSED.values(), ids=UNUSED)
def test_an_operand_that_is_not_used_must_have_a_value(program: Node) -> None:
    """A theorem and its negation were both accepted: the operand was not evaluated at the leaves."""
    certificate = forge(claim(program))
    with pytest.raises(RejectedError, match="does not prove that every operation is defined"):
        check(certificate)
    refuted = check(forge_refutation(certificate, [Fraction(0)])).refuted
    assert refuted is not None
    assert "division by zero" in refuted.problem


@pytest.mark.parametrize("program", UNUSED.values(), ids=UNUSED)
def test_an_operand_that_is_not_used_may_have_a_value(program: Node) -> None:
    """With the condition x ≠ 0 the same statements are true."""
    certificate = forge(claim(program, ONE, (X, "!=")))
    assert check(certificate).cases == 1
    with pytest.raises(RejectedError, match="expected numbers that meet the conditions"):
        check(forge_refutation(certificate, [Fraction(0)]))


def test_programs_that_round_are_rejected() -> None:
    """Claims are about real numbers, even where a rounded operand is not used."""
    rounded = build("float32", build("tokens", cast="asis"))
    program = build("if_else", constant(True), constant(1), rounded)
    certificate = forge(claim(program))
    for content in (certificate, forge_refutation(certificate, [Fraction(1, 2)])):
        with pytest.raises(InputError, match="expected operations on real numbers, got float32"):
            check(content)


def test_programs_with_free_families_are_rejected() -> None:
    certificate = forge(claim(build("divide", constant(1), HEADS)))
    for content in (certificate, forge_refutation(certificate, [Fraction(0)])):
        with pytest.raises(RejectedError, match="program: expected a value that the format"):
            check(content)


def test_an_operand_that_is_not_used_may_need_cases() -> None:
    guarded = build("if_else", build("equal", TOKENS, constant(0)), constant(1), TOKENS)
    unused = build("if_else", constant(True), constant(1), build("divide", constant(1), guarded))
    split = {"sign": "=", "of": 0, "answers": [SHOWN, SHOWN]}
    with pytest.raises(RejectedError, match="does not prove that every operation is defined"):
        check(forge(claim(unused)))
    trees = [{"entries": [0], "cases": SHOWN}, {"entries": [], "cases": split}]
    assert check(forge(claim(unused), trees, [X])).cases == 3


@pytest.mark.parametrize(("positive", "other", "point"), [(-1, None, 1), (None, 1, -1)])
def test_an_operation_must_have_a_value_in_every_case(
    positive: int | None, other: int | None, point: int
) -> None:
    """The divisor is 1 in one case, and may be 0 in the other one."""
    branches = [
        constant(1) if shift is None else build("add", TOKENS, constant(shift))
        for shift in (positive, other)
    ]
    divisor = build("if_else", build("greater", TOKENS, constant(0)), *branches)
    unused = build("if_else", constant(True), constant(1), build("divide", constant(1), divisor))
    split = {"sign": ">", "of": 0, "answers": [SHOWN, SHOWN]}
    certificate = forge(claim(unused), [{"entries": [0], "cases": split}], [X])
    with pytest.raises(RejectedError, match="does not prove that every operation is defined"):
        check(certificate)
    assert check(forge_refutation(certificate, [Fraction(point)])).refuted is not None


@pytest.mark.parametrize(
    "reference",
    [
        (1 / X).cofactors(),
        Formula.beside(ONE, 1 / X).softmax("causal") @ Formula.constant(1, 2, 1),
        Formula.beside(ONE, 1 / X)[0, 0],
        Formula.beside(ONE, 0 / X).match2(1)[0, 0],
        Formula.beside(ONE, 0 / X).hardmax()[0, 0],
        Formula.beside(ONE, 0 / X).sort(2)[0, 0],
        ONE + (0 / X).match2(2) * 0,
    ],
    ids=str,
)
def test_an_entry_of_a_formula_that_is_not_used_must_have_a_value(reference: Formula) -> None:
    """At x = 0 the reference has no value: nothing is equal to it, and nothing differs from it."""
    certificate = forge(claim(constant(1), reference))
    with pytest.raises(RejectedError, match="determine the value"):
        check(certificate)
    with pytest.raises(RejectedError, match="division by zero"):
        check(forge_refutation(certificate, [Fraction(0)]))
    assert check(forge(claim(constant(1), reference, (X, "!=")))).cases == 1


def test_a_condition_and_a_question_must_have_a_value() -> None:
    """An undecided comparison with 1/x must not count as 0 or 1, because 1/0 has no value."""
    bit = (1 / X).match2(2)
    split = [{"entries": [0], "cases": {"sign": ">", "of": 0, "answers": [SHOWN, SHOWN]}}]
    for content in (
        forge(claim(constant(1), ONE, (bit + 1, ">"))),
        forge(claim(constant(1)), split, [bit + 1]),
    ):
        with pytest.raises(RejectedError, match="expected a number that has a value"):
            check(content)


def test_a_refutation_needs_a_reference_and_conditions_with_a_value() -> None:
    """exp(1)·exp(−1) − 1 is 0, but rational bounds do not show it."""
    bit = (1 / (ONE.exp() * (-ONE).exp() - 1)).match2(2)
    for stated in (claim(constant(5), bit * 0), claim(constant(5), ONE, (bit + 1, ">"))):
        with pytest.raises(RejectedError, match=r"do not determine the value|meet the conditions"):
            check(forge_refutation(forge(stated), [Fraction(0)]))


HUGE = build("power", constant(10), constant(400))
EXACT = Formula.constant(Fraction(1, 10))


@pytest.mark.parametrize(
    ("program", "reference", "problem"),
    [
        (constant(5), ONE, "entry 0 is 5, but should be 1"),
        (constant(0.1), EXACT, "entry 0 exceeds the expected value by 5.6e-18"),
        (constant(-0.1), -EXACT, "entry 0 is less than the expected value by 5.6e-18"),
        (
            build("add", HUGE, constant(2)),
            Formula.constant(10**400),
            "entry 0 exceeds the expected value by 2",
        ),
        (HUGE, Formula.constant(-(10**400)), "entry 0 is inf, but should be -inf"),
        (
            build("negate", HUGE),
            Formula.constant(-(10**401)),
            "entry 0 exceeds the expected value",
        ),
        (build("divide", constant(1), HUGE), ONE * 0, "entry 0 differs from the expected value"),
    ],
)
def test_a_refutation_states_a_difference(program: Node, reference: Formula, problem: str) -> None:
    """A message was "entry 0 is 0.1, but should be 0.1"."""
    refuted = check(forge_refutation(forge(claim(program, reference)), [Fraction(0)])).refuted
    assert refuted is not None
    assert refuted.problem == problem


def test_the_strict_evaluator_has_every_elementwise_operation() -> None:
    """cos was missing, so that no test drew it, and the checker accepted that cos(0) = 0."""
    rows = OPERATIONS.items()
    assert set(ELEMENTWISE) == {name for name, row in rows if row.elementwise and not row.rounds}


@given(st.integers(0, 2**64))
def test_random_forged_certificates_hold_at_points_if_they_are_accepted(seed: int) -> None:
    draw = random.Random(seed)
    event(examine(Forger(draw).certificate(), draw))
