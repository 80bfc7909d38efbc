"""Round arrays to narrower types, bound integers, and look up values in finite tables.

The results of rounding remain float64. As in PyTorch, float64 numbers are rounded to float32 before
they are rounded to half precision.

>>> round_array(np.array([0.1, 70000.0]), "float16").tolist()
[0.0999755859375, inf]
>>> round_array(np.array([1.0, 1.005]), "bfloat16").tolist()
[1.0, 1.0078125]
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from locum.execution.arrays import Array, Arrays
from locum.graph.atoms import EXACT_INTEGERS


def round_array(array: NDArray[Any], dtype: str) -> NDArray[np.float64]:
    """Round an array to the type named ``dtype``, with ties to even, and return it as float64."""
    if dtype == "float64":
        return array.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        single = np.asarray(array, dtype=np.float32)
        if dtype == "float16":
            return single.astype(np.float16).astype(np.float64)
        if dtype == "bfloat16":
            bits = single.view(np.uint32)
            up = np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
            rounded = ((bits + up) & np.uint32(0xFFFF0000)).view(np.float32)
            single = np.where(np.isnan(single), single, rounded)
        return single.astype(np.float64)


#: A lower and an upper bound of integers; a missing bound is infinite.
Interval: TypeAlias = "tuple[float, float]"
BIT: Interval = (0, 1)


def _times(x: float, y: float) -> float:
    return 0 if x == 0 or y == 0 else x * y


def product_bound(x: Interval, y: Interval) -> Interval:
    """Return bounds of the product of two integers with the bounds ``x`` and ``y``."""
    corners = [_times(p, q) for p in x for q in y]
    return min(corners), max(corners)


def around_zero(x: Interval) -> Interval:
    """Return the smallest interval that is symmetric about 0 and contains ``x``."""
    largest = max(abs(x[0]), abs(x[1]))
    return -largest, largest


def hull(x: Interval, y: Interval) -> Interval:
    """Return the smallest interval that contains both intervals."""
    return min(x[0], y[0]), max(x[1], y[1])


def modulo_bound(x: Interval, y: Interval) -> Interval:
    """Return bounds of a remainder, which has the sign of the divisor and a smaller absolute value.

    If the divisor is positive and the dividend is not negative, the remainder is at most the dividend.
    """
    high = max(y[1] - 1, 0)
    return min(y[0] + 1, 0), min(high, x[1]) if y[0] > 0 and x[0] >= 0 else high


def floor_divide_bound(x: Interval, y: Interval) -> Interval:
    """Return bounds of the integer quotient of two integers with the bounds ``x`` and ``y``.

    Integer divisors are at least 1 in absolute value, so the dividend bounds the quotient.
    """
    if y[0] > 0 and max(map(abs, (*x, *y))) < math.inf:
        corners = [p // q for p in x for q in y]
        return min(corners), max(corners)
    return around_zero(x)


def power_bound(x: Interval, y: Interval) -> Interval:
    """Return bounds of an integer power, given bounds ``x`` of the base and ``y`` of the exponent."""
    base, exponent = (around_zero(interval)[1] for interval in (x, y))
    if base <= 1:
        return -1, 1
    small = exponent * math.log2(base) < 1000 if exponent < math.inf and base < math.inf else False
    largest = base**exponent if small else math.inf
    return -largest, largest


def usable(arrays: Arrays, a: Array, keys: Sequence[Any]) -> list[int]:
    """Return the indices of the keys that can equal an element of ``a``, in ascending order of the
    keys.

    A string equals no number, NaN equals no value, 2.5 equals no integer, and an integer that the
    floating-point type cannot represent equals no float.
    """
    if not arrays.on_torch and a.dtype.kind == "U":
        places = [n for n, key in enumerate(keys) if isinstance(key, str)]
    else:
        bits = None if arrays.is_int(a) else _significant_bits(a)
        places = [n for n, key in enumerate(keys) if _can_occur(key, bits)]
    return sorted(places, key=lambda n: keys[n])


def _significant_bits(array: Array) -> int:
    return EXACT_INTEGERS[str(array.dtype).removeprefix("torch.")].bit_length() - 1


def _can_occur(key: Any, bits: int | None) -> bool:
    """Return whether a key can occur in an array of int64, or of floats with ``bits`` significant bits.

    ``bits`` is None for an array of int64. A float other than NaN counts as possible in any array of
    floats, since :func:`find` rounds it to the type of the array.
    """
    if isinstance(key, str) or key != key:
        return False
    if bits is None:
        return bool(-(2**63) <= key < 2**63 and int(key) == key)
    return isinstance(key, float) or not key % 2 ** max(0, int(key).bit_length() - bits)


def find(arrays: Arrays, a: Array, keys: Sequence[Any]) -> tuple[Array, Array]:
    """Return, for each element, the index of the only key that it can equal, and whether it equals this
    key.

    There must be at least one key. All keys must be :func:`usable` and in ascending order.
    """
    xp = arrays.xp
    if isinstance(keys[0], str):
        ascending: Array = np.array(keys)
    else:
        a = arrays.to_int(a) if arrays.is_int(a) else a
        exact = np.array(list(map(int, keys)) if arrays.is_int(a) else list(map(float, keys)))
        ascending = xp.asarray(exact, dtype=a.dtype, device=arrays.device)
    held = arrays.detached(a)
    place = arrays.search(ascending, held.reshape(-1), "left")
    place = xp.clip(place, 0, len(keys) - 1).reshape(a.shape)
    return place, ascending[place] == held


def member(arrays: Arrays, a: Array, *, values: Sequence[Any]) -> Array:
    """Return whether each element is one of ``values``."""
    keys = [values[n] for n in usable(arrays, a, values)]
    return find(arrays, a, keys)[1] if keys else arrays.xp.zeros_like(a, dtype=arrays.xp.bool)


def lookup(arrays: Arrays, a: Array, *, table: Sequence[tuple[Any, Any]]) -> Array:
    """Return the value in ``table`` for each element; values of :func:`missing` elements are
    arbitrary.
    """
    entries = [table[n] for n in usable(arrays, a, [key for key, _ in table])]
    if not entries:
        return arrays.full(tuple(a.shape), 0)
    values = [value for _, value in entries]
    if any(isinstance(value, float) for value in values):
        values = list(map(float, values))
    elif not all(isinstance(value, (bool, str)) for value in values):
        values = list(map(int, values))
    return arrays.put(np.array(values))[find(arrays, a, [key for key, _ in entries])[0]]


def missing(arrays: Arrays, a: Array, *, table: Sequence[tuple[Any, Any]]) -> Array:
    """Return a mask of the elements for which ``table`` contains no entry."""
    keys = [table[n][0] for n in usable(arrays, a, [key for key, _ in table])]
    if not keys:
        return arrays.xp.ones_like(a, dtype=arrays.xp.bool)
    return ~find(arrays, a, keys)[1]
