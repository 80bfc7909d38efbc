"""Domains: every operation has a meaning or a refusal; fast paths equal the literal definition."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import locum
from locum.execution import DOMAINS, dense, run
from locum.execution.domains import Domain, PairError
from locum.execution.domains.floats import FloatDomain
from locum.graph import OPERATIONS, PREDICATES, Node
from tests.cases import CASES, matmul
from tests.old.graph.strategies import programs


@pytest.mark.parametrize("name", DOMAINS)
def test_every_operation_has_a_meaning_or_a_stated_refusal(name: str) -> None:
    domain = DOMAINS[name]
    meanings, refusals = set(domain.meanings), set(domain.refusals)
    assert meanings.isdisjoint(refusals)
    assert meanings | refusals == set(OPERATIONS) - dense.STRUCTURAL
    assert all(reason for reason in domain.refusals.values())


@pytest.mark.parametrize("op", sorted(DOMAINS["exact"].refusals))
def test_refusals_are_said(op: str) -> None:
    program = getattr(locum.rasp, op)(locum.tokens)
    with pytest.raises(
        locum.ExecutionError, match=rf"{op} has no meaning in the exact domain: it (leaves|rounds)"
    ):
        program([1, 2], domain="exact")


class LiteralFloats(FloatDomain):
    """Floats with attention by definition, not by NumPy."""

    select = Domain.select
    best = Domain.best
    aggregate = Domain.aggregate


scalars = st.one_of(
    st.integers(-3, 3),
    st.integers(2**53 - 2, 2**53 + 2),
    st.integers(-(2**64), 2**64),
    st.floats(allow_nan=True),
    st.sampled_from([0.0, -0.0, 0.1, 0.2, 0.3, 1e16, math.inf, -math.inf, math.nan]),
    st.booleans(),
)
sequences = st.one_of(
    st.lists(scalars, min_size=1, max_size=6),
    st.lists(st.text("ab\0", max_size=2), min_size=1, max_size=6),
)


@example([math.nan], [""], "<")  # NaN was no number among strings: False, and no error
@given(sequences, sequences, st.sampled_from(PREDICATES))
def test_fast_select_is_the_literal_one(keys: list[Any], queries: list[Any], predicate: str) -> None:
    def outcome(domain: Domain) -> object:
        try:
            return domain.select(keys, queries, predicate).tolist()
        except PairError as error:
            return error.query

    assert outcome(FloatDomain()) == outcome(LiteralFloats())


@given(sequences, st.data())
def test_fast_aggregate_and_best_are_the_literal_ones(values: list[Any], data: st.DataObject) -> None:
    size = len(values)
    cells = data.draw(st.lists(st.booleans(), min_size=size * size, max_size=size * size))
    pattern = np.array(cells, dtype=np.bool_).reshape(size, size)

    def outcome(domain: Domain) -> tuple[str, str]:
        try:
            mean = repr(domain.aggregate(pattern, values, "none"))
        except (TypeError, ArithmeticError) as error:
            mean = type(error).__name__
        return mean, repr(domain.best(pattern, values).tolist())

    assert outcome(FloatDomain()) == outcome(LiteralFloats())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_exact_agrees_on_the_cases(case: Any) -> None:
    """Where exact arithmetic has a value at all, it is the float one without the rounding."""
    try:
        value = case.program(case.given, domain="exact")
    except locum.ExecutionError as error:
        reason = str(error)
        assert "exact domain" in reason or "not rational" in reason or "rational number" in reason
        return
    if isinstance(case.program, locum.Selector):
        assert value.tolist() == case.expected
        return
    for actual, expected in zip(value, case.expected, strict=True):
        if isinstance(expected, float):
            assert math.isclose(float(actual), expected, rel_tol=1e-12)
        elif case.name != "tokens_str":  # 2.5 is 5/2 there
            assert actual == expected
            assert type(actual) is type(expected)


WHOLE = tuple(
    name
    for name, row in OPERATIONS.items()
    if (row.elementwise or row.group in ("selector", "attention"))
    and not row.transcendental
    and not row.rounds
    and name not in ("divide", "power", "sqrt", "aggregate")
)


@given(
    programs(ops=WHOLE, atoms=st.integers(-3, 5), casts=("asis", "int", "bool")),
    st.lists(st.integers(-9, 9), min_size=1, max_size=5),
)
def test_whole_numbers_are_the_same_in_both_domains(program: Node, inputs: list[int]) -> None:
    """Programs that never leave the integers: the same values, types and refusals."""

    def outcome(domain: str) -> str:
        try:
            return repr(run(program, inputs, domain=domain))
        except locum.ExecutionError as error:
            return f"no value at {error.position} of {error.where}"

    assert outcome("exact") == outcome("float")


#: Not ``st.fractions``, which makes a strategy for each.
_fractions = st.builds(Fraction, st.integers(-(10**6), 10**6), st.integers(1, 10**6))


@given(st.lists(_fractions, min_size=32, max_size=32))
def test_matmul_is_exact_on_rationals(entries: list[Fraction]) -> None:
    result = matmul(4, 4, 4)(entries, domain="exact")
    a = [entries[4 * i : 4 * i + 4] for i in range(4)]
    b = [entries[16 + 4 * i : 20 + 4 * i] for i in range(4)]
    product = [
        sum((a[i][t] * b[t][j] for t in range(4)), Fraction(0)) for i in range(4) for j in range(4)
    ]
    assert result == product + [0] * 16


def test_matmul_equals_numpy() -> None:
    random = np.random.default_rng(2026)
    for _ in range(20):
        a, b = random.normal(size=(2, 4, 4))
        result = matmul(4, 4, 4)(np.concatenate([a.ravel(), b.ravel()]))
        np.testing.assert_allclose(result[:16].reshape(4, 4), a @ b, rtol=0, atol=1e-13)


def test_roots_and_powers_stay_rational_or_say_so() -> None:
    exact: dict[str, Any] = {"domain": "exact"}
    assert locum.sqrt(locum.tokens)([9, Fraction(1, 4)], **exact) == [3, Fraction(1, 2)]
    assert (locum.length**0.5)("abcd", **exact) == [2, 2, 2, 2]
    assert (locum.tokens**-2)([Fraction(2, 3)], **exact) == [Fraction(9, 4)]
    assert (locum.tokens ** (1 / 2))([Fraction(4, 9)], **exact) == [Fraction(2, 3)]
    for program, tokens, words in [
        (locum.sqrt(locum.tokens), [2], "not rational"),
        (locum.sqrt(locum.tokens), [-4], "no real root"),
        (locum.tokens**0.5, [2], "not rational"),
        (0**locum.tokens, [-1], "division by zero"),
        (locum.tokens ** (10**9), [3], "more than 1000000 bits"),
        (locum.tokens + 1, [math.inf], "not a rational number"),
    ]:
        with pytest.raises(locum.ExecutionError, match=words):
            program(tokens, **exact)


def test_exact_arithmetic_follows_python() -> None:
    random = np.random.default_rng(7)
    for _ in range(200):
        a = Fraction(int(random.integers(-20, 20)), int(random.integers(1, 9)))
        b = Fraction(int(random.integers(1, 20)), int(random.integers(1, 9))) * int(
            random.choice([-1, 1])
        )
        x, y = locum.tokens, locum.aggregate(locum.select(locum.indices, 1, "=="), locum.tokens)
        for program, expected in [
            (x % y, a % b),
            (x // y, a // b),
            (x / y, a / b),
            (round(x), round(a)),
            (locum.floor(x), math.floor(a)),
            (abs(x), abs(a)),
            (locum.maximum(x, y), max(a, b)),
        ]:
            assert program([a, b], domain="exact")[0] == expected


def test_means_of_nasty_floats() -> None:
    mean = locum.aggregate(locum.full, locum.tokens)
    assert repr(mean([-0.0, -0.0])) == "[0.0, 0.0]"  # 0 + -0.0 + -0.0, as the definition adds
    exact = [2**53, 1, 1, 0.0]
    assert mean(exact) == [(2**53 + 1 + 1 + 0.0) * 1.0 / 4] * 4


def test_exact_powers_follow_python() -> None:
    exact: dict[str, Any] = {"domain": "exact"}
    assert (locum.constant(0) ** 2_000_000)("a", **exact) == [0]
    for program, tokens in [
        (locum.tokens ** (locum.constant(1) / 3), [-8]),
        (locum.tokens_int, ["1.9"]),
    ]:
        with pytest.raises(locum.ExecutionError):
            program(tokens, **exact)
    with pytest.raises(locum.ExecutionError, match="not a rational number"):
        locum.tokens_float(["1e1000000"], **exact)
