"""Results have one type, which is known before a run, and the values of dense execution."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from locum import (
    ExecutionError,
    LocumError,
    SOp,
    aggregate,
    best,
    constant,
    family,
    floor,
    full,
    indicator,
    indices,
    length,
    lookup,
    maximum,
    select,
    selector_width,
    sum_over,
    tokens,
    tokens_str,
    where,
)
from locum.execution import run
from locum.execution.fast import FallbackWarning
from locum.execution.types import possible_types, result_type, types_of
from locum.graph import Node, Sort
from locum.rasp import Session
from tests.cases import before, reverse, sort, up_to_here
from tests.old.execution.one_type import agrees, one_type_holds
from tests.old.execution.test_strings import outcome
from tests.old.graph.strategies import inputs, programs

INF = math.inf


def text(program: str) -> SOp:
    """The s-op that a program in RASP text shows."""
    ((_, value),) = Session().script(program)
    assert isinstance(value, SOp)
    return value


def check(program: SOp, values: list[Any], executor: str = "fast", **options: Any) -> None:
    """Require the values of dense execution, or an error if one type does not hold them."""
    expected = program(values)
    if one_type_holds(expected, program, values):
        result = program(values, executor=executor, **options)
        assert agrees(result, expected, program, values), f"{result} instead of {expected}"
        return
    with pytest.raises(ExecutionError, match=r'expected values that the type .*executor="dense"'):
        program(values, executor=executor, **options)


#: Programs with strings on numbers: each was wrong, or ended in a ValueError.
STRINGS_ON_NUMBERS: list[tuple[SOp, list[Any], list[Any]]] = [
    (text('selector_width(select(tokens, "1", ==));'), [2, 0, 1], [1, 1, 1]),
    (text("sort(tokens, tokens);"), [2, 10, 1], ["1", "10", "2"]),
    (text('sort("abc"[tokens_int % 3], indices);'), [2, 10, 1], ["c", "b", "b"]),
    (aggregate(select(tokens_str, "1", "=="), indices), [2, 0, 1], [2, 2, 2]),
    (selector_width(select(tokens_str == "1", True, "==")), [2, 0, 1], [1, 1, 1]),
    (selector_width(select(tokens_str, tokens_str, "==")), [1, 1.0, 2], [1, 1, 1]),
    (aggregate(select(tokens, indices, "=="), tokens_str + "1"), [2, 0, 1], ["01", "11", "21"]),
    (
        aggregate(select(tokens, indices, "=="), where(tokens == 1, "a", "b")),
        [2, 0, 1],
        ["b", "a", "b"],
    ),
    (tokens_str, [1, 2.0, True, 0.1], ["1", "2.0", "True", "0.1"]),
    (text("tokens + tokens;"), ["a", 1], ["aa", "11"]),
]


@pytest.mark.parametrize("options", [{"executor": "fast", "strict": True}, {"executor": "auto"}])
@pytest.mark.parametrize(("program", "values", "expected"), STRINGS_ON_NUMBERS)
def test_programs_with_strings_read_the_tokens_as_given(
    program: SOp, values: list[Any], expected: list[Any], options: dict[str, Any]
) -> None:
    assert program(values) == expected
    check(program, values, **options)


SHIFT = 'shift(tokens, 1, "-");'


@pytest.mark.parametrize("program", ["tokens;", "sort(tokens, tokens);", SHIFT])
@pytest.mark.parametrize("kind", [int, float])
def test_texts_on_more_numbers_than_dense_execution_takes(program: str, kind: type) -> None:
    values = [kind(v) for v in np.random.default_rng(1).integers(0, 50, 5_000)]
    strings = [str(v) for v in values]
    with warnings.catch_warnings():
        warnings.simplefilter("error", FallbackWarning)
        result = text(program)(values, executor="auto")
    expected = {"tokens;": strings, SHIFT: ["-", *strings[:-1]]}.get(program, sorted(strings))
    assert result == expected


def test_plans_of_programs_with_strings_are_refused() -> None:
    strings = where(tokens == 1, "a", "b")
    for program in (tokens_str, aggregate(full, indices, "a"), lookup(tokens, {1: "a"}), strings):
        with pytest.raises(ExecutionError, match="it contains strings"):
            program.plan(3)
    with pytest.raises(ExecutionError, match="it contains strings"):
        (aggregate(select(tokens, indices, "=="), strings) == "a").plan(3)


#: One key is moved as it is, the mean of several is a float; bool ≤ int ≤ float.
TYPED: list[tuple[SOp, list[Any], type]] = [
    (reverse, [1, 2, 3], int),
    (reverse, [True, False], int),  # the default is 0
    (aggregate(before, tokens > 1, False), [1, 2], bool),
    (reverse, [1, 2.5, True], float),
    (sort(tokens, tokens), [3, 1, 2, 1], int),
    (sort(tokens, tokens), [3, 1.5, 2, 1], float),
    (sort(indices, tokens), [3, 1.5, 2, 1], float),  # with NaN, two tokens may have one rank
    (aggregate(select(indices, 0, "=="), tokens), [7, 8], int),
    (aggregate(select(tokens, 0, "<") & select(indices, length - 1, "=="), tokens), [7, -8], int),
    (aggregate(best(full, tokens), tokens), [7, 8], float),
    (aggregate(best(full, -indices), tokens), [7, 8], int),
    (aggregate(select(indices, length - 1, "=="), length), [7.0, 8.0], int),
    (aggregate(before, indices), [0.5, 0.5, 0.5, 0.5], float),
    (aggregate(before, indices, -1.5), [1, 2, 3, 4], float),
    (aggregate(before, tokens, True), [1, 2, 3, 4], float),
    (aggregate(up_to_here, tokens), [1, 1, 1], float),
    (where(indices > 1, tokens, 0.5), [1, 2, 3], float),
    (where(indices > 1, tokens > 1, 5), [1, 2, 3], int),
    (maximum(tokens, 1.0), [1, 2, 0], float),
    (tokens ** (indices - 1), [2, 2, 2], float),
    (tokens**2, [2, 2.5, True], float),
    (lookup(indices % 2, {0: 1, 1: 2.0}), [5, 5, 5], float),
    ((lambda l: sum_over(l, aggregate(select(indices, l, "<"), tokens)))(family(2)), [4, 4, 4], float),
    ((lambda l: sum_over(l, aggregate(select(indices, l, "=="), tokens)))(family(3)), [4, 5, 6], int),
    (constant(2), [1.0, 2.0], int),
]


@pytest.mark.parametrize(("program", "values", "expected"), TYPED)
def test_the_type_of_a_result(program: SOp, values: list[Any], expected: type) -> None:
    check(program, values, strict=True)
    result = program(values, executor="fast")
    assert {type(value) for value in result} == {expected}
    assert program(values, executor="heads") == result


def test_arrays_stay_arrays() -> None:
    assert reverse(np.array([1, 2, 3]), executor="fast").dtype == np.int64
    assert reverse(np.array([1.0, 2.0]), executor="fast").dtype == np.float64
    assert aggregate(before, tokens)(np.array([1, 2, 3]), executor="fast").dtype == np.float64
    assert reverse(np.array([True, False]), executor="fast").tolist() == [False, True]
    torch = pytest.importorskip("torch")
    assert reverse(torch.tensor([1, 2, 3]), executor="fast").dtype == torch.int64


@pytest.mark.filterwarnings("ignore::locum.execution.fast.FallbackWarning")
def test_strings_do_not_fit_into_a_tensor() -> None:
    torch = pytest.importorskip("torch")
    for executor in ("dense", "fast", "auto"):
        with pytest.raises(LocumError, match=r"which a tensor cannot hold; try the tokens as a list"):
            run(tokens_str.node, torch.tensor([1.0, 2.0]), executor=executor)


#: Integers that floating point rounds, in parts of a program that a plan ran without looking.
LARGE: list[tuple[SOp, list[Any]]] = [
    (tokens + indices, [2**53 + 1]),
    (tokens + indices, [2**53, 2**53]),
    (tokens + indices, [2**53, 0.5, 2**53 - 2]),
    (indices + 2**53, [1, 1]),
    ((indices * 0 + 2**52) * 2 + 1, [1.0, 1.0]),
    (selector_width(select(tokens, tokens, "<=")) + (2**53 - 1), [1.0, 1.0]),
    (tokens + 0.5, [2**53 + 1, 1]),
    (indices + (2**53 + 1), [1.0, 1.0]),
    (aggregate(select(tokens, tokens, "=="), indices + (2**53 + 1)), [1.0, 2.0]),
    (tokens * tokens % 10, [10**9 + 7, 0.5]),
    (selector_width(select(tokens**40 % 7, 4, "==")), [3, 2, 3]),
    (aggregate(select(tokens**40 % 7, indices, "=="), indices), [3, 2, 3, 4, 9]),
    ((selector_width(select(tokens, tokens, "<=")) ** 40) % 7, [1.0, 2.0, 3.0]),
    (floor(tokens) * floor(tokens) % 10, [1e9 + 7]),
    (where(tokens > 0, tokens, 0.5) * tokens % 10, [10**9 + 7, 10**9 + 9]),
]


@pytest.mark.filterwarnings("ignore::locum.execution.fast.FallbackWarning")
@pytest.mark.parametrize(("program", "values"), LARGE)
def test_integers_that_floats_round_are_left_to_exact_execution(
    program: SOp, values: list[Any]
) -> None:
    check(program, values)


def test_means_of_values_that_are_all_booleans_are_refused() -> None:
    program = aggregate(full, where(tokens > 0, tokens == 1, 5))
    check(program, [1, -1])
    with pytest.raises(ExecutionError, match="average"):
        program([1, 2], executor="fast")


REFUSED_AT_INFINITY: list[tuple[SOp, list[float]]] = [
    (floor(tokens), [INF, 1.0]),
    (round(tokens), [math.nan, 1.0]),
    (tokens / 0, [INF, 1.0]),
    (tokens % 0, [math.nan]),
    (tokens // 0, [INF]),
    (1 / floor(aggregate(select(tokens, tokens, "=="), constant(INF))), [1.0, 2.0]),
]


@pytest.mark.filterwarnings("ignore::locum.execution.fast.FallbackWarning")
@pytest.mark.parametrize("executor", ["fast", "auto"])
@pytest.mark.parametrize(("program", "values"), REFUSED_AT_INFINITY)
def test_infinities_are_refused_where_dense_execution_refuses_them(
    program: SOp, values: list[float], executor: str
) -> None:
    for form in (values, np.array(values)):
        with pytest.raises(LocumError) as caught:
            run(program.node, form)
        with pytest.raises(type(caught.value)) as result:
            run(program.node, form, executor=executor)
        assert str(result.value) == str(caught.value)


@pytest.mark.filterwarnings("ignore::locum.execution.fast.FallbackWarning")
@pytest.mark.parametrize("infinite", [INF, -INF])
def test_infinities_of_the_program_are_not_left_out(infinite: float) -> None:
    """Multiply by 0 what may be infinite: it is NaN, which no comparison finds less."""
    never = aggregate(select(tokens, length, ">="), tokens, infinite)
    one_head = family(1)
    programs = (never * (indices > indices), sum_over(one_head, never * one_head))
    for program in (*programs, *(indicator(p < tokens) for p in programs)):
        for executor in ("fast", "auto", "heads"):
            check(program, [1.0, 2.0], executor)
        with pytest.raises(ExecutionError, match="infinities"):
            program.plan(2)


@pytest.mark.filterwarnings("ignore::locum.execution.fast.FallbackWarning")
@pytest.mark.parametrize(
    "values", [[2**53], [2**53, 2**53], [-(2**53)], [2**53, -(2**53)], [2**53 - 1]]
)
@pytest.mark.parametrize("predicate", ["==", "!=", "<", "<=", ">", ">="])
def test_integers_and_floats_are_compared_at_the_last_float_with_a_neighbour(
    values: list[int], predicate: str
) -> None:
    """Count keys by integers and floats of 2⁵³, to which a float cannot add 1."""
    for a, b in ((tokens, tokens * 1.0), (tokens * 1.0, tokens), (tokens + 0, tokens * 1.0)):
        width = selector_width(select(a, b, predicate))
        assert width(values, executor="fast") == width(values)


@pytest.mark.filterwarnings("ignore::locum.execution.fast.FallbackWarning")
def test_infinities_pass_where_dense_execution_lets_them() -> None:
    for program in (tokens + 1, tokens / 2, -tokens, tokens**2, reverse, aggregate(before, tokens)):
        check(program, [INF, 1.0, -INF, 2.0])


def test_random_programs_have_one_type_and_the_values_of_dense_execution() -> None:
    seen: Counter[str] = Counter()

    @given(programs(sorts=(Sort.SOP,)), inputs, st.sampled_from(["fast", "auto", "heads"]))
    def compare(program: Node, values: Any, executor: str) -> None:
        expected = outcome(SOp(program), values, "dense")
        result = outcome(SOp(program), values, executor)
        if isinstance(expected, LocumError):
            seen["refused"] += 1
            return
        if isinstance(result, LocumError):
            assert executor == "heads" or not one_type_holds(expected, program, values), result
            seen["refused"] += 1
            return
        if any(a == 0 and b != b for a, b in zip(result, expected, strict=True)):
            seen["0 · ∞"] += 1  # where numbers get too large: the next test
            return
        assert agrees(result, expected, program, values), f"{result} instead of {expected}"
        assert types_of(expected) <= possible_types(program, types_of(values))[program]
        seen["agreed"] += 1

    compare()
    assert seen["agreed"] > seen["refused"] / 4
    assert seen["0 · ∞"] <= seen["agreed"] / 100


def test_what_positions_multiply_by_0_is_not_computed() -> None:
    """As docs/execution.md says, 0 · ∞ is 0 in a plan, and no other executor's 0."""
    for program in (tokens * tokens * indices, constant(1e300) * 1e300 * indices):
        assert program([1e200], executor="fast") == [0]
        for executor in ("dense", "heads"):
            assert math.isnan(program([1e200], executor=executor)[0])


