"""Run dense execution on symbols, in one case of a proof.

If the case does not decide a cell of an attention pattern, the cell is open (``booleans.py``). A mean
over the row of this cell is a choice, an open boolean, undecided or undefined. Every operation that
may be undefined is a *site*. The domain records the status of each site: defined, undefined or
undecided.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from locum.execution.domains import Domain, Pattern, Value
from locum.execution.domains.floats import FloatDomain
from locum.graph import COMPARISONS, Atom
from locum.proofs.checker.proof_tree import Question
from locum.proofs.prover.booleans import FALSE, TRUE, Boolean, boolean, pattern_of
from locum.proofs.prover.cases import (
    OPEN,
    Broken,
    Case,
    Undecided,
    first_open,
    is_boolean,
    is_number,
)
from locum.proofs.prover.ring import Ratio, Ring, Slot, UnsupportedError
from locum.proofs.prover.symbolic_elementwise import EXACT, Elementwise

_FLOAT = FloatDomain()


class SymbolicDomain(Domain):
    """The domain of rational functions in one case of a proof."""

    name = "symbolic"

    def __init__(self, ring: Ring, case: Case) -> None:
        self.ring = ring
        self.elementwise = Elementwise(ring, case)
        self.meanings = self.elementwise.meanings
        self.refusals = self.elementwise.refusals

    @property
    def sites(self) -> list[Undecided | Broken | None]:
        """The status of each operation that may be undefined; None if the operation is defined."""
        return self.elementwise.sites

    def token(self, value: Value, cast: str) -> Value:
        if cast in ("asis", "float") or (cast == "int" and self.ring.integer):
            return value
        raise UnsupportedError(f"a symbol cannot be cast to {cast}")

    def constant(self, atom: Atom) -> Value:
        if isinstance(atom, str):
            raise UnsupportedError("expected a program of numbers, got one with strings")
        return self.elementwise.plain(EXACT.constant(atom))

    def accepts(self, value: object) -> bool:
        return isinstance(value, Ratio) or EXACT.accepts(value)

    def mixture(self, values: Sequence[Value]) -> str | None:
        return None

    def is_numeric(self, values: Sequence[Value]) -> bool:
        return any(map(is_number, values))

    def mean(self, values: Sequence[Value]) -> Value:
        total = reduce(self.meanings["add"], values)
        return total if isinstance(total, OPEN) else self.elementwise.plain(
            self.elementwise.lift(self.elementwise.numeric(total)) / len(values)
        )  # fmt: skip

    # Attention ------------------------------------------------------------------------------------

    def select(self, keys: Sequence[Value], queries: Sequence[Value], predicate: str) -> Pattern:
        if all(type(value) in (int, bool) for value in (*keys, *queries)):
            return _FLOAT.select(keys, queries, predicate)
        holds, answers = (
            self.meanings[COMPARISONS[predicate].operation],
            dict[tuple[int, int], Boolean](),
        )
        rows = []
        for query in queries:
            row = []
            for key in keys:
                pair = (id(key), id(query))
                # Two positions can share an undecided object although their values differ.
                if pair not in answers or isinstance(key, OPEN) or isinstance(query, OPEN):
                    answers[pair] = self._cell(holds(key, query))
                row.append(answers[pair])
            rows.append(row)
        return pattern_of(rows)

    def _cell(self, answer: Value) -> Boolean:
        """Return the result of a comparison as a cell of a pattern; an undecided result is open."""
        if isinstance(answer, Broken):
            # The undefined operation is recorded as a site, so the value of this cell is irrelevant.
            return FALSE
        if isinstance(answer, Undecided):
            identities = self.ring.identities
            return Boolean(None, answer.question, identities.once(), identities)
        return boolean(answer)

    def best(self, selected: Pattern, scores: Sequence[Value]) -> Pattern:
        if selected.dtype == np.bool_ and all(type(score) in (int, bool) for score in scores):
            return _FLOAT.best(selected, scores)
        rows = []
        known: dict[Hashable, list[Boolean]] = {}
        for chosen in selected:
            mark = self._mark(chosen)
            if mark not in known:
                known[mark] = self._greatest([boolean(one) for one in chosen.tolist()], scores)
            rows.append(known[mark])
        return pattern_of(rows)

    def _mark(self, row: Any) -> Hashable:
        """Return a hashable key that rows with the same selected keys share."""
        if row.dtype == np.bool_:
            return bytes(row.tobytes())
        return tuple(self.elementwise.identity_of(one) for one in row.tolist())

    def _greatest(self, row: Sequence[Boolean], scores: Sequence[Value]) -> list[Boolean]:
        """Return ``row`` without the keys whose score is less than the score of a selected key."""
        greater = self.meanings["greater"]
        keys = [k for k, one in enumerate(row) if one is not FALSE]
        result = [FALSE] * len(row)
        for k in keys:
            beaten = FALSE
            for other in keys:
                if other != k:
                    beaten = beaten | (row[other] & self._cell(greater(scores[other], scores[k])))
                if beaten is TRUE:
                    break
            result[k] = row[k] & ~beaten
        return result

    def aggregate(self, selected: Pattern, values: Sequence[Value], default: Value) -> list[Value]:
        if selected.dtype == np.bool_:
            keys = [np.flatnonzero(row).tolist() for row in selected]
            several = any(len(chosen) > 1 for chosen in keys)
            self.sites.append(self._mean_of_booleans(several, False, None, values))
            return [self._mean_of([values[k] for k in chosen], default) for chosen in keys]
        rows = [[boolean(one) for one in row] for row in selected.tolist()]
        several = any(sum(one is TRUE for one in row) > 1 for row in rows)
        open_ones = [one for row in rows for one in row if one.value is None]
        maybe = any(sum(one is not FALSE for one in row) > 1 for row in rows)
        question = open_ones[0].question if open_ones else None
        self.sites.append(self._mean_of_booleans(several, maybe, question, values))
        marks = tuple(self.elementwise.identity_of(value) for value in values)
        return [self._chosen(row, values, default, marks) for row in rows]

    def _mean_of_booleans(
        self, several: bool, maybe: bool, question: Question | None, values: Sequence[Value]
    ) -> Undecided | Broken | None:
        """Return the status of an aggregate, which is undefined if it is a mean of several booleans.

        ``several`` states whether a row selects several keys, and ``maybe`` whether a row may do so.
        """
        if self.is_numeric(values) or not (several or maybe):
            return None
        if several and all(map(is_boolean, values)):
            return Broken("a mean of booleans")
        unsure = next((value for value in values if isinstance(value, Undecided)), None)
        if unsure is not None:
            return unsure
        if question is None:
            return Broken("a mean of values that are broken")
        return Undecided(question)

    def _mean_of(self, chosen: Sequence[Value], default: Value) -> Value:
        if not chosen:
            return default
        return chosen[0] if len(chosen) == 1 else self.mean(chosen)

    def _chosen(
        self, row: Sequence[Boolean], values: Sequence[Value], default: Value, marks: tuple[int, ...]
    ) -> Value:
        chosen = [value for value, one in zip(values, row, strict=True) if one is not FALSE]
        cells = [one for one in row if one.value is None]
        if not cells:
            return self._mean_of(chosen, default)
        trouble = first_open(chosen)
        if trouble is not None:
            return trouble if isinstance(trouble, Broken) else Undecided(cells[0].question)
        candidates = chosen if len(chosen) > len(cells) else [*chosen, default]
        question = cells[0].question
        numbers = tuple(self.elementwise.identity_of(one) for one in row)
        key = ("aggregate", numbers, marks, str(default))
        if len(chosen) == 1 and all(map(is_boolean, candidates)):
            number = self.ring.identities.number(key)
            return Boolean(None, question, number, self.ring.identities)
        if all(map(is_number, candidates)):
            return self.ring.choice(key, question, candidates)
        return Undecided(question)

    def widths(self, selected: Pattern) -> list[Value]:
        result: list[Value] = []
        for row in selected.tolist():
            cells = [boolean(one) for one in row]
            sure = sum(one is TRUE for one in cells)
            open_ones = [one for one in cells if one.value is None]
            if not open_ones:
                result.append(sure)
                continue
            key = ("width", tuple(self.elementwise.identity_of(one) for one in cells))
            bounds = [sure, sure + len(open_ones)]
            result.append(self.ring.choice(key, open_ones[0].question, bounds))
        return result


def has_open(value: Any, ring: Ring) -> bool:
    """Return whether a part of a node's value is undefined, or undecided without more assumptions."""
    if isinstance(value, np.ndarray):
        return bool(value.dtype == object)
    # Finding the slots in a value is slow, and most rings have no such slots.
    look = _tells_more(ring.slots.values())
    return any(
        isinstance(one, (*OPEN, Boolean))
        or (look and isinstance(one, Ratio) and _tells_more(ring.occurring(one.top, one.bottom)))
        for one in value
    )


def _tells_more(slots: Iterable[Slot]) -> bool:
    return any(slot.function in ("choice", "absolute") for slot in slots)
