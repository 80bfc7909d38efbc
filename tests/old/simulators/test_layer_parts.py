"""Grouped keys, rotary positions, biases of scores, gates and RMSNorm, by several executors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from locum.errors import GraphError, InputError
from locum.simulators import Encoder, UniversalSimulator
from locum.simulators.attention_order import AttentionOrder
from locum.simulators.modules.factored import FactoredAttention, Rotary

D, HEADS, WIDTH, N, HIDDEN = 4, 4, 2, 2, 3


def rotary(chance: np.random.Generator) -> Rotary:
    return Rotary(
        np.array([[0.0, 1.0], [-1.0, 0.0]]),
        chance.normal(size=(N, WIDTH)),
        chance.normal(size=(N, WIDTH)),
    )


ATTENTIONS: dict[str, dict[str, Any]] = {
    "shared keys": {"key_heads": 2},
    "one key head": {"key_heads": 1},
    "rotary": {"rotary": rotary},
    "biased scores": {"score_bias": lambda chance: list(chance.normal(size=(HEADS, N, N)))},
    "all of them": {
        "key_heads": 2,
        "rotary": rotary,
        "score_bias": lambda chance: list(chance.normal(size=(HEADS, N, N))),
        "mask": "causal",
    },
}
LAYERS: dict[str, dict[str, Any]] = {
    "rms, gated": {"norm": "pre", "rms": True, "activation": "silu"},
    "parallel": {"norm": "pre", "parallel": True, "activation": "gelu_tanh"},
}


def layer(seed: int, attention: str, around: str) -> Encoder:
    chance = np.random.default_rng(seed)
    options = {
        name: part(chance) if callable(part) else part for name, part in ATTENTIONS[attention].items()
    }
    shared = options.get("key_heads", HEADS) * WIDTH
    heads = FactoredAttention(
        chance.normal(size=(D, HEADS * WIDTH)),
        chance.normal(size=(D, shared)),
        chance.normal(size=(D, shared)),
        chance.normal(size=(HEADS * WIDTH, D)),
        HEADS,
        b_Q=chance.normal(size=HEADS * WIDTH),
        **options,
    )
    more = dict(LAYERS[around])
    if "rms" in more:
        more |= {f"norm{number}": chance.normal(size=D) for number in (1, 2)}
        more |= {"W_gate": chance.normal(size=(D, HIDDEN)), "b_gate": chance.normal(size=HIDDEN)}
    return Encoder(heads, chance.normal(size=(D, HIDDEN)), chance.normal(size=(HIDDEN, D)), **more)


@pytest.mark.parametrize("attention", ATTENTIONS)
@pytest.mark.parametrize("around", LAYERS)
def test_u_computes_what_t_does(attention: str, around: str) -> None:
    T, X = layer(1, attention, around), np.random.default_rng(0).normal(size=(N, D))
    U = UniversalSimulator.of(T, N)
    assert np.abs(U(T, X) - T(X)).max() < 1e-12
    other = layer(2, attention, around)
    assert np.abs(U(other, X) - other(X)).max() < 1e-12  # one program for both: no value of T is in it
    assert UniversalSimulator.of(other, N).hash == U.hash
    plan = next(iter(U._plans.values()))()
    assert plan is not None
    assert not plan.opaque
    assert plan.counts["gather"] == 0


def test_dense_execution_gives_the_same() -> None:
    T, X = layer(3, "all of them", "rms, gated"), np.random.default_rng(0).normal(size=(N, D))
    U = UniversalSimulator.of(T, N)
    assert np.abs(U(T, X, executor="dense") - T(X)).max() < 1e-12


def test_the_steps_of_every_head_have_their_names() -> None:
    T, X = layer(3, "shared keys", "parallel"), np.random.default_rng(0).normal(size=(N, D))
    explanation = UniversalSimulator.of(T, N).explain(T, X)
    assert max(step.error for step in explanation.steps) < 1e-12


def test_a_batch_of_them_is_one_run() -> None:
    T = layer(3, "all of them", "rms, gated")
    X = np.random.default_rng(0).normal(size=(3, N, D))
    for executor in ("fast", "dense"):
        result = UniversalSimulator.of(T, N)(T, X, executor=executor)
        assert np.abs(result - np.stack([T(rows) for rows in X])).max() < 1e-12


def test_heads_that_share_keys_side_by_side() -> None:
    chance = np.random.default_rng(0)
    W_Q, W_K, W_V = (chance.normal(size=(3, columns)) for columns in (8, 4, 6))
    T, X = FactoredAttention(W_Q, W_K, W_V, heads=4, key_heads=2), chance.normal(size=(2, 3))
    assert np.abs(UniversalSimulator.of(T, 2)(T, X) - T(X)).max() < 1e-12
    assert T(X).shape == (2, 12)


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(GraphError, match="rotary: expected False for kind softmax"):
        AttentionOrder("softmax", 2, 2, rotary=True)
    with pytest.raises(InputError, match="heads divisible by 2 key heads, got 3"):
        FactoredAttention(np.ones((1, 3)), np.ones((1, 2)), np.ones((1, 2)), heads=3, key_heads=2)
    both = np.ones((1, 2))
    with pytest.raises(InputError, match="score_bias for each of 2"):
        FactoredAttention(both, both, both, heads=2, score_bias=[np.ones((1, 1))])
