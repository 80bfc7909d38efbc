"""Elementwise arithmetic and functions on whole arrays, with the values Python's numbers would give.

Whole numbers are kept within 62 bits by their bounds; floats are IEEE's, as Python's are. Where Python
raises an error (division by zero, a logarithm of 0, an exponential too large) or leaves what an array
can hold, :class:`Unstructured` is raised and dense execution gives the exact answer or the error. On
torch tensors functions of floats give IEEE's answers instead, so that nothing waits for the device.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from locum.execution import arrays as array_layer
from locum.execution.arrays import Array, Arrays
from locum.execution.fast.structured.series import (
    MAX_CHARACTERS,
    Series,
    Unstructured,
    as_array,
    as_float,
    as_whole,
    found_bounds,
)
from locum.graph.atoms import INT64_LIMIT, LARGEST_EXACT

Bounds = tuple[int, int]


def add(arrays: Arrays, a: Series, b: Series) -> Series:
    """a + b; joins strings."""
    if a.kind == b.kind == "string":
        return _joined(arrays, a, b)
    bounds = lambda x, y: (x[0] + y[0], x[1] + y[1])  # noqa: E731
    return _arithmetic(arrays, a, b, lambda x, y: x + y, bounds)


def subtract(arrays: Arrays, a: Series, b: Series) -> Series:
    """a − b."""
    bounds = lambda x, y: (x[0] - y[1], x[1] - y[0])  # noqa: E731
    return _arithmetic(arrays, a, b, lambda x, y: x - y, bounds)


def multiply(arrays: Arrays, a: Series, b: Series) -> Series:
    """a · b; repeats strings."""
    if not a.is_number or not b.is_number:
        return _repeated(arrays, a, b) if b.is_number else _repeated(arrays, b, a)

    def bounds(x: Bounds, y: Bounds) -> Bounds:
        corners = [p * q for p in x for q in y]
        return min(corners), max(corners)

    return _arithmetic(arrays, a, b, lambda x, y: x * y, bounds)


def divide(arrays: Arrays, a: Series, b: Series) -> Series:
    """a / b, as a float."""
    a, b = (as_float(arrays, as_whole(arrays, number)) for number in _numbers(a, b))
    _refuse_zeros(arrays, b)
    return Series(a.data / b.data, "float")


def modulo(arrays: Arrays, a: Series, b: Series) -> Series:
    """a − b·⌊a / b⌋, with the sign of b."""

    def bounds(x: Bounds, y: Bounds) -> Bounds:
        return min(y[0] + 1, 0), max(y[1] - 1, 0)

    _refuse_zeros(arrays, b)
    return _floored(arrays, a, b, lambda x, y: x % y, bounds)


def floor_divide(arrays: Arrays, a: Series, b: Series) -> Series:
    """⌊a / b⌋."""

    def bounds(x: Bounds, y: Bounds) -> Bounds:
        largest = max(abs(x[0]), abs(x[1]))
        return -largest, largest

    _refuse_zeros(arrays, b)
    return _floored(arrays, a, b, lambda x, y: x // y, bounds)


def power(arrays: Arrays, a: Series, b: Series) -> Series:
    """a to the power of b."""
    a, b = (as_whole(arrays, number) for number in _numbers(a, b))
    if a.kind == b.kind == "int":
        lowest, highest = b.bounds if b.constant else found_bounds(arrays, b.data)
        base = a if a.constant else Series(a.data, "int", found_bounds(arrays, a.data))
        if lowest >= 0:
            growth = math.log2(base.magnitude) if base.magnitude > 1 else 0
            if b.magnitude >= INT64_LIMIT or highest * growth >= 61.9:
                raise Unstructured("whole numbers beyond 64 bits")
            largest = base.magnitude**highest if base.magnitude > 1 else 1
            return Series(as_array(arrays, a) ** b.data, "int", (-largest, largest))
        x, y = as_float(arrays, a).data, as_float(arrays, b).data
        raised = _function(arrays, lambda: x**y)
        whole = as_array(arrays, b) >= 0  # an int to Python; the library's power may be off by a bit
        raised = arrays.xp.where(whole, arrays.xp.round(raised), raised)
        return _checked(arrays, Series(raised, "float", mixed=True))
    x, y = as_float(arrays, a).data, as_float(arrays, b).data
    return _result(arrays, a, b, _function(arrays, lambda: x**y))


def negate(arrays: Arrays, a: Series) -> Series:
    """−a."""
    (a,) = _numbers(a)
    a = as_whole(arrays, a)
    return Series(-a.data, a.kind, (-a.bounds[1], -a.bounds[0]), a.mixed)


def absolute(arrays: Arrays, a: Series) -> Series:
    """|a|."""
    (a,) = _numbers(a)
    a = as_whole(arrays, a)
    return Series(abs(a.data), a.kind, (0, a.magnitude), a.mixed)


def exp(arrays: Arrays, a: Series) -> Series:
    """e to the power of a."""
    return _of_float(arrays, a, arrays.xp.exp)


def log(arrays: Arrays, a: Series) -> Series:
    """The natural logarithm."""
    return _of_float(arrays, a, arrays.xp.log)


def sqrt(arrays: Arrays, a: Series) -> Series:
    """The square root."""
    return _of_float(arrays, a, arrays.xp.sqrt)


def tanh(arrays: Arrays, a: Series) -> Series:
    """The hyperbolic tangent."""
    return _of_float(arrays, a, arrays.xp.tanh)


def erf(arrays: Arrays, a: Series) -> Series:
    """The error function, which NumPy lacks."""
    return _of_float(arrays, a, array_layer.erf)


def floor(arrays: Arrays, a: Series) -> Series:
    """The greatest whole number not above a."""
    return _to_whole(arrays, a, arrays.xp.floor)


def round_(arrays: Arrays, a: Series) -> Series:
    """The nearest whole number, halves to even."""
    return _to_whole(arrays, a, arrays.xp.round)


# How numbers of different kinds meet --------------------------------------------------------------


def _numbers(*given: Series) -> tuple[Series, ...]:
    if not all(number.is_number for number in given):
        raise Unstructured("arithmetic with strings")
    return given


def _arithmetic(
    arrays: Arrays,
    a: Series,
    b: Series,
    compute: Callable[[Any, Any], Array],
    bounds: Callable[[Bounds, Bounds], Bounds],
) -> Series:
    a, b = (as_whole(arrays, number) for number in _numbers(a, b))
    if a.kind == b.kind == "int":
        found = bounds(a.bounds, b.bounds)
        if max(-found[0], found[1]) >= INT64_LIMIT:
            found = bounds(_tight(arrays, a), _tight(arrays, b))
        if max(-found[0], found[1]) >= INT64_LIMIT:
            raise Unstructured("whole numbers beyond 64 bits")
        return Series(compute(a.data, b.data), "int", found)
    return _result(arrays, a, b, compute(as_float(arrays, a).data, as_float(arrays, b).data))


def _floored(
    arrays: Arrays,
    a: Series,
    b: Series,
    compute: Callable[[Any, Any], Array],
    bounds: Callable[[Bounds, Bounds], Bounds],
) -> Series:
    """Division with remainder: Python and the array libraries differ only at infinities."""
    for number in (a, b):
        if number.kind == "float" and not arrays.on_torch and not np.isfinite(number.data).all():
            raise Unstructured("remainder of an infinity")
    return _arithmetic(arrays, a, b, compute, bounds)


def _result(arrays: Arrays, a: Series, b: Series, data: Array) -> Series:
    """Floats made of two numbers; they may be ints to Python only if both were."""
    return _checked(arrays, Series(data, "float", mixed=a.has_ints and b.has_ints))


def _checked(arrays: Arrays, value: Series) -> Series:
    """Ints that live in a float array must stay exact there."""
    if value.mixed and not arrays.on_torch:
        sizes = np.abs(value.data)
        if bool(((sizes > LARGEST_EXACT) & (sizes < np.inf)).any()):
            raise Unstructured("whole numbers beyond 53 bits among floats")
    return value


def _tight(arrays: Arrays, value: Series) -> Bounds:
    return value.bounds if value.constant else found_bounds(arrays, value.data)


def _refuse_zeros(arrays: Arrays, b: Series) -> None:
    if not b.is_number:
        raise Unstructured("arithmetic with strings")
    if b.kind == "int" and (b.bounds[0] > 0 or b.bounds[1] < 0):
        return
    if b.constant:
        if b.data == 0:
            raise Unstructured("division by zero")
    elif not (arrays.on_torch and b.kind == "float") and arrays.any(b.data == 0):
        raise Unstructured("division by zero")


# Functions of floats ------------------------------------------------------------------------------


def _of_float(arrays: Arrays, a: Series, function: Callable[[Array], Array]) -> Series:
    (a,) = _numbers(a)
    x = as_float(arrays, as_whole(arrays, a)).data
    return Series(_function(arrays, lambda: function(x)), "float")


def _function(arrays: Arrays, compute: Callable[[], Array]) -> Array:
    """What Python's function gives; where it would raise an error, so does NumPy here."""
    if arrays.on_torch:
        return compute()
    with np.errstate(divide="raise", over="raise", invalid="raise"):
        try:
            return compute()
        except FloatingPointError as error:
            raise Unstructured(f"a function has no float for a value here: {error}") from None


