"""Masks: 1 where a query attends to a key, 0 where it does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

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
from locum.simulators.modules.module import attended, read_mask
from tests.simulators.random_modules import Chance, distance

MASKS: list[Any] = [None, "causal", np.array([1, 0, 1, 1]), np.tri(4, k=1), np.eye(4) + np.eye(4, k=-1)]


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
@pytest.mark.parametrize("mask", MASKS, ids=str)
def test_every_kind_of_t_with_every_mask(kind: str, mask: Any) -> None:
    T, X = modules(mask)[kind], Chance(1)(4, 2)
    assert distance(UniversalSimulator.of(T, 4)(T, X), T(X)) <= 1e-12
    other = modules(None)[kind].with_masks(mask)
    assert distance(other(X), T(X)) == 0
    # The output at a query depends only on the keys that it attends to.
    for query, seen in enumerate(attended(read_mask(mask), (4, 4))):
        changed = np.where((seen | (np.arange(4) == query))[:, None], X, 9.0)
        assert distance(T(changed)[query], T(X)[query]) <= 1e-12


def test_a_decoder_has_two_masks() -> None:
    chance = Chance(2)
    X, M = chance(3, 2), chance(4, 2)
    T = DecoderLayer(
        chance.attention(2, 2, mask="causal"), chance.attention(2, 2, mask=[1, 0, 1, 0]), norm="none"
    )
    assert distance(UniversalSimulator.of(T, 3, 4)(T, X, M), T(X, M)) <= 1e-12
    assert distance(T(X, np.array([[1.0], [0.0], [1.0], [0.0]]) * M), T(X, M)) <= 1e-12
    with pytest.raises(InputError, match="an encoder has no memory"):
        Encoder(chance.attention(2, 2)).with_masks(None, [1, 1])


def test_linear_attention_is_causal_or_has_no_mask() -> None:
    T, X = LinearAttention([[1.0]], [[1.0]], [[1.0]], mask="causal"), [[1.0], [2.0]]
    assert distance(UniversalSimulator.of(T, 2)(T, X), T(X)) == 0
    with pytest.raises(InputError, match="linear attention: expected a causal mask or no mask"):
        T.with_masks([1, 0])


BAD: list[tuple[Any, str]] = [
    ([0, 0, 0], "the mask: expected a mask that allows one key or more"),
    ([1, -1, 1], "expected 0 or 1 in the mask, got -1"),
    ([1, 0.5, 1], "expected 0 or 1 in the mask, got 0.5"),
    ([1, np.nan, 1], r"the mask has nan at \[1\]"),
    ([[1, -np.inf, 1]] * 3, r"the mask has -inf at \[0, 1\]: .* is not added to the scores"),
    (["a", "b", "c"], "the mask: expected real numbers"),
    ("abc", "expected the mask to be causal, a matrix or a vector, got 'abc'"),
    ([None, 1, 1], "the mask: expected real numbers"),
]


@pytest.mark.parametrize(("mask", "problem"), BAD)
def test_invalid_masks(mask: Any, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        Attention([[0.0]], [[1.0]], mask=mask)


def test_booleans_are_ones_and_zeros() -> None:
    X = np.array([[1.0], [3.0], [9.0]])
    results = [Attention([[0.0]], [[1.0]], mask=mask)(X) for mask in ([1, 1, 0], [True, True, False])]
    assert np.array_equal(results[0], results[1])
    assert results[0][0, 0] == 2.0


@pytest.mark.parametrize(
    "make", [Attention, lambda A, V, mask: FactoredAttention(A, [[1.0]], V, mask=mask)]
)
def test_a_mask_of_keys_that_leaves_none_is_refused(make: Any) -> None:
    with pytest.raises(InputError, match="allows one key or more"):
        make([[0.0]], [[1.0]], mask=[0, 0, 0])
    with pytest.raises(InputError, match="allows one key or more"):
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
