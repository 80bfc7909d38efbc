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

from locum.dialects.automata import Letter
from locum.dialects.boolean_programs import (
    LEFTMOST,
    MASKS,
    RIGHTMOST,
    Attention,
    Program,
    from_ltl,
)
from locum.dialects.formulas import FALSE, TRUE, Formula, atom, negation
from locum.dialects.ltl import binary
from locum.dialects.syntax import Parser, Syntax, Token, alphabet_of, listed

__all__ = ["MASKS", "Program", "from_ltl", "parse"]

_SYNTAX = Syntax(
    "B-RASP",
    (
        *("!", "&", "|", "->", "(", ")", "[", "]", ",", ":", ";", "=", "<=", ">=", "<", ">"),
        *(LEFTMOST, RIGHTMOST, "true", "false"),
    ),
    {"->": (1, "right"), "|": (2, "left"), "&": (3, "left")},
    frozenset({"!"}),
    {"&&": "&", "||": "|", "∧": "&", "∨": "|", "¬": "!", "◀": LEFTMOST, "▶": RIGHTMOST, "≤": "<="},
)


def parse(text: str, *, alphabet: Iterable[Letter] | None = None) -> Program:
    """Read a program; ``alphabet`` defaults to the symbols it names."""
    reader = _Reader(text)
    definitions = reader.program()
    return Program(definitions, alphabet_of("B-RASP", reader.letters, alphabet), text)


class _Reader(Parser[Formula]):
    syntax = _SYNTAX

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.definitions: dict[str, Formula | Attention] = {}
        self.letters: set[Letter] = set()
        #: Whether names say where they are read: in scores and values.
        self._attending = False

    def program(self) -> dict[str, Formula | Attention]:
        """Read all definitions."""
        for _ in self.lines():
            name = self.expect("name", " to define")
            if name.text in self.definitions or name.text in ("i", "j"):
                self.fail(f"expected a new name, got {name.text}, which has a meaning", name)
            self.expect("=")
            direction = self.take(LEFTMOST, RIGHTMOST)
            value = self.expression() if direction is None else self._attention(direction)
            self.definitions[name.text] = value
        if not self.definitions:
            self.fail("expected a definition")
        return self.definitions

    def _attention(self, direction: Token) -> Attention:
        self.expect("[")
        mask = self._mask()
        self._attending = True
        score = self.expression() if self.take(",") else TRUE
        self.expect("]")
        value = self.expression()
        self._attending = False
        self.expect(":", " and a default, for positions that nothing is found from")
        default = self.expression()
        return Attention(direction.kind, mask, score, value, default)

    def _mask(self) -> str:
        if self.take("true"):
            return "true"
        start = self.next
        words = [self.next.text]
        for _ in range(2):
            self._place += self.next.kind != "end"
            words.append(self.next.text)
        mask = " ".join(words)
        if mask not in MASKS:
            self.fail(f"expected a mask ({', '.join(MASKS)}), got {mask}", start)
        self._place += 1
        return mask

    def atom(self) -> Formula:
        token = self.take("name", "string", "true", "false")
        if token is None:
            self.fail(f"expected a symbol in quotes or a name, got {self._got()}")
        if token.kind in ("true", "false"):
            return TRUE if token.kind == "true" else FALSE
        if token.kind == "string":
            if not token.text:
                self.fail('expected a symbol in quotes, got ""', token)
            self.letters.add(token.text)
            name = f'"{token.text}"'
        elif token.text in self.definitions:
            name = token.text
        else:
            self.fail(
                f"{token.text} is not defined before this; there are {listed(self.definitions)}", token
            )
        place = None
        if self.take("("):
            place = self.expect("name", " (i or j)").text
            self.expect(")")
        allowed = ("i", "j") if self._attending else (None, "i")
        if place not in allowed:
            hint = "(i) or (j) behind a name" if self._attending else "no position, or (i)"
            self.fail(f"expected {hint}, got {'none' if place is None else f'({place})'}", token)
        return atom(f"{name}@{place}") if self._attending else atom(name)

    def prefix(self, operator: Token, value: Formula) -> Formula:
        return negation(value)

    def binary(self, operator: Token, left: Formula, right: Formula) -> Formula:
        return binary(operator.kind, left, right)