def _to_whole(arrays: Arrays, a: Series, function: Callable[[Array], Array]) -> Series:
    (a,) = _numbers(a)
    a = as_whole(arrays, a)
    if a.kind == "int":
        return a
    rounded = function(a.data)
    if arrays.on_torch:
        return Series(rounded, "float")  # whole in value; the type says how exact it is
    if not bool((np.abs(rounded) < INT64_LIMIT).all()):
        raise Unstructured("rounding something that is not finite, or very large")
    whole = arrays.to_int(rounded)
    return Series(whole, "int", found_bounds(arrays, whole))


# Strings ------------------------------------------------------------------------------------------


def _joined(arrays: Arrays, a: Series, b: Series) -> Series:
    if _characters(a) + _characters(b) > MAX_CHARACTERS:
        raise Unstructured(f"strings of more than {MAX_CHARACTERS} characters")
    return Series(np.char.add(a.data, b.data), "string")


def _repeated(arrays: Arrays, text: Series, times: Series) -> Series:
    if times.kind not in ("bool", "int"):
        raise Unstructured("arithmetic with strings")
    if _characters(text) * max(times.bounds[1], 0) > MAX_CHARACTERS:
        raise Unstructured(f"strings of more than {MAX_CHARACTERS} characters")
    return Series(np.char.multiply(text.data, as_whole(arrays, times).data), "string")


def _characters(text: Series) -> int:
    return len(text.data) if text.constant else text.data.dtype.itemsize // 4
