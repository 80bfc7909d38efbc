"""Checks of the sizes, words and numbers that an order is made of."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence

from locum.errors import GraphError


def choose(value: object, choices: Sequence[object], what: str) -> None:
    """Refuse a value that is not one of the choices, which are words (or None)."""
    if not (value is None or isinstance(value, str)) or value not in choices:
        offered = ", ".join(str(choice) for choice in choices)
        raise GraphError(f"{what}: expected one of {offered}, got {value!r}")


def positive_integer(value: object, what: str) -> int:
    """Return ``value`` as an int, if it is a positive integer."""
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = 0
    if isinstance(value, bool) or number < 1:
        raise GraphError(f"{what}: expected a positive integer, got {value!r}")
    return number


def require_real(value: object, what: str, positive: bool = False) -> None:
    """Refuse a value that is not a finite (and positive) number."""
    expected = "a positive finite number" if positive else "a finite number"
    try:
        fits = not isinstance(value, (bool, str)) and math.isfinite(value)  # type: ignore[arg-type]
        fits = fits and (not positive or value > 0)  # type: ignore[operator]
    except (TypeError, ValueError):
        fits = False
    if not fits:
        raise GraphError(f"{what}: expected {expected}, got {value!r}")
