"""Define the constructions of views, copies, casts and new tensors such as ``zeros`` and ``arange``.

A view reads the storage of its operand with other strides and needs no head. The copying variants of
views in ATen, such as ``permute_copy``, use the same constructions.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import torch

from locum.constructions.tensor import (
    Index,
    Layout,
    Tensor,
    contiguous_strides,
    copy,
    extent,
    is_dense,
    reduce_sum,
)
from locum.errors import LocumError
from locum.graph.atoms import LARGEST_EXACT
from locum.rasp.handles import SOp
from locum.rasp.python import constant, indices, where
from locum.torch.numbers import INTEGERS, convert, is_float, require, rounded, scalar
from locum.torch.table import TABLE, Row, find_overload, operation


@operation("casts", "_to_copy", "clone")
def to_copy(out: Layout, a: Tensor, **options: Any) -> Tensor:
    """Return a copy in the dtype and memory layout of the result. A cast to a float dtype rounds."""
    return cast_to(out, a)


@operation("casts", "copy")
def copy_into(out: Layout, a: Tensor, source: Tensor, non_blocking: bool = False) -> Tensor:
    """Return the entries of the source in the dtype and memory layout of the destination."""
    return to_copy(out, source)


def convert_element_type(out: Layout, a: Tensor, dtype: Any) -> Tensor:
    """Return the tensor cast to another dtype."""
    return cast_to(out, a)


def cast_to(out: Layout, a: Tensor) -> Tensor:
    """Return ``a`` in the dtype and memory layout of ``out``.

    PyTorch does not define the conversion of NaN and of numbers out of range to integers, so a check
    rejects NaN and numbers above 2⁵³. The check accepts −∞ and numbers below −2⁵³, because programs
    compute and discard such values. The cast of −∞ raises an error in a result of the graph.
    """
    value = out.read(a)
    if is_float(a.dtype) and out.dtype in INTEGERS and a.size:
        wide = Layout(out.shape, out.strides).result(where(value <= LARGEST_EXACT, 0.0, 1.0))
        require(
            reduce_sum(Layout((), ()), wide, range(len(out.shape))).sop,
            f"expected numbers that {out.dtype} has, got NaN or a number beyond 2⁵³",
        )
    return out.result(convert(value, a.dtype, out.dtype))


_CONVERT = torch.ops.prims.convert_element_type.default
TABLE[_CONVERT] = Row(_CONVERT, "casts", convert_element_type)


@operation("views", "alias", "detach")
def same(out: Layout, a: Tensor) -> Tensor:
    """Return the tensor unchanged."""
    return a


@operation("views", "view", "_unsafe_view", "_reshape_alias")
def view(out: Layout, a: Tensor, *sizes: Any) -> Tensor:
    """Return the tensor in another shape. The result is a view if strides can express the shape, and a
    copy otherwise.
    """
    strides = _view_strides(a.shape, a.strides, out.shape)
    if strides is not None:
        return a.as_strided(out.shape, strides)
    dense = copy(Layout(a.shape, contiguous_strides(a.shape), a.dtype), a)
    return dense.as_strided(out.shape, contiguous_strides(out.shape))


def _view_strides(
    shape: Sequence[int], strides: Sequence[int], new: Sequence[int]
) -> tuple[int, ...] | None:
    """Return the strides with which a strided tensor has the shape ``new``, or None if a copy is
    required.
    """
    try:
        return torch.empty_strided(shape, strides, device="meta").view(new).stride()
    except (RuntimeError, ValueError):
        return None


@operation("views", "permute")
def permute(out: Layout, a: Tensor, dims: Sequence[int]) -> Tensor:
    """Return a view with the dimensions in another order."""
    return a.permute(*(dim % len(a.shape) for dim in dims))


@operation("views", "transpose.int")
def transpose(out: Layout, a: Tensor, first: int, second: int) -> Tensor:
    """Return a view with two dimensions exchanged."""
    return a.transpose(first % len(a.shape), second % len(a.shape)) if a.shape else a


@operation("views", "t")
def t(out: Layout, a: Tensor) -> Tensor:
    """Return the transpose of a matrix. A tensor with fewer dimensions is returned unchanged."""
    return a.transpose(0, 1) if len(a.shape) == 2 else a


@operation("views", "expand")
def expand(out: Layout, a: Tensor, sizes: Sequence[int], *, implicit: bool = False) -> Tensor:
    """Return a view that repeats the tensor along dimensions of size 1 and new leading dimensions."""
    return a.expand(*out.shape)


@operation("views", "unsqueeze")
def unsqueeze(out: Layout, a: Tensor, dim: int) -> Tensor:
    """Return a view with a new dimension of size 1."""
    return a.unsqueeze(dim % (len(a.shape) + 1))


@operation("views", "squeeze", "squeeze.dim", "squeeze.dims")
def squeeze(out: Layout, a: Tensor, dims: Any = None) -> Tensor:
    """Return a view without dimensions of size 1, or without the given dimensions of size 1."""
    chosen = range(len(a.shape)) if dims is None else [dims] if isinstance(dims, int) else dims
    dropped = {dim % max(len(a.shape), 1) for dim in chosen}
    kept = [n for n, size in enumerate(a.shape) if n not in dropped or size != 1]
    shape, strides = (tuple(part[n] for n in kept) for part in (a.shape, a.strides))
    return a.as_strided(shape, strides)


@operation("views", "slice.Tensor")
def slice_(
    out: Layout, a: Tensor, dim: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> Tensor:
    """Return every ``step``-th entry of a dimension, from ``start`` up to but not including ``end``."""
    dim %= len(a.shape)
    first, last, _ = slice(start, end).indices(a.shape[dim])
    return a.slice(dim, first, max(first, last), step)


@operation("views", "select.int")
def select(out: Layout, a: Tensor, dim: int, index: int) -> Tensor:
    """Return the slice of a tensor at one index of a dimension, without this dimension."""
    dim %= len(a.shape)
    return a.select(dim, index % a.shape[dim])


@operation("views", "split.Tensor", "split_with_sizes")
def split(out: Any, a: Tensor, sizes: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Split a tensor along a dimension, and return the parts."""
    dim %= len(a.shape)
    parts, start = [], 0
    for layout in out:
        parts.append(a.slice(dim, start, start + layout.shape[dim]))
        start += layout.shape[dim]
    return tuple(parts)


