"""A batch is one run of U: a family whose views of X move while those of T stay."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from locum.errors import GraphError, InputError
from locum.execution import fast
from locum.simulators import (
    DecoderLayer,
    Encoder,
    FactoredAttention,
    LinearAttention,
    Linformer,
    Module,
    Order,
    Performer,
    Stack,
    Sumformer,
    UniversalSimulator,
)
from tests.simulators.random_modules import Chance, distance

N, D, B = 3, 2, 3


def modules() -> dict[str, Module]:
    """A T of every kind, with masks of every kind, as attention, encoder and decoder layer."""
    c = Chance(7)
    factored = FactoredAttention(c(D, 4), c(D, 4), c(D, 4), c(4, D), 2, b_Q=c(4), b_O=c(D))
    around: dict[str, Any] = {"W1": c(D, 3), "b1": c(3), "W2": c(3, D), "b2": c(D)}
    norms: dict[str, Any] = {"norm1": c.norm(D), "norm2": c.norm(D)}
    matrix = np.array([[1, 0, 1], [0, 1, 1], [1, 1, 1]])
    return {
        "attention": c.attention(D, 1),
        "causal": c.attention(D, 3, mask="causal"),
        "matrix": c.attention(D, 3, mask=matrix),
        "keys": c.attention(D, 3, mask=[1, 0, 1]),
        "hard": c.attention(D, 3, pooling="average"),
        "heads": c.heads(D, 2, 2),
        "factored": factored,
        "factored causal": factored.with_masks("causal"),
        "factored matrix": factored.with_masks(matrix),
        "factored keys": factored.with_masks([0, 1, 1]),
        "linear": LinearAttention(c(D, 2), c(D, 2), c(D, 3), mask="causal"),
        "linformer": Linformer(c(D, 2), c(D, 2), c(D, 3), c(2, N), c(2, N)),
        "performer": Performer(c(D, 2), c(D, 2), c(D, 3), c(2, 2)),
        "sumformer": Sumformer(c(D, 2), c(D, 3), c(2, 3), c(3, D)),
        "post": Encoder(factored, **around, **norms, norm="post", activation="gelu"),
        "pre": Encoder(c.heads(D, 2, 2), **around, norm="pre"),
        "decoder": DecoderLayer(
            factored.with_masks("causal"), factored, **around, **norms, norm3=c.norm(D), norm="post"
        ),
    }


@pytest.mark.parametrize("name", modules())
def test_a_batch_gives_what_its_members_give(name: str) -> None:
    T, c = modules()[name], Chance(1)
    X = c(B, N, D)
    M = c(B, 2, D) if name == "decoder" else None
    U = UniversalSimulator.of(T, N, 2 if M is not None else 0)
    each = [T(X[b], None if M is None else M[b]) for b in range(B)]
    assert distance(U(T, X, M), each) < 1e-12
    parts = U.of_batch(B).parts_of(T, X, M)
    plan = fast.plan_for(U.of_batch(B).program.node, parts, U.of_batch(B).length, range(1))
    assert plan is not None
    assert not plan.opaque or name == "hard"
    assert distance(U(T, X[:1], None if M is None else M[:1]), each[:1]) < 1e-12
    if name in ("attention", "heads", "post"):  # dense execution is what it means
        assert distance(U(T, X, M, executor="dense"), each) < 1e-12


@pytest.mark.parametrize("recipe", ["paper", "tiled", "inverse"])
def test_batches_in_every_recipe(recipe: str) -> None:
    c = Chance(3)
    T, X = c.attention(D, D), c(B, N, D)
    U = UniversalSimulator(Order.of(N, D, batch=B), recipe=recipe)
    assert distance(U(T, X), [T(x) for x in X]) < 1e-6
    assert str(U.order) == "(3, 2, 2), batches of 3"


def test_heads_and_batch_are_two_families_and_no_more_products() -> None:
    c = Chance(0)
    T = FactoredAttention(c(8, 8), c(8, 8), c(8, 8), c(8, 8), 2)
    plans = []
    for U, X in (
        (UniversalSimulator.of(T, 4), c(4, 8)),
        (UniversalSimulator.of(T, 4).of_batch(5), c(5, 4, 8)),
    ):
        plan = fast.plan_for(U.program.node, U.parts_of(T, X), U.length, U.output.places.positions)
        assert plan is not None
        plans.append({name: plan.counts[name] for name in ("matmul", "gather", "mask", "structured")})
    assert plans[0] == plans[1] == {"matmul": 6, "gather": 0, "mask": 0, "structured": 0}


def test_steps_of_a_batch_are_those_of_its_members() -> None:
    c = Chance(2)
    T, X = c.heads(D, 2, 2), c(B, N, D)
    U = UniversalSimulator.of(T, N).of_batch(B)
    steps, parts = dict(U.each_step()), U.parts_of(T, X)
    direct = T.steps(X[2])
    assert distance(U.run_parts(steps["softmax[2][1]"], parts), direct["softmax[1]"]) < 1e-12


def test_batches_that_do_not_fit_are_refused() -> None:
    c = Chance(5)
    T, U = c.attention(D, D), UniversalSimulator(Order.of(N, D, batch=B))
    for X in (c(N, D), c(B + 1, N, D), c(B, N + 1, D), c(B, N, D + 1), c(1, B, N, D)):
        with pytest.raises(InputError, match=r"X: expected"):
            U(T, X)
    with pytest.raises(InputError, match="one entry or more"):
        UniversalSimulator(N, D)(T, np.zeros((0, N, D)))
    with pytest.raises(InputError, match="one X"):
        U.explain(T, c(B, N, D))
    with pytest.raises(InputError, match="one X"):
        U.embed(T, c(B, N, D))
    with pytest.raises(GraphError, match="one X"):
        Stack([U])
    with pytest.raises(GraphError, match="width-1"):
        UniversalSimulator(Order.of(N, D, batch=B), recipe="width-1")


@pytest.mark.parametrize("mask", ["none", "causal", "keys", "matrix"])
@pytest.mark.parametrize("batch", [1, 3])
def test_one_fused_attention_whatever_the_mask(mask: str, batch: int) -> None:
    torch = pytest.importorskip("torch")
    c, n = Chance(6), 32
    keys = np.arange(n) % 3 > 0
    masks = {"none": None, "causal": "causal", "keys": keys, "matrix": np.tri(n) * keys + np.eye(n) > 0}
    T = FactoredAttention(c(4, 4) * 3, c(4, 4), c(4, 4), c(4, 4), 2, b_Q=c(4), mask=masks[mask])
    U = UniversalSimulator.of(T, n).of_batch(batch)
    X = torch.tensor(c(batch, n, 4))
    parts = U.parts_of(T, X if batch > 1 else X[0])
    plan = fast.plan_for(U.program.node, parts, U.length, U.output.places.positions)
    assert plan is not None
    assert plan.counts["attention"] == 1
    assert plan.counts["concatenate"] == 0  # the tokens stay where they are
    assert distance(U(T, X) if batch > 1 else U(T, X[0])[None], [T(x) for x in X]) < 1e-12


def test_gelu_and_norms_are_single_operations_in_torch() -> None:
    torch = pytest.importorskip("torch")
    c = Chance(8)
    T = Encoder(
        c.heads(4, 2, 2),
        c(4, 3),
        c(3, 4),
        c(3),
        c(4),
        "gelu",
        norm="post",
        norm1=c.norm(4),
        norm2=c.norm(4),
    )
    U, X = UniversalSimulator.of(T, 3), torch.tensor(c(3, 4), requires_grad=True)
    parts = U.parts_of(T, X)
    plan = fast.plan_for(U.program.node, parts, U.length, U.output.places.positions)
    assert plan is not None
    assert (plan.counts["gelu"], plan.counts["layer_norm"]) == (1, 2)
    assert distance(U(T, X).detach(), T(X.detach())) < 1e-12
    # ε is a token like all others: its gradient is there if it is asked for.
    parts[-1] = parts[-1].clone().requires_grad_()
    run = lambda *inputs: U.run_parts(U.output, inputs)  # noqa: E731
    assert torch.autograd.gradcheck(run, parts)
