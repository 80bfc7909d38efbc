"""U of width 1, and how many heads the recipes of U have."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from locum.errors import ExecutionError, GraphError
from locum.paper import figure2
from locum.simulators import (
    Attention,
    Encoder,
    MultiHeadAttention,
    Order,
    UniversalSimulator,
)
from tests.old.compiler.selectors import distinct_selectors, empty_selections
from tests.simulators.random_modules import Chance, distance, simulator
from tests.simulators.test_universal import ORDERS


def width_one(n: int, d: int, d_v: int, **options: Any) -> UniversalSimulator:
    return simulator(n, d, d_v, recipe="width-1", **options)


@pytest.mark.parametrize("order", [*ORDERS, (9, 2, 2), (7, 1, 3)])
def test_three_heads_at_every_order(order: tuple[int, int, int]) -> None:
    n, d, d_v = order
    chance, U = Chance(n * 100 + d * 10 + d_v), width_one(*order)
    assert U.architecture.heads == distinct_selectors(U.program) == [1, 1, 1]
    for scale in (0.1, 1.0, 2.0):
        T, X = chance.attention(d, d_v), scale * chance(n, d)
        assert distance(U(T, X, executor="dense"), T(X)) <= 1e-12
        if np.abs(X @ T.A @ X.T).max() < 36:  # exponentials beyond 2⁵³ are left to dense execution
            assert distance(U(T, X), T(X)) <= 1e-12


def test_no_blanks_where_n_is_at_most_d() -> None:
    for n, d, d_v in ORDERS:
        U = width_one(n, d, d_v)
        tokens = n * d + d * d + d * d_v
        assert U.length >= tokens
        if n <= d:
            assert U.length == max(tokens, n * d_v)
    assert width_one(6, 3, 3).length == 54  # X, XA (or the scores), XV


def test_every_query_finds_keys_and_results_are_0_elsewhere() -> None:
    for order in ((3, 3, 3), (5, 2, 4), (2, 4, 1)):
        U, (n, d, d_v) = width_one(*order), order
        chance = Chance(5)
        T, X = chance.attention(d, d_v), chance(n, d)
        tokens = U.encode(T, X)
        assert empty_selections(U.program, tokens.tolist()) == 0
        scores = dict(U.each_step())["scores"].sop(tokens.tolist())
        assert set(scores[n * n :]) <= {0}
        assert set(U.program(tokens.tolist())[n * d_v :]) <= {0}


@pytest.mark.parametrize("base", [None, 2.718, 0.5])
def test_masks_and_bases(base: float | None) -> None:
    chance = Chance(3)
    T, X = chance.attention(3, 2, mask="causal"), chance(4, 3)
    U = width_one(4, 3, 2, mask="causal", base=base)
    weights = np.tril((np.e if base is None else base) ** (X @ T.A @ X.T))
    expected = weights / weights.sum(axis=1, keepdims=True) @ (X @ T.V)
    assert distance(U(T, X, executor="dense"), expected) <= 1e-12
    assert U.architecture.heads == [1, 1, 1]


def test_every_step_is_explained() -> None:
    chance, U = Chance(8), width_one(4, 3, 2)
    result = U.explain(chance.attention(3, 2), chance(4, 3))
    assert [step.name for step in result] == ["XA", "Xᵀ", "scores", "softmax", "XV", "output"]
    assert max(step.error for step in result) <= 1e-13


def test_heads_encoders_and_smaller_modules() -> None:
    chance = Chance(11)
    T, X = MultiHeadAttention([chance.attention(3, 2) for _ in range(3)]), chance(4, 3)
    U = width_one(4, 3, 2, heads=3)
    assert distance(U(T, X), T(X)) <= 1e-12
    assert U.architecture.heads == [3, 1, 1, 1]  # A and V of each head; the heads side by side
    encoder = Encoder(chance.attention(3, 3), chance(3, 5), chance(5, 3), norm="post")
    U = UniversalSimulator.of(encoder, 4, recipe="width-1")
    assert distance(U(encoder, X), encoder(X)) <= 1e-11
    small, rows = chance.attention(2, 1), chance(3, 2)
    assert distance(width_one(4, 3, 2).embed(small, rows), small(rows)) <= 1e-12


def test_the_figure() -> None:
    U = width_one(3, 3, 3, base=2.718)
    assert f"{distance(U(figure2.T, figure2.X), figure2.T(figure2.X)):.6e}" == "3.040329e-07"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"stable": True}, "a stable softmax needs another"),
        ({"mask": "matrix"}, "requires a causal mask or no mask"),
        ({"bias": True}, "without biases"),
        ({"memory": 2}, "self-attention"),
        ({"kind": "linear"}, "softmax attention"),
        ({"pooling": "average"}, "softmax attention"),
    ],
)
def test_what_has_no_width_1(options: dict[str, Any], words: str) -> None:
    with pytest.raises(GraphError, match=words):
        width_one(3, 3, 3, **options)


def test_large_scores_overflow_and_the_error_says_what_helps() -> None:
    T, X = Attention(1e4 * np.eye(2), np.eye(2)), np.array([[1.0, 0.0], [0.0, -1.0]])
    with pytest.raises(ExecutionError, match=r"too large.*all recipes but paper and width-1"):
        width_one(2, 2, 2)(T, X)


# The other recipes ------------------------------------------------------------------------------------

#: Heads in each attention layer, with the plain softmax.
COUNTS = {
    ("paper", (3, 3, 3)): [10, 12, 6, 9, 3, 3, 9],
    ("paper", (4, 4, 4)): [13, 20, 8, 16, 4, 4, 16],
    ("fetch", (3, 3, 3)): [12, 6, 3],
    ("fetch", (4, 4, 4)): [16, 8, 4],
    ("tiled", (3, 3, 3)): [7, 1, 3, 1, 1, 1, 1],
    ("width-1", (3, 3, 3)): [1, 1, 1],
    ("width-1", (8, 16, 16)): [1, 1, 1],
}


@pytest.mark.parametrize(("recipe", "order"), COUNTS)
def test_heads_of_the_recipes(recipe: str, order: tuple[int, int, int]) -> None:
    U = UniversalSimulator(*order, recipe=recipe, stable=False)
    assert U.architecture.heads == distinct_selectors(U.program) == COUNTS[recipe, order]


@pytest.mark.parametrize("mask", [None, "causal"])
@pytest.mark.parametrize("order", [(1, 1, 1), (3, 3, 3), (5, 2, 2), (2, 5, 3), (4, 2, 5)])
def test_the_plain_fetch_recipe_divides_last(order: tuple[int, int, int], mask: str | None) -> None:
    n, d, d_v = order
    chance, U = Chance(2), UniversalSimulator(Order.of(*order, mask=mask), stable=False)
    T, X = chance.attention(d, d_v, mask=mask), chance(n, d)
    assert distance(U(T, X, executor="dense"), T(X)) <= 1e-12
    assert distance(U(T, X), T(X)) <= 1e-12
    assert U.architecture.layers == 3
    assert empty_selections(U.program, U.encode(T, X).tolist()) == 0


def test_rows_that_see_nothing_stay_0_in_the_plain_form() -> None:
    chance, mask = Chance(4), np.array([[1, 0], [0, 0]])
    T, X = chance.attention(2, 2, mask=mask), chance(2, 2)
    U = UniversalSimulator.of(T, 2, stable=False)
    assert distance(U(T, X), T(X)) <= 1e-13
    assert set(U(T, X)[1]) == {0}
