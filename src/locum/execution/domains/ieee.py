"""Run programs on floats with IEEE 754 arithmetic, including infinities and NaN.

torch and NumPy compute in this way. Integers (positions, counts, tables) are Python integers.

>>> from locum.graph import build
>>> from locum.execution import run
>>> tokens = build("tokens", cast="asis")
>>> run(build("divide", tokens, build("constant", value=0.0)), [1.0, 0.0, -1.0], domain="ieee")
[inf, nan, -inf]
"""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Callable, Mapping

import numpy as np

from locum.execution.domains import Value
from locum.execution.domains.floats import FloatDomain


def _divide(a: Value, b: Value) -> Value:
    if b != 0:
        return a / b
    if a == 0 or a != a:
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)


def _numpy(function: Callable[..., Value]) -> Callable[..., Value]:
    """Return a function that applies a NumPy function to its arguments as float64, without warnings."""

    def compute(*values: Value) -> Value:
        with np.errstate(all="ignore"):
            return float(function(*map(np.float64, values)))

    return compute


def _whole_or(python: Callable[..., Value], floats: Callable[..., Value]) -> Callable[..., Value]:
    """Return a function that applies ``python`` to integers, and ``floats`` to other numbers and if
    ``python`` would divide by zero.
    """
    on_floats = _numpy(floats)

    def compute(*values: Value) -> Value:
        if all(isinstance(value, int) for value in values):
            try:
                return python(*values)
            except ZeroDivisionError:
                pass
        return on_floats(*values)

    return compute


def _log(a: Value) -> float:
    if a > 0:
        return math.log(a)
    return -math.inf if a == 0 else math.nan


def _exp(a: Value) -> float:
    try:
        return math.exp(a)
    except OverflowError:
        return math.inf


def _float32(a: Value) -> float:
    return ctypes.c_float(a).value


def _float16(a: Value) -> float:
    single = _float32(a)
    try:
        return float(struct.unpack("<e", struct.pack("<e", single))[0])
    except OverflowError:
        return math.copysign(math.inf, single)


def _bfloat16(a: Value) -> float:
    single = _float32(a)
    if single != single:
        return single
    (bits,) = struct.unpack("<I", struct.pack("<f", single))
    up = 0x7FFF + (bits >> 16 & 1)  # to the nearest, ties to even
    return float(struct.unpack("<f", struct.pack("<I", bits + up & 0xFFFF0000))[0])


class IeeeDomain(FloatDomain):
    """The domain of floats with IEEE 754 arithmetic."""

    name = "ieee"
    meanings: Mapping[str, Callable[..., Value]] = {
        **FloatDomain.meanings,
        "divide": _divide,
        "modulo": _whole_or(FloatDomain.meanings["modulo"], np.mod),
        "floor_divide": _whole_or(FloatDomain.meanings["floor_divide"], np.floor_divide),
        "power": _whole_or(FloatDomain.meanings["power"], np.float_power),
        "exp": _exp,
        "log": _log,
        "sqrt": lambda a: math.sqrt(a) if a >= 0 else math.nan,
        "sin": lambda a: math.sin(a) if math.isfinite(a) else math.nan,
        "cos": lambda a: math.cos(a) if math.isfinite(a) else math.nan,
        "floor": _whole_or(math.floor, np.floor),
        "round": _whole_or(round, np.rint),
        "float64": float,
        "float32": _float32,
        "float16": _float16,
        "bfloat16": _bfloat16,
    }
