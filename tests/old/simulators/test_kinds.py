"""Linear attention, Linformer, Performer and Sumformer, the inverse form, and U's in series."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest

from locum.constructions import Matrix
from locum.errors import GraphError, InputError, LocumError
from locum.execution.arrays import Array
from locum.paper.figure2 import figure2
from locum.rasp.python import constant
from locum.simulators import (
    Attention,
    Encoder,
    LinearAttention,
    Linformer,
    Module,
    MultiHeadAttention,
    Order,
    Performer,
    Stack,
    Sumformer,
    UniversalSimulator,
)
from locum.simulators.attention_order import KINDS, AttentionOrder, Kind
from locum.simulators.formula.head import HEADS, Of, Steps, Style
from locum.simulators.modules.attention_kinds import orthogonal_features
from locum.simulators.modules.module import AttentionModule
from locum.simulators.modules.sampling import random_module
from locum.simulators.token_layout import Block
from tests.simulators.random_modules import Chance, Numbers, distance

N, D, D_V = 4, 3, 2


def softmax(z: Numbers) -> Numbers:
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return np.asarray(e / e.sum(axis=1, keepdims=True))


def elu_plus_one(z: Numbers) -> Numbers:
    return np.where(z > 0, z + 1, np.exp(z))


Case = Callable[[Chance, Numbers], tuple[Module, Numbers]]


def linear(chance: Chance, X: Numbers) -> tuple[Module, Numbers]:
    q, k, v = chance(D, 2), chance(D, 2), chance(D, D_V)
    return LinearAttention(q, k, v), (X @ q) @ (X @ k).T @ (X @ v)


def linear_causal(chance: Chance, X: Numbers) -> tuple[Module, Numbers]:
    q, k, v = chance(D, 2), chance(D, 2), chance(D, D_V)
    return LinearAttention(q, k, v, mask="causal"), np.tril((X @ q) @ (X @ k).T) @ (X @ v)


def katharopoulos(chance: Chance, X: Numbers) -> tuple[Module, Numbers]:
    q, k, v = chance(D, 2), chance(D, 2), chance(D, D_V)
    queries, keys = elu_plus_one(X @ q), elu_plus_one(X @ k)
    # The linear form: sums over keys are formed once.
    expected = queries @ (keys.T @ (X @ v)) / (queries @ keys.sum(axis=0))[:, None]
    return LinearAttention(q, k, v, feature_map="elu+1"), expected


def katharopoulos_causal(chance: Chance, X: Numbers) -> tuple[Module, Numbers]:
    q, k, v = chance(D, 2), chance(D, 2), chance(D, D_V)
    queries, keys, values = elu_plus_one(X @ q), elu_plus_one(X @ k), X @ v
    rows = []
    for i in range(N):
        state, norm = keys[: i + 1].T @ values[: i + 1], keys[: i + 1].sum(axis=0)
        rows.append(queries[i] @ state / (queries[i] @ norm))
    return LinearAttention(q, k, v, feature_map="elu+1", mask="causal"), np.array(rows)


def linformer(chance: Chance, X: Numbers) -> tuple[Module, Numbers]:
    q, k, v, e, f = chance(D, 2), chance(D, 2), chance(D, D_V), chance(2, N), chance(2, N)
    return Linformer(q, k, v, e, f), softmax((X @ q) @ (e @ X @ k).T) @ (f @ X @ v)


def performer(chance: Chance, X: Numbers) -> tuple[Module, Numbers]:
    q, k, v, omega = chance(D, 2), chance(D, 2), chance(D, D_V), chance(5, 2)

    def feature(z: Numbers) -> Numbers:
        return np.array([[np.exp(w @ x - x @ x / 2) / np.sqrt(5) for w in omega] for x in z])

    queries, keys = feature(X @ q), feature(X @ k)
    return Performer(q, k, v, omega), queries @ (keys.T @ (X @ v)) / (queries @ keys.sum(0))[:, None]


def sumformer(chance: Chance, X: Numbers) -> tuple[Module, Numbers]:
    phi, x, total, v = chance(D, 3), chance(D, 4), chance(3, 4), chance(4, D_V)
    added = sum(np.tanh(row @ phi) for row in X)
    return Sumformer(phi, x, total, v, activation="tanh"), np.tanh(X @ x + added @ total) @ v


CASES = (linear, linear_causal, katharopoulos, katharopoulos_causal, linformer, performer, sumformer)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("recipe", ["fetch", "paper"])
def test_against_their_definitions(case: Case, recipe: str) -> None:
    for seed in range(3):
        chance = Chance(seed)
        X = chance(N, D)
        T, expected = case(chance, X)
        assert distance(T(X), expected) <= 1e-12
        U = UniversalSimulator.of(T, N, recipe=recipe)
        assert distance(U(T, X), expected) <= 1e-12
        assert all(step.error <= 1e-12 for step in U.explain(T, X))


@pytest.mark.parametrize("kind", ["factored", "linear", "linformer", "performer", "sumformer"])
def test_heads_and_encoders_of_every_kind(kind: str) -> None:
    generator = np.random.default_rng(1)
    U = UniversalSimulator(Order.of(3, 3, 3, heads=2, feed_forward=(4, 2), kind=kind))
    before = U.hash
    for _ in range(2):
        T, X = random_module(U.order, generator), generator.normal(size=(3, 3))
        assert distance(U(T, X), T(X)) <= 1e-12
    assert U.hash == before


def test_biases_of_the_kinds() -> None:
    chance, X = Chance(2), Chance(3)(N, D)
    rows = D + 1
    linear = LinearAttention(chance(rows, 2), chance(rows, 2), chance(rows, 2), biased=True)
    modules: list[Module] = [
        linear,
        Linformer(
            chance(rows, 2), chance(rows, 2), chance(rows, 2), chance(2, N), chance(2, N), biased=True
        ),
        Sumformer(chance(rows, 2), chance(rows, 3), chance(2, 3), chance(3, 2), biased=True),
    ]
    for T in modules:
        assert distance(UniversalSimulator.of(T, N)(T, X), T(X)) <= 1e-12
    ones = np.hstack([X, np.ones((N, 1))])
    plain = LinearAttention(linear.W_Q, linear.W_K, linear.V)
    assert distance(linear(X), plain(ones)) == 0


@pytest.mark.parametrize("scale", [{}, {"scale": 0.5}, {"scale": 0.25}])
def test_the_performer_approximates_softmax_attention(scale: dict[str, Any]) -> None:
    chance = Chance(4)
    X, q, k, v = chance(5, 4), 0.2 * chance(4, 4), 0.2 * chance(4, 4), chance(4, 2)
    expected = Attention.from_projections(q, k, v, **scale)(X)
    errors = []
    for features in (16, 4096):
        drawn = [orthogonal_features(features, 4, chance.generator) for _ in range(10)]
        errors.append(
            np.mean(
                [np.abs(Performer(q, k, v, omega, **scale)(X) - expected).mean() for omega in drawn]
            )
        )
    # A bias, as of directions that are not uniform, would stop the error from falling as m^(−1/2).
    assert errors[1] < errors[0] / 8


def test_the_scale_of_the_performer() -> None:
    chance = Chance(6)
    X, q, k, v, omega = chance(N, D), chance(D, 4), chance(D, 4), chance(D, D_V), chance(3, 4)
    scaled = Performer(q, k, v, omega, scale=4**-0.5)
    assert distance(scaled(X), Performer(4**-0.25 * q, 4**-0.25 * k, v, omega)(X)) == 0
    assert distance(UniversalSimulator.of(scaled, N)(scaled, X), scaled(X)) <= 1e-12
    for wrong in (0, -1, float("inf"), "1"):
        with pytest.raises(GraphError, match="scale: expected a finite number > 0"):
            Performer(q, k, v, omega, scale=cast(Any, wrong))


def test_orthogonal_features_are_orthogonal() -> None:
    omega = orthogonal_features(6, 4, np.random.default_rng(0))
    gram = omega[:4] @ omega[:4].T
    assert omega.shape == (6, 4)
    assert distance(gram, np.diag(np.diag(gram))) <= 1e-12


def test_the_sumformer_does_not_mind_the_order_of_rows() -> None:
    chance = Chance(5)
    T = Sumformer(chance(3, 2), chance(3, 3), chance(2, 3), chance(3, 2))
    U, X, order = UniversalSimulator.of(T, 4), chance(4, 3), [2, 0, 3, 1]
    assert distance(U(T, X[order]), U(T, X)[order]) <= 1e-12


def test_wrong_shapes_of_the_kinds() -> None:
    with pytest.raises(InputError, match="W_K: expected 2×3"):
        LinearAttention(np.ones((2, 3)), np.ones((2, 2)), np.ones((2, 1)))
    with pytest.raises(InputError, match="F: expected 2×4"):
        Linformer(np.eye(2), np.eye(2), np.eye(2), np.ones((2, 4)), np.ones((2, 3)))
    T = Linformer(np.eye(2), np.eye(2), np.eye(2), np.ones((1, 4)), np.ones((1, 4)))
    with pytest.raises(InputError, match="E: expected 3 columns"):
        T(np.ones((3, 2)))
    with pytest.raises(InputError, match="E: expected 1×3"):
        UniversalSimulator.of(T, 3)(T, np.ones((3, 2)))
    with pytest.raises(InputError, match="expected a causal mask or no mask"):
        LinearAttention(np.eye(2), np.eye(2), np.eye(2), mask=np.eye(2))
    with pytest.raises(GraphError, match="mask of kind performer: expected one of None"):
        UniversalSimulator(Order.of(2, 2, 2, kind="performer", mask="causal"))
    with pytest.raises(GraphError, match="pooling: expected 'softmax' for kind linear"):
        UniversalSimulator(Order.of(2, 2, 2, kind="linear", pooling="unique"))


@pytest.mark.parametrize(("n", "d"), [(3, 3), (2, 3), (4, 2), (2, 4), (3, 5)])
def test_the_inverse_form(n: int, d: int) -> None:
    chance, U = Chance(n + d), UniversalSimulator(n, d, d, recipe="inverse")
    for _ in range(3):
        # Well away from singular: the error grows with the condition of A and V.
        T, X = Attention(np.eye(d) + 0.3 * chance(d, d), np.eye(d) + 0.3 * chance(d, d)), chance(n, d)
        assert distance(U(T, X), T(X)) <= 1e-12
        assert {"XAV", "((AV)ᵀV)⁻¹", "(AV)⁻¹V"} <= {step.name for step in U.explain(T, X)}


def test_the_inverse_form_needs_inverses() -> None:
    U, X = UniversalSimulator(2, 2, 2, recipe="inverse"), np.eye(2)
    for T in (Attention(np.ones((2, 2)), np.eye(2)), Attention(np.eye(2), np.zeros((2, 2)))):
        with pytest.raises(LocumError, match="expected non-singular A and V"):
            U(T, X)
    with pytest.raises(LocumError, match="expected non-singular A and V"):
        figure2(recipe="inverse")  # the figure's own A has rank 2
    with pytest.raises(GraphError, match="d = d_v"):
        UniversalSimulator(2, 2, 1, recipe="inverse")
    with pytest.raises(GraphError, match="there are 2 heads"):
        UniversalSimulator(Order.of(2, 2, 2, heads=2), recipe="inverse")


def test_stacks() -> None:
    chance = Chance(6)
    first = Encoder(chance.heads(3, 2, 2), chance(3, 4), chance(4, 3), norm="post")
    second = Encoder(chance.attention(3, 3), chance(3, 3), chance(3, 2))
    third = chance.attention(2, 1)
    modules, X = [first, second, third], chance(3, 3)
    stack = Stack([UniversalSimulator.of(T, 3) for T in modules])
    assert distance(stack(modules, X), third(second(first(X)))) <= 1e-12
    assert stack.hash == Stack.of(modules, 3).hash
    layers = [simulator.architecture.layers for simulator in stack.simulators]
    assert stack.architecture.layers <= sum(layers)
    assert stack.layout.entry(9).startswith("1: A")


def test_stacks_that_do_not_fit() -> None:
    with pytest.raises(GraphError, match="takes 2×3, as the one before gives, got one that takes 2×2"):
        Stack([UniversalSimulator(2, 2, 3), UniversalSimulator(2, 2, 2)])
    with pytest.raises(GraphError, match="got an empty list"):
        Stack([])
    T = Attention(np.eye(2), np.eye(2))
    stack = Stack.of([T, T], 2)
    with pytest.raises(InputError, match="expected 2 T's, got 1"):
        stack([T], np.eye(2))
    with pytest.raises(InputError, match="of order"):
        stack([T, MultiHeadAttention([T, T])], np.eye(2))


class MeanAttention(AttentionModule):
    """The mean of Y V, for every query."""

    def __init__(self, V: Numbers) -> None:
        self.V = V

    def attention_order(self) -> AttentionOrder:
        return AttentionOrder("mean", *self.V.shape)

    def matrices(self) -> dict[str, list[Array]]:
        return {"V": [self.V]}

    def steps(self, X: Array, memory: Array | None = None) -> dict[str, Numbers]:
        values = np.asarray(X) @ self.V
        return {"XV": values, "output": np.tile(values.mean(axis=0), (len(values), 1))}


def test_a_new_kind_is_a_row_and_a_formula(monkeypatch: pytest.MonkeyPatch) -> None:
    def blocks(order: AttentionOrder, m: int) -> list[Block]:
        return [Block("V", order.d, order.d_v, order.heads)]

    def mean_head(order: AttentionOrder, X: Matrix, Y: Matrix, of: Of, style: Style) -> Steps:
        values = style.matmul(Y, of("V"))
        each = Matrix(constant(1 / 4), X.rows, X.rows, reads=0)
        return {"XV": values, "output": style.matmul(each, values)}

    monkeypatch.setitem(KINDS, "mean", Kind(MeanAttention, blocks, settings={}))
    monkeypatch.setitem(HEADS, "mean", mean_head)
    order = Order.of(4, 3, 2, kind="mean")
    T = random_module(order, np.random.default_rng(0))
    X = Chance(7)(4, 3)
    assert isinstance(T, MeanAttention)
    for executor in ("dense", "auto"):
        assert distance(UniversalSimulator(order)(T, X, executor=executor), T(X)) <= 1e-13
    with pytest.raises(GraphError, match="width: expected none, as kind mean has no such size"):
        Order.of(4, 3, 2, kind="mean", width=2)
