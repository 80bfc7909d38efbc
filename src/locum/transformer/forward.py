"""The forward pass, in NumPy: what the weights do to a sequence.

A batch of sequences of one length at a time, [batch, position, slot]. ``tap`` is shown every activation
under the name of its TransformerLens hook and in the order of axes that TransformerLens has, which is
how a cache is filled.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from locum.errors import ExecutionError
from locum.execution.activations import gelu, relu
from locum.transformer.weights import (
    HARD,
    Array,
    AttentionWeights,
    FeedForwardWeights,
    Weights,
)

Tap = Callable[[str, Array], None]


def forward(weights: Weights, stream: Array, *, sink: bool, tap: Tap | None = None) -> Array:
    """The residual stream behind the last layer."""
    show: Tap = tap or (lambda name, value: None)
    # What leaves the range of the floats becomes inf or nan, stays so, and is refused where it is read
    # off.
    with np.errstate(all="ignore"):
        for number, layer in enumerate(weights.layers):
            prefix = f"blocks.{number}"
            show(f"{prefix}.hook_resid_pre", stream)
            if layer.attention is not None:
                stream = stream + attend(layer.attention, stream, prefix, show)
            show(f"{prefix}.hook_resid_mid", stream)
            if layer.feed_forward is not None:
                stream = stream + feed(layer.feed_forward, stream, prefix, show, sink=sink)
            show(f"{prefix}.hook_resid_post", stream)
    return stream


def attend(weights: AttentionWeights, stream: Array, prefix: str, show: Tap) -> Array:
    """What the heads of one layer add to the stream."""
    each = stream[:, None]  # [batch, 1, position, slot]
    q = each @ weights.W_Q + weights.b_Q[:, None]  # [batch, head, position, d_head]
    k = each @ weights.W_K + weights.b_K[:, None]
    v = each @ weights.W_V + weights.b_V[:, None]
    scores = q @ np.swapaxes(k, -1, -2)  # [batch, head, query, key]
    hard = np.array([kind == HARD for kind in weights.kinds])
    top = scores.max(axis=-1, keepdims=True)
    chosen = (scores == top).astype(stream.dtype)
    if not hard.all():
        soft = np.exp(scores - top)
        chosen = np.where(hard[:, None, None], chosen, soft)
    counts = chosen.sum(axis=-1, keepdims=True)
    # Summed first and divided after: a mean of whole numbers then has no rounding but the last.
    z = chosen @ v / counts
    for name, value in (("q", q), ("k", k), ("v", v), ("z", z)):
        show(f"{prefix}.attn.hook_{name}", np.swapaxes(value, 1, 2))  # [batch, position, head, d_head]
    show(f"{prefix}.attn.hook_attn_scores", scores)
    show(f"{prefix}.attn.hook_pattern", chosen / counts)
    out: Array = (z @ weights.W_O).sum(axis=1) + weights.b_O
    show(f"{prefix}.hook_attn_out", out)
    return out


def feed(weights: FeedForwardWeights, stream: Array, prefix: str, show: Tap, *, sink: bool) -> Array:
    """What the feed-forward of one layer adds to the stream."""
    before = stream @ weights.W_in + weights.b_in
    show(f"{prefix}.mlp.hook_pre", before)
    if weights.functions is not None:
        after = _exact(weights, before, sink)
    elif weights.kind == "glu":
        assert weights.W_gate is not None
        after = relu(stream @ weights.W_gate) * before
    elif weights.kind == "gelu":
        after = gelu(before)
    else:
        after = relu(before)
    show(f"{prefix}.mlp.hook_post", after)
    out: Array = after @ weights.W_out + weights.b_out
    show(f"{prefix}.hook_mlp_out", out)
    return out


def _exact(weights: FeedForwardWeights, before: Array, sink: bool) -> Array:
    functions = weights.functions
    assert functions is not None
    # The sink has no part in the program: functions are not asked there, and are 0.
    real = before[:, 1:] if sink else before
    results, outputs = functions.trace(np, [real[..., i] for i in range(functions.arguments)])
    for instruction, result in zip(functions.instructions, results, strict=True):
        finite = np.isfinite(result)
        if not finite.all():
            position = int(np.argwhere(~finite)[0][-1])
            raise ExecutionError(
                f"{instruction.op} has no value (or one beyond the floats)",
                instruction.label or instruction.op,
                position,
                kind="ArithmeticError",
            )
    after = np.zeros((*before.shape[:-1], len(outputs)), dtype=before.dtype)
    for place, output in enumerate(outputs):
        after[:, sink:, place] = output
    return after
