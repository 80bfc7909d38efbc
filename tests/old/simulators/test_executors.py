"""Every executor gives T(X), and the fast one does so at sizes that literal execution cannot reach."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from locum.execution import EXECUTORS, fast
from locum.execution.fast import plan
from locum.execution.fast.steps import tiling
from locum.simulators import DecoderLayer, Order, UniversalSimulator
from locum.simulators.modules.sampling import random_module
from tests.simulators.random_modules import Chance, distance, simulator

ORDERS: list[tuple[tuple[int, int, int], dict[str, Any]]] = [
    ((4, 3, 2), {}),
    ((4, 3, 2), {"recipe": "paper"}),
    ((3, 3, 3), {"heads": 2, "feed_forward": (4, 3), "norm": "post", "activation": "gelu"}),
    ((3, 3, 3), {"heads": 2, "feed_forward": (4, 3), "norm": "pre", "mask": "causal"}),
    *(((4, 3, 2), {"kind": kind}) for kind in ("linear", "linformer", "performer", "sumformer")),
]


@pytest.mark.parametrize("executor", sorted(EXECUTORS))
@pytest.mark.parametrize(("order", "options"), ORDERS)
def test_small_orders(order: tuple[int, int, int], options: dict[str, Any], executor: str) -> None:
    generator = np.random.default_rng(0)
    U = simulator(*order, **options)
    for _ in range(2):
        T, X = random_module(U.order, generator), generator.normal(size=order[:2])
        assert distance(U(T, X, executor=executor), T(X)) <= 1e-12


def test_a_layer_of_real_size() -> None:
    generator = np.random.default_rng(1)
    U = UniversalSimulator(Order.of(128, 64, 16, heads=4, feed_forward=(256, 64), norm="post"))
    T, X = random_module(U.order, generator), generator.normal(size=(128, 64))
    assert distance(U(T, X, executor="fast"), T(X)) <= 1e-11


@pytest.mark.parametrize("kind", ["softmax", "linear", "linformer", "performer", "sumformer"])
def test_plans_of_all_kinds_are_products(kind: str) -> None:
    """No step falls back to a program's structure: that takes hundreds of times as long."""
    U = UniversalSimulator(Order.of(16, 8, 4, kind=kind))
    T, X = random_module(U.order, np.random.default_rng(3)), np.ones((16, 8))
    parts = U.parts_of(T, X)
    shapes = [part.shape for part in parts]
    result = plan(U.program.node, U.length, positions=U.output.places.positions, segments=shapes)
    operations = {step.op for step in result.steps}
    assert "matmul" in operations
    assert "structured" not in operations


def test_a_decoder_and_an_embedding() -> None:
    chance = Chance(2)
    T = DecoderLayer(chance.heads(8, 4, 2, mask="causal"), chance.heads(8, 4, 2), norm="pre")
    X, M = chance(6, 8), chance(5, 8)
    assert distance(UniversalSimulator.of(T, 6, memory=5)(T, X, M, executor="fast"), T(X, M)) <= 1e-12
    small, x = chance.attention(3, 2), chance(4, 3)
    assert distance(UniversalSimulator(9, 5, 4).embed(small, x, executor="fast"), small(x)) <= 1e-13


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("heads", [1, 2])
def test_scores_of_many_rows_are_never_held_at_once(
    library: str, heads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limits stand for those of 2²², 2²⁶, 2²⁸ and 2²⁹ numbers."""
    monkeypatch.setattr(tiling, "MOST_SCORES", 30)
    monkeypatch.setattr(tiling, "MOST_SCORES_ON_GPU", 30)
    monkeypatch.setattr(tiling, "LARGEST_TEMPORARY", 100)
    monkeypatch.setattr(tiling, "LARGEST_ARRAY", 150)
    fast.forget_plans()
    generator = np.random.default_rng(heads)
    U = simulator(12, 3, 2, heads=heads)
    T, X = random_module(U.order, generator), generator.normal(size=(12, 3))
    given = X if library == "numpy" else pytest.importorskip("torch").from_numpy(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        actual = U(T, given)
    plan = next(iter(U._plans.values()))()
    assert plan is not None
    assert plan.counts["attention"] == 1
    assert max(step.size for step in plan.steps if step.value is None) <= 150
    assert distance(np.asarray(actual), T(X)) < 1e-12
    fast.forget_plans()


def test_a_u_without_a_plan_warns_with_the_s_op() -> None:
    U = UniversalSimulator(Order.of(70, 2, 2, pooling="unique"))
    T, X = random_module(U.order, np.random.default_rng(0)), np.ones((70, 2))
    with pytest.warns(fast.FallbackWarning, match="aggregate.* is run by the structured tier"):
        U(T, X)
