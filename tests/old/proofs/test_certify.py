"""Enclosures hold the true result; no float execution is further off than certified."""

from __future__ import annotations

import contextlib
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb

import locum
from locum.constructions import Matrix, matmul, softmax
from locum.errors import InputError
from locum.execution import dense
from locum.graph import OPERATIONS
from locum.proofs.certified.balls import FORMATS, BallDomain, precise
from locum.proofs.certified.certify import certify, certify_matrix
from locum.proofs.certified.sensitivity import SLOPES, Rounded, worst_errors
from locum.proofs.checker.proof_case import Case as CheckedCase
from locum.proofs.prover.cases import Case, Questions
from locum.proofs.prover.ring import Ring
from locum.proofs.prover.symbolic import SymbolicDomain


def draw(seed: int, n: int, d: int, d_v: int) -> tuple[locum.Attention, Any]:
    chance = np.random.default_rng(seed)
    A, V, X = chance.normal(size=(d, d)), chance.normal(size=(d, d_v)), chance.normal(size=(n, d))
    return locum.Attention(A, V), X


def test_the_observed_error_stays_below_the_certificate() -> None:
    """The bound holds for errors that are seen on random inputs."""
    U = locum.UniversalSimulator(4, 4, 4)
    certified, observed = 0.0, 0.0
    for seed in range(40):
        T, X = draw(seed, 4, 4, 4)
        result = certify(U, T, X)
        seen = result.seen(U(T, X, executor="dense"))
        assert seen <= result.error
        assert result.width < 1e-30
        assert (result.lower <= result.upper).all()
        certified, observed = max(certified, result.error), max(observed, seen)
    assert certified <= 100 * observed


def test_the_enclosure_holds_the_exact_result() -> None:
    view = Matrix(locum.tokens, 2, 2)
    product = matmul(view, view)
    tokens = [0.1, 0.2, 0.3, 0.7]
    exact = product.run([Fraction(x) for x in tokens], domain="exact")
    result = certify_matrix(product, tokens)
    for low, high, true in zip(result.lower.ravel(), result.upper.ravel(), exact.ravel(), strict=True):
        assert Fraction(float(low)) <= true <= Fraction(float(high))
    actual = product.run(tokens)
    for x, true, error in zip(actual.ravel(), exact.ravel(), result.errors.ravel(), strict=True):
        assert abs(Fraction(float(x)) - true) <= Fraction(float(error))


def test_float32_loses_more() -> None:
    U, (T, X) = locum.UniversalSimulator(2, 2, 2), draw(0, 2, 2, 2)
    with pytest.raises(locum.InputError, match="expected numbers that float32 represents exactly"):
        certify(U, T, X, dtype="float32")
    A, V, X = (np.asarray(m, dtype=np.float32).astype(float) for m in (T.A, T.V, X))
    T = locum.Attention(A, V)
    assert certify(U, T, X, dtype="float32").error > 1e6 * certify(U, T, X).error
    with pytest.raises(locum.InputError, match="the formats float64, float32, got 'float8'"):
        certify(U, T, X, dtype="float8")


def test_ties_are_decided_by_more_bits() -> None:
    """Two equal scores: with enough bits they are equal exactly, and the leftmost is taken."""
    result = certify_matrix(softmax(Matrix(locum.tokens, 1, 2)), [0.1, 0.1])
    assert result.lower.max() <= 0.5 <= result.upper.min()


def test_what_enclosures_cannot_tell_is_an_error() -> None:
    """Two exponentials that are the same number: no number of bits shows it."""
    x = locum.exp(locum.tokens) - locum.exp(locum.tokens + 0)
    program = Matrix(locum.where(x > 0, 1, 0), 1, 1)
    with pytest.raises(locum.ExecutionError, match="too close"):
        certify_matrix(program, [1.0])


def test_new_domains_have_a_meaning_or_a_refusal_for_every_operation() -> None:
    ring = Ring(["x"])
    elementwise = set(OPERATIONS) - dense.STRUCTURAL
    for domain in (BallDomain(), SymbolicDomain(ring, Case(Questions(ring)))):
        assert set(domain.meanings) | set(domain.refusals) == elementwise, domain.name
    attributes: dict[str, dict[str, Any]] = {"member": {"values": (1,)}, "lookup": {"table": ((1, 2),)}}
    for name in elementwise:
        operands, context = [1] * len(OPERATIONS[name].takes), contextlib.ExitStack()
        if OPERATIONS[name].rounds:
            context.enter_context(pytest.raises(InputError, match="expected operations on real"))
        with context:
            CheckedCase(0, integer=False).apply(name, *operands, **attributes.get(name, {}))


@pytest.mark.parametrize("x", [0.5, -3.25, 20.0])
def test_functions_in_balls(x: float) -> None:
    for name in ("exp", "tanh", "erf", "absolute"):
        function = BallDomain().meanings[name]
        with precise(128):
            value = float(function(arb(x)))
        wanted = {"absolute": abs}.get(name) or getattr(math, name)
        assert value == pytest.approx(wanted(x), rel=1e-15)