@operation("views", "unbind.int")
def unbind(out: Any, a: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """Return the slices of a tensor along a dimension, without this dimension."""
    dim %= len(a.shape)
    return tuple(a.select(dim, index) for index in range(a.shape[dim]))


@operation("views", "diagonal")
def diagonal(out: Layout, a: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """Return a view of a diagonal of two dimensions. The diagonal is the last dimension of the view."""
    first, second = dim1 % len(a.shape), dim2 % len(a.shape)
    kept = [n for n in range(len(a.shape)) if n not in (first, second)]
    strides = (*(a.strides[n] for n in kept), a.strides[first] + a.strides[second])
    skipped = offset * a.strides[second] if offset > 0 else -offset * a.strides[first]
    start = a.offset + (skipped if out.shape[-1] else 0)
    return a.as_strided(out.shape, strides, start)


@operation("indexing", "diagonal_scatter")
def diagonal_scatter(
    out: Layout, a: Tensor, source: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Tensor:
    """Return a copy of the tensor in which the source replaces a diagonal of two dimensions."""
    index = [i if isinstance(i, SOp) else constant(i) for i in out.index]
    row, column = (index[dim % len(a.shape)] for dim in (dim1, dim2))
    kept = [i for n, i in enumerate(index) if n not in (dim1 % len(a.shape), dim2 % len(a.shape))]
    inside = column - row == offset
    if not source.size:
        return to_copy(out, a)
    place = where(inside, row if offset >= 0 else column, 0)
    value = convert(source.at(*kept, place), source.dtype, out.dtype)
    return out.result(where(inside, value, convert(out.read(a), a.dtype, out.dtype)))


@operation("views", "unfold")
def unfold(out: Layout, a: Tensor, dim: int, size: int, step: int) -> Tensor:
    """Return a view of the windows of ``size`` entries that begin at every ``step``-th index of a
    dimension. The last dimension contains the entries of a window.
    """
    if not a.shape:
        return a.as_strided(out.shape, (1,))
    strides = list(a.strides)
    dim %= len(strides)
    strides[dim] *= step
    return a.as_strided(out.shape, (*strides, a.strides[dim]))


@operation("views", "as_strided")
def as_strided(
    out: Layout, a: Tensor, size: Sequence[int], stride: Sequence[int], offset: Any = None
) -> Tensor:
    """Return a view of the storage with the given size, strides and storage offset."""
    first = a.offset if offset is None else a.start + offset
    end = extent(size, stride, first)
    if end > first and not a.start <= first <= end <= a.start + a.storage:
        raise LocumError(
            f"as_strided: expected a view within the {a.storage} entries of the storage, "
            f"got size {tuple(size)}, stride {tuple(stride)} and storage offset {offset}"
        )
    return a.as_strided(size, stride, first)


@operation("views", "narrow_copy")
def narrow_copy(out: Layout, a: Tensor, dim: int, start: int, length: int) -> Tensor:
    """Return a copy of ``length`` entries of a dimension, beginning at ``start``."""
    dim %= len(a.shape)
    first = start % a.shape[dim] if start < 0 else start
    return to_copy(out, a.slice(dim, first, first + length))


# Views as copies ------------------------------------------------------------------------------------


def _register_copy(name: str) -> None:
    """Register the copying variant of the view ``name``, such as ``permute_copy`` for ``permute``."""
    packet, _, overload = name.partition(".")
    construct = TABLE[find_overload(name)].construct

    def copied(out: Any, *arguments: Any, **options: Any) -> Any:
        shown = construct(out, *arguments, **options)
        if isinstance(shown, tuple):
            return tuple(to_copy(layout, part) for layout, part in zip(out, shown, strict=True))
        return to_copy(out, shown)

    copied.__doc__ = "Return the result of the corresponding view operation, as a copy."
    operation("views", f"{packet}_copy" + (f".{overload}" if overload else ""))(copied)


for _name in (
    *("alias", "detach", "view", "permute", "transpose.int", "t", "expand", "unsqueeze"),
    *("squeeze", "squeeze.dim", "squeeze.dims", "slice.Tensor", "select.int", "split.Tensor"),
    *("split_with_sizes", "unbind.int", "diagonal", "unfold", "as_strided"),
):
    _register_copy(_name)
operation("views", "lift_fresh_copy")(to_copy)


@operation("indexing", "as_strided_scatter")
def as_strided_scatter(
    out: Layout,
    a: Tensor,
    source: Tensor,
    size: Sequence[int],
    stride: Sequence[int],
    offset: int | None = None,
) -> Tensor:
    """Return a copy of the tensor in which the source replaces the entries of a view with the given
    size and strides.
    """
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
    """Return the index of the strided entry at each position, and conditions on the position.

    The conditions are true at positions that contain a strided entry. The entries must not share
    memory.
    """
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


@operation("creation", "full", "full_like", "new_full")
def full(out: Layout, shape: Any, *values: Any, **options: Any) -> Tensor:
    """Return a tensor filled with one number."""
    return out.result(scalar(values[-1], out.dtype))


@operation("creation", "zeros", "zeros_like", "new_zeros", "_efficientzerotensor")
def zeros(out: Layout, *arguments: Any, **options: Any) -> Tensor:
    """Return a tensor filled with 0."""
    return out.result(scalar(0, out.dtype))


@operation(
    "creation",
    "empty.memory_format",
    "empty_like",
    "empty_permuted",
    "empty_strided",
    "new_empty",
    "new_empty_strided",
)
def empty(out: Layout, *arguments: Any, **options: Any) -> Tensor:
    """Return a tensor filled with 0. In PyTorch, the entries are uninitialised."""
    return out.result(scalar(0, out.dtype))


@operation("creation", "ones", "ones_like", "new_ones")
def ones(out: Layout, *arguments: Any, **options: Any) -> Tensor:
    """Return a tensor filled with 1."""
    return out.result(scalar(1, out.dtype))


@operation("creation", "scalar_tensor")
def scalar_tensor(out: Layout, value: Any, **options: Any) -> Tensor:
    """Return a tensor without dimensions that contains a number."""
    return out.result(scalar(value, out.dtype))


@operation("creation", "arange.start_step")
def arange(out: Layout, start: Any, end: Any, step: Any = 1, **options: Any) -> Tensor:
    """Return start, start + step, …, up to but not including ``end``. Floats are computed in float64
    and rounded.
    """
    dtype = "float64" if is_float(out.dtype) else out.dtype
    value = scalar(start, dtype) + convert(indices, "int64", dtype) * scalar(step, dtype)
    return out.result(rounded(value, out.dtype))
