"""Compute convolutions of tensors [batch, channel, place, …] in any number of dimensions, and their
gradients.

Padding copies the input and inserts zeros around it. For a transposed convolution, zeros are also
inserted between the entries. The result is a sum of products over the channels and the taps (entries)
of the kernel.

>>> from locum import tokens
>>> from locum.constructions.tensor import Layout, Tensor
>>> x, w = Tensor(tokens, (1, 1, 4), (4, 4, 1)), Tensor(tokens, (1, 1, 2), (2, 2, 1), offset=4)
>>> setting = Setting((1,), (0,), (1,), 1)
>>> convolve(Layout((1, 1, 3), (3, 3, 1)), x, w, setting).sop([1, 2, 3, 4, 10, 1])[:3]
[12, 23, 34]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from locum.constructions.tensor import Index, Layout, Tensor
from locum.rasp.handles import SOp
from locum.rasp.python import constant, family, sum_over, where


@dataclass(frozen=True)
class Setting:
    """The options of a convolution: stride, padding and dilation per dimension, and the number of
    channel groups.
    """

    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int


def pad(tensor: Tensor, before: Sequence[int], after: Sequence[int], fill: float = 0.0) -> Tensor:
    """Pad the last dimensions with the number ``fill``; negative sizes remove entries."""
    if not any((*before, *after)):
        return tensor
    lead = len(tensor.shape) - len(before)
    sizes = zip(before, tensor.shape[lead:], after, strict=True)
    out = Layout.contiguous((*tensor.shape[:lead], *map(sum, sizes)), tensor.dtype)
    inside = constant(True)
    index: list[Index] = list(out.index[:lead])
    for dim, (first, last) in enumerate(zip(before, after, strict=True), start=lead):
        place = constant(0) + out.index[dim] - first
        if first > 0:
            inside = inside & (place >= 0)
        if last > 0:
            inside = inside & (place < tensor.shape[dim])
        index.append(place)
    return out.rounded(where(inside, tensor.at(*index), fill))


def spread(tensor: Tensor, dim: int, step: int) -> Tensor:
    """Insert ``step`` − 1 zeros after each entry along a dimension."""
    if step == 1:
        return tensor
    shape = list(tensor.shape)
    shape[dim] *= step
    out = Layout.contiguous(shape, tensor.dtype)
    index = out.unflatten(dim, tensor.shape[dim]).index
    is_entry = constant(0) + index.pop(dim + 1) == 0
    return out.rounded(where(is_entry, tensor.at(*index), 0.0))


def _window(place: Sequence[Index], taps: Sequence[Index], setting: Setting) -> list[Index]:
    """Return the input position that a tap of the kernel reads for a place of the result, per
    dimension.
    """
    parts = zip(place, taps, setting.stride, setting.dilation, strict=True)
    return [i * stride + t * dilation for i, t, stride, dilation in parts]


def _families(sizes: Sequence[int]) -> tuple[list[Index], list[SOp]]:
    """Return an index for each size (a family, or 0 for a size below 2), and a list of the families."""
    indices: list[Index] = [family(n) if n > 1 else 0 for n in sizes]
    return indices, [i for i in indices if isinstance(i, SOp)]


def _sum(families: Sequence[SOp], body: SOp) -> SOp:
    return sum_over(*families, body) if families else body


def _correlate(out: Layout, padded: Tensor, kernel: Tensor, setting: Setting) -> Tensor:
    """Return Σ x[n, g, c, place · stride + tap · dilation] · w[g, o, c, tap] at [n, (g, o), place].

    ``kernel`` has the shape [group, output channel, channel, tap, …]. The sums are not rounded.
    """
    grouped = padded.unflatten(1, setting.groups)
    n, g, o, *place = out.unflatten(1, setting.groups).index
    (c, *taps), families = _families(kernel.shape[2:])
    entry = grouped.at(n, g, c, *_window(place, taps, setting))
    return out.result(_sum(families, entry * kernel.at(g, o, c, *taps)))


def convolve(out: Layout, tensor: Tensor, kernel: Tensor, setting: Setting) -> Tensor:
    """Return the convolution with a kernel [output channel, channel, tap, …]; the sums are not
    rounded.
    """
    padded = pad(tensor, setting.padding, _enough(out, kernel, tensor, setting))
    return _correlate(out, padded, kernel.unflatten(0, setting.groups), setting)


def _enough(out: Layout, kernel: Tensor, tensor: Tensor, setting: Setting) -> list[int]:
    """Return the number of zeros needed after the entries of each dimension for the last place of the
    result.
    """
    parts = zip(
        out.shape[2:],
        kernel.shape[2:],
        tensor.shape[2:],
        setting.stride,
        setting.padding,
        setting.dilation,
        strict=True,
    )
    return [
        max((places - 1) * stride + (taps - 1) * dilation + 1 - padding - size, 0)
        for places, taps, size, stride, padding, dilation in parts
    ]


def convolve_transposed(out: Layout, tensor: Tensor, kernel: Tensor, setting: Setting) -> Tensor:
    """Return the transposed convolution with a kernel [channel, output channel, tap, …].

    The result is the convolution of the entries, spread by the stride, with the reversed kernel.
    """
    dims = range(2, len(tensor.shape))
    for dim, step in zip(dims, setting.stride, strict=True):
        tensor = spread(tensor, dim, step)
    before, after = [], []
    for dim, padding, dilation in zip(dims, setting.padding, setting.dilation, strict=True):
        reach = dilation * (kernel.shape[dim] - 1)
        before.append(reach - padding)
        after.append(out.shape[dim] + reach - before[-1] - tensor.shape[dim])
    padded = pad(tensor, before, after)
    flipped = kernel.flip(*dims).unflatten(0, setting.groups).transpose(1, 2)
    plain = Setting((1,) * len(before), (0,) * len(before), setting.dilation, setting.groups)
    return _correlate(out, padded, flipped, plain)


def kernel_gradient(out: Layout, outer: Tensor, inner: Tensor, setting: Setting) -> Tensor:
    """Return Σ outer[n, o, place] · inner[n, c, place · stride + tap · dilation] at [o, c, tap, …].

    ``inner`` is padded first. For a convolution, ``outer`` is the gradient of the result and ``inner``
    is the input. For a transposed convolution, the roles are exchanged. The sums are not rounded.
    """
    places = Layout.contiguous(outer.shape, outer.dtype)
    padded = pad(inner, setting.padding, _enough(places, out.result(constant(0)), inner, setting))
    padded, outer = padded.unflatten(1, setting.groups), outer.unflatten(1, setting.groups)
    g, o, c, *taps = out.unflatten(0, setting.groups).index
    (n, *place), families = _families((outer.shape[0], *outer.shape[3:]))
    entry = outer.at(n, g, o, *place) * padded.at(n, g, c, *_window(place, taps, setting))
    return out.result(_sum(families, entry))
