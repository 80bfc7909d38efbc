"""Define the errors of RASP programs: a category, a message, and a position marked by a caret.

The conformance corpus contains the errors of Weiss's implementation, with the same categories.
:data:`CATEGORIES` maps Locum's errors to categories.
"""

from __future__ import annotations

from collections.abc import Sequence

from lark import Token

from locum.errors import ExecutionError, GraphError, InputError, LimitError, LocumError

#: Map Locum's errors to the categories of the corpus. Execution and limit errors are distinguished by
#: their ``kind``: the Python error that caused them, or the violated rule.
CATEGORIES: dict[str, str] = {
    "mixture": "type",  # a sequence of strings and numbers
    "not real": "type",  # a power that would be complex
    "missing": "index",  # a key or index that is not in a list or dict
    "average": "runtime:Exception",  # a mean of strings or booleans
    "refused": "runtime:Exception",  # no meaning in this domain
    "too large": "runtime:OverflowError",
    "too much": "runtime:Exception",  # work or memory above the limits
    "too deep": "recursion",
    "ZeroDivisionError": "runtime:ZeroDivisionError",
    "OverflowError": "runtime:OverflowError",
    "TypeError": "runtime:TypeError",
    "ValueError": "runtime:ValueError",
    InputError.__name__: "type",
    GraphError.__name__: "type",
}


class RaspError(LocumError):
    """Raised for a statement that cannot be parsed or run."""

    def __init__(
        self,
        category: str,
        message: str,
        line: int | None = None,
        column: int | None = None,
        source: str = "",
        width: int = 1,
        file: str = "",
    ) -> None:
        self.category = category
        self.message = message
        self.line = line
        self.column = column
        self.source = source
        self.width = width
        #: The loaded file that the message names, if the error is not in the executed text.
        self.file = file
        super().__init__(message)

    def located(self, line: int, column: int, width: int) -> RaspError:
        """Return the same error with a position in the text, unless the error already has a
        position.
        """
        if self.line is not None:
            return self
        located = self.at(line, column, "")
        located.width = width
        return located

    def at(self, line: int, column: int, source: str) -> RaspError:
        """Return the same error at the given position, with its source line."""
        return RaspError(self.category, self.message, line, column, source, self.width, self.file)

    def reworded(self, message: str, file: str = "") -> RaspError:
        """Return the same error with another message and without a position."""
        return RaspError(self.category, message, file=file or self.file)

    def pretty(self) -> str:
        """Return the message with its position, the source line and a caret as text."""
        if self.line is None:
            return self.message
        place = f"line {self.line}, column {self.column}: {self.message}"
        if not self.source.strip():
            return place
        shown, start = _window(self.source, self.column or 1)
        caret = " " * start + "^" * max(1, min(self.width, len(shown) - start))
        return f"{place}\n  {shown}\n  {caret}"


def from_execution(error: LocumError) -> RaspError:
    """Convert an error of the graph or of a program run to an error with a RASP category."""
    if isinstance(error, RaspError):
        return error
    kind = error.kind if isinstance(error, (ExecutionError, LimitError)) else type(error).__name__
    return RaspError(CATEGORIES.get(kind, "type"), cut(str(error), 1_000))


