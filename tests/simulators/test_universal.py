"""U on random T's: one program per order, and T(X) out of it."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest

import locum
from locum.errors import ExecutionError, GraphError, InputError, LocumError
from locum.simulators import (
    Attention,
    Encoder,
    Explanation,
    MultiHeadAttention,
    Order,
    Stack,
    UniversalSimulator,
)
from tests.simulators.random_modules import Chance, distance, simulator

#: 50 orders: square, tall, wide, and n larger than d and d_v.
ORDERS = [
    (n, d, d_v)
    for n, d, d_v in itertools.product(range(1, 6), repeat=3)
    if (n + 2 * d + 3 * d_v) % 5 < 2
]


def test_there_are_fifty_orders() -> None:
    assert len(ORDERS) == 50
    assert any(n > max(d, d_v) for n, d, d_v in ORDERS)
    assert {(5, 5, 5), (1, 5, 3)} & set(ORDERS)


@pytest.mark.parametrize("order", ORDERS)
def test_theorem_1(order: tuple[int, int, int]) -> None:
    n, d, d_v = order
    chance, U = Chance(n * 100 + d * 10 + d_v), UniversalSimulator(*order)
    before = U.hash
    for scale in (0.1, 1.0, 3.0):
        T, X = chance.attention(d, d_v), scale * chance(n, d)
        assert distance(U(T, X), T(X)) <= 1e-13
    assert U.hash == before
    assert UniversalSimulator(*order).program is U.program


@pytest.mark.parametrize("recipe", ["paper", "tiled"])
@pytest.mark.parametrize("order", [(3, 3, 3), (5, 2, 2), (2, 5, 3), (4, 2, 5)])
def test_recipes_agree(order: tuple[int, int, int], recipe: str) -> None:
    n, d, d_v = order
    chance, U = Chance(7), UniversalSimulator(*order, recipe=recipe)
    T, X = chance.attention(d, d_v), chance(n, d)
    assert distance(U(T, X), T(X)) <= 1e-13


def test_layers_and_heads() -> None:
    paper = UniversalSimulator(3, 3, 3, recipe="paper").architecture
    assert paper.layers == 7
    assert all(ours <= its for ours, its in zip(paper.heads, [13, 21, 6, 9, 3, 3, 9], strict=True))
    assert UniversalSimulator(3, 3, 3, recipe="fetch").architecture.layers <= 5
    # Depth does not depend on the order.
    assert UniversalSimulator(5, 4, 2, recipe="paper").architecture.layers == 7
    assert UniversalSimulator(5, 4, 2).architecture.layers <= 5


def test_the_program_depends_on_the_order_alone() -> None:
    U = UniversalSimulator(2, 3, 1)
    seen = set()
    for seed in range(3):
        chance = Chance(seed)
        U(chance.attention(3, 1), chance(2, 3))
        seen.add(locum.rasp.stable_hash(U.program))
    assert seen == {
        U.hash,
        locum.rasp.stable_hash(UniversalSimulator.of(Chance(9).attention(3, 1), 2).program),
    }
    assert UniversalSimulator(2, 3, 2).hash not in seen


def test_large_scores_are_safe_and_the_paper_form_is_not() -> None:
    T, X = Attention(1e4 * np.eye(2), np.eye(2)), np.array([[1.0, 0.0], [0.0, -1.0]])
    assert distance(UniversalSimulator(2, 2, 2)(T, X), T(X)) == 0
    with pytest.raises(
        ExecutionError, match=r"too large.*stable=True.*recipe=.fetch.*, in the softmax"
    ):
        UniversalSimulator(2, 2, 2, recipe="paper")(T, X)


@pytest.mark.parametrize("heads", [1, 2, 3, 4])
def test_heads_side_by_side(heads: int) -> None:
    chance = Chance(heads)
    T, X = MultiHeadAttention([chance.attention(3, 2) for _ in range(heads)]), chance(4, 3)
    U = UniversalSimulator(Order.of(4, 3, 2, heads=heads))
    assert U(T, X).shape == (4, 2 * heads)
    assert distance(U(T, X), T(X)) <= 1e-12
    assert distance(T(X), np.hstack([head(X) for head in T.heads])) == 0


@pytest.mark.parametrize("heads", [1, 2, 3, 4])
def test_heads_projected_and_added(heads: int) -> None:
    chance = Chance(heads)
    X = chance(3, 4)
    for T in (
        chance.heads(4, 2, heads),
        chance.heads(4, 2, heads, biases=False),
        MultiHeadAttention([chance.attention(4, 4) for _ in range(heads)], combine="sum"),
    ):
        U = UniversalSimulator.of(T, 3)
        assert distance(U(T, X), T(X)) <= 1e-12


def test_the_program_does_not_grow_with_the_heads() -> None:
    few, many = (UniversalSimulator(Order.of(3, 4, 2, heads=h, residual=True)) for h in (2, 16))
    assert many.program.depth == few.program.depth


@pytest.mark.parametrize("norm", ["none", "post", "pre"])
@pytest.mark.parametrize("feed_forward", [False, True])
@pytest.mark.parametrize("heads", [1, 3])
def test_encoders(norm: str, feed_forward: bool, heads: int) -> None:
    chance = Chance(heads)
    attention = chance.attention(4, 4) if heads == 1 else chance.heads(4, 2, heads)
    norms = (1 + feed_forward) * (norm != "none")
    options: dict[str, Any] = {f"norm{number}": chance.norm(4) for number in range(1, norms + 1)}
    if feed_forward:
        weights = (chance(4, 5), chance(5, 4), chance(5), chance(4))
        T = Encoder(attention, *weights, norm=norm, **options)
    else:
        T = Encoder(attention, norm=norm, **options)
    X, U = chance(3, 4), UniversalSimulator.of(T, 3)
    assert distance(U(T, X), T(X)) <= 1e-12
    assert U.explain(T, X).error <= 1e-12


@pytest.mark.parametrize("activation", ["relu", "gelu", "silu", "tanh", "sigmoid", "leaky_relu"])
def test_activations(activation: str) -> None:
    chance = Chance(3)
    T = Encoder(chance.attention(3, 3), chance(3, 4), chance(4, 2), activation=activation)
    U = UniversalSimulator(Order.of(2, 3, 3, feed_forward=(4, 2), activation=activation))
    X = chance(2, 3)
    assert distance(U(T, X), T(X)) <= 1e-12


def test_the_corollary_as_the_paper_has_it() -> None:
    chance = Chance(4)
    A, V, W1, W2, X = chance(3, 3), chance(3, 3), chance(3, 4), chance(4, 2), chance(4, 3)
    T = Encoder(Attention(A, V), W1, W2)
    e = np.exp(X @ A @ X.T)
    expected = np.maximum((X + e / e.sum(1, keepdims=True) @ X @ V) @ W1, 0) @ W2
    assert distance(T(X), expected) <= 1e-13
    assert distance(UniversalSimulator(Order.of(4, 3, 3, feed_forward=(4, 2)))(T, X), expected) <= 1e-12


@pytest.mark.parametrize("mask", ["causal", "matrix"])
def test_masks(mask: str) -> None:
    chance = Chance(5)
    kept = np.array([[1, 0, 1], [1, 1, 0], [0, 0, 1]])
    T = chance.attention(2, 2, mask=kept if mask == "matrix" else mask)
    X, U = chance(3, 2), UniversalSimulator(Order.of(3, 2, 2, mask=mask))
    assert distance(U(T, X), T(X)) <= 1e-13
    changed = X + np.array([[0, 0], [0, 0], [5.0, 0]])
    if mask == "causal":
        assert distance(U(T, changed)[:2], T(X)[:2]) <= 1e-13


def test_hard_attention_unique_and_average() -> None:
    # Keys 0 and 2 tie: unique takes the first, average the mean of both.
    A, V = np.eye(2), np.array([[1.0], [10.0]])
    X = np.array([[1.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.0, 2.0]])
    for pooling in ("average", "unique"):
        T = Attention(A, V, pooling=pooling)
        U = UniversalSimulator(Order.of(4, 2, 1, pooling=pooling))
        assert distance(U(T, X), T(X)) == 0
    assert Attention(A, V, pooling="average")(X)[1, 0] == pytest.approx((11 + 1 + 11) / 3)
    assert Attention(A, V, pooling="unique")(X)[1, 0] == 11
    # Average hard attention is what softmax tends to.
    assert distance(Attention(1e3 * A, V)(X), Attention(A, V, pooling="average")(X)) <= 1e-12


def test_cross_attention() -> None:
    chance = Chance(6)
    T, X, M = chance.attention(3, 2), chance(2, 3), chance(4, 3)
    U = UniversalSimulator(Order.of(2, 3, 2, memory=4))
    assert distance(U(T, X, M), T(X, M)) <= 1e-13
    wide = Attention(chance(3, 5), chance(5, 2))
    U = UniversalSimulator.of(wide, 2, memory=4)
    memory = chance(4, 5)
    assert distance(U(wide, X, memory), wide(X, memory)) <= 1e-13


def test_tokens_and_layout() -> None:
    chance = Chance(8)
    T, X = MultiHeadAttention([chance.attention(2, 3) for _ in range(2)]), chance(3, 2)
    U = UniversalSimulator(Order.of(3, 2, 3, heads=2))
    tokens = U.encode(T, X)
    assert tokens.shape == (U.length,)
    second: Attention = T.heads[1]  # type: ignore[assignment]
    assert tokens[U.layout.position("V", 1, 2, head=1)] == second.V[1, 2]
    assert U.layout.entry(U.layout.position("A", 1, 0, head=1)) == "A[1][1, 0]"
    result = U.program(tokens)
    assert distance(U.decode(result), T(X)) <= 1e-13
    assert "U for T of order (3, 2, 3), 2 heads" in U.describe()
    assert U.layout.entry(10**6) == "blank"


def test_room_is_made_where_a_product_needs_it() -> None:
    U = UniversalSimulator(5, 2, 2)  # the paper's own condition does not hold
    assert U.length == 25 > U.layout.size
    assert U.layout.entry(U.layout.size) == "blank"


def test_explain_walks_the_steps() -> None:
    chance = Chance(9)
    T, X = chance.attention(3, 2), chance(4, 3)
    explanation = UniversalSimulator(4, 3, 2).explain(T, X)
    assert [step.name for step in explanation] == ["XA", "Xᵀ", "scores", "softmax", "XV", "output"]
    assert all(step.error <= 1e-13 for step in explanation)
    assert distance(explanation["Xᵀ"].matrix, X.T) == 0
    assert distance(explanation["scores"].matrix, X @ T.A @ X.T) <= 1e-13
    assert "softmax (4×4)" in str(explanation)
    assert isinstance(explanation, Explanation)


def test_explain_counts_heads() -> None:
    chance = Chance(10)
    T = chance.heads(4, 2, 2)
    names = [step.name for step in UniversalSimulator.of(T, 2).explain(T, chance(2, 4))]
    assert names[:3] == ["XA[0]", "Xᵀ[0]", "scores[0]"]
    assert "softmax[1]" in names
    assert "head[1]" in names
    assert names[-1] == "output"


def test_wrong_shapes() -> None:
    with pytest.raises(InputError, match="V: expected 3 rows, got 2×2"):
        Attention(np.eye(3), np.eye(2))
    with pytest.raises(InputError, match="A: expected a matrix"):
        Attention(np.ones(3), np.eye(3))
    with pytest.raises(InputError, match="ragged"):
        Attention([[1.0], [1.0, 2.0]], np.eye(2))
    with pytest.raises(InputError, match="real numbers"):
        Attention([["a"]], [[1.0]])
    T, U = Attention(np.eye(3), np.eye(3)), UniversalSimulator(2, 3, 3)
    with pytest.raises(InputError, match="X: expected 2×3, got 3×3"):
        U(T, np.eye(3))
    with pytest.raises(InputError, match="X: expected 3 columns"):
        T(np.eye(2))
    with pytest.raises(InputError, match="W1: expected 3 rows"):
        Encoder(T, np.eye(2), np.eye(2))
    with pytest.raises(InputError, match="both or neither"):
        Encoder(T, W1=np.eye(3))
    with pytest.raises(GraphError, match="E19"):
        Encoder(Attention(np.eye(3), np.ones((3, 2)))).order(2)
    with pytest.raises(InputError, match="single heads of one order"):
        MultiHeadAttention([T, Attention(np.eye(2), np.eye(2))])
    with pytest.raises(InputError, match="got an empty list"):
        MultiHeadAttention([])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_none(bad: float) -> None:
    spoiled = np.eye(2)
    spoiled[1, 0] = bad
    with pytest.raises(InputError, match=r"A has .* at \[1, 0\]"):
        Attention(spoiled, np.eye(2))
    with pytest.raises(InputError, match=r"X has .* at \[1, 0\]"):
        UniversalSimulator(2, 2, 2)(Attention(np.eye(2), np.eye(2)), spoiled)


def test_a_t_of_another_order() -> None:
    U, X = UniversalSimulator(2, 2, 2), np.eye(2)
    with pytest.raises(InputError, match="d_v 3 instead of 2"):
        U(Attention(np.eye(2), np.ones((2, 3))), X)
    with pytest.raises(InputError, match="mask causal instead of None"):
        U(Attention(np.eye(2), np.eye(2), mask="causal"), X)
    with pytest.raises(InputError, match="T: expected an Attention"):
        U("attention", X)  # type: ignore[call-overload]


def test_orders_that_are_none() -> None:
    for order in ((0, 1, 1), (1, -1, 1), (1, 1.5, 1), (True, 1, 1)):
        with pytest.raises(GraphError, match="expected an integer ≥ 1"):
            UniversalSimulator(*order)
    with pytest.raises(GraphError, match="kind: expected one of softmax"):
        UniversalSimulator(Order.of(1, 1, 1, kind="quadratic"))
    with pytest.raises(GraphError, match="recipe: expected one of"):
        UniversalSimulator(1, 1, 1, recipe="best")
    with pytest.raises(GraphError, match="E19"):
        UniversalSimulator(Order.of(2, 3, 2, feed_forward=(2, 2)))
    with pytest.raises(GraphError, match="two integers"):
        UniversalSimulator(Order.of(2, 2, 2, feed_forward=(2,)))
    with pytest.raises(GraphError, match='mask="matrix" here'):
        UniversalSimulator(Order.of(2, 2, 2, mask=np.eye(2)))
    with pytest.raises(GraphError, match="decoder layer"):
        UniversalSimulator(Order.of(2, 2, 2, memory=3, feed_forward=(2, 2)))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"base": "e"}, "base: expected a finite number > 0"),
        ({"base": np.inf}, "base: expected a finite number > 0"),
        ({"base": 2.0, "kind": "linear"}, "softmax attention, got linear; try it without base"),
        (
            {"base": 2.0, "pooling": "unique"},
            "softmax attention, got unique pooling; try it without base",
        ),
        ({"width": 0, "kind": "linear"}, "width: expected an integer ≥ 1, got 0"),
        ({"width": 7}, "width: expected none, as kind softmax has no such size, got 7"),
        ({"feature_map": "elu+1"}, "feature_map: expected 'identity' for kind softmax"),
        ({"affine": True}, "requires norms, but"),
        ({"feed_forward_bias": True}, "requires a feed-forward"),
        ({"mask": "rows"}, "mask: expected one of None, causal, matrix, keys, got 'rows'$"),
        ({"memory": -1}, "memory: expected an integer ≥ 0"),
        ({"memory": 2.5}, "memory: expected an integer ≥ 0"),
    ],
)
def test_options_that_no_t_has(options: dict[str, Any], words: str) -> None:
    with pytest.raises(GraphError, match=words):
        simulator(3, 2, 2, **options)


def test_what_is_not_what_it_should_be_is_said() -> None:
    U, T, X = UniversalSimulator(3, 2, 2), Chance(0).attention(2, 2), Chance(1)(3, 2)
    anything: Any = T
    eye: Any = np.eye(2)
    cases: list[tuple[Callable[[], object], str]] = [
        (lambda: U.embed(eye, X), "T: expected an Attention"),
        (lambda: U(anything, anything), "X: expected real numbers"),
        (lambda: U(X, anything), "expected T as the first argument"),  # type: ignore[call-overload]
        (lambda: U.embed(X, anything), "expected T as the first argument"),  # type: ignore[arg-type]
        (lambda: U(T, np.ones((0, 2))), "X: expected 3×2, got 0×2"),
        (lambda: Stack([anything]), "expected UniversalSimulators, got Attention"),
        (lambda: Stack(anything), "expected a list of simulators"),
        (lambda: Stack([U])(anything, X), "expected a list of T's"),
        (lambda: MultiHeadAttention([eye, eye]), "expected attentions, such as"),
        (lambda: MultiHeadAttention(anything), "expected a list of attentions as heads"),
        (lambda: U.explain(T, X)["nope"], "expected one of the steps XA, Xᵀ"),
        (
            lambda: Attention.from_projections(eye, eye, eye, scale=cast(Any, "x")),
            "scale: expected a finite number",
        ),
        (
            lambda: Attention.from_projections(eye, eye, eye, biases=cast(Any, 3)),
            "three vectors, got 3",
        ),
        (lambda: U.decode("abc"), "a sequence of numbers"),
        (
            lambda: Attention(eye, eye, mask=np.triu(np.full((3, 3), -np.inf), 1)),
            "not added to the scores",
        ),
        (
            lambda: Attention(eye, eye, mask=np.triu(np.full((3, 3), -1e9), 1)),
            "not added to the scores",
        ),
        (lambda: UniversalSimulator(3, 2, 2, recipe="inverse").embed(T, X[:2]), "inverse construction"),
    ]
    for attempt, words in cases:
        with pytest.raises(LocumError, match=words):
            attempt()


def test_a_module_that_is_changed_has_another_order() -> None:
    U, T, X = UniversalSimulator(3, 2, 2), Chance(0).attention(2, 2), Chance(1)(3, 2)
    assert distance(U(T, X), T(X)) <= 1e-13
    T.mask = "causal"
    with pytest.raises(InputError, match="mask causal instead of None"):
        U(T, X)


def test_a_module_does_not_change_with_the_arrays_it_was_made_of() -> None:
    A, X = np.eye(2), Chance(1)(3, 2)
    T = Attention(A, A)
    before = T(X)
    A[:] = 7
    assert distance(T(X), before) == 0


def test_modules_as_text() -> None:
    chance = Chance(3)
    assert repr(chance.attention(3, 2, mask="causal")) == "Attention(d=3, d_v=2, mask='causal')"
    heads = chance.heads(4, 2, 2)
    assert repr(heads).startswith("MultiHeadAttention(d=4, d_v=2, heads=2, projection=4")
    T = Encoder(chance.attention(2, 2), chance(2, 5), chance(5, 2), norm="pre")
    assert repr(T) == "Encoder(d=2, d_v=2, feed_forward=(5, 2), norm='pre')"


def test_one_head_on_a_u_that_adds_heads_up() -> None:
    T, X = Chance(4).attention(2, 2), Chance(5)(2, 2)
    U = UniversalSimulator(Order.of(3, 3, 3, heads=2, combine="sum"))
    assert distance(U.embed(T, X), T(X)) <= 1e-13


def test_sizes_may_be_of_numpys_kind() -> None:
    n, d, heads = np.array([3, 2, 2])
    chance = Chance(11)
    T, X = MultiHeadAttention([chance.attention(2, 2) for _ in range(2)]), chance(3, 2)
    assert distance(UniversalSimulator(Order.of(n, d, d, heads=heads))(T, X), T(X)) <= 1e-13
    assert distance(UniversalSimulator.of(T, n)(T, X), T(X)) <= 1e-13


@pytest.mark.parametrize("epsilon", ["x", np.inf, 0, None])
def test_an_epsilon_that_is_none(epsilon: Any) -> None:
    with pytest.raises(GraphError, match="epsilon: expected a finite number > 0"):
        Encoder(Attention([[1.0]], [[1.0]]), norm="post", epsilon=epsilon)


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_epsilon_is_a_token_and_not_in_the_program(norm: str) -> None:
    chance = Chance(4)
    attention, X = chance.attention(3, 3), chance(2, 3)
    modules = [Encoder(attention, norm=norm, epsilon=epsilon) for epsilon in (1e-12, 0.1, 3.0)]
    U = UniversalSimulator.of(modules[0], 2)
    for T in modules:
        assert UniversalSimulator.of(T, 2).hash == U.hash
        assert distance(U(T, X), T(X)) <= 1e-13


def test_the_top_level_has_it() -> None:
    assert locum.UniversalSimulator is UniversalSimulator
    assert locum.Attention is Attention
    assert "Encoder" in dir(locum)
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        locum.Nothing  # type: ignore[attr-defined]
