"""Store the weights of a transformer with the names and shapes of TransformerLens.

Each layer adds the output of its attention, then the output of its feed-forward, to a residual stream
of ``d_model`` slots. Each head uses either average-hard attention (the mean over the keys with the
largest score) or softmax attention. Scores are q·k, not divided by √d_head. There are no
layer norms.

- ``W_E`` [d_vocab, d_model]: the embedding of each token. For real-valued tokens, ``W_E`` has one row,
  which is multiplied by the token.
- ``W_pos`` [n_ctx, d_model]: the embedding of each position. In a network with a sink, position 0 is
  the sink, an extra first token. A head attends to the sink if it selects no other key, or to count the
  selected keys.
- ``W_Q``, ``W_K``, ``W_V`` [head, d_model, d_head]; ``b_Q``, ``b_K``, ``b_V`` [head, d_head]; ``W_O``
  [head, d_head, d_model]; ``b_O`` [d_model]: the heads.
- ``W_in`` [d_model, d_in], ``b_in`` [d_in], ``W_out`` [d_mlp, d_model], ``b_out`` [d_model]: the
  feed-forward. A gated feed-forward also has ``W_gate`` [d_model, d_mlp].
- ``W_U`` [d_model, d_vocab_out], ``b_U`` [d_vocab_out]: the unembedding.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from locum.networks.transformer.config import ATTENTIONS
from locum.networks.transformer.functions import Functions

Array: TypeAlias = NDArray[np.floating[Any]]

#: Kinds of attention.
HARD, SOFTMAX = ATTENTIONS


@dataclass(frozen=True)
class AttentionWeights:
    """The weights of all heads of one layer."""

    W_Q: Array
    b_Q: Array
    W_K: Array
    b_K: Array
    W_V: Array
    b_V: Array
    W_O: Array
    b_O: Array
    #: Kind of attention of each head: ``hard`` or ``softmax``.
    kinds: tuple[str, ...]

    @property
    def heads(self) -> int:
        """Number of heads."""
        return len(self.kinds)


@dataclass(frozen=True)
class FeedForwardWeights:
    """The weights of the feed-forward of one layer, whose activation depends on ``kind``.

    - ``relu``, ``gelu``: an MLP with this activation.
    - ``glu``: a gated MLP with the hidden units relu(x·W_gate) ⊙ (x·W_in + b_in).
    - ``exact``: a symbolic feed-forward. ``functions`` maps the d_in numbers x·W_in + b_in to d_mlp
      numbers at each position; at the sink, these are 0.
    """

    kind: str
    W_in: Array
    b_in: Array
    W_out: Array
    b_out: Array
    W_gate: Array | None = None
    functions: Functions | None = None


def _tensors(half: AttentionWeights | FeedForwardWeights | None) -> dict[str, Array]:
    """Return the tensors of a sublayer by name; empty if it is absent."""
    named = {} if half is None else vars(half)
    return {name: value for name, value in named.items() if isinstance(value, np.ndarray)}


@dataclass(frozen=True)
class LayerWeights:
    """The weights of one layer; a sublayer that is None adds nothing to the residual stream."""

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
        """Set of the kinds of feed-forward that occur in the layers."""
        return {layer.feed_forward.kind for layer in self.layers if layer.feed_forward is not None}

    def named(self) -> Iterator[tuple[str, Array]]:
        """Yield the name and value of every tensor, from the embeddings to the unembedding."""
        yield "embed.W_E", self.W_E
        yield "pos_embed.W_pos", self.W_pos
        for number, layer in enumerate(self.layers):
            for part, weights in (("attn", layer.attention), ("mlp", layer.feed_forward)):
                for name, tensor in _tensors(weights).items():
                    yield f"blocks.{number}.{part}.{name}", tensor
        yield "unembed.W_U", self.W_U
        yield "unembed.b_U", self.b_U

    def map(self, change: Callable[[Array], Array]) -> Weights:
        """Return weights with ``change`` applied to every tensor, in the order of :meth:`named`."""

        def changed(half: Any) -> Any:
            return half and replace(half, **{n: change(tensor) for n, tensor in _tensors(half).items()})

        W_E, W_pos = change(self.W_E), change(self.W_pos)
        layers = tuple(
            LayerWeights(changed(layer.attention), changed(layer.feed_forward)) for layer in self.layers
        )
        return Weights(W_E, W_pos, layers, change(self.W_U), change(self.b_U))

    def fingerprint(self) -> str:
        """Return the SHA-256 hash of the names, dtypes, shapes and values of all tensors."""
        return hash_tensors(self.named())


def hash_tensors(named: Iterable[tuple[str, Array]]) -> str:
    """Return the SHA-256 hash of the names, dtypes, shapes and values of tensors.

    The hash does not depend on the machine.
    """
    digest = hashlib.sha256()
    for name, tensor in named:
        # The bytes are little-endian and row-major for any memory layout.
        plain = np.ascontiguousarray(tensor, dtype=tensor.dtype.newbyteorder("<"))
        digest.update(f"{name} {plain.dtype.name} {list(plain.shape)}\n".encode())
        digest.update(plain.reshape(-1).view(np.uint8).data)  # no copy
    return digest.hexdigest()
