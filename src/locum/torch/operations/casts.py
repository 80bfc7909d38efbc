"""Copies, in another type or another layout."""

from __future__ import annotations

from typing import Any

import torch

from locum.constructions.tensor import Layout, Tensor
from locum.torch.numbers import convert
from locum.torch.table import TABLE, Row, operation


@operation("casts", "_to_copy", "clone")
def to_copy(out: Layout, a: Tensor, **options: Any) -> Tensor:
    """Return the entries in the type and layout of the result; a cast rounds."""
    return out.result(convert(out.read(a), a.dtype, out.dtype))


@operation("casts", "copy")
def copy_into(out: Layout, a: Tensor, source: Tensor, non_blocking: bool = False) -> Tensor:
    """Return the entries of the source, in the type and layout of the destination."""
    return to_copy(out, source)


def convert_element_type(out: Layout, a: Tensor, dtype: Any) -> Tensor:
    """Return the entries in another type."""
    return out.result(convert(out.read(a), a.dtype, out.dtype))


_CONVERT = torch.ops.prims.convert_element_type.default
TABLE[_CONVERT] = Row(_CONVERT, "casts", convert_element_type)
