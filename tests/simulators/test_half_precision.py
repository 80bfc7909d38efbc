"""float16 and bfloat16: norms and softmaxes are computed in single precision, and rounded once."""

from __future__ import annotations

from typing import Any

import pytest

from locum.simulators import Attention, Encoder, Stack, UniversalSimulator, from_torch

torch: Any = pytest.importorskip("torch")


def layer(dtype: Any, **options: Any) -> Any:
    torch.manual_seed(0)
    return torch.nn.TransformerEncoderLayer(
        4, 1, 4, 0.0, batch_first=True, dtype=dtype, **options
    ).eval()


@pytest.mark.parametrize("scale", [1.0, 300.0, 1000.0])
@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_norms_are_as_exact_as_torchs(dtype: Any, norm_first: bool, scale: float) -> None:
    module = layer(dtype, norm_first=norm_first)
    X = (scale * torch.tensor([[1.0, -1.0, 0.0, 0.0], [0.5, 0.25, -1.0, 1.0]])).to(dtype)
    exact = module.double()(X.double()).detach()
    theirs = layer(dtype, norm_first=norm_first)(X).detach()
    T = from_torch(layer(dtype, norm_first=norm_first))
    ours = UniversalSimulator.of(T, 2)(T, X)
    assert ours.dtype is dtype
    rounding = torch.finfo(dtype).eps * float(exact.abs().max())
    bound = max(2 * float((theirs.double() - exact).abs().max()), rounding)
    assert float((ours.double() - exact).abs().max()) <= bound


def test_a_small_epsilon_does_not_become_zero() -> None:
    T = from_torch(layer(torch.float16, layer_norm_eps=1e-12))
    X = torch.ones(2, 4, dtype=torch.float16)
    assert bool(UniversalSimulator.of(T, 2)(T, X).isfinite().all())


def test_every_way_to_run_gives_the_type_that_came_in() -> None:
    T = Encoder(Attention(torch.eye(2), torch.eye(2)), norm="post")
    X = torch.ones(2, 2, dtype=torch.bfloat16)
    U = UniversalSimulator.of(T, 2)
    assert U(T, X).dtype is torch.bfloat16
    assert Stack([U, U])([T, T], X).dtype is torch.bfloat16
    assert UniversalSimulator.of(T, 3).embed(T, X).dtype is torch.bfloat16
