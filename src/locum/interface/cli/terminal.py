"""Run the REPL in a terminal, with colours, completion, history and multi-line statements."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path

import click
from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import is_searching
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import Lexer
from prompt_toolkit.styles import Style

from locum.interface.cli.output import LAYOUT
from locum.rasp import Result, Session
from locum.rasp.handles import Selector, SOp
from locum.rasp.text.describing import answer, asked
from locum.rasp.text.machine import Builtin, Function
from locum.rasp.text.reader import tokens
from locum.text import printable

_STYLE = Style.from_dict(
    {
        "prompt": "#2f6f9f bold",
        "keyword": "#a05a00 bold",
        "call": "#2f6f9f",
        "number": "#7a3e9d",
        "string": "#2e7d4f",
        "comment": "#8a97a5 italic",
        "bad": "#ffffff bg:#b3261e",
    }
)
#: Maps tokens of the grammar to styles. Names and punctuation are unstyled.
_STYLES = {
    **dict.fromkeys(("DEF", "FOR", "IN", "RETURN", "IF", "ELSE", "NOT", "AND_OR", "SUM"), "keyword"),
    **dict.fromkeys(
        ("SET", "SHOW", "EXAMPLE", "EXAMPLES", "KIND", "SWITCH", "LOAD", "DRAW"), "keyword"
    ),
    **dict.fromkeys(("FULL_DISPLAY", "LEAVE"), "keyword"),
    **dict.fromkeys(("SELECT", "AGGREGATE", "RANGE", "ZIP", "LEN", "ROUND", "INDICATOR"), "call"),
    **dict.fromkeys(("INTEGER", "FLOAT"), "number"),
    "STRING": "string",
    "BAD": "bad",
}
_WORDS = (
    *("def", "for", "in", "return", "if", "else", "and", "or", "not", "load", "draw", "exit", "help"),
    *("select(", "aggregate(", "range(", "zip(", "len(", "round(", "indicator(", "sum"),
    *("set example", "show example", "examples on", "examples off", "full seq display on"),
)


def converse(session: Session, sign: str, more: str) -> None:
    """Read statements, execute them and print their values, until the user exits.

    ``sign`` is the prompt of a statement, and ``more`` the prompt of its further lines.
    """
    prompt: PromptSession[str] = PromptSession(
        message=[("class:prompt", sign)],
        prompt_continuation=more,
        multiline=True,
        key_bindings=_keys(session),
        lexer=RaspLexer(),
        completer=RaspCompleter(session),
        complete_while_typing=False,
        history=_history(),
        style=_STYLE,
    )
    while not session.finished:
        running = False
        try:
            text = prompt.prompt()
            running = True
            if re.fullmatch(r"\s*(exit|quit)(\(\))?\s*;\s*", text):
                return  # the grammar has no semicolon after exit, but users type one
            question = asked(text, session.names())
            if question is not None:
                click.echo(answer(question, session.names()))
                continue
            for result in session.execute(text):
                _print(result)
        except KeyboardInterrupt:  # discard the current statement
            if running:
                click.echo("interrupted")
        except EOFError:
            return


def _print(result: Result) -> None:
    text = printable(result.printed, LAYOUT)
    click.echo(click.style(text, fg="red") if result.kind == "error" else text, nl=False)


def _keys(session: Session) -> KeyBindings:
    bindings = KeyBindings()

    @bindings.add("enter", filter=~is_searching)
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        finished = not buffer.text.strip() or asked(buffer.text, session.names()) is not None
        if finished or session.is_complete(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    return bindings


def _history() -> History:
    path = Path.home() / ".locum_history"
    try:
        path.touch()
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(path))


class RaspLexer(Lexer):
    """A lexer that colours RASP text by the tokens of the grammar."""

    def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
        """Return a function from line numbers to styled pieces of text."""
        lines = [_styled(line) for line in document.lines]
        return lambda number: lines[number] if number < len(lines) else []


def _styled(line: str) -> StyleAndTextTuples:
    pieces: StyleAndTextTuples = []
    done = 0
    for token in tokens(line):
        start, end = token.start_pos or 0, token.end_pos or 0
        pieces.append(_gap(line[done:start]))
        style = _STYLES.get(token.type)
        pieces.append((f"class:{style}" if style else "", line[start:end]))
        done = end
    pieces.append(_gap(line[done:]))
    return [piece for piece in pieces if piece[1]]


def _gap(text: str) -> tuple[str, str]:
    """Return the style and the text of a gap between tokens: whitespace or a comment."""
    return ("class:comment" if text.strip() else "", text)


class RaspCompleter(Completer):
    """A completer of names in the session and of keywords."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def get_completions(self, document: Document, event: CompleteEvent) -> Iterable[Completion]:
        """Yield all completions of the word before the cursor."""
        word = re.search(r"\w*$", document.text_before_cursor)
        tail = word.group() if word else ""
        for name, value in sorted(self.session.names().items()):
            if tail and name.startswith(tail):
                yield Completion(name, -len(tail), display_meta=_meta(value))
        for text in _WORDS:
            if tail and text.startswith(tail):
                yield Completion(text, -len(tail), display_meta="language")


def _meta(value: object) -> str:
    match value:
        case SOp():
            return "s-op"
        case Selector():
            return "selector"
        case Function() | Builtin():
            return f"({', '.join(value.parameters)})"
        case list() | dict():
            return "list" if isinstance(value, list) else "dict"
    return "value"
