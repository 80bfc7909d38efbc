"""Patterns by their different rows: which queries select the same keys, and how features say so."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy.compiler.conditions import Pattern
from understudy.compiler.linear import Linear, of
from understudy.graph import Atom, Node, build
from understudy.graph.atoms import canonical_table
from understudy.graph.operations import constant


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

    def pairs(self, side: Callable[[Pattern], Linear]) -> tuple[tuple[Linear, Linear], ...]:
        """(query, key) for each class, where both sides are described alike."""
        both = zip(map(side, self.members), map(side, self.holds), strict=True)
        return tuple(both) if self.of_queries else tuple((holds, member) for member, holds in both)

    @classmethod
    def of(cls, pattern: Pattern) -> Classes:
        """By rows or by columns, whichever are fewer."""
        rows, of_query = different_rows(pattern)
        columns, of_key = different_rows(pattern.T)
        by_rows = int(rows.any(axis=1).sum()) <= int(columns.any(axis=1).sum())
        lines, belongs = (rows, of_query) if by_rows else (columns, of_key)
        some = [c for c in range(len(lines)) if lines[c].any()]
        return cls(tuple(belongs == c for c in some), tuple(lines[c] for c in some), by_rows)


def different_rows(pattern: Pattern) -> tuple[Pattern, NDArray[np.int64]]:
    """Each row once, and which of them every row is."""
    numbers: dict[bytes, int] = {}
    packed = np.packbits(pattern, axis=1)
    which = np.array([numbers.setdefault(row.tobytes(), len(numbers)) for row in packed], np.int64)
    _, first = np.unique(which, return_index=True)
    return pattern[first], which


def class_numbers(pattern: Pattern) -> tuple[list[int], list[int]] | None:
    """Numbers of queries and keys that are equal exactly where the pattern holds, if there are such.

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


def indicator(node: Node, values: Sequence[Atom], chosen: Pattern) -> Linear:
    """1 where the value is one of the chosen, else 0."""
    if chosen.all():
        return Linear(constant=1.0)
    table: Mapping[Atom, Atom] = {v: int(c) for v, c in zip(values, chosen.tolist(), strict=True)}
    return of(build("lookup", node, table=canonical_table(table)))


def one_hot(node: Node, values: Sequence[Atom]) -> list[Linear]:
    """For each value, whether it is the one; the last follows from the others."""
    hot: list[Linear] = []
    rest = Linear(constant=1.0)
    for value in values[:-1]:
        this = of(build("indicator", build("equal", node, constant(value))))
        hot.append(this)
    rest = Linear(tuple((linear.terms[0][0], -1.0) for linear in hot), 1.0)
    return [*hot, rest]


def sum_of(hot: Sequence[Linear], chosen: Pattern) -> Linear:
    """Σ of the chosen; the last one is 1 minus all others, so its coefficients cancel."""
    coefficient = -1.0 if chosen[-1] else 1.0
    others = np.flatnonzero(chosen[:-1] != chosen[-1]).tolist()
    return Linear(tuple((hot[place].terms[0][0], coefficient) for place in others), float(chosen[-1]))
