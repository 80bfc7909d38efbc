"""Represent booleans that may be undecided, as in Kleene's logic, and limit a proof search."""

from __future__ import annotations

import os
import time
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from flint import fmpq_mpoly

from locum.execution.domains import Pattern


class Identities:
    """A mapping that assigns equal ids to structurally equal expressions."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}

    def number(self, key: Hashable) -> int:
        """Return the id of a hashable key; a new key receives a new id."""
        return self._numbers.setdefault(key, len(self._numbers))

    def once(self) -> int:
        """Return a new id that is never returned again."""
        return self.number(("once", len(self._numbers)))


class Boolean:
    """A boolean that is true, false or open; an open boolean depends on the answer to ``question``."""

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
    """Convert a Python or NumPy boolean to a :class:`Boolean`."""
    if isinstance(answer, Boolean):
        return answer
    return TRUE if answer else FALSE


def lowered(answer: Boolean) -> Any:
    """Convert a decided :class:`Boolean` to a Python boolean; return an open boolean unchanged."""
    return answer if answer.value is None else answer.value


def pattern_of(rows: Sequence[Sequence[Boolean]]) -> Pattern:
    """Return the rows of a pattern as an array.

    The array contains plain booleans if no cell is open, otherwise objects of :class:`Boolean`.
    """
    if all(one.value is not None for row in rows for one in row):
        return np.array([[bool(one.value) for one in row] for row in rows], dtype=np.bool_)
    pattern: Pattern = np.array(rows, dtype=object)
    return pattern


class LimitError(Exception):
    """Raised if the search for a proof or a counterexample must stop; the message states why."""


@dataclass
class Limits:
    """The limits of a proof search: terms of a polynomial, CPU seconds, additional megabytes of memory.

    Time and memory are limited only after :meth:`start`.
    """

    terms: int = 200_000
    seconds: float = 600.0
    megabytes: int = 1_500
    started: float = 0.0
    _before: float = 0.0
    _calls: int = 0

    def start(self) -> None:
        """Start to measure CPU time and memory; CPU time does not depend on the load of the machine."""
        self.started = time.process_time()
        self._before = memory_in_use()

    def check(self, polynomial: fmpq_mpoly) -> None:
        """Raise :class:`LimitError` if a polynomial, the time or the memory exceeds its limit."""
        if len(polynomial) > self.terms:
            raise LimitError(f"{self.terms:,} terms in one polynomial")
        self.check_time()

    def check_product(self, a: fmpq_mpoly, b: fmpq_mpoly) -> None:
        """Raise :class:`LimitError` if a product of polynomials requires too many multiplications."""
        if len(a) * len(b) > 100 * self.terms:
            raise LimitError(f"{100 * self.terms:,} products of terms in one multiplication")

    def check_time(self) -> None:
        """Raise :class:`LimitError` if the search exceeds its limit of time or memory.

        The memory is measured only in every hundredth call.
        """
        if not self.started:
            return
        if time.process_time() - self.started > self.seconds:
            raise LimitError(f"{self.seconds:g} seconds")
        self._calls += 1
        if self._calls % 100 == 0 and memory_in_use() - self._before > self.megabytes:
            raise LimitError(f"{self.megabytes:,} MB of memory")


def memory_in_use() -> float:
    """Return the memory of this process in megabytes, or 0 if the system does not report it."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
    except (OSError, ValueError, AttributeError):
        return 0.0
