"""Represent tensors as views of a sequence: an s-op is the storage, and strides locate the entries.

Entry (i, j, …) of a :class:`Tensor` is the value of its s-op at position

    offset + i · strides[0] + j · strides[1] + …

as in PyTorch. Views such as transposes, slices and expansions change only shape, strides and offset, so
they need no head. Most constructions accept tensors and return a tensor with a new s-op, whose storage
begins at position 0. A :class:`~locum.constructions.matrix.Matrix` is a tensor of two dimensions.

Sizes, strides and offsets of a ``Tensor[Size]`` may be s-ops, such as ``length // 3``.

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
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic

from locum.constructions.sizes import S, largest, plus, product, same_size, times
from locum.errors import GraphError
from locum.graph import Node
from locum.graph.operations import ROUNDINGS
from locum.rasp.handles import SOp, apply
from locum.rasp.python import aggregate, constant, family, indices, select, sum_over

if TYPE_CHECKING:
    from typing import Self

#: An index: a number, or an s-op whose value depends on the position.
Index = int | SOp


@dataclass
class StorageSizes:
    """The sizes of the storages of tensors, recorded by :func:`measure_storages`."""

    #: Number of positions that the largest tensor or layout needs.
    greatest: int = 0
    #: Number of positions of each s-op that is the storage of a tensor.
    sizes: dict[Node, int] = field(default_factory=dict)


_storage_sizes: ContextVar[StorageSizes | None] = ContextVar("storage_sizes", default=None)


@contextmanager
def measure_storages() -> Iterator[StorageSizes]:
    """Record the storage sizes of all tensors and layouts that are created inside the ``with`` block.

    A program needs at least as many positions as the largest storage has entries, since intermediate
    results may be larger than inputs and outputs.

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
class Tensor(Generic[S]):
    """A strided view of an s-op, as a PyTorch tensor is a strided view of its storage."""

    sop: SOp
    shape: tuple[S, ...]
    strides: tuple[S, ...]
    offset: S = 0
    #: The type to which the entries are rounded, such as "float32" or "bool".
    dtype: str = "float64"
    #: The position at which the storage begins, and its number of entries; shared by views.
    start: int = 0
    storage: int = -1

    def __post_init__(self) -> None:
        if len(self.shape) != len(self.strides):
            raise GraphError(
                f"strides: expected one for each of {len(self.shape)} dimensions, got {self.strides}"
            )
        if self.storage < 0:
            object.__setattr__(self, "storage", (largest(self.end) or 0) - self.start)
        _measure(self.start + self.storage, self.sop)

    def replace(self, **changes: Any) -> Self:
        """Return a copy of the tensor with other values of the given fields.

        >>> from locum import indices, tokens
        >>> Tensor(tokens, (2,), (1,)).replace(sop=indices, offset=3).offset
        3
        """
        unknown = changes.keys() - vars(self).keys()
        if unknown:
            fields = ", ".join(vars(self))
            raise TypeError(
                f"replace: expected fields among {fields}, got {', '.join(sorted(unknown))}"
            )
        changed = object.__new__(type(self))
        vars(changed).update(vars(self) | changes)
        changed.__post_init__()
        return changed

    @property
    def size(self) -> S:
        """Number of entries."""
        return product(self.shape)

    @property
    def end(self) -> S:
        """Position after the last entry."""
        return extent(self.shape, self.strides, self.offset)

    def position(self, *index: Index) -> Index:
        """Return the position of the entry at ``index``; an index may be an s-op."""
        return locate(self.offset, self.strides, index)

    def at(self, *index: Index) -> SOp:
        """Return an s-op with the entry at ``index``, which one head reads; the index may be an s-op.

        The index of a dimension of size 1 is ignored, so such dimensions are broadcast.
        """
        used = (0 if same_size(n, 1) else i for n, i in zip(self.shape, index, strict=True))
        return aggregate(select(indices, self.position(*used), "=="), self.sop)

    def has_layout(self, shape: Sequence[S], strides: Sequence[S]) -> bool:
        """Return whether every entry is known to be at the position that it would have in a result with
        this shape and strides.
        """
        return (
            same_size(self.offset, 0)
            and len(self.shape) == len(shape)
            and all(
                same_size(n, m) and (same_size(n, 1) or same_size(s, t))
                for n, m, s, t in zip(self.shape, shape, self.strides, strides, strict=True)
            )
        )

    # Views ------------------------------------------------------------------------------------------

    def as_strided(
        self, shape: Sequence[S], strides: Sequence[S], offset: S | None = None
    ) -> Tensor[S]:
        """Return a view of the same storage with another shape and strides, and optionally another
        offset.
        """
        first = self.offset if offset is None else offset
        return Tensor(
            self.sop, tuple(shape), tuple(strides), first, self.dtype, self.start, self.storage
        )

    def permute(self, *order: int) -> Self:
        """Return a view with the dimensions in another order."""
        if sorted(order) != list(range(len(self.shape))):
            raise GraphError(
                f"permute: expected each of {len(self.shape)} dimensions once, got {order}"
            )
        shape = tuple(self.shape[n] for n in order)
        return self.replace(shape=shape, strides=tuple(self.strides[n] for n in order))

    def transpose(self, a: int, b: int) -> Self:
        """Return a view with the dimensions ``a`` and ``b`` exchanged."""
        order = list(range(len(self.shape)))
        order[a], order[b] = order[b], order[a]
        return self.permute(*order)

    def expand(self, *shape: S) -> Tensor[S]:
        """Return a view that repeats the entries along dimensions of size 1 and along new leading
        dimensions.

        Repeated dimensions have stride 0.
        """
        new = len(shape) - len(self.shape)
        own = (1,) * new + self.shape
        pairs = zip(own, shape, strict=True)
        if new < 0 or not all(same_size(n, 1) or same_size(n, size) for n, size in pairs):
            raise GraphError(f"expand: expected a shape that {self.shape} fits, got {shape}")
        strides = (
            stride if same_size(n, size) else 0
            for n, size, stride in zip(own, shape, (0,) * new + self.strides, strict=True)
        )
        return self.as_strided(shape, tuple(strides))

    def slice(self, dim: int, start: int, stop: int, step: int = 1) -> Self:
        """Return a view of every ``step``-th entry of a dimension, from ``start`` up to but not
        including ``stop``.
        """
        shape, strides = list(self.shape), list(self.strides)
        size = shape[dim]
        if not 0 <= start <= stop or (not isinstance(size, SOp) and stop > size):
            raise GraphError(
                f"slice: expected a range within the {size} entries of dimension {dim}, "
                f"got {start} to {stop}"
            )
        shape[dim] = len(range(start, stop, step))
        offset = plus(self.offset, times(start, strides[dim]) if shape[dim] else 0)
        strides[dim] = times(strides[dim], step)
        return self.replace(shape=tuple(shape), strides=tuple(strides), offset=offset)

    def select(self, dim: int, index: int) -> Tensor[S]:
        """Return a view at one index of a dimension, without that dimension."""
        part = self.slice(dim, index, index + 1)
        shape, strides = list(part.shape), list(part.strides)
        del shape[dim], strides[dim]
        return part.as_strided(shape, strides)

    def unsqueeze(self, dim: int) -> Tensor[S]:
        """Return a view with a new dimension of size 1."""
        shape, strides = list(self.shape), list(self.strides)
        strides.insert(dim, times(shape[dim], strides[dim]) if dim < len(shape) else 1)
        shape.insert(dim, 1)
        return self.as_strided(shape, strides)

    def flip(self, *dims: int) -> Self:
        """Return a view with the order of entries reversed along dimensions."""
        strides = tuple(times(s, -1) if dim in dims else s for dim, s in enumerate(self.strides))
        last = (plus(n, -1) if dim in dims else 0 for dim, n in enumerate(self.shape))
        return self.replace(strides=strides, offset=self.position(*last))

    def unflatten(self, dim: int, outer: int) -> Tensor[S]:
        """Return a view with one dimension split into two dimensions, the first of size ``outer``."""
        shape, strides = list(self.shape), list(self.strides)
        inner = shape[dim] // outer if outer else 0
        shape[dim : dim + 1] = [outer, inner]
        strides.insert(dim, times(strides[dim], inner))
        return self.as_strided(shape, strides)


