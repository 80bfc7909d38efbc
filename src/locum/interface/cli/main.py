"""Run ``locum``: find the command, run it, and convert errors to messages and exit codes.

Each command is a module of this package, and the first line of the module docstring is its summary.
Command modules are imported only when the command is called, so that ``locum --help`` is fast.
"""

from __future__ import annotations

import importlib
import io
import pkgutil
import sys
import traceback
import warnings
from typing import Any, NamedTuple

import click

from locum import __version__
from locum.errors import LocumError
from locum.interface.cli import output
from locum.interface.cli.progress import waiting
from locum.interface.cli.runner import BAD_INPUT, CRASHED, DONE, INTERRUPTED

#: The commands, in the sections of ``--help``.
SECTIONS = {
    "Programs": ("run", "repl", "playground"),
    "Networks": ("compile",),
    "Simulation": ("simulate",),
    "Proofs and languages": ("prove", "language"),
    "Paper and data": ("paper", "dataset"),
}
COMMANDS = tuple(name for names in SECTIONS.values() for name in names)


class LazyGroup(click.Group):
    """The group of all commands, which imports the module of a command when the command is called."""

    def list_commands(self, context: click.Context) -> list[str]:
        """Return the names of all commands in the order of ``--help``."""
        return list(COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        """Import and return the command ``name``, or return None for an unknown name."""
        if name not in COMMANDS:
            return None
        command = importlib.import_module(f"locum.interface.cli.{name}").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the names and summaries of commands in sections, without importing commands."""
        for title, names in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name, summary(name)) for name in names], col_max=12)


def summary(name: str) -> str:
    """Return the first line of the module docstring of a command, read from its source file."""
    source = pkgutil.get_data("locum.interface.cli", f"{name}.py") or b""
    return source.decode().partition("\n")[0].strip('"')


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="locum", message="%(prog)s %(version)s")
def cli() -> None:
    """Simulate attention, compile RASP programs, and prove claims.

    PROGRAM is a file, or the name of a listing of the paper or of an example, such as transpose or
    sort_freq. With --json, every command prints one JSON object, also for errors. Exit codes: 0 done, 1
    a claim did not hold, 2 bad input, 70 a bug in Locum, 130 interrupted.
    """


def main() -> None:
    """Run the command line with the arguments of the process, and exit with its exit code."""
    output.prepare()
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning
        code = run(sys.argv[1:])
    try:
        output.finish()
    except LocumError as error:
        output.complain(f"locum: {error}")
        code = code or BAD_INPUT
    sys.exit(code)


class Problem(NamedTuple):
    """An error as shown to the user: exit code, kind, message, and text for terminals."""

    code: int
    kind: str
    message: str
    shown: str = ""


def run(arguments: list[str]) -> int:
    """Run a command and return its exit code. Errors are printed on standard error, or as JSON."""
    try:
        # not cli.main(), which has different exit codes
        with cli.make_context("locum", arguments) as context, waiting(context, arguments):
            cli.invoke(context)
    except click.exceptions.Exit as leaving:
        return leaving.exit_code
    except BrokenPipeError:  # the reader of the output has closed it
        return DONE
    except (Exception, KeyboardInterrupt) as error:
        problem = describe(error)
        if problem.kind == "Bug" or "--json" not in arguments:
            output.complain(problem.shown or f"locum: {problem.message}")
        if "--json" in arguments:
            place = {name: getattr(error, name, None) for name in ("line", "column", "position")}
            known = {name: number for name, number in place.items() if isinstance(number, int)}
            output.print_json({"error": {"kind": problem.kind, "message": problem.message} | known})
        return problem.code
    return DONE


def describe(error: BaseException) -> Problem:
    """Return the exit code, the kind and the message of an exception."""
    kind = type(error).__name__
    match error:
        case click.Abort() | KeyboardInterrupt():
            return Problem(INTERRUPTED, "Interrupted", "interrupted")
        case click.ClickException():
            usage = io.StringIO()
            error.show(usage)
            return Problem(BAD_INPUT, kind, error.format_message(), usage.getvalue().rstrip("\n"))
        case LocumError() | Warning():  # a warning is an error under PYTHONWARNINGS=error
            return Problem(BAD_INPUT, kind, str(error))
        case MemoryError():
            message = "this does not fit into memory; try a smaller order, length or input"
            return Problem(BAD_INPUT, kind, message)
        case OSError():  # a deleted current folder, or a full disk
            place = f": {error.filename}" if error.filename else ""
            return Problem(BAD_INPUT, kind, f"{error.strerror}{place}")
    advice = "this is a bug in Locum; please report it with the lines above"
    trace = "".join(traceback.format_exception(error))
    return Problem(CRASHED, "Bug", f"{kind}: {error}", f"{trace}locum: {advice}")


def _show_warning(message: Warning | str, *details: Any, **options: Any) -> None:
    """Print a warning in the format of errors, without source lines."""
    output.complain(f"locum: {message}")
