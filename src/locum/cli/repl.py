"""``locum repl``: RASP, statement by statement.

At a terminal: colours, completion, history, multi-line editing. Anywhere else it reads a transcript
and prints what Weiss's REPL prints, prompts included, after one banner line of our own.
"""

from __future__ import annotations

import io
import re
import sys
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
    from locum.language import Session

PROMPT, MORE = ">> ", ".. "


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


def transcript(session: Session, lines: TextIO, out: TextIO) -> None:
    """Run lines as if they were typed, and print what the REPL would."""
    out.write(PROMPT)
    functions = 0
    while line := _line(lines, session.limits.text):
        blank = not line.strip() or line.lstrip().startswith("#")
        for result in [] if blank else session.feed(line.removeprefix("\ufeff")):
            out.write(result.printed)
        if session.finished or session.exhausted:
            break
        functions += 0 if blank else line.split().count("def")
        functions = functions if session.waiting else 0
        # A blank line is not a statement, either. Inside a function RASP indents.
        out.write(MORE + "  " * functions if session.waiting or blank else PROMPT)
    else:
        out.write("\n")
        for result in session.end():
            out.write(result.printed)
    out.flush()


def _line(lines: TextIO, limit: int) -> str:
    """Read a line; of one that is longer than ``limit``, no more than shows that it is."""
    line = rest = lines.readline(limit + 1)
    while len(rest) > limit and not rest.endswith("\n"):
        rest = lines.readline(limit + 1)
    return line


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
