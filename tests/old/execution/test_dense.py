"""The dense executor: values or described errors, batches, deep graphs, bounded memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import locum
from locum.execution import DOMAINS, EXECUTORS, run
from locum.graph import Node, Sort, sequence_type, sort_of
from tests.old.graph.strategies import inputs, programs


@given(programs(), inputs, st.sampled_from(sorted(DOMAINS)))
def test_a_value_or_a_described_error(program: Node, tokens: Any, domain: str) -> None:
    try:
        value = run(program, tokens, domain=domain)
    except locum.ExecutionError as error:
        message = str(error)
        assert error.where in message
        assert "\n" not in message
        assert len(message) < 600
        assert error.position is None or 0 <= error.position < len(tokens)
        return
    if sort_of(program) is Sort.SELECTOR:
        assert value.shape == (len(tokens), len(tokens))
        assert value.dtype == np.bool_
    else:
        assert len(value) == len(tokens)
        assert domain == "exact" or sequence_type(value) is not None


@given(
    programs(), st.lists(st.lists(st.integers(-3, 5), min_size=3, max_size=3), min_size=1, max_size=3)
)
def test_a_batch_is_its_sequences_one_by_one(program: Node, batch: list[list[int]]) -> None:
    try:
        together = run(program, batch)
    except locum.ExecutionError:
        return
    for result, sequence in zip(together, batch, strict=True):
        alone = run(program, sequence)
        assert repr(np.asarray(result).tolist()) == repr(np.asarray(alone).tolist())


@given(
    programs(), st.lists(st.lists(st.integers(-3, 5), min_size=1, max_size=4), min_size=1, max_size=4)
)
def test_a_batch_of_different_lengths(program: Node, batch: list[list[int]]) -> None:
    try:
        alone = [run(program, sequence) for sequence in batch]
    except locum.ExecutionError:
        with pytest.raises(locum.ExecutionError):
            run(program, batch)
        return
    together = run(program, batch)
    assert len(together) == len(batch)
    for result, one in zip(together, alone, strict=True):
        assert repr(np.asarray(result).tolist()) == repr(np.asarray(one).tolist())


@pytest.mark.parametrize("executor", EXECUTORS)
def test_lengths_differ_by_every_executor(executor: str) -> None:
    doubled = locum.tokens * 2 + locum.length
    assert doubled([[1, 2], (3,), [4, 5, 6]], executor=executor) == [[4, 6], [7], [11, 13, 15]]
    earlier = locum.select(locum.indices, locum.indices, "<")
    if executor != "fast":  # it has no selectors
        patterns = earlier([[1, 2], [3]], executor=executor)
        assert [p.tolist() for p in patterns] == [[[False, False], [True, False]], [[False]]]
    kept = run(locum.tokens.node, [[1, 2, 3], [4, 5]], executor=executor, positions=range(1, 2))
    assert kept == [[2], [5]]
    with pytest.raises(locum.InputError, match="positions within 0 to 1"):
        run(locum.tokens.node, [[1, 2, 3], [4, 5]], executor=executor, positions=range(1, 3))


def _ragged() -> Any:
    """Return an array of lists of different lengths."""
    array = np.empty(2, dtype=object)
    array[:] = [[1, 2], [3]]
    return array


def test_arrays_come_back_as_arrays() -> None:
    double = locum.tokens * 2
    assert double(np.array([1, 2])).tolist() == [2, 4]
    assert double(np.array([[1.5, 2], [3, 4]])).tolist() == [[3.0, 4.0], [6.0, 8.0]]
    assert locum.select(locum.tokens, locum.tokens, "<")([[1, 2], [2, 1]]).shape == (2, 2, 2)
    assert double([np.int64(3), np.float32(0.5)]) == [6, 1.0]


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize(
    ("tokens", "words"),
    [
        ("", "expected at least one token, got an empty input"),
        ([], "expected at least one token, got an empty input"),
        ([[]], "expected at least one token in each sequence"),
        ([[1, 2], []], "expected at least one token in each sequence"),
        (_ragged(), r"of one length, got lengths 2, 1; try the sequences as lists: array.tolist\(\)"),
        ([1, [2]], "got tokens and sequences in one list"),
        ([1, None], "None at position 1"),
        ([1 + 2j], "at position 0"),
        ([[[1]]], "at position 0"),
        (np.zeros((2, 2, 2)), r"shape \(2, 2, 2\)"),
        (np.array(1.0), r"shape \(\)"),
        (7, "expected a string, a list of tokens or a batch of lists as the input, got 7"),
        (None, "got None"),
        ({"a": 1}, "expected a string"),
        (b"ab", "expected a string"),
    ],
)
def test_bad_inputs(tokens: Any, words: str, executor: str) -> None:
    with pytest.raises(locum.InputError, match=words):
        locum.tokens(tokens, executor=executor)


def test_unknown_executor_and_domain() -> None:
    with pytest.raises(locum.LocumError, match=r"one of dense, .* as the executor, got 'slow'"):
        locum.tokens("a", executor="slow")
    with pytest.raises(locum.LocumError, match="float, exact, ieee as the domain, got 'complex'"):
        locum.tokens("a", domain="complex")


def test_a_shared_graph_is_evaluated_once() -> None:
    """2^200 paths, 200 nodes."""
    value = locum.indices
    for _ in range(200):
        value = locum.maximum(value, value)
    assert value("abc") == [0, 1, 2]


def test_deep_chains_of_attention_and_of_sums() -> None:
    value, selector = locum.indices, locum.select(locum.indices, locum.indices, "==")
    for _ in range(3_000):
        value = locum.aggregate(selector, value) + 1
    assert value("ab") == [3_000, 3_001]
    total, l = locum.indices, locum.family(2)
    for _ in range(2_000):
        total = locum.sum_over(l, total * l)
    assert total("ab") == [0, 1]


def test_errors_name_the_head() -> None:
    l, m = locum.family(3), locum.family(2)
    with pytest.raises(locum.ExecutionError, match=r"position 1, in 1 / .* \(head l = 1, m = 0\)"):
        locum.sum_over(
            l, m, 1 / (locum.indices * 2 - l - m - 0.5 * (l == 0) + (l == 2) * 9 - (l == 1))
        )("abc")


def test_the_kind_of_an_error_of_a_cast() -> None:
    for token, kind in ((float("nan"), "ValueError"), (float("inf"), "OverflowError")):
        with pytest.raises(locum.ExecutionError) as caught:
            locum.tokens_int([token], executor="dense")
        assert caught.value.kind == kind


def test_known_values_are_not_walked_again() -> None:
    """A session of n dependent statements costs n, not n²."""
    from locum.rasp import Session

    chain = "x = indices;\n" + "x = x + 1;\n" * 2_000
    assert Session().execute(chain)[-1].values == [2000, 2001, 2002, 2003, 2004]


MIXED = locum.where(locum.indices == 0, locum.tokens, 0.5)
UNSIGNED, SIGNED = np.array([2**63 + 5, 1], dtype=np.uint64), np.array([2**62 + 1, -1])


@pytest.mark.filterwarnings("ignore::locum.execution.fast.FallbackWarning")
@pytest.mark.parametrize("executor", ["dense", "fast", "auto"])
@pytest.mark.parametrize(
    ("program", "array"),
    [
        (locum.tokens, UNSIGNED),
        (locum.tokens + 1, UNSIGNED),
        (locum.tokens - 1, UNSIGNED),
        (locum.tokens - 2, UNSIGNED),
        (locum.tokens + locum.tokens, abs(SIGNED)),
        (locum.tokens + locum.tokens, SIGNED),
        (locum.tokens * 4, SIGNED),
        (locum.tokens + locum.tokens, np.array([SIGNED, [1, 2]])),
        (MIXED, SIGNED),
        (MIXED, np.array([[3, 1], [2, 5]])),
    ],
)
def test_arrays_of_integers_are_not_rounded(
    program: locum.SOp, array: np.ndarray[Any, Any], executor: str
) -> None:
    mixed = array is SIGNED and program is MIXED
    if mixed and executor != "dense":
        with pytest.raises(locum.ExecutionError, match="type float holds exactly"):
            program(array, executor=executor)
        return
    result = program(array, executor=executor)
    assert isinstance(result, np.ndarray)
    assert result.shape == array.shape
    assert result.tolist() == program(array.tolist())


@pytest.mark.filterwarnings("ignore::locum.execution.fast.FallbackWarning")
@pytest.mark.parametrize("executor", ["dense", "fast", "auto"])
def test_tensors_of_integers_are_not_rounded(executor: str) -> None:
    program = locum.where(locum.tokens == 1, 0.5, locum.tokens)
    for values in ([2**60 + 1, 1], [[2**60 + 1, 2], [1, 1]]):
        with pytest.raises(locum.LocumError, match=r"cannot hold exactly|holds exactly"):
            program(torch.tensor(values), executor=executor)
    for values in ([2**53, 1], [[2**53, 2], [1, 1]]):
        assert program(torch.tensor(values), executor=executor).tolist() == program(values)
