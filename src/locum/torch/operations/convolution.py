"""Convolutions in one, two and three dimensions, and their gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from locum.constructions.tensor import Layout, Tensor, sum_along
from locum.constructions.tensor_convolution import (
    Setting,
    convolve,
    convolve_transposed,
    kernel_gradient,
)
from locum.constructions.tensor_reductions import keep_dimensions
from locum.language.python import constant
from locum.torch.numbers import cast, computing_type
from locum.torch.table import operation


def _setting(stride: Any, padding: Any, dilation: Any, groups: int, dims: int) -> Setting:
    strides, paddings, dilations = (
        tuple(part) * (dims if len(part) == 1 else 1) for part in (stride, padding, dilation)
    )
    return Setting(strides, paddings, dilations, groups)


@operation("products", "convolution")
def convolution(
    out: Layout,
    a: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Tensor:
    """Return the convolution, or the transposed one, plus the bias; rounded once."""
    if 0 in out.shape:
        return out.result(constant(0.0))
    dtype = computing_type(out.dtype)
    setting = _setting(stride, padding, dilation, groups, len(a.shape) - 2)
    function = convolve_transposed if transposed else convolve
    wide = Layout(out.shape, out.strides, dtype)
    whole = function(wide, cast(a, dtype), cast(weight, dtype), setting).sop
    if bias is not None:
        per_channel = cast(bias, dtype)
        for _ in a.shape[2:]:
            per_channel = per_channel.unsqueeze(len(per_channel.shape))
        whole = wide.rounded(whole).sop + wide.read(per_channel)
    return out.rounded(whole)


@operation("products", "convolution_backward")
def convolution_backward(
    out: Any,
    gradient: Tensor,
    a: Tensor,
    weight: Tensor,
    bias_sizes: Any,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    output_mask: Sequence[bool],
) -> tuple[Tensor | None, ...]:
    """Return the gradients of input, weight and bias."""
    dtype = computing_type(gradient.dtype)
    wide, a, weight = (cast(tensor, dtype) for tensor in (gradient, a, weight))
    setting = _setting(stride, padding, dilation, groups, len(a.shape) - 2)
    function = convolve if transposed else convolve_transposed
    found: list[Tensor | None] = [None, None, None]
    if output_mask[0]:
        found[0] = _rounded(out[0], gradient, lambda layout: function(layout, wide, weight, setting))
    if output_mask[1]:
        outer, inner = (a, wide) if transposed else (wide, a)
        found[1] = _rounded(
            out[1], gradient, lambda layout: kernel_gradient(layout, outer, inner, setting)
        )
    if output_mask[2]:
        dims = [0, *range(2, len(a.shape))]
        total = sum_along(wide, dims)
        found[2] = out[2].rounded(keep_dimensions(out[2], wide, dims).read(total))
    return tuple(found)


def _rounded(out: Layout, gradient: Tensor, function: Any) -> Tensor:
    if 0 in gradient.shape or 0 in out.shape:
        return out.result(constant(0.0))
    return out.rounded(function(Layout(out.shape, out.strides, gradient.dtype)).sop)
