"""Define the constructions of softmax, layer norm, group norm, batch norm and their gradients."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from locum.constructions.tensor import Layout, Tensor, pointwise, sum_along
from locum.constructions.tensor_normalisation import (
    log_softmax,
    log_softmax_backward,
    masked_softmax,
    scale_and_shift,
    softmax,
    softmax_backward,
    standardise,
    standardise_backward,
)
from locum.constructions.tensor_reductions import keep_dimensions
from locum.rasp.python import constant, sqrt
from locum.torch.numbers import cast, computing_type
from locum.torch.operations.reduction_operations import moments
from locum.torch.table import operation


def finish(out: Layout | None, tensor: Tensor) -> Any:
    """Return ``tensor`` in the shape, strides and dtype of ``out``, or None if ``out`` is None."""
    if out is None:
        return None
    if 0 in out.shape:
        return out.result(constant(0.0))
    return out.rounded(out.read(tensor))


# Softmax ----------------------------------------------------------------------------------------------


@operation("normalisation", "_softmax")
def softmax_(out: Layout, a: Tensor, dim: int, half_to_float: bool = False) -> Tensor:
    """Return the softmax along a dimension."""
    return _along(out, a, dim, softmax)


@operation("normalisation", "_log_softmax")
def log_softmax_(out: Layout, a: Tensor, dim: int, half_to_float: bool = False) -> Tensor:
    """Return the logarithm of the softmax along a dimension."""
    return _along(out, a, dim, log_softmax)


@operation("normalisation", "_safe_softmax")
def safe_softmax(out: Layout, a: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """Return the softmax along a dimension. The softmax of a row that contains only −∞ is 0."""
    return _along(out, a, dim, lambda x, along: masked_softmax(x, along)[0])


def _along(out: Layout, a: Tensor, dim: int, function: Callable[..., Tensor]) -> Tensor:
    if not a.shape:
        single = function(Tensor(a.sop, (1,), (1,), a.offset, a.dtype), 0)
        return out.rounded(single.sop)
    if 0 in out.shape:
        return out.result(constant(0.0))
    wide = cast(a, computing_type(out.dtype))
    result: Tensor = finish(out, function(wide, dim % len(a.shape)))
    return result


@operation("normalisation", "_softmax_backward_data")
def softmax_backward_(
    out: Layout, gradient: Tensor, result: Tensor, dim: int, input_dtype: Any
) -> Tensor:
    """Return the gradient of the input of a softmax."""
    return _backward(out, gradient, result, dim, softmax_backward)


@operation("normalisation", "_log_softmax_backward_data")
def log_softmax_backward_(
    out: Layout, gradient: Tensor, result: Tensor, dim: int, input_dtype: Any
) -> Tensor:
    """Return the gradient of the input of a log-softmax."""
    return _backward(out, gradient, result, dim, log_softmax_backward)


def _backward(
    out: Layout, gradient: Tensor, result: Tensor, dim: int, function: Callable[..., Tensor]
) -> Tensor:
    if 0 in out.shape:
        return out.result(constant(0.0))
    dtype = computing_type(result.dtype)
    operands = [cast(tensor, dtype) for tensor in (gradient, result)]
    if not out.shape:
        operands = [tensor.unsqueeze(0) for tensor in operands]
        return out.rounded(function(*operands, 0).sop)
    found: Tensor = finish(out, function(*operands, dim % len(out.shape)))
    return found


# Layer norm -------------------------------------------------------------------------------------------


def _parts(dtype: str, *tensors: Tensor | None) -> list[Any]:
    return [tensor if tensor is None else cast(tensor, dtype) for tensor in tensors]


@operation("normalisation", "native_layer_norm")
def layer_norm(
    out: Any,
    a: Tensor,
    shape: Sequence[int],
    weight: Tensor | None,
    bias: Tensor | None,
    epsilon: float,
) -> tuple[Tensor, ...]:
    """Normalise the last dimensions, and return the result, the mean and 1 / √(variance + ε)."""
    dims = list(range(len(a.shape) - len(shape), len(a.shape)))
    wide, weight, bias = _parts(computing_type(out[0].dtype), a, weight, bias)
    centred, means, scale = standardise(wide, dims, epsilon)
    results = scale_and_shift(centred, scale, weight, bias), means, scale
    return tuple(finish(layout, part) for layout, part in zip(out, results, strict=True))


@operation("normalisation", "native_layer_norm_backward")
def layer_norm_backward(
    out: Any,
    gradient: Tensor,
    a: Tensor,
    shape: Sequence[int],
    means: Tensor,
    scale: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    output_mask: Sequence[bool],
) -> tuple[Tensor | None, ...]:
    """Return the gradients of the input, weight and bias of layer norm."""
    lead = len(a.shape) - len(shape)
    dtype = computing_type(a.dtype)
    gradient, wide, means, scale, weight = _parts(dtype, gradient, a, means, scale, weight)
    normal = scale_and_shift(pointwise(lambda x, m: x - m, wide, means), scale, None, None)
    dims = list(range(lead, len(a.shape)))
    return _gradients(out, gradient, normal, scale, weight, dims, list(range(lead)))


def _gradients(
    out: Any,
    gradient: Tensor,
    normal: Tensor,
    scale: Tensor,
    weight: Tensor | None,
    dims: Sequence[int],
    others: Sequence[int],
) -> tuple[Tensor | None, ...]:
    """Return the gradients of the input, weight and bias of a normalisation.

    ``normal`` is the normalised input and ``scale`` is 1 / √(variance + ε). The statistics are computed
    over ``dims``. Weight and bias are broadcast over ``others``. A gradient is None if its layout in
    ``out`` is None.
    """
    results: list[Tensor | None] = [None, None, None]
    if out[0] is not None:
        inner = gradient
        if weight is not None:
            inner = pointwise(lambda g, w: g * w, gradient, weight)
        results[0] = finish(out[0], standardise_backward(inner, normal, scale, dims))
    if out[1] is not None:
        products = pointwise(lambda g, y: g * y, gradient, normal)
        results[1] = _total(out[1], products, others)
    if out[2] is not None:
        results[2] = _total(out[2], gradient, others)
    return tuple(results)


def _total(out: Layout, a: Tensor, dims: Sequence[int]) -> Tensor:
    """Return the sum of ``a`` over the dimensions ``dims``, which ``out`` does not contain."""
    if not dims:
        same: Tensor = finish(out, a)
        return same
    kept: Tensor = finish(keep_dimensions(out, a, dims), sum_along(a, dims))
    return out.result(kept.sop)


# Group norm -------------------------------------------------------------------------------------------


@operation("normalisation", "native_group_norm")
def group_norm(
    out: Any,
    a: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    batch: int,
    channels: int,
    size: int,
    groups: int,
    epsilon: float,
) -> tuple[Tensor, ...]:
    """Normalise each group of channels, and return the result, the mean and 1 / √(variance + ε)."""
    wide, weight, bias = _parts(computing_type(a.dtype), a, weight, bias)
    grouped = wide.unflatten(1, groups)
    dims = list(range(2, len(grouped.shape)))
    centred, means, scale = standardise(grouped, dims, epsilon)
    weight, bias = (_by_group(part, groups, len(a.shape)) for part in (weight, bias))
    result = finish(out[0].unflatten(1, groups), scale_and_shift(centred, scale, weight, bias))
    means, scale = (
        finish(keep_dimensions(layout, grouped, dims), part)
        for layout, part in zip(out[1:], (means, scale), strict=True)
    )
    return out[0].result(result.sop), out[1].result(means.sop), out[2].result(scale.sop)


def _by_group(part: Tensor | None, groups: int, rank: int) -> Tensor | None:
    """Reshape a tensor with one entry per channel to broadcast to [batch, group, channel, …]."""
    if part is None:
        return None
    part = part.unflatten(0, groups)
    for _ in range(rank - 2):
        part = part.unsqueeze(len(part.shape))
    return part


@operation("normalisation", "native_group_norm_backward")
def group_norm_backward(
    out: Any,
    gradient: Tensor,
    a: Tensor,
    means: Tensor,
    scale: Tensor,
    weight: Tensor | None,
    batch: int,
    channels: int,
    size: int,
    groups: int,
    output_mask: Sequence[bool],
) -> tuple[Tensor | None, ...]:
    """Return the gradients of the input, weight and bias of group norm."""
    dtype = computing_type(a.dtype)
    gradient, wide, means, scale, weight = _parts(dtype, gradient, a, means, scale, weight)
    gradient, wide = gradient.unflatten(1, groups), wide.unflatten(1, groups)
    for _ in range(len(a.shape) - 1):
        means, scale = (part.unsqueeze(len(part.shape)) for part in (means, scale))
    weight = _by_group(weight, groups, len(a.shape))
    normal = scale_and_shift(pointwise(lambda x, m: x - m, wide, means), scale, None, None)
    layouts = [
        layout and layout.unflatten(place, groups) for layout, place in zip(out, (1, 0, 0), strict=True)
    ]
    dims = list(range(2, len(wide.shape)))
    found = _gradients(layouts, gradient, normal, scale, weight, dims, [0, *dims[1:]])
    return tuple(
        layout and part and layout.result(part.sop) for layout, part in zip(out, found, strict=True)
    )


# Batch norm -------------------------------------------------------------------------------------------


def _by_channel(part: Tensor | None, rank: int) -> Tensor | None:
    """Reshape a tensor with one entry per channel to broadcast to [batch, channel, …]."""
    if part is None:
        return None
    for _ in range(rank - 2):
        part = part.unsqueeze(len(part.shape))
    return part


def batch_norm(
    out: Sequence[Layout],
    a: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running: tuple[Tensor | None, Tensor | None],
    training: bool,
    momentum: float,
    epsilon: float,
) -> tuple[Tensor, ...]:
    """Normalise each channel of ``a``.

    The five possible results are the normalised input, the mean, 1 / √(variance + ε), the running mean
    and the running variance. ``out`` contains the layouts of the requested results, which are the first
    results in this order. Training uses the statistics of the batch, computed in float64, and updates
    the running statistics.
    """
    rank, dims = len(a.shape), [0, *range(2, len(a.shape))]
    dtype = computing_type(a.dtype)
    wide, weight, bias = _parts(dtype, a, weight, bias)
    updated: list[Tensor] = []
    if training:
        means, variance = moments(a, dims, 0)
        statistics = [_by_channel(part, rank) for part in _parts("float64", *running)]
        count = math.prod(a.shape[dim] for dim in dims)
        freedom = count / (count - 1) if count > 1 else math.inf
        unbiased = pointwise(lambda v: v * freedom, variance)
        for old, new in zip(statistics, (means, unbiased), strict=True):
            if old is not None:
                updated.append(pointwise(lambda x, y: x * (1.0 - momentum) + y * momentum, old, new))
    else:
        given = [_by_channel(part, rank) for part in (*_parts("float64", *running), *running)]
        means, variance, *updated = [part for part in given if part is not None]
    scale = pointwise(lambda v: 1.0 / sqrt(v + epsilon), variance)
    centred = pointwise(lambda x, m: x - m, wide, cast(means, dtype))
    weight, bias = (_by_channel(part, rank) for part in (weight, bias))
    result = scale_and_shift(centred, cast(scale, dtype), weight, bias)
    found = [finish(out[0], result)]
    for layout, part in zip(out[1:], (means, scale, *updated), strict=False):
        if 0 in layout.shape:
            found.append(layout.result(constant(0.0)))
            continue
        found.append(layout.result(finish(keep_dimensions(layout, a, dims), part).sop))
    return tuple(found)


@operation("normalisation", "_native_batch_norm_legit_functional")
def batch_norm_training(
    out: Any,
    a: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    mean: Tensor | None,
    var: Tensor | None,
    training: bool,
    momentum: float,
    epsilon: float,
) -> tuple[Tensor, ...]:
    """Normalise each channel; return the result, mean, 1 / √(variance + ε) and running statistics."""
    return batch_norm(out, a, weight, bias, (mean, var), training, momentum, epsilon)


@operation("normalisation", "_native_batch_norm_legit.no_stats")
def batch_norm_without_statistics(
    out: Any,
    a: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    training: bool,
    momentum: float,
    epsilon: float,
) -> tuple[Tensor, ...]:
    """Normalise each channel with the mean and variance of the batch."""
    return batch_norm(out, a, weight, bias, (None, None), True, momentum, epsilon)


@operation("normalisation", "_native_batch_norm_legit_no_training")
def batch_norm_evaluation(
    out: Any,
    a: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    mean: Tensor | None,
    var: Tensor | None,
    momentum: float,
    epsilon: float,
) -> tuple[Tensor, ...]:
    """Normalise each channel with the running mean and variance."""
    return batch_norm(out, a, weight, bias, (mean, var), False, momentum, epsilon)


@operation("normalisation", "_batch_norm_with_update_functional", "_batch_norm_no_update")
def batch_norm_with_reserve(
    out: Any,
    a: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    mean: Tensor | None,
    var: Tensor | None,
    momentum: float,
    epsilon: float,
) -> tuple[Tensor, ...]:
    """Normalise each channel. The fourth result is memory that only cuDNN uses, filled with 0.

    The operation with six results uses the statistics of the batch and updates the running statistics.
    """
    first, reserve, updated = out[:3], out[3], out[4:]
    training = bool(updated) or mean is None
    found = batch_norm((*first, *updated), a, weight, bias, (mean, var), training, momentum, epsilon)
    return *found[:3], reserve.result(constant(0)), *found[3:]


@operation("normalisation", "native_batch_norm_backward", "batch_norm_backward")
def batch_norm_backward(
    out: Any,
    gradient: Tensor,
    a: Tensor,
    weight: Tensor | None,
    mean: Tensor | None,
    var: Tensor | None,
    save_mean: Tensor | None,
    save_scale: Tensor | None,
    training: bool,
    epsilon: float,
    output_mask: Sequence[bool],
    reserve: Tensor | None = None,
) -> tuple[Tensor | None, ...]:
    """Return the gradients of the input, weight and bias of batch norm."""
    rank, dims = len(a.shape), [0, *range(2, len(a.shape))]
    dtype = computing_type(a.dtype)
    gradient, wide, weight = _parts(dtype, gradient, a, weight)
    chosen = (save_mean, save_scale) if training else (mean, var)
    means, scale = (_by_channel(part, rank) for part in _parts(dtype, *chosen))
    assert means is not None
    assert scale is not None
    if not training:
        scale = pointwise(lambda v: 1.0 / sqrt(v + epsilon), scale)
    weight = _by_channel(weight, rank)
    normal = scale_and_shift(pointwise(lambda x, m: x - m, wide, means), scale, None, None)
    found = list(_gradients(out, gradient, normal, scale, weight, dims, dims))
    if not training and out[0] is not None:
        scaled = scale if weight is None else pointwise(lambda s, w: s * w, scale, weight)
        found[0] = finish(out[0], pointwise(lambda g, s: g * s, gradient, scaled))
    return tuple(found)
