"""Defaults stand at the sink, and whatever else is read there must not round them away."""

from __future__ import annotations

import random
from typing import Any

import pytest

from locum import SOp, aggregate, compiler, indices, select, selector_width, tokens, where
from tests.compiler.agreement import is_close, others


def _back(steps: int, values: Any, default: float) -> SOp:
    return aggregate(select(indices, indices - steps, "=="), values, default)


def _agree(program: SOp, tolerance: float, **options: Any) -> None:
    model = compiler.compile(program, length=6, **options)
    for given in others([0, 1, 2, 0, 1, 2], random.Random(5), 40):
        assert is_close(model(given), program(given), tolerance), given


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
