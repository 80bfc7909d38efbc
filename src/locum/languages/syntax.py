"""Parse programs, formulas, automata and expressions with Lark grammars.

Syntax errors contain the line and the column.

A reader consists of a grammar and methods for its rules. No function is recursive, and brackets are
nested at most :data:`MAX_NESTING` deep.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, ClassVar, NoReturn

from lark import Lark, Token, Transformer_NonRecursive
from lark.exceptions import UnexpectedCharacters, UnexpectedToken, VisitError

from locum.errors import InputError

#: Maximum depth of brackets in all texts, and of right-associative operators in LTL and B-RASP.
MAX_NESTING = 100
#: Maximum number of prefix operators in a chain, in LTL and B-RASP.
MAX_PREFIXES = 1_000
#: Maximum number of characters of a text.
MAX_TEXT = 100_000

#: Terminals that several grammars share. A definition ends at ``;`` or, outside brackets, at the end of
#: its line.
COMMON = r"""
_END: /[;\n]/
NAME: /[A-Za-z_][A-Za-z0-9_]*/
STRING: /"[^"\n]*"/
NUMBER: /[0-9]+/
%ignore /[ \t\r]+|\/\/[^\n]*/
"""


class DialectError(InputError):
    """A syntax error in a text, with its line and column."""

    def __init__(self, dialect: str, problem: str, line: int, column: int) -> None:
        self.dialect, self.problem = dialect, problem
        self.line, self.column = line, column
        super().__init__(f"{dialect}, line {line}, column {column}: {problem}")


class _Brackets:
    """A filter of tokens that drops newlines within brackets, and rejects brackets nested too
    deeply.
    """

    always_accept = ()

    def process(self, tokens: Iterator[Token]) -> Iterator[Token]:
        """Yield the tokens of a text, except newlines within brackets."""
        depth = 0
        for token in tokens:
            depth = max(depth + (token in "([") - (token in ")]"), 0)
            if depth > MAX_NESTING:
                raise _NestingError(token)
            if depth == 0 or token != "\n":
                yield token


class _NestingError(Exception):
    def __init__(self, token: Token) -> None:
        self.token = token


@cache
def _parser(grammar: str) -> Lark:
    return Lark(grammar, parser="lalr", lexer="basic", postlex=_Brackets(), maybe_placeholders=False)


class Reader(Transformer_NonRecursive[Token, Any]):
    """A parser that calls its methods for grammar rules, from the leaves of the tree to the root."""

    dialect: ClassVar[str]
    grammar: ClassVar[str]
    #: Terminals with their descriptions in errors. An error names the first one that could follow.
    expected: ClassVar[dict[str, str]] = {}

    def read(self, text: str) -> Any:
        """Parse a text, and return the value of the whole text."""
        if len(text) > MAX_TEXT:
            self.fail(f"expected at most {MAX_TEXT:,} characters, got {len(text):,}")
        try:
            return self.transform(_parser(self.grammar).parse(text))
        except VisitError as error:
            raise error.orig_exc from None
        except _NestingError as error:
            self.fail(f"expressions are nested more than {MAX_NESTING} deep", error.token)
        except UnexpectedCharacters as error:
            place = Token("", "", line=error.line, column=error.column)
            self.fail(self.describe_character(error.char), place)
        except UnexpectedToken as error:
            token = error.token
            if token.type == "$END":
                line, column = text.count("\n") + 1, len(text) - text.rfind("\n")
                token = Token("$END", "", line=line, column=column)
            before = [
                t for t in error.interactive_parser.parser_state.value_stack if isinstance(t, Token)
            ]
            self.fail(self.describe(token, error.accepts, before), token)

    def describe_character(self, character: str) -> str:
        """Return the error message for a character with which no token begins."""
        return f"expected a name, a symbol in quotes or an operator, got {character!r}"

    def describe(self, token: Token, options: set[str], before: list[Token]) -> str:
        """Return the error message for a token where only the types in ``options`` can follow."""
        what = next((words for name, words in self.expected.items() if name in options), "")
        got = {"$END": "the end of the text", "_END": "the end of the line"}
        problem = f"expected {what}, got {got.get(token.type, repr(str(token)))}"
        opened = next((t for t in reversed(before) if t in ("(", "[")), None)
        if token.type == "$END" and opened is not None:
            problem += f"; {opened} is open at line {opened.line}, column {opened.column}"
        return problem

    def fail(self, problem: str, token: Token | None = None) -> NoReturn:
        """Raise an error at a token, by default at the beginning of the text."""
        line, column = (1, 1) if token is None else (token.line or 1, token.column or 1)
        raise DialectError(self.dialect, problem, line, column)

    def symbol_of(self, token: Token) -> str:
        """Return the symbol of a token in quotes; an empty symbol raises an error."""
        if len(token) == 2:
            self.fail('expected a symbol in quotes, got ""', token)
        return str(token[1:-1])


def alphabet_of(
    dialect: str, named: Iterable[str], alphabet: Iterable[str] | None, what: str = "program"
) -> tuple[str, ...]:
    """Return ``alphabet``, which must contain every symbol of a text, without repetitions.

    If ``alphabet`` is None, the sorted symbols of the text are returned.
    """
    symbols = sorted(named)
    letters = tuple(symbols if alphabet is None else dict.fromkeys(alphabet))
    unknown = [symbol for symbol in symbols if symbol not in letters]
    if unknown:
        raise InputError(
            f"{dialect}: expected an alphabet with every symbol of the {what}, got none with "
            f"{listed(unknown)}"
        )
    if not letters:
        raise InputError(
            f"{dialect}: expected an alphabet, since the {what} contains no symbol; try alphabet=… "
            "(--alphabet)"
        )
    return letters


def listed(names: Iterable[str]) -> str:
    """Format up to eight names for a message."""
    shown = sorted(names)
    return ", ".join(shown[:8]) + (", …" if len(shown) > 8 else "") if shown else "none"
