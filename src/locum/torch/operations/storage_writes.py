"""Write to the storage of a tensor at explicit strides."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from locum.constructions.tensor import Index, Layout, Tensor, is_dense
from locum.errors import LocumError
from locum.language.handles import SOp
from locum.language.python import indices, where
from locum.torch.numbers import convert
from locum.torch.table import operation


@operation("indexing", "as_strided_scatter")
def as_strided_scatter(
    out: Layout,
    a: Tensor,
    source: Tensor,
    size: Sequence[int],
    stride: Sequence[int],
    offset: int | None = None,
) -> Tensor:
    """Return a tensor in which the entries of a view with explicit strides are replaced."""
    before = convert(out.read(a), a.dtype, out.dtype)
    if not source.size:
        return out.result(before)
    if not is_dense(a.shape, a.strides):
        raise LocumError("expected a tensor without gaps in memory; try x.contiguous() before")
    first = 0 if offset is None else offset - (a.offset - a.start)
    index, inside = _invert(size, stride, first)
    value = convert(source.at(*index), source.dtype, out.dtype)
    return out.result(where(reduce(lambda x, y: x & y, inside), value, before))


def _invert(size: Sequence[int], stride: Sequence[int], offset: int) -> tuple[list[Index], list[SOp]]:
    """Return the index of the strided entry at each position, and when there is one."""
    index: list[Index] = [0] * len(size)
    inside: list[SOp] = [indices >= offset]
    rest = indices - offset
    inner = [dim for dim in range(len(size)) if size[dim] > 1]
    for dim in sorted(inner, key=lambda dim: -stride[dim]):
        smaller = [other for other in inner if stride[other] < stride[dim]]
        if stride[dim] <= sum((size[other] - 1) * stride[other] for other in smaller):
            raise LocumError(
                "expected entries that do not share memory, got "
                f"size {tuple(size)} and stride {tuple(stride)}"
            )
        digit = rest // stride[dim]
        index[dim] = digit
        inside.append(digit < size[dim])
        rest = rest % stride[dim]
    return index, [*inside, rest == 0]