def test_every_operand_of_and_or_is_decided() -> None:
    """A ball around 0 is neither true nor false, whichever operand it is."""
    zero = locum.exp(locum.tokens) - locum.exp(locum.tokens + 0)
    for both in (locum.constant(True) & zero, zero & True, locum.constant(False) | zero):
        with pytest.raises(locum.ExecutionError, match="too close to be compared"):
            certify_matrix(Matrix(locum.where(both, 1, 0), 1, 1), [1.0])


def test_the_rounding_of_constants_is_counted() -> None:
    x = -0.3333033036098364
    result = certify_matrix(Matrix(locum.tokens + locum.constant(1) / 3, 1, 1), [x])
    error = abs(Fraction(x + 1 / 3) - (Fraction(x) + Fraction(1, 3)))
    assert 1e-18 < error <= Fraction(float(np.max(result.error)))


def test_the_rounding_of_constants_of_the_program_is_counted_in_float32() -> None:
    """0.1 is exact in float64, but not in float32."""
    program = Matrix(locum.tokens * 0.1, 1, 1)
    for x in np.linspace(1, 2, 200, dtype=np.float32):
        result = certify_matrix(program, [float(x)], dtype="float32")
        assert result.seen([float(x * np.float32(0.1))]) <= result.error


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_constants_below_the_normal_range_are_certified(dtype: str) -> None:
    result = certify_matrix(Matrix(locum.tokens * 5e-324, 1, 1), [1.0], dtype=dtype)
    assert result.lower[0, 0] <= 5e-324 <= result.upper[0, 0]
    assert result.error <= (1e-44 if dtype == "float32" else 1e-322)


def test_repeated_tokens_are_certified() -> None:
    """Any of several greatest scores will do for the shift of a softmax."""
    chance = np.random.default_rng(3)
    T = locum.Attention(chance.normal(size=(2, 2)), chance.normal(size=(2, 2)))
    for X in (np.zeros((3, 2)), np.ones((3, 2)), chance.normal(size=(1, 2)).repeat(3, axis=0)):
        result = certify(locum.UniversalSimulator(3, 2, 2), T, X)
        assert result.error < 1e-12
        assert np.abs(T(X) - (result.lower + result.upper) / 2).max() <= 1e-12


@pytest.mark.parametrize("close", [0.0, 2.0**-52])
def test_errors_that_cancel_are_not_added_up(close: float) -> None:
    """Rows of X that are equal, or nearly: whatever the weights are, they sum to 1."""
    U, chance = locum.UniversalSimulator(4, 4, 4), np.random.default_rng(1)
    certified, observed = 0.0, 0.0
    for _ in range(6):
        A, V, X = chance.normal(size=(3, 4, 4))
        X[:] = X[0] * (1 + chance.integers(-2, 3, size=X.shape) * close)
        result = certify(U, locum.Attention(A, V), X)
        seen = result.seen(U(locum.Attention(A, V), X, executor="dense"))
        assert seen <= result.error
        certified, observed = max(certified, result.error), max(observed, seen)
    assert certified <= 40 * observed


@pytest.mark.parametrize("name", SLOPES)
def test_slopes_are_difference_quotients(name: str) -> None:
    """Over a ball as wide as 2⁻²⁰, the slope encloses what a small step changes."""
    operation, step = BallDomain().meanings[name], Fraction(1, 2**80)
    for point in ((0.75, 1.5), (2.25, 0.5), (3.0, 2.0)):
        arguments = [Fraction(x) for x in point][: len(SLOPES[name])]
        with precise(400):
            balls = [arb(float(x), 2.0**-20) for x in arguments]
            for place, slope in enumerate(SLOPES[name]):
                ends = []
                for moved in (0, step):
                    here = [x + moved * (k == place) for k, x in enumerate(arguments)]
                    ends.append(operation(*(arb(x.numerator) / x.denominator for x in here)))
                quotient = (ends[1] - ends[0]) / (arb(step.numerator) / step.denominator)
                assert arb(slope(*balls)).contains(quotient)


def test_what_is_not_remembered_moves_by_its_whole_ball() -> None:
    """A ball of unknown origin is a variable of its own, wherever it occurs."""
    with precise(128):
        unknown = arb(1, 0.25)
        assert float(_worst_error(unknown)) >= 0.5
        assert float(_worst_error(arb(7))) == 0
        double = Rounded(unknown + unknown, "add", (unknown, unknown), arb(0))
        nothing = Rounded(double - double, "subtract", (double, double), arb(0))
        assert float(_worst_error(double)) >= 1
        assert float(_worst_error(nothing)) == 0


