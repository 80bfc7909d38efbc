"""Formulas of temporal logic and of plain Boolean logic: interned, built without recursion."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from locum.graph.traversal import walk

Value = TypeVar("Value")


@dataclass(frozen=True, eq=False, weakref_slot=True, slots=True)
class Formula:
    """A formula: its operator, its parts, and the name of an atom; equal ones are one object."""

    op: str
    parts: tuple[Formula, ...] = ()
    name: str = ""

    def __str__(self) -> str:
        return show(self)

    def __repr__(self) -> str:
        text = show(self)
        return f"<{text if len(text) < 200 else text[:199] + '…'}>"


_MADE: weakref.WeakValueDictionary[tuple[object, ...], Formula] = weakref.WeakValueDictionary()


def make(op: str, *parts: Formula, name: str = "") -> Formula:
    """Return the one formula of an operator, parts and name."""
    key = (op, name, *parts)
    known = _MADE.get(key)
    if known is None:
        known = _MADE[key] = Formula(op, parts, name)
    return known


TRUE, FALSE = make("true"), make("false")


def atom(name: str) -> Formula:
    """Return the formula that holds where the symbol (or whatever is named so) is this."""
    return make("atom", name=name)


def negation(part: Formula) -> Formula:
    """Return what holds where ``part`` does not."""
    if part is TRUE or part is FALSE:
        return FALSE if part is TRUE else TRUE
    return part.parts[0] if part.op == "not" else make("not", part)


def conjunction(*parts: Formula) -> Formula:
    """Return what holds where all parts do."""
    return _joined("and", TRUE, FALSE, parts)


def disjunction(*parts: Formula) -> Formula:
    """Return what holds where some part does."""
    return _joined("or", FALSE, TRUE, parts)


def _joined(op: str, neutral: Formula, decided: Formula, parts: Sequence[Formula]) -> Formula:
    kept = list(dict.fromkeys(part for part in parts if part is not neutral))
    if decided in kept or any(negation(part) in kept for part in kept if part.op == "not"):
        return decided
    whole = kept[0] if kept else neutral
    for part in kept[1:]:
        whole = make(op, whole, part)
    return whole


def parts_of(formula: Formula) -> list[Formula]:
    """List all parts, each once, behind what it is made of."""
    return list(walk((formula,), lambda part: part.parts[::-1]))


def fold(formula: Formula, meaning: Callable[[Formula, Sequence[Value]], Value]) -> Value:
    """Compute something of a formula from what it is of its parts."""
    values: dict[Formula, Value] = {}
    for part in parts_of(formula):
        values[part] = meaning(part, [values[below] for below in part.parts])
    return values[formula]


def atoms(formula: Formula) -> list[str]:
    """List the names of its atoms."""
    return sorted({part.name for part in parts_of(formula) if part.op == "atom"})


def substitute(formula: Formula, values: Mapping[str, Formula]) -> Formula:
    """Put formulas in the place of atoms, and simplify."""

    def changed(part: Formula, below: Sequence[Formula]) -> Formula:
        match part.op:
            case "atom":
                return values.get(part.name, part)
            case _:
                return rebuilt(part, below)

    return fold(formula, changed)


def rebuilt(part: Formula, below: Sequence[Formula]) -> Formula:
    """Make a formula of the same operation from other parts, and simplify."""
    match part.op:
        case "not":
            return negation(below[0])
        case "and":
            return conjunction(*below)
        case "or":
            return disjunction(*below)
        case _:
            return make(part.op, *below, name=part.name)


_BINDS = {"or": 1, "and": 2, "until": 3, "since": 3}
_WORDS = {"until": "U", "since": "S", "and": "&", "or": "|", "next": "X", "yesterday": "Y", "not": "!"}
#: Characters of a formula that are worth writing out.
MAX_SHOWN = 1_000_000


def _symbol(name: str) -> str:
    """Write a symbol, in quotes unless it is a name in lower case."""
    plain = name.isidentifier() and name.islower() and name not in ("true", "false")
    return name if plain else f'"{name}"'


def show(formula: Formula, write_atom: Callable[[str], str] = _symbol) -> str:
    """Write a formula as text that is read back as the same."""

    def text(part: Formula, below: Sequence[tuple[str, int]]) -> tuple[str, int]:
        if sum(len(each) for each, _ in below) > MAX_SHOWN:
            return "…", 9
        match part.op:
            case "atom":
                return write_atom(part.name), 9
            case "true" | "false":
                return part.op, 9
            case "not" | "next" | "yesterday":
                inner, binds = below[0]
                inner = inner if binds >= 8 else f"({inner})"
                return _WORDS[part.op] + ("" if part.op == "not" else " ") + inner, 8
            case "until" | "since" if part.parts[0] is TRUE:
                inner, binds = below[1]
                word = "F" if part.op == "until" else "O"
                return f"{word} {inner if binds >= 8 else f'({inner})'}", 8
            case op:
                # Chains of & and of | group to the left, as they are read.
                chain = op in ("and", "or") and part.parts[0].op == op
                left = below[0][0] if below[0][1] >= 8 or chain else f"({below[0][0]})"
                right = below[1][0] if below[1][1] >= 8 else f"({below[1][0]})"
                return f"{left} {_WORDS[op]} {right}", _BINDS[op]

    return fold(formula, text)[0]
