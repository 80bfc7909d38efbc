"""Parse RASP text into statements, with parser tables that are stored next to the grammar.

A statement ends with ``;`` or, for ``def`` and ``for``, with its closing brace. REPL commands (``set
example …``, ``examples off``, …) end with their line, unless a bracket is open. Statements are parsed
separately, so the statements after a syntax error are normally still read. A :class:`Reader` receives
text in pieces and reads every token once. The cost of a statement is therefore proportional to its
length.
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
#: Widths of patterns are capped, since their maximum depends on the Python version.
_WIDEST = 2**16


@cache
def grammar() -> Lark:
    """Return the parser, from the stored tables if they match this grammar and this version of Lark.

    The parser does not compute the position of every tree, which would double the parse time.
    ``machine.py`` computes the position of an error from the tokens of its tree.

    >>> grammar().parse("x = 1;").data == "start"
    True
    """
    kept = json.loads(_FOLDER.joinpath("tables.json").read_text(encoding="utf-8"))
    if kept["made_from"] != _made_from():
        return worked_out()
    return Lark.load(_as_lark_has_them(kept))


def worked_out() -> Lark:
    """Build the parser from the grammar, without the stored tables.

    >>> worked_out().parse("x = 1;").data == "start"
    True
    """
    return Lark(_text(), parser="lalr", lexer="basic", maybe_placeholders=True)


def tables(parser: Lark) -> dict[str, Any]:
    """Return the tables of a parser as a JSON-compatible dictionary, the same in all runs of Python.

    Lark numbers its states and tokens in an order that varies between runs. The returned tables number
    the tokens by name, and the states in the order of a traversal.

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
    """Convert the keys of stored tables from strings, which JSON requires, to integers for Lark."""
    table = kept["data"]["parser"]["parser"]
    table["tokens"] = _numbered(table["tokens"])
    table["states"] = _numbered({state: _numbered(row) for state, row in table["states"].items()})
    return {"data": kept["data"], "memo": _numbered(kept["memo"])}


def _numbered(entries: dict[str, Any]) -> dict[int, Any]:
    return {int(key): value for key, value in entries.items()}


def _text() -> str:
    return _FOLDER.joinpath("rasp.lark").read_text(encoding="utf-8")


def _made_from() -> dict[str, str]:
    """Return the version of Lark and a hash of the grammar, which identify the stored tables."""
    return {"lark": lark.__version__, "grammar": hashlib.sha256(_text().encode()).hexdigest()}


if __name__ == "__main__":
    made = json.dumps(tables(worked_out()), separators=(",", ":"))
    Path(__file__).with_name("tables.json").write_text(f"{made}\n", encoding="utf-8")


_BLOCKS = {"DEF", "FOR"}

#: Steps for starting a piece of text, for reading one token, and for describing one error.
_FEEDING, _TOKEN, _MISTAKE = 6, 2.4, 50


@cache
def _without_trees() -> Any:
    """Return the configuration of a parser that checks a text without building trees."""
    configuration = copy(grammar().parse_interactive().parser_state.parse_conf)
    configuration.callbacks = {}
    return configuration


def tokens(text: str) -> Iterator[Token]:
    """Split ``text`` into tokens; ``sum`` becomes a keyword only before ``name in``."""
    ahead = _Lookahead()
    for token in _lexed(text):
        yield from ahead.add(token)
    yield from ahead.rest()


def _lexed(text: str) -> Iterator[Token]:
    # Lark.lex would build a new lexer for every text, and therefore for every line of a REPL.
    lexer = grammar().parse_interactive(text).lexer_thread
    return iter(lexer.lex(None))  # type: ignore[no-untyped-call]


@dataclass(eq=False)
class Source:
    """The lines of a text that contains statements, used to report the positions of errors."""

    lines: list[str] = field(default_factory=list)

    def line(self, number: int) -> str:
        """Return a line by its number, starting at 1, or "" after the last line."""
        return self.lines[number - 1] if number <= len(self.lines) else ""


@dataclass(frozen=True)
class Statement:
    """A statement with its syntax tree or, if parsing failed, its syntax error."""

    tree: Tree[Token] | None
    error: RaspError | None
    line: int
    source: Source

    @property
    def inner(self) -> Any:
        """The tree of the statement, which must not contain a syntax error."""
        assert self.tree is not None
        return self.tree.children[0]

    def located(self, error: RaspError) -> RaspError:
        """Add a position and a source line to an error; the default is the first line of the
        statement.
        """
        number = error.line or self.line
        source = self.source.line(number)
        column = error.column or 1 + len(source) - len(source.lstrip())
        return error.at(number, column, source)


