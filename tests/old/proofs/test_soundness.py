"""Every way in which a false claim was once proven, or a true one refuted."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

import locum
from locum.proofs import Claim, Formula, Proof, Refutation, Unproven, about, prove
from locum.proofs.checker.check import RejectedError, check
from locum.proofs.checker.proof_tree import Branch, Tree
from locum.rasp.handles import SOp
from tests.old.proofs.forger import SHOWN, forge, split

X, AT = locum.tokens, locum.indices
#: 2 or 3, by the sign of the last token.
W = locum.selector_width(locum.select(AT, 2, "<") | locum.select(X, 0, ">"))


def token(place: int) -> SOp:
    """One token, at every position."""
    return locum.aggregate(locum.select(AT, place, "=="), X)


def zero(program: SOp, count: int = 3) -> Claim:
    return about("zero", (count,), program, [("s", 1, count)], lambda s: [[0] * count])


@pytest.mark.parametrize(
    "changed",
    [
        (W & locum.constant(True)) == 1,
        (W | locum.constant(False)) == 1,
        locum.aggregate(locum.full, W + AT) == 3,
        -W == -2,
        locum.indicator(W) == 1,
        locum.where(W, 7, 8) == 7,
        ~W == locum.constant(False),
        locum.lookup(W, {2: 7, 3: 9}) == 9,
        abs(W) == 3,
        W * 2 == 4,
        locum.maximum(W, 0) == 2,
    ],
    ids=str,
)
def test_bounds_of_a_width_hold_of_the_width_alone(changed: SOp) -> None:
    """Bounds 2 … 3 were kept through every operation, and == was decided by them."""
    claim = zero(locum.indicator(changed))
    assert isinstance(prove(claim), (Refutation, Unproven))
    values = [SOp(claim.program)(point) for point in ([1.0, 1.0, 1.0], [1.0, 1.0, -1.0])]
    assert any(any(row) for row in values)


def test_a_width_is_within_its_bounds() -> None:
    assert isinstance(prove(zero(locum.indicator(W == 1))), Proof)
    assert isinstance(prove(zero(locum.indicator(W + W == 7))), Proof)
    assert isinstance(prove(zero(locum.indicator(W < 2) + locum.indicator(W > 3))), Proof)


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (locum.aggregate(locum.full, X == X), "mean of booleans"),
        (locum.where(AT > 99, locum.lookup(W, {2: 7}), 1), "lookup table"),
        (locum.where(AT > 99, 1 / (X - X), 1), "division by zero"),
        (locum.where(AT > 99, locum.sqrt(-1 - X * X), 1), "is undefined"),
    ],
)
def test_a_program_without_a_value_is_not_proven(program: SOp, reason: str) -> None:
    claim = about("one", (3,), program, [("s", 1, 3)], lambda s: [[1, 1, 1]])
    verdict = prove(claim)
    assert isinstance(verdict, Refutation)
    assert reason in verdict.problem
    with pytest.raises(locum.ExecutionError):
        SOp(claim.program)(list(map(float, verdict.entries)))
    with pytest.raises(RejectedError, match=r"undefined|is defined"):
        check(*forge(claim))


def test_the_numbers_of_a_refutation_are_those_that_refute() -> None:
    """They lay closer to 2 than any float does: rounded to floats, they refuted nothing."""
    width = locum.selector_width(locum.select(X, X, "<"))
    verdict = prove(
        about(
            "zero",
            (3,),
            locum.indicator(width & (X * token(2) == width)),
            [("s", 1, 3)],
            lambda s: [[0] * 4],
            layout=[(0, 0, 0), (0, 0, 1), (0, 0, 2), 2],
            conditions=lambda s: [(s[0, 0], ">")],
        )
    )
    assert isinstance(verdict, Refutation)
    entries = [Fraction(number) for number in verdict.entries]
    assert any(SOp(verdict.claim.program)([*entries, Fraction(2)], domain="exact"))
    shown = json.loads(json.dumps(verdict.to_dict()))["counterexample"]["s"][0]
    assert [Fraction(number) for number in shown] == entries


def test_limits_refute_nothing() -> None:
    """What is too large for an executor, or for an enclosure, was taken for "has no value"."""
    verdict = prove("matmul", 130, 1, 130)
    assert isinstance(verdict, Unproven)
    assert "too large" in verdict.reason
    towers = X
    for _ in range(4):
        towers = locum.exp(towers)
    true = about("abs", (1,), abs(X) + 0 * towers, [("s", 1, 1)], lambda s: s.maximum(-s))
    assert not isinstance(prove(true), Refutation)
    close = locum.sqrt(X * X + 1) * locum.sqrt(X * X + 1) - (X * X + 1)
    true = zero(locum.where(locum.constant(False) | close, 1, 0), 1)
    assert not isinstance(prove(true), Refutation)


def test_the_failing_case_is_tried() -> None:
    """The counterexample stood in the message, "in the case 2·x − 2469 = 0", and was not tried."""
    odd = locum.where(X == 1234.5, 7, locum.maximum(X, 0))
    verdict = prove(about("odd relu", (1,), odd, [("s", 1, 1)], lambda s: s.relu()))
    assert isinstance(verdict, Refutation)
    assert verdict.entries == (1234.5,)
    far = locum.where((X > 10**6) & (X < 10**6 + 1), 0, X)
    assert prove(about("same", (1,), far, [("s", 1, 1)], lambda s: s)).holds is False
    small = locum.where((X > 0) & (X < 1e-12), 1, X)
    assert prove(about("same", (1,), small, [("s", 1, 1)], lambda s: s)).holds is False


@pytest.mark.parametrize(
    ("program", "reference"),
    [
        (1 / locum.where(X == 0, 1, X), None),
        (locum.constant(1) ** X, "one"),
        (locum.exp(2 * X), "square"),
        (locum.indicator(locum.member(AT, [0])), "one"),
        (locum.tanh(X) - locum.tanh(X + 0), "zero"),
        (locum.sqrt(X * X + 1) - locum.sqrt(1 + X * X), "zero"),
        (abs(X), "maximum"),
    ],
)
def test_what_is_called_proven_is_checked(program: SOp, reference: str | None) -> None:
    """x⁻¹, 1ˣ, exp(2x) = exp(x)², member, tanh, √ were proven, and the checker rejected the proofs."""
    references = {
        "one": lambda s: [[1]],
        "zero": lambda s: [[0]],
        "square": lambda s: s.exp() * s.exp(),
        "maximum": lambda s: s.maximum(-s),
    }
    if reference is None:
        program, reference = program * locum.where(X == 0, 1, X), "one"
    proof = prove(about("one", (1,), program, [("s", 1, 1)], references[reference]))
    assert isinstance(proof, Proof), str(proof)


def test_one_program_in_all_domains() -> None:
    """``inverse`` asked whether arithmetic is exact, and took another branch in floats."""
    near = [1.0, 1.0, 1.0, 1.0 + 2.0**-50]
    strict = locum.constructions.inverse(locum.constructions.Matrix(X, 2, 2))
    for domain in ("float", "exact"):
        with pytest.raises(locum.ExecutionError, match="singular"):
            strict.run(near, domain=domain)
    for tolerance, relations in ((None, ["!=", ">"]), (0, ["!="])):
        proof = prove("inverse", 2, tolerance=tolerance)
        assert isinstance(proof, Proof)
        assert [relation for _, relation in proof.claim.conditions] == relations
        assert "for all real inputs that meet the conditions: inverse 2" in str(proof)
    plain = locum.constructions.inverse(locum.constructions.Matrix(X, 2, 2), tolerance=0)
    assert abs(plain.run(near)).max() > 1e14


def test_two_unknown_scores_are_not_taken_for_equal() -> None:
    """Of booleans that are open, nothing says that they are the same."""
    width = locum.selector_width(locum.select(locum.tokens, 0, ">"))
    score = (locum.lookup(width, {0: 1, 2: True, 3: 7}) == locum.tokens) == locum.tokens
    program = locum.selector_width(locum.best(locum.select(locum.indices, 2, "<"), score))
    assert program([0, -1, 0]) == [1, 1, 1]
    verdict = prove(about("x", (3,), program, [("s", 1, 3)], lambda s: s * 0 + 2))
    assert not isinstance(verdict, Proof)


def test_a_condition_is_about_its_own_maximum() -> None:
    """max(s₀, s₁) and max(s₂, s₃) got one variable: a condition on one was taken for the other's."""
    claim = about(
        "positive", (4,), locum.indicator(locum.maximum(token(2), token(3)) > 0), [("s", 1, 4)],
        lambda s: [[1] * 4], conditions=lambda s: [(s[0, 0].maximum(s[0, 1]), ">")],
    )  # fmt: skip
    assert SOp(claim.program)([1.0, 1.0, -1.0, -1.0]) == [0] * 4
    assert isinstance(prove(claim), Refutation)
    with pytest.raises(RejectedError, match="differs from the reference"):
        check(*forge(claim))


