"""Define the constructions of reductions along dimensions.

The reductions include sums, means, variances, maxima, products, norms and histograms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from locum.constructions.tensor import Layout, Tensor, elementwise, pointwise, reduce_sum
from locum.constructions.tensor_normalisation import log_sum_exp
from locum.constructions.tensor_reductions import (
    greatest,
    keep_dimensions,
    multiply_along,
    place_of_greatest,
    running,
)
from locum.errors import InputError
from locum.rasp.handles import SOp, apply
from locum.rasp.python import constant, family, floor, indices, minimum, sqrt, sum_over, where
from locum.torch.numbers import cast, computing_type, is_float, require, require_exact, rounded
from locum.torch.table import operation

# Sums -------------------------------------------------------------------------------------------------


def chosen(a: Tensor, dims: Any) -> list[int]:
    """Return the dimensions ``dims`` as sorted non-negative integers.

    If ``dims`` is None or empty, return all dimensions of ``a``.
    """
    if dims is None or (not isinstance(dims, int) and not dims):
        return list(range(len(a.shape)))
    listed: Sequence[int] = [dims] if isinstance(dims, int) else dims
    return sorted(dim % max(len(a.shape), 1) for dim in listed) if a.shape else []


def total(out: Layout, a: Tensor, dims: Sequence[int]) -> Tensor:
    """Return the sum of ``a`` over ``dims`` in the computing dtype of ``out``."""
    wide = Layout(out.shape, out.strides, computing_type(out.dtype))
    return wide.rounded(reduce_sum(wide, cast(a, wide.dtype), dims).sop)


@operation("reductions", "sum.dim_IntList", "sum")
def sum_(out: Layout, a: Tensor, dims: Any = None, keep: bool = False, *, dtype: Any = None) -> Tensor:
    """Return the sum over the given dimensions, or over all dimensions."""
    return out.result(rounded(total(out, a, chosen(a, dims)).sop, out.dtype))


@operation("reductions", "mean.dim", "mean")
def mean(out: Layout, a: Tensor, dims: Any = None, keep: bool = False, *, dtype: Any = None) -> Tensor:
    """Return the mean over the given dimensions, or over all dimensions."""
    along = chosen(a, dims)
    return out.rounded(total(out, a, along).sop / _count(a, along))


def _count(a: Tensor, dims: Sequence[int]) -> float:
    return float(math.prod(a.shape[dim] for dim in dims))


# Variances --------------------------------------------------------------------------------------------


def moments(a: Tensor, dims: Sequence[int], correction: Any) -> tuple[Tensor, Tensor]:
    """Return the mean and variance in float64. The reduced dimensions remain with size 1."""
    wide = cast(a, "float64")
    kept = Layout.contiguous([1 if dim in dims else n for dim, n in enumerate(a.shape)], "float64")
    count = _count(a, dims)
    means = kept.rounded(total(kept, wide, dims).sop / count)
    whole = Layout.contiguous(a.shape, "float64")
    squares = elementwise(whole, lambda x, m: apply("float64", (x - m) * (x - m)), wide, means)
    freedom = max(count - (1.0 if correction is None else float(correction)), 0.0) if count else 0.0
    return means, kept.rounded(total(kept, squares, dims).sop / freedom)


def _spread(out: Layout, a: Tensor, variance: Tensor, dims: Sequence[int], root: bool) -> Tensor:
    value = keep_dimensions(out, a, dims).read(variance)
    return out.rounded(sqrt(value) if root else value)


@operation("reductions", "var.correction")
def var(
    out: Layout, a: Tensor, dims: Any = None, *, correction: Any = None, keepdim: bool = False
) -> Tensor:
    """Return the variance over the given dimensions, or over all dimensions."""
    along = chosen(a, dims)
    return _spread(out, a, moments(a, along, correction)[1], along, root=False)


@operation("reductions", "std.correction")
def std(
    out: Layout, a: Tensor, dims: Any = None, *, correction: Any = None, keepdim: bool = False
) -> Tensor:
    """Return the standard deviation over the given dimensions, or over all dimensions."""
    along = chosen(a, dims)
    return _spread(out, a, moments(a, along, correction)[1], along, root=True)


@operation("reductions", "var_mean.correction")
def var_mean(
    out: Any, a: Tensor, dims: Any = None, *, correction: Any = None, keepdim: bool = False
) -> tuple[Tensor, Tensor]:
    """Return the variance and the mean over the given dimensions, or over all dimensions."""
    along = chosen(a, dims)
    means, variance = moments(a, along, correction)
    return (
        _spread(out[0], a, variance, along, root=False),
        _spread(out[1], a, means, along, root=False),
    )


@operation("reductions", "std_mean.correction")
def std_mean(
    out: Any, a: Tensor, dims: Any = None, *, correction: Any = None, keepdim: bool = False
) -> tuple[Tensor, Tensor]:
    """Return the standard deviation and the mean over the given dimensions, or over all dimensions."""
    along = chosen(a, dims)
    means, variance = moments(a, along, correction)
    return (
        _spread(out[0], a, variance, along, root=True),
        _spread(out[1], a, means, along, root=False),
    )


# Maxima -----------------------------------------------------------------------------------------------


def extreme(out: Layout, a: Tensor, dims: Sequence[int], sign: int) -> Tensor:
    """Return the maximum of ``a`` over ``dims``, or the minimum if ``sign`` is −1.

    The result is NaN if an entry is NaN.
    """
    if a.dtype == "bool":
        return out.result(greatest(out, cast(a, "int64"), dims, sign).sop != 0)
    found = greatest(out, a, dims, sign)
    if not is_float(a.dtype):
        return found
    return out.result(where(has_nan(out, a, dims).sop, math.nan, found.sop))


def has_nan(out: Layout, a: Tensor, dims: Sequence[int]) -> Tensor:
    """Return whether any entry along the dimensions ``dims`` is NaN."""
    whole = Layout.contiguous(a.shape, "int64")
    flags = elementwise(whole, lambda x: where(x == x, 0, 1), a)
    return out.result(greatest(out, flags, dims).sop != 0)


@operation("reductions", "amax")
def amax(out: Layout, a: Tensor, dims: Any = None, keepdim: bool = False) -> Tensor:
    """Return the maximum over the given dimensions, or over all dimensions."""
    return extreme(out, a, chosen(a, dims), 1)


@operation("reductions", "amin")
def amin(out: Layout, a: Tensor, dims: Any = None, keepdim: bool = False) -> Tensor:
    """Return the minimum over the given dimensions, or over all dimensions."""
    return extreme(out, a, chosen(a, dims), -1)


@operation("reductions", "max")
def max_(out: Layout, a: Tensor) -> Tensor:
    """Return the maximum of all entries."""
    return extreme(out, a, _some_entries("max", a, None), 1)


@operation("reductions", "min")
def min_(out: Layout, a: Tensor) -> Tensor:
    """Return the minimum of all entries."""
    return extreme(out, a, _some_entries("min", a, None), -1)


def _some_entries(name: str, a: Tensor, dim: Any) -> list[int]:
    """Return the dimensions that are reduced, which must not be empty."""
    dims = chosen(a, dim)
    if any(a.shape[d] == 0 for d in dims):
        raise InputError(f"{name}: expected one entry or more, got a tensor of shape {list(a.shape)}")
    return dims


def place(out: Layout, a: Tensor, dims: Sequence[int], sign: int) -> Tensor:
    """Return the index of the first maximum over ``dims``, or of the first minimum if ``sign`` is −1.

    If an entry is NaN, the result is the index of the first NaN.
    """
    if a.dtype == "bool":
        a = cast(a, "int64")
    found = place_of_greatest(out, a, dims, sign)
    if not is_float(a.dtype):
        return found
    whole = Layout.contiguous(a.shape, "int64")
    flags = elementwise(whole, lambda x: where(x == x, 0, 1), a)
    first_nan = place_of_greatest(out, flags, dims)
    return out.result(where(greatest(out, flags, dims).sop != 0, first_nan.sop, found.sop))


@operation("reductions", "argmax")
def argmax(out: Layout, a: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """Return the index of the first maximum along a dimension, or in the flattened tensor."""
    return place(out, a, chosen(a, dim), 1)


@operation("reductions", "argmin")
def argmin(out: Layout, a: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """Return the index of the first minimum along a dimension, or in the flattened tensor."""
    return place(out, a, chosen(a, dim), -1)


@operation("reductions", "max.dim")
def max_dim(out: Any, a: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """Return the maximum along a dimension, and the index of its first occurrence."""
    dims = _some_entries("max", a, dim)
    return extreme(out[0], a, dims, 1), place(out[1], a, dims, 1)


@operation("reductions", "min.dim")
def min_dim(out: Any, a: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """Return the minimum along a dimension, and the index of its first occurrence."""
    dims = _some_entries("min", a, dim)
    return extreme(out[0], a, dims, -1), place(out[1], a, dims, -1)


@operation("reductions", "any", "any.dim", "any.dims")
def any_(out: Layout, a: Tensor, dims: Any = None, keepdim: bool = False) -> Tensor:
    """Return whether any entry is non-zero, along the given dimensions or in the whole tensor."""
    return _some(out, a, _listed(a, dims), lambda x: where(x != 0, 1, 0), "!=")


@operation("reductions", "all", "all.dim", "all.dims")
def all_(out: Layout, a: Tensor, dims: Any = None, keepdim: bool = False) -> Tensor:
    """Return whether all entries are non-zero, along the given dimensions or in the whole tensor."""
    return _some(out, a, _listed(a, dims), lambda x: where(x != 0, 0, 1), "==")


def _listed(a: Tensor, dims: Any) -> list[int]:
    """Return the dimensions ``dims`` as non-negative integers.

    None selects all dimensions, and an empty list selects no dimension.
    """
    return [] if isinstance(dims, (list, tuple)) and not dims else chosen(a, dims)


def _some(
    out: Layout, a: Tensor, dims: Sequence[int], flag: Callable[[SOp], SOp], predicate: str
) -> Tensor:
    if 0 in a.shape:
        value: SOp = constant(0)
    else:
        flags = elementwise(Layout.contiguous(a.shape, "int64"), flag, a)
        value = greatest(out, flags, dims).sop
    holds = value != 0 if predicate == "!=" else value == 0
    return out.result(where(holds, 1, 0) if out.dtype != "bool" else holds)


# Products and running sums ----------------------------------------------------------------------------


@operation("reductions", "prod", "prod.dim_int")
def prod(out: Layout, a: Tensor, dim: Any = None, keep: bool = False, *, dtype: Any = None) -> Tensor:
    """Return the product of the entries along a dimension, or of all entries."""
    product = multiply_along(out, _whole(a, out.dtype), chosen(a, dim)).sop
    _require_exact(out, product)
    return out.result(rounded(product, out.dtype))


@operation("reductions", "cumsum")
def cumsum(out: Layout, a: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """Return the cumulative sum along a dimension. Floats are accumulated in float64."""
    wide = cast(cast(a, out.dtype), "float64") if is_float(out.dtype) else _whole(a, out.dtype)
    if is_float(out.dtype):  # PyTorch adds entries to +0, so −0 becomes +0
        wide = wide.replace(sop=wide.sop + 0.0)
    return _running(out, wide, dim, lambda x, y: x + y)


@operation("reductions", "cumprod")
def cumprod(out: Layout, a: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """Return the cumulative product along a dimension. Floats are accumulated in float64."""
    wide = cast(cast(a, out.dtype), "float64") if is_float(out.dtype) else _whole(a, out.dtype)
    return _running(out, wide, dim, lambda x, y: x * y)


def _running(out: Layout, a: Tensor, dim: int, combine: Callable[[SOp, SOp], SOp]) -> Tensor:
    value = running(out, a, dim % max(len(a.shape), 1), combine).sop
    _require_exact(out, value)
    return out.result(rounded(value, out.dtype))


def _require_exact(out: Layout, value: SOp) -> None:
    """Require that integers are below 2⁵³ in magnitude before they wrap around. Results of 64 bits do
    not wrap around, and are always tested.
    """
    if not is_float(out.dtype) and out.dtype != "bool" and not out.dtype.endswith("64"):
        require_exact(out, value)


def _whole(a: Tensor, dtype: str) -> Tensor:
    """Cast ``a`` for a product or cumulative sum whose result has the dtype ``dtype``."""
    if is_float(a.dtype) and not is_float(dtype):  # entries are truncated before they are combined
        return cast(a, dtype)
    if is_float(dtype) or a.dtype == dtype:
        return cast(a, computing_type(dtype))
    return cast(a, "float64") if a.dtype != "bool" else cast(a, dtype)


# Norms ------------------------------------------------------------------------------------------------


@operation("reductions", "logsumexp")
def logsumexp(out: Layout, a: Tensor, dims: Any, keepdim: bool = False) -> Tensor:
    """Return the logarithm of the sum of exponentials along dimensions. A finite maximum is subtracted
    before the exponentials are computed.
    """
    along = chosen(a, dims)
    if any(a.shape[dim] == 0 for dim in along):
        return out.result(constant(-math.inf))
    found = log_sum_exp(cast(a, computing_type(out.dtype)), along)
    return out.rounded(keep_dimensions(out, a, along).read(found))


@operation("reductions", "linalg_vector_norm")
def vector_norm(
    out: Layout,
    a: Tensor,
    order: Any = 2,
    dims: Any = None,
    keepdim: bool = False,
    *,
    dtype: Any = None,
) -> Tensor:
    """Return the p-norm along dimensions, computed in float64. The order p can be 0 or infinite."""
    along = chosen(a, dims)
    whole = Layout.contiguous(a.shape, "float64")
    sizes = elementwise(whole, abs, cast(cast(a, computing_type(out.dtype)), "float64"))
    if math.isinf(order):
        if any(a.shape[dim] == 0 for dim in along):
            if order < 0:
                raise InputError(
                    "linalg_vector_norm: expected one entry or more for the minimum, got none"
                )
            return out.result(constant(0.0))
        return out.rounded(extreme(out, sizes, along, 1 if order > 0 else -1).sop)
    if order == 0:
        flags = elementwise(whole, lambda x: where(x != 0, 1.0, 0.0), sizes)
        return out.rounded(total(Layout(out.shape, out.strides, "float64"), flags, along).sop)
    power = float(order)
    if power == 1:
        return out.rounded(total(Layout(out.shape, out.strides, "float64"), sizes, along).sop)
    raised = elementwise(
        whole, lambda x: apply("float64", x * x if power == 2 else apply("power", x, power)), sizes
    )
    sums = total(Layout(out.shape, out.strides, "float64"), raised, along).sop
    return out.rounded(sqrt(sums) if power == 2 else apply("power", sums, 1 / power))


@operation("reductions", "dist")
def dist(out: Layout, a: Tensor, b: Tensor, order: Any = 2) -> Tensor:
    """Return the p-norm of the difference of two tensors."""
    dtype = computing_type(out.dtype)
    apart = pointwise(lambda x, y: x - y, cast(a, dtype), cast(b, dtype))
    return vector_norm(out, apart, order)


@operation("reductions", "histc")
def histc(out: Layout, a: Tensor, bins: int = 100, low: Any = 0, high: Any = 0) -> Tensor:
    """Return the number of entries in each of ``bins`` equal intervals from ``low`` to ``high``.
    Entries outside this range are ignored.

    If ``low`` equals ``high``, the intervals range from the minimum to the maximum of the entries. If
    these are also equal, the range is extended by 1 on both sides.
    """
    if not (math.isfinite(low) and math.isfinite(high)):
        raise InputError(f"histc: expected finite min and max, got {low} and {high}")
    dtype = out.dtype
    if not a.size:
        return out.result(constant(0.0))
    families = [family(n) for n in a.shape]
    entry = a.at(*families)
    if low == high:
        least, greatest = _range(a)
        require(
            where(greatest - least < float("inf"), 0.0, 1.0),
            "histc: expected finite entries, got others; try giving min and max",
        )
    else:
        least, greatest = rounded(constant(float(low)), dtype), rounded(constant(float(high)), dtype)
    share = rounded(
        rounded(entry - least, dtype) / rounded(greatest - least, dtype) * constant(float(bins)), dtype
    )
    # The last interval contains the maximum. NaN and entries out of range are in no interval.
    place = minimum(floor(share), bins - 1)
    inside = where(entry >= least, entry <= greatest, False)
    target = where(inside, place, -1)
    hits = where(target == indices, 1.0, 0.0)
    return out.result(sum_over(*families, hits) if families else hits)


def _range(a: Tensor) -> tuple[SOp, SOp]:
    """Return the minimum and maximum of ``a``.

    If they are equal, the range is extended by 1 on both sides.
    """
    whole = Layout((), (), a.dtype)
    dims = range(len(a.shape))
    least, greatest = (extreme(whole, a, dims, sign).at() for sign in (-1, 1))
    same = least == greatest
    return (
        where(same, rounded(least - 1.0, a.dtype), least),
        where(same, rounded(greatest + 1.0, a.dtype), greatest),
    )
