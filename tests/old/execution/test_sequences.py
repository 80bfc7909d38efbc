"""Ranks, sorts, moves and running means of long sequences: the values of dense execution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import locum
from locum import (
    SOp,
    aggregate,
    best,
    full,
    indicator,
    indices,
    length,
    select,
    selector_width,
    tokens,
    tokens_str,
    where,
)
from tests.old.execution.one_type import agrees, one_type_holds

PREDICATES = ("==", "!=", "<", "<=", ">", ">=")
SAME = select(tokens, tokens, "==")
#: Keys and queries: the tokens, functions of them, positions and counts.
PARTS = (
    *(
        tokens,
        -tokens,
        tokens % 3,
        tokens * 2 + 1,
        abs(tokens),
        indices,
        indices - 2,
        length - 1 - indices,
    ),
    *(
        indices % 4,
        indices // 3,
        selector_width(SAME),
        indicator(tokens == 1),
        where(tokens > 0, tokens, 7),
    ),
)
EDGES = (0, 1, -1, 2, 3, 127, 2**53 - 1, 2**53, 2**53 + 1, -(2**53) - 1, 2**62, 2**63, -(2**63), 10**20)
parts = st.sampled_from(PARTS)
predicates = st.sampled_from(PREDICATES)
few = st.integers(-2, 3)
floats = st.sampled_from([0.0, -0.0, 0.5, -1.5, 2.0, 1e300, math.inf, -math.inf, math.nan])
#: Sequences with many equal values, and with values that arrays do not hold or round.
sequences: st.SearchStrategy[list[Any]] = st.one_of(
    st.lists(few, min_size=1, max_size=24),
    st.lists(st.one_of(few, st.sampled_from(EDGES)), min_size=1, max_size=10),
    st.lists(floats, min_size=1, max_size=12),
    st.lists(st.one_of(few, floats), min_size=1, max_size=12),
    st.lists(st.booleans(), min_size=1, max_size=12),
    st.lists(st.one_of(few, st.booleans()), min_size=1, max_size=12),
)


def rank(by: SOp, first: str, tie: str) -> SOp:
    """The number of keys that come before one's own: ``first`` it, or equal and ``tie`` in position."""
    return selector_width(
        select(by, by, first) | (select(by, by, "==") & select(indices, indices, tie))
    )


ranks = st.builds(rank, parts, predicates, predicates)
selectors = st.one_of(
    st.builds(select, parts, parts, predicates),
    st.builds(lambda a, b: a & b, *[st.builds(select, parts, parts, predicates)] * 2),
    st.builds(lambda a, b: a | ~b, *[st.builds(select, parts, parts, predicates)] * 2),
    st.builds(
        lambda r, at: select(r, at, "=="), ranks, st.sampled_from([indices, length - 1 - indices])
    ),
    st.builds(lambda score: best(full, score), parts),
    st.builds(lambda a, b, p, score: best(select(a, b, p), score), parts, parts, predicates, parts),
)
programs = st.one_of(
    ranks,
    selectors.map(selector_width),
    st.builds(aggregate, selectors, parts, st.sampled_from([0, -1, 0.5, True])),
    st.builds(
        lambda r, v: aggregate(select(r, indices, "=="), v),
        st.builds(rank, parts, st.just("<"), st.just("<")),
        parts,
    ),
)


def outcome(program: SOp, values: Any, executor: str) -> Any:
    """Return the values, or None where the program has none."""
    try:
        return program(values, executor=executor)
    except locum.ExecutionError as error:
        assert error.kind != "too large"
        return None


@pytest.mark.filterwarnings("ignore::locum.execution.fast.FallbackWarning")
@given(programs, sequences)
def test_random_ranks_and_selections_of_lists(program: SOp, values: list[Any]) -> None:
    expected, actual = outcome(program, values, "dense"), outcome(program, values, "fast")
    if expected is not None and not one_type_holds(expected, program, values):
        expected = None
    assert (actual is None) == (expected is None)
    if expected is not None:
        assert agrees(actual, expected, program, values), (actual, expected)


@pytest.mark.filterwarnings("ignore::locum.execution.fast.FallbackWarning")
@given(
    programs,
    st.sampled_from(
        [np.int8, np.uint8, np.int32, np.int64, np.uint64, np.bool_, np.float32, np.float64]
    ),
    st.lists(st.integers(0, 5), min_size=1, max_size=24),
    st.sampled_from([0, 120]),
)
def test_random_ranks_and_selections_of_arrays(
    program: SOp, dtype: Any, values: list[int], offset: int
) -> None:
    array = (np.array(values) + offset).astype(dtype)
    given_array = array.copy()
    expected, actual = outcome(program, array, "dense"), outcome(program, array, "fast")
    assert (actual is None) == (expected is None)
    assert (array == given_array).all()
    if expected is not None:
        assert isinstance(actual, np.ndarray)
        assert actual.flags.writeable
        assert not np.shares_memory(actual, array)
        digits = 1e-5 if dtype == np.float32 else 1e-12  # plans compute in the type of the array
        assert np.allclose(actual.astype(float), expected.astype(float), digits, 0.0)


