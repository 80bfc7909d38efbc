"""``locum repl``: RASP, statement by statement.

At a terminal: colours, completion, history, multi-line editing. Anywhere else it reads a transcript
and prints what Weiss's REPL prints, prompts included, after one banner line of our own.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from locum import __version__
from locum.cli.programs import json_option, print_json, read_input
from locum.errors import InputError
from locum.files import write_file
from locum.language import echo
from locum.language.handles import SOp

if TYPE_CHECKING:
    from locum.language import Result, Session

PROMPT, MORE = ">> ", ".. "
#: Strings and comments, whose braces do not count.
_ASIDE = re.compile(r'"[^"\r\n]*"|#[^\n]*')


@click.command("repl")
@click.option("--example", default='"hello"', show_default=True, help="The running example, as JSON.")
@json_option
def command(example: str, as_json: bool) -> None:
    """Read RASP statements and show what they are on the running example."""
    from locum.language import Session

    tokens = read_input(example, "--example")
    if not isinstance(tokens, (str, list, dict)) or not tokens:
        raise InputError(f"--example {example[:40]} is no input: give a non-empty string or list")
    session = Session(tokens if isinstance(tokens, str) else list(tokens), drawer=draw_beside)
    typed = sys.stdin or io.StringIO()
    if as_json:
        results = session.execute(typed.read())
        print_json({"results": [{**r.to_dict(), "printed": r.printed} for r in results]})
        return
    banner = f"Locum {__version__}, RASP; running example {echo.given(session.examples.tokens['s-op'])}"
    if typed.isatty() and sys.stdout.isatty():
        from locum.cli.terminal import converse

        click.echo(f"{banner}; exit or Ctrl-D leaves")
        converse(session, PROMPT, MORE)
    else:
        click.echo(banner)
        transcript(session, typed, sys.stdout)


def transcript(session: Session, lines: Iterable[str], out: TextIO) -> None:
    """Run lines as if they were typed, and print what the REPL would."""
    reader = Accumulator(session)
    out.write(PROMPT)
    for line in lines:
        for result in reader.add(line):
            out.write(result.printed)
        if session.finished:
            break
        out.write(MORE if reader.waiting else PROMPT)
    else:
        out.write("\n")
        for result in reader.end():
            out.write(result.printed)
    out.flush()


class Accumulator:
    """Collects lines until they are whole statements."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.text = ""
        #: Whether a line has been read since the last statement was complete, be it blank.
        self.waiting = False
        self._braces = 0

    def add(self, line: str) -> list[Result]:
        """One more line; the results of what it completes."""
        self.waiting = True
        if line.lstrip().startswith("#") or not (self.text or line.strip()):
            return []
        self.text += line.removeprefix("\ufeff") if line.endswith("\n") else line + "\n"
        bare = _ASIDE.sub("", line)
        self._braces += bare.count("{") - bare.count("}")
        # While a brace is open nothing is complete; asking the parser each time would cost O(n²).
        if self._braces > 0 or not self.session.is_complete(self.text):
            return []
        return self.end()

    def end(self) -> list[Result]:
        """No more lines: run what there is, complete or not."""
        text, self.text, self._braces, self.waiting = self.text, "", 0, False
        return self.session.execute(text.rstrip("\n")) if text.strip() else []


def draw_beside(program: SOp, name: str, tokens: Any) -> Path:
    """RASP's ``draw``: a picture in the folder comp_flows, as Weiss's implementation has it."""
    from locum.display.flow import flow_svg

    folder = Path("comp_flows")
    folder.mkdir(exist_ok=True)
    shown = tokens if isinstance(tokens, str) else ",".join(map(str, tokens))
    safe = re.sub(r"[^\w.,()+-]", "_", f"{name}({shown})")[:80]
    path = folder / f"{safe}.svg"
    write_file(path, flow_svg(program.node, tokens, name))
    return path
