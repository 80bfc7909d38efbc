"""Every case of the table, as weights: the same answers as dense, or a refusal that is listed here."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from locum import (
    Selector,
    SOp,
    aggregate,
    best,
    full,
    indices,
    length,
    lookup,
    select,
    selector_width,
    tokens,
    tokens_str,
    where,
)
from locum.errors import CompileError, ExecutionError, InputError, LocumError
from locum.graph import OPERATIONS
from locum.networks import compiler
from locum.networks.transformer import CompiledTransformer
from locum.networks.transformer.functions import INSTRUCTIONS
from tests.cases import CASES, FAILURES, Case, Failure
from tests.compiler.agreement import fingerprint, is_close, others

PROGRAMS = [case for case in CASES if isinstance(case.program, SOp)]
SELECTORS = [case for case in CASES if isinstance(case.program, Selector)]

#: Cases that do not compile, by how they are compiled, and words of the reason.
REFUSED = {
    ("tokens_str", "numeric"): "expected tokens with a text, got real-valued tokens",
    ("infinity stays where it is", "vocabulary"): "expected numbers within the range of floats",
}
#: Inputs that a network of real-valued tokens does not take.
NOT_TAKEN = {
    ("huge ints pass", "numeric"): "a finite number that float64 represents exactly",
    ("infinity stays where it is", "numeric"): "a finite number that float64 represents exactly",
}
#: Beyond the input: a network for all lengths up to a maximum.
MORE = 3


def options(case: Case, kind: str) -> dict[str, Any]:
    return {"numeric": True} if kind == "numeric" else {"vocabulary": list(case.given)}


def ways() -> list[Any]:
    result = []
    for case in PROGRAMS:
        numbers = not any(isinstance(token, str) for token in case.given)
        for kind in ("vocabulary", "numeric") if numbers else ("vocabulary",):
            for fixed in (True, False):
                name = f"{case.name}-{kind}-{'fixed' if fixed else 'up to'}"
                result.append(pytest.param(case, kind, fixed, id=name))
    return result


@pytest.mark.parametrize(("case", "kind", "fixed"), ways())
def test_every_case_compiles_and_equals_dense(case: Case, kind: str, fixed: bool) -> None:
    longest = len(case.given) + (0 if fixed else MORE)
    program = case.program
    assert isinstance(program, SOp)
    if (case.name, kind) in REFUSED:
        with pytest.raises(CompileError, match=REFUSED[case.name, kind]):
            compiler.compile(
                program, length=longest, fixed=fixed, **options(case, kind), feed_forward="exact"
            )
        return
    model = compiler.compile(
        program, length=longest, fixed=fixed, **options(case, kind), feed_forward="exact"
    )
    if (case.name, kind) in NOT_TAKEN:
        with pytest.raises(InputError, match=NOT_TAKEN[case.name, kind]):
            model(list(case.given))
        return
    before = fingerprint(model)
    assert is_close(model(list(case.given)), case.expected)
    chance = random.Random(case.name)
    longer = list(case.given) + chance.choices(list(case.given), k=longest - len(case.given))
    for inputs in others(longer, chance, 8, shortest=longest if fixed else 1):
        try:
            expected = program(inputs)
        except LocumError:
            continue
        assert is_close(model(inputs), expected), inputs
    assert fingerprint(model) == before


@pytest.mark.parametrize("case", SELECTORS, ids=lambda case: case.name)
def test_selectors_compile_as_widths(case: Case) -> None:
    inputs = list(case.given)
    with pytest.raises(CompileError, match="expected an s-op to compile, got a selector"):
        compiler.compile(case.program, length=len(inputs), vocabulary=inputs, feed_forward="exact")
    assert isinstance(case.program, Selector)
    model = compiler.compile(
        selector_width(case.program), length=len(inputs) + MORE, vocabulary=inputs, feed_forward="exact"
    )
    assert model(inputs) == [sum(row) for row in case.expected]


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: failure.name)
def test_what_has_no_value_has_none_as_weights(failure: Failure) -> None:
    inputs = list(failure.given)
    for kind in ("vocabulary", "numeric"):
        if kind == "numeric" and any(isinstance(token, str) for token in inputs):
            continue
        options: dict[str, Any] = {"numeric": True} if kind == "numeric" else {"vocabulary": inputs}
        with pytest.raises((CompileError, ExecutionError, InputError)):
            compiler.compile(failure.program, length=len(inputs), **options, feed_forward="exact")(
                inputs
            )


#: What float32 does to numbers of the size of ours: 24 bits.
SINGLE = 2e-6
REFUSED_IN_SINGLE = {
    "infinity stays where it is": "expected numbers within the range of floats",
    "huge ints pass": "expected weights within the range of float32",
}


@pytest.mark.parametrize("case", PROGRAMS, ids=lambda case: case.name)
def test_every_case_in_float32(case: Case) -> None:
    kind = "vocabulary"
    program = case.program
    assert isinstance(program, SOp)
    if case.name in REFUSED_IN_SINGLE:
        with pytest.raises(CompileError, match=REFUSED_IN_SINGLE[case.name]):
            compiler.compile(
                program, length=9, dtype="float32", **options(case, kind), feed_forward="exact"
            )
        return
    model = compiler.compile(
        program, length=len(case.given), dtype="float32", **options(case, kind), feed_forward="exact"
    )
    assert all(array.dtype == np.float32 for _, array in model.weights.named())
    assert is_close(model(list(case.given)), case.expected, SINGLE)


# Where it would be easy to be wrong in silence ----------------------------------------------------

_one_before = aggregate(select(indices, indices - 1, "=="), tokens)
_two_before = aggregate(select(indices, indices - 2, "=="), tokens)


@pytest.mark.parametrize(("f", "g"), [(3, 7), (7, 3), (5, 9), (10, 3), (1, 3), (49, 1)])
def test_sums_of_multiples_are_compared_exactly(f: int, g: int) -> None:
    total = f * _one_before + g * _two_before
    inputs: dict[int, list[list[int]]] = {}
    for a, b in itertools.product(range(10), repeat=2):
        inputs.setdefault(f * a + g * b, []).append([b, a, 0])
    for value, sequences in inputs.items():
        model = compiler.compile(total == value, length=3, numeric=True, feed_forward="exact")
        assert all(model(sequence)[2] is True for sequence in sequences)


@pytest.mark.parametrize(
    ("vocabulary", "dtype"),
    [
        ([10**9, 10**9 + 1, 10**9 + 2], "float64"),
        ([2**52, 2**52 + 1, -(2**52)], "float64"),
        ([5000, 5001, 5002], "float32"),
        ([10**200, 1], "float64"),
    ],
)
def test_large_outputs_are_told_apart(vocabulary: list[int], dtype: str) -> None:
    model = compiler.compile(tokens, length=3, vocabulary=vocabulary, dtype=dtype, feed_forward="exact")
    assert [float(v) for v in model(vocabulary)] == [float(v) for v in vocabulary]


def test_strings_keep_clear_of_the_numbers_beside_them() -> None:
    shifted = select(indices, indices - 1, "==")
    for default in (0, 1, 2, 2.5, -1, 10**6, 10**30):
        program = aggregate(shifted, tokens_str, default)
        model = compiler.compile(program == "1", length=3, vocabulary=[1, 2, 3], feed_forward="exact")
        with pytest.raises(ExecutionError, match="cannot mix strings with numbers"):
            model([1, 2, 3])
        weights = CompiledTransformer(replace(model.config, partial=(), checks=()), model.weights)
        assert weights([1, 2, 3]) == [False, True, False]
    with pytest.raises(CompileError, match="got strings and numbers up to 1e"):
        compiler.compile(
            aggregate(shifted, tokens_str, 1e300), length=3, vocabulary=[1, 2, 3], feed_forward="exact"
        )
    with pytest.raises(CompileError, match="expected numbers within the range of floats"):
        compiler.compile(
            lookup(tokens, {1: "a", 2: float("inf")}), length=2, vocabulary=[1, 2], feed_forward="exact"
        )


def test_equal_numbers_are_written_differently() -> None:
    written = compiler.compile(tokens_str, length=3, vocabulary=[1, 1.0, True], feed_forward="exact")
    assert written([True, 1, 1.0]) == ["True", "1", "1.0"]
    only_one = compiler.compile(tokens_str, length=1, vocabulary=[1], feed_forward="exact")
    with pytest.raises(InputError, match="expected tokens of the vocabulary"):
        only_one([1.0])
    assert compiler.compile(tokens + 1, length=1, vocabulary=[1], feed_forward="exact")([1.0]) == [2]


def test_what_has_no_value_is_said_when_it_is_run() -> None:
    model = compiler.compile(1 / tokens, length=2, vocabulary=[0, 1], feed_forward="exact")
    assert model([1, 1]) == [1, 1]
    with pytest.raises(ExecutionError, match="is undefined"):
        model([1, 0])
    numeric = compiler.compile(1 / tokens, length=2, numeric=True, feed_forward="exact")
    with pytest.raises(ExecutionError, match="is undefined"):
        numeric([1.0, 0.0])


def test_equal_tokens_before_may_not_be_there() -> None:
    before = select(tokens, tokens, "==") & select(indices, indices, "<")
    program = aggregate(before, indices, -1.5)
    for options in ({"vocabulary": [1, 2, 3]}, {"numeric": True}):
        model = compiler.compile(program, length=5, **options, feed_forward="exact")
        assert model([1, 2, 1, 2, 1]) == [-1.5, -1.5, 0, 1, 1]
        assert model([3]) == [-1.5]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    "vocabulary",
    [[0, 700_000, 999_999, 1], list(range(0, 9000, 3)), [f"w{i}" for i in range(3000)]],
    ids=len,
)
def test_equal_among_many_or_large_tokens(vocabulary: list[Any], dtype: str) -> None:
    """Scores that float32 would round are left to another way of attending."""
    same = select(tokens, tokens, "==")
    chance = random.Random(0)
    for program in (selector_width(same), aggregate(best(same, indices), indices)):
        model = compiler.compile(
            program, length=6, vocabulary=vocabulary, dtype=dtype, feed_forward="exact"
        )
        for _ in range(5):
            start = chance.randrange(len(vocabulary) - 3)
            inputs = chance.choices(vocabulary[start : start + 3], k=6)
            assert model(inputs) == program(inputs)


# What costs nothing -------------------------------------------------------------------------------


def test_attending_to_oneself_needs_no_head() -> None:
    here = aggregate(select(indices + 0, indices, "=="), tokens)
    model = compiler.compile(here, length=4, vocabulary="ab", feed_forward="exact")
    assert model("abba") == list("abba")
    assert len(model.weights.layers) == 0


def test_the_length_shares_a_head_that_attends_everywhere() -> None:
    program = length * aggregate(full, tokens) + where(
        selector_width(select(tokens, 9, "==")) > 0, 1, 0
    )
    model = compiler.compile(program, length=6, numeric=True, fixed=False, feed_forward="exact")
    for inputs in ([1.0], [1.0, 2.0, 4.0], [9.0] * 6):
        assert is_close(model(inputs), program(inputs))
    plain = compiler.compile(
        length * aggregate(full, tokens), length=6, numeric=True, feed_forward="exact"
    )
    layer = plain.weights.layers[0].attention
    assert layer is not None
    assert len(layer.kinds) == 1


def test_reverse_of_hundreds_of_tokens() -> None:
    model = compiler.compile(
        aggregate(select(indices, length - 1 - indices, "=="), tokens),
        length=300,
        vocabulary="abcd",
        feed_forward="exact",
    )
    inputs = ["abcd"[i * i % 7 % 4] for i in range(300)]
    assert model(inputs) == inputs[::-1]
    assert model(inputs[:101]) == inputs[100::-1]
    assert model.weights.W_U.shape[0] <= 8


def test_every_elementwise_operation_has_an_instruction() -> None:
    """But ``lookup``, which becomes a table: a new operation needs one, or a refusal of its own."""
    elementwise = {row.name for row in OPERATIONS.values() if row.elementwise}
    assert elementwise - INSTRUCTIONS == {"lookup"}
