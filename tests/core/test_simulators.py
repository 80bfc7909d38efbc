"""U(T, X), T(X) and the textbook formula of the layer T agree.

The name of a row begins with the class of its layer.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import locum
from locum.simulators import (
    Attention,
    AttentionOrder,
    Block,
    DecoderLayer,
    Encoder,
    ExplainedStep,
    Explanation,
    FactoredAttention,
    Layout,
    LinearAttention,
    Linformer,
    Module,
    MultiHeadAttention,
    Order,
    Performer,
    Stack,
    Sumformer,
    UniversalSimulator,
    from_arrays,
)

N, D, D_V, H = 4, 3, 2, 2
RNG = np.random.default_rng(0)
Array = Any


def draw(*shape: int) -> Array:
    """Draw normally distributed numbers."""
    return RNG.normal(size=shape)


def softmax(scores: Array) -> Array:
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def hardmax(scores: Array) -> Array:
    largest = scores == scores.max(1, keepdims=True)
    return largest / largest.sum(1, keepdims=True)


def causal(scores: Array) -> Array:
    return np.where(np.tril(np.ones(scores.shape, bool)), scores, -np.inf)


def relu(x: Array) -> Array:
    return np.maximum(x, 0)


def elu_plus_one(x: Array) -> Array:
    return np.where(x > 0, x + 1, np.exp(x))


def normalise(x: Array, gain: Array = 1.0, bias: Array = 0.0) -> Array:
    centred = x - x.mean(1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5) * gain + bias


X, MEMORY, A, V, SQUARE = draw(N, D), draw(3, D), draw(D, D), draw(D, D_V), draw(D, D)
Q, K, E, F = draw(D, 2), draw(D, 2), draw(2, N), draw(2, N)
PAIRS = [(draw(D, D), draw(D, D_V)) for _ in range(H)]
W_O, projected_bias = draw(H * D_V, D), draw(D)
W_Q, W_K, W_V = draw(D, 4), draw(D, 4), draw(D, 4)
W, b = draw(4, D), draw(4)
W1, b1, W2, b2 = draw(D, 5), draw(5), draw(5, D), draw(D)
NORM = draw(D), draw(D)
OMEGA = draw(5, 2)


def scores(A: Array) -> Array:
    return X @ A @ X.T


def features(Z: Array) -> Array:
    return np.exp(Z @ OMEGA.T - (Z**2).sum(1, keepdims=True) / 2)


def kernel(x: Array, y: Array, values: Array) -> Array:
    weights = x @ y.T
    return weights / weights.sum(1, keepdims=True) @ values


def factored(mask: Callable[[Array], Array] = lambda s: s) -> Array:
    parts = [
        softmax(mask((X @ W_Q + b)[:, s] @ (X @ W_K)[:, s].T / 2)) @ (X @ W_V)[:, s]
        for s in (slice(0, 2), slice(2, 4))
    ]
    return np.hstack(parts) @ W + projected_bias


ATTENDED = softmax(scores(A)) @ X @ SQUARE
FEED = partial(lambda Z: relu(Z @ W1 + b1) @ W2 + b2)
POST = normalise(X + ATTENDED, *NORM)
SELF = normalise(X + softmax(causal(scores(A))) @ X @ SQUARE)
FFN = (W1, W2, b1, b2)
#: T, X and further inputs, and the result by the textbook formula.
LAYERS: dict[str, tuple[Module, Array]] = {
    "Attention": (Attention(A, V), softmax(scores(A)) @ X @ V),
    "Attention, causal": (Attention(A, V, mask="causal"), softmax(causal(scores(A))) @ X @ V),
    "Attention, average": (
        Attention(np.zeros((D, D)), V, pooling="average"), np.ones((N, N)) / N @ X @ V
    ),
    "Attention, hard": (Attention(A, V, pooling="average"), hardmax(scores(A)) @ X @ V),
    "MultiHeadAttention": (
        MultiHeadAttention([Attention(*pair) for pair in PAIRS], W_O, projected_bias),
        np.hstack([softmax(scores(a)) @ X @ v for a, v in PAIRS]) @ W_O + projected_bias,
    ),
    "MultiHeadAttention, causal": (
        MultiHeadAttention([Attention(*pair, mask="causal") for pair in PAIRS]),
        np.hstack([softmax(causal(scores(a))) @ X @ v for a, v in PAIRS]),
    ),
    "FactoredAttention": (
        FactoredAttention(W_Q, W_K, W_V, W, heads=2, b_Q=b, b_O=projected_bias, scale=0.5), factored()
    ),
    "FactoredAttention, causal": (
        FactoredAttention(W_Q, W_K, W_V, W, 2, b_Q=b, b_O=projected_bias, scale=0.5, mask="causal"),
        factored(causal),
    ),
    "LinearAttention": (LinearAttention(Q, K, V), (X @ Q) @ (X @ K).T @ X @ V),
    "LinearAttention, causal": (
        LinearAttention(Q, K, V, mask="causal"), np.tril((X @ Q) @ (X @ K).T) @ X @ V
    ),
    "LinearAttention, features": (
        LinearAttention(Q, K, V, feature_map="elu+1"),
        kernel(elu_plus_one(X @ Q), elu_plus_one(X @ K), X @ V),
    ),
    "Linformer": (Linformer(Q, K, V, E, F), softmax((X @ Q) @ (E @ X @ K).T) @ F @ X @ V),
    "Performer": (Performer(Q, K, V, OMEGA), kernel(features(X @ Q), features(X @ K), X @ V)),
    "Sumformer": (
        Sumformer(W1, SQUARE, W2, V),
        relu(X @ SQUARE + relu(X @ W1).sum(0) @ W2) @ V,
    ),
    "Encoder": (Encoder(Attention(A, SQUARE)), X + ATTENDED),
    "Encoder, feed-forward": (Encoder(Attention(A, SQUARE), *FFN), FEED(X + ATTENDED)),
    "Encoder, post-norm": (
        Encoder(Attention(A, SQUARE), *FFN, norm="post", norm1=NORM, norm2=NORM),
        normalise(POST + FEED(POST), *NORM),
    ),
    "Encoder, pre-norm": (
        Encoder(Attention(np.zeros((D, D)), SQUARE), *FFN, norm="pre"),
        (Y := X + (normalise(X) @ SQUARE).mean(0)) + FEED(normalise(Y)),
    ),
    "DecoderLayer": (
        DecoderLayer(Attention(A, SQUARE, mask="causal"), Attention(SQUARE, A), norm="post"),
        normalise(SELF + softmax(SELF @ SQUARE @ MEMORY.T) @ MEMORY @ A),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name: str) -> None:
    """U of the order of T simulates T with each executor."""
    T, wanted = LAYERS[name]
    inputs = (X, MEMORY) if name == "DecoderLayer" else (X,)
    np.testing.assert_allclose(T(*inputs), wanted, atol=1e-12)
    U = UniversalSimulator.of(T, *map(len, inputs))
    for executor in ("auto", "dense", "fast", "heads"):
        if executor in ("dense", "heads") and name.startswith(("Encoder,", "Decoder")):
            continue  # minutes
        np.testing.assert_allclose(U(T, *inputs, executor=executor), wanted, atol=1e-11)


ORDERS = [(1, 1, 1), (1, 3, 2), (2, 1, 3), (3, 2, 1), (3, 3, 3), (4, 2, 5)]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("recipe", ["paper", "fetch", "tiled", "inverse", "width-1"])
def test_recipes(order: tuple[int, int, int], recipe: str) -> None:
    """All recipes of U simulate attention at all orders, also for a smaller T."""
    n, d, d_v = order
    d_v = d if recipe == "inverse" else d_v
    rng = np.random.default_rng(n * 100 + d * 10 + d_v)
    A, V, X = rng.normal(size=(d, d)), rng.normal(size=(d, d_v)), rng.normal(size=(n, d))
    wanted = softmax(X @ A @ X.T) @ X @ V
    U = UniversalSimulator(n, d, d_v, recipe=recipe)
    for executor in ("auto", "heads"):
        np.testing.assert_allclose(U(Attention(A, V), X, executor=executor), wanted, atol=1e-10)


def test_batches() -> None:
    """A batch of inputs gives the results of single inputs."""
    inputs = draw(3, N, D)
    T = LAYERS["Attention"][0]
    U = UniversalSimulator.of(T, N)
    np.testing.assert_allclose(U(T, inputs), [T(x) for x in inputs], atol=1e-12)


def test_several_layers() -> None:
    """Simulators in series equal the layers in series."""
    first, second = Encoder(Attention(A, SQUARE)), Attention(A, V)
    stack = Stack([UniversalSimulator.of(first, N), UniversalSimulator.of(second, N)])
    np.testing.assert_allclose(stack([first, second], X), second(first(X)), atol=1e-11)


def test_steps() -> None:
    """The explained steps are scores, weights and values; the last one is T(X)."""
    explained = UniversalSimulator(N, D, D_V).explain(Attention(A, V), X)
    assert isinstance(explained, Explanation)
    assert isinstance(explained.steps[0], ExplainedStep)
    for step in explained.steps:
        np.testing.assert_allclose(step.matrix, step.direct, atol=1e-11)
    np.testing.assert_allclose(explained.steps[-1].matrix, softmax(scores(A)) @ X @ V, atol=1e-11)


def test_orders_and_layouts() -> None:
    """U depends on the order only, and reads the matrices one after another."""
    order = Order.of(N, D, D_V)
    assert order.attention == AttentionOrder("softmax", D, D_V)
    U, V_ = UniversalSimulator(order), UniversalSimulator(N, D, D_V)
    assert U.hash == V_.hash != UniversalSimulator(N, D, D_V + 1).hash
    T = Attention(A, V)
    assert len(U.encode(T, X)) == X.size + A.size + V.size
    layout = Layout([Block("X", 2, 3), Block("A", 3, 3, copies=2)])
    assert sum(block.rows * block.columns * block.copies for block in layout.blocks.values()) == 24
    assert layout.position("A", 1, 2, head=1) == 6 + 9 + 5
    json.dumps(U.to_dict())
    assert locum.Attention is Attention


def test_arrays() -> None:
    """Arrays by their names become a layer, with the columns of all heads side by side."""
    arrays = {"W_Q": W_Q, "W_K": W_K, "W_V": W_V, "W_O": W, "b_O": projected_bias}
    T = from_arrays(arrays, heads=2)
    parts = [
        softmax((X @ W_Q)[:, s] @ (X @ W_K)[:, s].T / 2**0.5) @ (X @ W_V)[:, s]
        for s in (slice(0, 2), slice(2, 4))
    ]
    wanted = np.hstack(parts) @ W + projected_bias
    np.testing.assert_allclose(T(X), wanted, atol=1e-12)
    np.testing.assert_allclose(UniversalSimulator.of(T, N)(T, X), wanted, atol=1e-11)
