"""Define the constructions of concatenation, padding, indexing, scatters and sorting.

An index from data is a fetch: a head attends to the position that the index specifies. A scatter is a
sum over all indices of the values that are written to a position.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from locum.constructions.tensor import Index, Layout, Tensor, contiguous_strides, reduce_sum
from locum.rasp.handles import SOp
from locum.rasp.python import constant, family, maximum, minimum, sum_over, where
from locum.torch.numbers import compute, computing_type, convert, require, rounded, scalar
from locum.torch.table import operation

# Concatenation, padding and repetition --------------------------------------------------------------


@operation("indexing", "cat")
def cat(out: Layout, tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Return tensors concatenated along a dimension. Empty one-dimensional tensors are skipped."""
    rank = len(out.shape)
    dim %= rank
    parts = [t for t in tensors if len(t.shape) == rank and t.shape[dim]]
    return _joined(out, [convert_tensor(t, out.dtype) for t in parts], dim)


def convert_tensor(tensor: Tensor, dtype: str) -> Tensor:
    """Return a tensor in another dtype with the same shape, strides and storage."""
    if tensor.dtype == dtype:
        return tensor
    return tensor.replace(sop=convert(tensor.sop, tensor.dtype, dtype), dtype=dtype)


def _joined(out: Layout, parts: Sequence[Tensor], dim: int) -> Tensor:
    if not parts:
        return out.result(scalar(0, out.dtype))
    index = out.index
    end = sum(part.shape[dim] for part in parts)
    value: SOp | None = None
    for part in reversed(parts):
        end -= part.shape[dim]
        shifted = [i if n != dim else _minus(i, end) for n, i in enumerate(index)]
        entry = part.at(*shifted)
        inside = _below(index[dim], end + part.shape[dim])
        value = entry if value is None else where(inside, entry, value)
    assert value is not None
    return out.result(value)


def _minus(i: Index, by: int) -> Index:
    return i - by if by else i


def _below(i: Index, end: int) -> Any:
    return i < end if isinstance(i, SOp) else constant(i < end)


