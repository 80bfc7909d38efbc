"""Define the constructions of convolution, average pooling and max pooling, and of their gradients."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from locum.constructions.tensor import Layout, Tensor, reduce_sum, sum_along
from locum.constructions.tensor_convolution import (
    Setting,
    convolve,
    convolve_transposed,
    kernel_gradient,
    pad,
)
from locum.constructions.tensor_pooling import (
    counts,
    first_tap,
    flat_place,
    needed_after,
    windows,
)
from locum.constructions.tensor_reductions import keep_dimensions
from locum.rasp.python import constant, family, sum_over, where
from locum.torch.numbers import cast, computing_type, is_float, truncate
from locum.torch.operations.reduction_operations import extreme, place
from locum.torch.table import operation


def _pooling(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that registers a construction of pooling in two and in three dimensions.

    The first argument of the construction is the number of dimensions of a window. The number also
    replaces ``{}`` in ``name``.
    """

    def register(construct: Callable[..., Any]) -> Callable[..., Any]:
        for dims in (2, 3):
            fixed = functools.partial(construct, dims)
            fixed.__doc__ = construct.__doc__
            operation("reductions", name.format(dims))(fixed)
        return construct

    return register


def _each(value: Any, dims: int, default: Any = None) -> tuple[int, ...]:
    """Return ``value`` as a tuple with one number per dimension, or ``default`` if it is empty."""
    if isinstance(value, int):
        return (value,) * dims
    if not value:
        return tuple(default)
    return tuple(value) * (dims if len(value) == 1 else 1)


def _batched(a: Tensor, dims: int) -> Tensor:
    return a if len(a.shape) == dims + 2 else a.unsqueeze(0)


def _batched_layout(out: Layout, dims: int) -> Layout:
    if len(out.shape) == dims + 2:
        return out
    return Layout((1, *out.shape), (math.prod(out.shape), *out.strides), out.dtype)


@_pooling("avg_pool{}d")
def avg_pool(
    dims: int,
    out: Layout,
    a: Tensor,
    kernel_size: Any,
    stride: Any = (),
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Return the average of each pooling window, or its sum divided by ``divisor_override``."""
    if 0 in out.shape:
        return out.result(constant(0.0))
    kernel = _each(kernel_size, dims)
    step, first = _each(stride, dims, kernel), _each(padding, dims)
    layout = _batched_layout(out, dims)
    wide = Layout(layout.shape, layout.strides, computing_type(out.dtype))
    whole = _batched(cast(a, wide.dtype), dims)
    sizes, places, ones = whole.shape[2:], layout.shape[2:], (1,) * dims
    padded = pad(whole, first, needed_after(places, sizes, kernel, step, first, ones))
    view = windows(padded, places, kernel, step, ones)
    total = wide.rounded(reduce_sum(wide, view, list(range(dims + 2, 2 * dims + 2))).sop)
    if divisor_override is None:
        average = total.sop / counts(layout, sizes, kernel, step, first, count_include_pad)
    else:
        average = total.sop / float(divisor_override)
    return out.rounded(average if is_float(out.dtype) else truncate(average))


@_pooling("avg_pool{}d_backward")
def avg_pool_backward(
    dims: int,
    out: Layout,
    gradient: Tensor,
    a: Tensor,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Tensor:
    """Return the gradient of the input of average pooling. Each entry receives a share of the gradient
    of each window that contains the entry.
    """
    if 0 in out.shape:
        return out.result(constant(0.0))
    kernel = _each(kernel_size, dims)
    step, first = _each(stride, dims, kernel), _each(padding, dims)
    layout = _batched_layout(out, dims)
    wide = Layout(layout.shape, layout.strides, computing_type(out.dtype))
    whole = _batched(cast(gradient, wide.dtype), dims)
    windows_layout = Layout.contiguous(whole.shape, wide.dtype)
    share = windows_layout.read(whole)
    if divisor_override is not None:
        share = share / float(divisor_override)
    else:
        share = share / counts(windows_layout, layout.shape[2:], kernel, step, first, count_include_pad)
    channels = whole.shape[1]
    ones = Tensor(constant(1.0), (channels, 1, *kernel), (0,) * (dims + 2), dtype=wide.dtype, storage=1)
    setting = Setting(step, first, (1,) * dims, channels)
    return out.rounded(convolve_transposed(wide, windows_layout.rounded(share), ones, setting).sop)


@_pooling("max_pool{}d_with_indices")
def max_pool(
    dims: int,
    out: Any,
    a: Tensor,
    kernel_size: Any,
    stride: Any = (),
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> tuple[Tensor, Tensor]:
    """Return the maximum of each pooling window, and its index in the flattened spatial dimensions of
    the input.
    """
    if 0 in out[0].shape:
        return out[0].result(constant(0.0)), out[1].result(constant(0))
    kernel = _each(kernel_size, dims)
    step, first = _each(stride, dims, kernel), _each(padding, dims)
    apart = _each(dilation, dims)
    values, indices_ = (_batched_layout(layout, dims) for layout in out)
    whole = _batched(a, dims)
    sizes, places = whole.shape[2:], values.shape[2:]
    after = needed_after(places, sizes, kernel, step, first, apart)
    view = windows(pad(whole, first, after, -math.inf), places, kernel, step, apart)
    along = list(range(dims + 2, 2 * dims + 2))
    greatest = extreme(values, view, along, 1)
    tap = place(indices_, view, along, 1).sop
    if any(first) and is_float(a.dtype):  # −∞ in the window precedes padding with −∞
        least = indices_.read(Tensor(greatest.sop, values.shape, values.strides)) == -math.inf
        tap = where(least, first_tap(indices_, kernel, step, first, apart), tap)
    flat = flat_place(indices_, tap, sizes, kernel, step, first, apart)
    return out[0].result(greatest.sop), out[1].result(flat)


@_pooling("max_pool{}d_with_indices_backward")
def max_pool_backward(
    dims: int,
    out: Layout,
    gradient: Tensor,
    a: Tensor,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
    places: Tensor,
) -> Tensor:
    """Return the gradient of the input of max pooling. Each entry receives the sum of the gradients of
    the windows whose maximum was taken from it.
    """
    if 0 in out.shape:
        return out.result(constant(0.0))
    plane = math.prod(out.shape[-dims:])
    count = math.prod(gradient.shape[-dims:])
    flat = (math.prod(out.shape[:-dims]), count)
    dtype = computing_type(out.dtype)
    target = _planes(places, flat)
    values = _planes(cast(gradient, dtype), flat)
    row, column = Layout.contiguous((flat[0], plane), dtype).index
    t = family(count) if count > 1 else constant(0)
    chosen = where(target.at(row, t) == column, values.at(row, t), 0.0)
    total = sum_over(t, chosen) if count > 1 else chosen
    result = Layout.contiguous(out.shape, out.dtype).rounded(total)
    return out.result(out.read(result))


def _planes(tensor: Tensor, shape: Sequence[int]) -> Tensor:
    """Return the entries of ``tensor`` in row-major order as a tensor of the shape ``shape``."""
    layout = Layout.contiguous(tensor.shape, tensor.dtype)
    return Layout.contiguous(shape, tensor.dtype).result(layout.read(tensor))


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
    """Return the convolution or transposed convolution of the input with the weight, plus the bias."""
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
    """Return the gradients of the input, weight and bias of a convolution."""
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
