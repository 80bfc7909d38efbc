"""A plain formula of a model's forward pass, from its checkpoint: what U is compared with otherwise.

The plain formula, in NumPy (double precision) or torch (any), of a whole padded batch at once. Nothing
of U or its T's is used.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np

from locum.execution.activations import ACTIVATIONS
from locum.execution.arrays import Array, is_tensor, like
from locum.simulators.models.checkpoint import Checkpoint


class DirectForward:
    """Embeddings and layers of a checkpoint, in the kind of array that ``model`` is."""

    def __init__(self, checkpoint: Checkpoint, model: Array, layers: int | None = None) -> None:
        self.checkpoint = checkpoint
        self.model = model
        self.functions = _Torch() if is_tensor(model) else _NumPy()
        self.count = checkpoint.layers if layers is None else layers

    # Converted when they are asked for: beside the library's own forward pass hardly ever.

    @cached_property
    def embeddings(self) -> dict[str, Array]:
        """The tables of the embedding, and its layer norm."""
        return {name: like(t, self.model) for name, t in self.checkpoint.embeddings.items()}

    @cached_property
    def layers(self) -> list[dict[str, Array]]:
        """The weights of each layer."""
        return [
            {name: like(tensor, self.model) for name, tensor in self.checkpoint.layer(number).items()}
            for number in range(self.count)
        ]

    def embed(self, numbers: Any) -> Array:
        """Embed token ids [text, position]: [text, position, feature] before the first layer."""
        tables = self.embeddings
        total = tables["words"][numbers] + tables["positions"][: numbers.shape[1]]
        if "types" in tables:
            total = total + tables["types"][0]
        return self.functions.norm(total, tables["gain"], tables["bias"], self.checkpoint.epsilon)

    def layer(self, number: int, x: Array, seen: Array) -> Array:
        """Return one layer; ``seen`` [text, position] is 0 at padding."""
        w, f, epsilon = self.layers[number], self.functions, self.checkpoint.epsilon
        context = self.attention(number, x, seen) @ self.heads(x, w["W_V"], w["b_V"])
        joined = context.swapaxes(1, 2).reshape(x.shape)
        x = f.norm(x + joined @ w["W_O"] + w["b_O"], w["gain1"], w["bias1"], epsilon)
        hidden = ACTIVATIONS[self.checkpoint.activation](x @ w["W1"] + w["b1"])
        return f.norm(x + hidden @ w["W2"] + w["b2"], w["gain2"], w["bias2"], epsilon)

    def attention(self, number: int, x: Array, seen: Array) -> Array:
        """Return the weights of the keys: [text, head, query, key]."""
        w = self.layers[number]
        queries, keys = self.heads(x, w["W_Q"], w["b_Q"]), self.heads(x, w["W_K"], w["b_K"])
        scores = queries @ keys.swapaxes(-1, -2) / math.sqrt(queries.shape[-1])
        return self.functions.softmax(scores, seen[:, None, None, :] != 0)

    def heads(self, x: Array, weights: Array, bias: Array) -> Array:
        """Return [text, head, position, feature] of a projection."""
        batch, n, _ = x.shape
        return (x @ weights + bias).reshape(batch, n, self.checkpoint.heads, -1).swapaxes(1, 2)

    def pooled(self, x: Array, seen: Array) -> Array:
        """Pool to [text, feature]: the mean over what counts, or the first row; scaled as noted."""
        sentence = self.checkpoint.sentence
        if sentence.pooling == "cls":
            rows = x[:, 0]
        else:
            rows = (x * seen[:, :, None]).sum(1) / seen.sum(1)[:, None]
        return rows / (rows * rows).sum(1)[:, None] ** 0.5 if sentence.normalised else rows


class _NumPy:
    """The functions in NumPy."""

    def norm(self, x: Array, gain: Array, bias: Array, epsilon: float) -> Array:
        centred = x - x.mean(-1, keepdims=True)
        return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + epsilon) * gain + bias

    def softmax(self, scores: Array, kept: Array) -> Array:
        scores = np.where(kept, scores, -np.inf)
        powers = np.exp(scores - scores.max(-1, keepdims=True))
        return powers / powers.sum(-1, keepdims=True)


class _Torch:
    """The functions of torch."""

    def norm(self, x: Array, gain: Array, bias: Array, epsilon: float) -> Array:
        from torch.nn.functional import layer_norm

        return layer_norm(x, gain.shape, gain, bias, epsilon)

    def softmax(self, scores: Array, kept: Array) -> Array:
        return scores.masked_fill(~kept, -math.inf).softmax(-1)
