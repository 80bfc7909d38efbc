"""Parse regular and star-free expressions, and convert them to automata by derivatives.

The operators are, in order of increasing precedence: ``+`` or ``|`` (union), ``&`` (intersection),
juxtaposition (concatenation), ``*`` and ``?`` after an expression, and ``~`` before an expression
(complement). Alphanumeric characters and ``_`` are letters; ``ε`` or ``()`` is the empty word, ``∅``
the empty language, and ``.`` any letter of the alphabet. Blanks are ignored, and a backslash makes any
character a letter. By default ``+`` is union, as in the theory of formal languages. With
``plus="repeat"``, ``+`` follows an expression and means one or more repetitions, and only ``|`` is
union.

>>> language("(ab+ba)*").accepts("abba")
True
>>> language("~(∅)&~(.*bb.*)", alphabet="ab").accepts("abab")
True
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from lark import Token

from locum.errors import InputError
from locum.graph.traversal import walk
from locum.languages.automata import DFA, Letter, account, explore, show_alphabet
from locum.languages.syntax import Reader
from locum.text import shortened


@dataclass(frozen=True, eq=False)
class Expression:
    """An extended regular expression, made by :class:`Expressions`.

    Expressions of one factory with the same operator, parts and letter are the same object.
    """

    op: str
    parts: tuple[Expression, ...]
    letter: Letter
    #: Whether the language contains the empty word, the size of the expression, and its index.
    nullable: bool
    size: int
    number: int
    #: The derivatives of the expression by letter, computed on demand.
    derivatives: dict[Letter, Expression] = field(default_factory=dict, repr=False)


class Expressions:
    """A factory of expressions that are simplified, so that each has finitely many derivatives."""

    def __init__(self) -> None:
        self.budget = account()
        self._made: dict[tuple[object, ...], Expression] = {}
        self.nothing = self._make("nothing", (), "", False)
        self.empty = self._make("empty", (), "", True)
        self.everything = self.complement(self.nothing)

    def _make(
        self, op: str, parts: tuple[Expression, ...], letter: Letter, nullable: bool
    ) -> Expression:
        key = (op, letter, *(part.number for part in parts))
        if key not in self._made:
            self.budget.spend(1 + len(parts) / 4)
            size = 1 + sum(part.size for part in parts)
            self._made[key] = Expression(op, parts, letter, nullable, size, len(self._made))
        return self._made[key]

    def letter(self, letter: Letter) -> Expression:
        """Return the expression of a single letter."""
        return self._make("letter", (), letter, False)

    def union(self, parts: Iterable[Expression]) -> Expression:
        """Return the union of expressions, without repetitions."""
        flat = self._flat("union", parts)
        if self.everything in flat:
            return self.everything
        kept = [part for part in flat if part is not self.nothing]
        if any(part.nullable and part.op != "empty" for part in kept):
            kept = [part for part in kept if part.op != "empty"]
        return self._joined("union", kept, self.nothing)

    def intersection(self, parts: Iterable[Expression]) -> Expression:
        """Return the intersection of expressions, without repetitions."""
        flat = self._flat("intersection", parts)
        if self.nothing in flat:
            return self.nothing
        kept = [part for part in flat if part is not self.everything]
        return self._joined("intersection", kept, self.everything)

    def _flat(self, op: str, parts: Iterable[Expression]) -> list[Expression]:
        members: dict[int, Expression] = {}
        for part in parts:
            for member in part.parts if part.op == op else (part,):
                members[member.number] = member
        return [members[number] for number in sorted(members)]

    def _joined(self, op: str, kept: Sequence[Expression], neutral: Expression) -> Expression:
        if len(kept) <= 1:
            return kept[0] if kept else neutral
        some = any if op == "union" else all
        return self._make(op, tuple(kept), "", some(part.nullable for part in kept))

    def concatenation(self, parts: Iterable[Expression]) -> Expression:
        """Return the concatenation of expressions."""
        flat: list[Expression] = []
        for part in parts:
            if part is self.nothing:
                return self.nothing
            if part is not self.empty:
                flat.extend(part.parts if part.op == "concatenation" else (part,))
        if len(flat) <= 1:
            return flat[0] if flat else self.empty
        return self._make("concatenation", tuple(flat), "", all(part.nullable for part in flat))

    def star(self, part: Expression) -> Expression:
        """Return the Kleene star of an expression: zero or more repetitions."""
        if part.op == "star" or part is self.everything:
            return part
        if part.op in ("empty", "nothing"):
            return self.empty
        if part.op == "union":  # (ε + r)* is r*
            part = self.union(member for member in part.parts if member is not self.empty)
            if part.op == "star":
                return part
        return self._make("star", (part,), "", True)

    def complement(self, part: Expression) -> Expression:
        """Return the complement of an expression."""
        if part.op == "complement":
            return part.parts[0]
        return self._make("complement", (part,), "", not part.nullable)

    def derivative(self, whole: Expression, letter: Letter) -> Expression:
        """Return the derivative of an expression: the words w for which ``letter`` followed by w is in
        its language.
        """
        for part in walk((whole,), lambda each: _needed(each, letter)):
            if letter not in part.derivatives:
                self._derive(part, letter)
        return whole.derivatives[letter]

    def _derive(self, whole: Expression, letter: Letter) -> None:
        """Store the derivative of an expression, given the derivatives of the parts that it needs."""
        self.budget.spend(1 + len(whole.parts) / 2)
        match whole.op:
            case "letter":
                derived = self.empty if whole.letter == letter else self.nothing
            case "nothing" | "empty":
                derived = self.nothing
            case "union":
                derived = self.union(part.derivatives[letter] for part in whole.parts)
            case "intersection":
                derived = self.intersection(part.derivatives[letter] for part in whole.parts)
            case "complement":
                derived = self.complement(whole.parts[0].derivatives[letter])
            case "star":
                derived = self.concatenation((whole.parts[0].derivatives[letter], whole))
            case _:
                derived = self.union(
                    self.concatenation((part.derivatives[letter], *whole.parts[place + 1 :]))
                    for place, part in enumerate(_needed(whole, letter))
                )
        whole.derivatives[letter] = derived


def _needed(whole: Expression, letter: Letter) -> Sequence[Expression]:
    """Return the parts of an expression whose derivatives determine its derivative.

    The result is empty if the derivative of the expression is known.
    """
    if letter in whole.derivatives:
        return ()
    if whole.op != "concatenation":
        return whole.parts
    last = next((i for i, part in enumerate(whole.parts) if not part.nullable), len(whole.parts))
    return whole.parts[: last + 1]


@dataclass(frozen=True)
class Regular:
    """A parsed expression with its alphabet."""

    text: str
    expression: Expression
    alphabet: tuple[Letter, ...]
    _expressions: Expressions

    def automaton(self) -> DFA:
        """Return the minimal automaton of the expression, or raise an error if the automaton is too
        large.
        """
        expressions = self._expressions
        return explore(
            self.alphabet,
            self.expression,
            expressions.derivative,
            lambda state: state.nullable,
            expressions.budget,
            lambda state: len(state.parts) / 4,
        )


def language(text: str, alphabet: Iterable[Letter] | None = None, *, plus: str = "union") -> DFA:
    """Return the minimal automaton of an expression.

    ``alphabet`` defaults to the letters of the expression. ``plus`` ("union" or "repeat") is the
    meaning of ``+``.
    """
    return read(text, alphabet, plus=plus).automaton()


#: A letter, or any character after a backslash.
_LETTER = r"\\[\s\S]|[^\W\\ε]"
_GRAMMAR = rf"""
start: union
?union: intersection | intersection (UNION intersection)+
?intersection: concatenation | concatenation ("&" concatenation)+
?concatenation: repeated | repeated repeated+
?repeated: operand | repeated REPEAT
?operand: ATOM | "(" union ")" | "(" ")" -> empty | "~" operand -> complement
ATOM: /[ε∅.]|{_LETTER}/
%ignore /\s+/
"""
#: The grammars for both meanings of ``+``.
_GRAMMARS = {
    "union": _GRAMMAR + 'UNION: "+" | "|"\nREPEAT: "*" | "?"',
    "repeat": _GRAMMAR + 'UNION: "|"\nREPEAT: "*" | "?" | "+"',
}


def read(text: str, alphabet: Iterable[Letter] | None = None, *, plus: str = "union") -> Regular:
    """Parse an expression; syntax errors contain the line and the column."""
    if plus not in _GRAMMARS:
        raise InputError(f"plus: expected union or repeat, got {plus!r}")
    letters = sorted({found[-1] for found in re.findall(_LETTER, text)})
    symbols = tuple(letters if alphabet is None else dict.fromkeys(alphabet))
    unknown = [letter for letter in letters if letter not in symbols]
    if unknown:
        raise InputError(
            f"expected letters of the alphabet {show_alphabet(symbols)}, got {unknown[0]!r} "
            f"in {shortened(text, 60)}"
        )
    reader = _Reader(plus, symbols)
    expression = reader.read(text)
    if not symbols:
        raise InputError(
            "expected an alphabet, since the expression has no letters; try alphabet=… (--alphabet)"
        )
    if any(len(letter) != 1 for letter in symbols):
        raise InputError("expected letters of one character in the alphabet of an expression")
    return Regular(text, expression, symbols, reader.make)


class _Reader(Reader):
    dialect = "regular expression"
    expected: ClassVar = {"RPAR": ")", "$END": "an operator, a letter or the end"}

    def __init__(self, plus: str, alphabet: tuple[Letter, ...]) -> None:
        super().__init__()
        self.grammar = _GRAMMARS[plus]  # type: ignore[misc]
        self.alphabet, self.make = alphabet, Expressions()

    def describe_character(self, character: str) -> str:
        if character == "\\":
            return "expected a character after the backslash, got the end"
        return (
            f"expected a letter, a digit or an operator, got {character!r}; "
            f"try \\{character} for the letter, (a+b) for a choice, aa for twice"
        )

    def describe(self, token: Token, options: set[str], before: list[Token]) -> str:
        if "ATOM" not in options or "REPEAT" in options:
            return super().describe(token, options, before)
        problem = f"expected an expression before {token or 'the end'}"
        if before and before[-1] == "+":
            problem += (
                "; + is union here: for once or more write xx*, or try plus='repeat' (--plus repeat)"
            )
        return problem

    def start(self, parts: list[Expression]) -> Expression:
        return parts[0]

    def union(self, parts: list[Any]) -> Expression:
        return self.make.union(parts[::2])

    def intersection(self, parts: list[Expression]) -> Expression:
        return self.make.intersection(parts)

    def concatenation(self, parts: list[Expression]) -> Expression:
        return self.make.concatenation(parts)

    def repeated(self, parts: list[Any]) -> Expression:
        part, operator = parts
        if operator == "?":
            return self.make.union((self.make.empty, part))
        star = self.make.star(part)
        return star if operator == "*" else self.make.concatenation((part, star))

    def complement(self, parts: list[Expression]) -> Expression:
        return self.make.complement(parts[0])

    def empty(self, parts: list[Token]) -> Expression:
        return self.make.empty

    def ATOM(self, token: Token) -> Expression:  # noqa: N802
        match str(token):
            case "ε":
                return self.make.empty
            case "∅":
                return self.make.nothing
            case ".":
                return self.make.union(map(self.make.letter, self.alphabet))
            case letter:
                return self.make.letter(letter[-1])
