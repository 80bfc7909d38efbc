"""Parts that readers of several families share: attentions, positions, unembeddings."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from locum.errors import InputError
from locum.execution.arrays import Array, is_tensor, numpy_of
from locum.simulators.models.families.description import Output
from locum.simulators.models.families.source import Source
from locum.simulators.models.families.stage import Stage
from locum.simulators.models.forms import attention_of
from locum.simulators.modules.factored import FactoredAttention
from locum.simulators.modules.module import AttentionModule, Numbers


def attention_of_source(
    source: Source,
    weights: Sequence[Array],
    biases: Sequence[Array | None],
    W_O: Array,
    b_O: Array | None,
    heads: int,
    *,
    scale: float,
    **options: Any,
) -> AttentionModule:
    """Make an attention of W_Q, W_K, W_V (inputs×outputs) and biases; masks come with each run."""
    W_Q, W_K, W_V = weights
    b_Q, b_K, b_V = biases
    if W_Q.shape[1] % heads:
        raise InputError(f"{source.where}: {heads} heads cannot share {W_Q.shape[1]} columns equally")
    if source.form == "factored":
        return FactoredAttention(
            W_Q, W_K, W_V, W_O, heads, b_Q=b_Q, b_K=b_K, b_V=b_V, b_O=b_O, scale=scale, **options
        )
    if options or b_Q is None or b_K is None or b_V is None:
        raise InputError(f"{source.where}: a {source.family} has no form but the factored one")
    return attention_of(weights, [b_Q, b_K, b_V], W_O, b_O, heads, scale=scale, form=source.form)


def attention_of_linears(
    source: Source,
    parts: Sequence[str],
    d: int,
    heads: int,
    *,
    bias: bool = True,
    output_bias: bool = True,
    **options: Any,
) -> AttentionModule:
    """Make an attention of four Linears of d columns, by their names: those of Q, K, V and O."""
    *inputs, output = parts
    weights, biases = zip(*(source.linear(part, d, d, bias) for part in inputs), strict=True)
    of_output = source.linear(output, d, d, output_bias)
    scale = (d // heads) ** -0.5
    return attention_of_source(source, weights, biases, *of_output, heads, scale=scale, **options)


def feed_forward_of_linears(
    source: Source, inner: str, outer: str, d: int, hidden: int, bias: bool = True
) -> tuple[Array, Array, Any, Any]:
    """Return W1, W2, b1 and b2 of two Linears, as encoders take them."""
    W1, b1 = source.linear(inner, d, hidden, bias)
    W2, b2 = source.linear(outer, hidden, d, bias)
    return W1, W2, b1, b2


def relative_bias(
    table: Array, farthest: int, *, both_ways: bool
) -> Callable[[NDArray[Any], NDArray[Any]], Numbers]:
    """Make biases of scores by distance: [head, query, key], out of a table [bucket, head].

    Small distances have a bucket each, larger ones share them by their logarithm, in float32, as the
    library has it; ``both_ways``: half of the buckets are for keys behind the query.
    """
    rows = numpy_of(table)
    buckets = len(rows) // 2 if both_ways else len(rows)
    exact = buckets // 2
    if exact < 1 or farthest <= exact:
        raise InputError(
            f"expected a relative_attention_max_distance beyond the {exact} distances that have a "
            f"bucket each, got {farthest}"
        )

    def biases(queries: NDArray[Any], keys: NDArray[Any]) -> Numbers:
        ahead = keys[None, :] - queries[:, None]
        distance = np.abs(ahead) if both_ways else -np.minimum(ahead, 0)
        ratio = np.maximum(distance, 1).astype(np.float32) / np.float32(exact)
        far = (
            single("log", ratio) / np.float32(math.log(farthest / exact)) * np.float32(buckets - exact)
        )
        bucket = np.where(
            distance < exact, distance, np.minimum(exact + far.astype(np.int64), buckets - 1)
        )
        if both_ways:
            bucket = bucket + (ahead > 0) * buckets
        return np.ascontiguousarray(rows[bucket].transpose(2, 0, 1))

    return biases


def single(function: str, *arguments: Any) -> NDArray[np.float32]:
    """Compute in float32 by torch, as the library does, or else by NumPy: the last bits may differ."""
    if importlib.util.find_spec("torch") is None:
        return np.asarray(getattr(np, function)(*arguments), dtype=np.float32)
    import torch

    tensors = [torch.from_numpy(a) if isinstance(a, np.ndarray) else a for a in arguments]
    return np.asarray(getattr(torch, function)(*tensors).numpy())


def looked_up(table: Array, places: NDArray[Any]) -> Array:
    """Return the rows of a table at these places [text, position], one below the other."""
    rows = np.array(places, dtype=np.int64).reshape(-1)  # a copy, since torch takes no view
    if not is_tensor(table):
        return table[rows]
    import torch

    return table[torch.as_tensor(rows, device=table.device)]


def unembedding(source: Source, words: Array, values: Mapping[str, Any]) -> dict[str, Output]:
    """Read the product that makes logits, if there is one: lm_head, or the table of words if tied."""
    if not source.architecture.endswith(("ForCausalLM", "LMHeadModel")):
        return {}
    name = "embed_out" if source.has("embed_out.weight") else "lm_head"  # GPT-NeoX's, in files
    table = source.shared(f"{name}.weight", words, values["tie_word_embeddings"])
    return {"logits": Output(Stage().product(table.T))}
