"""Rows of a selector of which it is not decided which keys they select: candidates instead of bits.

``best`` selects the keys of greatest score. Where two scores are too close to be told apart, either
may be selected, or both. That matters little where the selected value is one of nearly equal ones, such
as the row maximum that a stable softmax subtracts; so such a row is kept as the list of its candidates,
and what is aggregated over it is the hull of their values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from locum.execution.domains import Value


class TooCloseError(ValueError):
    """Two enclosures overlap, so that it is not decided which number is greater."""


@dataclass(frozen=True)
class Candidates:
    """Keys that one query may select.

    ``certain``: it selects them all; ``nonempty``: it selects one at least; ``single``: one at most.
    """

    keys: tuple[int, ...]
    certain: bool
    nonempty: bool
    single: bool


class Cell:
    """A cell of a row that is not decided; only ``best`` and ``aggregate`` know what to do with it."""

    __slots__ = ("row",)

    def __init__(self, row: Candidates) -> None:
        self.row = row

    def _undecided(self, *_: object) -> Any:
        raise TooCloseError("which key scores highest is not decided")

    __and__ = __or__ = __rand__ = __ror__ = __invert__ = __bool__ = _undecided


def candidates_of(pattern: Any) -> list[Candidates]:
    """Return the rows of a pattern, decided ones as candidates that are certain."""
    if pattern.dtype != object:
        return [_certain(np.flatnonzero(row).tolist()) for row in pattern]
    rows = []
    for row in pattern:
        cells = row.tolist()
        open_ones = [cell for cell in cells if isinstance(cell, Cell)]
        if open_ones:
            rows.append(open_ones[0].row)
        else:
            rows.append(_certain([k for k, here in enumerate(cells) if here]))
    return rows


def _certain(keys: Sequence[int]) -> Candidates:
    return Candidates(tuple(keys), True, bool(keys), len(keys) <= 1)


def contenders(selected: Any, scores: Sequence[Value], greater: Callable[..., bool], ties: bool) -> Any:
    """Keep of the selected keys those that none exceeds; undecided comparisons make candidates."""
    rows = candidates_of(selected)
    winners = {row: _greatest(row, scores, greater, ties) for row in dict.fromkeys(rows)}
    rows_won = [winners[row] for row in rows]
    shape = selected.shape
    decided = all(isinstance(one, tuple) for one in rows_won)
    array: Any = np.full(shape, False, dtype=np.bool_ if decided else object)
    for q, one in enumerate(rows_won):
        if isinstance(one, tuple):
            array[q, list(one)] = True
        else:
            array[q, list(one.keys)] = Cell(one)
    return array


def _greatest(
    row: Candidates, scores: Sequence[Value], greater: Callable[..., bool], ties: bool
) -> tuple[int, ...] | Candidates:
    """Return the keys of greatest score as a tuple if that is decided, else candidates for it."""
    answers: dict[tuple[int, int], bool | None] = {
        (a, b): _answer(greater, scores[a], scores[b], ties)
        for a in row.keys
        for b in row.keys
        if scores[a] is not scores[b]
    }
    # A key that is only a candidate does not rule out another one.
    left = [k for k in row.keys if not (row.certain and any(answers.get((o, k)) for o in row.keys))]
    among = [answers[a, b] for a in left for b in left if (a, b) in answers]
    if row.certain and all(answer is False for answer in among):
        return tuple(left)
    distinct = all(answers.get((a, b)) or answers.get((b, a)) for a in left for b in left if a < b)
    return Candidates(tuple(left), False, row.nonempty, row.single or distinct)


def _answer(greater: Callable[..., bool], a: Value, b: Value, ties: bool) -> bool | None:
    try:
        return greater(a, b)
    except TooCloseError:
        if not ties:
            raise
        return None
