"""Sums of products: matrix products where two factors share what is summed over.

Two values over axes (batch, m, k) and (batch, k, n), summed over k, are a batched matrix product;
which axes play which part is read off from where they occur. Axes that only one factor has are summed
before. More than two factors are taken two by two, the smallest result first.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from locum.execution.fast.steps.step import Step, row_major
from locum.execution.fast.steps.values import Arrangement, LabelledArray


def contract(
    arrangement: Arrangement, factors: Sequence[LabelledArray], sums: Sequence[str]
) -> LabelledArray:
    """Return Σ over ``sums`` of the product of the factors."""
    values = [
        arrangement.summed(value, [v for v in sums if _only_in(v, place, factors)])
        for place, value in enumerate(factors)
    ]
    while len(values) > 1:
        a, b = min(
            itertools.combinations(values, 2),
            key=lambda pair: _size_after(arrangement, pair, values, sums),
        )
        others = [v for v in values if v is not a and v is not b]
        needed = {axis for other in others for axis in other.axes}
        now = [v for v in sums if v in a.axes and v in b.axes and v not in needed]
        values = [_pair(arrangement, a, b, now), *others]
    return arrangement.summed(values[0], sums)


def _only_in(axis: str, place: int, factors: Sequence[LabelledArray]) -> bool:
    return all((axis in value.axes) == (n == place) for n, value in enumerate(factors))


def _size_after(
    arrangement: Arrangement,
    pair: tuple[LabelledArray, LabelledArray],
    values: Sequence[LabelledArray],
    sums: Sequence[str],
) -> int:
    a, b = pair
    needed = {axis for other in values if other is not a and other is not b for axis in other.axes}
    kept = {v for v in (*a.axes, *b.axes) if v not in sums or v in needed}
    return math.prod(arrangement.box[v] for v in kept)


def _pair(
    arrangement: Arrangement, a: LabelledArray, b: LabelledArray, sums: Sequence[str]
) -> LabelledArray:
    """Return Σ over ``sums``, axes of both, of a · b."""
    if not sums:
        return arrangement.multiplied((a, b))
    shared = [v for v in a.axes if v in b.axes and v not in sums]
    left = [v for v in a.axes if v not in b.axes]
    right = [v for v in b.axes if v not in a.axes]
    # What cannot be seen as one axis without a copy is repeated along instead (a batch).
    left_batch, rows = _one_axis(a, left)
    right_batch, columns = _one_axis(b, right)
    batch = [*shared, *left_batch, *right_batch]
    inner = _inner_order(a, b, sums)
    x = _operand(arrangement, a, batch, rows, inner)
    y = _operand(arrangement, b, batch, inner, columns)
    axes = (*batch, *rows, *columns)
    shape = [arrangement.box[v] for v in axes]
    flat = [*shape[: len(batch)], x.shape[-2], y.shape[-1]]
    product = arrangement.steps.make("matmul", (x, y), flat)
    return LabelledArray(arrangement.steps.reshape(product, shape), axes)


def _inner_order(a: LabelledArray, b: LabelledArray, sums: Sequence[str]) -> list[str]:
    """Return the summed axes in an order in which the larger factor can be flattened without a copy."""
    larger = a if a.step.size >= b.step.size else b
    return [v for v in larger.axes if v in sums]


def _one_axis(value: LabelledArray, axes: list[str]) -> tuple[list[str], list[str]]:
    """Return which of a value's own axes to repeat along, and which make up one axis."""
    strides = dict(zip(value.axes, _strides(value.step), strict=True))
    sizes = dict(zip(value.axes, value.step.shape, strict=True))
    ordered = sorted(axes, key=lambda v: -strides[v])
    for cut in range(len(ordered)):
        merged = ordered[cut:]
        if all(strides[u] == strides[v] * sizes[v] for u, v in itertools.pairwise(merged)):
            repeated = ordered[:cut]
            if math.prod(sizes[v] for v in repeated) > math.prod(sizes[v] for v in merged):
                break  # many small products cost more than a copy
            return repeated, merged
    return [], ordered


def _strides(step: Step) -> Sequence[int]:
    """Return how far apart the numbers of a step lie along each axis, as far as that is known."""
    if step.op == "view":
        strides = step.settings[0]
        assert isinstance(strides, tuple)
        return strides
    if step.op == "permute":
        order = step.settings[0]
        assert isinstance(order, tuple)
        return [_strides(step.inputs[0])[n] for n in order]
    return row_major(step.shape)


def _operand(
    arrangement: Arrangement,
    value: LabelledArray,
    batch: list[str],
    first: list[str],
    second: list[str],
) -> Step:
    """Return [batch…, first, second], with axes of size 1 for a batch that the value does not have."""
    own = [v for v in batch if v in value.axes]
    order = tuple(value.axes.index(v) for v in (*own, *first, *second))
    step = arrangement.steps.permute(value.step, order)
    box = arrangement.box
    sizes = [box[v] if v in value.axes else 1 for v in batch]
    flat = [math.prod(box[v] for v in group) for group in (first, second)]
    while sizes and sizes[0] == 1 and batch[len(batch) - len(sizes)] not in value.axes:
        sizes = sizes[1:]  # broadcasting adds the leading axes
    return arrangement.steps.reshape(step, [*sizes, *flat])
