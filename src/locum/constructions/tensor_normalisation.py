"""Compute softmax and normalisation of tensors along dimensions, and their gradients.

Intermediate tensors are rounded to the type of the inputs.

>>> from locum import tokens
>>> from locum.constructions.tensor import Tensor
>>> softmax(Tensor(tokens, (2, 2), (2, 1)), 1).sop([0.0, 0.0, 1.0, 1.0])
[0.5, 0.5, 0.5, 0.5]
>>> centred, mean, scale = standardise(Tensor(tokens, (1, 4), (4, 1)), [1], 0.0)
>>> centred.sop([1.0, 2.0, 3.0, 6.0])
[-2.0, -1.0, 0.0, 3.0]
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from locum.constructions.tensor import Layout, Tensor, pointwise, sum_along
from locum.constructions.tensor_reductions import greatest
from locum.rasp.python import exp, log, sqrt, where

# Softmax ----------------------------------------------------------------------------------------------


def greatest_along(tensor: Tensor, dims: Sequence[int]) -> Tensor:
    """Return the maximum along dimensions, which are kept with size 1; NaN is ignored."""
    kept = [1 if dim in dims else n for dim, n in enumerate(tensor.shape)]
    return greatest(Layout.contiguous(kept, tensor.dtype), tensor, dims)


def softmax(tensor: Tensor, dim: int) -> Tensor:
    """Return the softmax along a dimension: exp(x − m) / Σ exp(x − m), where m is the maximum."""
    powers, sums = exponentials(tensor, greatest_along(tensor, [dim]), [dim])
    return pointwise(lambda e, s: e / s, powers, sums)


def exponentials(tensor: Tensor, shift: Tensor, dims: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Return exp(x − shift) and the sums of these exponentials along dimensions."""
    powers = pointwise(lambda x, m: exp(x - m), tensor, shift)
    return powers, sum_along(powers, dims)


def finite_shift(greatest: Tensor) -> Tensor:
    """Return the maxima with −∞ replaced by 0.

    The exponentials of a row that contains only −∞ are then 0, not NaN.
    """
    return pointwise(lambda m: where(m == -math.inf, 0.0, m), greatest)


def masked_softmax(tensor: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """Return the softmax along a dimension and log Σ exp; both are 0 for rows that contain only −∞."""
    shift = finite_shift(greatest_along(tensor, [dim]))
    powers, sums = exponentials(tensor, shift, [dim])
    counted = pointwise(lambda s: where(s == 0, 1.0, s), sums)
    logarithms = pointwise(lambda m, s: m + log(s), shift, counted)
    return pointwise(lambda e, s: e / s, powers, counted), logarithms


def log_softmax(tensor: Tensor, dim: int) -> Tensor:
    """Return the logarithm of the softmax along a dimension: x − m − log Σ exp(x − m), where m is the
    maximum.
    """
    peak = greatest_along(tensor, [dim])
    _, sums = exponentials(tensor, peak, [dim])
    logarithms = pointwise(log, sums)
    return pointwise(lambda x, s: x - s, pointwise(lambda x, m: x - m, tensor, peak), logarithms)


def log_sum_exp(tensor: Tensor, dims: Sequence[int]) -> Tensor:
    """Return log Σ exp along dimensions, which are kept with size 1."""
    peak = pointwise(lambda m: where(abs(m) == math.inf, 0.0, m), greatest_along(tensor, dims))
    _, sums = exponentials(tensor, peak, dims)
    return pointwise(lambda m, s: m + log(s), peak, sums)


def softmax_backward(gradient: Tensor, result: Tensor, dim: int) -> Tensor:
    """Return the gradient (g − Σ g·y) · y of the input of a softmax.

    ``result`` is the result y of the softmax, and ``gradient`` is the gradient g of y.
    """
    total = sum_along(pointwise(lambda g, y: g * y, gradient, result), [dim])
    return pointwise(lambda g, y: g * y, pointwise(lambda g, s: g - s, gradient, total), result)


def log_softmax_backward(gradient: Tensor, result: Tensor, dim: int) -> Tensor:
    """Return the gradient g − exp(y) · Σ g of the input of a log-softmax.

    ``result`` is the result y of the log-softmax, and ``gradient`` is the gradient g of y.
    """
    total = sum_along(gradient, [dim])
    parts = pointwise(lambda y, s: exp(y) * s, result, total)
    return pointwise(lambda g, p: g - p, gradient, parts)


# Normalisation ----------------------------------------------------------------------------------------


def mean_along(tensor: Tensor, dims: Sequence[int]) -> Tensor:
    """Return the mean along dimensions, which are kept with size 1."""
    count = float(math.prod(tensor.shape[dim] for dim in dims))
    return pointwise(lambda s: s / count, sum_along(tensor, dims))


def standardise(tensor: Tensor, dims: Sequence[int], epsilon: float) -> tuple[Tensor, Tensor, Tensor]:
    """Return the deviations from the mean, the mean, and 1 / √(variance + ε), along dimensions."""
    means = mean_along(tensor, dims)
    centred = pointwise(lambda x, m: x - m, tensor, means)
    return centred, means, inverse_root(centred, dims, epsilon)


def inverse_root(tensor: Tensor, dims: Sequence[int], epsilon: float) -> Tensor:
    """Return 1 / √(mean square + ε) along dimensions, which are kept with size 1."""
    squares = mean_along(pointwise(lambda x: x * x, tensor), dims)
    return pointwise(lambda v: 1.0 / sqrt(v + epsilon), squares)


def scale_and_shift(
    centred: Tensor, scale: Tensor, weight: Tensor | None, bias: Tensor | None
) -> Tensor:
    """Return centred · scale · weight + bias; a missing weight or bias is omitted."""
    normal = pointwise(lambda x, s: x * s, centred, scale)
    if weight is not None:
        normal = pointwise(lambda x, w: x * w, normal, weight)
    return normal if bias is None else pointwise(lambda x, b: x + b, normal, bias)


def standardise_backward(
    gradient: Tensor, normal: Tensor, scale: Tensor, dims: Sequence[int]
) -> Tensor:
    """Return the gradient of the input of a normalisation.

    ``normal`` are the normalised entries, and ``gradient`` is the gradient with respect to them.
    """
    along = mean_along(pointwise(lambda g, y: g * y, gradient, normal), dims)
    projected = pointwise(lambda g, p: g - p, gradient, pointwise(lambda y, m: y * m, normal, along))
    projected = pointwise(lambda p, m: p - m, projected, mean_along(gradient, dims))
    return pointwise(lambda p, s: p * s, projected, scale)
