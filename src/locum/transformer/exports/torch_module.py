"""Export a compiled transformer as a torch module, parameter for parameter.

Its ``state_dict`` has the names and shapes of :meth:`Weights.named`. It takes token ids, or numbers,
[batch, position], as ``model.encode`` gives them, and gives logits [batch, position, d_vocab_out],
which ``model.decode`` reads. What has no value (a division by zero in an exact feed-forward) is NaN.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from locum.errors import InputError
from locum.transformer.config import Config
from locum.transformer.weights import HARD, FeedForwardWeights, LayerWeights, Weights


class TorchTransformer(nn.Module):
    """The forward pass of ``locum.transformer.forward``, with parameters that can be trained."""

    def __init__(self, config: Config, weights: Weights) -> None:
        super().__init__()
        self.config = config
        self.embed = _parameters(W_E=weights.W_E)
        self.pos_embed = _parameters(W_pos=weights.W_pos)
        self.blocks = nn.ModuleList(
            _Block(layer, sink=config.sink, causal=config.causal) for layer in weights.layers
        )
        self.unembed = _parameters(W_U=weights.W_U, b_U=weights.b_U)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return logits [batch, position, d_vocab_out] for ids or numbers [batch, position]."""
        stream = embedded(inputs, self.embed.W_E, self.pos_embed.W_pos, self.config)
        for block in self.blocks:
            stream = block(stream)
        logits: Tensor = stream[:, int(self.config.sink) :] @ self.unembed.W_U + self.unembed.b_U
        return logits


def embedded(inputs: Tensor, W_E: Tensor, W_pos: Tensor, config: Config) -> Tensor:
    """Return the residual stream before the first layer; a sink stands first."""
    if inputs.ndim != 2:
        raise InputError(f"expected inputs of shape [batch, position], got {list(inputs.shape)}")
    sink = int(config.sink)
    size = inputs.shape[1] + sink
    shortest, longest = config.lengths
    if not shortest <= inputs.shape[1] <= longest:
        raise InputError(f"expected {shortest} to {longest} tokens, got {inputs.shape[1]}")
    words = inputs.to(W_E.dtype)[..., None] * W_E[0] if config.vocabulary is None else W_E[inputs]
    if sink:
        words = torch.cat([torch.zeros_like(words[:, :1]), words], dim=1)
    return words + W_pos[:size]


def _parameters(**arrays: Any) -> Any:
    """Return a module that only holds parameters."""
    module = nn.Module()
    for name, array in arrays.items():
        # A copy, so that training the module does not change the model.
        module.register_parameter(name, nn.Parameter(torch.tensor(array)))
    return module


class _Block(nn.Module):
    hard: Tensor

    def __init__(self, layer: LayerWeights, *, sink: bool, causal: bool) -> None:
        super().__init__()
        self.attn = None
        self.causal = causal
        if layer.attention is not None:
            arrays = {name: value for name, value in vars(layer.attention).items() if name != "kinds"}
            self.attn = _parameters(**arrays)
            hard = torch.tensor([kind == HARD for kind in layer.attention.kinds])
            self.register_buffer("hard", hard[:, None, None], persistent=False)
        self.mlp = None if layer.feed_forward is None else _FeedForward(layer.feed_forward, sink=sink)

    def forward(self, stream: Tensor) -> Tensor:
        if self.attn is not None:
            stream = stream + self._attend(self.attn, stream)
        return stream if self.mlp is None else stream + self.mlp(stream)

    def _attend(self, weights: Any, stream: Tensor) -> Tensor:
        each = stream[:, None]  # [batch, 1, position, slot]
        q, k, v = (
            each @ getattr(weights, f"W_{name}") + getattr(weights, f"b_{name}")[:, None]
            for name in "QKV"
        )
        scores = q @ k.transpose(-1, -2)
        if self.causal:
            ahead = torch.ones_like(scores[0, 0], dtype=torch.bool).triu(1)
            scores = scores.masked_fill(ahead, -torch.inf)
        top = scores.amax(dim=-1, keepdim=True)
        chosen = torch.where(self.hard, (scores == top).to(stream.dtype), torch.exp(scores - top))
        z = chosen @ v / chosen.sum(dim=-1, keepdim=True)
        out: Tensor = (z @ weights.W_O).sum(dim=1) + weights.b_O
        return out


class _FeedForward(nn.Module):
    W_in: Tensor
    b_in: Tensor
    W_out: Tensor
    b_out: Tensor
    W_gate: Tensor

    def __init__(self, weights: FeedForwardWeights, *, sink: bool) -> None:
        super().__init__()
        self.kind, self.functions, self.sink = weights.kind, weights.functions, int(sink)
        for name in ("W_in", "b_in", "W_out", "b_out", "W_gate"):
            if (array := getattr(weights, name)) is not None:
                self.register_parameter(name, nn.Parameter(torch.tensor(array)))

    def forward(self, stream: Tensor) -> Tensor:
        before = stream @ self.W_in + self.b_in
        if self.functions is not None:
            after = self._exact(before)
        elif self.kind == "glu":
            after = torch.relu(stream @ self.W_gate) * before
        else:
            after = nn.functional.gelu(before) if self.kind == "gelu" else torch.relu(before)
        out: Tensor = after @ self.W_out + self.b_out
        return out

    def _exact(self, before: Tensor) -> Tensor:
        assert self.functions is not None
        real = before[:, self.sink :]
        arguments = [real[..., i].contiguous() for i in range(self.functions.arguments)]
        outputs = torch.stack(self.functions(arguments), dim=-1)
        # At the sink, functions are not evaluated and are 0.
        return nn.functional.pad(outputs, (0, 0, self.sink, 0))
