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
import string
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace

from locum.errors import GraphError
from locum.graph import Node
from locum.graph.operations import ROUNDINGS
from locum.language.handles import SOp, apply
from locum.language.python import aggregate, constant, family, indices, select, sum_over

#: An index: a number, or an s-op that differs from position to position.
Index = int | SOp


@dataclass
class StorageSizes:
    """The sizes of the storages of tensors."""

    #: The number of positions that tensors and layouts need.
    greatest: int = 0
    #: The number of positions of each s-op that is the storage of a tensor.
    sizes: dict[Node, int] = field(default_factory=dict)


_storage_sizes: ContextVar[StorageSizes | None] = ContextVar("storage_sizes", default=None)


@contextmanager
def measure_storages() -> Iterator[StorageSizes]:
    """Measure the storages of the tensors and layouts made inside the block.

    A program has at least as many positions as the largest storage, since intermediate results may
    have more entries than inputs and outputs.

    >>> with measure_storages() as storages:
    ...     layout = Layout((2, 3), (3, 1))
    >>> storages.greatest
    6
    """
    storages = StorageSizes()
    token = _storage_sizes.set(storages)
    try:
        yield storages
    finally:
        _storage_sizes.reset(token)


def _measure(size: int, sop: SOp | None = None) -> None:
    storages = _storage_sizes.get()
    if storages is not None:
        storages.greatest = max(storages.greatest, size)
        if sop is not None:
            storages.sizes[sop.node] = max(storages.sizes.get(sop.node, 0), size)


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
        _measure(self.start + self.storage, self.sop)

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

    def flip(self, *dims: int) -> Tensor:
        """Return dimensions from their last entry to their first."""
        strides = tuple(-s if dim in dims else s for dim, s in enumerate(self.strides))
        last = sum((self.shape[dim] - 1) * self.strides[dim] for dim in dims)
        return replace(self, strides=strides, offset=self.offset + last)

    def unflatten(self, dim: int, outer: int) -> Tensor:
        """Split a dimension into two, of which the first has size ``outer``."""
        inner = self.shape[dim] // outer if outer else 0
        shape = (*self.shape[:dim], outer, inner, *self.shape[dim + 1 :])
        stride = self.strides[dim]
        strides = (*self.strides[:dim], stride * inner, stride, *self.strides[dim + 1 :])
        return replace(self, shape=shape, strides=strides)


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
        _measure(extent(self.shape, self.strides))

    @classmethod
    def contiguous(cls, shape: Sequence[int], dtype: str) -> Layout:
        """Return the layout of a row-major tensor."""
        return cls(tuple(shape), contiguous_strides(shape), dtype)

    @property
    def index(self) -> list[Index]:
        """The index of the entry at each position."""
        return coordinates(self.shape, self.strides)

    def result(self, sop: SOp) -> Tensor:
        """Return the tensor that an s-op computes."""
        return Tensor(sop, self.shape, self.strides, dtype=self.dtype)

    def rounded(self, sop: SOp) -> Tensor:
        """Return the tensor that an s-op computes, rounded to the type of the layout."""
        return self.result(apply(self.dtype, sop) if self.dtype in ROUNDINGS else sop)

    def unflatten(self, dim: int, outer: int) -> Layout:
        """Return the layout with a dimension split into two, of which the first has size ``outer``."""
        view = self.result(constant(0)).unflatten(dim, outer)
        return Layout(view.shape, view.strides, self.dtype)

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


def pointwise(function: Callable[..., SOp], *operands: Tensor) -> Tensor:
    """Apply a function entry by entry, in the type of the first operand, and round to that type.

    Operands are expanded to each other's shapes.
    """
    shape = broadcast(*(operand.shape for operand in operands))
    fitting = (t.strides for t in operands if t.shape == shape and is_dense(t.shape, t.strides))
    out = Layout(shape, next(fitting, contiguous_strides(shape)), operands[0].dtype)
    return out.rounded(function(*map(out.read, operands)))


def broadcast(*shapes: Sequence[int]) -> tuple[int, ...]:
    """Return the shape that all shapes expand to.

    >>> broadcast((2, 1), (3,))
    (2, 3)
    """
    rank = max(map(len, shapes))
    sizes = zip(*((1,) * (rank - len(shape)) + tuple(shape) for shape in shapes), strict=True)
    return tuple(next((n for n in column if n != 1), 1) for column in sizes)


def contract(out: Layout, labels: str, *factors: tuple[Tensor, str]) -> Tensor:
    """Multiply tensors, and add up along the dimensions whose labels the result does not have.

    Each dimension has a letter, as in ``einsum``. Sums are not rounded.

    >>> from locum import tokens
    >>> a = Tensor(tokens, (2, 2), (2, 1))
    >>> contract(Layout.contiguous((2,), "float64"), "i", (a, "ij"), (a, "ij")).sop([1, 2, 3, 4])[:2]
    [5, 25]
    """
    sizes = {
        letter: size
        for tensor, letters in factors
        for letter, size in zip(letters, tensor.shape, strict=True)
        if size != 1
    }
    if 0 in sizes.values():
        return out.result(constant(0.0))
    places: dict[str, Index] = dict(zip(labels, out.index, strict=True))
    families = {letter: family(n) for letter, n in sizes.items() if letter not in places}
    places.update(families)
    entries = [tensor.at(*(places.get(n, 0) for n in letters)) for tensor, letters in factors]
    product = math.prod(entries[1:], start=entries[0])
    return out.result(sum_over(*families.values(), product) if families else product)


def matmul(out: Layout, a: Tensor, b: Tensor) -> Tensor:
    """Multiply the matrices of the last two dimensions; leading dimensions are expanded."""
    lead = len(out.shape) - 2
    if b.shape[-2] != a.shape[-1]:
        raise GraphError(f"matmul: expected inner dimensions that agree, got {a.shape} and {b.shape}")
    batch = string.ascii_lowercase[:lead]
    own = [batch[lead + 2 - len(x.shape) :] for x in (a, b)]
    return contract(out, f"{batch}XZ", (a, f"{own[0]}XY"), (b, f"{own[1]}YZ"))


def reduce_sum(out: Layout, tensor: Tensor, dims: Sequence[int]) -> Tensor:
    """Add up along dimensions, which the result has not, or has with size 1."""
    if 0 in tensor.shape:
        return out.result(constant(0.0))
    families = {dim: family(tensor.shape[dim]) for dim in dims}
    entry = tensor.at(*reduced_index(out, tensor, dims, families))
    return out.result(sum_over(*families.values(), entry) if families else entry)


def sum_along(tensor: Tensor, dims: Sequence[int]) -> Tensor:
    """Add up along dimensions, which stay with size 1; the sums are rounded to the tensor's type."""
    kept = [1 if dim in dims else n for dim, n in enumerate(tensor.shape)]
    out = Layout.contiguous(kept, tensor.dtype)
    return out.rounded(reduce_sum(out, tensor, dims).sop)


def reduced_index(
    out: Layout, tensor: Tensor, dims: Sequence[int], inner: dict[int, SOp]
) -> list[Index]:
    """Return the index into a tensor of which the result is a reduction along ``dims``."""
    index = list(out.index)
    if len(out.shape) == len(tensor.shape):  # reduced dimensions were kept, with size 1
        return [inner.get(dim, i) for dim, i in enumerate(index)]
    others = iter(index)
    return [inner[dim] if dim in inner else next(others) for dim in range(len(tensor.shape))]
