"""Tensors that stand-ins keep (constants of plans, ε) are usable whatever torch did at first."""

from __future__ import annotations

from typing import Any

import pytest

import locum
from locum.errors import InputError

torch = pytest.importorskip("torch")
nn = torch.nn


def layer(d: int) -> Any:
    """Draw a layer of a size and an ε that no other test has, so that its plan is made here."""
    torch.manual_seed(d)
    act = nn.functional.leaky_relu  # its slope is a constant of the plan
    options = {
        "batch_first": True,
        "activation": act,
        "layer_norm_eps": d / 1024,
        "dtype": torch.float64,
    }
    return nn.TransformerEncoderLayer(d, 3, 5, 0.0, **options).eval()


def test_a_first_call_inside_of_transformations() -> None:
    from torch.nn.attention import SDPBackend, sdpa_kernel

    T = layer(9)
    by_U, X = locum.stand_in(T), torch.randn(1, 2, 9, dtype=torch.float64)
    with sdpa_kernel(SDPBackend.MATH):  # others have no second derivative
        result, expected = (
            torch.func.jacrev(torch.func.grad(lambda x, m=m: m(x).square().sum()))(X) for m in (by_U, T)
        )
    assert (result - expected).abs().max() < 1e-12
    other = locum.stand_in(layer(9))
    gradient = torch.func.grad(lambda x: other(x).square().sum())(X)
    assert (gradient - torch.func.grad(lambda x: T(x).square().sum())(X)).abs().max() < 1e-12
    with pytest.raises(InputError, match="make the stand-in outside"):
        torch.func.grad(lambda x: locum.stand_in(T)(x).sum())(X)


def test_a_first_call_in_inference_mode() -> None:
    by_U, X = locum.stand_in(layer(15)), torch.randn(1, 2, 15, dtype=torch.float64)
    with torch.inference_mode():
        expected = by_U(X)
    result = by_U(X)
    result.sum().backward()
    assert torch.equal(result.detach(), expected)
    assert by_U.linear1.weight.grad is not None