def test_a_condition_on_a_maximum_is_used_where_it_holds() -> None:
    program = locum.indicator(locum.maximum(token(0), token(1)) > 0)
    claim = about(
        "positive", (2,), program, [("s", 1, 2)], lambda s: [[1] * 2],
        conditions=lambda s: [(s[0, 0].maximum(s[0, 1]), ">")],
    )  # fmt: skip
    assert check(*forge(claim)) == 1
    verdict = prove(claim)
    assert isinstance(verdict, Unproven)
    assert "depends on a comparison" in verdict.reason


def test_two_unknown_queries_are_not_taken_for_equal() -> None:
    """Of True or 2 the checker knows nothing, so it may differ from one position to the next."""
    mixed = locum.where(X > 0, locum.constant(True), 2)
    width = locum.selector_width(locum.select(AT, mixed, "<"))
    first, second = (locum.aggregate(locum.select(AT, k, "=="), width) for k in (0, 1))
    claim = zero(first - second)
    assert SOp(claim.program)([1.0, -1.0, 1.0]) == [-1] * 3
    with pytest.raises(RejectedError, match="differs from the reference"):
        check(*forge(claim))


def test_remainders_by_a_number_and_by_an_entry_are_different() -> None:
    """x mod 1 was known by the 1, and x mod y by the number of y, which was 1, too."""
    claim = about(
        "zero", (2,), token(1) % 1 - token(1) % token(0), [("s", 1, 2)], lambda s: [[0, 0]],
        conditions=lambda s: [(s[0, 0], "!=")], integer=True,
    )  # fmt: skip
    assert SOp(claim.program)([2, 1]) == [-1, -1]
    with pytest.raises(RejectedError, match="determine the value"):
        check(*forge(claim))


