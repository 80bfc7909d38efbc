"""Truth values that may be open, and patterns of them: what selectors are in the symbolic domain.

``and``, ``or`` and ``not`` are Kleene's: what is false whatever the answer is false.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from locum.execution.domains import Pattern


class Truth:
    """True, false, or open: then ``open`` is the question that stands in the way."""

    __slots__ = ("open", "value")

    def __init__(self, value: bool | None, question: Any = None) -> None:
        self.value = value
        self.open = question

    def __and__(self, other: Truth | bool) -> Truth:
        other = known(other)
        if self is FALSE or other is FALSE:
            return FALSE
        return other if self is TRUE else self

    def __or__(self, other: Truth | bool) -> Truth:
        other = known(other)
        if self is TRUE or other is TRUE:
            return TRUE
        return other if self is FALSE else self

    __rand__ = __and__
    __ror__ = __or__

    def __invert__(self) -> Truth:
        if self.value is None:
            return self
        return FALSE if self.value else TRUE


TRUE, FALSE = Truth(True), Truth(False)


def known(answer: Any) -> Truth:
    """An answer (a bool, or something open) as a truth value."""
    if isinstance(answer, Truth):
        return answer
    if isinstance(answer, (bool, np.bool_)):
        return TRUE if answer else FALSE
    return Truth(None, answer)


def pattern_of(rows: Sequence[Sequence[Truth]]) -> Pattern:
    """A plain boolean array if nothing is open, else an array of truth values."""
    if all(one.value is not None for row in rows for one in row):
        return np.array([[bool(one.value) for one in row] for row in rows], dtype=np.bool_)
    array: Any = np.empty((len(rows), len(rows[0])), dtype=object)
    for q, row in enumerate(rows):
        for k, one in enumerate(row):
            array[q, k] = one
    pattern: Pattern = array
    return pattern
