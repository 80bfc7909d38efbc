"""U(T, X) = T(X) = textbook formula, and the constructions equal NumPy."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import locum
from locum import constructions as con
from locum.simulators import MultiHeadAttention, Order, UniversalSimulator

ORDERS = [(1, 1, 1), (1, 3, 2), (2, 1, 3), (3, 2, 1), (3, 3, 3), (4, 2, 5), (5, 3, 2)]


def softmax(S: Any) -> Any:
    E = np.exp(S - S.max(-1, keepdims=True))
    return E / E.sum(-1, keepdims=True)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("executor", ["auto", "dense", "heads", "fast"])
def test_attention(order: tuple[int, int, int], executor: str) -> None:
    n, d, d_v = order
    rng = np.random.default_rng(n * 100 + d * 10 + d_v)
    A, V, X = rng.normal(size=(d, d)), rng.normal(size=(d, d_v)), rng.normal(size=(n, d))
    T, wanted = locum.Attention(A, V), softmax(X @ A @ X.T) @ X @ V
    assert np.abs(T(X) - wanted).max() < 1e-12
    for recipe in (None, "paper", "tiled"):
        U = UniversalSimulator(n, d, d_v, **({"recipe": recipe} if recipe else {}))
        assert np.abs(U(T, X, executor=executor) - wanted).max() < 1e-11, recipe


@pytest.mark.parametrize("causal", [False, True])
def test_heads(causal: bool) -> None:
    rng = np.random.default_rng(1)
    n, d, d_v, h = 4, 3, 2, 2
    heads = [
        locum.Attention(
            rng.normal(size=(d, d)), rng.normal(size=(d, d_v)), mask="causal" if causal else None
        )
        for _ in range(h)
    ]
    W, X = rng.normal(size=(h * d_v, d)), rng.normal(size=(n, d))
    T = MultiHeadAttention(heads, W, None)
    mask = np.tril(np.ones((n, n), bool)) if causal else np.ones((n, n), bool)
    parts = [softmax(np.where(mask, X @ t.A @ X.T, -np.inf)) @ X @ t.V for t in heads]
    wanted = np.concatenate(parts, 1) @ W
    assert np.abs(T(X) - wanted).max() < 1e-12
    U = (
        UniversalSimulator.of(T, n)
        if hasattr(UniversalSimulator, "of")
        else UniversalSimulator(
            Order.of(n, d, d_v, heads=h, **({"mask": "causal"} if causal else {}), projected=True)
        )
    )
    assert np.abs(U(T, X) - wanted).max() < 1e-11


def test_layers() -> None:
    """Encoder layers with each norm position and activation equal NumPy."""
    rng = np.random.default_rng(5)
    n, d = 3, 2
    for kind in ("softmax", "average"):
        A, V, X = rng.normal(size=(d, d)), rng.normal(size=(d, d)), rng.normal(size=(n, d))
        T = locum.Attention(A, V, pooling=kind if kind == "softmax" else "average")
        S = X @ A @ X.T
        wanted = (
            softmax(S) @ X @ V if kind == "softmax" else ((S == S.max(1, keepdims=True)) / 1.0) @ X @ V
        )
        assert np.abs(T(X) - wanted).max() < 1e-12
        U = UniversalSimulator(Order.of(n, d, d, pooling=kind))
        assert np.abs(U(T, X) - wanted).max() < 1e-11
