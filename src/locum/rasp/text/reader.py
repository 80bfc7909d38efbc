"""Parse RASP text into statements with tables that are stored next to the grammar.

A statement ends with ``;`` or, for ``def`` and ``for``, with its closing brace; the commands of the
REPL (``set example …``, ``examples off``, …) end with their line. Each is parsed by itself, so one
mistake costs one statement. A :class:`Reader` is fed text, a line or a file at a time, and looks at
every token once: a statement over thousands of lines costs no more than one on a single line.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import lark
from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedToken
from lark.grammar import Rule
from lark.lexer import TerminalDef

from locum.budget import Budget
from locum.rasp.text.limits import Limits
from locum.rasp.text.mistakes import CLOSING, COMMANDS, OPENING, RaspError, syntax_error

_FOLDER = resources.files("locum.rasp.text")
#: Widths of patterns are capped, as their greatest differs between versions of Python.
_WIDEST = 2**16


@cache
def grammar() -> Lark:
    """Make the parser, once, from the tables that are kept if they are of this grammar and this Lark.

    It does not work out the position of every tree, which would double the time it takes; the few
    that an error needs are found by their tokens (``interpreter.py``).

    >>> grammar().parse("x = 1;").data == "start"
    True
    """
    kept = json.loads(_FOLDER.joinpath("tables.json").read_text(encoding="utf-8"))
    if kept["made_from"] != _made_from():
        return worked_out()
    return Lark.load(_as_lark_has_them(kept))


def worked_out() -> Lark:
    """Work out the parser from the grammar.

    >>> worked_out().parse("x = 1;").data == "start"
    True
    """
    return Lark(_text(), parser="lalr", lexer="basic", maybe_placeholders=True)


def tables(parser: Lark) -> dict[str, Any]:
    """Return the tables of a parser as plain data, the same for each run of Python.

    Lark numbers its states and tokens in an order that differs from run to run; here tokens are
    numbered by name, and states as they are met from the first on.

    >>> tables(grammar())["data"]["parser"]["parser"]["start_states"]
    {'start': 0}
    """
    data, memo = parser.memo_serialize([TerminalDef, Rule])
    for entry in memo.values():
        if "_width" in entry.get("pattern", {}):
            least, most = entry["pattern"]["_width"]
            entry["pattern"]["_width"] = least, min(most, _WIDEST)
    table = data["parser"]["parser"]
    name_of: dict[int, str] = table["tokens"]
    names = sorted(name_of.values())
    actions = {
        state: sorted((names.index(name_of[token]), action) for token, action in row.items())
        for state, row in table["states"].items()
    }
    met = list(table["start_states"].values())
    for state in met:
        met += [to for _, (kind, to) in actions[state] if kind == 0 and to not in met]
    number = {state: k for k, state in enumerate(met)}
    states = {
        number[state]: {
            token: (kind, number[to] if kind == 0 else to) for token, (kind, to) in actions[state]
        }
        for state in met
    }
    data["parser"]["parser"] = {
        "tokens": dict(enumerate(names)),
        "states": states,
        **{
            key: {start: number[state] for start, state in table[key].items()}
            for key in ("start_states", "end_states")
        },
    }
    plain: dict[str, Any] = json.loads(json.dumps({"data": data, "memo": memo}))
    return {"made_from": _made_from(), **plain}


def _as_lark_has_them(kept: dict[str, Any]) -> Any:
    """Return the tables with the numbers as keys that JSON made strings of."""
    table = kept["data"]["parser"]["parser"]
    table["tokens"] = _numbered(table["tokens"])
    table["states"] = _numbered({state: _numbered(row) for state, row in table["states"].items()})
    return {"data": kept["data"], "memo": _numbered(kept["memo"])}


def _numbered(entries: dict[str, Any]) -> dict[int, Any]:
    return {int(key): value for key, value in entries.items()}


def _text() -> str:
    return _FOLDER.joinpath("rasp.lark").read_text(encoding="utf-8")


def _made_from() -> dict[str, str]:
    """Name what tables are made from: the grammar, and the version of Lark."""
    return {"lark": lark.__version__, "grammar": hashlib.sha256(_text().encode()).hexdigest()}


if __name__ == "__main__":
    made = json.dumps(tables(worked_out()), separators=(",", ":"))
    Path(__file__).with_name("tables.json").write_text(f"{made}\n", encoding="utf-8")


_BLOCKS = {"DEF", "FOR"}

#: Steps that it takes to begin with a piece of text, to read one token, to describe one mistake.
_FEEDING, _TOKEN, _MISTAKE = 6, 2.4, 50


@cache
def _without_trees() -> Any:
    """Configure a parser that only sees whether a text is right."""
    configuration = copy(grammar().parse_interactive().parser_state.parse_conf)
    configuration.callbacks = {}
    return configuration


def tokens(text: str) -> Iterator[Token]:
    """Cut ``text`` into tokens; only where ``sum l in`` follows is ``sum`` a word of the language."""
    ahead = _Lookahead()
    for token in _lexed(text):
        yield from ahead.add(token)
    yield from ahead.rest()


def _lexed(text: str) -> Iterator[Token]:
    # Not Lark.lex, which makes a new lexer for every text, that is for every line of a REPL.
    lexer = grammar().parse_interactive(text).lexer_thread
    return iter(lexer.lex(None))  # type: ignore[no-untyped-call]


@dataclass(eq=False)
class Source:
    """A text that statements and functions come from, for errors that point into it."""

    lines: list[str] = field(default_factory=list)

    def line(self, number: int) -> str:
        """Return a line by its number, counted from 1."""
        return self.lines[number - 1] if number <= len(self.lines) else ""


@dataclass(frozen=True)
class Statement:
    """One statement: its tree, or what is wrong with it."""

    tree: Tree[Token] | None
    error: RaspError | None
    line: int
    source: Source

    @property
    def inner(self) -> Any:
        """The tree of a statement that was read without an error."""
        assert self.tree is not None
        return self.tree.children[0]

    def located(self, error: RaspError) -> RaspError:
        """Give an error its line of the program (that of the statement, if nothing nearer is known)."""
        number = error.line or self.line
        source = self.source.line(number)
        column = error.column or 1 + len(source) - len(source.lstrip())
        return error.at(number, column, source)


class Reader:
    """Reads a text piece by piece and hands out each statement as soon as it is finished."""

    def __init__(self, limits: Limits, budget: Budget | None = None) -> None:
        self.limits = limits
        self.budget = budget or Budget()
        self.source = Source()
        self._characters = 0
        self._ahead = _Lookahead()
        self._piece = _Piece()

    @property
    def waiting(self) -> bool:
        """Whether a statement has been begun and not finished."""
        return bool(self._piece.tokens or self._ahead.tokens)

    def feed(self, text: str) -> Iterator[Statement]:
        """Read more text (whole lines) and give the statements that it finishes."""
        self.budget.spend_on_text(_FEEDING)
        if not self.waiting:
            self.source, self._characters = Source(), 0
        self._characters += len(text)
        if self._characters > self.limits.text:
            problem = f"the program has more than {self.limits.text:,} characters, the limit"
            self._piece, self._ahead = _Piece(), _Lookahead()
            yield Statement(None, RaspError("syntax", problem, 1, 1), 1, self.source)
            return
        before = len(self.source.lines)
        self.source.lines += text.removesuffix("\n").split("\n")
        for token in _lexed(text):
            self.budget.spend_on_text(_TOKEN)
            if before:
                token.line = (token.line or 1) + before
                token.end_line = (token.end_line or 1) + before
            for clear in self._ahead.add(token):
                yield from self._add(clear)
                if self._piece.is_lost:
                    self._piece = _Piece()
                    return  # whatever follows belongs to that nest of brackets
        yield from self._end_of_line()

    def end(self) -> Iterator[Statement]:
        """Give the last statement, which the text has not finished."""
        for token in self._ahead.rest():
            yield from self._add(token)
        if self._piece.tokens:
            yield self._finished(at_end_of_input=True)

    def _add(self, token: Token) -> Iterable[Statement]:
        """Parse one token and give the statements that end with it, or with the line before it."""
        piece = self._piece
        ended: tuple[Statement, ...] = ()
        if piece.is_command and piece.tokens[-1].line != token.line and piece.ends_with_line():
            ended = (self._finished(),)
            piece = self._piece
        piece.add(token)
        if len(piece.open_brackets) > self.limits.nesting:
            piece.is_lost = True
            return (*ended, self._too_deep(token))
        return (*ended, self._finished()) if piece.ends() else ended

    def _end_of_line(self) -> Iterator[Statement]:
        if self._piece.is_command:
            self.budget.spend_on_text(_MISTAKE)  # what it takes to see whether it is complete
            for token in self._ahead.rest():
                yield from self._add(token)
        # A mistake already made is reported now, and not when the statement ends.
        if self._piece.ends_with_line() or self._piece.is_wrong:
            yield self._finished()

    def _finished(self, at_end_of_input: bool = False) -> Statement:
        piece, self._piece = self._piece, _Piece()
        result = piece.parsed(self.source, at_end_of_input)
        line = piece.tokens[0].line or 1
        if isinstance(result, RaspError):
            self.budget.spend_on_text(_MISTAKE)
            return Statement(None, result, line, self.source)
        return Statement(result, None, line, self.source)

    def _too_deep(self, token: Token) -> Statement:
        problem = f"brackets are nested more than {self.limits.nesting} deep"
        line = token.line or 1
        error = RaspError("syntax", problem, line, token.column, self.source.line(line))
        return Statement(None, error, self._piece.tokens[0].line or 1, self.source)


def read(text: str, limits: Limits, budget: Budget | None = None) -> Iterator[Statement]:
    """Cut ``text`` into statements and parse each; an unfinished last one is a mistake."""
    reader = Reader(limits, budget)
    yield from reader.feed(text)
    yield from reader.end()


class _Lookahead:
    """Holds tokens back until it is clear whether a ``sum`` begins a family of heads."""

    def __init__(self) -> None:
        self.tokens: list[Token] = []

    def add(self, token: Token) -> Iterable[Token]:
        """Take a token, and give those whose meaning is clear now."""
        if not self.tokens and token != "sum":
            return (token,)
        self.tokens.append(token)
        return self._clear()

    def rest(self) -> Iterable[Token]:
        """Give what is left: no more tokens will come."""
        rest, self.tokens = self.tokens, []
        return rest

    def _clear(self) -> Iterator[Token]:
        held = self.tokens
        while held:
            if _is_sum(held[0]) and len(held) < 3 and all(token.type == "NAME" for token in held):
                return
            if _is_sum(held[0]) and [token.type for token in held[1:3]] == ["NAME", "IN"]:
                held[0] = Token.new_borrow_pos("SUM", "sum", held[0])
            yield held.pop(0)


def _is_sum(token: Token) -> bool:
    return token.type == "NAME" and token.value == "sum"


class _Piece:
    """The tokens of one statement, parsed when it matters: one that a text never ends is not parsed."""

    def __init__(self) -> None:
        self.tokens: list[Token] = []
        self.open_brackets: list[str] = []
        #: Whether its brackets are nested too deeply to go on.
        self.is_lost = False
        self._parser = grammar().parse_interactive()
        self._parsed = 0
        #: The token at which the grammar stopped, and what could have stood there instead.
        self._mistake: tuple[Token, set[str]] | None = None

    def add(self, token: Token) -> None:
        """Take one more token."""
        self.tokens.append(token)
        if token.type in OPENING:
            self.open_brackets.append(token.type)
        elif token.type in CLOSING and self.open_brackets:
            self.open_brackets.pop()

    def _parse(self) -> None:
        """Parse the tokens that came in since the last time, up to the first mistake."""
        new, self._parsed = self.tokens[self._parsed :], len(self.tokens)
        if self._mistake is None:
            try:
                for token in new:
                    self._parser.feed_token(token)
            except UnexpectedToken as problem:
                self._mistake = problem.token, self._accepted()

    @property
    def is_wrong(self) -> bool:
        """Whether the grammar has stopped at a token, and no brace is open."""
        self._parse()
        return self._mistake is not None and "LBRACE" not in self.open_brackets

    @property
    def is_command(self) -> bool:
        """Whether it has begun as a command of the REPL."""
        return bool(self.tokens) and self.tokens[0].type in COMMANDS

    def ends(self) -> bool:
        """Return whether its last token ends it."""
        last = self.tokens[-1].type
        if last == "SEMICOLON":
            # Outside braces even if a bracket is missing: `[1, 2;` is one mistake.
            return self.is_command or "LBRACE" not in self.open_brackets
        if last != "RBRACE" or self.open_brackets or self.tokens[0].type not in _BLOCKS:
            return False
        # The brace may have closed a dict to loop over, and not the body.
        return self.tokens[0].type == "DEF" or self._is_statement()

    def ends_with_line(self) -> bool:
        """Return whether it is a command that is complete at the end of its line."""
        return self.is_command and not self.open_brackets and self._is_statement()

    def _is_statement(self) -> bool:
        self._parse()
        # A mistake is not mended by more text.
        return self._mistake is not None or self._accepts("$END")

    def _accepted(self) -> set[str]:
        # Not Lark's own `accepts`, which copies the lexer, too, for each word that might follow.
        words = self._parser.choices()  # type: ignore[no-untyped-call]
        return {word for word in words if word.isupper() and self._accepts(word)}

    def _accepts(self, word: str) -> bool:
        trial = self._parser.parser_state.copy(deepcopy_values=False)
        trial.parse_conf = _without_trees()
        try:
            trial.feed_token(Token(word, ""), is_end=word == "$END")
        except UnexpectedToken:
            return False
        return True

    def parsed(self, source: Source, at_end_of_input: bool) -> Tree[Token] | RaspError:
        """Return the tree of the statement, or what is wrong with it."""
        self._parse()
        if self._mistake is None:
            try:
                tree: Any = self._parser.feed_eof(self.tokens[-1])  # type: ignore[no-untyped-call]
                return tree  # type: ignore[no-any-return]
            except UnexpectedToken as problem:
                self._mistake = problem.token, self._accepted()
        token, accepted = self._mistake
        return syntax_error(token, accepted, self.tokens, source.lines, at_end_of_input)
