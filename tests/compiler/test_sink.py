"""Defaults stand at the sink, and whatever else is read there must not round them away."""

from __future__ import annotations

import random
from typing import Any

import pytest

from locum import SOp, aggregate, indices, select, selector_width, tokens, where
from locum.networks import compiler
from tests.compiler.agreement import is_close, others


def _back(steps: int, values: Any, default: float) -> SOp:
    return aggregate(select(indices, indices - steps, "=="), values, default)


def _agree(program: SOp, tolerance: float, **options: Any) -> None:
    model = compiler.compile(program, length=6, **options, feed_forward="exact")
    for inputs in others([0, 1, 2, 0, 1, 2], random.Random(5), 40):
        assert is_close(model(inputs), program(inputs), tolerance), inputs


@pytest.mark.parametrize("options", [{"numeric": True}, {"vocabulary": [0, 1, 2]}])
@pytest.mark.parametrize("large", [1e15, 1e15 / 3, -1e300])
def test_a_small_default_beside_a_large_one(large: float, options: dict[str, Any]) -> None:
    one = _back(1, tokens, large)
    for value in (one, 3 * one, one + 0.1, one + 7 * _back(2, tokens, large / 7)):
        small = _back(2, value, 0.001)
        _agree(where(indices < 2, small, 0), 1e-15, **options)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("one", "other"), [(0.1, 0.7), (1e15 / 3, 1e15 / 7)])
def test_slots_that_held_defaults_are_keys_later(one: float, other: float, dtype: str) -> None:
    early = (_back(1, tokens * 0.1, one) > 0.15) | (_back(2, tokens * 0.1, other) > 0.05)
    flag = where(early, 1, 0)
    first, second = _back(1, flag, 1), _back(2, flag + tokens, 2)
    third, fourth = _back(1, first + second, 1), _back(2, second, 0)
    keys = 3 * third + 7 * fourth
    _agree(
        aggregate(select(keys, 10 * tokens, "=="), third + fourth, 5), 1e-6, dtype=dtype, numeric=True
    )
    counted = selector_width(select(keys + 5 * second, 5 * tokens + 3 * fourth, "=="))
    _agree(counted, 0, dtype=dtype, vocabulary=[0, 1, 2])
    _agree(
        aggregate(select(keys, 10 * tokens, "=="), third + fourth, 5),
        1e-6,
        dtype=dtype,
        vocabulary=[0, 1, 2],
    )


@pytest.mark.parametrize("kind", ["relu", "gelu", "glu"])
def test_hidden_units_are_closed_at_the_sink(kind: str) -> None:
    """Find nothing but constants at the sink: in float32 a sum of open units would be rounded there."""
    counts = selector_width(select(tokens, tokens, "==")) + selector_width(select(tokens, tokens, "<"))
    program = _back(1, counts, -1)
    model = compiler.compile(
        program,
        length=40,
        vocabulary=[0, 1, 2],
        dtype="float32",
        attention="softmax",
        feed_forward=kind,
        tolerance=0.1,
    )
    _, cache = model.run_with_cache([0, 1, 2, 2])
    for layer in (0, 1):
        units = cache[f"blocks.{layer}.mlp.hook_post"][0]
        assert units[1:].any()
        rounding = units[0] > 2.0**20  # these are open: they add a large constant and subtract it
        assert not units[0][~rounding].any()
    assert not rounding.any()


@pytest.mark.parametrize("factor", [1, 0.1, 1004, 1 / 3])
@pytest.mark.parametrize("kind", ["exact", "relu", "gelu", "glu"])
def test_defaults_of_chains_stay_within_the_bound(kind: str, factor: float) -> None:
    """Read defaults through heads that read defaults: what is rounded at the sink is in the bound."""
    first = _back(1, tokens * factor, 0.7) + _back(2, tokens / 3, -0.1)
    program = _back(1, first * factor + _back(1, first, 1 / 3), 0.2) + _back(1, first, 7)
    model = compiler.compile(
        program, length=6, vocabulary=[0, 1, 2], dtype="float32", feed_forward=kind, tolerance=10.0
    )
    for inputs in others([0, 1, 2, 0, 1, 2], random.Random(5), 12):
        answers = zip(model(inputs), program(inputs), strict=True)
        assert max(abs(a - b) for a, b in answers) <= model.error_bound
