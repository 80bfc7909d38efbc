"""Define the constructions of scaled dot-product attention and its gradients for ATen's CPU and CUDA
kernels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from locum.constructions.tensor import Layout, Tensor, reduce_sum
from locum.constructions.tensor_attention import attention, attention_backward
from locum.errors import InputError
from locum.rasp.python import constant, where
from locum.torch.numbers import cast, computing_type
from locum.torch.table import operation


def _check_dropout(dropout_p: float) -> None:
    if dropout_p:
        raise InputError(
            f"scaled_dot_product_attention: expected dropout_p=0.0, got {dropout_p}; "
            "try with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH)"
        )


def _scale(q: Tensor, scale: float | None) -> float:
    return 1 / math.sqrt(q.shape[-1]) if scale is None else float(scale)


def _mask(mask: Tensor | None, dtype: str) -> Tensor | None:
    return mask if mask is None or mask.dtype == "bool" else cast(mask, dtype)


def forward(
    out: Layout,
    logarithms: Layout,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None,
    causal: bool,
    scale: float | None,
) -> tuple[Tensor, Tensor]:
    """Return softmax(scale · q kᵀ + mask) v and the log-sum-exp of the scores for each query.

    ``out`` and ``logarithms`` are the layouts of the two results. Some kernels pad the log-sum-exp to
    more queries than ``q`` contains. The padding is ∞.
    """
    if 0 in out.shape or 0 in k.shape:
        return out.result(constant(0.0)), logarithms.result(constant(0.0))
    dtype = computing_type(q.dtype)
    wide_q, wide_k, wide_v = (cast(tensor, dtype) for tensor in (q, k, v))
    found, sums = attention(wide_q, wide_k, wide_v, _scale(q, scale), _mask(mask, dtype), causal)
    grouped = out.unflatten(1, k.shape[1])
    result = out.result(grouped.rounded(grouped.read(found)).sop)
    if 0 in logarithms.shape:
        return result, logarithms.result(constant(0.0))
    batch, head, query, *_ = logarithms.index
    members = q.shape[1] // k.shape[1]
    value = sums.at(batch, head // members, head % members, query, 0)
    if logarithms.shape[2] != q.shape[2]:
        value = where(constant(0) + query < q.shape[2], value, math.inf)
    return result, logarithms.rounded(value)


def backward(
    out: Sequence[Layout | None],
    gradient: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    result: Tensor,
    logarithms: Tensor,
    mask: Tensor | None,
    causal: bool,
    scale: float | None,
) -> tuple[Tensor | None, ...]:
    """Return the gradients of ``q``, ``k`` and ``v``, and of the mask if ``out`` contains its layout.

    ``result`` and ``logarithms`` are the results of the forward pass. The gradient of the mask is None
    if its layout is None.
    """
    if any(0 in tensor.shape for tensor in (q, k, v)):
        return tuple(None if layout is None else layout.result(constant(0.0)) for layout in out)
    dtype = computing_type(q.dtype)
    gradient, wide_q, wide_k, wide_v, result, logarithms = (
        cast(tensor, dtype) for tensor in (gradient, q, k, v, result, logarithms)
    )
    for dim in range(len(logarithms.shape) - 1, 2, -1):
        logarithms = logarithms.select(dim, 0)
    of_q, of_k, of_v, of_scores = attention_backward(
        gradient,
        wide_q,
        wide_k,
        wide_v,
        result,
        logarithms.slice(2, 0, q.shape[2]),
        _scale(q, scale),
        _mask(mask, dtype),
        causal,
    )
    assert out[0] is not None
    grouped = out[0].unflatten(1, k.shape[1])
    found: list[Tensor | None] = [out[0].result(grouped.rounded(grouped.read(of_q)).sop)]
    for layout, part in zip(out[1:3], (of_k, of_v), strict=True):
        assert layout is not None
        found.append(layout.rounded(layout.read(part)))
    for layout in out[3:]:
        of_mask = None if layout is None else _mask_gradient(layout, of_scores, k.shape[1])
        found.append(of_mask)
    return tuple(found)


def _mask_gradient(out: Layout, of_scores: Tensor, key_heads: int) -> Tensor:
    """Return the gradient of the mask.

    The result is the gradient of the scores, summed over the dimensions along which the mask is
    expanded.
    """
    if 0 in out.shape:
        return out.result(constant(0.0))
    missing = 4 - len(out.shape)
    shape = (1,) * missing + out.shape
    strides = (1,) * missing + out.strides
    kept = Layout(shape, strides, out.dtype)
    heads = key_heads if shape[1] != 1 else 1
    grouped = kept.unflatten(1, heads)
    dims = [d for d, n in enumerate(grouped.shape) if n == 1 and of_scores.shape[d] != 1]
    return out.rounded(reduce_sum(grouped, of_scores, dims).sop)


# CPU --------------------------------------------------------------------------------------------------


@operation("attention", "_scaled_dot_product_flash_attention_for_cpu")
def flash_attention_for_cpu(
    out: Any,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> tuple[Tensor, ...]:
    """Return softmax(scale · q kᵀ + mask) v and the log-sum-exp of the scores for each query."""
    _check_dropout(dropout_p)
    return forward(out[0], out[1], q, k, v, attn_mask, is_causal, scale)


@operation("attention", "_scaled_dot_product_flash_attention_for_cpu_backward")
def flash_attention_for_cpu_backward(
    out: Any,
    gradient: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    result: Tensor,
    logarithms: Tensor,
    dropout_p: float,
    is_causal: bool,
    *,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> tuple[Tensor | None, ...]:
    """Return the gradients of the queries, keys and values of scaled dot-product attention."""
    _check_dropout(dropout_p)
    return backward(out, gradient, q, k, v, result, logarithms, attn_mask, is_causal, scale)


# CUDA -------------------------------------------------------------------------------------------------


def _with_unused(out: Any, found: tuple[Tensor, Tensor]) -> tuple[Any, ...]:
    """Return the results of the forward pass, followed by zeros for the remaining tensors that the
    kernel returns.

    The constructions of gradients do not read these tensors.
    """
    others = (part.result(constant(0)) if isinstance(part, Layout) else part for part in out[2:])
    return *found, *others


@operation("attention", "_scaled_dot_product_flash_attention")
def flash_attention(
    out: Any,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    return_debug_mask: bool = False,
    *,
    scale: float | None = None,
) -> tuple[Any, ...]:
    """Return softmax(scale · q kᵀ) v, optionally with a causal mask, and the log-sum-exp of the scores
    for each query.
    """
    _check_dropout(dropout_p)
    return _with_unused(out, forward(out[0], out[1], q, k, v, None, is_causal, scale))


@operation("attention", "_scaled_dot_product_flash_attention_backward")
def flash_attention_backward(
    out: Any,
    gradient: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    result: Tensor,
    logarithms: Tensor,
    cum_seq_q: Any,
    cum_seq_k: Any,
    max_q: int,
    max_k: int,
    dropout_p: float,
    is_causal: bool,
    *unused: Any,
    scale: float | None = None,
) -> tuple[Tensor | None, ...]:
    """Return the gradients of the queries, keys and values of scaled dot-product attention."""
    _check_dropout(dropout_p)
    return backward(out, gradient, q, k, v, result, logarithms, None, is_causal, scale)


@operation("attention", "_scaled_dot_product_efficient_attention")
def efficient_attention(
    out: Any,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    attn_bias: Tensor | None,
    compute_log_sumexp: bool,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
) -> tuple[Any, ...]:
    """Return softmax(scale · q kᵀ + bias) v and the log-sum-exp of the scores for each query."""
    _check_dropout(dropout_p)
    return _with_unused(out, forward(out[0], out[1], q, k, v, attn_bias, is_causal, scale))


@operation("attention", "_scaled_dot_product_efficient_attention_backward")
def efficient_attention_backward(
    out: Any,
    gradient: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    attn_bias: Tensor | None,
    result: Tensor,
    logarithms: Tensor,
    philox_seed: Any,
    philox_offset: Any,
    dropout_p: float,
    grad_input_mask: Sequence[bool],
    is_causal: bool = False,
    *,
    scale: float | None = None,
) -> tuple[Tensor | None, ...]:
    """Return the gradients of the queries, keys, values and bias of scaled dot-product attention."""
    _check_dropout(dropout_p)
    layouts = [*out[:3], out[3] if grad_input_mask[3] else None]
    return backward(layouts, gradient, q, k, v, result, logarithms, attn_bias, is_causal, scale)


@operation("attention", "_scaled_dot_product_cudnn_attention")
def cudnn_attention(
    out: Any,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    attn_bias: Tensor | None,
    compute_log_sumexp: bool,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    return_debug_mask: bool = False,
    *,
    scale: float | None = None,
) -> tuple[Any, ...]:
    """Return softmax(scale · q kᵀ + bias) v and the log-sum-exp of the scores for each query."""
    _check_dropout(dropout_p)
    return _with_unused(out, forward(out[0], out[1], q, k, v, attn_bias, is_causal, scale))


@operation("attention", "_scaled_dot_product_cudnn_attention_backward")
def cudnn_attention_backward(
    out: Any,
    gradient: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    result: Tensor,
    logarithms: Tensor,
    philox_seed: Any,
    philox_offset: Any,
    attn_bias: Tensor | None,
    cum_seq_q: Any,
    cum_seq_k: Any,
    max_q: int,
    max_k: int,
    dropout_p: float,
    is_causal: bool,
    *,
    scale: float | None = None,
) -> tuple[Tensor | None, ...]:
    """Return the gradients of the queries, keys and values of scaled dot-product attention."""
    _check_dropout(dropout_p)
    return backward(out, gradient, q, k, v, result, logarithms, attn_bias, is_causal, scale)
