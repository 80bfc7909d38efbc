"""A compiled transformer as a stock ``torch.nn.TransformerEncoder``.

The encoder has what torch gives it: one number of heads for all layers, d_model = heads × head_dim,
scores divided by √head_dim, and norms. So d_model is padded, absent heads and halves are zeros, W_Q is
multiplied by √head_dim, and the norms are dealt with in one of two ways.

``identity``: each norm is replaced by a module that returns what it is given. torch's fast path for
inference would read the weights of the norms; it is taken only if both norms of a layer have the same
``eps``, so the two identities have different ones, and no global switch is touched.

``mirrored``: the norms stay. The stream is [x, −x, C, −C]: its mean is 0, and its variance is that of
the constants but for a share of |x|²/C², so a gain of that constant deviation gives x back. What is
read is (x − (−x))/2, in which an error of the mean, common to both halves, cancels.

Measured against the NumPy forward pass of the same dtype, the largest error relative to the largest
logit (or to 1) over 240 random networks of three layers that C was not chosen on. Numbers in the stream
up to 7: identity 9.3e-16 in float64 and 6.0e-7 in float32, mirrored 1.3e-15 and 6.5e-7. Numbers up to
46,299: identity 2.6e-15 and 5.5e-5, mirrored 6.1e-14 and 2.0e-2, since its error grows with |x|²/C².
"""

from __future__ import annotations

import math
from typing import Any, Literal

import torch
from torch import Tensor, nn

from locum.errors import CompileError, InputError
from locum.transformer.config import Config
from locum.transformer.exports.torch_module import embedded
from locum.transformer.weights import AttentionWeights, FeedForwardWeights, Weights

Norm = Literal["identity", "mirrored"]
#: The constant of the mirrored stream: large against x, small against what rounding forgives.
CONSTANTS = {"float32": 2.0**18, "float64": 2.0**40}


class IdentityNorm(nn.Identity):
    """In place of a norm; ``eps`` is looked at by torch, and differs so that it takes no fast path."""

    def __init__(self, eps: float) -> None:
        super().__init__()
        self.eps = eps


class Encoder(nn.Module):
    """``encoder`` is the stock module; around it stand the tables of embedding and unembedding."""

    def __init__(
        self, config: Config, weights: Weights, norm: Norm, norm_first: bool, constant: float | None
    ) -> None:
        super().__init__()
        if norm not in ("identity", "mirrored"):
            raise InputError(f"there is no norm {norm!r}: choose identity or mirrored")
        activation = _activation(weights)
        layout = _Layout(config, weights, norm, constant)
        dtype = getattr(torch, config.dtype)
        self.config = config
        self.W_E = nn.Parameter(layout.written(weights.W_E))
        self.W_pos = nn.Parameter(layout.written(weights.W_pos) + layout.constants)
        self.W_U = nn.Parameter(layout.read(weights.W_U))
        self.b_U = nn.Parameter(torch.tensor(weights.b_U))
        feeds = [layer.feed_forward for layer in weights.layers]
        hidden = max((feed.W_out.shape[0] for feed in feeds if feed is not None), default=1)
        layer = nn.TransformerEncoderLayer(
            layout.width,
            layout.heads,
            hidden,
            dropout=0.0,
            activation=activation,
            batch_first=True,
            norm_first=norm_first,
            dtype=dtype,
        )
        # torch has no encoder without layers: one of zeros adds nothing.
        self.encoder = nn.TransformerEncoder(
            layer, max(len(weights.layers), 1), enable_nested_tensor=False
        )
        with torch.no_grad():
            for block in self.encoder.layers:
                for parameter in block.parameters():
                    parameter.zero_()
                _set_norms(block, layout)
            for block, given in zip(self.encoder.layers, weights.layers, strict=False):
                if given.attention is not None:
                    _set_attention(block.self_attn, given.attention, layout)
                if given.feed_forward is not None:
                    _set_feed_forward(block, given.feed_forward, layout)
        self.eval()

    def forward(self, inputs: Tensor) -> Tensor:
        """Logits [batch, position, d_vocab_out] for ids or numbers [batch, position]."""
        stream = self.encoder(embedded(inputs, self.W_E, self.W_pos, self.config))
        logits: Tensor = stream[:, int(self.config.sink) :] @ self.W_U + self.b_U
        return logits


