"""Histograms: how many entries lie in each interval."""

from __future__ import annotations

from typing import Any

from locum.constructions.tensor import Layout, Tensor
from locum.language.handles import SOp
from locum.language.python import constant, family, floor, indices, minimum, sum_over, where
from locum.torch.notes import require
from locum.torch.numbers import rounded
from locum.torch.operations.reductions import extreme
from locum.torch.table import operation


@operation("reductions", "histc")
def histc(out: Layout, a: Tensor, bins: int = 100, low: Any = 0, high: Any = 0) -> Tensor:
    """Count the entries in ``bins`` equal intervals from ``low`` to ``high``; others are not counted.

    With equal ends, the intervals range from the least to the greatest entry.
    """
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
    # The greatest entry is in the last interval. Entries outside and NaN are in no interval.
    place = minimum(floor(share), bins - 1)
    inside = where(entry >= least, entry <= greatest, False)
    target = where(inside, place, -1)
    hits = where(target == indices, 1.0, 0.0)
    return out.result(sum_over(*families, hits) if families else hits)


def _range(a: Tensor) -> tuple[SOp, SOp]:
    """Return the least and the greatest entry, one less and one more if they are equal."""
    whole = Layout((), (), a.dtype)
    dims = range(len(a.shape))
    least, greatest = (extreme(whole, a, dims, sign).at() for sign in (-1, 1))
    same = least == greatest
    return (
        where(same, rounded(least - 1.0, a.dtype), least),
        where(same, rounded(greatest + 1.0, a.dtype), greatest),
    )
