"""B-RASP: Boolean programs with masked unique hard attention. Text, on the one graph; LTL and back.

A program is a list of definitions, one on each line (or ended by ``;``); the last one accepts, read at
the last symbol. A definition is a Boolean expression of symbols (``"a"``) and earlier names with
``!``, ``&``, ``|``; or attention to one position::

    before = rightmost[j < i, "a"(j) | "b"(j)] "a"(j) : false

The position j is the leftmost or rightmost one that the mask (``j < i``, ``j <= i``, ``j > i``, ``j >=
i`` or ``true``) allows and at which the score holds; the value there is the answer, and the default
behind the colon where there is no such j. In score and value every name says where it is read, ``(i)``
or ``(j)``.

>>> program = parse('''
... first = leftmost[j < i, true] true : false
... follows = rightmost[j < i, true] "a"(j) : false
... wrong = "a" & follows
... accepted = rightmost[j <= i, wrong(j)] false : true
... ''', alphabet="ab")
>>> program.accepts("abab"), program.accepts("aab")
(True, False)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from lark import Token

from locum.dialects.automata import Letter
from locum.dialects.boolean_programs import (
    LEFTMOST,
    MASKS,
    RIGHTMOST,
    Attention,
    Program,
    from_ltl,
)
from locum.dialects.formulas import FALSE, TRUE, Formula, atom
from locum.dialects.ltl import FormulaReader
from locum.dialects.syntax import COMMON, alphabet_of, listed

__all__ = ["MASKS", "Program", "from_ltl", "parse"]

_GRAMMAR = (
    COMMON
    + r"""
start: (definition? _END)* definition?
definition: NAME "=" (formula{plain} | attention)
attention: DIRECTION "[" mask ("," formula{placed})? "]" formula{placed} ":" formula{plain}
mask: TRUE | NAME COMPARISON NAME
?formula{atom}: disjunction{atom} | disjunction{atom} (IMPLIES disjunction{atom})+ -> right
?disjunction{atom}: conjunction{atom} | conjunction{atom} (OR conjunction{atom})+ -> left
?conjunction{atom}: unary{atom} | unary{atom} (AND unary{atom})+ -> left
?unary{atom}: operand{atom} | NOT+ operand{atom} -> prefix
?operand{atom}: "(" formula{atom} ")" | TRUE -> true | FALSE -> false | atom
plain: (NAME | STRING) ("(" NAME ")")?
placed: (NAME | STRING) ("(" NAME ")")?
DIRECTION.2: /(leftmost|rightmost)(?![A-Za-z0-9_])|[◀▶]/
COMPARISON: "<=" | "≤" | ">=" | "<" | ">"
IMPLIES: "->"
OR: "||" | "|" | "∨"
AND: "&&" | "&" | "∧"
NOT: "!" | "¬"
TRUE: "true"
FALSE: "false"
"""
)
_MASK = f"a mask ({', '.join(MASKS)})"


def parse(text: str, *, alphabet: Iterable[Letter] | None = None) -> Program:
    """Read a program; ``alphabet`` defaults to the symbols it names."""
    reader = _Reader()
    definitions = reader.read(text)
    return Program(definitions, alphabet_of("B-RASP", reader.letters, alphabet), text)


class _Reader(FormulaReader):
    dialect, grammar = "B-RASP", _GRAMMAR
    expected: ClassVar = {
        "STRING": "a symbol in quotes or a name",
        "TRUE": _MASK,
        "COMPARISON": _MASK,
        "COLON": ": and a default, for positions that nothing is found from",
        "NAME": "a name",
        "EQUAL": "=",
        "RPAR": ")",
        "RSQB": "]",
        "LSQB": "[",
        "_END": "the end of the definition",
    }

    def __init__(self) -> None:
        super().__init__()
        self.definitions: dict[str, Formula | Attention] = {}
        self.letters: set[Letter] = set()

    def start(self, parts: list[None]) -> dict[str, Formula | Attention]:
        if not self.definitions:
            self.fail("expected a definition, got none")
        return self.definitions

    def definition(self, parts: list[Any]) -> None:
        name, value = parts
        if name in self.definitions or name in ("i", "j"):
            self.fail(f"expected a new name, got {name}, which has a meaning", name)
        self.definitions[str(name)] = value

    def attention(self, parts: list[Any]) -> Attention:
        direction, mask, *score, value, default = parts
        named = {"◀": LEFTMOST, "▶": RIGHTMOST}.get(direction, str(direction))
        return Attention(named, mask, score[0] if score else TRUE, value, default)

    def mask(self, parts: list[Token]) -> str:
        mask = " ".join(parts).replace("≤", "<=")
        if mask not in MASKS:
            self.fail(f"expected {_MASK}, got {mask}", parts[0])
        return mask

    def true(self, parts: list[Token]) -> Formula:
        return TRUE

    def false(self, parts: list[Token]) -> Formula:
        return FALSE

    def plain(self, parts: list[Token]) -> Formula:
        name = self._name(parts[0])
        if parts[1:] not in ([], ["i"]):
            self.fail(f"expected no position, or (i), got ({parts[1]})", parts[0])
        return atom(name)

    def placed(self, parts: list[Token]) -> Formula:
        name = self._name(parts[0])
        if parts[1:] not in (["i"], ["j"]):
            got = f"({parts[1]})" if parts[1:] else "none"
            self.fail(f"expected (i) or (j) after a name, got {got}", parts[0])
        return atom(f"{name}@{parts[1]}")

    def _name(self, token: Token) -> str:
        if token.type == "STRING":
            self.letters.add(self.symbol_of(token))
        elif token not in self.definitions:
            names = listed(self.definitions)
            self.fail(f"{token} is not defined before this; there are {names}", token)
        return str(token)
