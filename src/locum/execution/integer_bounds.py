"""Bounds of integers: what an operation makes of intervals that its operands lie in.

>>> product_bound((-2, 3), (4, 5)), modulo_bound((0, 9), (4, 4))
((-10, 15), (0, 3))
"""

from __future__ import annotations

import math
from typing import TypeAlias

#: The least and the greatest of some integers; infinite where there is no bound.
Interval: TypeAlias = "tuple[float, float]"
BIT: Interval = (0, 1)


def _times(x: float, y: float) -> float:
    return 0 if x == 0 or y == 0 else x * y


def product_bound(x: Interval, y: Interval) -> Interval:
    """Bound the product of two integers."""
    corners = [_times(p, q) for p in x for q in y]
    return min(corners), max(corners)


def around_zero(x: Interval) -> Interval:
    """Bound what is no larger in size, of either sign."""
    largest = max(abs(x[0]), abs(x[1]))
    return -largest, largest


def hull(x: Interval, y: Interval) -> Interval:
    """Bound what is one or the other."""
    return min(x[0], y[0]), max(x[1], y[1])


def modulo_bound(x: Interval, y: Interval) -> Interval:
    """Bound a remainder: it has the divisor's sign, and is smaller; a smaller dividend is its own."""
    high = max(y[1] - 1, 0)
    return min(y[0] + 1, 0), min(high, x[1]) if y[0] > 0 and x[0] >= 0 else high


def floor_divide_bound(x: Interval, y: Interval) -> Interval:
    """Bound a quotient by the dividend: no integer divisor lies between −1 and 1."""
    if y[0] > 0 and max(map(abs, (*x, *y))) < math.inf:
        corners = [p // q for p in x for q in y]
        return min(corners), max(corners)
    return around_zero(x)


def power_bound(x: Interval, y: Interval) -> Interval:
    """Bound a power of integers."""
    base, exponent = (around_zero(interval)[1] for interval in (x, y))
    if base <= 1:
        return -1, 1
    small = exponent * math.log2(base) < 1000 if exponent < math.inf and base < math.inf else False
    largest = base**exponent if small else math.inf
    return -largest, largest
