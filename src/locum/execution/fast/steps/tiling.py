"""Attention by rows of scores: memory that is linear in the number of rows.

All scores of n rows and m keys take up n·m numbers. Each row of the result depends on its own row of
scores alone, so a few rows are computed at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from locum.execution.arrays import Array, is_tensor

#: The most numbers in a temporary array of a plan, and in any other.
LARGEST_TEMPORARY, LARGEST_ARRAY = 2**28, 2**29
#: Attention with more scores than this is computed by rows. On a CPU that is also faster.
MOST_SCORES = 2**22
#: On a GPU, one product of all scores is faster than torch's kernels, as long as there is room.
MOST_SCORES_ON_GPU = 2**26


def attention_by_rows(
    attend: Callable[[Array, Array, Array, Array | None, bool], Array],
    q: Array,
    k: Array,
    v: Array,
    mask: Array | None = None,
    causal: bool = False,
) -> Array:
    """Return attention over the last two axes, a limited number of scores at a time.

    ``attend`` takes q, k, v, a mask and whether each query only counts keys up to itself. The mask is
    true where keys count, or has numbers that are added to the scores.
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
    """Return softmax(q kᵀ) v on NumPy arrays, of the keys at which the mask holds.

    >>> q, v = np.zeros((2, 1)), np.array([[1.0], [3.0]])
    >>> softmax_attention(q, q, v, causal=True).tolist()
    [[1.0], [2.0]]
    """
    if causal:
        mask = _up_to(q, 0, q.shape[-2], k.shape[-2])
    with np.errstate(all="ignore"):  # BLAS may raise flags for numbers it never uses
        scores = q @ np.swapaxes(k, -1, -2)
        if mask is not None:
            scores = np.where(mask, scores, -np.inf) if mask.dtype == np.bool_ else scores + mask
        scores -= scores.max(axis=-1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=-1, keepdims=True)
        return scores @ v


def _up_to(q: Array, start: int, stop: int, keys: int) -> Any:
    """Return the causal mask of some rows."""
    if not is_tensor(q):
        return np.tri(stop - start, keys, start, dtype=np.bool_)
    import torch

    return torch.ones(stop - start, keys, dtype=torch.bool, device=q.device).tril(start)
