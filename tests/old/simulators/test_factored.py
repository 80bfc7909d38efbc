"""The factored parametrisation: the same network as the paper's, by every executor."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from locum.errors import GraphError, InputError
from locum.execution import fast
from locum.simulators import Encoder, FactoredAttention, UniversalSimulator, from_arrays
from locum.simulators.attention_order import AttentionOrder
from locum.simulators.order import Order
from tests.simulators.random_modules import Chance, distance


def layer(form: str, mask: Any = None, heads: int = 2, d: int = 4) -> Any:
    chance = Chance(3)
    arrays = {f"W_{name}": chance(d, d) for name in "QKVO"} | {
        f"b_{name}": chance(d) for name in "QKVO"
    }
    arrays |= {"W1": chance(d, 6), "b1": chance(6), "W2": chance(6, d), "b2": chance(d)}
    arrays |= {f"{name}{number}": chance(d) for name in ("gain", "bias") for number in (1, 2)}
    return from_arrays(arrays, heads, activation="gelu", mask=mask, form=form)


MASKS: dict[str, Any] = {
    "none": None,
    "causal": "causal",
    "matrix": np.array([[1, 0, 0], [1, 1, 0], [0, 1, 1]]),
    "keys": np.array([1, 0, 1]),
}


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
@pytest.mark.parametrize("executor", ["fast", "dense", "heads"])
def test_both_forms_give_the_same(mask: Any, executor: str) -> None:
    X = Chance(4)(3, 4)
    factored, paper = layer("factored", mask), layer("paper", mask)
    assert distance(factored(X), paper(X)) <= 1e-13
    for T in (factored, paper):
        U = UniversalSimulator.of(T, 3)
        assert distance(U(T, X, executor=executor), paper(X)) <= 1e-12


def test_every_step_has_its_counterpart() -> None:
    T, X = layer("factored", MASKS["keys"]), Chance(4)(3, 4)
    explanation = UniversalSimulator.of(T, 3).explain(T, X)
    assert all(step.error <= 1e-12 for step in explanation)
    assert {"queries[1]", "keys[0]", "scores[1]", "softmax[0]", "hidden"} <= {
        s.name for s in explanation
    }
    np.testing.assert_array_equal(explanation["softmax[1]"].matrix[:, 1], 0)


def test_the_layer_of_a_real_model_lowers_to_products() -> None:
    attention = AttentionOrder(
        "factored", 384, 32, 12, projection=384, output_bias=True, bias=True, width=32, mask="keys"
    )
    order = Order(
        128, attention, residual=True, feed_forward=(1536, 384), feed_forward_bias=True,
        feed_forward_residual=True, activation="gelu", norm="post", affine=True,
    )  # fmt: skip
    U = UniversalSimulator(order)
    shapes = [(block.rows, block.columns) for block in U.layout.blocks.values()]
    plan = fast.plan(
        U.program.node, U.length, positions=U.output.places.positions, segments=shapes, strict=True
    )
    assert not plan.opaque
    assert plan.counts["matmul"] == 8  # Q, K, V, scores, weights times values, W_O, W1, W2
    assert plan.counts["softmax"] == 1
    for step in ("structured", "gather", "concatenate", "mask"):
        assert plan.counts[step] == 0, step


def test_a_padded_sequence_gives_what_the_short_one_does() -> None:
    """One U of length 6 for every shorter length: the rows that count are those of the text alone."""
    full = layer("factored", np.ones(6))
    U, X = UniversalSimulator.of(full, 6), Chance(7)(6, 4)
    for length in range(1, 7):
        T = full.with_masks((np.arange(6) < length).astype(float))
        short = layer("factored")
        assert distance(U(T, X)[:length], short(X[:length])) <= 1e-12


def test_an_attention_alone() -> None:
    U = UniversalSimulator(Order.of(3, 4, 2, heads=2, kind="factored", mask="causal"))
    W_Q, W_K, W_V = (Chance(8)(4, columns) for columns in (8, 8, 4))
    T = FactoredAttention(W_Q, W_K, W_V, heads=2, mask="causal")
    X = Chance(9)(3, 4)
    assert distance(U(T, X), T(X)) <= 1e-13
    assert U.order.columns == 4


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"heads": 3}, "W_Q: expected a number of columns divisible by 3 heads, got 4"),
        ({"mask": np.zeros(3)}, "allows one key or more"),
        (
            {"mask": np.array([[1, 0], [0, 0]])},
            "row 1 of the mask: expected a mask that allows one key or more",
        ),
        ({"scale": float("inf")}, "scale: expected a finite number"),
        ({"b_Q": np.ones(3)}, "b_Q: expected 1×4"),
        ({"mask": "random"}, "mask to be causal, a matrix or a vector, got 'random'"),
    ],
)
def test_what_is_refused(change: dict[str, Any], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        FactoredAttention(np.eye(4), np.eye(4), np.eye(4), **change)


def test_orders_that_make_no_sense() -> None:
    with pytest.raises(GraphError, match="concatenated; try combine"):
        AttentionOrder("factored", 2, 2, 2, combine="sum", width=1)
    with pytest.raises(GraphError, match="mask of kind factored: expected one of"):
        AttentionOrder("factored", 2, 2, mask="rows", width=1)


@pytest.mark.parametrize(
    ("arrays", "problem"),
    [
        ({"W_Q": np.eye(2)}, "expected W_K, W_V among the arrays"),
        ({name: np.eye(2) for name in ("W_Q", "W_K", "W_V", "W_X")}, "got W_X"),
        (
            {name: np.eye(2) for name in ("W_Q", "W_K", "W_V")} | {"b_Q": np.ones(2)},
            "expected all of b_Q, b_K and b_V, or none",
        ),
        ({name: np.eye(2) for name in ("W_Q", "W_K", "W_V")} | {"gain1": np.ones(2)}, "both gain1"),
    ],
)
def test_dicts_that_are_no_layer(arrays: dict[str, Any], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        from_arrays(arrays)


def test_dicts_of_arrays() -> None:
    arrays = {name: Chance(1)(3, 3) for name in ("W_Q", "W_K", "W_V")}
    X = Chance(2)(2, 3)
    T = from_arrays(arrays)
    scores = X @ arrays["W_Q"] @ (X @ arrays["W_K"]).T / np.sqrt(3)
    weights = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    assert distance(T(X), weights @ X @ arrays["W_V"]) <= 1e-13
    assert isinstance(layer("factored"), Encoder)
