"""List the tensors of a transformer by name and shape, without their values.

:class:`Shape` is the part of ``config.json`` that describes the weights; :class:`Config` is the other
part. A shape contains no tensors, so the sizes in a file can be checked before any tensor is read.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from locum.networks.transformer.config import ATTENTIONS, FEED_FORWARDS
from locum.networks.transformer.functions import Functions
from locum.networks.transformer.weights import (
    Array,
    AttentionWeights,
    FeedForwardWeights,
    LayerWeights,
    Weights,
)
from locum.settings import Setting, normalise_settings


@dataclass(frozen=True)
class AttentionShape:
    """The kinds and the width of the heads of a layer."""

    kinds: Annotated[tuple[str, ...], Setting("a list of texts", choices=ATTENTIONS)]
    d_head: int

    def __post_init__(self) -> None:
        normalise_settings(self)


@dataclass(frozen=True)
class FeedForwardShape:
    """The kind, the widths and the symbolic functions of the feed-forward of a layer."""

    kind: Annotated[str, Setting("a text", choices=FEED_FORWARDS)]
    d_in: int
    d_mlp: int
    functions: Functions | None = None

    def __post_init__(self) -> None:
        normalise_settings(self)


@dataclass(frozen=True)
class LayerShape:
    """The shape of one layer, in which each sublayer is optional."""

    attention: AttentionShape | None = None
    feed_forward: FeedForwardShape | None = None


@dataclass(frozen=True)
class Shape:
    """The sizes and kinds of a transformer, without the values of its tensors."""

    d_model: int
    n_ctx: int
    d_vocab: int
    d_vocab_out: int
    layers: tuple[LayerShape, ...]

    @classmethod
    def of(cls, weights: Weights) -> Shape:
        """Return the shape of ``weights``."""
        layers = []
        for layer in weights.layers:
            heads, feed = layer.attention, layer.feed_forward
            layers.append(
                LayerShape(
                    None if heads is None else AttentionShape(heads.kinds, heads.W_Q.shape[-1]),
                    None
                    if feed is None
                    else FeedForwardShape(
                        feed.kind, feed.W_in.shape[-1], feed.W_out.shape[0], feed.functions
                    ),
                )
            )
        (d_vocab, d_model), d_vocab_out = weights.W_E.shape, weights.W_U.shape[-1]
        return cls(d_model, weights.W_pos.shape[0], d_vocab, d_vocab_out, tuple(layers))

    def tensors(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Yield the name and shape of every tensor, in the order of :meth:`Weights.named`."""
        d = self.d_model
        yield "embed.W_E", (self.d_vocab, d)
        yield "pos_embed.W_pos", (self.n_ctx, d)
        for number, layer in enumerate(self.layers):
            attention, feed = layer.attention, layer.feed_forward
            prefix = f"blocks.{number}"
            if attention is not None:
                heads, width = len(attention.kinds), attention.d_head
                for name in "QKV":
                    yield f"{prefix}.attn.W_{name}", (heads, d, width)
                    yield f"{prefix}.attn.b_{name}", (heads, width)
                yield f"{prefix}.attn.W_O", (heads, width, d)
                yield f"{prefix}.attn.b_O", (d,)
            if feed is not None:
                yield f"{prefix}.mlp.W_in", (d, feed.d_in)
                yield f"{prefix}.mlp.b_in", (feed.d_in,)
                yield f"{prefix}.mlp.W_out", (feed.d_mlp, d)
                yield f"{prefix}.mlp.b_out", (d,)
                if feed.kind == "glu":
                    yield f"{prefix}.mlp.W_gate", (d, feed.d_mlp)
        yield "unembed.W_U", (d, self.d_vocab_out)
        yield "unembed.b_U", (self.d_vocab_out,)

    def bytes(self, dtype: str) -> int:
        """Return the number of bytes of all tensors with this dtype."""
        return sum(math.prod(shape) for _, shape in self.tensors()) * np.dtype(dtype).itemsize

    def fill(self, tensors: Mapping[str, Array]) -> Weights:
        """Return weights of this shape whose tensors are given by name."""
        parts: dict[str, dict[str, Any]] = {}
        for name, tensor in tensors.items():
            part, _, last = name.rpartition(".")
            parts.setdefault(part, {})[last] = tensor
        layers = []
        for number, layer in enumerate(self.layers):
            heads, feed = layer.attention, layer.feed_forward
            attn, mlp = parts.get(f"blocks.{number}.attn", {}), parts.get(f"blocks.{number}.mlp", {})
            layers.append(
                LayerWeights(
                    None if heads is None else AttentionWeights(**attn, kinds=heads.kinds),
                    None
                    if feed is None
                    else FeedForwardWeights(feed.kind, **mlp, functions=feed.functions),
                )
            )
        ends = parts["embed"] | parts["pos_embed"] | parts["unembed"]
        return Weights(**ends, layers=tuple(layers))