def cut(text: str, limit: int = 60) -> str:
    """Shorten program text to at most ``limit`` characters for a message.

    >>> cut("abc"), cut("a" * 100, limit=5)
    ('abc', 'aaaa…')
    """
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _window(source: str, column: int, width: int = 76) -> tuple[str, int]:
    """Cut a long line around ``column``; return the remaining part and the column index in it."""
    source = source.replace("\t", " ").rstrip()
    start = 0 if len(source) <= width else max(0, column - 1 - width // 2)
    return source[start : start + width], column - 1 - start


# Syntax -----------------------------------------------------------------------------------------

_KEYWORDS = {
    "SET", "SHOW", "EXAMPLE", "EXAMPLES", "KIND", "SWITCH", "LOAD", "DRAW", "LEAVE", "DEF", "FOR", "IN",
    "RETURN", "NOT", "AND_OR", "IF", "ELSE", "ROUND", "INDICATOR", "FULL_DISPLAY",
}  # fmt: skip
#: Statements that start with these tokens end with their line.
COMMANDS = {"SET", "SHOW", "KIND", "EXAMPLES", "FULL_DISPLAY", "LEAVE"}
CLOSING = {"RPAR": ")", "RSQB": "]", "RBRACE": "}"}
OPENING = {
    "LPAR": "RPAR", "LSQB": "RSQB", "LBRACE": "RBRACE", "SELECT": "RPAR", "AGGREGATE": "RPAR",
    "RANGE": "RPAR", "ZIP": "RPAR", "LEN": "RPAR",
}  # fmt: skip
#: Messages with examples, for positions at which at most three kinds of tokens can follow.
_FORMS = {
    "RETURN": "a function ends with return: `def f(x) { y = x + 1; return y; }`",
    "SWITCH": "expected on or off: `examples off`",
    "STRING": 'expected a file name in quotes: `load "file";`',
    "EXAMPLE": 'expected example: `set example "hello"`',
    "ELSE": "a ternary needs an else: `a if condition else b`",
    "LBRACE": "expected an opening {",
    "NAME": "expected a name",
}


def syntax_error(
    token: Token,
    accepts: set[str],
    piece: Sequence[Token],
    lines: Sequence[str],
    at_end_of_input: bool,
) -> RaspError:
    """Return the error for a statement that the grammar does not accept, with its position.

    The parser stopped at ``token``, where only the types of tokens in ``accepts`` are allowed.
    """
    number = next((i for i, other in enumerate(piece) if other is token), len(piece))
    message, guilty = _Diagnosis(piece, number, accepts).verdict()
    category = "incomplete-input" if number == len(piece) and at_end_of_input else "syntax"
    if guilty < len(piece):
        place = piece[guilty]
        line, column, width = place.line or 1, place.column or 1, len(place.value)
    else:  # just after the previous token
        place = piece[number - 1]
        line, column, width = place.end_line or 1, place.end_column or 1, 1
    source = lines[line - 1] if line <= len(lines) else ""
    return RaspError(category, message, line, column, source, width)


class _Diagnosis:
    """Rules that explain a syntax error from the token at which the parser stopped, tried in order."""

    def __init__(self, piece: Sequence[Token], number: int, accepts: set[str]) -> None:
        self.piece, self.number, self.accepts = piece, number, accepts
        self.token = piece[number] if number < len(piece) else None
        self.previous = piece[number - 1] if number else None
        self.bracket = self._innermost_bracket()
        #: The index to report if something is missing *before* the token.
        self.after_previous = len(piece)

    def verdict(self) -> tuple[str, int]:
        """Return the error message and the index of the token that the message refers to."""
        rules = (
            self.stray_character, self.command, self.keyword_as_name, self.inside_a_call,
            self.missing_semicolon, self.missing_bracket, self.assignment, self.form, self.expression,
        )  # fmt: skip
        return next(mistake for rule in rules if (mistake := rule()) is not None)

    @property
    def here(self) -> str:
        return "the end of the input" if self.token is None else f"{cut(self.token.value)!r}"

    def is_a(self, token: Token | None, *types: str) -> bool:
        return token is not None and token.type in types

    def stray_character(self) -> tuple[str, int] | None:
        for number in (self.number - 1, self.number):
            if 0 <= number < len(self.piece) and self.piece[number].type == "BAD":
                return _stray(self.piece[number].value), number
        return None

    def command(self) -> tuple[str, int] | None:
        if self.is_a(self.token, "SEMICOLON") and self.piece[0].type in COMMANDS and self.number > 1:
            return f"a command such as {self.piece[0].value} ends with its line, without ;", self.number
        return None

    def keyword_as_name(self) -> tuple[str, int] | None:
        words = "{!r} is a keyword and cannot be a name"
        if self.is_a(self.token, "EQUAL") and self.previous and self.previous.type in _KEYWORDS:
            return words.format(self.previous.value), self.number - 1
        following = self.piece[self.number + 1] if self.number + 1 < len(self.piece) else None
        if self.token and self.token.type in _KEYWORDS:
            if self.is_a(following, "EQUAL") or self.accepts == {"NAME"}:
                return words.format(self.token.value), self.number
            if self.token.type == "RETURN":
                return "return belongs at the end of a function: `def f(x) { return x; }`", self.number
        return None

    def inside_a_call(self) -> tuple[str, int] | None:
        if self.token is None or self.is_a(self.token, "SEMICOLON", "RSQB", "RBRACE"):
            return None
        if self.bracket == "SELECT":
            if self.is_a(self.previous, "COMMA") and self.is_a(self.token, "EQUAL", "PREDICATE"):
                odd = "".join(t.value for t in self.piece[self.number :][:2] if t.type != "RPAR")
                return f"{odd!r} is not a comparison: select takes ==, !=, <, <=, > or >=", self.number
            return (
                "select needs keys, queries and a comparison: `select(keys, queries, ==)`; "
                f"found {self.here}"
            ), self.number
        if self.bracket == "AGGREGATE" and self.is_a(self.token, "RPAR", "COMMA"):
            return (
                "aggregate needs a selector, values and, optionally, a default: "
                f"`aggregate(selector, values, 0)`; found {self.here}"
            ), self.number
        return None

    def missing_semicolon(self) -> tuple[str, int] | None:
        if "SEMICOLON" not in self.accepts or self.is_a(self.token, "EQUAL"):
            return None
        if self.is_a(self.token, "RPAR", "RSQB"):
            return f"unexpected {self.here}: nothing is open that it could close", self.number
        return f"a ; is missing after {self.previous_text()}", self.after_previous

    def missing_bracket(self) -> tuple[str, int] | None:
        if self.bracket is None:
            return None
        closing = OPENING[self.bracket]
        if closing in self.accepts and (
            self.token is None or self.token.type in ("SEMICOLON", *CLOSING) or closing == "RBRACE"
        ):
            return f"a closing {CLOSING[closing]} is missing before {self.here}", self.after_previous
        return None

    def assignment(self) -> tuple[str, int] | None:
        if not self.is_a(self.token, "EQUAL"):
            return None
        return "only names can be assigned to, with one =: `x = 1;` or `a, b = 1, 2;`", self.number

    def form(self) -> tuple[str, int] | None:
        if "RETURN" in self.accepts and self.is_a(self.token, "RBRACE"):
            return _FORMS["RETURN"], self.number
        in_a_dict = self.is_a(self.previous, "COLON", "COMMA")
        if self.is_a(self.token, "RBRACE") and "NAME" in self.accepts and not in_a_dict:
            return "expected a statement, but found '}': a body cannot be empty", self.number
        if len(self.accepts) <= 3:
            for name, words in _FORMS.items():
                if name in self.accepts:
                    return f"{words}; found {self.here}", self.number
            if self.accepts & {"RPAR", "RSQB"}:
                signs = {**CLOSING, "COMMA": ","}
                possible = [signs[name] for name in sorted(self.accepts) if name in signs]
                expected = " or ".join(f"{sign!r}" for sign in possible)
                return f"expected {expected}, but found {self.here}", self.number
        return None

    def expression(self) -> tuple[str, int]:
        if "NAME" in self.accepts:
            return f"expected an expression, but found {self.here}", self.number
        return f"unexpected {self.here}", self.number

    def previous_text(self) -> str:
        return "this" if self.previous is None else f"{cut(self.previous.value)!r}"

    def _innermost_bracket(self) -> str | None:
        stack: list[str] = []
        for token in self.piece[: self.number]:
            if token.type in OPENING:
                stack.append(token.type)
            elif token.type in CLOSING and stack:
                stack.pop()
        return stack[-1] if stack else None


def _stray(character: str) -> str:
    if character == '"':
        return 'the string is not closed: it needs a second " on the same line'
    if character == "'":
        return 'strings are written with double quotes: "a"'
    return f"RASP has no character {character!r}"
