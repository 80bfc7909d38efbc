"""Decompositions of fused transformer layers.

Layers of ``torch.nn`` call these operations in evaluation mode without gradients (the fast path).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from torch import Tensor, ops
from torch.nn.functional import gelu, layer_norm, linear, relu


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim: int,
    num_head: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    mask: Tensor | None = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> tuple[Tensor, Tensor | None]:
    """Return ``aten._native_multi_head_attention``: the result, and the weights or None."""
    q, k, v = (
        linear(x, weight, bias).view(*x.shape[:2], num_head, -1).transpose(1, 2)
        for x, weight, bias in zip(
            (query, key, value), qkv_weight.chunk(3), qkv_bias.chunk(3), strict=True
        )
    )
    scores = (q / math.sqrt(embed_dim // num_head)) @ k.mT
    if mask is not None:
        hidden = mask.bool()  # the fast path does not add numbers
        if mask_type == 1:  # the padding of keys, [batch, key]
            hidden = hidden[:, None, None, :]
        scores = scores.masked_fill(hidden, -math.inf)
    weights = scores.softmax(-1)
    result = linear((weights @ v).transpose(1, 2).flatten(2), proj_weight, proj_bias)
    if not need_weights:
        return result, None
    return result, weights.mean(1) if average_attn_weights else weights


def encoder_layer(
    src: Tensor,
    embed_dim: int,
    num_heads: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: Tensor,
    norm_bias_1: Tensor,
    norm_weight_2: Tensor,
    norm_bias_2: Tensor,
    ffn_weight_1: Tensor,
    ffn_bias_1: Tensor,
    ffn_weight_2: Tensor,
    ffn_bias_2: Tensor,
    mask: Tensor | None = None,
    mask_type: int | None = None,
) -> Tensor:
    """Return ``aten._transformer_encoder_layer_fwd``."""
    projections = (qkv_weight, qkv_bias, proj_weight, proj_bias)
    masked: dict[str, Any] = {"mask": mask, "mask_type": mask_type}

    def attend(x: Tensor) -> Tensor:
        result, _ = attention(x, x, x, embed_dim, num_heads, *projections, need_weights=False, **masked)
        return result

    def feed_forward(x: Tensor) -> Tensor:
        hidden = linear(x, ffn_weight_1, ffn_bias_1)
        return linear(gelu(hidden) if use_gelu else relu(hidden), ffn_weight_2, ffn_bias_2)

    def norm1(x: Tensor) -> Tensor:
        return layer_norm(x, [embed_dim], norm_weight_1, norm_bias_1, eps)

    def norm2(x: Tensor) -> Tensor:
        return layer_norm(x, [embed_dim], norm_weight_2, norm_bias_2, eps)

    if norm_first:
        x = src + attend(norm1(src))
        return x + feed_forward(norm2(x))
    x = norm1(src + attend(src))
    return norm2(x + feed_forward(x))


#: The decompositions by operation.
FUSED_LAYERS: dict[Any, Callable[..., Any]] = {
    ops.aten._native_multi_head_attention.default: attention,
    ops.aten._transformer_encoder_layer_fwd.default: encoder_layer,
}
