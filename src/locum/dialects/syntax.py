"""Read expressions with prefix and binary operators: what the dialects' texts have in common.

Nothing is as deep as its text is long: chains of operators are loops, and brackets (and what groups to
the right) are nested :data:`MAX_NESTING` deep at most. Errors have line and column.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, NoReturn, TypeVar

from locum.errors import InputError

Value = TypeVar("Value")

#: Brackets in brackets, prefix operators in a row, and characters of a text.
MAX_NESTING = 100
MAX_PREFIXES = 1_000
MAX_TEXT = 100_000


class DialectError(InputError):
    """A text of a dialect that is wrong: the problem, its line and its column."""

    def __init__(self, dialect: str, problem: str, line: int, column: int) -> None:
        self.dialect, self.problem = dialect, problem
        self.line, self.column = line, column
        super().__init__(f"{dialect}, line {line}, column {column}: {problem}")


@dataclass(frozen=True)
class Token:
    """A piece of text: its kind is the operator itself, or name, string, number, newline, end."""

    kind: str
    text: str
    line: int
    column: int


@dataclass(frozen=True)
class Syntax:
    """The operators of a dialect."""

    dialect: str
    #: Operators of one or more characters; words among them are keywords.
    operators: tuple[str, ...]
    #: Binary operators: how tightly each binds, and whether it groups to the left or to the right.
    binary: Mapping[str, tuple[int, str]]
    prefix: frozenset[str]
    #: Other spellings of operators.
    aliases: Mapping[str, str]

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        symbols = sorted((*self.operators, *self.aliases), key=len, reverse=True)
        shapes = "|".join(
            re.escape(symbol) + (r"(?![A-Za-z0-9_])" if symbol[-1].isalnum() else "")
            for symbol in symbols
        )
        return re.compile(
            r"(?P<newline>\n)|(?P<space>[ \t\r]+|//[^\n]*)"
            rf'|(?P<string>"[^"\n]*")|(?P<number>[0-9]+)|(?P<operator>{shapes})'
            r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
        )

    def tokens(self, text: str) -> list[Token]:
        """Cut a text into tokens; newlines within brackets mean nothing, nor do // comments."""
        if len(text) > MAX_TEXT:
            problem = f"expected at most {MAX_TEXT:,} characters, got {len(text):,}"
            raise DialectError(self.dialect, problem, 1, 1)
        tokens: list[Token] = []
        place, line, start, depth = 0, 1, 0, 0
        while place < len(text):
            match = self._pattern.match(text, place)
            column = place - start + 1
            if match is None:
                problem = f"expected a name, a symbol in quotes or an operator, got {text[place]!r}"
                raise DialectError(self.dialect, problem, line, column)
            kind, piece = str(match.lastgroup), match.group()
            place = match.end()
            if kind == "newline":
                if depth == 0:
                    tokens.append(Token("newline", piece, line, column))
                line, start = line + 1, place
            elif kind == "operator":
                piece = self.aliases.get(piece, piece)
                depth += (piece in "([{") - (piece in ")]}")
                depth = max(depth, 0)
                tokens.append(Token(piece, piece, line, column))
            elif kind == "string":
                tokens.append(Token("string", piece[1:-1], line, column))
            elif kind != "space":
                tokens.append(Token(kind, piece, line, column))
        tokens.append(Token("end", "", line, place - start + 1))
        return tokens


class Parser(ABC, Generic[Value]):
    """Reads expressions token by token and makes values of them as it goes."""

    syntax: Syntax

    def __init__(self, text: str) -> None:
        self._tokens = self.syntax.tokens(text)
        self._place = 0
        self._depth = 0

    @property
    def next(self) -> Token:
        """The token that comes next."""
        return self._tokens[self._place]

    def take(self, *kinds: str) -> Token | None:
        """Take the next token if it is of one of these kinds."""
        token = self.next
        if token.kind not in kinds:
            return None
        self._place += 1
        return token

    def expect(self, kind: str, purpose: str = "") -> Token:
        """Take a token of this kind, or fail."""
        token = self.take(kind)
        if token is None:
            self.fail(f"expected {_called(kind)}{purpose}, got {self._got()}")
        return token

    def fail(self, problem: str, token: Token | None = None) -> NoReturn:
        """Raise an error at a token, by default the next one."""
        token = token or self.next
        raise DialectError(self.syntax.dialect, problem, token.line, token.column)

    def _got(self) -> str:
        token = self.next
        named = {"end": "the end of the text", "newline": "the end of the line"}
        return named.get(token.kind, repr(token.text))

    def lines(self) -> Iterator[None]:
        """Come to each line of the text, or part of one that ``;`` ends: whoever asks reads it."""
        while True:
            while self.take("newline", ";"):
                pass
            if self.next.kind == "end":
                return
            yield
            if self.next.kind not in ("newline", ";", "end"):
                self.fail(f"expected the end of the definition, got {self.next.text!r}")

    def expression(self, tightest: int = 0) -> Value:
        """Read an expression of operators that bind at least so tightly."""
        if self._depth >= MAX_NESTING:
            self.fail(f"expressions are nested more than {MAX_NESTING} deep")
        self._depth += 1
        left = self._unary()
        while self.next.kind in self.syntax.binary:
            binds, side = self.syntax.binary[self.next.kind]
            if binds < tightest:
                break
            operator = self.next
            self._place += 1
            right = self.expression(binds + (side == "left"))
            left = self.binary(operator, left, right)
        self._depth -= 1
        return left

    def _unary(self) -> Value:
        operators = []
        while (prefix := self.prefix_operator()) is not None:
            operators.append(prefix)
            if len(operators) > MAX_PREFIXES:
                self.fail(f"operators are nested more than {MAX_PREFIXES:,} deep", prefix)
        value = self.primary()
        for operator in reversed(operators):
            value = self.prefix(operator, value)
        return value

    def prefix_operator(self) -> Token | None:
        """Take a prefix operator, if one comes next."""
        return self.take(*self.syntax.prefix)

    def primary(self) -> Value:
        """Read a bracket or an atom."""
        if self.take("("):
            value = self.expression()
            self.expect(")")
            return value
        return self.atom()

    @abstractmethod
    def atom(self) -> Value:
        """Read what has no operators of its own."""

    @abstractmethod
    def prefix(self, operator: Token, value: Value) -> Value:
        """Apply a prefix operator."""

    @abstractmethod
    def binary(self, operator: Token, left: Value, right: Value) -> Value:
        """Apply a binary operator."""


def _called(kind: str) -> str:
    return f"a {kind}" if kind in ("name", "string", "number") else kind


def alphabet_of(
    dialect: str, named: Iterable[str], alphabet: Iterable[str] | None, what: str = "program"
) -> tuple[str, ...]:
    """Return the alphabet of a text: that which is said, if it has every symbol, or what it names."""
    symbols = sorted(named)
    letters = tuple(symbols if alphabet is None else dict.fromkeys(alphabet))
    unknown = [symbol for symbol in symbols if symbol not in letters]
    if unknown:
        raise InputError(
            f"{dialect}: expected an alphabet with every symbol of the {what}, got none with "
            f"{listed(unknown)}"
        )
    if not letters:
        raise InputError(f"{dialect}: the {what} names no symbol; try alphabet=… (--alphabet)")
    return letters


def listed(names: Iterable[str]) -> str:
    """Write some names for a message."""
    shown = sorted(names)
    return ", ".join(shown[:8]) + (", …" if len(shown) > 8 else "") if shown else "none"
