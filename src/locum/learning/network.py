"""The forward pass on one vector of parameters, so that ``torch.func.vmap`` runs many networks at once.

It is ``model.to_torch()`` with the heads of a layer in one product, which is what makes thousands of
trainings affordable; a test compares the two.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from locum.errors import InputError
from locum.learning.constructions import stands_in
from locum.transformer import CompiledTransformer


@dataclass(frozen=True)
class Network:
    """Where each tensor lies in the vector of parameters, and the kinds of the layers."""

    shapes: dict[str, tuple[int, ...]]
    feeds: tuple[str | None, ...]
    #: For each layer, 1 for heads that stand in for hard ones, whose temperature may be annealed.
    stand_ins: tuple[tuple[float, ...], ...]

    @classmethod
    def of(cls, model: CompiledTransformer) -> Network:
        """Read a model: softmax heads, no sink, numbers as tokens, hidden units or no feed-forward."""
        config, layers = model.config, model.weights.layers
        if config.sink or config.causal or config.vocabulary is not None:
            raise InputError("expected a network on numbers, without a sink and without a mask")
        model.weights.require_soft("a network that is trained")
        if "exact" in model.weights.feed_forwards:
            raise InputError("expected hidden units, which can be trained, got exact feed-forwards")
        stand_ins = [tuple(float(stands_in(label)) for label in labels) for labels in config.heads]
        return cls(
            {name: tensor.shape for name, tensor in model.weights.named()},
            tuple(None if (feed := layer.feed_forward) is None else feed.kind for layer in layers),
            tuple(stand_ins),
        )

    def numbers(self, positions: int) -> int:
        """Return the most numbers that one tensor of a layer has for one input."""
        heads = [shape[0] for name, shape in self.shapes.items() if name.endswith(".W_Q")]
        units = [shape[1] for name, shape in self.shapes.items() if name.endswith(".W_in")]
        return positions * max([positions * most for most in heads] + units + [1])

    def vector(self, model: CompiledTransformer) -> Tensor:
        """Return the parameters of a model as one vector."""
        parts = [tensor.ravel() for _, tensor in model.weights.named()]
        return torch.tensor(np.concatenate(parts), dtype=torch.float64)

    def tensors(self, vector: Tensor) -> dict[str, Tensor]:
        """Return the tensors that lie in a vector [.., parameters]."""
        tensors, first = {}, 0
        for name, shape in self.shapes.items():
            size = math.prod(shape)
            part = vector[..., first : first + size]
            tensors[name] = part.reshape(*vector.shape[:-1], *shape)
            first += size
        return tensors

    def forward(self, vector: Tensor, inputs: Tensor, warmth: Tensor | float = 1.0) -> Tensor:
        """Return outputs [batch, position]; scores of stand-in heads are multiplied by ``warmth``."""
        p = self.tensors(vector)
        stream = inputs[..., None] * p["embed.W_E"][0] + p["pos_embed.W_pos"][: inputs.shape[1]]
        for number, kind in enumerate(self.feeds):
            block = f"blocks.{number}"
            if f"{block}.attn.W_Q" in p:
                stand_in = torch.tensor(
                    self.stand_ins[number], dtype=stream.dtype, device=stream.device
                )
                stream = stream + _attend(p, f"{block}.attn", stream, 1 + stand_in * (warmth - 1))
            if kind is not None:
                stream = stream + _feed(p, f"{block}.mlp", stream, kind)
        return stream @ p["unembed.W_U"][:, 0] + p["unembed.b_U"][0]


def _attend(p: Mapping[str, Tensor], name: str, stream: Tensor, factor: Tensor) -> Tensor:
    heads, width, size = p[f"{name}.W_Q"].shape
    batch, positions, _ = stream.shape

    def read(what: str) -> Tensor:
        matrix = p[f"{name}.W_{what}"].transpose(0, 1).reshape(width, heads * size)
        projected = stream @ matrix + p[f"{name}.b_{what}"].reshape(heads * size)
        return projected.reshape(batch, positions, heads, size).transpose(1, 2)

    q, k, v = read("Q"), read("K"), read("V")
    pattern = torch.softmax((q * factor[:, None, None]) @ k.transpose(-1, -2), dim=-1)
    z = (pattern @ v).transpose(1, 2).reshape(batch, positions, heads * size)
    return z @ p[f"{name}.W_O"].reshape(heads * size, width) + p[f"{name}.b_O"]


def _feed(p: Mapping[str, Tensor], name: str, stream: Tensor, kind: str) -> Tensor:
    before = stream @ p[f"{name}.W_in"] + p[f"{name}.b_in"]
    if kind == "glu":
        after = torch.relu(stream @ p[f"{name}.W_gate"]) * before
    else:
        after = torch.relu(before) if kind == "relu" else torch.nn.functional.gelu(before)
    return after @ p[f"{name}.W_out"] + p[f"{name}.b_out"]