def _activation(weights: Weights) -> str:
    """The one activation of all feed-forwards; what a stock encoder cannot be is refused."""
    weights.require_soft("a stock encoder")
    kinds = weights.feed_forwards
    if kinds - {"gelu", "relu"} or len(kinds) > 1:
        raise CompileError(
            f"a stock encoder has gelu or relu in all its feed-forwards, but these are "
            f"{' and '.join(sorted(kinds))}: compile with feed_forward='gelu' or 'relu'"
        )
    return kinds.pop() if kinds else "relu"


class _Layout:
    """Where the slots of the stream lie in the encoder's, and how they are written and read there."""

    def __init__(self, config: Config, weights: Weights, norm: Norm, constant: float | None) -> None:
        self.slots = weights.W_E.shape[1]
        self.mirrored = norm == "mirrored"
        needed = 2 * self.slots + 2 if self.mirrored else self.slots
        attentions = [layer.attention for layer in weights.layers if layer.attention is not None]
        self.heads = max((part.heads for part in attentions), default=1)
        widest = max((part.W_Q.shape[2] for part in attentions), default=1)
        self.head_dim = max(widest, -(-needed // self.heads))
        self.width = self.heads * self.head_dim
        self.dtype = getattr(torch, config.dtype)
        self.constants = torch.zeros(self.width, dtype=self.dtype)
        if self.mirrored:
            self.constant = CONSTANTS[config.dtype] if constant is None else constant
            self.constants[2 * self.slots] = self.constant
            self.constants[2 * self.slots + 1] = -self.constant

    def written(self, array: Any) -> Tensor:
        """What is added to the stream: the last axis of d_model becomes the encoder's."""
        given = torch.tensor(array)
        found = torch.zeros(*given.shape[:-1], self.width, dtype=self.dtype)
        found[..., : self.slots] = given
        if self.mirrored:
            found[..., self.slots : 2 * self.slots] = -given
        return found

    def read(self, array: Any) -> Tensor:
        """What reads the stream: the axis of d_model, the last but one, becomes the encoder's."""
        given = torch.tensor(array)
        found = torch.zeros(*given.shape[:-2], self.width, given.shape[-1], dtype=self.dtype)
        if self.mirrored:
            found[..., : self.slots, :] = given / 2
            found[..., self.slots : 2 * self.slots, :] = -given / 2
        else:
            found[..., : self.slots, :] = given
        return found

    def deviation(self, eps: float) -> float:
        """What the norm divides by where x is 0."""
        return math.sqrt(2 * self.constant**2 / self.width + eps)


def _set_norms(block: Any, layout: _Layout) -> None:
    if layout.mirrored:
        for norm in (block.norm1, block.norm2):
            norm.weight.fill_(layout.deviation(norm.eps))
    else:
        block.norm1, block.norm2 = IdentityNorm(0.0), IdentityNorm(1.0)


def _set_attention(module: Any, weights: AttentionWeights, layout: _Layout) -> None:
    columns = weights.W_Q.shape[2]
    for place, name in enumerate("QKV"):
        scale = math.sqrt(layout.head_dim) if name == "Q" else 1.0
        matrices = layout.read(getattr(weights, f"W_{name}")) * scale  # [head, width, d_head]
        biases = torch.tensor(getattr(weights, f"b_{name}")) * scale
        for head in range(weights.heads):
            start = place * layout.width + head * layout.head_dim
            module.in_proj_weight[start : start + columns] = matrices[head].T
            module.in_proj_bias[start : start + columns] = biases[head]
    for head, matrix in enumerate(layout.written(weights.W_O)):
        start = head * layout.head_dim
        module.out_proj.weight[:, start : start + columns] = matrix.T
    module.out_proj.bias.copy_(layout.written(weights.b_O))


def _set_feed_forward(block: Any, weights: FeedForwardWeights, layout: _Layout) -> None:
    hidden = weights.W_out.shape[0]
    block.linear1.weight[:hidden] = layout.read(weights.W_in).T
    block.linear1.bias[:hidden] = torch.tensor(weights.b_in)
    block.linear2.weight[:, :hidden] = layout.written(weights.W_out).T
    block.linear2.bias.copy_(layout.written(weights.b_out))
