"""Read RASP statements and show their values on an example.

In a terminal, the REPL provides colours, completion, history and multi-line editing. Input from a pipe
or file is executed line by line. The output then has the format of Weiss's REPL, including prompts,
after a banner line.
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
    help="Input for the shown values: hello, or JSON ([3, 1, 2]).",
)
def command(example: str) -> Report | None:
    """Start a dialogue in a terminal, or execute the statements on standard input."""
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
    """Execute ``lines`` as if they were typed, and write the output of the REPL with prompts."""
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
        # A blank line does not end a statement. Weiss's REPL indents the prompt inside functions.
        write(MORE + "  " * functions if session.waiting or blank else PROMPT)
    else:
        write("\n")
        for result in session.end():
            write(result.printed)


def _line(lines: TextIO, limit: int) -> str:
    """Read a line, and truncate it after ``limit`` + 1 characters.

    This length is sufficient to detect that the line is too long.
    """
    line = rest = lines.readline(limit + 1)
    while len(rest) > limit and not rest.endswith("\n"):
        rest = lines.readline(limit + 1)
    return line


def draw_beside(program: SOp, name: str, tokens: Any) -> Path:
    """Draw an s-op to a file in the folder comp_flows, as ``draw`` of Weiss's implementation does."""
    from locum.rasp.drawing.flow import flow_svg

    folder = Path("comp_flows")
    folder.mkdir(exist_ok=True)
    shown = tokens if isinstance(tokens, str) else ",".join(map(str, tokens))
    safe = re.sub(r"[^\w.,()+-]", "_", f"{name}({shown})")[:80]
    path = folder / f"{safe}.svg"
    write_file(path, flow_svg(program.node, tokens, name))
    return path
