"""Tensors as views of a sequence: an s-op is the storage, and strides say where the entries are.

Entry (i, j, …) of a :class:`Tensor` is what its s-op has at position

    offset + i · strides[0] + j · strides[1] + …

as in PyTorch. Views such as transposes, slices and expansions change shape, strides and offset, and
cost no head. A construction takes tensors and returns a tensor with an s-op of its own, whose storage
begins at position 0.

>>> from locum import tokens
>>> a = Tensor(tokens, (2, 3), (3, 1))
>>> a.at(1, 2)([1, 2, 3, 4, 5, 6])
[6, 6, 6, 6, 6, 6]
>>> a.permute(1, 0).strides
(1, 3)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace

from locum.errors import GraphError
from locum.language.handles import SOp
from locum.language.python import aggregate, constant, family, indices, select, sum_over

#: An index: a number, or an s-op that differs from position to position.
Index = int | SOp


@dataclass
class PositionCount:
    """The number of positions that tensors need."""

    greatest: int = 0


_position_count: ContextVar[PositionCount | None] = ContextVar("position_count", default=None)


@contextmanager
def measure_positions() -> Iterator[PositionCount]:
    """Count the positions that the tensors and layouts made inside the block need.

    A program has at least this length, since intermediate results may have more entries than inputs
    and outputs.

    >>> with measure_positions() as count:
    ...     layout = Layout((2, 3), (3, 1))
    >>> count.greatest
    6
    """
    count = PositionCount()
    token = _position_count.set(count)
    try:
        yield count
    finally:
        _position_count.reset(token)


def _need_positions(number: int) -> None:
    count = _position_count.get()
    if count is not None:
        count.greatest = max(count.greatest, number)


@dataclass(frozen=True, eq=False)
class Tensor:
    """A strided view of an s-op."""

    sop: SOp
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0
    #: The type that the entries are rounded to, such as "float32" or "bool".
    dtype: str = "float64"
    #: The position at which the storage begins, and its number of entries; views share them.
    start: int = 0
    storage: int = -1

    def __post_init__(self) -> None:
        if len(self.shape) != len(self.strides):
            raise GraphError(
                f"strides: expected one for each of {len(self.shape)} dimensions, got {self.strides}"
            )
        if self.storage < 0:
            end = self.offset + extent(self.shape, self.strides)
            object.__setattr__(self, "storage", end - self.start)
        _need_positions(self.start + self.storage)

    @property
    def size(self) -> int:
        """The number of entries."""
        return math.prod(self.shape)

    def at(self, *index: Index) -> SOp:
        """Return the entry at an index, at each position that asks for it: one head."""
        position: Index = self.offset
        for i, stride, size in zip(index, self.strides, self.shape, strict=True):
            if stride and size > 1:
                position = position + (i if stride == 1 else i * stride)
        return aggregate(select(indices, position, "=="), self.sop)

    def lies_as(self, shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
        """Return whether each entry is at the position that a result of this layout has it at."""
        steps = zip(self.shape, self.strides, strides, strict=False)
        return self.shape == shape and self.offset == 0 and all(n == 1 or s == t for n, s, t in steps)

    # Views ------------------------------------------------------------------------------------------

    def permute(self, *order: int) -> Tensor:
        """Return the dimensions in another order."""
        shape = tuple(self.shape[n] for n in order)
        return replace(self, shape=shape, strides=tuple(self.strides[n] for n in order))

    def transpose(self, a: int, b: int) -> Tensor:
        """Exchange two dimensions."""
        order = list(range(len(self.shape)))
        order[a], order[b] = order[b], order[a]
        return self.permute(*order)

    def expand(self, *shape: int) -> Tensor:
        """Repeat along dimensions of size 1, and along new leading ones: strides are 0 there."""
        new = len(shape) - len(self.shape)
        own = (1,) * new + self.shape
        if new < 0 or any(n not in (1, size) for n, size in zip(own, shape, strict=True)):
            raise GraphError(f"expand: expected a shape that {self.shape} fits, got {shape}")
        strides = tuple(
            0 if n != size else stride
            for n, size, stride in zip(own, shape, (0,) * new + self.strides, strict=True)
        )
        return replace(self, shape=tuple(shape), strides=strides)

    def slice(self, dim: int, start: int, stop: int, step: int = 1) -> Tensor:
        """Return every ``step``-th entry of a dimension, from ``start`` up to ``stop``."""
        shape, strides = list(self.shape), list(self.strides)
        shape[dim] = len(range(start, stop, step))
        offset = self.offset + (start * strides[dim] if shape[dim] else 0)
        strides[dim] *= step
        return replace(self, shape=tuple(shape), strides=tuple(strides), offset=offset)

    def select(self, dim: int, index: int) -> Tensor:
        """Return one entry of a dimension, which the result does not have."""
        shape, strides = list(self.shape), list(self.strides)
        offset = self.offset + index * strides[dim]
        del shape[dim], strides[dim]
        return replace(self, shape=tuple(shape), strides=tuple(strides), offset=offset)

    def unsqueeze(self, dim: int) -> Tensor:
        """Insert a dimension of size 1."""
        shape, strides = list(self.shape), list(self.strides)
        strides.insert(dim, shape[dim] * strides[dim] if dim < len(shape) else 1)
        shape.insert(dim, 1)
        return replace(self, shape=tuple(shape), strides=tuple(strides))


def contiguous_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of a row-major tensor.

    >>> contiguous_strides((2, 3, 4))
    (12, 4, 1)
    """
    return tuple(math.prod(max(n, 1) for n in shape[place + 1 :]) for place in range(len(shape)))


