"""Proofs that the prover did not find: what the checker accepts holds at sample points."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from locum.errors import InputError
from locum.graph import OPERATIONS, Node, build, sum_over
from locum.graph.operations import constant
from locum.proofs.checker.check import RejectedError, check, check_refutation
from locum.proofs.checker.proof_tree import Branch, Question, Tree
from locum.proofs.claims.claim import Claim
from locum.proofs.claims.formula import Formula
from locum.proofs.prover.prove import Proof, Refutation, prove
from tests.old.proofs.forger import (
    INDICES,
    SHOWN,
    TOKENS,
    Forger,
    draw_points,
    examine,
    forge,
    split,
)
from tests.verification.strict import ELEMENTWISE, FAILS, HOLDS, OUTSIDE, UNDECIDED, judge

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
    stated = claim(program)
    with pytest.raises(RejectedError, match="does not show that every operation is defined"):
        check(*forge(stated))
    assert "division by zero" in check_refutation(stated, [Fraction(0)]).problem


@pytest.mark.parametrize("program", UNUSED.values(), ids=UNUSED)
def test_an_operand_that_is_not_used_may_have_a_value(program: Node) -> None:
    """With the condition x ≠ 0 the same statements are true."""
    stated = claim(program, ONE, (X, "!="))
    assert check(*forge(stated)) == 1
    with pytest.raises(RejectedError, match="expected numbers that meet the conditions"):
        check_refutation(stated, [Fraction(0)])


def test_programs_that_round_are_rejected() -> None:
    """Claims are about real numbers, even where a rounded operand is not used."""
    rounded = build("float32", build("tokens", cast="asis"))
    stated = claim(build("if_else", constant(True), constant(1), rounded))
    with pytest.raises(InputError, match="expected operations on real numbers, got float32"):
        check(*forge(stated))
    with pytest.raises(InputError, match="expected operations on real numbers, got float32"):
        check_refutation(stated, [Fraction(1, 2)])


def test_programs_with_free_families_are_rejected() -> None:
    stated = claim(build("divide", constant(1), HEADS))
    with pytest.raises(RejectedError, match="got a free family"):
        check(*forge(stated))
    with pytest.raises(RejectedError, match="got a free family"):
        check_refutation(stated, [Fraction(0)])


def test_an_operand_that_is_not_used_may_need_cases() -> None:
    guarded = build("if_else", build("equal", TOKENS, constant(0)), constant(1), TOKENS)
    unused = build("if_else", constant(True), constant(1), build("divide", constant(1), guarded))
    with pytest.raises(RejectedError, match="does not show that every operation is defined"):
        check(*forge(claim(unused)))
    trees = [Tree(SHOWN, frozenset([0])), Tree(split("=", 0, SHOWN, SHOWN), frozenset())]
    assert check(*forge(claim(unused), trees, [X])) == 3


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
    stated = claim(build("if_else", constant(True), constant(1), build("divide", constant(1), divisor)))
    with pytest.raises(RejectedError, match="does not show that every operation is defined"):
        check(*forge(stated, [Tree(split(">", 0, SHOWN, SHOWN), frozenset([0]))], [X]))
    assert check_refutation(stated, [Fraction(point)]).found is None


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        (split("=", 0, SHOWN), "a child for each answer"),
        (split("=", 0, Branch(contradiction=(("0", 1),)), SHOWN), "marked as impossible"),
        (Branch(Question("X[0,0]", "%", 0)), "at least one answer"),
        (Branch(Question("X[0,0]", "%", 2), (SHOWN, SHOWN)), "a remainder of an integer"),
    ],
)
def test_trees_cover_all_inputs(tree: Branch, message: str) -> None:
    """A modulus of 0 has no remainders, and so had no cases left to show."""
    stated = claim(build("if_else", build("equal", TOKENS, constant(0)), constant(1), constant(1)))
    with pytest.raises(RejectedError, match=message):
        check(*forge(stated, [Tree(tree, frozenset([0]))], [X]))


def test_every_entry_is_compared_in_a_possible_case() -> None:
    """All cases of a tree contradict one another: nothing is left to compare."""
    stated = claim(build("add", TOKENS, constant(1)), X)
    impossible = Branch(contradiction=(("0", 1),))
    nothing = Tree(split("=", 0, impossible, impossible), frozenset([0]))
    for trees in ([nothing], [Tree(SHOWN, frozenset())]):
        with pytest.raises(RejectedError):
            check(*forge(stated, trees, [ONE]))


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
    ids=["cofactors", "softmax", "entry", "match2", "hardmax", "sort", "match2 times 0"],
)
def test_an_entry_of_a_formula_that_is_not_used_must_have_a_value(reference: Formula) -> None:
    """At x = 0 the reference has no value: nothing is equal to it, and nothing differs from it."""
    stated = claim(constant(1), reference)
    with pytest.raises(RejectedError, match="determine the value"):
        check(*forge(stated))
    with pytest.raises(InputError, match="division by zero"):
        check_refutation(stated, [Fraction(0)])
    assert check(*forge(claim(constant(1), reference, (X, "!=")))) == 1


def test_a_condition_and_a_question_must_have_a_value() -> None:
    """An undecided comparison with 1/x must not count as 0 or 1, because 1/0 has no value."""
    bit = (1 / X).match2(2)
    tree = Tree(split(">", 0, SHOWN, SHOWN), frozenset([0]))
    for forged in (
        forge(claim(constant(1), ONE, (bit + 1, ">"))),
        forge(claim(constant(1)), [tree], [bit + 1]),
    ):
        with pytest.raises(RejectedError, match="expected a number that has a value"):
            check(*forged)


def test_a_refutation_needs_a_reference_and_conditions_with_a_value() -> None:
    """exp(1)·exp(−1) − 1 is 0, but rational bounds do not show it."""
    bit = (1 / (ONE.exp() * (-ONE).exp() - 1)).match2(2)
    for stated in (claim(constant(5), bit * 0), claim(constant(5), ONE, (bit + 1, ">"))):
        with pytest.raises(RejectedError, match=r"do not determine the value|meet the conditions"):
            check_refutation(stated, [Fraction(0)])


@pytest.mark.parametrize("point", [[Fraction(1)], [], [Fraction(1)] * 2])
def test_numbers_that_do_not_refute_are_rejected(point: list[Fraction]) -> None:
    with pytest.raises(RejectedError, match=r"do not show that|expected 1 numbers"):
        check_refutation(claim(TOKENS, X), point)


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
    assert check_refutation(claim(program, reference), [Fraction(0)]).problem == problem


def test_the_strict_evaluator_has_every_elementwise_operation() -> None:
    """cos was missing, so that no test drew it, and the checker accepted that cos(0) = 0."""
    rows = OPERATIONS.items()
    assert set(ELEMENTWISE) == {name for name, row in rows if row.elementwise and not row.rounds}


@given(st.integers(0, 2**64))
def test_random_forged_proofs_hold_at_points_if_they_are_accepted(seed: int) -> None:
    draw = random.Random(seed)
    event(examine(Forger(draw).proof(), draw))


@given(st.integers(0, 2**64))
def test_random_claims_hold_at_points_if_they_are_proven(seed: int) -> None:
    """The prover and the checker together: the verdict on a forged claim is true."""
    draw = random.Random(seed)
    stated = Forger(draw).claim()
    verdict = prove(stated, seconds=5)
    if isinstance(verdict, Proof):
        for point in draw_points(draw, stated, 30):
            assert judge(stated, point) in (HOLDS, OUTSIDE, UNDECIDED), point
    elif isinstance(verdict, Refutation):
        assert judge(stated, [Fraction(x) for x in verdict.entries]) in (FAILS, UNDECIDED)
    event(f"holds: {verdict.holds}")
