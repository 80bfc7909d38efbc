"""RASP text → statements: cuts a text up, parses each piece, and says well what is wrong with it.

A statement ends with ``;`` or, for ``def`` and ``for``, with its closing brace; the commands of the
REPL (``set example …``, ``examples off``, …) end with their line. Each is parsed by itself, so one
mistake costs one statement. What is not finished yet is handed back: a REPL asks for more of it, at
the end of a file it is an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedToken

from locum.language.rasp.limits import Limits
from locum.language.rasp.mistakes import RaspError, syntax_error

_OPENING = {"LPAR", "LSQB", "LBRACE", "SELECT", "AGGREGATE", "RANGE", "ZIP", "LEN"}
_CLOSING = {"RPAR", "RSQB", "RBRACE"}
#: Statements that begin like this end with their line.
_COMMANDS = {"SET", "SHOW", "KIND", "EXAMPLES", "FULL_DISPLAY", "LEAVE"}
_BLOCKS = {"DEF", "FOR"}


@cache
def grammar() -> Lark:
    """The parser, made once, from the grammar beside this file.

    It does not work out the position of every tree, which would double the time it takes; the few
    that an error needs are found by their tokens (``interpreter.py``).
    """
    text = resources.files("locum.language.rasp").joinpath("rasp.lark").read_text(encoding="utf-8")
    return Lark(text, parser="lalr", lexer="basic", maybe_placeholders=True)


@dataclass(frozen=True)
class Statement:
    """One statement: its tree, or what is wrong with it."""

    tree: Tree[Token] | None
    error: RaspError | None
    line: int


@dataclass(frozen=True)
class Reading:
    """The statements of a text, and whether the last is unfinished (``rest`` has its tokens)."""

    statements: list[Statement]
    rest: list[Token]


def read(text: str, limits: Limits) -> Reading:
    """Cut ``text`` into statements and parse each."""
    if len(text) > limits.text:
        problem = f"the program has {len(text):,} characters; the limit is {limits.text:,}"
        return Reading([Statement(None, RaspError("syntax", problem, 1, 1), 1)], [])
    lines = text.split("\n")
    statements, rest = [], []
    for piece, finished in _pieces(grammar().lex(text), limits):
        statement = _parsed(piece, lines, limits, finished)
        # Unfinished is only what could still become right: a mistake already made is one now.
        if statement.error is not None and statement.error.category == "incomplete-input":
            rest = piece
        else:
            statements.append(statement)
    return Reading(statements, rest)


def unfinished(rest: list[Token], text: str) -> RaspError:
    """The error for a text that ends in the middle of a statement."""
    error = _parse(rest, text.split("\n"), finished=False)
    assert isinstance(error, RaspError)
    return error


def _pieces(tokens: Iterator[Token], limits: Limits) -> Iterator[tuple[list[Token], bool]]:
    """Tokens of one statement at a time, and whether it is finished."""
    piece: list[Token] = []
    open_brackets: list[str] = []
    following = next(tokens, None)
    while following is not None:
        token, following = following, next(tokens, None)
        piece.append(token)
        if token.type in _OPENING:
            open_brackets.append(token.type)
        elif token.type in _CLOSING and open_brackets:
            open_brackets.pop()
        if _ends(piece, open_brackets, following) or len(open_brackets) > limits.nesting:
            yield piece, True
            if len(open_brackets) > limits.nesting:
                return  # whatever follows belongs to this nest
            piece, open_brackets = [], []
    if piece:
        # A command needs no ending but its line, and the text has come to an end.
        finished = piece[0].type in _COMMANDS and not open_brackets and _is_statement(piece)
        yield piece, finished


def _ends(piece: list[Token], open_brackets: list[str], following: Token | None) -> bool:
    first, last = piece[0], piece[-1]
    if first.type in _COMMANDS:
        new_line = following is not None and following.line != last.line
        return last.type == "SEMICOLON" or (new_line and not open_brackets and _is_statement(piece))
    # A ; outside braces ends a statement even if a bracket is missing: `[1, 2;` is one mistake.
    if last.type == "SEMICOLON":
        return "LBRACE" not in open_brackets
    if first.type not in _BLOCKS or last.type != "RBRACE" or open_brackets:
        return False
    # The brace may have closed a dict to loop over, and not the body.
    return first.type == "DEF" or _is_statement(piece)


def _is_statement(piece: list[Token]) -> bool:
    state = grammar().parse_interactive()
    try:
        for token in piece:
            state.feed_token(token)
    except UnexpectedToken:
        return True  # a mistake is not mended by more text
    return "$END" in state.accepts()  # type: ignore[no-untyped-call]


def _parsed(piece: list[Token], lines: list[str], limits: Limits, finished: bool) -> Statement:
    line = piece[0].line or 1
    depth = 0
    for token in piece:
        depth += (token.type in _OPENING) - (token.type in _CLOSING)
        if depth > limits.nesting:
            problem = f"brackets are nested more than {limits.nesting} deep"
            source = lines[(token.line or 1) - 1]
            return Statement(None, RaspError("syntax", problem, token.line, token.column, source), line)
    result = _parse(piece, lines, finished)
    if isinstance(result, RaspError):
        return Statement(None, result, line)
    return Statement(result, None, line)


def _parse(piece: list[Token], lines: list[str], finished: bool) -> Tree[Token] | RaspError:
    state = grammar().parse_interactive()
    try:
        for token in piece:
            state.feed_token(token)
        tree: Tree[Token] = state.feed_eof(piece[-1])  # type: ignore[no-untyped-call]
        return tree
    except UnexpectedToken as problem:
        accepts = set(state.accepts())  # type: ignore[no-untyped-call]
        return syntax_error(problem.token, accepts, piece, lines, at_end_of_input=not finished)
