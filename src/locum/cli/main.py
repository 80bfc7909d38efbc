"""``locum``: find the command, run it, and turn errors into one line and an exit code.

Each command is a module of this package; its docstring is its help text. Commands are imported only
when they are called, so that ``locum --help`` answers at once.
"""

from __future__ import annotations

import _thread
import importlib
import io
import os
import pkgutil
import sys
import threading
import traceback
import warnings

import click
import click.shell_completion

from locum import __version__
from locum.cli import output
from locum.cli.progress import waiting
from locum.errors import InputError, LocumError
from locum.graph.atoms import short

COMMANDS = (
    "analyse",
    "apply",
    "catalogue",
    "certify",
    "check",
    "claims",
    "classify",
    "compare",
    "compile",
    "completion",
    "dataset",
    "draw",
    "equivalent",
    "errata",
    "export",
    "figure",
    "minimise",
    "operations",
    "paper",
    "plan",
    "playground",
    "prove",
    "repl",
    "run",
    "score",
    "simulate",
    "sweep",
)

#: Commands that were removed, with their replacements.
REMOVED = {"generate": "locum simulate --model FOLDER --text TEXT --generate"}
#: The environment variable in which a shell asks for completions.
VARIABLE = "_LOCUM_COMPLETE"
DONE, CLAIM_FAILED, BAD_INPUT, CRASHED, INTERRUPTED = 0, 1, 2, 70, 130


class LazyGroup(click.Group):
    """A group whose commands are modules of this package, imported on demand."""

    def list_commands(self, context: click.Context) -> list[str]:
        """List the names, in order."""
        return list(COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        """Import the command of that name."""
        if name not in COMMANDS:
            return None
        command = importlib.import_module(f"locum.cli.{name}").command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command, or raise an error with the most similar one."""
        if args and args[0] in REMOVED:
            raise InputError(f"locum {args[0]} was removed in 0.3; try {REMOVED[args[0]]}")
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            import difflib

            near = difflib.get_close_matches(args[0], COMMANDS, n=1)
            hint = f"; try locum {near[0]}." if near else "."  # the usage says how to list them
            context.fail(f"No such command {short(args[0])}{hint}")
        return super().resolve_command(context, args)

    def shell_complete(
        self, context: click.Context, incomplete: str
    ) -> list[click.shell_completion.CompletionItem]:
        """Offer commands by their names, without importing any; options as click does."""
        if incomplete.startswith("-"):
            return click.Command.shell_complete(self, context, incomplete)
        names = [name for name in COMMANDS if name.startswith(incomplete)]
        return [click.shell_completion.CompletionItem(name, help=summary(name)) for name in names]

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Write names and summaries without importing anything."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary(name)) for name in COMMANDS])


def summary(name: str) -> str:
    """Read the first line of a command's help text off its source file."""
    source = pkgutil.get_data("locum.cli", f"{name}.py") or b""
    return source.decode().partition("\n")[0].strip('"')


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="locum", message="%(prog)s %(version)s")
def cli() -> None:
    """Locum: a universal simulator of attention, and the RASP it is written in.

    PROGRAM is a file of RASP text, a graph as JSON, or the name of one of the paper's listings or of an
    example, such as transpose or sort_freq. Every command takes --json and then prints one JSON object.
    Exit codes: 0 done, 1 a claim did not hold, 2 bad input, 70 a bug in Locum, 130 interrupted.
    """


def main() -> None:
    """Run the command line and leave with its exit code."""
    asked = os.environ.get(VARIABLE)
    if asked:  # a shell asks what could stand at the cursor (locum completion)
        sys.exit(click.shell_completion.shell_complete(cli, {}, "locum", VARIABLE, asked))
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


def run(arguments: list[str]) -> int:
    """Run a command and return its exit code; errors are told on standard error."""
    try:
        # Not cli.main(), which has exit codes of its own.
        with cli.make_context("locum", arguments) as context, waiting(context, arguments):
            cli.invoke(context)
    except click.exceptions.Exit as leaving:
        return leaving.exit_code
    except click.ClickException as error:
        usage = io.StringIO()
        error.show(usage)
        output.complain(usage.getvalue().rstrip("\n"))
        return BAD_INPUT
    except (LocumError, Warning) as error:  # a warning is an error under PYTHONWARNINGS=error
        output.complain(f"locum: {error}")
        return BAD_INPUT
    except MemoryError:
        output.complain("locum: this does not fit into memory; try a smaller order, length or input")
        return BAD_INPUT
    except (click.Abort, KeyboardInterrupt):
        output.complain("locum: interrupted")
        return INTERRUPTED
    except BrokenPipeError:  # the reader of help texts or of a transcript has gone
        return DONE
    except OSError as error:  # a current folder that was deleted, a disk that is full
        output.complain(f"locum: {error.strerror}" + (f": {error.filename}" if error.filename else ""))
        return BAD_INPUT
    except Exception:
        output.complain(traceback.format_exc().rstrip("\n"))
        output.complain("locum: this is a bug in Locum; please report it with the lines above")
        return CRASHED
    return DONE


def interrupt_again(lost: sys.UnraisableHookArgs) -> None:
    """Interrupt once more where an interrupt was lost.

    Python drops what is raised in a callback of a weak reference, and there are many: a Ctrl-C that
    comes while garbage is collected would only be printed, and the work would go on.
    """
    if lost.exc_type is KeyboardInterrupt:
        timer = threading.Timer(0.05, _thread.interrupt_main)
        timer.daemon = True
        timer.start()
    else:
        sys.__unraisablehook__(lost)


def _show_warning(message: Warning | str, *details: object, **options: object) -> None:
    """Show a warning as errors are shown, without lines of source code."""
    output.complain(f"locum: {message}")
