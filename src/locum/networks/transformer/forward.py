"""Run the forward pass of a transformer in NumPy and record activations.

The residual stream has the axes [batch, position, slot]. Unless patterns are requested, heads run in
blocks, which limits the memory for attention scores. The callback ``tap`` receives the hook name and
the value of an activation. Names and axes are as in TransformerLens, except in gated feed-forwards:
``hook_gate`` is the gate before the ReLU, and ``hook_pre`` is the other factor. An activation cache
collects these values. An array that ``tap`` returns replaces the activation, which implements
interventions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from locum.errors import ExecutionError
from locum.execution.array_activations import gelu, relu
from locum.networks.transformer.functions import Functions
from locum.networks.transformer.weights import (
    HARD,
    Array,
    AttentionWeights,
    FeedForwardWeights,
    Weights,
)

Tap = Callable[[str, Array], "Array | None"]
#: Like ``Tap``, but returns the given activation if ``tap`` does not replace it.
Show = Callable[[str, Array], Array]

#: Maximum number of attention scores that are computed together. The scores of one head at one query
#: position are computed together for the whole batch, even if there are more.
MAX_SCORES = 2**22
#: Arguments below which the exponential is 0, by dtype.
_LOWEST = {"float64": -746.0, "float32": -105.0}
#: Maximum number of results that are checked together in one array; more results are checked
#: instruction by instruction.
_AT_ONCE = 2**16


def forward(
    weights: Weights,
    stream: Array,
    *,
    sink: bool,
    causal: bool = False,
    tap: Tap | None = None,
    patterns: bool = False,
    first: int = 0,
) -> Array:
    """Return the residual stream after the last layer, starting from ``stream`` before layer ``first``.

    With ``causal``, scores of keys after the query are −∞. ``tap`` receives attention scores and
    patterns only if ``patterns`` is true.
    """
    show = shown_to(tap)
    # A number of the stream beyond the range of floats becomes inf or NaN, and the output is rejected
    # when it is decoded.
    with np.errstate(all="ignore"):
        for number, layer in enumerate(weights.layers[first:], first):
            prefix = f"blocks.{number}"
            stream = show(f"{prefix}.hook_resid_pre", stream)
            if layer.attention is not None:
                stream = stream + attend(
                    layer.attention, stream, prefix, show, causal=causal, patterns=patterns
                )
            stream = show(f"{prefix}.hook_resid_mid", stream)
            if layer.feed_forward is not None:
                stream = stream + feed(layer.feed_forward, stream, prefix, show, sink=sink)
            stream = show(f"{prefix}.hook_resid_post", stream)
    return stream


def unembed(weights: Weights, stream: Array) -> Array:
    """Return the logits for the residual stream after the last layer."""
    with np.errstate(all="ignore"):
        return affine(stream, weights.W_U, weights.b_U)


def shown_to(tap: Tap | None) -> Show:
    """Return a function that passes an activation to ``tap`` and returns the replacement, if any.

    Without a replacement, the function returns the activation unchanged.
    """
    if tap is None:
        return lambda name, value: value

    def show(name: str, value: Array) -> Array:
        other = tap(name, value)
        return value if other is None else other

    return show


def attend(
    weights: AttentionWeights,
    stream: Array,
    prefix: str,
    show: Show,
    *,
    causal: bool = False,
    patterns: bool = False,
) -> Array:
    """Return the output of the attention of a layer, [batch, position, slot]."""
    q, k, v = (  # [batch, head, position, d_head]
        np.swapaxes(show(f"{prefix}.attn.hook_{name}", projected), 1, 2)
        for name, projected in zip("qkv", _project(stream, weights), strict=True)
    )
    hard = np.array([kind == HARD for kind in weights.kinds])[:, None, None]
    z: Array = np.empty_like(v)
    grid = (*z.shape[:3], z.shape[2])  # [batch, head, query, key]
    kept = np.empty(grid, z.dtype) if patterns else None
    for heads, queries in _blocks(*grid[:3]):
        scores = q[:, heads, queries] @ np.swapaxes(k[:, heads], -1, -2)
        if causal:
            ahead = np.arange(grid[3]) > np.arange(grid[2])[queries, None]
            scores[..., ahead] = -np.inf
        if kept is not None:
            kept[:, heads, queries] = scores
            continue
        chosen = _weigh(scores, hard[heads])
        counts = np.einsum("...k->...", chosen)[..., None]
        # Sum first and divide afterwards, so that a mean of integers is rounded only once.
        z[:, heads, queries] = chosen @ v[:, heads] / counts
    if kept is not None:
        z = _by_patterns(kept, v, hard, prefix, show)
    z = show(f"{prefix}.attn.hook_z", np.swapaxes(z, 1, 2))  # [batch, position, head, d_head]
    heads, width, slots = weights.W_O.shape
    W_O = weights.W_O.reshape(heads * width, slots)
    return show(f"{prefix}.hook_attn_out", affine(z.reshape(*z.shape[:2], len(W_O)), W_O, weights.b_O))


def affine(rows: Array, W: Array, b: Array | None = None) -> Array:
    """Return ``rows`` · ``W`` + ``b``, where ``rows`` has the axes [batch, position, number].

    The batch is computed as one matrix product. NumPy alone would compute one product per input.
    """
    # Sizes may be 0, so NumPy cannot infer an axis.
    result: Array = rows.reshape(math.prod(rows.shape[:-1]), rows.shape[-1]) @ W
    if b is not None:
        result += b
    return result.reshape(*rows.shape[:-1], W.shape[-1])


def _project(stream: Array, weights: AttentionWeights) -> Iterator[Array]:
    """Yield the queries, keys and values of all heads, each [batch, position, head, d_head].

    One large matrix product is faster than three small products.
    """
    matrices = weights.W_Q, weights.W_K, weights.W_V
    heads, slots, width = weights.W_Q.shape
    W = np.concatenate([W.transpose(1, 0, 2).reshape(slots, heads * width) for W in matrices], axis=1)
    biases = np.concatenate([b.ravel() for b in (weights.b_Q, weights.b_K, weights.b_V)])
    flat = affine(stream, W, biases).reshape(*stream.shape[:2], 3, heads, width)
    return (flat[:, :, part] for part in range(3))


def _by_patterns(scores: Array, v: Array, hard: NDArray[np.bool_], prefix: str, show: Show) -> Array:
    """Return the head outputs computed from all scores at once; pass scores and patterns to the
    hooks.
    """
    chosen = _weigh(show(f"{prefix}.attn.hook_attn_scores", scores), hard)
    counts = np.einsum("...k->...", chosen)[..., None]
    pattern = chosen / counts
    kept = pattern.copy()
    other = show(f"{prefix}.attn.hook_pattern", pattern)
    # As in a run without patterns, sum first and divide afterwards, unless a hook has replaced or
    # modified the pattern.
    same = other is pattern and np.array_equal(kept, pattern, equal_nan=True)
    z: Array = chosen @ v / counts if same else other @ v
    return z


def _blocks(batch: int, heads: int, positions: int) -> Iterator[tuple[slice, slice]]:
    """Yield slices of heads and of queries to compute together, with at most ``MAX_SCORES`` scores if
    possible.
    """
    head_step = max(1, MAX_SCORES // (batch * positions**2))
    query_step = max(1, MAX_SCORES // (batch * positions))
    for head in range(0, heads, head_step):
        for query in range(0, positions, query_step):
            yield slice(head, head + head_step), slice(query, query + query_step)


def _weigh(scores: Array, hard: NDArray[np.bool_]) -> Array:
    """Return the unnormalised attention weights of keys; ``hard`` marks the hard heads."""
    top = _greatest(scores)
    weights: Array = (scores == top).astype(scores.dtype) if hard.any() else scores
    if not hard.all():
        soft = _exponential(scores - top)
        weights = np.where(hard, weights, soft) if hard.any() else soft
    return weights


def _exponential(differences: Array) -> Array:
    """Return the exponential of ``differences``, the scores minus the maximum score of each query.

    In most compiled heads, each difference is 0 or so low that its exponential is 0. The comparisons
    for this case are faster than NumPy's exponential. The array ``differences`` is overwritten.
    """
    is_zero = differences == 0
    vanishes = differences < _LOWEST[differences.dtype.name]
    if np.count_nonzero(is_zero) + np.count_nonzero(vanishes) == differences.size:
        differences[...] = is_zero
    else:
        np.exp(differences, out=differences)
    return differences


def _greatest(scores: Array) -> Array:
    """Return the maximum score of each query; faster than ``max`` for few keys."""
    if scores.shape[-1] > 32:
        return np.asarray(scores.max(axis=-1, keepdims=True))
    top: Array = scores[..., 0].copy()
    for key in range(1, scores.shape[-1]):
        np.maximum(top, scores[..., key], out=top)
    return top[..., None]


def feed(weights: FeedForwardWeights, stream: Array, prefix: str, show: Show, *, sink: bool) -> Array:
    """Return the output of the feed-forward of a layer, [batch, position, slot]."""
    before = show(f"{prefix}.mlp.hook_pre", affine(stream, weights.W_in, weights.b_in))
    if weights.functions is not None:
        after = _exact(weights, before, sink)
    elif weights.kind == "glu":
        assert weights.W_gate is not None
        after = relu(show(f"{prefix}.mlp.hook_gate", affine(stream, weights.W_gate))) * before
    elif weights.kind == "gelu":
        after = gelu(before)
    else:
        after = relu(before)
    after = show(f"{prefix}.mlp.hook_post", after)
    return show(f"{prefix}.hook_mlp_out", affine(after, weights.W_out, weights.b_out))


def _exact(weights: FeedForwardWeights, before: Array, sink: bool) -> Array:
    functions = weights.functions
    assert functions is not None
    # The sink is not part of the program: functions are not evaluated at the sink, and their outputs
    # are 0.
    real = before[:, 1:] if sink else before
    # A comparison, for example, would turn NaN or infinity into a finite number.
    if not np.isfinite(real).all():
        raise ExecutionError(
            "a number exceeds the range of floats", "the residual stream", kind="OverflowError"
        )
    results, outputs = functions.trace([real[..., i] for i in range(functions.arguments)])
    _require_values(functions, results)
    after = np.zeros((*before.shape[:-1], len(outputs)), dtype=before.dtype)
    for place, output in enumerate(outputs):
        after[:, sink:, place] = output
    return after


def _require_values(functions: Functions, results: Sequence[Array]) -> None:
    """Raise ``ExecutionError`` if the result of an instruction is NaN or infinite."""
    if sum(result.size for result in results) <= _AT_ONCE and np.isfinite(np.array(results)).all():
        return
    for instruction, result in zip(functions.instructions, results, strict=True):
        finite = np.isfinite(result)
        if not finite.all():
            position = int(np.argwhere(~finite)[0][-1])
            raise ExecutionError(
                f"{instruction.op} is undefined, or its value exceeds the range of floats",
                instruction.label or instruction.op,
                position,
                kind="ArithmeticError",
            )


#: Short names of hooks of attention and feed-forward, and aliases of some of these names.
_ATTENTION = frozenset({"q", "k", "v", "z", "attn_scores", "pattern"})
_FEED_FORWARD = frozenset({"pre", "post"})
_ALSO = {
    "attn": "pattern",
    "attn_logits": "attn_scores",
    "query": "q",
    "key": "k",
    "value": "v",
    "mlp_pre": "pre",
    "mlp_post": "post",
}


class ActivationCache(Mapping[Any, Array]):
    """A mapping from hook names to activations.

    Short names, such as "embed" or the pair ("pattern", −1) with a layer, are also accepted as keys.

    >>> import numpy as np
    >>> cache = ActivationCache({"blocks.0.attn.hook_pattern": np.eye(2)[None, None]}, 1)
    >>> cache["pattern", -1].shape
    (1, 1, 2, 2)
    """

    def __init__(self, activations: Mapping[str, Array], layers: int) -> None:
        self._activations = dict(activations)
        self._layers = layers

    def __getitem__(self, key: Any) -> Array:
        name = key if key in self._activations else self._full(key)
        if name not in self._activations:
            raise KeyError(
                f"expected the name of an activation, got {key!r}; try {', '.join(self._activations)}"
            )
        return self._activations[name]

    def __contains__(self, key: object) -> bool:
        return key in self._activations or self._full(key) in self._activations

    def __iter__(self) -> Iterator[str]:
        return iter(self._activations)

    def __len__(self) -> int:
        return len(self._activations)

    def __repr__(self) -> str:
        return f"<ActivationCache: {len(self)} activations of {self._layers} layers>"

    def _full(self, key: object) -> str:
        match key:
            case str(name):
                return f"hook_{name}"
            case (str(name), int(layer)):
                name = _ALSO.get(name, name)
                part = "attn." if name in _ATTENTION else "mlp." if name in _FEED_FORWARD else ""
                return f"blocks.{layer + self._layers if layer < 0 else layer}.{part}hook_{name}"
        return ""