@pytest.mark.filterwarnings("ignore::locum.execution.fast.FallbackWarning")
def test_what_a_constant_0_multiplies_is_computed() -> None:
    for executor in ("dense", "fast", "auto", "heads"):
        assert math.isnan((tokens * tokens * 0)([1e200], executor=executor)[0])
        assert (tokens * tokens * 0)([1e100], executor=executor) == [0]
        assert math.copysign(1, (tokens * 0)([-1.0], executor=executor)[0]) == -1


FIRST = family(1)
NOT_BOOLEANS: list[tuple[SOp, list[Any]]] = [
    (aggregate(select(indices, 0, "=="), (tokens < 3) * (indices < 1)), [2, 2, 5]),
    (aggregate(select(indices, 1, "=="), (tokens < 3) * indices), [2, 2, 5]),
    (aggregate(select(indices, 0, "=="), (tokens < 3) + indices), [2, 2, 5]),
    (aggregate(select(tokens, 5, "<="), length) * (indices > indices) + (tokens > 0), [3]),
    (sum_over(FIRST, aggregate(~select(indices + 1, 1, "!="), FIRST < tokens, 0.5)), [3, 3, 1]),
]


@pytest.mark.parametrize("executor", ["fast", "auto"])
@pytest.mark.parametrize(("program", "values"), NOT_BOOLEANS)
def test_sums_and_products_of_conditions_are_integers(
    program: SOp, values: list[Any], executor: str
) -> None:
    check(program, values, executor)
    tensor = program(torch.tensor(values), executor=executor)
    kind = result_type(program.node, types_of(values))
    assert tensor.dtype == {int: torch.int64, float: torch.float64}[kind]
    assert tensor.tolist() == program(values)


