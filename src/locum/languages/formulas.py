"""Represent formulas of temporal and Boolean logic as interned objects, processed without recursion."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from locum.graph.traversal import walk

Value = TypeVar("Value")


@dataclass(frozen=True, eq=False, weakref_slot=True, slots=True)
class Formula:
    """A formula: an operator with its operands, or an atom with its name.

    Create formulas with :func:`make`, which returns the same object for equal formulas.
    """

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
    """Return the unique formula with this operator, these operands and this name."""
    key = (op, name, *parts)
    known = _MADE.get(key)
    if known is None:
        known = _MADE[key] = Formula(op, parts, name)
    return known


TRUE, FALSE = make("true"), make("false")


def atom(name: str) -> Formula:
    """Return the formula that holds where the symbol is ``name``, or where the named
    condition holds.
    """
    return make("atom", name=name)


def negation(part: Formula) -> Formula:
    """Return the formula that holds where ``part`` does not hold."""
    if part is TRUE or part is FALSE:
        return FALSE if part is TRUE else TRUE
    return part.parts[0] if part.op == "not" else make("not", part)


def conjunction(*parts: Formula) -> Formula:
    """Return the formula that holds where all ``parts`` hold."""
    return _joined("and", TRUE, FALSE, parts)


def disjunction(*parts: Formula) -> Formula:
    """Return the formula that holds where at least one of ``parts`` holds."""
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
    """Return all subformulas of a formula, each once and after its own operands."""
    return list(walk((formula,), lambda part: part.parts[::-1]))


def fold(formula: Formula, meaning: Callable[[Formula, Sequence[Value]], Value]) -> Value:
    """Compute a value of a formula bottom-up.

    ``meaning`` returns the value of a subformula, given the values of its operands.
    """
    values: dict[Formula, Value] = {}
    for part in parts_of(formula):
        values[part] = meaning(part, [values[below] for below in part.parts])
    return values[formula]


def atoms(formula: Formula) -> list[str]:
    """Return the sorted names of the atoms in a formula."""
    return sorted({part.name for part in parts_of(formula) if part.op == "atom"})


def substitute(formula: Formula, values: Mapping[str, Formula]) -> Formula:
    """Replace atoms by the formulas in ``values``, and simplify the result."""

    def changed(part: Formula, below: Sequence[Formula]) -> Formula:
        match part.op:
            case "atom":
                return values.get(part.name, part)
            case _:
                return rebuilt(part, below)

    return fold(formula, changed)


def rebuilt(part: Formula, below: Sequence[Formula]) -> Formula:
    """Return a simplified formula with the operator of ``part`` and the operands ``below``."""
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
#: Maximum number of characters of the operands of a formula that is shown as text.
MAX_SHOWN = 1_000_000


def _symbol(name: str) -> str:
    """Format a symbol, in quotes unless it is a lower-case ASCII name other than true and false."""
    plain = name.isascii() and name.isidentifier() and name.islower() and name not in ("true", "false")
    return name if plain else f'"{name}"'


def show(formula: Formula, write_atom: Callable[[str], str] = _symbol) -> str:
    """Format a formula as text in the syntax of ``ltl.py``.

    A subformula whose operands have more than ``MAX_SHOWN`` characters is replaced by an ellipsis.
    """

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
                # Chains of & and of | are left-associative, as in the parser.
                chain = op in ("and", "or") and part.parts[0].op == op
                left = below[0][0] if below[0][1] >= 8 or chain else f"({below[0][0]})"
                right = below[1][0] if below[1][1] >= 8 else f"({below[1][0]})"
                return f"{left} {_WORDS[op]} {right}", _BINDS[op]

    return fold(formula, text)[0]
