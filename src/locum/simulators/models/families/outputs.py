"""What a model gives, and where it is computed."""

from __future__ import annotations

from dataclasses import dataclass

from locum.execution.arrays import Array

#: What the host does, and what U does.
HOST = (
    "tokenisation, or images cut into rows; rows of tables (words, positions, types, distances)",
    "tables of rotary positions; masks joined; states carried from layer to layer",
    "once, weights transposed, fused projections split, the scale of the scores into W_Q and b_Q",
)
BY_U = (
    "sums, products and norms of the embedding",
    "projections, rotations, scores with their biases, softmax, values, W_O of every head",
    "residual sums, norms, feed-forwards; the last norm, pooler and logits",
)


@dataclass(frozen=True)
class ModelOutputs:
    """What a model gives, by the names and in the shapes of the transformers library."""

    last_hidden_state: Array
    logits: Array | None = None
    pooler_output: Array | None = None
    #: The states before the first layer and after each; the last is behind the last norm where the
    #: library has it so (not in ViT).
    hidden_states: tuple[Array, ...] = ()
    #: Of an encoder and a decoder, these instead; last_hidden_state is the decoder's.
    encoder_last_hidden_state: Array | None = None
    encoder_hidden_states: tuple[Array, ...] = ()
    decoder_hidden_states: tuple[Array, ...] = ()
    #: One row for each text, as the modules.json of a folder says (sentence-transformers).
    embeddings: Array | None = None
