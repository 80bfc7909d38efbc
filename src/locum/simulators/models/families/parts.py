"""Parts that readers of several families share: attentions, positions, unembeddings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from locum.errors import InputError
from locum.execution.arrays import Array, is_tensor
from locum.simulators.models.families.source import Source
from locum.simulators.models.families.stage import Stage
from locum.simulators.modules.factored import FactoredAttention


def decoder_attention(
    weights: Sequence[Array],
    biases: Sequence[Array | None],
    W_O: Array,
    b_O: Array | None,
    heads: int,
    *,
    scale: float,
    **options: Any,
) -> FactoredAttention:
    """An attention of W_Q, W_K, W_V (inputs×outputs) and their biases; masks come with each run."""
    W_Q, W_K, W_V = weights
    b_Q, b_K, b_V = biases
    if W_Q.shape[1] % heads:
        raise InputError(f"{heads} heads cannot share {W_Q.shape[1]} columns equally")
    return FactoredAttention(
        W_Q, W_K, W_V, W_O, heads, b_Q=b_Q, b_K=b_K, b_V=b_V, b_O=b_O, scale=scale, **options
    )


def looked_up(table: Array, places: NDArray[Any]) -> Array:
    """The rows of a table at these places [text, position], one below the other."""
    rows = np.asarray(places, dtype=np.int64).reshape(-1)
    if not is_tensor(table):
        return table[rows]
    import torch

    return table[torch.as_tensor(rows, device=table.device)]


def unembedding(source: Source, words: Array, values: Mapping[str, Any]) -> Stage:
    """The product that makes logits: lm_head, or the table of words where the two are tied."""
    vocabulary, d = words.shape
    if source.folder is not None and values["tie_word_embeddings"]:
        table = words
    else:
        older = "embed_out" if source.has("embed_out.weight") else "lm_head"  # GPT-NeoX's, in files
        table = source.tensor(f"{older}.weight", vocabulary, d)
    return Stage().product(table.T)
