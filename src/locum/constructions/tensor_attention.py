"""Compute scaled dot-product attention of tensors and its gradients.

Queries have the shape [batch, head, query, feature]. Keys and values may have fewer heads, each for a
group of query heads (grouped-query attention). The results of matrix products, sums and elementwise
functions are rounded to the type of the tensors.
"""

from __future__ import annotations

import math

from locum.constructions.observation import observe
from locum.constructions.tensor import Layout, Tensor, contract, pointwise, sum_along
from locum.constructions.tensor_normalisation import masked_softmax
from locum.rasp.python import exp, where


def group_heads(tensor: Tensor, key_heads: int) -> Tensor:
    """Return a view [batch, key head, member, …] of [batch, head, …], in which members of a group share
    keys and values.
    """
    return tensor.unflatten(1, key_heads)


def merge_heads(tensor: Tensor) -> Tensor:
    """Merge the groups of heads: convert a tensor [batch, key head, member, …] to [batch, head, …]."""
    batch, key_heads, members, *rest = tensor.shape
    out = Layout.contiguous((batch, key_heads * members, *rest), tensor.dtype)
    return out.result(out.unflatten(1, key_heads).read(tensor))


def scores(q: Tensor, k: Tensor, scale: float, mask: Tensor | None, causal: bool) -> Tensor:
    """Return scale · q kᵀ + mask as a tensor [batch, key head, member, query, key].

    A boolean mask is true at visible keys. With ``causal``, the keys after the position of a query are
    hidden.
    """
    batch, key_heads, keys, _ = k.shape
    grouped = group_heads(q, key_heads)
    out = Layout.contiguous((*grouped.shape[:-1], keys), q.dtype)
    products = contract(out, "bhgqk", (grouped, "bhgqe"), (k, "bhke"))
    result = pointwise(lambda s: s * scale, out.rounded(products.sop))
    if mask is not None:
        whole = group_heads(mask.expand(batch, *q.shape[1:3], keys), key_heads)
        if mask.dtype == "bool":
            result = pointwise(lambda s, m: where(m, s, -math.inf), result, whole)
        else:
            result = pointwise(lambda s, m: s + m, result, whole)
    if not causal:
        return result
    *_, query, key = out.index
    return out.result(where(key - query <= 0, result.sop, -math.inf))


def attention(
    q: Tensor, k: Tensor, v: Tensor, scale: float, mask: Tensor | None, causal: bool
) -> tuple[Tensor, Tensor]:
    """Return softmax(scores) v as [batch, key head, member, query, feature], and log Σ exp(scores).

    Both are 0 for a query without visible keys. The attention weights, with the shape [batch, head,
    query, key], are passed to :func:`observe` under the name ``pattern``.
    """
    weights, logarithms = masked_softmax(scores(q, k, scale, mask, causal), 4)
    observe("pattern", merge_heads(weights))
    out = Layout.contiguous((*weights.shape[:-1], v.shape[-1]), q.dtype)
    result = contract(out, "bhgqe", (weights, "bhgqk"), (v, "bhke"))
    return out.rounded(result.sop), logarithms


def attention_backward(
    gradient: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    result: Tensor,
    logarithms: Tensor,
    scale: float,
    mask: Tensor | None,
    causal: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the gradients of q, k, v and of the scores.

    The gradients of q and of the scores have grouped heads, as in :func:`group_heads`. The attention
    weights are computed again from ``logarithms``, which contains log Σ exp(scores) as [batch, head,
    query].
    """
    key_heads = k.shape[1]
    saved = group_heads(logarithms, key_heads).unsqueeze(4)
    weights = pointwise(lambda s, m: exp(s - m), scores(q, k, scale, mask, causal), saved)
    gradient, result = group_heads(gradient, key_heads), group_heads(result, key_heads)
    dtype = q.dtype
    by_value = Layout.contiguous(v.shape, dtype)
    of_v = by_value.rounded(contract(by_value, "bhke", (weights, "bhgqk"), (gradient, "bhgqe")).sop)
    by_score = Layout.contiguous(weights.shape, dtype)
    inner = by_score.rounded(contract(by_score, "bhgqk", (gradient, "bhgqe"), (v, "bhke")).sop)
    shares = sum_along(pointwise(lambda g, y: g * y, gradient, result), [4])
    centred = pointwise(lambda x, m: x - m, inner, shares)
    of_scores = pointwise(lambda w, x: w * x, weights, centred)
    grouped = group_heads(q, key_heads)
    by_query = Layout.contiguous(grouped.shape, dtype)
    of_q = by_query.rounded(contract(by_query, "bhgqe", (of_scores, "bhgqk"), (k, "bhke")).sop)
    by_key = Layout.contiguous(k.shape, dtype)
    of_k = by_key.rounded(contract(by_key, "bhke", (of_scores, "bhgqk"), (grouped, "bhgqe")).sop)
    of_q, of_k = (pointwise(lambda g: g * scale, part) for part in (of_q, of_k))
    return of_q, of_k, of_v, of_scores
