"""Patterns by their different rows: which queries select the same keys.

A pattern comes in; out come its classes, or numbers of queries and keys that are equal where it holds.
``selectors.py`` makes scores of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from locum.compiler.program.conditions import Pattern
from locum.compiler.scoring.linear import Linear


@dataclass(frozen=True)
class Classes:
    """A pattern by its different rows (or columns): who belongs to each, and what each selects."""

    members: tuple[Pattern, ...]
    holds: tuple[Pattern, ...]
    #: Whether the members are queries; else they are keys.
    of_queries: bool

    @property
    def count(self) -> int:
        """How many there are, not counting the one that selects nothing."""
        return len(self.members)

    def pairs(
        self, query: Callable[[Pattern], Linear], key: Callable[[Pattern], Linear]
    ) -> tuple[tuple[Linear, Linear], ...]:
        """Return (query, key) for each class, from what describes some of the queries or keys."""
        queries, keys = self.members, self.holds
        if not self.of_queries:
            queries, keys = keys, queries
        return tuple(zip(map(query, queries), map(key, keys), strict=True))

    @classmethod
    def of(cls, pattern: Pattern) -> Classes:
        """Group by rows or by columns, whichever are fewer."""
        rows, of_query = different_rows(pattern)
        columns, of_key = different_rows(pattern.T)
        by_rows = int(rows.any(axis=1).sum()) <= int(columns.any(axis=1).sum())
        lines, belongs = (rows, of_query) if by_rows else (columns, of_key)
        some = [c for c in range(len(lines)) if lines[c].any()]
        return cls(tuple(belongs == c for c in some), tuple(lines[c] for c in some), by_rows)


def different_rows(pattern: Pattern) -> tuple[Pattern, NDArray[np.int64]]:
    """List each row once, and which of them every row is."""
    numbers: dict[bytes, int] = {}
    packed = np.packbits(pattern, axis=1)
    which = np.array([numbers.setdefault(row.tobytes(), len(numbers)) for row in packed], np.int64)
    _, first = np.unique(which, return_index=True)
    return pattern[first], which


def class_numbers(pattern: Pattern) -> tuple[list[int], list[int]] | None:
    """Give queries and keys numbers that are equal just where the pattern holds, if there are such.

    A class of one key is numbered by the key's position: so all heads that fetch single keys share the
    encoding of their keys.
    """
    if bool((pattern.sum(axis=1) <= 1).all()):
        some = pattern.any(axis=1)
        return np.where(some, pattern.argmax(axis=1), -1).tolist(), list(range(pattern.shape[1]))
    rows, _ = different_rows(pattern[pattern.any(axis=1)])
    if len(rows) and int(rows.sum(axis=0).max()) > 1:
        return None
    first, some = pattern.argmax(axis=1), pattern.any(axis=1)
    numbers = np.full(pattern.shape[1], -1)
    order = sorted(range(len(rows)), key=lambda r: int(rows[r].argmax()))
    for number, r in enumerate(order):
        numbers[rows[r]] = number
    return np.where(some, numbers[first], -2).tolist(), numbers.tolist()