def extent(shape: Sequence[int], strides: Sequence[int]) -> int:
    """Return how many positions a strided tensor takes up.

    >>> extent((2, 3), (3, 1)), extent((2, 3), (0, 1)), extent((0,), (1,))
    (6, 3, 0)
    """
    if 0 in shape:
        return 0
    return 1 + sum((n - 1) * stride for n, stride in zip(shape, strides, strict=True))


def is_dense(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Return whether the entries fill their storage, each position once, in any order of dimensions."""
    expected = 1
    for stride, n in sorted(zip(strides, shape, strict=True), key=lambda part: part[0]):
        if n > 1:
            if stride != expected:
                return False
            expected *= n
    return True


def coordinates(shape: Sequence[int], strides: Sequence[int]) -> list[Index]:
    """Return the index of the entry at each position of a dense tensor's storage."""
    size = math.prod(shape)
    index: list[Index] = []
    for n, stride in zip(shape, strides, strict=True):
        if n == 1:
            index.append(0)
            continue
        digit: Index = indices if stride == 1 else indices // stride
        index.append(digit % n if n * stride < size else digit)
    return index


@dataclass(frozen=True)
class Layout:
    """Where the entries of a result are: shape, strides and type. Its storage begins at position 0."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str = "float64"

    def __post_init__(self) -> None:
        _need_positions(extent(self.shape, self.strides))

    @property
    def index(self) -> list[Index]:
        """The index of the entry at each position."""
        return coordinates(self.shape, self.strides)

    def result(self, sop: SOp) -> Tensor:
        """Return the tensor that an s-op computes."""
        return Tensor(sop, self.shape, self.strides, dtype=self.dtype)

    def read(self, tensor: Tensor) -> SOp:
        """Return the entry of a tensor that fits the shape, at each position of the result."""
        fitting = tensor.expand(*self.shape)
        return tensor.sop if fitting.lies_as(self.shape, self.strides) else fitting.at(*self.index)


def elementwise(out: Layout, function: Callable[..., SOp], *operands: Tensor) -> Tensor:
    """Apply a function of numbers entry by entry; operands are expanded to the shape of the result."""
    return out.result(function(*map(out.read, operands)))


def copy(out: Layout, tensor: Tensor) -> Tensor:
    """Return the entries in another layout: one head, or none if they lie so already."""
    return out.result(out.read(tensor))


def matmul(out: Layout, a: Tensor, b: Tensor) -> Tensor:
    """Multiply the matrices of the last two dimensions; leading dimensions are expanded."""
    lead, (rows, columns) = out.shape[:-2], out.shape[-2:]
    inner = a.shape[-1]
    if b.shape[-2] != inner:
        raise GraphError(f"matmul: expected inner dimensions that agree, got {a.shape} and {b.shape}")
    if not inner:
        return out.result(constant(0.0))
    a, b = a.expand(*lead, rows, inner), b.expand(*lead, inner, columns)
    *batch, i, j = out.index
    t = family(inner)
    return out.result(sum_over(t, a.at(*batch, i, t) * b.at(*batch, t, j)))


def reduce_sum(out: Layout, tensor: Tensor, dims: Sequence[int]) -> Tensor:
    """Add up along dimensions, which the result has not, or has with size 1."""
    if any(tensor.shape[dim] == 0 for dim in dims):
        return out.result(constant(0.0))
    families = {dim: family(tensor.shape[dim]) for dim in dims}
    entry = tensor.at(*reduced_index(out, tensor, dims, families))
    return out.result(sum_over(*families.values(), entry) if families else entry)


def reduced_index(
    out: Layout, tensor: Tensor, dims: Sequence[int], inner: dict[int, SOp]
) -> list[Index]:
    """Return the index into a tensor of which the result is a reduction along ``dims``."""
    index = list(out.index)
    if len(out.shape) == len(tensor.shape):  # reduced dimensions were kept, with size 1
        return [inner.get(dim, i) for dim, i in enumerate(index)]
    others = iter(index)
    return [inner[dim] if dim in inner else next(others) for dim in range(len(tensor.shape))]