@operation("indexing", "stack")
def stack(out: Layout, tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Return tensors concatenated along a new dimension."""
    dim %= len(out.shape)
    return _joined(out, [convert_tensor(t, out.dtype).unsqueeze(dim) for t in tensors], dim)


@operation("indexing", "constant_pad_nd")
def pad(out: Layout, a: Tensor, pads: Sequence[int], value: Any = 0) -> Tensor:
    """Return the tensor padded with a number. Negative padding removes entries."""
    index, inside = out.index, []
    for place in range(len(pads) // 2):
        dim = len(out.shape) - 1 - place
        index[dim] = index[dim] - pads[2 * place]
        inside += _between(index[dim], a.shape[dim])
    filling = scalar(value, out.dtype)
    if not a.size:
        return out.result(filling)
    return out.result(_where_all(inside, a.at(*index), filling))


def _between(i: Index, size: int) -> list[SOp]:
    return [i >= 0, i < size] if isinstance(i, SOp) else [constant(0 <= i < size)]


def _where_all(conditions: Sequence[SOp], then: SOp, otherwise: SOp) -> SOp:
    """Return ``then`` where all conditions are true, and ``otherwise`` elsewhere."""
    for condition in conditions:
        then = where(condition, then, otherwise)
    return then


@operation("indexing", "repeat")
def repeat(out: Layout, a: Tensor, repeats: Sequence[int]) -> Tensor:
    """Return the tensor repeated along its dimensions and along new leading dimensions."""
    index = out.index[len(out.shape) - len(a.shape) :]
    wrapped = [i % n for i, n in zip(index, a.shape, strict=True)] if a.size else []
    return out.result(a.at(*wrapped) if a.size else scalar(0, out.dtype))


@operation("indexing", "flip")
def flip(out: Layout, a: Tensor, dims: Sequence[int]) -> Tensor:
    """Return the tensor with the order of entries reversed along the given dimensions."""
    turned = {dim % len(a.shape) for dim in dims} if a.shape else set()
    index = [a.shape[n] - 1 - i if n in turned else i for n, i in enumerate(out.index)]
    return out.result(a.at(*index))


@operation("indexing", "roll")
def roll(out: Layout, a: Tensor, shifts: Any, dims: Any = ()) -> Tensor:
    """Return the tensor rotated along the given dimensions, or rotated as a flattened tensor."""
    shifts = [shifts] if isinstance(shifts, int) else shifts
    dims = [dims] if isinstance(dims, int) else dims
    if not a.size:
        return out.result(scalar(0, out.dtype))
    index = out.index
    if not dims:
        flat: Index = 0
        for i, step in zip(index, contiguous_strides(a.shape), strict=True):
            flat = flat + i * step
        flat = (flat - shifts[0]) % a.size
        strides = contiguous_strides(a.shape)
        return out.result(a.at(*(flat // step % n for step, n in zip(strides, a.shape, strict=True))))
    for shift, dim in zip(shifts, dims, strict=True):
        dim %= len(a.shape)
        index[dim] = (index[dim] - shift) % a.shape[dim]
    return out.result(a.at(*index))


# Writing into a part --------------------------------------------------------------------------------


@operation("indexing", "slice_scatter")
def slice_scatter(
    out: Layout,
    a: Tensor,
    source: Tensor,
    dim: int = 0,
    start: Any = None,
    end: Any = None,
    step: int = 1,
) -> Tensor:
    """Return a copy of the tensor in which the source replaces a slice along a dimension."""
    dim %= len(a.shape)
    first, last, _ = slice(start, end).indices(a.shape[dim])
    return _replaced(out, out.read(a), source, dim, first, last, step)


def _replaced(
    out: Layout, before: SOp, source: Tensor, dim: int, first: int, last: int, step: int
) -> Tensor:
    """Return ``before`` with the entries of ``source`` at every ``step``-th index of dimension ``dim``.

    The indices range from ``first`` to ``last`` − 1.
    """
    if not source.size:
        return out.result(before)
    index = out.index
    i = index[dim]
    conditions = [i >= first, i < last] if isinstance(i, SOp) else [constant(first <= i < last)]
    if step > 1:
        conditions.append(_as_sop(i - first) % step == 0)
    index[dim] = (i - first) // step if step > 1 else _minus(i, first)
    entry = convert(source.at(*index), source.dtype, out.dtype)
    return out.result(_where_all(conditions, entry, before))


@operation("indexing", "select_scatter")
def select_scatter(out: Layout, a: Tensor, source: Tensor, dim: int, index: int) -> Tensor:
    """Return a copy of the tensor in which the source replaces one slice along a dimension."""
    dim %= len(a.shape)
    index %= a.shape[dim]
    row = source.unsqueeze(dim)
    return _replaced(out, out.read(a), row.expand(*row.shape), dim, index, index + 1, 1)


@operation("indexing", "slice_backward")
def slice_backward(
    out: Layout, grad: Tensor, sizes: Any, dim: int, start: int, end: int, step: int
) -> Tensor:
    """Return the gradient of the input of a slice, which is 0 outside the slice."""
    dim %= len(out.shape)
    first, last, _ = slice(start, end).indices(out.shape[dim])
    return _replaced(out, scalar(0, out.dtype), grad, dim, first, last, step)


@operation("indexing", "select_backward")
def select_backward(out: Layout, grad: Tensor, sizes: Any, dim: int, index: int) -> Tensor:
    """Return the gradient of the input of a selection, which is 0 except at the selected index."""
    dim %= len(out.shape)
    index %= out.shape[dim]
    return _replaced(out, scalar(0, out.dtype), grad.unsqueeze(dim), dim, index, index + 1, 1)


# Fetches --------------------------------------------------------------------------------------------


def checked_index(index: SOp, size: int) -> SOp:
    """Convert a possibly negative index to an index from 0 to ``size`` − 1; other indices are clipped.

    :func:`require_inside` adds a check of the indices to the program.
    """
    from_front = where(index < 0, index + size, index)
    return minimum(maximum(from_front, 0), size - 1)


#: Operations that accept negative indices, which count from the end of a dimension.
_FROM_THE_END = ("index", "index_put")
#: Dtypes of index tensors that PyTorch treats as masks.
_MASKS = ("bool", "uint8")


def require_inside(index: Tensor, size: int, operation: str) -> None:
    """Add a check to the program that each index is in the range that PyTorch accepts.

    The range ends at ``size`` − 1. The range begins at −``size`` for operations that accept negative
    indices, and at 0 for other operations.
    """
    if not index.size:
        return
    least = -size if operation in _FROM_THE_END else 0
    families = [family(n) for n in index.shape]
    i = index.at(*families)
    outside = where(i < 0, i < least, i >= size)
    count = where(outside, 1.0, 0.0)
    require(
        sum_over(*families, count) if families else count,
        f"{operation}: expected indices from {least} to {size - 1}, got one outside",
    )


@operation("indexing", "embedding")
def embedding(
    out: Layout,
    weight: Tensor,
    ids: Tensor,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Return the row of the weight for each token id."""
    require_inside(ids, weight.shape[0], "embedding")
    *lead, column = out.index
    if not out.shape or not weight.size:
        return out.result(scalar(0, out.dtype))
    return out.result(weight.at(checked_index(ids.at(*lead), weight.shape[0]), column))


@operation("indexing", "index_select")
def index_select(out: Layout, a: Tensor, dim: int, index: Tensor) -> Tensor:
    """Return the slices of a tensor at the given indices of a dimension."""
    dim = dim % len(a.shape) if a.shape else 0
    places: list[Tensor | None] = [None] * len(a.shape)
    if not a.shape:
        require_inside(index, 1, "index_select")
        return out.result(out.read(a))
    places[dim] = index if index.shape else index.unsqueeze(0)
    return _fetch(out, a, places, "index_select")


@operation("indexing", "gather")
def gather(out: Layout, a: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Tensor:
    """Return the entries of a tensor at the given indices along a dimension."""
    if not a.shape:
        require_inside(index, 1, "gather")
        return out.result(out.read(a))
    dim %= len(a.shape)
    require_inside(index, a.shape[dim], "gather")
    if not math.prod(out.shape):
        return out.result(scalar(0, out.dtype))
    place = list(out.index)
    if not index.shape:
        place = [0] * len(a.shape)
    place[dim] = checked_index(out.read(index), a.shape[dim])
    return out.result(a.at(*place))


@operation("indexing", "index.Tensor")
def index_tensor(out: Layout, a: Tensor, indices_: Sequence[Tensor | None]) -> Tensor:
    """Return the entries of a tensor at the indices in one or more index tensors."""
    return _fetch(out, a, indices_, "index")


def _fetch(out: Layout, a: Tensor, indices_: Sequence[Tensor | None], operation: str) -> Tensor:
    index, _ = _advanced_index(out, a, indices_, operation)
    if not math.prod(out.shape):
        return out.result(scalar(0, out.dtype))
    return out.result(a.at(*index))


def _advanced_index(
    out: Layout, a: Tensor, indices_: Sequence[Tensor | None], operation: str
) -> tuple[list[Index], range]:
    """Return the index into ``a`` of each entry of the result, and a range of dimensions of the result.

    The range contains the dimensions that the index tensors determine.
    """
    given = [*indices_, *[None] * (len(a.shape) - len(indices_))]
    named = [n for n, i in enumerate(given) if i is not None]
    tensors = [i for i in given if i is not None]
    if any(i.dtype in _MASKS for i in tensors):
        raise_unsupported(operation, "masks as indices", "torch.where")
    shape = broadcast_shape([i.shape for i in tensors])
    adjacent = named == list(range(named[0], named[-1] + 1))
    first = named[0] if adjacent else 0
    own = list(out.index)
    block, rest = own[first : first + len(shape)], own[:first] + own[first + len(shape) :]
    others = iter(rest)
    index: list[Index] = []
    for n, tensor in enumerate(given):
        if tensor is None:
            index.append(next(others))
            continue
        require_inside(tensor, a.shape[n], operation)
        index.append(checked_index(tensor.expand(*shape).at(*block), a.shape[n]))
    return index, range(first, first + len(shape))


def broadcast_shape(shapes: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """Return the shape to which all given shapes broadcast."""
    rank = max(map(len, shapes), default=0)
    padded = [(1,) * (rank - len(shape)) + tuple(shape) for shape in shapes]
    return tuple(next((n for n in sizes if n != 1), 1) for sizes in zip(*padded, strict=True))


def raise_unsupported(operation: str, what: str, instead: str) -> None:
    """Raise :class:`GraphError` for an unsupported argument ``what``, suggesting ``instead``."""
    from locum.errors import GraphError

    raise GraphError(f"{operation}: {what} are not supported; try {instead}")


# Scatters -------------------------------------------------------------------------------------------


def _sent(families: Sequence[SOp], target: SOp, place: SOp, value: SOp) -> SOp:
    """Return the sum of the values that are written to ``place``: the values whose ``target`` is
    ``place``.
    """
    chosen = where(target == place, value, 0.0)
    return sum_over(*families, chosen) if families else chosen


@operation("indexing", "embedding_dense_backward")
def embedding_dense_backward(
    out: Layout, grad: Tensor, ids: Tensor, num_weights: int, padding_idx: int, by_frequency: bool
) -> Tensor:
    """Return the gradient of the weight of an embedding. Each row is the sum of the gradients at the
    occurrences of its token id. The row ``padding_idx`` is 0.
    """
    if by_frequency:
        raise_unsupported("embedding", "gradients scaled by frequency", "scale_grad_by_freq=False")
    dtype = computing_type(out.dtype)
    if not ids.size:
        return out.result(scalar(0, out.dtype))
    families = [family(n) for n in ids.shape]
    row, column = out.index
    value = convert(grad.at(*families, column), grad.dtype, dtype)
    total = _sent(families, ids.at(*families), _as_sop(row), value)
    if 0 <= padding_idx < num_weights:
        total = where(_as_sop(row) == padding_idx, 0.0, total)
    return out.result(rounded(total, out.dtype))


def _as_sop(i: Index) -> SOp:
    return i if isinstance(i, SOp) else constant(i)


@operation("indexing", "index_put", "_unsafe_index_put", "_index_put_impl")
def index_put(
    out: Layout,
    a: Tensor,
    indices_: Sequence[Tensor | None],
    values: Tensor,
    accumulate: bool = False,
    unsafe: bool = False,
) -> Tensor:
    """Return a copy of the tensor in which values replace the entries at the given indices, or are
    added to them.
    """
    return _put(out, a, indices_, values, accumulate, "index_put")


def _put(
    out: Layout,
    a: Tensor,
    indices_: Sequence[Tensor | None],
    values: Tensor,
    accumulate: bool,
    operation: str,
) -> Tensor:
    given = [*indices_, *[None] * (len(a.shape) - len(indices_))]
    named = [n for n, i in enumerate(given) if i is not None]
    tensors = [i for i in given if i is not None]
    if len(tensors) == 1 and tensors[0].dtype == "bool" and values.size == 1 and not accumulate:
        return _masked(out, a, tensors[0], named[0], values)
    if any(i.dtype in _MASKS for i in tensors):
        raise_unsupported("index_put", "masks as indices", "torch.where")
    shape = broadcast_shape([i.shape for i in tensors])
    if not math.prod(shape) or not a.size:
        return out.result(out.read(a))
    adjacent = named == list(range(named[0], named[-1] + 1))
    first = named[0] if adjacent else 0
    own = [_as_sop(i) for i in out.index]
    families = [family(n) for n in shape]
    target: SOp = constant(0)
    place: SOp = constant(0)
    for n in named:
        tensor = given[n]
        assert tensor is not None
        require_inside(tensor, a.shape[n], operation)
        entry = tensor.expand(*shape).at(*families)
        target = target * a.shape[n] + where(entry < 0, entry + a.shape[n], entry)
        place = place * a.shape[n] + own[n]
    rest = [i for n, i in enumerate(own) if n not in named]
    size = [a.shape[n] for n in range(len(a.shape)) if n not in named]
    source = values.expand(*size[:first], *shape, *size[first:])
    return _scattered(
        out,
        out.read(a),
        families,
        shape,
        target,
        place,
        lambda block: source.at(*rest[:first], *block, *rest[first:]),
        source.dtype,
        accumulate,
        operation,
        is_single=values.size == 1,
    )


def _masked(out: Layout, a: Tensor, mask: Tensor, first: int, value: Tensor) -> Tensor:
    """Return a copy of ``a`` in which ``value`` replaces each entry where the mask is true.

    The dimensions of the mask are the dimensions of ``a`` from ``first`` on.
    """
    if not a.size:
        return out.result(out.read(a))
    holds = mask.at(*out.index[first : first + len(mask.shape)])
    entry = convert(value.at(*(0 for _ in value.shape)), value.dtype, out.dtype)
    return out.result(where(holds, entry, out.read(a)))


def _scattered(
    out: Layout,
    before: SOp,
    families: Sequence[SOp],
    shape: Sequence[int],
    target: SOp,
    place: SOp,
    value: Any,
    dtype: str,
    accumulate: bool,
    operation: str,
    is_single: bool = False,
) -> Tensor:
    """Replace the entries whose position ``place`` equals a target, or add values to these entries.

    ``value`` returns the value for an index into ``shape``. PyTorch does not define the result if two
    values replace one entry, so a check rejects equal targets. ``is_single`` states that all values are
    equal, and omits the check.
    """
    if accumulate:
        computing = computing_type(out.dtype)
        entry = convert(value(families), dtype, computing)
        sent = _sent(families, target, place, entry)
        return out.result(rounded(convert(before, out.dtype, computing) + sent, out.dtype))
    number: SOp = constant(0)
    for index, n in zip(families, shape, strict=True):
        number = number * n + index
    hits = _sent(families, target, place, constant(1.0))
    which = _sent(families, target, place, number)
    if not is_single:
        require_distinct(out, hits, operation)
    strides = contiguous_strides(shape)
    last = minimum(maximum(which, 0), math.prod(shape) - 1)
    block = [last // step % n for step, n in zip(strides, shape, strict=True)]
    return out.result(where(hits > 0.0, convert(value(block), dtype, out.dtype), before))


def require_distinct(out: Layout, hits: SOp, operation: str) -> None:
    """Add a check to the program that no entry is replaced twice.

    ``hits`` counts the values that are written to each entry.
    """
    size = math.prod(out.shape)
    counts = Tensor(hits, (size,), (1,))
    n = family(size)
    require(
        sum_over(n, where(counts.at(n) > 1.0, 1.0, 0.0)),
        f"{operation}: expected distinct indices, got two values for one entry; "
        "try accumulate=True or scatter_add",
    )


def _as_row(out: Layout) -> Layout:
    """Return a layout with one dimension of size 1, for a tensor without dimensions."""
    return Layout((1,), (1,), out.dtype)


def _lines(out: Layout, dim: int, index: Tensor) -> tuple[list[Index], list[SOp], SOp]:
    """Return an index that varies along dimension ``dim``, its family variables and a position.

    The index is the index of each entry of the result, with a family variable in place of dimension
    ``dim``. The position is the index of the entry along ``dim``.
    """
    own = list(out.index)
    t = family(index.shape[dim])
    along = list(own)
    along[dim] = t
    return along, [t], _as_sop(own[dim])


def _scatter(
    out: Layout, a: Tensor, dim: int, index: Tensor, source: Any, accumulate: bool, operation: str
) -> Tensor:
    if not a.shape:
        row, line = _as_row(out), index if index.shape else index.unsqueeze(0)
        source = source.unsqueeze(0) if isinstance(source, Tensor) and not source.shape else source
        result = _scatter(row, a.unsqueeze(0), 0, line, source, accumulate, operation)
        return out.result(result.sop)
    dim %= len(a.shape)
    before = out.read(a)
    if not index.size:
        return out.result(before)
    if not index.shape:
        index = index.unsqueeze(0)
        source = source.unsqueeze(0) if isinstance(source, Tensor) and not source.shape else source
    require_inside(index, a.shape[dim], operation)
    along, families, place = _lines(out, dim, index)
    # ``index`` may be smaller than the result in other dimensions. Entries outside of it do not change.
    inside = [
        _as_sop(i) < n
        for m, (i, n) in enumerate(zip(out.index, index.shape, strict=True))
        if m != dim and n < a.shape[m]
    ]
    target = index.at(*along)
    for condition in inside:
        target = where(condition, target, -1)

    def value(block: Sequence[Index]) -> SOp:
        if not isinstance(source, Tensor):
            return scalar(source, out.dtype)
        return source.at(*[block[0] if n == dim else i for n, i in enumerate(along)])

    dtype = source.dtype if isinstance(source, Tensor) else out.dtype
    return _scattered(
        out,
        before,
        families,
        [index.shape[dim]],
        target,
        place,
        value,
        dtype,
        accumulate,
        operation,
        is_single=not isinstance(source, Tensor) or source.size == 1,
    )


@operation("indexing", "scatter.src", "scatter.value")
def scatter(out: Layout, a: Tensor, dim: int, index: Tensor, source: Any) -> Tensor:
    """Return a copy of the tensor in which values replace the entries at the given indices along a
    dimension.
    """
    return _scatter(out, a, dim, index, source, False, "scatter")


@operation("indexing", "scatter_add")
def scatter_add(out: Layout, a: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """Return a copy of the tensor in which values are added to the entries at the given indices along a
    dimension.
    """
    return _scatter(out, a, dim, index, source, True, "scatter_add")


@operation("indexing", "index_add")
def index_add(
    out: Layout, a: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1
) -> Tensor:
    """Return a copy of the tensor in which slices of the source, multiplied by ``alpha``, are added to
    the slices at the given indices of a dimension.
    """
    if alpha != 1:
        layout = Layout(source.shape, contiguous_strides(source.shape), source.dtype)
        source = compute(layout, lambda x, y: x * y, source, alpha)
    return _index_rows(out, a, dim, index, source, True, "index_add")


@operation("indexing", "index_copy")
def index_copy(out: Layout, a: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """Return a copy of the tensor in which slices of the source replace the slices at the given indices
    of a dimension.
    """
    return _index_rows(out, a, dim, index, source, False, "index_copy")


def _index_rows(
    out: Layout, a: Tensor, dim: int, index: Tensor, source: Tensor, accumulate: bool, name: str
) -> Tensor:
    if not a.shape:
        rows = source if source.shape else source.unsqueeze(0)
        row = _index_rows(_as_row(out), a.unsqueeze(0), 0, index, rows, accumulate, name)
        return out.result(row.sop)
    dim %= len(a.shape)
    places: list[Tensor | None] = [None] * len(a.shape)
    places[dim] = index if index.shape else index.unsqueeze(0)
    rows = source if source.shape else source.unsqueeze(0)
    return _put(out, a, places, rows, accumulate, name)


# Order ----------------------------------------------------------------------------------------------


def _ranks(values: Tensor, index: Sequence[Index], dim: int, descending: bool) -> SOp:
    """Return the number of entries along ``dim`` that precede each entry in sorted order.

    NaN is the largest value. Equal entries keep their order.
    """
    mine = values.at(*index)
    t = family(values.shape[dim])
    other = values.at(*[t if n == dim else i for n, i in enumerate(index)])
    first, second = (other, mine) if descending else (mine, other)
    greater = where(second == second, where(first == first, first > second, True), False)
    same = where(mine == mine, other == mine, other != other)
    before = where(same, t < _as_sop(index[dim]), greater)
    return sum_over(t, where(before, 1.0, 0.0))


def _ordered(
    values_out: Layout, indices_out: Layout, a: Tensor, dim: int, descending: bool
) -> tuple[Tensor, Tensor]:
    """Return the entries along ``dim`` in sorted order, and their original indices.

    If the layouts of the results are shorter along ``dim``, the results contain the first entries.
    """
    layout = Layout(a.shape, contiguous_strides(a.shape), "float64")
    ranks = layout.result(_ranks(a, layout.index, dim, descending))
    index = list(indices_out.index)
    rank = _as_sop(index[dim])
    t = family(a.shape[dim])
    along = [t if n == dim else i for n, i in enumerate(index)]
    which = indices_out.result(_sent([t], ranks.at(*along), rank, t))
    place = list(values_out.index)
    found = values_out.read(which)
    place[dim] = minimum(maximum(found, 0), a.shape[dim] - 1)
    return values_out.result(a.at(*place)), which


@operation("indexing", "sort", "sort.stable")
def sort(
    out: Any, a: Tensor, dim: int = -1, descending: bool = False, *, stable: Any = None
) -> tuple[Tensor, Tensor]:
    """Return the entries sorted along a dimension and their indices. Equal entries keep their order."""
    if not a.shape or not a.size:
        zero = out[1].result(scalar(0, "int64"))
        return out[0].result(out[0].read(a) if a.size else scalar(0, out[0].dtype)), zero
    return _ordered(out[0], out[1], a, dim % len(a.shape), descending)


@operation("indexing", "topk")
def topk(
    out: Any, a: Tensor, k: int, dim: int = -1, largest: bool = True, in_order: bool = True
) -> tuple[Tensor, Tensor]:
    """Return the k largest or smallest entries along a dimension in sorted order, and their indices.

    PyTorch does not define which of several equal entries are chosen. A check rejects a choice between
    equal finite entries. Equal infinite entries, such as masked entries, are accepted.
    """
    if not a.shape or not math.prod(out[0].shape):
        zero = out[1].result(scalar(0, "int64"))
        is_empty = 0 in out[0].shape
        return out[0].result(scalar(0, out[0].dtype) if is_empty else out[0].read(a)), zero
    dim %= len(a.shape)
    values, places = _ordered(out[0], out[1], a, dim, largest)
    require_clear_choice(values, a, dim, largest)
    return values, places


def require_clear_choice(values: Tensor, a: Tensor, dim: int, largest: bool) -> None:
    """Add a check that no entry outside of the result of ``topk`` equals the last entry of the result.

    Infinite and NaN last entries are accepted.
    """
    k = values.shape[dim]
    lines = Layout.contiguous([1 if n == dim else size for n, size in enumerate(a.shape)], "float64")
    t = family(a.shape[dim])
    last = values.at(*(k - 1 if n == dim else i for n, i in enumerate(lines.index)))
    other = a.at(*(t if n == dim else i for n, i in enumerate(lines.index)))
    # NaN is the largest entry, so it counts as reached if the largest entries are chosen.
    is_reached = where(other < last, 0.0, 1.0) if largest else where(other <= last, 1.0, 0.0)
    reached = sum_over(t, is_reached)
    unclear = lines.result(where((reached > k) & (abs(last) < math.inf), 1.0, 0.0))
    require(
        reduce_sum(Layout((), ()), unclear, range(len(a.shape))).sop,
        "topk: expected entries that differ from the last one chosen, got equal ones, of which PyTorch "
        "may choose any; try torch.sort(x, stable=True)",
    )
