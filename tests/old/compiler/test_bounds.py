"""The bound of the whole network: U as units, on random, extreme and searched inputs."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from benchmarks.bench_bounds import adversarial, differences, networks

from locum import sin, tokens
from locum.graph import build
from locum.graph.labels import Labels
from locum.networks import compiler
from locum.networks.compiler import Target, bounds, scoring
from locum.networks.compiler.bounds import fitting
from locum.networks.compiler.bounds.gate_bounds import SlotSum, Summands
from locum.networks.compiler.network.forms import Curved, Form, Product, Signal, lowest_bit, lowest_bits
from locum.networks.compiler.network.network import (
    NO_SINK,
    Head,
    Network,
    Schedule,
    Unit,
    Value,
    lay_out,
)
from locum.networks.compiler.network.network_lowering import Lowered
from locum.networks.compiler.network.roles import Roles
from locum.networks.compiler.weights.assemble import Assembly, UnitFeedForward
from locum.networks.compiler.weights.stream import Stream
from locum.networks.transformer.forward import forward
from locum.rasp.programs import load_everyday


@pytest.fixture(scope="module")
def models() -> tuple[Any, Any]:
    return networks("fetch", "relu", 1e-3)


def test_u_of_relu_units_keeps_its_bound(models: tuple[Any, Any]) -> None:
    relu, exact = models
    bound = relu.config.report["error_bound"]
    assert bound <= 1e-3
    assert {layer.feed_forward.kind for layer in relu.weights.layers if layer.feed_forward} == {"relu"}
    worst = 0.0
    for result in adversarial(relu, exact, 600, np.random.default_rng(6)):
        worst = max(worst, float(result.max()))
    assert worst <= bound <= 30 * worst


@pytest.mark.parametrize("recipe", ["fetch", "native"])
@pytest.mark.parametrize("kind", ["relu", "glu", "gelu"])
def test_u_of_other_units(recipe: str, kind: str) -> None:
    model, exact = networks(recipe, kind, 1e-2)
    batch = np.random.default_rng(7).uniform(-1, 1, (20, model.config.lengths[1]))
    assert differences(model, exact, batch).max() <= model.config.report["error_bound"] <= 1e-2


def test_a_report_of_every_gate(models: tuple[Any, Any]) -> None:
    report = models[0].config.report
    gates = report["realised"]
    assert {gate["gate"] for gate in gates} == {"product", "masked", "curved"}
    for layer, counted in enumerate(report["feed_forward"]):
        assert sum(counted.values()) == sum(g["units"] for g in gates if g["layer"] == layer)
    last = max(gate["layer"] for gate in gates)
    # What comes out is the sum of the last products.
    total = sum(gate["error"] for gate in gates if gate["layer"] == last)
    assert total == pytest.approx(report["error_bound"], rel=1e-6)


def test_a_head_that_is_a_softmax_itself() -> None:
    """softmax(x xᵀ) x² for numbers x, with x² by relu units: scores are exact, values are not."""
    size = 5
    target = Target(
        length=size, numeric=True, fixed=True, feed_forward="relu", tolerance=1e-3, ranges=(-1, 1)
    )
    x, squared, rough, out = (
        Signal(name, time) for name, time in zip("xsro", (0, 2, 2, 3), strict=True)
    )
    x = replace(x, tokens=np.ones(1))
    read, node = Form({x: 1.0}), build("tokens", cast="asis")
    units = (
        Unit(node, squared, 2, gate=Curved("square", read)),
        Unit(node, rough, 2, gate=Product(read, Form({}, 0.5))),
    )
    moved = Value(Form({squared: 1.0}), out, 0.0)
    queries, keys = (Form({x: 2.0}),), (Form({rough: 1.0}),)
    head = Head("softmax", 3, queries, keys, Form(), NO_SINK, 0.0, kind="softmax", values=(moved,))
    network = Network((head,), units, Form({out: 1.0}), False)
    roles = Roles(scoring.Known.of(target, node))
    lowered = Lowered(network, roles, Schedule([], {}, {}), frozenset(), (), Labels())
    slots = lay_out(network, "float64")
    fitted = bounds.fit(lowered, slots)
    assert fitted is not None
    assert fitted.error <= 1e-3
    feed_forward = UnitFeedForward(target, fitted.hidden).weights
    weights = Assembly(network, target, feed_forward).weights(Stream.of(network, slots))
    for inputs in np.random.default_rng(8).uniform(-1, 1, (200, size)):
        stream = (inputs[:, None] * weights.W_E[0] + weights.W_pos)[None]
        result = forward(weights, stream, sink=False)[0] @ weights.W_U[:, 0] + weights.b_U[0]
        shares = np.exp(inputs[:, None] * inputs[None])
        true = shares @ inputs**2 / shares.sum(axis=1)
        assert np.abs(result - true).max() <= fitted.error


def test_a_sum_is_rounded_as_a_whole() -> None:
    """Integers that would be added exactly are rounded beside numbers that are not."""
    integers = Summands(size=2.0**40, count=60, grid=1.0, step=1.0)
    thirds = Summands(size=400.0, count=16, grid=0.0, step=0.0)
    assert SlotSum([integers], "float64").exact
    assert SlotSum([integers, integers], "float64").exact
    assert not SlotSum([integers, thirds], "float64").exact
    assert not SlotSum([integers, Summands(1.0, 1, 2.0**-20, 2.0**-20)], "float64").exact
    assert not SlotSum([integers], "float32").exact


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_sines_have_a_bound(dtype: str) -> None:
    program = sin(3 * tokens + sin(tokens))
    model = compiler.compile(
        program, length=2, numeric=True, ranges=(-50, 50), dtype=dtype, feed_forward="exact"
    )
    draw = np.random.default_rng(8)
    for inputs in draw.uniform(-50, 50, (40, 2)).tolist():
        error = np.abs(np.array(model(inputs)) - np.array(program(inputs, executor="dense"))).max()
        assert error <= model.error_bound < 1e-3


@pytest.mark.parametrize("attention", ["hard", "softmax"])
def test_a_tolerance_that_changes_nothing_is_not_searched(
    attention: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of tables alone there is nothing to fit: one pass over the network, not fourteen."""
    passes: list[fitting.Bounds] = []
    run = fitting.Bounds.run

    def counted(bounds: fitting.Bounds) -> Any:
        passes.append(bounds)
        return run(bounds)

    monkeypatch.setattr(fitting.Bounds, "run", counted)
    program = load_everyday("parity").program
    model = compiler.compile(
        program, length=4, vocabulary="01", feed_forward="relu", attention=attention
    )
    assert len(passes) == 1
    assert 0 < model.config.report["error_bound"] < 1e-6


def test_the_lowest_bit_of_one_number_is_that_of_an_array() -> None:
    generator = np.random.default_rng(5)
    numbers = np.ldexp(generator.integers(-(2**53), 2**53, 400), generator.integers(-1120, 970, 400))
    edges = [0.0, -0.0, 5e-324, -5e-324, 1.7e308, 2.0**-1022, math.inf, -math.inf, math.nan, 1, -6]
    for number in [*numbers.tolist(), *edges]:
        assert lowest_bit(number) == float(lowest_bits(np.array(number)))