class Reader:
    """A reader that receives a text in pieces and returns each statement when it is complete."""

    def __init__(self, limits: Limits, budget: Budget | None = None) -> None:
        self.limits = limits
        self.budget = budget or Budget()
        self.source = Source()
        self._characters = 0
        self._ahead = _Lookahead()
        self._piece = _Piece()

    @property
    def waiting(self) -> bool:
        """Whether the text read by :meth:`feed` ends within a statement."""
        return bool(self._piece.tokens or self._ahead.tokens)

    def feed(self, text: str) -> Iterator[Statement]:
        """Read further complete lines of text, and yield the statements that end in these lines."""
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
                    return  # everything that follows belongs to these nested brackets
        yield from self._end_of_line()

    def end(self) -> Iterator[Statement]:
        """Yield the statements that are still to be read at the end of the text.

        An incomplete last statement is an error.
        """
        for token in self._ahead.rest():
            yield from self._add(token)
        if self._piece.tokens:
            yield self._finished(at_end_of_input=True)

    def _add(self, token: Token) -> Iterable[Statement]:
        """Add one token, and return the statements that end with it or with the previous line."""
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
            self.budget.spend_on_text(_MISTAKE)  # the cost of testing whether the statement is complete
            for token in self._ahead.rest():
                yield from self._add(token)
        # Report an error immediately instead of at the end of the statement.
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
    """Split ``text`` into statements and parse each one; an incomplete last statement is an error."""
    reader = Reader(limits, budget)
    yield from reader.feed(text)
    yield from reader.end()


class _Lookahead:
    """A buffer that holds tokens until it is clear whether ``sum`` begins a sum over a family
    of heads.
    """

    def __init__(self) -> None:
        self.tokens: list[Token] = []

    def add(self, token: Token) -> Iterable[Token]:
        """Add a token, and return the tokens whose type is now clear."""
        if not self.tokens and token != "sum":
            return (token,)
        self.tokens.append(token)
        return self._clear()

    def rest(self) -> Iterable[Token]:
        """Return the tokens that are still in the buffer at the end of the text."""
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
    """The tokens of one statement, which are parsed on demand."""

    def __init__(self) -> None:
        self.tokens: list[Token] = []
        self.open_brackets: list[str] = []
        #: Whether the brackets of the statement are nested too deeply to continue.
        self.is_lost = False
        self._parser = grammar().parse_interactive()
        self._parsed = 0
        #: The token at which the grammar stopped, and the tokens allowed there.
        self._mistake: tuple[Token, set[str]] | None = None

    def add(self, token: Token) -> None:
        """Add a token and update the list of open brackets."""
        self.tokens.append(token)
        if token.type in OPENING:
            self.open_brackets.append(token.type)
        elif token.type in CLOSING and self.open_brackets:
            self.open_brackets.pop()

    def _parse(self) -> None:
        """Parse the tokens added since the last call, up to the first error."""
        new, self._parsed = self.tokens[self._parsed :], len(self.tokens)
        if self._mistake is None:
            try:
                for token in new:
                    self._parser.feed_token(token)
            except UnexpectedToken as problem:
                self._mistake = problem.token, self._accepted()

    @property
    def is_wrong(self) -> bool:
        """Whether the parser has found an error and no brace is open."""
        self._parse()
        return self._mistake is not None and "LBRACE" not in self.open_brackets

    @property
    def is_command(self) -> bool:
        """Whether the statement begins with the keyword of a REPL command."""
        return bool(self.tokens) and self.tokens[0].type in COMMANDS

    def ends(self) -> bool:
        """Return whether the last token added ends the statement."""
        last = self.tokens[-1].type
        if last == "SEMICOLON":
            # A ; outside braces ends the statement even if a bracket is missing: `[1, 2;` is one error.
            return self.is_command or "LBRACE" not in self.open_brackets
        if last != "RBRACE" or self.open_brackets or self.tokens[0].type not in _BLOCKS:
            return False
        # The brace may end a dict in the loop header instead of the body.
        return self.tokens[0].type == "DEF" or self._is_statement()

    def ends_with_line(self) -> bool:
        """Return whether the statement is a command that is complete at the end of its line."""
        return self.is_command and not self.open_brackets and self._is_statement()

    def _is_statement(self) -> bool:
        self._parse()
        # More text cannot fix an error.
        return self._mistake is not None or self._accepts("$END")

    def _accepted(self) -> set[str]:
        # Lark's own `accepts` would also copy the lexer for each candidate.
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
        """Return the syntax tree of the statement, or its syntax error."""
        self._parse()
        if self._mistake is None:
            try:
                tree: Any = self._parser.feed_eof(self.tokens[-1])  # type: ignore[no-untyped-call]
                return tree  # type: ignore[no-any-return]
            except UnexpectedToken as problem:
                self._mistake = problem.token, self._accepted()
        token, accepted = self._mistake
        return syntax_error(token, accepted, self.tokens, source.lines, at_end_of_input)
