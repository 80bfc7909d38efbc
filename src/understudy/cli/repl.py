"""``understudy repl``: RASP, statement by statement.

At a terminal: colours, completion, history, multi-line editing. Anywhere else it reads a transcript
and prints what Weiss's REPL prints, prompts included, after one banner line of our own.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from understudy import __version__
from understudy.cli.programs import json_option, print_json, read_input
from understudy.language import echo
from understudy.language.handles import SOp

if TYPE_CHECKING:
    from understudy.language import Result, Session

PROMPT, MORE = ">> ", ".. "
#: Strings and comments, whose braces do not count.
_ASIDE = re.compile(r'"[^"\r\n]*"|#[^\n]*')


@click.command("repl")
@click.option("--example", default='"hello"', show_default=True, help="The running example, as JSON.")
@json_option
def command(example: str, as_json: bool) -> None:
    """Read RASP statements and show what they are on the running example."""
    from understudy.language import Session

    session = Session(read_input(example), drawer=draw_beside)
    if as_json:
        results = session.execute(sys.stdin.read())
        print_json({"results": [{**r.to_dict(), "printed": r.printed} for r in results]})
        return
    banner = (
        f"Understudy {__version__}, RASP; running example {echo.given(session.examples.tokens['s-op'])}"
    )
    if sys.stdin.isatty() and sys.stdout.isatty():
        from understudy.cli.terminal import converse

        click.echo(f"{banner}; exit or Ctrl-D leaves")
        converse(session)
    else:
        click.echo(banner)
        transcript(session, sys.stdin, sys.stdout)


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
        self._braces = 0

    @property
    def waiting(self) -> bool:
        """Whether a statement has begun that is not finished."""
        return bool(self.text.strip())

    def add(self, line: str) -> list[Result]:
        """One more line; the results of what it completes."""
        if line.lstrip().startswith("#"):
            return []
        self.text += line if line.endswith("\n") else line + "\n"
        bare = _ASIDE.sub("", line)
        self._braces += bare.count("{") - bare.count("}")
        # While a brace is open nothing is complete; asking the parser each time would cost O(n²).
        if self._braces > 0 or not self.session.is_complete(self.text):
            return []
        return self.end()

    def end(self) -> list[Result]:
        """No more lines: run what there is, complete or not."""
        text, self.text, self._braces = self.text, "", 0
        return self.session.execute(text.rstrip("\n")) if text.strip() else []


def draw_beside(program: SOp, name: str, tokens: Any) -> Path:
    """RASP's ``draw``: a picture in the folder comp_flows, as Weiss's implementation has it."""
    from understudy.display.files import write_whole
    from understudy.display.flow import flow_svg

    folder = Path("comp_flows")
    folder.mkdir(exist_ok=True)
    shown = tokens if isinstance(tokens, str) else ",".join(map(str, tokens))
    safe = re.sub(r"[^\w.,()+-]", "_", f"{name}({shown})")[:80]
    path = folder / f"{safe}.svg"
    write_whole(path, flow_svg(program.node, tokens, name))
    return path