def sort(values: SOp, by: SOp) -> SOp:
    return aggregate(select(rank(by, "<", "<"), indices, "=="), values)


@pytest.mark.parametrize("most", [2, 100, 300, 70_000, 2**40])
def test_sort_of_integers_is_stable_whatever_their_range(most: int) -> None:
    """Ranges of 8, 16 and 32 bits have different sorts."""
    values = np.random.default_rng(most).integers(-most // 2, most // 2, 5_000)
    order = np.argsort(values, kind="stable")
    assert sort(tokens, tokens)(values, executor="fast", strict=True).tolist() == values[order].tolist()
    assert sort(indices, tokens)(values, executor="fast", strict=True).tolist() == order.tolist()
    ranked = rank(tokens, "<", "<")(values, executor="fast", strict=True)
    assert (ranked[order] == np.arange(5_000)).all()


MOVES = {
    "shift": aggregate(select(indices, indices - 1, "=="), tokens),
    "shift two back": aggregate(select(indices - 2, indices, "=="), tokens, -1),
    "reverse": aggregate(select(indices, length - 1 - indices, "=="), tokens),
    "every other": aggregate(select(indices, indices * 2, "=="), tokens),
    "first": aggregate(select(indices, 0, "=="), tokens),
    "blocks of three backwards": aggregate(
        select(indices, indices - indices % 3 + 2 - indices % 3, "=="), tokens
    ),
    "identity": tokens,
}


@pytest.mark.parametrize("name", MOVES)
@given(values=st.lists(st.one_of(few, st.sampled_from(EDGES)), min_size=1, max_size=12))
@pytest.mark.filterwarnings("ignore::locum.execution.fast.FallbackWarning")
def test_random_moves_keep_every_integer(name: str, values: list[int]) -> None:
    program = MOVES[name]
    assert program(values, executor="fast") == program(values)
    if all(abs(value) < 2**63 for value in values):
        array = np.array(values)
        moved = program(array, executor="fast")
        assert moved.dtype == np.int64
        assert moved.tolist() == program(values)
        assert not np.shares_memory(moved, array)


@pytest.mark.parametrize("name", [name for name in MOVES if name != "every other"])
def test_moves_of_integers_do_not_compute(name: str) -> None:
    """Integers beyond 2⁵³ are moved by the plan itself: as integers, not in floating point."""
    program, values = MOVES[name], np.arange(12) + 2**60
    plan = program.plan(12)
    assert plan.only_moves
    assert plan.move(values).tolist() == program(values.tolist())


def test_a_default_that_is_no_integer_is_not_moved() -> None:
    shift = select(indices, indices - 1, "==")
    for default in (0.5, 0.0, True):
        kind = type(default + 0)
        expected = repr([kind(default), kind(3)])
        assert repr(aggregate(shift, tokens, default)([3, 4], executor="fast")) == expected


@pytest.mark.parametrize("most", [1, 3, 12, 1_500])
def test_texts_of_few_integers_are_written_once(most: int) -> None:
    """Texts are sorted as texts: "10" comes before "9", and "-1" before "0"."""
    values = np.random.default_rng(most).integers(-most, most, 600)
    by_text = sort(tokens_str, tokens_str)
    for given_values in (values, values.tolist()):
        assert list(by_text(given_values, executor="fast", strict=True)) == sorted(map(str, values))
        written = (tokens_str + "!")(given_values, executor="fast", strict=True)
        assert list(written) == [f"{value}!" for value in values]
        same = selector_width(select(tokens_str, tokens_str, "=="))(given_values, executor="fast")
        assert list(same) == [int((values == value).sum()) for value in values]


TEXTS = (
    *(tokens_str, tokens_str + "0", where(tokens > 1, tokens_str, "x"), where(tokens == 1, "10", "9")),
    aggregate(select(indices, indices - 1, "=="), tokens_str, ""),
)


@given(
    *[st.sampled_from(TEXTS)] * 3,
    predicates,
    predicates,
    st.lists(st.sampled_from([0, 1, -1, 9, 10, 2**40]), min_size=8, max_size=24),
    st.booleans(),
)
def test_random_comparisons_of_texts(
    keys: SOp, queries: SOp, moved: SOp, first: str, tie: str, values: list[int], is_array: bool
) -> None:
    chosen = select(rank(keys, first, tie), indices, "==")
    tokens_given = np.array(values) if is_array else values
    for program in (
        selector_width(select(keys, queries, first) & select(indices, indices, tie)),
        aggregate(best(chosen, indices), moved, "none"),
    ):
        assert list(program(tokens_given, executor="fast")) == program(values)
