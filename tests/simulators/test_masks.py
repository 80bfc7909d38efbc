"""Masks: 1 where a query attends to a key; they join, and every row of a batch is looked at."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import locum
from locum.errors import InputError
from locum.simulators import (
    Attention,
    DecoderLayer,
    Encoder,
    FactoredAttention,
    LinearAttention,
    MultiHeadAttention,
    UniversalSimulator,
)
from locum.simulators.modules.masks import attended, joined, read_mask
from tests.simulators.random_modules import Chance, distance

MASKS: list[Any] = [None, "causal", np.array([1, 0, 1, 1]), np.tri(4, k=1), np.eye(4) + np.eye(4, k=-1)]


@given(st.lists(st.sampled_from(range(len(MASKS))), max_size=4))
def test_masks_join(chosen: list[int]) -> None:
    masks = [read_mask(MASKS[number]) for number in chosen]
    both = np.ones((4, 4), dtype=bool)
    for mask in masks:
        both &= attended(mask, (4, 4))
    assert np.array_equal(attended(joined(masks, (4, 4)), (4, 4)), both)


def modules(mask: Any) -> dict[str, Any]:
    """Each kind of T that takes a mask, with this one."""
    chance = Chance(0)
    heads = MultiHeadAttention([chance.attention(2, 2, mask=mask) for _ in range(2)], chance(4, 2))
    return {
        "attention": chance.attention(2, 2, mask=mask),
        "heads": heads,
        "factored": FactoredAttention(chance(2, 2), chance(2, 2), chance(2, 2), mask=mask),
        "encoder": Encoder(heads, chance(2, 3), chance(3, 2), norm="post"),
    }


@pytest.mark.parametrize("kind", list(modules(None)))
@pytest.mark.parametrize("own", ["causal", np.array([1.0, 1.0, 0.0, 1.0]), np.tri(4)])
@pytest.mark.parametrize("padding", [[1, 1, 1, 1], [1, 1, 0, 1], [1, 1, 1, 0]])
def test_padding_joins_the_masks_of_t(kind: str, own: Any, padding: list[int]) -> None:
    """A causal T with padding stays causal, also where nothing is padded."""
    T, X = modules(own)[kind], Chance(1)(4, 2)
    both = joined([read_mask(own), read_mask(padding)], (4, 4))
    expected = T.with_masks(both)(X)
    if padding == [1, 1, 1, 1]:
        assert distance(expected, T(X)) == 0
    assert distance(locum.simulate(T, X, attention_mask=padding), expected) <= 1e-12
    assert distance(locum.simulate(T, X, mask=np.tri(4), attention_mask=padding),
                    T.with_masks(joined([both, "causal"], (4, 4)))(X)) <= 1e-12  # fmt: skip


def test_a_decoder_keeps_both_of_its_masks() -> None:
    chance = Chance(2)
    X, M = chance(3, 2), chance(4, 2)
    T = DecoderLayer(
        chance.attention(2, 2, mask="causal"), chance.attention(2, 2, mask=[1, 1, 1, 0]), norm="none"
    )
    expected = T.with_masks("causal", [1, 0, 1, 0])(X, M)
    result = locum.simulate(T, X, M, attention_mask=[1, 1, 1], memory_attention_mask=[1, 0, 1, 1])
    assert distance(result, expected) <= 1e-12
    assert distance(locum.simulate(T, X, M), T(X, M)) <= 1e-12


def test_linear_attention_stays_causal_or_is_refused() -> None:
    T, X = LinearAttention([[1.0]], [[1.0]], [[1.0]], mask="causal"), [[1.0], [2.0]]
    assert distance(locum.simulate(T, X), T(X)) == 0
    with pytest.raises(InputError, match="linear attention takes a causal mask or none"):
        locum.simulate(T, X, attention_mask=[1, 0])


BAD_ROWS: list[tuple[list[float], str]] = [
    ([0, 0, 0], "row 1 of the attention mask leaves no key"),
    ([1, -1, 1], "expected 0 or 1 in the attention mask, got -1"),
    ([1, 0.5, 1], "expected 0 or 1 in the attention mask, got 0.5"),
    ([1, np.nan, 1], r"the attention mask has nan at \[1, 1\]"),
    ([1, -np.inf, 1], r"the attention mask has -inf at \[1, 1\]"),
]


@pytest.mark.parametrize(("row", "problem"), BAD_ROWS)
@pytest.mark.parametrize("memory", [False, True])
def test_every_row_of_a_batch_is_checked(row: list[float], problem: str, memory: bool) -> None:
    T, X = Attention([[0.0]], [[1.0]]), np.ones((2, 3, 1))
    keys = [[1, 1, 1], row]
    options = {"memory": X, "memory_attention_mask": keys} if memory else {"attention_mask": keys}
    with pytest.raises(InputError, match=problem):
        locum.simulate(T, X, **options)


@pytest.mark.parametrize("keys", [["a", "b", "c"], [[1, 1], [1, 1]], "abc", [None, 1, 1]])
def test_what_is_not_an_attention_mask(keys: Any) -> None:
    with pytest.raises(InputError, match="the attention mask: expected"):
        locum.simulate(Attention([[0.0]], [[1.0]]), np.ones((3, 1)), attention_mask=keys)


def test_booleans_are_ones_and_zeros() -> None:
    T, X = Attention([[0.0]], [[1.0]]), np.array([[1.0], [3.0], [9.0]])
    expected = locum.simulate(T, X, attention_mask=[1, 1, 0])
    assert np.array_equal(locum.simulate(T, X, attention_mask=[True, True, False]), expected)
    assert expected[0, 0] == 2.0


@pytest.mark.parametrize(
    "make", [Attention, lambda A, V, mask: FactoredAttention(A, [[1.0]], V, mask=mask)]
)
def test_a_mask_of_keys_that_leaves_none_is_refused(make: Any) -> None:
    with pytest.raises(InputError, match="leaves no key"):
        make([[0.0]], [[1.0]], mask=[0, 0, 0])
    with pytest.raises(InputError, match="leaves no key"):
        make([[0.0]], [[1.0]], mask=[1, 0, 0]).with_masks([0, 0, 0])


@pytest.mark.parametrize("kind", ["softmax", "factored"])
@pytest.mark.parametrize("mask", [[0, 1, 1], "causal", [[0, 1, 1], [0, 1, 0], [1, 0, 1]]])
@pytest.mark.parametrize("executor", ["fast", "dense"])
def test_a_hidden_key_never_wins_however_low_the_scores(kind: str, mask: Any, executor: str) -> None:
    X = np.array([[1e16], [2e16], [3e16]])
    T: Any = Attention([[-1.0]], [[1.0]], mask=mask)
    if kind == "factored":
        T = FactoredAttention([[-1.0]], [[1.0]], [[1.0]], mask=mask)
    U = UniversalSimulator.of(T, 3)
    for X_scaled in (X, 1e134 * X, -X):
        assert np.array_equal(U(T, X_scaled, executor=executor), T(X_scaled))


@pytest.mark.parametrize("base", [0.5, 1.0, 2.0])
def test_a_hidden_key_has_no_weight_in_any_base(base: float) -> None:
    T, X = Attention([[0.7]], [[1.0]], mask=[1, 0, 1]), np.array([[1.0], [5.0], [-2.0]])
    weights = base ** (0.7 * X @ X.T) * np.array([1, 0, 1])
    expected = weights @ X / weights.sum(axis=1, keepdims=True)
    assert distance(UniversalSimulator.of(T, 3, base=base)(T, X), expected) <= 1e-12