def test_results_that_share_their_parts_have_the_bounds_that_each_has_alone() -> None:
    """Sums hand their slopes on; what several of them use must not be counted in one of them only."""
    chance = np.random.default_rng(3)
    with precise(128):
        balls: list[Any] = [arb(float(x), 2.0**-40) for x in chance.normal(size=4)]
        for _ in range(60):
            name = str(chance.choice(["add", "subtract", "multiply"]))
            a, b = (balls[k] for k in chance.integers(len(balls), size=2))
            value, error = BallDomain().meanings[name](a, b), arb(2.0**-50)
            balls.append(Rounded(arb(value) + arb(0, error), name, (a, b), error))
        for together, ball in zip(worst_errors(balls), balls, strict=True):
            alone = _worst_error(ball)
            assert abs(together - alone) <= alone * 2.0**-20
            # By hand, from the definition: the slope in each rounding and variable, one by one.
            by_hand = sum(abs(_slope(ball, part)) * _moves(part) for part in _parts(ball))
            assert abs(together - by_hand) <= alone * 2.0**-20


def _worst_error(ball: Any) -> Any:
    return worst_errors([ball])[0]


def _parts(ball: Any) -> list[Any]:
    result: dict[int, Any] = {}
    left = [ball]
    while left:
        part = left.pop()
        if id(part) not in result:
            result[id(part)] = part
            left += part.operands if isinstance(part, Rounded) else []
    return list(result.values())


def _moves(part: Any) -> Any:
    return part.error if isinstance(part, Rounded) else 2 * part.rad()


def _slope(ball: Any, part: Any) -> Any:
    """∂(ball)/∂(part), forwards."""
    slopes: dict[int, Any] = {}
    for here in sorted(_parts(ball), key=lambda one: getattr(one, "number", -1)):
        if here is part:
            slopes[id(here)] = arb(1)
        elif isinstance(here, Rounded):
            slopes[id(here)] = sum(
                slopes[id(operand)] * slope(*here.operands)
                for operand, slope in zip(here.operands, SLOPES[here.operation], strict=True)
            )
        else:
            slopes[id(here)] = arb(0)
    return slopes[id(ball)]


def test_positions_with_the_same_operands_share_one_rounding() -> None:
    """x/3 · y is the same float wherever it is computed, so a difference of two of them is 0."""
    t, first = locum.tokens, locum.select(locum.indices, 0, "==")
    x, y = locum.aggregate(first, t / 3), locum.aggregate(first, t / 7)
    there = locum.aggregate(locum.select(locum.indices, 1, "=="), x * y)
    result = certify_matrix(Matrix(x * y - there, 1, 3), [1.0, 2.0, 3.0])
    assert (result.errors <= 5e-324).all()
    assert (result.lower <= 0).all()
    assert (result.upper >= 0).all()


@pytest.mark.parametrize("combined", ["and", "or", "not", "width"])
def test_candidates_that_are_combined_are_an_error_in_words(combined: str) -> None:
    """Selectors of undecided rows raised a bare ValueError without the place."""
    t = locum.tokens
    greatest = locum.best(locum.full, t * t / 3)
    selector = {
        "and": greatest & locum.select(locum.indices, 1, "=="),
        "or": greatest | locum.select(locum.indices, 1, "=="),
        "not": ~greatest,
        "width": greatest,
    }[combined]
    program = locum.selector_width(selector) if combined == "width" else locum.aggregate(selector, t)
    with pytest.raises(locum.ExecutionError, match="which key has the highest score"):
        certify_matrix(Matrix(program, 1, 2), [0.1, -0.1])


def test_operations_on_integers_stay_integers_and_large_ones_are_rounded() -> None:
    domain = BallDomain(FORMATS["float64"])
    for name, expected in (("add", 2**53 + 1), ("subtract", 2**53 - 1), ("multiply", 2**53)):
        assert domain.meanings[name](2**53, 1) == expected
    for _ in range(2):  # the second time it is remembered
        total = domain.meanings["add"](2**53 + 1, arb(0.5))
        assert total.contains(2**53 + 2)
        assert total.contains(2**53)
    assert domain.meanings["multiply"](True, arb(3)) == 3


@pytest.mark.parametrize(
    "program",
    [
        locum.sqrt(locum.tokens * locum.tokens) - abs(locum.tokens),
        locum.exp(locum.tokens / 7) / locum.exp(-locum.tokens / 7),
        locum.tanh(locum.tokens) * locum.sin(locum.tokens) - locum.erf(locum.tokens),
        (locum.tokens * 0.1) ** 3 + locum.log(locum.tokens * locum.tokens + 0.1),
        locum.tokens / 3 - locum.tokens / 3.0000000000000004,
    ],
)
def test_random_floats_stay_within_the_bound(program: locum.SOp) -> None:
    """Against the same program in balls of 500 bits."""
    chance = np.random.default_rng(2)
    for x in (*chance.normal(size=20), *chance.normal(size=20) * 1e-9, 1.0, -1e-30, 3e4):
        tokens = [float(x)] if abs(x) < 100 else [float(x) / 1e3]
        result = certify_matrix(Matrix(program, 1, 1), tokens)
        with precise(500):
            value = (
                arb(program(tokens)[0])
                - dense.evaluate(program.node, [arb(tokens[0])], BallDomain())[0]
            )
            assert abs(value).lower() <= result.error
