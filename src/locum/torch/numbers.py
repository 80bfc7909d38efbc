"""Define the dtypes in which operations compute and round, and the conditions that operations require.

By default, operations on half precision compute in float32, and other operations compute in the dtype
of their result. Some operations, such as ``expm1``, compute in float64. The result is rounded once to
its dtype. Each step of a formula is rounded to the dtype in which the step is computed, as in eager
execution. In elementwise formulas, all executors therefore agree on where an intermediate result
overflows. In arithmetic, booleans are 0 and 1.

Integers are exact up to 2⁵³ in magnitude, as in float64. Integer dtypes of up to 32 bits wrap around.
The backend raises an error if a token exceeds 2⁵³ in magnitude. A run also raises an error if float64
integers reach 2⁵³ in elementwise arithmetic or exceed 2⁵³ in a result. In reductions, results that are
rounded to 2⁵³ are not detected. Integer results that are NaN or infinite raise an error. The fast
executor computes some steps in int64. Such steps wrap around as in PyTorch, and their results may
exceed 2⁵³ without an error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import torch

from locum.constructions.tensor import Layout, Tensor, contiguous_strides, is_dense, reduce_sum
from locum.execution.array_numbers import round_array
from locum.graph import Node, build
from locum.graph.atoms import LARGEST_EXACT
from locum.graph.operations import OPERATIONS, ROUNDINGS
from locum.rasp.handles import SOp, apply
from locum.rasp.python import constant, family, where

#: A Python integer, or an s-op of integers.
Integer = TypeVar("Integer", int, SOp)


@dataclass
class Notes:
    """Conditions collected from the constructions of one program."""

    #: S-ops that are 0 at position 0 for valid inputs, each with the text of the error.
    required: list[tuple[SOp, str]] = field(default_factory=list)


_notes: ContextVar[Notes | None] = ContextVar("notes", default=None)


@contextmanager
def collect_notes() -> Iterator[Notes]:
    """Collect the conditions that constructions require inside the ``with`` block."""
    notes = Notes()
    token = _notes.set(notes)
    try:
        yield notes
    finally:
        _notes.reset(token)


def require(violations: SOp, problem: str) -> None:
    """Require that ``violations`` is 0 at position 0; otherwise a run raises an error with the text
    ``problem``.
    """
    notes = _notes.get()
    if notes is not None:
        notes.required.append((violations, problem))


HALF = ("float16", "bfloat16")
#: Integer dtypes; float64 represents their numbers exactly, except 64-bit integers beyond 2⁵³.
INTEGERS = ("uint8", "int8", "int16", "int32", "int64", "uint64")
#: Operations whose results may need rounding in a floating-point dtype.
_INEXACT = frozenset(
    name for name, row in OPERATIONS.items() if row.group in ("arithmetic", "function")
) - {"negate", "absolute", "minimum", "maximum", "floor", "round"}
#: Placeholders of the operands while a formula is built.
_OPERANDS = tuple(family(1, f"operand{n}") for n in range(8))


def dtype_name(dtype: torch.dtype) -> str:
    """Return the name of a dtype, such as "float32"."""
    return str(dtype).removeprefix("torch.")


def is_float(dtype: str) -> bool:
    """Return whether a dtype is one of the floating-point dtypes that RASP programs support."""
    return dtype in ROUNDINGS


def computing_type(dtype: str) -> str:
    """Return the dtype in which an operation computes by default, given the dtype of its result.

    The computing dtype is float32 for half precision, and otherwise the dtype of the result.
    """
    return "float32" if dtype in HALF else dtype


def convert(value: SOp, dtype: str, to: str) -> SOp:
    """Convert an s-op from the dtype ``dtype`` to the dtype ``to``.

    Floats are truncated to integers. PyTorch does not define the conversion of NaN, infinities and
    numbers out of range to integers. In Locum, finite numbers wrap around in dtypes of up to 32 bits.
    NaN, infinities, and 64-bit integers beyond 2⁵³ raise an error in a result of the graph.
    """
    if dtype == to:
        return value
    if to == "bool":
        return value != 0
    if is_float(to):
        if dtype == "bool":
            return apply(to, where(value, 1.0, 0.0))
        return apply(to, value if is_float(dtype) else value + 0)  # an integer has no −0
    if dtype == "bool":
        return where(value, 1, 0)
    if is_float(dtype):
        return wrap(apply("float64", truncate(value)), to)
    widens = INTEGERS.index(to) > INTEGERS.index(dtype)
    return value if widens and to != "int8" else wrap(value, to)


def truncate(value: SOp) -> SOp:
    """Round towards 0; −0 and numbers between −1 and 0 become −0."""
    return where(value < 0, -apply("floor", -value), apply("floor", value))


def wrap(value: Integer, dtype: str) -> Integer:
    """Wrap an integer or an integer s-op around to the range of ``dtype``.

    64-bit integers are returned unchanged.
    """
    if dtype.endswith("64"):
        return value
    if dtype == "uint8":
        return value % 256
    half = 1 << int(dtype.removeprefix("int")) - 1
    return (value + half) % (2 * half) - half


def scalar(value: Any, dtype: str) -> SOp:
    """Return a Python number as a constant s-op, converted to a dtype.

    Integers wrap around in dtypes of up to 32 bits.
    """
    if dtype == "bool":
        return constant(bool(value))
    if not is_float(dtype):
        return constant(wrap(int(value), dtype))
    return constant(float(round_array(np.asarray(float(value)), dtype)))


def compute(
    out: Layout,
    function: Callable[..., SOp],
    *operands: Any,
    dtype: str = "",
    operand_dtype: str = "",
) -> Tensor:
    """Apply a function to operands elementwise in one dtype, and round the result once.

    The operands are tensors, which are expanded, Python numbers or None. The function receives an s-op
    for each operand, or None if the operand is None. Each step of the function is rounded to ``dtype``,
    which is the computing dtype of the result by default.

    All operands are first converted to ``operand_dtype``. By default, this is the computing dtype of
    the result if ``dtype`` is float64 and the result is a float, and otherwise ``dtype``. A condition
    requires that integer results are below 2⁵³ in magnitude, unless the argument ``dtype`` is the dtype
    of the result.
    """
    is_exact = dtype == out.dtype
    dtype = dtype or computing_type(out.dtype)
    is_wider = dtype == "float64" and is_float(out.dtype)
    first = operand_dtype or (computing_type(out.dtype) if is_wider else dtype)
    values = [
        operand if operand is None else convert(read(out, operand, first), first, dtype)
        for operand in operands
    ]
    value = stepwise(function, values, dtype)
    if out.dtype in INTEGERS and not is_exact:
        require_exact(out, value)
    return out.result(rounded(value, out.dtype))


def require_exact(out: Layout, value: SOp) -> None:
    """Require that finite integers are below 2⁵³ in magnitude; otherwise a run raises an error.

    NaN and infinities are not tested here. A result of the graph that contains such a value raises an
    error.
    """
    if math.prod(out.shape):
        # 2⁵³ itself may be a rounded 2⁵³ + 1.
        is_large = (abs(value) >= LARGEST_EXACT) & (abs(value) < math.inf)
        wide = Layout(out.shape, out.strides).result(where(is_large, 1, 0))
        violations = reduce_sum(Layout((), ()), wide, range(len(out.shape))).sop
        problem = f"expected integers below 2⁵³ in magnitude, got larger ones of type {out.dtype}"
        require(violations, problem)


def read(out: Layout, operand: Any, dtype: str) -> SOp:
    """Return an s-op with the entry of an operand at each position of a result, converted to a dtype.

    The operand is a tensor or a Python number.
    """
    if isinstance(operand, Tensor):
        return convert(out.read(operand), operand.dtype, dtype)
    return scalar(operand, dtype)


def stepwise(function: Callable[..., SOp], values: list[SOp | None], dtype: str) -> SOp:
    """Apply a function to s-ops, and round each step and constant of the function to ``dtype``.

    Constant operands are passed to the function as constants. S-ops that are not operands of the
    function are not changed.
    """
    if not is_float(dtype) or dtype == "float64":  # every executor computes in float64
        return function(*values)
    places, known = list(values), dict[Node, Node]()
    for n, value in enumerate(values):
        if value is not None and value.node.op != "constant":
            places[n] = _OPERANDS[n]
            known[_OPERANDS[n].node] = value.node
    operands = frozenset(known)

    def put(node: Node) -> Node:
        if node.op == "constant" and isinstance(node.attributes["value"], float):
            return scalar(node.attributes["value"], dtype).node
        if node.free.isdisjoint(operands):
            return node
        if node not in known:
            step = build(node.op, *map(put, node.inputs), **node.attributes)
            known[node] = build(dtype, step) if node.op in _INEXACT else step
        return known[node]

    return SOp(put(function(*places).node))


def cast(tensor: Tensor, dtype: str) -> Tensor:
    """Return a tensor converted to another dtype.

    Entries that are repeated by a stride of 0 are converted once.
    """
    if tensor.dtype == dtype:
        return tensor
    sizes = zip(tensor.shape, tensor.strides, strict=True)
    once = tensor.replace(shape=tuple(n if stride or n == 0 else 1 for n, stride in sizes))
    dense = is_dense(once.shape, once.strides)
    layout = Layout(once.shape, once.strides if dense else contiguous_strides(once.shape), dtype)
    converted = layout.result(convert(layout.read(once), tensor.dtype, dtype))
    return converted.expand(*tensor.shape)


def rounded(value: SOp, dtype: str) -> SOp:
    """Round a computed s-op to the dtype of a result; integers of up to 32 bits wrap around."""
    if is_float(dtype):
        return value if value.node.op == dtype else apply(dtype, value)
    return value if dtype == "bool" else wrap(value, dtype)


def common_type(*operands: Any) -> str:
    """Return the dtype to which PyTorch promotes these tensors and numbers."""
    examples = [
        torch.empty((1,) * len(operand.shape), dtype=getattr(torch, operand.dtype), device="meta")
        if isinstance(operand, Tensor)
        else operand
        for operand in operands
    ]
    return dtype_name(torch.result_type(*examples))
