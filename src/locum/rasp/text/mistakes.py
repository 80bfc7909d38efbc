"""Errors of RASP programs: a category, a sentence, a place with a caret.

Categories are those of Weiss's implementation, as the conformance corpus has them, so that a program
that fails there for one reason fails here for the same. :data:`CATEGORIES` is the one table that
says which of our errors belongs to which.
"""

from __future__ import annotations

from collections.abc import Sequence

from lark import Token

from locum.errors import ExecutionError, GraphError, InputError, LimitError, LocumError

#: Our errors → the categories of the corpus. Execution and limit errors are told apart by their
#: ``kind``: the Python error behind it, or the rule that was broken.
CATEGORIES: dict[str, str] = {
    "mixture": "type",  # a sequence of strings and numbers
    "not real": "type",  # a power that would be complex
    "missing": "index",  # a list or dict asked for what it does not have
    "average": "runtime:Exception",  # a mean of strings or bools
    "refused": "runtime:Exception",  # no meaning in this domain
    "too large": "runtime:OverflowError",
    "too much": "runtime:Exception",  # more work or memory than the limits allow
    "too deep": "recursion",
    "ZeroDivisionError": "runtime:ZeroDivisionError",
    "OverflowError": "runtime:OverflowError",
    "TypeError": "runtime:TypeError",
    "ValueError": "runtime:ValueError",
    InputError.__name__: "type",
    GraphError.__name__: "type",
}


class RaspError(LocumError):
    """A statement that cannot be read or run."""

    def __init__(
        self,
        category: str,
        message: str,
        line: int | None = None,
        column: int | None = None,
        source: str = "",
        width: int = 1,
        is_limit: bool = False,
        file: str = "",
    ) -> None:
        self.category = category
        self.message = message
        self.line = line
        self.column = column
        self.source = source
        self.width = width
        #: Whether the program asked too much of the machine (``limits.py``).
        self.is_limit = is_limit
        #: The loaded file that the message names, if it is not in the text that was executed.
        self.file = file
        super().__init__(message)

    def located(self, line: int, column: int, width: int) -> RaspError:
        """Return the same error with a place, unless it has one."""
        if self.line is not None:
            return self
        located = self.at(line, column, "")
        located.width = width
        return located

    def at(self, line: int, column: int, source: str) -> RaspError:
        """Return the same error at another place."""
        known = self.width, self.is_limit, self.file
        return RaspError(self.category, self.message, line, column, source, *known)

    def reworded(self, message: str, file: str = "") -> RaspError:
        """Return the same error with another message, and without a place."""
        return RaspError(self.category, message, is_limit=self.is_limit, file=file or self.file)

    def pretty(self) -> str:
        """Write sentence, place, source line and caret, for people."""
        if self.line is None:
            return self.message
        place = f"line {self.line}, column {self.column}: {self.message}"
        if not self.source.strip():
            return place
        shown, start = _window(self.source, self.column or 1)
        caret = " " * start + "^" * max(1, min(self.width, len(shown) - start))
        return f"{place}\n  {shown}\n  {caret}"


def from_execution(error: LocumError) -> RaspError:
    """Put an error of the graph or of a run into RASP's categories."""
    if isinstance(error, RaspError):
        return error
    kind = error.kind if isinstance(error, (ExecutionError, LimitError)) else type(error).__name__
    is_limit = isinstance(error, LimitError)
    return RaspError(CATEGORIES.get(kind, "type"), cut(str(error), 1_000), is_limit=is_limit)


def cut(text: str, limit: int = 60) -> str:
    """Shorten a text of the program for a message.

    >>> cut("abc"), cut("a" * 100, limit=5)
    ('abc', 'aaaa…')
    """
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _window(source: str, column: int, width: int = 76) -> tuple[str, int]:
    """Cut a long line to the part around a column, and say where in it the column is."""
    source = source.replace("\t", " ").rstrip()
    start = 0 if len(source) <= width else max(0, column - 1 - width // 2)
    return source[start : start + width], column - 1 - start


# Syntax -----------------------------------------------------------------------------------------

_KEYWORDS = {
    "SET", "SHOW", "EXAMPLE", "EXAMPLES", "KIND", "SWITCH", "LOAD", "DRAW", "LEAVE", "DEF", "FOR", "IN",
    "RETURN", "NOT", "AND_OR", "IF", "ELSE", "ROUND", "INDICATOR", "FULL_DISPLAY",
}  # fmt: skip
#: Statements that begin like this end with their line.
COMMANDS = {"SET", "SHOW", "KIND", "EXAMPLES", "FULL_DISPLAY", "LEAVE"}
CLOSING = {"RPAR": ")", "RSQB": "]", "RBRACE": "}"}
OPENING = {
    "LPAR": "RPAR", "LSQB": "RSQB", "LBRACE": "RBRACE", "SELECT": "RPAR", "AGGREGATE": "RPAR",
    "RANGE": "RPAR", "ZIP": "RPAR", "LEN": "RPAR",
}  # fmt: skip
#: What a form looks like, for the places where only one thing can follow.
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
    """Describe what is wrong with a statement that the grammar does not accept, and where.

    The grammar stopped at ``token``, where only ``accepts`` could have followed.
    """
    number = next((i for i, other in enumerate(piece) if other is token), len(piece))
    message, guilty = _Diagnosis(piece, number, accepts).verdict()
    category = "incomplete-input" if number == len(piece) and at_end_of_input else "syntax"
    if guilty < len(piece):
        place = piece[guilty]
        line, column, width = place.line or 1, place.column or 1, len(place.value)
    else:  # just after the last token before
        place = piece[number - 1]
        line, column, width = place.end_line or 1, place.end_column or 1, 1
    source = lines[line - 1] if line <= len(lines) else ""
    return RaspError(category, message, line, column, source, width)


class _Diagnosis:
    """Rules, tried in order, that name a mistake from the token at which the grammar stopped."""

    def __init__(self, piece: Sequence[Token], number: int, accepts: set[str]) -> None:
        self.piece, self.number, self.accepts = piece, number, accepts
        self.token = piece[number] if number < len(piece) else None
        self.previous = piece[number - 1] if number else None
        self.bracket = self._innermost_bracket()
        #: Where to point when something is missing *before* the token.
        self.after_previous = len(piece)

    def verdict(self) -> tuple[str, int]:
        """Return a sentence, and the number of the token to point at."""
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
