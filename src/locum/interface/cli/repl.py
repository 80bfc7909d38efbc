"""Read RASP statements and show what they are on the running example.

At a terminal there are colours, completion, history and multi-line editing. Anywhere else the REPL
reads a transcript and prints what Weiss's REPL prints, prompts included, after one banner line of
our own.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from locum import __version__
from locum.errors import InputError
from locum.files import write_file
from locum.interface.cli import output
from locum.interface.cli.options import read_input
from locum.interface.cli.progress import is_quiet
from locum.interface.cli.runner import Report
from locum.interface.cli.runner import command as make_command
from locum.rasp import echo
from locum.rasp.handles import SOp
from locum.rasp.text.describing import answer, asked

if TYPE_CHECKING:
    from locum.rasp import Session

PROMPT, MORE = ">> ", ".. "


@make_command("repl", __doc__)
@click.option(
    "--example",
    default="hello",
    show_default=True,
    metavar="TOKENS",
    help='The running example: hello, or JSON ("hello", [3, 1, 2]).',
)
def command(example: str) -> Report | None:
    """Prompt at a terminal, or read a transcript."""
    from locum.rasp import Session

    tokens = read_input(example, "--example")
    if not isinstance(tokens, (str, list, dict)) or not tokens:
        raise InputError(f"--example: expected a non-empty string or list, got {example[:40]}")
    session = Session(tokens if isinstance(tokens, str) else list(tokens), drawer=draw_beside)
    typed = sys.stdin or io.StringIO()
    if is_quiet():
        results = session.execute(typed.read(session.limits.text + 1))
        return Report({"results": [{**r.to_dict(), "printed": r.printed} for r in results]}, list)
    banner = (
        f"Locum {__version__}, RASP; running example {echo.quoted(session.examples.tokens['s-op'])}"
    )
    if typed.isatty() and sys.stdout.isatty():
        from locum.interface.cli.terminal import converse

        output.say(f"{banner}; help explains, exit or Ctrl-D leaves")
        converse(session, PROMPT, MORE)
    else:
        output.say(banner)
        transcript(session, typed, output.converse)
    return None


def transcript(session: Session, lines: TextIO, write: Callable[[str], object]) -> None:
    """Run lines as if they were typed, and write what the REPL would print."""
    write(PROMPT)
    functions = 0
    while line := _line(lines, session.limits.text):
        blank = not line.strip() or line.lstrip().startswith("#")
        question = None if session.waiting else asked(line, session.names())
        if question is not None:
            write(f"{answer(question, session.names())}\n{PROMPT}")
            continue
        for result in [] if blank else session.feed(line.removeprefix("\ufeff")):
            write(result.printed)
        if session.finished or session.exhausted:
            break
        functions += 0 if blank else line.split().count("def")
        functions = functions if session.waiting else 0
        # A blank line is not a statement, either. Inside a function RASP indents.
        write(MORE + "  " * functions if session.waiting or blank else PROMPT)
    else:
        write("\n")
        for result in session.end():
            write(result.printed)


def _line(lines: TextIO, limit: int) -> str:
    """Read a line; of one that is longer than ``limit``, no more than shows that it is."""
    line = rest = lines.readline(limit + 1)
    while len(rest) > limit and not rest.endswith("\n"):
        rest = lines.readline(limit + 1)
    return line


def draw_beside(program: SOp, name: str, tokens: Any) -> Path:
    """Draw into the folder comp_flows, as ``draw`` of Weiss's implementation does."""
    from locum.rasp.drawing.flow import flow_svg

    folder = Path("comp_flows")
    folder.mkdir(exist_ok=True)
    shown = tokens if isinstance(tokens, str) else ",".join(map(str, tokens))
    safe = re.sub(r"[^\w.,()+-]", "_", f"{name}({shown})")[:80]
    path = folder / f"{safe}.svg"
    write_file(path, flow_svg(program.node, tokens, name))
    return path
