"""Compute attention in blocks of rows, so that memory is linear in the number of rows.

The scores of n rows and m keys have n·m elements. A row of the result depends on only one row of
scores, so a limited number of rows is computed at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from locum.execution.arrays import Array, is_tensor

#: Maximum number of elements of a temporary array of a plan, and of other arrays.
LARGEST_TEMPORARY, LARGEST_ARRAY = 2**28, 2**29
#: Maximum number of scores that :func:`attention_by_rows` computes at a time, unless one row of every
#: matrix has more. On a CPU, attention without a batch axis is fused from this number of scores.
MOST_SCORES = 2**22
#: Number of scores from which attention without a batch axis is fused on a GPU. In float32 and float64,
#: one product of all scores is faster than torch's kernels for fewer scores.
MOST_SCORES_ON_GPU = 2**26


def attention_by_rows(
    attend: Callable[[Array, Array, Array, Array | None, bool], Array],
    q: Array,
    k: Array,
    v: Array,
    mask: Array | None = None,
    causal: bool = False,
) -> Array:
    """Return attention over the last two axes, computed with a limited number of scores at a time.

    ``attend`` is a function of q, k, v, a mask, and whether attention is causal. The mask is true at
    visible keys, or contains numbers that are added to the scores.
    """
    queries, keys = q.shape[-2], k.shape[-2]
    step = max(1, MOST_SCORES // (math.prod(q.shape[:-2]) * keys))
    if step >= queries:
        return attend(q, k, v, mask, causal)
    parts = []
    for start in range(0, queries, step):
        stop = min(start + step, queries)
        rows = mask if mask is None or mask.shape[-2] == 1 else mask[..., start:stop, :]
        if causal:
            rows = _up_to(q, start, stop, keys)
        parts.append(attend(q[..., start:stop, :], k, v, rows, False))
    if not is_tensor(q):
        return np.concatenate(parts, axis=-2)
    import torch

    return torch.cat(parts, -2)


def softmax_attention(
    q: Array, k: Array, v: Array, mask: Array | None = None, causal: bool = False
) -> Array:
    """Return softmax(q kᵀ) v of NumPy arrays over the keys at which the mask is true.

    A mask of numbers is added to the scores.

    >>> q, v = np.zeros((2, 1)), np.array([[1.0], [3.0]])
    >>> softmax_attention(q, q, v, causal=True).tolist()
    [[1.0], [2.0]]
    """
    if causal:
        mask = _up_to(q, 0, q.shape[-2], k.shape[-2])
    with np.errstate(all="ignore"):  # BLAS may raise flags for numbers that it does not use
        scores = q @ np.swapaxes(k, -1, -2)
        if mask is not None:
            scores = np.where(mask, scores, -np.inf) if mask.dtype == np.bool_ else scores + mask
        scores -= scores.max(axis=-1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=-1, keepdims=True)
        return scores @ v


def _up_to(q: Array, start: int, stop: int, keys: int) -> Any:
    """Return the causal mask of the query rows in ``range(start, stop)`` as an array [row, key]."""
    if not is_tensor(q):
        return np.tri(stop - start, keys, start, dtype=np.bool_)
    import torch

    return torch.ones(stop - start, keys, dtype=torch.bool, device=q.device).tril(start)
