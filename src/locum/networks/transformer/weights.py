"""Hold the weights of a transformer under TransformerLens's names and in its shapes.

Each layer adds the output of its attention, then that of its feed-forward, to a residual stream of
``d_model`` slots. There are no norms. Attention is average-hard (the mean over the keys of largest
score) or softmax, head by head; scores are q·k, not divided by √d_head.

- ``W_E`` [d_vocab, d_model]: the embedding of each token. For real-valued tokens it has one row, which
  is multiplied by the token.
- ``W_pos`` [n_ctx, d_model]: the embedding of each position. With a sink, position 0 is the sink: it
  stands before the input and is attended to where nothing else is selected.
- ``W_Q``, ``W_K``, ``W_V`` [head, d_model, d_head]; ``b_Q``, ``b_K``, ``b_V`` [head, d_head];
  ``W_O`` [head, d_head, d_model]; ``b_O`` [d_model].
- ``W_in`` [d_model, d_in], ``b_in`` [d_in], ``W_out`` [d_mlp, d_model], ``b_out`` [d_model]; ``W_gate``
  [d_model, d_mlp] in a gated feed-forward.
- ``W_U`` [d_model, d_vocab_out], ``b_U`` [d_vocab_out]: the unembedding.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from locum.errors import CompileError
from locum.networks.transformer.config import ATTENTIONS
from locum.networks.transformer.functions import Functions

Array: TypeAlias = NDArray[np.floating[Any]]

#: The kinds of attention.
HARD, SOFTMAX = ATTENTIONS


@dataclass(frozen=True)
class AttentionWeights:
    """The heads of one layer."""

    W_Q: Array
    b_Q: Array
    W_K: Array
    b_K: Array
    W_V: Array
    b_V: Array
    W_O: Array
    b_O: Array
    #: ``hard`` or ``softmax`` for each head.
    kinds: tuple[str, ...]

    @property
    def heads(self) -> int:
        """Return the number of heads."""
        return len(self.kinds)


@dataclass(frozen=True)
class FeedForwardWeights:
    """The feed-forward of one layer.

    ``exact``: ``functions`` maps the d_in numbers x·W_in + b_in to d_mlp others, position by position;
    at the sink they are 0. ``glu``: relu(x·W_gate) ⊙ (x·W_in + b_in). ``gelu``, ``relu``: as usual.
    """

    kind: str
    W_in: Array
    b_in: Array
    W_out: Array
    b_out: Array
    W_gate: Array | None = None
    functions: Functions | None = None


def _tensors(half: AttentionWeights | FeedForwardWeights | None) -> dict[str, Array]:
    """Return the tensors of half a layer by their names; an absent one has none."""
    named = {} if half is None else vars(half)
    return {name: value for name, value in named.items() if isinstance(value, np.ndarray)}


@dataclass(frozen=True)
class LayerWeights:
    """One layer; an absent half adds nothing."""

    attention: AttentionWeights | None
    feed_forward: FeedForwardWeights | None


@dataclass(frozen=True)
class Weights:
    """All weights of a transformer."""

    W_E: Array
    W_pos: Array
    layers: tuple[LayerWeights, ...]
    W_U: Array
    b_U: Array

    @property
    def feed_forwards(self) -> set[str]:
        """Return the kinds of feed-forward that occur."""
        return {layer.feed_forward.kind for layer in self.layers if layer.feed_forward is not None}

    def require_soft(self, host: str) -> None:
        """Refuse hard heads, which ``host`` cannot run."""
        for number, layer in enumerate(self.layers):
            if layer.attention is not None and HARD in layer.attention.kinds:
                raise CompileError(
                    f"{host} has softmax attention, but there is a hard head: compile with "
                    "attention='softmax'",
                    f"layer {number}",
                )

    def named(self) -> Iterator[tuple[str, Array]]:
        """Yield every tensor with its name, in the order of the forward pass."""
        yield "embed.W_E", self.W_E
        yield "pos_embed.W_pos", self.W_pos
        for number, layer in enumerate(self.layers):
            for part, weights in (("attn", layer.attention), ("mlp", layer.feed_forward)):
                for name, tensor in _tensors(weights).items():
                    yield f"blocks.{number}.{part}.{name}", tensor
        yield "unembed.W_U", self.W_U
        yield "unembed.b_U", self.b_U

    def map(self, change: Callable[[Array], Array]) -> Weights:
        """Return a network with every tensor changed, in the order of :meth:`named`."""

        def changed(half: Any) -> Any:
            return half and replace(half, **{n: change(tensor) for n, tensor in _tensors(half).items()})

        W_E, W_pos = change(self.W_E), change(self.W_pos)
        layers = [LayerWeights(*map(changed, vars(layer).values())) for layer in self.layers]
        return Weights(W_E, W_pos, tuple(layers), change(self.W_U), change(self.b_U))

    def fingerprint(self) -> str:
        """Return the SHA-256 of names, dtypes, shapes and numbers of all tensors, on any machine."""
        digest = hashlib.sha256()
        for name, tensor in self.named():
            # Little-endian and row-major, however the array lies in memory.
            plain = np.ascontiguousarray(tensor, dtype=tensor.dtype.newbyteorder("<"))
            digest.update(f"{name} {plain.dtype.name} {list(plain.shape)}\n".encode())
            digest.update(plain.reshape(-1).view(np.uint8).data)  # no copy
        return digest.hexdigest()