def test_sums_of_conditions_inside_a_plan_on_tensors() -> None:
    below = 3 < aggregate(select(tokens, 0, "<"), tokens)
    program = aggregate(select(tokens, 5, "=="), (indices == 9) + below)
    values = torch.tensor([1.5, 0.5, -2.25], dtype=torch.float64)
    assert program(values, executor="fast").tolist() == program(values).tolist() == [0.0] * 3


MIXED_MEAN = aggregate(select(indices, tokens, "!="), -7)  # on [3, 1]: -7.0 of two keys, -7 of one


@pytest.mark.filterwarnings("ignore::locum.execution.fast.FallbackWarning")
@pytest.mark.parametrize("executor", ["fast", "auto"])
@pytest.mark.parametrize(
    "program",
    [
        MIXED_MEAN % (2**53 + 1),
        2**53 + 1 - MIXED_MEAN - (2**53 + 1),
        MIXED_MEAN * (2**53 + 1) // (2**53 + 1),
        MIXED_MEAN + (2**53 + 1),
    ],
)
def test_a_mean_of_one_constant_keeps_its_integers_exact(program: SOp, executor: str) -> None:
    check(program, [3, 1], executor)


#: What a plan may hold as booleans, as integers or as floats.
OPERANDS = [tokens < 3, indices < 1, indices > indices, tokens, indices, constant(1), constant(0.5)]
SELECTORS = [select(indices, 0, "=="), before, select(tokens, 5, "<=")]


@pytest.mark.filterwarnings("ignore::locum.execution.fast.FallbackWarning")
@given(
    st.sampled_from(OPERANDS[:3]),
    st.sampled_from(OPERANDS),
    st.lists(st.integers(0, 6), min_size=1, max_size=3),
)
def test_arithmetic_with_conditions_has_one_type(condition: SOp, other: SOp, values: list[int]) -> None:
    combined = [condition + other, condition - other, condition * other]
    for program in combined + [aggregate(s, value) for s in SELECTORS for value in combined]:
        check(program, values)
