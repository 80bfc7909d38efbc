"""Products in groups, as in mixtures of experts, equal eager's in all executors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import locum.torch
from locum.errors import LocumError

EXECUTORS = ("fast", "dense", "heads")


def compiled(function: Callable[..., Any], executor: str) -> Any:
    torch._dynamo.reset()
    options: Any = {"executor": executor}
    return torch.compile(function, backend="locum", fullgraph=True, dynamic=False, options=options)


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize(
    ("a", "b"), [((5, 16), (3, 16, 8)), ((2, 16), (3, 16, 8)), ((3, 8, 16), (16, 8)), ((8, 8), (8, 8))]
)
def test_grouped_mm(a: tuple[int, ...], b: tuple[int, ...], executor: str) -> None:
    def multiply(x: Any, y: Any, ends: Any) -> Any:
        return torch._grouped_mm(x, y, offs=ends)

    generator = torch.Generator().manual_seed(0)
    x, y = (torch.randn(shape, generator=generator).bfloat16() for shape in (a, b))
    size = a[0] if len(a) == 2 and len(b) == 3 else 8
    ends = torch.tensor([size // 2, size // 2, size], dtype=torch.int32)
    expected = multiply(x, y, ends)
    found = compiled(multiply, executor)(x, y, ends)
    assert found.dtype == expected.dtype
    assert found.stride() == expected.stride()
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_product_of_the_library_and_its_gradients(executor: str) -> None:
    pytest.importorskip("transformers.integrations.moe")

    def multiply(x: Any, y: Any, ends: Any) -> Any:
        return torch.ops.transformers.grouped_mm_fallback(x, y, ends)

    generator = torch.Generator().manual_seed(0)
    x = torch.randn(5, 3, generator=generator, dtype=torch.float64, requires_grad=True)
    y = torch.randn(4, 3, 2, generator=generator, dtype=torch.float64, requires_grad=True)
    ends = torch.tensor([1, 1, 4, 5])
    torch.testing.assert_close(compiled(multiply, executor)(x, y, ends), multiply(x, y, ends))
    expected = torch.autograd.grad(multiply(x, y, ends).square().sum(), (x, y))
    function = compiled(multiply, executor)
    found = torch.autograd.grad(function(x, y, ends).square().sum(), (x, y))
    torch.testing.assert_close(found, expected)
    report = locum.torch.report(function)
    assert report.runs_by_kind["backward"] == 1
    assert report.multiply_adds == report.runs_by_kind["forward"] * 30 + 60


def test_rows_without_a_group_are_rejected() -> None:
    def multiply(x: Any, y: Any, ends: Any) -> Any:
        return torch._grouped_mm(x, y, offs=ends)

    x, y = torch.zeros(5, 16).bfloat16(), torch.zeros(2, 16, 8).bfloat16()
    with pytest.raises(LocumError, match="expected groups of all 5 rows"):
        compiled(multiply, "fast")(x, y, torch.tensor([1, 3], dtype=torch.int32))
