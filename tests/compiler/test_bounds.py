"""The bound of the whole network: U as units, on random, extreme and searched inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from benchmarks.bench_bounds import adversarial, differences

from understudy.compiler import compile  # noqa: A004
from understudy.simulators import UniversalSimulator


@pytest.fixture(scope="module")
def models() -> tuple[Any, Any]:
    simulator = UniversalSimulator(3, 3, 3, recipe="fetch", stable=False)
    inputs: dict[str, Any] = {"length": simulator.length, "numeric": True, "fixed": True}
    relu = compile(simulator.output.sop, **inputs, feed_forward="relu", tolerance=1e-3, ranges=(-1, 1))
    return relu, compile(simulator.output.sop, **inputs)


def test_u_of_relu_units_keeps_its_bound(models: tuple[Any, Any]) -> None:
    relu, exact = models
    bound = relu.config.report["error_bound"]
    assert bound <= 1e-3
    assert {layer.feed_forward.kind for layer in relu.weights.layers if layer.feed_forward} == {"relu"}
    worst = 0.0
    for found in adversarial(relu, exact, 600, np.random.default_rng(6)):
        worst = max(worst, float(found.max()))
    assert worst <= bound <= 30 * worst


@pytest.mark.parametrize("kind", ["glu", "gelu"])
def test_u_of_other_units(kind: str, models: tuple[Any, Any]) -> None:
    simulator = UniversalSimulator(3, 3, 3, recipe="fetch", stable=False)
    model = compile(
        simulator.output.sop, length=simulator.length, numeric=True, fixed=True, ranges=(-1, 1),
        feed_forward=kind, tolerance=1e-2,
    )  # fmt: skip
    batch = np.random.default_rng(7).uniform(-1, 1, (20, simulator.length))
    assert differences(model, models[1], batch).max() <= model.config.report["error_bound"] <= 1e-2


def test_a_report_of_every_gate(models: tuple[Any, Any]) -> None:
    report = models[0].config.report
    gates = report["realised"]
    assert {gate["gate"] for gate in gates} == {"product", "masked", "curved"}
    for layer, counted in enumerate(report["feed_forward"], start=1):
        assert sum(counted.values()) == sum(g["units"] for g in gates if g["layer"] == layer)
    assert max(gate["error"] for gate in gates if gate["layer"] == 12) == report["error_bound"]
