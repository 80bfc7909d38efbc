"""Compute the windows of average and max pooling on tensors [batch, channel, place, …].

The windows are a view of the padded tensor: each dimension of the kernel adds a dimension to the view.
The entries of a window are called taps.

>>> from locum import tokens
>>> x = Tensor(tokens, (1, 1, 4), (4, 4, 1))
>>> windows(x, (3,), (2,), (1,), (1,)).shape
(1, 1, 3, 2)
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from locum.constructions.tensor import Index, Layout, Tensor
from locum.rasp.handles import SOp
from locum.rasp.python import constant, maximum, minimum


def windows(
    padded: Tensor,
    places: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
) -> Tensor:
    """Return a view of the entries of all windows, with the shape [batch, channel, place, …, tap,
    …].
    """
    lead = len(padded.shape) - len(kernel)
    outer = [s * step for s, step in zip(padded.strides[lead:], stride, strict=True)]
    inner = [s * step for s, step in zip(padded.strides[lead:], dilation, strict=True)]
    return padded.as_strided(
        (*padded.shape[:lead], *places, *kernel), (*padded.strides[:lead], *outer, *inner)
    )


def needed_after(
    places: Sequence[int],
    sizes: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
) -> list[int]:
    """Return the number of entries that the windows read after the last entry of each dimension.

    The number is negative if the windows do not reach the last entry.
    """
    parts = zip(places, sizes, kernel, stride, padding, dilation, strict=True)
    return [
        (n - 1) * step + (taps - 1) * apart + 1 - first - size
        for n, size, taps, step, first, apart in parts
    ]


def counts(
    out: Layout,
    sizes: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    count_padding: bool,
) -> SOp:
    """Return the number of entries in each window, with padding if ``count_padding`` is true, otherwise
    without.
    """
    lead = len(out.shape) - len(kernel)
    total: SOp = constant(1)
    for place, size, taps, step, first in zip(
        out.index[lead:], sizes, kernel, stride, padding, strict=True
    ):
        start = constant(0) + place * step - first
        stop = minimum(start + taps, size + first)
        if not count_padding:
            start, stop = maximum(start, 0), minimum(stop, size)
        total = total * (stop - start)
    return total


def flat_place(
    out: Layout,
    tap: SOp,
    sizes: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
) -> SOp:
    """Return the index in the flattened input dimensions of the entry that tap ``tap`` of each window
    reads.
    """
    lead = len(out.shape) - len(kernel)
    result: SOp = constant(0)
    for dim, size in enumerate(sizes):
        digit = tap // math.prod(kernel[dim + 1 :]) % kernel[dim]
        place: Index = out.index[lead + dim]
        result = result * size + (place * stride[dim] - padding[dim] + digit * dilation[dim])
    return result


def first_tap(
    out: Layout,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
) -> SOp:
    """Return the flat index of the first tap of each window that is not in the leading padding."""
    lead = len(out.shape) - len(kernel)
    result: SOp = constant(0)
    for dim, taps in enumerate(kernel):
        missing = constant(padding[dim]) - out.index[lead + dim] * stride[dim]
        result = result * taps + maximum((missing + dilation[dim] - 1) // dilation[dim], 0)
    return result
