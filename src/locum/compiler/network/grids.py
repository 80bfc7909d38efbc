"""Numbers that floats add and multiply without rounding.

A float is an integer times a power of two. What has all its numbers on one *grid*, multiples of a power
of two, is summed exactly as long as no sum is larger than that step times 2^53 (2^24 in float32).
"""

from __future__ import annotations

import math

import numpy as np

from locum.compiler.network.forms import Vector
from locum.compiler.target import EXACT_WHOLE

#: Between this and 0 there is no number: what rounding adds to a number however small.
SMALLEST = {"float64": 2.0**-1074, "float32": 2.0**-149}
#: Multiples of 2⁻¹⁰ below these are added and multiplied without rounding.
_SAFE = {"float64": 2.0**40, "float32": 2.0**13}


def lowest_bit(number: float) -> float:
    """Return the greatest power of two that divides a number, as :func:`lowest_bits` has it.

    Without arrays: bounds ask this of every coefficient of every form.

    >>> lowest_bit(12.0), lowest_bit(-0.75), lowest_bit(0.0), lowest_bit(math.nan)
    (4.0, 0.25, inf, 0.0)
    """
    if not math.isfinite(number):
        return 0.0
    if not number:
        return math.inf
    mantissa, exponent = math.frexp(number)
    whole = int(mantissa * 2.0**53)
    return math.ldexp(float(whole & -whole), exponent - 53)


def lowest_bits(numbers: Vector) -> Vector:
    """Return the greatest power of two dividing each number; infinite for 0, 0 for inf and NaN.

    >>> lowest_bits(np.array([12.0, 0.75, 0.0])).tolist()
    [4.0, 0.25, inf]
    """
    array = np.asarray(numbers, dtype=np.float64)
    finite = np.isfinite(array)
    mantissas, exponents = np.frexp(np.where(finite, array, 0.0))
    integers = (mantissas * 2.0**53).astype(np.int64)
    with np.errstate(all="ignore"):
        bits = np.ldexp((integers & -integers).astype(np.float64), exponents - 53)
    return np.where(finite, np.where(array == 0, np.inf, bits), 0.0)


def sums_exactly(weight: float, step: float, dtype: str) -> bool:
    """Return whether numbers on a grid add up without rounding, if all of them make ``weight``."""
    return bool(step >= SMALLEST[dtype] and weight <= EXACT_WHOLE[dtype] * step)


def dyadic(numbers: Vector | float, dtype: str) -> bool:
    """Return whether arithmetic with these is exact: multiples of 2⁻¹⁰, and not too large."""
    array = np.asarray(numbers, dtype=np.float64)
    if not np.isfinite(array).all():
        return False
    return bool(
        (array * 1024 == np.round(array * 1024)).all() and (np.abs(array) <= _SAFE[dtype]).all()
    )
