"""U.specialise(T): what is left of U when T is known is T itself, as an ordinary attention."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locum import aggregate, execution, full, indices, select, tokens
from locum.constructions import Matrix
from locum.errors import InputError
from locum.graph import postorder
from locum.networks.compiler.program.normalise import specialise
from locum.proofs import about
from locum.proofs.claims.formula import Formula
from locum.proofs.prover.prove import Proof, prove
from locum.simulators import Attention, Encoder, Order, UniversalSimulator

ORDERS = st.tuples(*[st.integers(1, 3)] * 3)


def random_case(order: tuple[int, int, int], seed: int) -> tuple[Attention, np.ndarray]:
    n, d, d_v = order
    rng = np.random.default_rng(seed)
    return Attention(rng.normal(size=(d, d)), rng.normal(size=(d, d_v))), rng.normal(size=(n, d))


@settings(max_examples=settings().max_examples // 7)
@given(ORDERS, st.integers(0, 10**6), st.sampled_from(["fetch", "paper", "tiled", "width-1"]))
def test_random_specialised_programs_compute_t(
    order: tuple[int, int, int], seed: int, recipe: str
) -> None:
    T, X = random_case(order, seed)
    special = UniversalSimulator(*order, recipe=recipe).specialise(T)
    for executor in ("dense", "auto"):
        assert np.abs(special(X, executor=executor) - T(X)).max() < 1e-12


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("mask", [None, "causal"])
def test_native_weights_are_those_of_t(seed: int, mask: str | None) -> None:
    order = (3, 2, 2) if seed % 2 else (2, 3, 2)
    T, X = random_case(order, seed)
    if mask:
        T = Attention(T.A, T.V, mask=mask)
    special = UniversalSimulator.of(T, order[0]).specialise(T)
    model = special.compile("native", feed_forward="exact")
    assert np.abs(special.decode(model(special.encode(X))) - T(X)).max() < 1e-12
    assert model.architecture.layers == 2
    assert model.architecture.heads[-1] == 1
    head = model.weights.layers[-1].attention
    assert head is not None
    # Up to the names of slots, the head's scores are A, and what it moves is V.
    between = head.W_Q[0] @ head.W_K[0].T
    moved = head.W_V[0] @ head.W_O[0]
    for matrix, weights in ((T.A, between), (T.V, moved)):
        entries = sorted(np.asarray(matrix).ravel().tolist())
        assert set(entries) <= set(weights.ravel().tolist())
    if mask is None:
        rows, columns = np.nonzero(between)
        core = between[np.ix_(sorted(set(rows)), sorted(set(columns)))]
        assert any(np.array_equal(core[:size, :size], T.A) for size in [len(T.A)])


@pytest.mark.parametrize("order", [(2, 2, 2), (3, 2, 1)])
def test_fetch_compiles_to_the_stated_size(order: tuple[int, int, int]) -> None:
    T, X = random_case(order, 7)
    U = UniversalSimulator(*order)
    special = U.specialise(T)
    assert special.architecture.heads[0] < U.architecture.heads[0]  # no head fetches T
    assert special.architecture.heads[1:] == U.architecture.heads[1:]
    assert special.length == max(order[0] * order[1], order[0] ** 2, order[0] * order[2])
    model = special.compile(feed_forward="exact")
    assert np.abs(special.decode(model(special.encode(X))) - T(X)).max() < 1e-12


def test_what_is_left_is_proven_for_all_x() -> None:
    A, V = [[1, 2], [0, -1]], [[3, 1], [1, 0]]
    special = UniversalSimulator(2, 2, 2).specialise(Attention(np.array(A, float), np.array(V, float)))
    a, v = Formula.of(A), Formula.of(V)
    program = Matrix(special.program, 2, 2)

    def attention(x: Formula) -> Formula:
        return (x @ a @ x.T).softmax() @ (x @ v)

    claim = about("specialised", (2, 2, 2), program, [("X", 2, 2)], attention, length=special.length)
    assert isinstance(prove(claim), Proof)


def test_programs_depend_on_t_and_u_does_not() -> None:
    U = UniversalSimulator(2, 2, 2)
    hashes = {U.specialise(random_case((2, 2, 2), seed)[0]).hash for seed in range(3)}
    assert len(hashes) == 3


def test_other_shapes_are_refused() -> None:
    U = UniversalSimulator(2, 2, 2)
    T, _ = random_case((2, 2, 2), 0)
    with pytest.raises(InputError, match="X: expected 2×2, got 3×2"):
        U.specialise(T)(np.zeros((3, 2)))
    with pytest.raises(InputError, match="order"):
        U.specialise(random_case((2, 3, 2), 0)[0])


def test_encoders_are_specialised_too() -> None:
    rng = np.random.default_rng(3)
    order = Order.of(2, 2, 2, feed_forward=(3, 2))
    T = Encoder(
        Attention(rng.normal(size=(2, 2)), rng.normal(size=(2, 2))),
        rng.normal(size=(2, 3)),
        rng.normal(size=(3, 2)),
    )
    X = rng.normal(size=(2, 2))
    special = UniversalSimulator(order).specialise(T)
    assert np.abs(special(X) - T(X)).max() < 1e-12


def test_what_is_known_everywhere_becomes_a_constant() -> None:
    root, length = specialise(aggregate(full, tokens).node, 2, {0: 1.0, 1: 3.0}, range(2))
    assert root.op == "constant"
    assert length == 2
    assert execution.run(root, [0.0, 0.0]) == [2.0, 2.0]
    # The length of the input stays what it was where the program asks for it.
    pairs = (indices * aggregate(select(indices, indices + 1, "=="), tokens)).node
    root, length = specialise(pairs, 3, {2: 4.0}, [1])
    assert length == 2
    assert all(node.op != "aggregate" for node in postorder(root))


@pytest.mark.parametrize("base", [2.0, 10.0, 0.5])
def test_native_weights_have_the_base(base: float) -> None:
    T, X = random_case((3, 2, 2), 1)
    U = UniversalSimulator(3, 2, 2, base=base)
    special = U.specialise(T)
    model = special.compile("native", feed_forward="exact")
    assert np.abs(special.decode(model(special.encode(X))) - U(T, X)).max() < 1e-12
    universal = U.compile("native", feed_forward="exact")
    assert np.abs(U.decode(universal(U.encode(T, X))) - U(T, X)).max() < 1e-12


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_causal_mask_hides_keys_that_lead_by_far(dtype: str) -> None:
    T = Attention(np.eye(2), np.eye(2), mask="causal")
    X = np.array([[1.0, 0.0], [2.0, 1.0], [3.0, 3.0]]) * 30
    U = UniversalSimulator.of(T, 3)
    special = U.specialise(T)
    for model, answer, tokens_of in (
        (special.compile("native", dtype=dtype, feed_forward="exact"), special.decode, special.encode),
        (U.compile("native", dtype=dtype, feed_forward="exact"), U.decode, lambda X: U.encode(T, X)),
    ):
        assert np.abs(answer(model(tokens_of(X))) - T(X)).max() < 1e-4


def test_integers_of_torch_give_floats_and_t_is_read_once() -> None:
    torch = pytest.importorskip("torch")
    T = Attention(np.eye(2), np.eye(2))
    U = UniversalSimulator(3, 2, 2)
    special = U.specialise(T)
    X = torch.tensor([[1, 0], [0, 1], [1, 1]])
    assert torch.allclose(special(X), U(T, X))
    with pytest.raises(InputError, match="does not support gradients"):
        special(X.double().requires_grad_())
    before = special(X)
    T.A[:] *= 2
    model = special.compile("native", feed_forward="exact")
    assert np.abs(special.decode(model(special.encode(X))) - np.asarray(before)).max() < 1e-12


@pytest.mark.parametrize(("dtype", "size"), [("float32", 2.0**17), ("float64", 2.0**40)])
def test_keys_outside_of_x_do_not_count_at_large_scores(dtype: str, size: float) -> None:
    T = Attention([[1.0, 0.0], [0.0, 0.0]], np.eye(2))
    X = np.array([[size, 0.0], [size, 1.0], [0.0, 2.0]])
    U = UniversalSimulator.of(T, 3)
    special = U.specialise(T)
    for answer in (
        special.decode(special.compile("native", dtype=dtype, feed_forward="exact")(special.encode(X))),
        U.decode(U.compile("native", dtype=dtype, feed_forward="exact")(U.encode(T, X))),
    ):
        assert np.abs(answer[1] - T(X)[1]).max() < 1e-6
