"""``locum``: finds the command, runs it, and turns errors into one line and an exit code.

Exit codes: 0 done, 1 a claim did not hold, 2 bad input. Commands are imported only when they are
called, so that ``locum --help`` answers at once.
"""

from __future__ import annotations

import importlib
import os
import sys

import click

from locum.errors import LocumError

#: Command → what ``--help`` says of it; its code is in the module of the same name.
COMMANDS = {
    "analyse": "Layers and heads of the transformer that a program describes.",
    "apply": "Run a compiled transformer on an input.",
    "catalogue": "The paper's constructions: what it claims, what we count.",
    "certify": "U's result enclosed, and what floating point can lose, certified.",
    "check": "Verify the certificate of a proof.",
    "claims": "The paper's claims: proven, refuted, measured, counted.",
    "compile": "A program, or U, as the weights of a transformer.",
    "draw": "A program on an input as a picture.",
    "errata": "Where the paper is wrong, with counterexamples.",
    "plan": "How the fast executor would run a program.",
    "operations": "The closed table of operations: the whole language on one page.",
    "prove": "Prove a claim for all inputs, or find a counterexample.",
    "repl": "RASP, statement by statement, on a running example.",
    "run": "Run a program on an input.",
    "simulate": "U, the universal simulator: T and X in, T(X) out.",
}


class LazyGroup(click.Group):
    """A group whose commands are modules of this package, imported on demand."""

    def list_commands(self, context: click.Context) -> list[str]:
        """The names, in order."""
        return sorted(COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        """The command of that name."""
        if name not in COMMANDS:
            return None
        command = importlib.import_module(f"locum.cli.{name}").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Names and one-line texts, without importing anything."""
        with formatter.section("Commands"):
            formatter.write_dl(sorted(COMMANDS.items()))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="locum", message="%(prog)s %(version)s")
def cli() -> None:
    """Locum: a universal simulator of attention, and the RASP it is written in.

    Every command takes --json and then prints one JSON object. Exit codes: 0 done, 1 a claim did
    not hold, 2 bad input.
    """


def main() -> None:
    """Run the command line and leave with its exit code."""
    try:
        # Not cli.main(): it would answer a closed pipe with 1, which here means a claim failed.
        with cli.make_context("locum", sys.argv[1:]) as context:
            cli.invoke(context)
        sys.stdout.flush()
        code = 0
    except click.exceptions.Exit as leaving:
        code = leaving.exit_code
    except click.ClickException as error:
        error.show()
        code = 2
    except LocumError as error:
        click.echo(f"locum: {error}", err=True)
        code = 2
    except (click.Abort, KeyboardInterrupt):
        click.echo("locum: interrupted", err=True)
        code = 130
    except BrokenPipeError:  # the reader of our output has gone, as `| head` does
        _drop_output()
        code = 0
    except UnicodeEncodeError as error:  # from a damaged file, say, or where the terminal has no é
        _drop_output()
        wrong = ascii(error.object[error.start])
        click.echo(f"locum: the output has {wrong}, which {error.encoding} lacks", err=True)
        code = 2
    except OSError as error:
        _drop_output()
        click.echo(f"locum: cannot write the output: {error.strerror}", err=True)
        code = 2
    sys.exit(code)


def _drop_output() -> None:
    """Nobody can take what is still to be written; Python must not try again when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
