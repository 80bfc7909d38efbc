"""Booleans that may be open, by Kleene's logic, and patterns of them; equal numbers, equal booleans."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from locum.execution.domains import Pattern


class Identities:
    """Number what is written in the same way alike."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}

    def number(self, key: Hashable) -> int:
        """Return the number of a key."""
        return self._numbers.setdefault(key, len(self._numbers))

    def once(self) -> int:
        """Return a number that nothing else has."""
        return self.number(("once", len(self._numbers)))


class Boolean:
    """True, false, or open: then ``question`` is what has to be answered first."""

    __slots__ = ("identities", "number", "question", "value")

    def __init__(
        self,
        value: bool | None,
        question: Any = None,
        number: int = -1,
        identities: Identities | None = None,
    ) -> None:
        self.value = value
        self.question = question
        self.number = number
        self.identities = identities

    def __and__(self, other: Boolean | bool) -> Boolean:
        other = boolean(other)
        if self is FALSE or other is FALSE:
            return FALSE
        if self is TRUE or other is TRUE:
            return other if self is TRUE else self
        return self if self.number == other.number else self._joined("and", other)

    def __or__(self, other: Boolean | bool) -> Boolean:
        other = boolean(other)
        if self is TRUE or other is TRUE:
            return TRUE
        if self is FALSE or other is FALSE:
            return other if self is FALSE else self
        return self if self.number == other.number else self._joined("or", other)

    __rand__ = __and__
    __ror__ = __or__

    def __invert__(self) -> Boolean:
        if self.value is not None:
            return FALSE if self.value else TRUE
        assert self.identities is not None
        number = self.identities.number(("not", self.number))
        return Boolean(None, self.question, number, self.identities)

    def _joined(self, name: str, other: Boolean) -> Boolean:
        assert self.identities is not None
        pair = sorted((self.number, other.number))
        return Boolean(None, self.question, self.identities.number((name, *pair)), self.identities)

    def __repr__(self) -> str:
        return f"open boolean {self.number}" if self.value is None else str(self.value)


TRUE, FALSE = Boolean(True), Boolean(False)


def boolean(answer: Any) -> Boolean:
    """Lift a Python or NumPy boolean."""
    if isinstance(answer, Boolean):
        return answer
    return TRUE if answer else FALSE


def lowered(answer: Boolean) -> Any:
    """Return a decided boolean as Python's own."""
    return answer if answer.value is None else answer.value


def pattern_of(rows: Sequence[Sequence[Boolean]]) -> Pattern:
    """Return a plain boolean array if nothing is open, else an array of :class:`Boolean`."""
    if all(one.value is not None for row in rows for one in row):
        return np.array([[bool(one.value) for one in row] for row in rows], dtype=np.bool_)
    pattern: Pattern = np.array(rows, dtype=object)
    return pattern
