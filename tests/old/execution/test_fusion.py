"""Products with a bias are one step in torch, whatever shape they have; bounds know of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from locum import tokens
from locum.constructions import add, broadcast_row, concatenate, matmul
from locum.execution.fast.steps.magnitude import greatest_integer

torch: Any = pytest.importorskip("torch")


def test_a_product_and_its_bias_are_one_step() -> None:
    x, w, b = concatenate(tokens, (3, 4), (4, 2), (1, 2))
    value = add(matmul(x, w, "fetch"), broadcast_row(b, 3))
    numbers = [torch.randn(shape, dtype=torch.float64) for shape in ((3, 4), (4, 2), (1, 2))]
    plan = value.plan(like=numbers[0], segments=[tuple(part.shape) for part in numbers])
    assert [step.op for step in plan.steps].count("biased_product") == 1
    assert plan.counts["matmul"] == 1
    assert "@" in plan.explain()
    expected = numbers[0] @ numbers[1] + numbers[2]
    result = plan(*numbers)[: expected.numel()].reshape(expected.shape)
    assert torch.allclose(result, expected, rtol=1e-14)
    # 4 products of numbers up to 10, and one more number.
    assert greatest_integer(plan.steps, frozenset([int]), 10.0, lambda node: None) >= 410


def test_a_product_that_is_needed_elsewhere_stays_one() -> None:
    x, w, b = concatenate(tokens, (3, 4), (4, 2), (1, 2))
    product = matmul(x, w, "fetch")
    value = add(product, add(product, broadcast_row(b, 3)))
    numbers = [np.arange(12.0).reshape(3, 4), np.ones((4, 2)), np.array([[5.0, 7.0]])]
    tensors = [torch.from_numpy(part) for part in numbers]
    plan = value.plan(like=tensors[0], segments=[tuple(part.shape) for part in tensors])
    expected = 2 * numbers[0] @ numbers[1] + numbers[2]
    result = plan(*tensors)[: expected.size].reshape(expected.shape)
    assert np.array_equal(result.numpy(), expected)
