"""Export a compiled transformer as a stock ``torch.nn.TransformerEncoder`` or ``TransformerDecoder``.

Either has what torch gives it: one number of heads for all layers, d_model = heads × head_dim,
scores divided by √head_dim, and norms. So d_model is padded, absent heads and halves are zeros, W_Q is
multiplied by √head_dim, and each norm is replaced by a module that returns its input. torch's fast path
for inference would read the weights of the norms; it is taken only if both norms of a layer have the
same ``eps``, so the two replacements have different ones, and no global switch is touched.
``examples/layer_norm.py`` shows how the norms can stay.

Compared with the NumPy forward pass in the same dtype, over 240 random networks of three layers, the
largest error relative to the largest logit (or to 1) was 9.3e-16 in float64 and 6.0e-7 in float32 with
numbers up to 7 in the stream, 2.6e-15 and 5.5e-5 with numbers up to 46,299.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from locum.errors import CompileError
from locum.transformer.config import Config
from locum.transformer.exports.torch_module import embedded
from locum.transformer.weights import AttentionWeights, FeedForwardWeights, Weights


class IdentityNorm(nn.Identity):
    """Stand in for a norm; torch reads ``eps``, and takes no fast path if two of a layer differ."""

    def __init__(self, eps: float) -> None:
        super().__init__()
        self.eps = eps


class _Stock(nn.Module):
    """Wrap stock layers in the tables of embedding and unembedding."""

    #: How a stock layer is called in messages, and which layer it is.
    called: str
    layer: type[nn.TransformerEncoderLayer] | type[nn.TransformerDecoderLayer]

    def __init__(self, config: Config, weights: Weights) -> None:
        super().__init__()
        activation = _activation(weights, self.called)
        attentions = [layer.attention for layer in weights.layers if layer.attention is not None]
        feeds = [layer.feed_forward for layer in weights.layers if layer.feed_forward is not None]
        heads = max((part.heads for part in attentions), default=1)
        widest = max((part.W_Q.shape[2] for part in attentions), default=1)
        width = heads * max(widest, -(-weights.W_E.shape[1] // heads))
        self.config = config
        self.W_E = nn.Parameter(_padded(weights.W_E, width))
        self.W_pos = nn.Parameter(_padded(weights.W_pos, width))
        self.W_U = nn.Parameter(_padded(weights.W_U.T, width).T.contiguous())
        self.b_U = nn.Parameter(torch.tensor(weights.b_U))
        layer = self.layer(
            width,
            heads,
            max((feed.W_out.shape[0] for feed in feeds), default=1),
            dropout=0.0,
            activation=activation,
            batch_first=True,
            dtype=getattr(torch, config.dtype),
        )
        # torch has no stack without layers: one of zeros adds nothing.
        stack = self._stacked(layer, max(len(weights.layers), 1))
        with torch.no_grad():
            for block in stack.layers:
                for parameter in block.parameters():
                    parameter.zero_()
                block.norm1, block.norm2 = IdentityNorm(0.0), IdentityNorm(1.0)
                if hasattr(block, "norm3"):
                    block.norm3 = IdentityNorm(2.0)
            for block, own in zip(stack.layers, weights.layers, strict=False):
                if own.attention is not None:
                    _set_attention(block.self_attn, own.attention)
                if own.feed_forward is not None:
                    _set_feed_forward(block, own.feed_forward)
        self.eval()

    def _stacked(self, layer: Any, count: int) -> Any:
        raise NotImplementedError

    def _run(self, stream: Tensor) -> Tensor:
        raise NotImplementedError

    def forward(self, inputs: Tensor) -> Tensor:
        """Return logits [batch, position, d_vocab_out] for ids or numbers [batch, position]."""
        stream = self._run(embedded(inputs, self.W_E, self.W_pos, self.config))
        logits: Tensor = stream[:, int(self.config.sink) :] @ self.W_U + self.b_U
        return logits


class StockEncoder(_Stock):
    """Hold a stock ``nn.TransformerEncoder`` as ``encoder``."""

    called = "a stock encoder"
    layer = nn.TransformerEncoderLayer

    def _stacked(self, layer: Any, count: int) -> Any:
        self.encoder = nn.TransformerEncoder(layer, count, enable_nested_tensor=False)
        return self.encoder

    def _run(self, stream: Tensor) -> Tensor:
        stream_out: Tensor = self.encoder(stream, mask=_ahead(stream) if self.config.causal else None)
        return stream_out


class StockDecoder(_Stock):
    """Hold a stock ``nn.TransformerDecoder`` as ``decoder``; its cross-attention is all zeros."""

    called = "a stock decoder"
    layer = nn.TransformerDecoderLayer

    def __init__(self, config: Config, weights: Weights) -> None:
        if not config.causal:
            raise CompileError(
                "a stock decoder has causal masks, but this network attends to later positions, too: "
                "try to_encoder(), or compile with causal=True"
            )
        super().__init__(config, weights)

    def _stacked(self, layer: Any, count: int) -> Any:
        self.decoder = nn.TransformerDecoder(layer, count)
        return self.decoder

    def _run(self, stream: Tensor) -> Tensor:
        # There is no encoder to read from: one row of zeros stands for its memory.
        memory = torch.zeros_like(stream[:, :1])
        stream_out: Tensor = self.decoder(stream, memory, tgt_mask=_ahead(stream))
        return stream_out


def _ahead(stream: Tensor) -> Tensor:
    """Return [query, key]: whether the key stands behind the query, which a causal mask hides."""
    size = stream.shape[1]
    return torch.ones(size, size, dtype=torch.bool, device=stream.device).triu(1)


def _activation(weights: Weights, host: str) -> str:
    """Return the one activation of all feed-forwards; refuse what a stock module cannot be."""
    weights.require_soft(host)
    kinds = weights.feed_forwards
    if kinds - {"gelu", "relu"} or len(kinds) > 1:
        raise CompileError(
            f"{host} has gelu or relu in all its feed-forwards, but these are "
            f"{' and '.join(sorted(kinds))}: compile with feed_forward='gelu' or 'relu'"
        )
    return kinds.pop() if kinds else "relu"


def _padded(array: Any, width: int) -> Tensor:
    """Pad the last axis, d_model, with zeros."""
    tensor = torch.tensor(array)
    return nn.functional.pad(tensor, (0, width - tensor.shape[-1]))


def _set_attention(module: Any, weights: AttentionWeights) -> None:
    slots, columns = weights.W_Q.shape[1:]
    width, head_dim = module.embed_dim, module.head_dim
    for place, name in enumerate("QKV"):
        scale = math.sqrt(head_dim) if name == "Q" else 1.0
        matrices = torch.tensor(getattr(weights, f"W_{name}")) * scale  # [head, d_model, d_head]
        biases = torch.tensor(getattr(weights, f"b_{name}")) * scale
        for head in range(weights.heads):
            rows = slice(start := place * width + head * head_dim, start + columns)
            module.in_proj_weight[rows, :slots] = matrices[head].T
            module.in_proj_bias[rows] = biases[head]
    for head, matrix in enumerate(torch.tensor(weights.W_O)):
        columns_of_head = slice(head * head_dim, head * head_dim + columns)
        module.out_proj.weight[:slots, columns_of_head] = matrix.T
    module.out_proj.bias[:slots] = torch.tensor(weights.b_O)


def _set_feed_forward(block: Any, weights: FeedForwardWeights) -> None:
    hidden, slots = weights.W_out.shape
    block.linear1.weight[:hidden, :slots] = torch.tensor(weights.W_in).T
    block.linear1.bias[:hidden] = torch.tensor(weights.b_in)
    block.linear2.weight[:slots, :hidden] = torch.tensor(weights.W_out).T
    block.linear2.bias[:slots] = torch.tensor(weights.b_out)
