"""A smaller T on a larger U: exact with a masked softmax, and not with the paper's padding."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locum.errors import InputError
from locum.simulators import (
    Attention,
    Encoder,
    LinearAttention,
    Module,
    MultiHeadAttention,
    Order,
    UniversalSimulator,
)
from locum.simulators.hierarchy import padding_formula, paper_padding
from locum.simulators.modules.module import AttentionModule
from tests.simulators.random_modules import Chance, distance

pytestmark = pytest.mark.always

#: (m, e, e_v) → (n, d, d_v)
PAIRS = [
    ((1, 1, 1), (2, 1, 1)),
    ((2, 2, 2), (3, 2, 2)),
    ((2, 2, 2), (2, 4, 2)),
    ((2, 2, 1), (4, 3, 3)),
    ((3, 2, 2), (5, 4, 4)),
    ((1, 3, 2), (4, 3, 2)),
    ((3, 3, 3), (4, 4, 4)),
    ((4, 2, 1), (5, 5, 1)),
    ((2, 1, 3), (5, 2, 4)),
    ((4, 3, 2), (4, 3, 5)),
]


@pytest.mark.parametrize(("small", "large"), PAIRS)
def test_embedding_is_exact(small: tuple[int, int, int], large: tuple[int, int, int]) -> None:
    m, e, e_v = small
    chance, U = Chance(sum(small) + sum(large)), UniversalSimulator(*large)
    for _ in range(2):
        T, X = chance.attention(e, e_v), chance(m, e)
        assert distance(U.embed(T, X), T(X)) <= 1e-13
        literal = paper_padding(U, T, X)
        assert distance(literal, padding_formula(T, X, large[0])) <= 1e-13
        assert (distance(literal, T(X)) <= 1e-13) == (m == large[0])


@pytest.mark.parametrize("score", [1e3, 1e10, 1e17, 1e200])
def test_equal_keys_with_large_scores_weigh_the_same(score: float) -> None:
    T, X = Attention([[score, 0.0], [0.0, 0.0]], [[0.0], [1.0]]), [[1.0, 0.0], [1.0, 1.0]]
    assert UniversalSimulator(3, 4, 1).embed(T, X).tolist() == [[0.5], [0.5]]


@pytest.mark.parametrize("columns", [2, 3])
def test_two_more_columns_need_no_other_program(columns: int) -> None:
    """Copies of a row, with minus the logarithm of their number among the scores, weigh as one row."""
    for m, n in ((1, 2), (2, 3), (2, 5), (3, 4), (3, 6), (4, 7)):
        chance, U = Chance(10 * m + n), UniversalSimulator(n, 2 + columns, 3)
        A, V, X = chance(2, 2), chance(2, 3), chance(m, 2)
        weights = np.exp(X @ A @ X.T)
        expected = weights / weights.sum(1, keepdims=True) @ X @ V
        assert distance(U.embed(Attention(A, V), X), expected) <= 1e-14
        assert "masked" not in vars(U)


def test_heads_and_a_residual_sum_with_two_more_columns() -> None:
    chance = Chance(5)
    T = Encoder(chance.heads(2, 2, 2, biases=False), chance(2, 4), chance(4, 2))
    U = UniversalSimulator(Order.of(5, 4, 3, heads=3, feed_forward=(5, 3), projection=4))
    X = chance(3, 2)
    assert distance(U.embed(T, X), T(X)) <= 1e-12
    assert "masked" not in vars(U)


def test_other_scores_and_fewer_columns_need_the_mask() -> None:
    chance = Chance(6)
    for U, T in (
        (UniversalSimulator(3, 3, 2), chance.attention(2, 2)),
        (
            UniversalSimulator(Order.of(3, 4, 2, pooling="average")),
            chance.attention(2, 2, pooling="average"),
        ),
    ):
        X = chance(2, 2)
        assert distance(U.embed(T, X), T(X)) <= 1e-13
        assert "masked" in vars(U)


def test_the_formula_of_the_padding_does_not_cancel() -> None:
    T, X = Attention([[-50.0]], [[1.0]]), [[1.0]]
    assert distance(padding_formula(T, X, 1), T(X)) <= 1e-15


def test_one_program_for_every_smaller_t() -> None:
    chance, U = Chance(1), UniversalSimulator(4, 3, 2)
    before = U.masked.hash
    for m, e, e_v in ((1, 1, 1), (2, 3, 2), (3, 2, 1)):
        T, X = chance.attention(e, e_v), chance(m, e)
        assert distance(U.embed(T, X), T(X)) <= 1e-13
    assert U.masked.hash == before


def test_encoders_with_fewer_heads_and_biases() -> None:
    chance = Chance(2)
    T = Encoder(
        chance.heads(3, 2, 2), chance(3, 4), chance(4, 2), chance(4), chance(2), activation="sigmoid"
    )
    U = UniversalSimulator(
        Order.of(
            5,
            4,
            3,
            heads=3,
            feed_forward=(5, 3),
            bias=True,
            output_bias=True,
            feed_forward_bias=True,
            activation="sigmoid",
        )
    )
    X = chance(3, 3)
    assert distance(U.embed(T, X), T(X)) <= 1e-12


def test_heads_side_by_side() -> None:
    chance = Chance(3)
    T = MultiHeadAttention([chance.attention(2, 1) for _ in range(2)])
    X, U = chance(2, 2), UniversalSimulator(Order.of(3, 3, 2, heads=3))
    assert distance(U.embed(T, X), T(X)) <= 1e-13


def test_a_causal_u_needs_no_other_program() -> None:
    chance = Chance(4)
    T, X = chance.attention(2, 2, mask="causal"), chance(2, 2)
    U = UniversalSimulator(Order.of(4, 3, 2, mask="causal"))
    assert distance(U.embed(T, X), T(X)) <= 1e-13
    assert "masked" not in vars(U)


def test_what_does_not_fit() -> None:
    U = UniversalSimulator(2, 2, 2)
    with pytest.raises(InputError, match="larger than U: its n is 3"):
        U.embed(Attention(np.eye(2), np.eye(2)), np.ones((3, 2)))
    with pytest.raises(InputError, match="larger than U: its d is 3"):
        U.embed(Attention(np.eye(3), np.ones((3, 1))), np.ones((1, 3)))
    with pytest.raises(InputError, match="mask is causal in T"):
        U.embed(Attention([[1.0]], [[1.0]], mask="causal"), [[1.0]])
    normed = UniversalSimulator(Order.of(2, 2, 2, norm="post"))
    with pytest.raises(InputError, match="layer norm"):
        normed.embed(Encoder(Attention([[1.0]], [[1.0]]), norm="post"), [[1.0]])


def test_the_bias_behind_heads_side_by_side_goes_to_each_head() -> None:
    head = Attention([[0.0]], [[1.0]])
    T = MultiHeadAttention([head, head], b_O=[0.0, 10.0])
    U = UniversalSimulator(Order.of(1, 1, 2, heads=2, output_bias=True))
    assert U.embed(T, [[1.0]]).tolist() == T([[1.0]]).tolist() == [[1.0, 11.0]]


def test_padded_rows_behind_a_norm_with_a_bias_do_not_count() -> None:
    T = Encoder(LinearAttention([[1.0]], [[1.0]], [[1.0]]), norm="pre", norm1=([1.0], [1.0]))
    U = UniversalSimulator(replace(T.order(1), n=2))
    assert U.embed(T, [[1.0]]).tolist() == T([[1.0]]).tolist() == [[2.0]]


def random_embedding(seed: int) -> tuple[Module, Order, int]:
    """Draw a T, the order of a U that may be larger in each size, and the number of rows of X."""
    chance = Chance(seed)

    def draw(low: int, high: int) -> int:
        return int(chance.generator.integers(low, high + 1))

    d, d_v, heads, n = (draw(1, 3) for _ in range(4))
    encoder, linear, biased, projected = (bool(draw(0, 1)) for _ in range(4))
    combine, mask = ("concatenate", "sum")[draw(0, 1)], (None, "causal")[draw(0, 1)]
    projected = projected and combine == "concatenate"
    if encoder and not projected:
        d_v, combine = d, "sum"

    def head() -> AttentionModule:
        if linear:
            return LinearAttention(chance(d, 2), chance(d, 2), chance(d, d_v), mask=mask)
        rows = d + biased
        return Attention(chance(rows, rows), chance(rows, d_v), mask=mask, biased=biased)

    W_O = chance(heads * d_v, d) if projected else None
    columns = d if projected else d_v * (heads if combine == "concatenate" else 1)
    b_O = chance(columns) if draw(0, 1) else None
    attention = MultiHeadAttention([head() for _ in range(heads)], W_O, b_O, combine=combine)
    T: Module = attention
    if encoder:
        norm = ("none", "pre", "post")[draw(0, 2)]
        W1, W2 = (chance(d, 3), chance(3, d)) if draw(0, 1) else (None, None)
        norm1 = norm2 = None
        if norm != "none" and draw(0, 1):
            norm1, norm2 = chance.norm(d), None if W1 is None else chance.norm(d)
        T = Encoder(attention, W1, W2, norm=norm, norm1=norm1, norm2=norm2)
    order = T.order(n)
    wide = d + (draw(0, 2) if order.norm == "none" else 0)
    grown = replace(order.attention, d=wide, d_v=d_v + draw(0, 2), heads=heads + draw(0, 2))
    if projected:
        grown = replace(grown, projection=wide)
    elif encoder:
        grown = replace(grown, d_v=wide)
    feed_forward = order.feed_forward and (order.feed_forward[0] + draw(0, 2), wide)
    return T, replace(order, n=n + draw(0, 2), attention=grown, feed_forward=feed_forward), n


@settings(max_examples=settings().max_examples // 2)
@given(st.integers(0, 10**6))
def test_random_embeddings_are_exact(seed: int) -> None:
    T, order, n = random_embedding(seed)
    X = Chance(n)(n, T.order(n).attention.d)
    expected = T(X)
    result = UniversalSimulator(order).embed(T, X, executor="dense")
    assert distance(result, expected) <= 1e-9 * max(1.0, float(np.abs(expected).max()))
