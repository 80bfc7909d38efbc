"""Define the constructions of the negative log-likelihood loss and its gradient.

PyTorch decomposes most other losses into supported operations.
"""

from __future__ import annotations

from typing import Any

from locum.constructions.tensor import Index, Layout, Tensor, reduce_sum
from locum.rasp.handles import SOp
from locum.rasp.python import constant, family, maximum, minimum, sum_over, where
from locum.torch.numbers import cast, computing_type, require
from locum.torch.table import operation

#: PyTorch's codes for the argument ``reduction``.
_NONE, _MEAN = 0, 1


def _with_class(sample: list[Index], place: Index, rank: int) -> list[Index]:
    """Return the index of the log-probability of class ``place`` for a sample.

    The class is the second dimension of a tensor of log-probabilities, or the only dimension if
    ``rank`` is 1.
    """
    return [place] if rank == 1 else [sample[0], place, *sample[1:]]


def _require_classes(target: Tensor, classes: int, ignore_index: int) -> None:
    """Add a check to the program that each target is a class index or ``ignore_index``."""
    if not target.size:
        return
    families = [family(n) for n in target.shape]
    t = target.at(*families)
    outside = where(t == ignore_index, 0.0, where(t < 0, 1.0, where(t >= classes, 1.0, 0.0)))
    require(
        sum_over(*families, outside) if families else outside,
        f"nll_loss: expected targets from 0 to {classes - 1} or {ignore_index}, got one outside",
    )


@operation("losses", "nll_loss_forward", "nll_loss2d_forward")
def nll_loss(
    out: Any, a: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int
) -> tuple[Tensor, Tensor]:
    """Return the negative log-likelihood loss of the target classes, and the sum of the target weights.

    ``a`` contains log-probabilities. A mean is weighted by the class weights. Targets equal to
    ``ignore_index`` are ignored. Without a reduction, the second result for a batch is 0.
    """
    rank = len(a.shape)
    classes = a.shape[min(rank - 1, 1)]
    dtype = computing_type(a.dtype)
    _require_classes(target, classes, ignore_index)
    if 0 in a.shape:
        empty = constant(0.0) / 0.0 if reduction == _MEAN else constant(0.0)
        return out[0].rounded(empty), out[1].result(constant(0.0))
    samples = Layout.contiguous(target.shape, dtype)
    t = samples.read(target)
    counts = t != ignore_index
    place = minimum(maximum(t, 0), classes - 1)
    entry = cast(a, dtype).at(*_with_class(samples.index, place, rank))
    share: SOp = constant(1.0) if weight is None else cast(weight, dtype).at(place)
    weights = samples.rounded(where(counts, share, 0.0))
    losses = samples.rounded(where(counts, -(entry * share), 0.0))
    if reduction == _NONE and rank > 1:
        return out[0].rounded(out[0].read(losses)), out[1].result(constant(0.0))
    dims = list(range(len(target.shape)))
    scalar = Layout((), (), dtype)
    total = scalar.rounded(reduce_sum(scalar, losses, dims).sop)
    whole = scalar.rounded(reduce_sum(scalar, weights, dims).sop)
    loss = total.sop / whole.sop if reduction == _MEAN else total.sop
    return out[0].rounded(loss), out[1].rounded(whole.sop)


@operation("losses", "nll_loss_backward", "nll_loss2d_backward")
def nll_loss_backward(
    out: Layout,
    gradient: Tensor,
    a: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: int,
    ignore_index: int,
    total_weight: Tensor,
) -> Tensor:
    """Return the gradient of the log-probabilities, which is 0 except at the target classes."""
    if 0 in out.shape:
        return out.result(constant(0.0))
    rank = len(a.shape)
    dtype = computing_type(out.dtype)
    index = out.index
    label = index[min(rank - 1, 1)]
    sample = [i for dim, i in enumerate(index) if dim != min(rank - 1, 1)]
    t = target.at(*sample[: len(target.shape)])
    outer = cast(gradient, dtype).at(*(sample if gradient.shape else ()))
    if reduction == _MEAN:
        outer = outer / cast(total_weight, dtype).at()
    share: SOp = constant(1.0) if weight is None else cast(weight, dtype).at(label)
    wide = Layout(out.shape, out.strides, dtype)
    value = wide.rounded(-(outer * share)).sop
    return out.rounded(where(t == label, where(t == ignore_index, 0.0, value), 0.0))
