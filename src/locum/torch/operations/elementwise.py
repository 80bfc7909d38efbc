"""Functions of numbers, entry by entry: feed-forwards."""

from __future__ import annotations

import math
from typing import Any

from locum.constructions.tensor import Layout, Tensor
from locum.language.python import apply, where
from locum.torch.numbers import compute, convert
from locum.torch.table import operation


@operation("elementwise", "add.Tensor", "add.Scalar")
def add(out: Layout, a: Any, b: Any, alpha: Any = 1) -> Tensor:
    """Return a + alpha · b."""
    if alpha == 1:
        return compute(out, lambda x, y: x + y, a, b)
    return compute(out, lambda x, y, z: x + z * y, a, b, alpha)


@operation("elementwise", "sub.Tensor", "sub.Scalar")
def sub(out: Layout, a: Any, b: Any, alpha: Any = 1) -> Tensor:
    """Return a − alpha · b."""
    if alpha == 1:
        return compute(out, lambda x, y: x - y, a, b)
    return compute(out, lambda x, y, z: x - z * y, a, b, alpha)


@operation("elementwise", "mul.Tensor", "mul.Scalar")
def mul(out: Layout, a: Any, b: Any) -> Tensor:
    """Return a · b."""
    return compute(out, lambda x, y: x * y, a, b)


@operation("elementwise", "div.Tensor", "div.Scalar")
def div(out: Layout, a: Any, b: Any) -> Tensor:
    """Return a / b."""
    return compute(out, lambda x, y: x / y, a, b)


@operation("elementwise", "neg")
def neg(out: Layout, a: Tensor) -> Tensor:
    """Return −a."""
    return compute(out, lambda x: -x, a)


@operation("elementwise", "relu")
def relu(out: Layout, a: Tensor) -> Tensor:
    """Return a where it is not below 0, else 0; NaN stays NaN."""
    return compute(out, lambda x: where(x <= 0, 0.0, x), a)


@operation("elementwise", "tanh")
def tanh(out: Layout, a: Tensor) -> Tensor:
    """Return the hyperbolic tangent."""
    return compute(out, lambda x: apply("tanh", x), a)


@operation("elementwise", "gelu")
def gelu(out: Layout, a: Tensor, *, approximate: str = "none") -> Tensor:
    """Return x · Φ(x), or its approximation by tanh."""
    if approximate == "tanh":
        inner = math.sqrt(2 / math.pi)
        return compute(
            out, lambda x: 0.5 * x * (1.0 + apply("tanh", inner * (x + 0.044715 * x * x * x))), a
        )
    return compute(out, lambda x: x * 0.5 * (1.0 + apply("erf", x * math.sqrt(0.5))), a)


@operation("elementwise", "where.self")
def where_(out: Layout, condition: Tensor, a: Any, b: Any) -> Tensor:
    """Return a where the condition holds, else b."""
    holds = convert(out.read(condition), condition.dtype, "bool")
    return compute(out, lambda x, y: where(holds, x, y), a, b, dtype=out.dtype)