def locate(offset: S, strides: Sequence[S], index: Sequence[S]) -> S:
    """Return the position of the entry at ``index`` for given offset and strides.

    >>> locate(10, (3, 1), (1, 2))
    15
    """
    position = offset
    for i, stride in zip(index, strides, strict=True):
        position = plus(position, times(i, stride))
    return position


def contiguous_strides(shape: Sequence[S]) -> tuple[S, ...]:
    """Return the strides of a row-major tensor.

    >>> contiguous_strides((2, 3, 4))
    (12, 4, 1)
    """
    sizes = [1 if same_size(n, 0) else n for n in shape]
    return tuple(product(sizes[place + 1 :]) for place in range(len(sizes)))


def extent(shape: Sequence[S], strides: Sequence[S], offset: S = 0) -> S:
    """Return the position after the last entry of a tensor, or the offset if the tensor is empty.

    >>> extent((2, 3), (3, 1)), extent((2, 3), (0, 1)), extent((0,), (1,))
    (6, 3, 0)
    """
    if any(same_size(n, 0) for n in shape):
        return offset
    return plus(locate(offset, strides, [plus(n, -1) for n in shape]), 1)


def is_dense(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Return whether the entries occupy each position of a contiguous range exactly once, in any
    order.

    The result is False if a dimension of several entries has a negative stride.
    """
    expected = 1
    for stride, n in sorted(zip(strides, shape, strict=True), key=lambda part: part[0]):
        if n > 1:
            if stride != expected:
                return False
            expected *= n
    return True


def coordinates(shape: Sequence[int], strides: Sequence[int]) -> list[Index]:
    """Return the index of the entry at each position in the storage of a dense tensor, as numbers or
    s-ops.
    """
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
    """The shape, strides and type of a result whose storage begins at position 0."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str = "float64"

    def __post_init__(self) -> None:
        _measure(extent(self.shape, self.strides))

    @classmethod
    def contiguous(cls, shape: Sequence[int], dtype: str) -> Layout:
        """Return the row-major layout of a shape and type."""
        return cls(tuple(shape), contiguous_strides(shape), dtype)

    @property
    def index(self) -> list[Index]:
        """The index of the entry at each position, as numbers or s-ops."""
        return coordinates(self.shape, self.strides)

    def result(self, sop: SOp) -> Tensor:
        """Return the tensor with this layout whose storage is ``sop``."""
        return Tensor(sop, self.shape, self.strides, dtype=self.dtype)

    def rounded(self, sop: SOp) -> Tensor:
        """Return the tensor with this layout whose storage is ``sop``, rounded if the layout has a
        floating-point type.
        """
        return self.result(apply(self.dtype, sop) if self.dtype in ROUNDINGS else sop)

    def unflatten(self, dim: int, outer: int) -> Layout:
        """Return the layout with a dimension split into two dimensions, the first of size ``outer``."""
        view = self.result(constant(0)).unflatten(dim, outer)
        return Layout(view.shape, view.strides, self.dtype)

    def read(self, tensor: Tensor) -> SOp:
        """Return an s-op with the corresponding entry of ``tensor``, expanded to this shape, at each
        position.
        """
        fitting = tensor.expand(*self.shape)
        return tensor.sop if fitting.has_layout(self.shape, self.strides) else fitting.at(*self.index)


def elementwise(out: Layout, function: Callable[..., SOp], *operands: Tensor) -> Tensor:
    """Apply a function to tensors elementwise; operands are expanded to the shape of the result."""
    return out.result(function(*map(out.read, operands)))


def copy(out: Layout, tensor: Tensor) -> Tensor:
    """Return the entries in another layout, with one head, or without a head if the layouts are
    equal.
    """
    return out.result(out.read(tensor))


def pointwise(function: Callable[..., SOp], *operands: Tensor) -> Tensor:
    """Apply a function elementwise and round the result to the floating-point type of the first
    operand.

    Operands are broadcast to a common shape.
    """
    shape = broadcast(*(operand.shape for operand in operands))
    fitting = (t.strides for t in operands if t.shape == shape and is_dense(t.shape, t.strides))
    out = Layout(shape, next(fitting, contiguous_strides(shape)), operands[0].dtype)
    return out.rounded(function(*map(out.read, operands)))


def broadcast(*shapes: Sequence[int]) -> tuple[int, ...]:
    """Return the common shape to which all shapes can be expanded.

    >>> broadcast((2, 1), (3,))
    (2, 3)
    """
    rank = max(map(len, shapes))
    sizes = zip(*((1,) * (rank - len(shape)) + tuple(shape) for shape in shapes), strict=True)
    return tuple(next((n for n in column if n != 1), 1) for column in sizes)


def contract(out: Layout, labels: str, *factors: tuple[Tensor, str]) -> Tensor:
    """Multiply tensors, and sum over the dimensions whose letters are not in ``labels``.

    Each dimension has a letter, as in ``einsum``; ``labels`` are the letters of the result. Sums are
    not rounded to the type of the result.

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
    term = math.prod(entries[1:], start=entries[0])
    return out.result(sum_over(*families.values(), term) if families else term)


def matmul(out: Layout, a: Tensor, b: Tensor) -> Tensor:
    """Return the matrix products over the last two dimensions; leading dimensions are broadcast."""
    lead = len(out.shape) - 2
    if b.shape[-2] != a.shape[-1]:
        raise GraphError(f"matmul: expected inner dimensions that agree, got {a.shape} and {b.shape}")
    batch = string.ascii_lowercase[:lead]
    own = [batch[lead + 2 - len(x.shape) :] for x in (a, b)]
    return contract(out, f"{batch}XZ", (a, f"{own[0]}XY"), (b, f"{own[1]}YZ"))


def reduce_sum(out: Layout, tensor: Tensor, dims: Sequence[int]) -> Tensor:
    """Sum over the dimensions ``dims``, which are missing in the result or have size 1."""
    if 0 in tensor.shape:
        return out.result(constant(0.0))
    families = {dim: family(tensor.shape[dim]) for dim in dims}
    entry = tensor.at(*reduced_index(out, tensor, dims, families))
    return out.result(sum_over(*families.values(), entry) if families else entry)


def sum_along(tensor: Tensor, dims: Sequence[int]) -> Tensor:
    """Sum over the dimensions ``dims``, which are kept with size 1, and round the sums to the
    floating-point type of the tensor.
    """
    kept = [1 if dim in dims else n for dim, n in enumerate(tensor.shape)]
    out = Layout.contiguous(kept, tensor.dtype)
    return out.rounded(reduce_sum(out, tensor, dims).sop)


def reduced_index(
    out: Layout, tensor: Tensor, dims: Sequence[int], inner: dict[int, SOp]
) -> list[Index]:
    """Return the index at which a reduction along ``dims`` reads its input tensor.

    ``inner`` contains the index of each reduced dimension.
    """
    index = list(out.index)
    if len(out.shape) == len(tensor.shape):  # reduced dimensions were kept with size 1
        return [inner.get(dim, i) for dim, i in enumerate(index)]
    others = iter(index)
    return [inner[dim] if dim in inner else next(others) for dim in range(len(tensor.shape))]
