"""Copies, in another type or another layout."""

from __future__ import annotations

from typing import Any

import torch

from locum.constructions.tensor import Layout, Tensor, reduce_sum
from locum.graph.atoms import LARGEST_EXACT
from locum.language.python import where
from locum.torch.notes import require
from locum.torch.numbers import INTEGERS, convert, is_float
from locum.torch.table import TABLE, Row, operation


@operation("casts", "_to_copy", "clone")
def to_copy(out: Layout, a: Tensor, **options: Any) -> Tensor:
    """Return the entries in the type and layout of the result; a cast rounds."""
    return cast_to(out, a)


@operation("casts", "copy")
def copy_into(out: Layout, a: Tensor, source: Tensor, non_blocking: bool = False) -> Tensor:
    """Return the entries of the source, in the type and layout of the destination."""
    return to_copy(out, source)


def convert_element_type(out: Layout, a: Tensor, dtype: Any) -> Tensor:
    """Return the entries in another type."""
    return cast_to(out, a)


def cast_to(out: Layout, a: Tensor) -> Tensor:
    """Return the entries in the type and layout of the result.

    PyTorch does not define the integers of NaN and of numbers above the range: they are rejected. −∞,
    which programs compute and discard, stays −∞, and is an error in a result of the graph.
    """
    value = out.read(a)
    if is_float(a.dtype) and out.dtype in INTEGERS and a.size:
        wide = Layout(out.shape, out.strides).result(where(value <= LARGEST_EXACT, 0.0, 1.0))
        require(
            reduce_sum(Layout((), ()), wide, range(len(out.shape))).sop,
            f"expected numbers that {out.dtype} has, got NaN or one beyond 2⁵³",
        )
    return out.result(convert(value, a.dtype, out.dtype))


_CONVERT = torch.ops.prims.convert_element_type.default
TABLE[_CONVERT] = Row(_CONVERT, "casts", convert_element_type)
