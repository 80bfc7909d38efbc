"""simulate(module, tensor) takes the module's own tensors: as they are now, and refused as before."""

from __future__ import annotations

from typing import Any

import pytest

import locum
from locum.errors import InputError
from locum.execution.arrays import known_number, remember_number
from locum.simulators.models.torch_layers import from_torch

torch: Any = pytest.importorskip("torch")
nn: Any = torch.nn

LAYERS: dict[str, Any] = {
    "attention": nn.MultiheadAttention(8, 2, batch_first=True),
    "attention without biases": nn.MultiheadAttention(8, 4, bias=False),
    "encoder": nn.TransformerEncoderLayer(8, 2, 12, batch_first=True),
    "encoder, norm first": nn.TransformerEncoderLayer(8, 2, 12, activation="gelu", norm_first=True),
    "encoder without biases": nn.TransformerEncoderLayer(8, 2, 12, bias=False),
    "decoder": nn.TransformerDecoderLayer(8, 2, 12, batch_first=True),
}


@pytest.mark.parametrize("name", LAYERS)
def test_the_order_is_that_of_the_copy(name: str) -> None:
    from locum.simulators.models.live_layers import live_layer

    module = LAYERS[name]
    memory = int(isinstance(module, nn.TransformerDecoderLayer))
    live, copied = live_layer(module), from_torch(module, form="factored")
    assert live.order(3, memory) == copied.order(3, memory)
    assert live.matrices().keys() == copied.matrices().keys()
    for mask in ("causal", torch.ones(3, 3).tril().numpy(), torch.tensor([1.0, 1, 0]).numpy()):
        masked = live.with_masks(mask), copied.with_masks(mask)
        assert masked[0].order(3, memory) == masked[1].order(3, memory)


def test_numbers_are_never_out_of_date() -> None:
    torch.manual_seed(0)
    encoder = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(8, 2, 12, 0.0, batch_first=True), 2, norm=nn.LayerNorm(8)
    ).eval()
    X = torch.randn(2, 3, 8)
    first, second = encoder.layers

    def other_epsilons() -> None:
        first.norm1.eps = first.norm2.eps = 0.7

    def other_last_epsilon() -> None:
        encoder.norm.eps = 0.5

    changes: list[Any] = [
        lambda: first.linear1.weight.data.mul_(-2),
        lambda: second.self_attn.in_proj_weight.data.mul_(3),
        lambda: encoder.norm.weight.data.fill_(3.0),
        other_last_epsilon,
        other_epsilons,
    ]
    for change in changes:
        before = encoder(X)
        change()
        expected = encoder(X)
        assert not torch.allclose(before, expected, atol=1e-3)
        assert torch.allclose(locum.simulate(encoder, X), expected, atol=1e-5)


def test_gradients_reach_the_input_and_not_the_module() -> None:
    layer, X = LAYERS["encoder"], torch.randn(2, 3, 8, requires_grad=True)
    locum.simulate(layer, X).sum().backward()
    assert X.grad is not None
    assert all(parameter.grad is None for parameter in layer.parameters())


def test_weights_that_are_not_finite_are_refused() -> None:
    layer = nn.TransformerEncoderLayer(4, 1, 4, 0.0, batch_first=True).eval()
    layer.linear2.weight.data[0, 1] = torch.nan
    with pytest.raises(InputError, match="only finite numbers"):
        locum.simulate(layer, torch.randn(2, 3, 4))


def test_a_number_is_told_only_while_it_is_known() -> None:
    token = torch.full((1, 1), 2.0, device="meta")
    assert known_number(torch.full((1, 1), 2.0)) == 2.0
    assert known_number(token) is None
    remember_number(token, 2.0)
    assert known_number(token) == 2.0
    assert known_number(token.view(1)) is None
    token.add_(1)
    assert known_number(token) is None
    assert known_number(torch.full((1, 1), 2.0, requires_grad=True)) is None
