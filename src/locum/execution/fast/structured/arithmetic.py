"""Elementwise arithmetic and functions on whole series, with the values that Python's numbers give.

Integers are kept below 2⁶² by their bounds; floats are IEEE's, as Python's are. Where Python raises an
error (division by zero, a logarithm of 0, an exponential too large) or leaves what an array can hold,
:class:`Unstructured` is raised, and dense execution gives the exact answer or the error. On torch
tensors functions of floats give IEEE's answers instead, so that nothing waits for the device.
"""

from __future__ import annotations

import numpy as np

from locum.execution.arrays import Array, Arrays
from locum.execution.elementwise import MEANINGS, apply, checked, ieee, refusing
from locum.execution.fast.structured.series import (
    MAX_CHARACTERS,
    Series,
    Unstructured,
    as_array,
    as_float,
    as_whole,
)
from locum.execution.integer_bounds import Interval
from locum.graph.atoms import INT64_LIMIT, LARGEST_EXACT

_REFUSE = refusing(lambda problem, kind, where: Unstructured(problem))


def compute(arrays: Arrays, op: str, *inputs: Series) -> Series:
    """Compute an operation of arithmetic, or a function, on series that are not all constant."""
    if not all(value.is_number for value in inputs):
        return _of_strings(arrays, op, *inputs)
    numbers = [as_whole(arrays, value) for value in inputs]
    meaning = MEANINGS[op]
    if all(number.kind == "int" for number in numbers):
        if meaning.kind == "int":
            return numbers[0]
        if meaning.keeps_whole:
            return _integers(arrays, op, numbers)
        if op == "power":
            return _integer_power(arrays, *numbers)
    data = _floats(arrays, op, numbers)
    if meaning.kind == "int":
        return _rounded(arrays, data)
    return _exact(arrays, data, meaning.kind is None and all(value.has_ints for value in inputs))


# Integers -----------------------------------------------------------------------------------------


def _integers(arrays: Arrays, op: str, numbers: list[Series]) -> Series:
    """Return an operation that gives integers, in int64, unless they may become too large for that."""
    bounds = _bounds(op, [number.bounds for number in numbers])
    if not _fits(bounds, *numbers):
        bounds = _bounds(op, [_tight(arrays, number) for number in numbers])
    if not _fits(bounds, *numbers):
        raise Unstructured("integers beyond 64 bits")
    divisor = numbers[-1].bounds
    policy = ieee if divisor[0] > 0 or divisor[1] < 0 else _REFUSE
    data = apply(arrays, op, [number.data for number in numbers], policy)
    return Series(data, "int", (int(bounds[0]), int(bounds[1])))


def _bounds(op: str, inputs: list[Interval]) -> Interval:
    bound = MEANINGS[op].bound
    assert bound is not None
    return bound(*inputs)


def _fits(bounds: Interval, *numbers: Series) -> bool:
    return max(-bounds[0], bounds[1], *(number.magnitude for number in numbers)) < INT64_LIMIT


def _tight(arrays: Arrays, number: Series) -> tuple[int, int]:
    return number.bounds if number.constant else arrays.range_of(number.data)


def _integer_power(arrays: Arrays, a: Series, b: Series) -> Series:
    tight = [Series(number.data, "int", _tight(arrays, number)) for number in (a, b)]
    if tight[1].bounds[0] >= 0:
        return _integers(arrays, "power", tight)
    power = _floats(arrays, "power", tight)
    # An integer to Python, where the exponent is not negative; a library's power may be off by a bit.
    power = arrays.xp.where(as_array(arrays, b) >= 0, arrays.xp.round(power), power)
    return _exact(arrays, power, True)


# Floats -------------------------------------------------------------------------------------------


def _floats(arrays: Arrays, op: str, numbers: list[Series]) -> Array:
    inputs = [as_float(arrays, number).data for number in numbers]
    if arrays.on_torch:
        return apply(arrays, op, inputs, ieee)
    return checked(arrays, op, inputs, _REFUSE)


def _rounded(arrays: Arrays, data: Array) -> Series:
    """Return floats that are integers in value as integers, where int64 holds them."""
    if arrays.on_torch:
        return Series(data, "float")  # the type says how exact it is
    if not bool((np.abs(data) < INT64_LIMIT).all()):
        raise Unstructured("integers beyond 64 bits")
    integers = arrays.to_int(data)
    return Series(integers, "int", arrays.range_of(integers))


def _exact(arrays: Arrays, data: Array, mixed: bool) -> Series:
    """Return floats, some of which may be integers to Python: these must be exact (2⁵³ + 1 is not)."""
    if mixed and not arrays.on_torch:
        sizes = np.abs(data)
        if bool(((sizes >= LARGEST_EXACT) & (sizes < np.inf)).any()):
            raise Unstructured("integers beyond 53 bits among floats")
    return Series(data, "float", mixed=mixed)


# Strings ------------------------------------------------------------------------------------------


def _of_strings(arrays: Arrays, op: str, *inputs: Series) -> Series:
    """Join strings by ``add``, repeat them by ``multiply``."""
    texts = [value for value in inputs if not value.is_number]
    if op == "add" and len(texts) == 2:
        _require_short(sum(map(_characters, texts)))
        return Series(np.char.add(texts[0].data, texts[1].data), "string")
    if op == "multiply" and len(texts) == 1:
        (times,) = (value for value in inputs if value.is_number)
        if times.kind in ("bool", "int"):
            _require_short(_characters(texts[0]) * max(times.bounds[1], 0))
            return Series(np.char.multiply(texts[0].data, as_whole(arrays, times).data), "string")
    raise Unstructured("arithmetic with strings")


def _require_short(characters: int) -> None:
    if characters > MAX_CHARACTERS:
        raise Unstructured(f"strings of more than {MAX_CHARACTERS} characters")


def _characters(text: Series) -> int:
    return len(text.data) if text.constant else text.data.dtype.itemsize // 4
