"""Types of numbers: which type an operation computes in, and when it rounds.

An operation on half precision computes in float32 and rounds its result once. All others compute in
the type of their result. Booleans are 0 and 1 where they are computed with.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from locum.constructions.tensor import Layout, Tensor, contiguous_strides, is_dense
from locum.execution.rounding import round_array
from locum.graph.operations import ROUNDINGS
from locum.language.handles import SOp
from locum.language.python import apply, constant, where

HALF = ("float16", "bfloat16")
#: Integer types whose values a float64 holds, but for int64's beyond 2⁵³.
INTEGERS = ("uint8", "int8", "int16", "int32", "int64", "uint64")


def dtype_name(dtype: torch.dtype) -> str:
    """Return the name of a type, such as "float32"."""
    return str(dtype).removeprefix("torch.")


def is_float(dtype: str) -> bool:
    """Return whether a type is a floating-point type that programs have."""
    return dtype in ROUNDINGS


def computing_type(dtype: str) -> str:
    """Return the type in which an operation with results of this type computes."""
    return "float32" if dtype in HALF else dtype


def convert(value: SOp, dtype: str, to: str) -> SOp:
    """Return a value of one type in another."""
    if dtype == to:
        return value
    if to == "bool":
        return value != 0
    if is_float(to):
        return apply(to, where(value, 1.0, 0.0) if dtype == "bool" else value)
    if dtype == "bool":
        return where(value, 1, 0)
    if is_float(dtype):  # towards 0
        return where(value >= 0, apply("floor", value), 0 - apply("floor", 0 - value))
    return value


def scalar(value: Any, dtype: str) -> SOp:
    """Return a number of the program, rounded to a type."""
    if dtype == "bool":
        return constant(bool(value))
    if not is_float(dtype):
        return constant(int(value))
    return constant(float(round_array(np.asarray(float(value)), dtype)))


def compute(out: Layout, function: Callable[..., SOp], *operands: Any, dtype: str = "") -> Tensor:
    """Apply a function to operands entry by entry, in one type, and round the result once.

    ``dtype`` is the type to compute in, by default the one that the type of the result asks for.
    Operands are tensors, which are expanded, and Python's numbers.
    """
    dtype = dtype or computing_type(out.dtype)
    values = [
        convert(out.read(operand), operand.dtype, dtype)
        if isinstance(operand, Tensor)
        else scalar(operand, dtype)
        for operand in operands
    ]
    return out.result(rounded(function(*values), out.dtype))


def cast(tensor: Tensor, dtype: str) -> Tensor:
    """Return the entries of a tensor in another type; what it repeats is converted once."""
    if tensor.dtype == dtype:
        return tensor
    sizes = zip(tensor.shape, tensor.strides, strict=True)
    once = replace(tensor, shape=tuple(n if stride or n == 0 else 1 for n, stride in sizes))
    dense = is_dense(once.shape, once.strides)
    layout = Layout(once.shape, once.strides if dense else contiguous_strides(once.shape), dtype)
    converted = layout.result(convert(layout.read(once), tensor.dtype, dtype))
    return converted.expand(*tensor.shape)


def rounded(value: SOp, dtype: str) -> SOp:
    """Round a computed value to the type of a result."""
    return apply(dtype, value) if is_float(dtype) else value


def common_type(*operands: Any) -> str:
    """Return the type in which PyTorch compares these tensors and numbers."""
    examples = [
        torch.empty((1,) * len(operand.shape), dtype=getattr(torch, operand.dtype), device="meta")
        if isinstance(operand, Tensor)
        else operand
        for operand in operands
    ]
    return dtype_name(torch.result_type(*examples))
