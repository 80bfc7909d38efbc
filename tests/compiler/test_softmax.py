"""Softmax heads that stand in for hard ones."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from locum import aggregate, indices, select, selector_width, tokens
from locum.networks.compiler import compile  # noqa: A004
from locum.rasp import SOp

PREFIX = aggregate(select(indices, indices, "<="), tokens)
HIST = selector_width(select(tokens, tokens, "=="))
LATER = aggregate(select(indices, indices, ">"), tokens, default=7)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_without_a_tolerance_soft_and_hard_are_the_same_to_the_last_bit(dtype: str) -> None:
    draw = np.random.default_rng(4)
    for program in (PREFIX, LATER):
        hard, soft = (
            compile(program, length=12, numeric=True, attention=kind, dtype=dtype, feed_forward="exact")
            for kind in ("hard", "softmax")
        )
        for size in (1, 5, 12):
            inputs = draw.normal(size=size).tolist()
            assert hard(inputs) == soft(inputs)


def test_counts_by_soft_heads() -> None:
    model = compile(HIST, length=12, vocabulary="abc", attention="softmax", feed_forward="exact")
    assert model("abacabcccaab") == HIST("abacabcccaab")


def test_temperatures_are_powers_of_two_that_make_everything_else_underflow() -> None:
    model = compile(PREFIX, length=12, numeric=True, attention="softmax", feed_forward="exact")
    (head,) = model.config.report["softmax"]
    assert math.log2(head["beta"]).is_integer()
    assert head["beta"] * head["gap"] >= 2 * 746
    assert head["leak"] == 0
    assert head["spread"] is None  # tokens without a range
    json.dumps(model.config.report, allow_nan=False)
    # Rounding is in proportion to tokens, and nothing bounds these.
    assert model.config.report["error_bound"] is None
    attention = model.weights.layers[0].attention
    assert attention is not None
    assert set(attention.kinds) == {"softmax"}


@pytest.mark.parametrize("tolerance", [1e-1, 1e-4])
def test_a_tolerance_allows_softer_heads_within_the_bound(tolerance: float) -> None:
    model = compile(
        PREFIX, length=12, numeric=True, ranges=(-1, 1), attention="softmax", feed_forward="relu",
        tolerance=tolerance,
    )  # fmt: skip
    (head,) = model.config.report["softmax"]
    assert head["beta"] < 64
    # The formula of the report: (n − m)·D/m·e^(−β·gap).
    leak = (head["keys"] - head["selected"]) / head["selected"] * math.exp(-head["beta"] * head["gap"])
    assert head["leak"] == pytest.approx(leak)
    bound = model.config.report["error_bound"]
    assert leak * head["spread"] <= bound <= tolerance
    draw = np.random.default_rng(5)
    worst = 0.0
    for _ in range(50):
        inputs = draw.choice([-1.0, 1.0], size=12).tolist()
        worst = max(worst, float(np.abs(np.array(model(inputs)) - PREFIX(inputs)).max()))
    assert 0 < worst <= bound


@pytest.mark.parametrize("program", [PREFIX, LATER, HIST, aggregate(select(HIST, 2, "<"), tokens)])
def test_every_temperature_follows_from_the_report(program: SOp) -> None:
    """β ≥ log((n − m)·D/(m·ε))/gap, or 746/gap and more where nothing is to leak."""
    for tolerance in (None, 1e-2, 1e-6):
        model = compile(
            program, length=6, vocabulary=[0, 1, 2], attention="softmax", feed_forward="glu",
            tolerance=tolerance,
        )  # fmt: skip
        for head in model.config.report["softmax"]:
            beta, gap, n, m = (head[name] for name in ("beta", "gap", "keys", "selected"))
            assert 1 <= m <= n <= 7
            if head["error"]:
                assert tolerance is not None
                odds = (n - m) * head["spread"] / (m * head["error"])
                assert math.exp(beta * gap) >= odds
            else:
                assert beta * gap >= 2 * 746
