"""Reduce tensors along dimensions: maxima and their indices, products and cumulative sums.

For maxima, minima and products, the entries are first arranged in *rows* of n entries. The row for the
result at position p occupies the positions p·n to p·n + n − 1. A tensor that already has this
arrangement is not copied.

>>> from locum import tokens
>>> from locum.constructions.tensor import Layout, Tensor
>>> a = Tensor(tokens, (2, 3), (3, 1))
>>> greatest(Layout((2,), (1,)), a, [1]).sop([1, 5, 2, 7, 3, 4])[:2]
[5, 7]
>>> place_of_greatest(Layout((2,), (1,), "int64"), a, [1]).sop([1, 5, 2, 7, 3, 4])[:2]
[1, 0]
>>> running(Layout((2, 3), (3, 1)), a, 1, lambda x, y: x + y).sop([1, 5, 2, 7, 3, 4])
[1.0, 6.0, 8.0, 7.0, 10.0, 14.0]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from locum.constructions.tensor import Layout, Tensor, contiguous_strides
from locum.graph.operations import ROUNDINGS
from locum.rasp.handles import Selector, SOp
from locum.rasp.python import aggregate, best, constant, indices, select, where


def keep_dimensions(out: Layout, tensor: Tensor, dims: Sequence[int]) -> Layout:
    """Return the layout of a reduction that keeps the reduced dimensions with size 1.

    >>> keep_dimensions(Layout((2,), (1,)), Tensor(constant(0), (2, 3), (3, 1)), [1]).shape
    (2, 1)
    """
    if len(out.shape) == len(tensor.shape):
        return out
    others = iter(zip(out.shape, out.strides, strict=True))
    parts = [(1, 1) if dim in dims else next(others) for dim in range(len(tensor.shape))]
    return Layout(tuple(n for n, _ in parts), tuple(stride for _, stride in parts), out.dtype)


def rows(out: Layout, tensor: Tensor, dims: Sequence[int]) -> tuple[SOp, int]:
    """Return an s-op with the entries arranged in rows, one row per entry of the result, and the length
    of a row.
    """
    kept = keep_dimensions(out, tensor, dims)
    sizes = [tensor.shape[dim] for dim in dims]
    n = math.prod(sizes)
    strides = [stride * n for stride in kept.strides]
    for dim, stride in zip(dims, contiguous_strides(sizes), strict=True):
        strides[dim] = stride
    return Layout(tensor.shape, tuple(strides), tensor.dtype).read(tensor), n


def _row(n: int) -> Selector:
    """Return the selector that selects, for the query at position p, the row of the result at position
    p.
    """
    return select(indices // n, indices, "==")


def greatest(out: Layout, tensor: Tensor, dims: Sequence[int], sign: int = 1) -> Tensor:
    """Return the maximum along dimensions, or the minimum if ``sign`` is −1.

    NaN is ignored. The maximum of a row without numbers is −∞, and the minimum is ∞.
    """
    values, n = rows(out, tensor, dims)
    if tensor.dtype in ROUNDINGS:
        values = where(values == values, values, -sign * math.inf)
    if n == 1:
        return out.result(values)
    score = values if sign > 0 else -values
    return out.result(aggregate(best(best(_row(n), score), -indices), values))


def place_of_greatest(out: Layout, tensor: Tensor, dims: Sequence[int], sign: int = 1) -> Tensor:
    """Return the index of the first maximum along dimensions, or of the first minimum if ``sign`` is
    −1.

    NaN counts as −∞ for the maximum, and as ∞ for the minimum.
    """
    values, n = rows(out, tensor, dims)
    if n == 1:
        return out.result(constant(0))
    if tensor.dtype in ROUNDINGS:
        numbers = where(values == values, values, -sign * math.inf)
        values = Layout((), (), tensor.dtype).rounded(numbers).sop
    else:
        values = values + 0  # a copy, since the rows of several dimensions are not one range
    score = values if sign > 0 else -values
    return out.result(aggregate(best(best(_row(n), score), -indices), indices % n))


def multiply_along(out: Layout, tensor: Tensor, dims: Sequence[int]) -> Tensor:
    """Return the product of the entries along dimensions, computed by a tree of pairwise products."""
    if 0 in tensor.shape:
        return out.result(constant(1.0))
    values, n = rows(out, tensor, dims)
    size = math.prod(out.shape)
    matrix = Tensor(values, (size, n), (n, 1), dtype=tensor.dtype)
    while n > 1:
        half = 2 ** ((n - 1).bit_length() - 1)  # the largest power of 2 below n
        layout = Layout.contiguous((size, half), tensor.dtype)
        i, j = layout.index
        low, high = matrix.at(i, j), matrix.at(i, j + half)
        matrix = layout.rounded(where(j < constant(n - half), low * high, low))
        n = half
    return out.result(matrix.sop)


def running(out: Layout, tensor: Tensor, dim: int, combine: Callable[[SOp, SOp], SOp]) -> Tensor:
    """Combine each entry with all earlier entries along a dimension, as in a cumulative sum.

    The number of steps is logarithmic in the size, since each step doubles the length of the combined
    spans.
    """
    result = Layout(out.shape, out.strides, tensor.dtype).result(out.read(tensor))
    index = out.index
    span = 1
    while span < (tensor.shape[dim] if tensor.shape else 1):
        earlier = result.at(*(i - span if n == dim else i for n, i in enumerate(index)))
        combined = where(index[dim] >= span, combine(earlier, result.sop), result.sop)
        result = Layout(out.shape, out.strides, tensor.dtype).rounded(combined)
        span *= 2
    return result
