"""Results of one type: what executors other than dense give, held against dense execution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from locum import SOp
from locum.execution.types import result_type, types_of
from locum.graph import Node


def agrees(
    actual: Sequence[Any],
    expected: Sequence[Any],
    program: SOp | Node,
    tokens: Any,
    digits: float = 1e-12,
) -> bool:
    """Whether values equal those of dense execution and all have the type of the program's results."""
    kind = _type_of(program, expected, tokens)
    return len(actual) == len(expected) and all(
        type(a) is kind and _is_equal(a, e, digits) for a, e in zip(actual, expected, strict=True)
    )


def one_type_holds(expected: Sequence[Any], program: SOp | Node, tokens: Any) -> bool:
    """Whether the type of the program's results has all values that dense execution gives."""
    kind = _type_of(program, expected, tokens)
    return all(e != e or _is_equal(_cast(kind, e), e, 0.0) for e in expected)


def _type_of(program: SOp | Node, expected: Sequence[Any], tokens: Any) -> type:
    if any(isinstance(e, str) for e in expected):
        return str
    return result_type(program.node if isinstance(program, SOp) else program, types_of(tokens))


def _cast(kind: type, value: Any) -> Any:
    try:
        return kind(value)
    except OverflowError:
        return None


def _is_equal(a: Any, b: Any, digits: float) -> bool:
    if isinstance(b, float) and isinstance(a, float):
        return math.isclose(a, b, rel_tol=digits) or (a != a and b != b)
    return bool(a == b)
