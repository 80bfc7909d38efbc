"""Layers of ``torch.nn`` in evaluation mode without gradients, which call fused operations."""

from __future__ import annotations

from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")
import locum.torch  # noqa: E402
from tests.torch.comparing import compile_on_u  # noqa: E402

CAUSAL = torch.ones(3, 3, dtype=torch.bool).triu(1)
PADDED = torch.tensor([[False, False, True], [False, False, False]])


def check(module: Any, *arguments: Any, **options: Any) -> None:
    """Compare with eager execution, and with the path of PyTorch without fused operations."""
    with torch.no_grad():
        expected = module(*arguments, **options)
        torch.backends.mha.set_fastpath_enabled(False)
        try:
            plain = module(*arguments, **options)
        finally:
            torch.backends.mha.set_fastpath_enabled(True)
        found = compile_on_u(module)(*arguments, **options)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(found, plain)
    assert locum.torch.report().share == 1


@pytest.mark.slow
@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize(
    "masks", [{}, {"src_mask": CAUSAL}, {"src_key_padding_mask": PADDED}, {"both": True}], ids=str
)
def test_encoder_layers(norm_first: bool, activation: str, masks: dict[str, Any]) -> None:
    if "both" in masks:
        masks = {"src_mask": CAUSAL, "src_key_padding_mask": PADDED}
    layer = torch.nn.TransformerEncoderLayer(
        8, 2, 12, 0.1, activation, batch_first=True, norm_first=norm_first
    ).eval()
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    check(layer, torch.randn(2, 3, 8), **masks)


def test_an_encoder_of_several_layers() -> None:
    layer = torch.nn.TransformerEncoderLayer(8, 2, 12, batch_first=True).double()
    encoder = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
    check(encoder, torch.randn(2, 3, 8, dtype=torch.float64))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"need_weights": False},
        {"average_attn_weights": False},
        {"attn_mask": CAUSAL, "key_padding_mask": PADDED},
        {"key_padding_mask": PADDED, "need_weights": False},
    ],
    ids=str,
)
def test_attention(options: dict[str, Any]) -> None:
    module = torch.nn.MultiheadAttention(8, 2, batch_first=True).eval()
    torch.nn.init.normal_(module.in_proj_bias)
    x = torch.randn(2, 3, 8)
    check(module, x, x, x, **options)