def test_what_is_noted_in_one_case_is_not_used_in_another() -> None:
    """With x > 0, x + (y − 1)² is positive; the next case, x ≤ 0, must not hear of it."""
    x, y = token(0), token(1)
    same = locum.where(x > 0, x, -abs(x))  # x, but not before a case has decided its sign
    claim = about(
        "positive", (2,), locum.indicator(same + (y - 1) * (y - 1) >= 0), [("s", 1, 2)],
        lambda s: [[1, 1]],
    )  # fmt: skip
    assert SOp(claim.program)([-5.0, 1.0]) == [0, 0]
    first, second = (Formula.input("s", 1, 2)[0, place] for place in (0, 1))
    negative = -first - second * second + second * 2 - 1
    other = split(">", 1, Branch(contradiction=(("1", 1),)), SHOWN)
    tree = Tree(split(">", 0, SHOWN, other), frozenset([0, 1]))
    with pytest.raises(RejectedError, match="marked as impossible"):
        check(*forge(claim, [tree], [first, negative]))


def test_cos_of_zero_is_not_zero() -> None:
    """The checker accepted that cos(0) = 0: at 0, every function except log was taken for 0."""
    claim = about("cos", (1,), locum.cos(0 * X), [("s", 1, 1)], lambda s: [[0]])
    assert SOp(claim.program)([3.0]) == [1]
    with pytest.raises(RejectedError, match="differs from the reference"):
        check(*forge(claim))


def test_a_reference_has_a_value_in_all_its_parts() -> None:
    """1/s has no value at 0, although it is not the entry that is read."""
    beside = about("beside", (1,), X, [("s", 1, 1)], lambda s: Formula.beside(1 / s, s)[0, 1])
    assert not isinstance(prove(beside), Proof)
