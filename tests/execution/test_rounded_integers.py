"""Integers that floats would round: executors give the value of dense execution or raise an error."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import locum
from locum import aggregate, full, indices, select, tokens, tokens_bool, tokens_float, where

LARGE = 2**53 + 1


@pytest.mark.filterwarnings("ignore::locum.execution.fast.FallbackWarning")
@pytest.mark.parametrize("executor", ["fast", "heads", "auto"])
@pytest.mark.parametrize(
    ("program", "inputs"),
    [
        (aggregate(~full, tokens_float, LARGE), [1.5]),
        (aggregate(~full, tokens_float, LARGE) == LARGE - 1, [1.5]),
        (aggregate(select(indices, indices, ">="), aggregate(~full, tokens, LARGE)), [0]),
        ((tokens + 1) == 2**53, [2**53, 0.5]),
        ((tokens + 1) % 2, [2**53, 0.5]),
        (tokens * tokens, [10**8 + 1, 0.5]),
        (aggregate(full, aggregate(~full, tokens, False)), [1, 2]),
        (where(tokens > 1, LARGE, 0), [2, 0]),
        (where(tokens > 0, tokens, 0.5) + 1, [2**53, 0]),
    ],
)
def test_values_are_those_of_dense_execution_or_an_error(
    program: locum.SOp, inputs: list[Any], executor: str
) -> None:
    try:
        expected = program(inputs)
    except locum.LocumError:
        expected = None
    try:
        result = program(inputs, executor=executor)
    except locum.LocumError:
        return
    assert result == expected


def test_heads_reject_rounded_integers_of_arrays() -> None:
    program = where(tokens > 0, tokens, 0.5) + 1
    assert program([2**53, 0]) == [2**53 + 1, 1.5]
    with pytest.raises(locum.ExecutionError, match="expected integers that floats represent exactly"):
        program(np.array([2**53, 0]), executor="heads")


@pytest.mark.filterwarnings("ignore::locum.execution.fast.FallbackWarning")
@pytest.mark.parametrize("executor", ["dense", "fast", "heads", "auto"])
def test_tensors_reject_rounded_integers(executor: str) -> None:
    torch = pytest.importorskip("torch")
    program = where(tokens > 0, tokens, 0.5) + 1
    with pytest.raises(locum.LocumError):
        program(torch.tensor([2**53, 0]), executor=executor)
    assert program(torch.tensor([4, 0]), executor=executor).tolist() == [5.0, 1.5]


def test_arrays_keep_numbers_next_to_strings() -> None:
    program = where(tokens > 1, "x", tokens)
    assert program(np.array([[2, 2], [1, 1]])).tolist() == [["x", "x"], [1, 1]]


@pytest.mark.parametrize(
    ("program", "inputs"),
    [
        (aggregate(select(indices, tokens, "<"), tokens_bool), [0, 3]),
        (where(indices > 0, "a", 2.0), [1.5, 2.5]),
    ],
)
def test_networks_of_real_tokens_reject_inputs_without_a_value(
    program: locum.SOp, inputs: list[Any]
) -> None:
    with pytest.raises(locum.ExecutionError):
        program(inputs)
    model = locum.compile(program, length=2, numeric=True, feed_forward="exact")
    with pytest.raises(locum.ExecutionError):
        model(inputs)


def test_heads_accept_large_floats_among_small_integers() -> None:
    program = where(tokens > 0, tokens, -1e300) - aggregate(~full, tokens_float, 0)
    assert program([2, 0], executor="heads") == [2.0, -1e300]
    assert program(np.array([2.0, 0.0]), executor="heads").tolist() == [2.0, -1e300]


@pytest.mark.filterwarnings("ignore::locum.execution.fast.FallbackWarning")
def test_strings_computed_from_a_tensor() -> None:
    torch = pytest.importorskip("torch")
    first = aggregate(select(indices, 1, "=="), tokens * locum.constant("a"))
    assert where(first == "a", 1, 0)(torch.tensor([2, 1]), executor="fast").tolist() == [1, 1]


def test_networks_give_numbers_of_one_type_beside_a_string() -> None:
    program = aggregate(select(indices, indices, "!="), indices, "")
    model = locum.compile(program, length=4, vocabulary="a")
    assert [type(value) for value in model("aaaa")] == [float] * 4
    assert model("a") == [""]


B = 2**53


@pytest.mark.filterwarnings("ignore::locum.execution.fast.FallbackWarning")
@pytest.mark.parametrize("executor", ["fast", "heads"])
@pytest.mark.parametrize(
    ("program", "inputs"),
    [
        (aggregate(select(indices, indices - 1, "=="), tokens, LARGE), [5, 6]),
        (aggregate(select(indices, 1, "=="), indices + B), [5, 6]),
        ((indices * B) % 3 - (locum.length + B), [5, 6]),
        (where(indices == 1, indices + B, 0.5), [1, 2]),
        (locum.maximum(locum.length * 2**51 - 5, 0.5), [1] * 5),
        ((indices + B) % 2.0, [0, 0]),
    ],
)
def test_integers_of_positions_are_those_of_dense_execution_or_an_error(
    program: locum.SOp, inputs: list[int], executor: str
) -> None:
    torch = pytest.importorskip("torch")
    for tokens_given in (inputs, np.array(inputs), torch.tensor(inputs)):
        try:
            result = program(tokens_given, executor=executor)
        except locum.LocumError:
            continue
        assert list(map(int, result)) == program(inputs)


def test_networks_reject_rounded_integers() -> None:
    with pytest.raises(locum.CompileError, match="integers that float32 represents exactly"):
        locum.compile(
            indices + 2**24 + 1, length=2, vocabulary=[0], feed_forward="exact", dtype="float32"
        )
    program = where(indices < 3, locum.tokens_int, tokens_float) + 1
    model = locum.compile(program, length=2, numeric=True, feed_forward="exact")
    assert model([2.0, 3.0]) == [3.0, 4.0]
    with pytest.raises(locum.ExecutionError, match="answers that floats hold"):
        model([2.0**53 + 2, 2.0])


@pytest.mark.parametrize(
    "array",
    [
        np.ma.masked_array([1, 2], mask=[False, True]),
        np.array([1j]),
        np.array([1], dtype=np.longdouble),
    ],
)
@pytest.mark.parametrize("executor", ["dense", "fast", "heads"])
def test_arrays_of_other_kinds_are_rejected(array: Any, executor: str) -> None:
    if array.dtype == np.float64:
        pytest.skip("long doubles are doubles here")
    with pytest.raises(locum.InputError, match="array"):
        tokens(array, executor=executor)


def test_booleans_that_are_moved_are_not_averaged() -> None:
    reverse = select(indices, locum.length - 1 - indices, "==")
    twice = aggregate(reverse, aggregate(reverse, tokens))
    assert twice([True, False], executor="heads") == [True, False]
