"""Run a command: check its output files, write them, print its report, and set the exit code.

A command is a function from options to a :class:`Report`. This module handles ``--json``, exit codes
and output files; ``main.py`` handles errors.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from locum.files import check_target, write_file
from locum.interface.cli import output
from locum.interface.cli.options import PATH, OutputFile
from locum.interface.cli.progress import is_quiet

if TYPE_CHECKING:
    from rich.console import RenderableType

#: A text, or a rich renderable.
Part: TypeAlias = "str | RenderableType"
#: The content of a file, or a function that writes to the path.
Content: TypeAlias = "str | Callable[[Path], object]"
DONE, CLAIM_FAILED, BAD_INPUT, CRASHED, INTERRUPTED = 0, 1, 2, 70, 130


class Report:
    """The result of a command: data for scripts, text, files, and whether its claim holds.

    The function ``text`` is called only if the text is printed.
    """

    def __init__(
        self,
        data: Mapping[str, Any],
        text: Callable[[], Iterable[Part]],
        *,
        holds: bool = True,
        files: Mapping[Any, Content] | None = None,
    ) -> None:
        self._data, self._text = data, text
        self.holds = holds
        #: Files to write, by path. The path None (an option that is not given) is ignored.
        self.files = files or {}

    def to_dict(self) -> dict[str, Any]:
        """Return the data that ``--json`` prints."""
        return dict(self._data)

    def text(self) -> Iterable[Part]:
        """Return the lines and tables to print."""
        return self._text()


def command(
    name: str, help_text: str | None = None, *, group: Group | None = None, **settings: Any
) -> Callable[[Callable[..., Report | None]], click.Command]:
    """Return a decorator that converts a function to a click command.

    The function returns a :class:`Report`, or None after it has printed its own output. The help text
    is ``help_text``, by default the docstring of the function. If ``group`` is given, the command is
    added to the group.
    """

    def decorate(function: Callable[..., Report | None]) -> click.Command:
        @functools.wraps(function)
        def run(as_json: bool, **options: Any) -> None:
            _check_targets(click.get_current_context())
            report = function(**options)
            if report is None:
                return
            emit(report)
            if not report.holds:
                raise click.exceptions.Exit(CLAIM_FAILED)

        decorator: Callable[[Any], click.Command] = click.command(
            name, help=help_text or function.__doc__, **settings
        )
        made = decorator(run)
        made.params.append(
            click.Option(["--json", "as_json"], is_flag=True, help="Print one JSON object.")
        )
        if group is not None:
            group.add_command(made)
        return made

    return decorate


class Group(click.Group):
    """A group of commands, such as ``locum prove``."""

    def list_commands(self, context: click.Context) -> list[str]:
        """Return the names of the commands in the order of their definition."""
        return list(self.commands)

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Write each command with the complete first line of its help text."""
        with formatter.section("Commands"):
            first = {name: (made.help or "").partition("\n")[0] for name, made in self.commands.items()}
            formatter.write_dl(list(first.items()))


def emit(report: Report) -> None:
    """Write the files of a report, and print the report as text or JSON."""
    written = [path for path in report.files if path is not None and str(path) != "-"]
    for path in written:
        content = report.files[path]
        if callable(content):
            content(path)
        else:
            write_file(path, content)
    if is_quiet():
        saved = {"files": [str(path) for path in written]} if written else {}
        output.print_json(report.to_dict() | saved)
        return
    for part in report.text():
        if isinstance(part, str):
            output.say(part)
        else:
            output.show(part)
    for path in written:
        output.say(f"Saved in {path}.")


def _check_targets(context: click.Context) -> None:
    """Raise an error before the command runs if an output file is not valid.

    A valid output file has a supported suffix, is not an input, and is a new or a regular file in an
    existing folder.
    """
    inputs: list[Path] = []
    targets: list[tuple[str, OutputFile, Path]] = []
    for parameter in context.command.params:
        value = context.params.get(str(parameter.name))
        for path in value if isinstance(value, tuple) else (value,):
            if isinstance(parameter.type, OutputFile) and path is not None and str(path) != "-":
                targets.append((parameter.opts[-1], parameter.type, path))
            elif parameter.type is PATH:
                inputs.append(path)
    for option, kind, path in targets:
        kind.require_suffix(option, path)
        check_target(path, *inputs)
