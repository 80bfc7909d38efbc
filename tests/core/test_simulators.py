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


SHAPES = [(1, 1, 1), (2, 3, 2), (3, 2, 4)]


@pytest.mark.parametrize("shape", SHAPES)
def test_constructions(shape: tuple[int, int, int]) -> None:
    """Matrix products, transposes, softmax, norms and sums at several shapes."""
    r, k, c = shape
    rng = np.random.default_rng(r + 10 * k + 100 * c)
    a, b = rng.normal(size=(r, k)), rng.normal(size=(k, c))
    X, Y = con.Matrix(locum.tokens, r, k), None
    tokens = a.ravel().tolist()

    def value(M: Any) -> Any:
        return np.array(M.run(tokens))

    B = con.constant_matrix(b.tolist())
    assert np.allclose(value(con.matmul(X, B)), a @ b)
    assert np.allclose(value(con.transpose(X)), a.T)
    assert np.allclose(value(con.softmax(X)), softmax(a))
    assert np.allclose(value(con.row_sums(X))[:, 0], a.sum(1))
    assert np.allclose(value(con.row_means(X))[:, 0], a.mean(1))
    assert np.allclose(value(con.relu(X)), np.maximum(a, 0))
    assert np.allclose(value(con.leaky_relu(X, 0.1)), np.where(a > 0, a, 0.1 * a))
    assert np.allclose(value(con.sigmoid(X)), 1 / (1 + np.exp(-a)))
    assert np.allclose(value(con.silu(X)), a / (1 + np.exp(-a)))
    assert np.allclose(value(con.absolute(X)), abs(a))
    assert np.allclose(value(con.tanh(X)), np.tanh(a))
    assert np.allclose(value(con.scale(X, 3)), 3 * a)
    assert np.allclose(value(con.add(X, X)), 2 * a)
    assert np.allclose(value(con.multiply(X, X)), a * a)
    assert np.allclose(value(con.elu_plus_one(X)), np.where(a > 0, a + 1, np.exp(a)))
    assert Y is None


@pytest.mark.parametrize("n", [1, 2, 3])
def test_square_constructions(n: int) -> None:
    rng = np.random.default_rng(n)
    a = rng.normal(size=(n, n)) + 2 * np.eye(n)
    X, tokens = con.Matrix(locum.tokens, n, n), a.ravel().tolist()
    assert np.allclose(np.array(con.inverse(X).run(tokens)), np.linalg.inv(a))
    assert np.allclose(np.array(con.determinant(X).run(tokens)).ravel()[0], np.linalg.det(a))


CASES = [(r, k, seed) for seed, (r, k) in enumerate([(1, 1), (1, 4), (2, 2), (2, 6), (3, 4), (4, 3)])]


@pytest.mark.parametrize(("r", "k", "seed"), CASES)
def test_more_constructions(r: int, k: int, seed: int) -> None:
    """Each construction on integers with ties and on reals, dense and fast, against NumPy."""
    rng = np.random.default_rng(seed)
    for a in (rng.integers(-2, 3, size=(r, k)).astype(float), rng.normal(size=(r, k))):
        X, flat = con.Matrix(locum.tokens, r, k), a.ravel().tolist()
        groups = lambda g: a.reshape(-1, g)  # noqa: B023, E731
        wanted: dict[str, tuple[Any, Any]] = {
            "hardmax": (
                con.hardmax(X),
                (a == a.max(1, keepdims=True)) / (a == a.max(1, keepdims=True)).sum(1, keepdims=True),
            ),
            "hardmax unique": (con.hardmax(X, unique=True), np.eye(k)[a.argmax(1)]),
            "layer norm": (
                con.layer_norm(X, epsilon=1e-3) if k > 1 else X,
                (a - a.mean(1, keepdims=True)) / np.sqrt(a.var(1, keepdims=True) + 1e-3)
                if k > 1
                else a,
            ),
            "rms norm": (
                con.rms_norm(X, epsilon=1e-3),
                a / np.sqrt((a**2).mean(1, keepdims=True) + 1e-3),
            ),
            "gelu": (con.gelu(X), a * 0.5 * (1 + np.vectorize(math.erf)(a / 2**0.5))),
            "quick gelu": (con.quick_gelu(X), a / (1 + np.exp(-1.702 * a))),
            "append ones": (con.append_ones(X), np.hstack([a, np.ones((r, 1))])),
            "total": (con.total(X), np.full((1, 1), a.sum())),
            "masked softmax": (con.softmax(X, mask="causal"), causal_softmax(a)),
        }
        for g in (1, 2, 3, 4):
            if (r * k) % g == 0 and k % g == 0:
                wanted[f"groupsort {g}"] = con.groupsort(X, g), -np.sort(-groups(g), 1).reshape(r, k)
                wanted[f"maxout {g}"] = con.maxout(X, g), groups(g).max(1).reshape(r, -1)
        if k % 2 == 0:
            for recipe in ("partner", "paper"):
                wanted[f"maxmin {recipe}"] = (
                    con.maxmin(X, recipe),
                    -np.sort(-groups(2), 1).reshape(r, k),
                )
        for name, (matrix, value) in wanted.items():
            for executor in ("dense", "fast"):
                found = np.array(matrix.run(flat, executor=executor))
                assert found.shape[0] and np.allclose(
                    found.ravel()[: value.size], value.ravel(), atol=1e-9
                ), (name, executor, a, found, value)


def causal_softmax(a: Any) -> Any:
    return softmax(np.where(np.tril(np.ones(a.shape, bool)), a, -np.inf))


def test_sequences() -> None:
    """match2, match3, k_parity, shift and identify on all short inputs."""
    for p in (2, 3, 5):
        for x in itertools.product(range(1, 4), repeat=3):
            wanted = [int(any((a + b) % p == 0 for b in x)) for a in x]
            assert con.match2(locum.tokens, p)(list(x)) == wanted, (p, x)
    for bits in itertools.product((0, 1), repeat=4):
        for chosen in ((0,), (1, 3), (0, 1, 2)):
            value = con.k_parity(locum.tokens, chosen)(list(bits))
            assert round(value[0]) == sum(bits[i] for i in chosen) % 2, (bits, chosen)


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
