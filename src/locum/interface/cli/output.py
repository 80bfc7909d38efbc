r"""Print what commands print: text, tables and JSON, on whatever standard output there is.

Every command writes through here, so that in one place

- control characters of programs and model folders become visible escapes (``locum.text``);
- a reader that has gone (``| head -1``) or a closed output loses the text, but not the exit code;
- characters that the encoding of the output lacks are written as escapes such as ``\u2208``.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TextIO

from locum.errors import LocumError
from locum.graph.atoms import is_unprintable, short
from locum.interface.cli.progress import current
from locum.text import printable, printable_json

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

#: Control characters that lay out our own text.
LAYOUT = "\n\t"


def prepare() -> None:
    """Make both standard streams writable: one that is closed swallows what is written to it."""
    sys.stdout = _writable(sys.stdout)
    sys.stderr = _writable(sys.stderr)


def _writable(stream: TextIO | None) -> TextIO:
    if stream is None:
        return open(os.devnull, "w", encoding="utf-8")
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="backslashreplace")
    return stream


def finish() -> None:
    """Hand over what is still buffered."""
    with _taken():
        sys.stdout.flush()


def say(text: str = "", end: str = "\n") -> None:
    """Print ``text`` on standard output."""
    with _taken():
        converse(text + end)


def converse(text: str) -> None:
    """Print ``text``, or raise BrokenPipeError if the reader of a conversation has gone."""
    sys.stdout.write(printable(text, LAYOUT))


def complain(text: str) -> None:
    """Print ``text`` about a problem on standard error."""
    _speak()
    with contextlib.suppress(OSError):  # there is nobody left to tell
        sys.stderr.write(f"{printable(text, LAYOUT)}\n")
        sys.stderr.flush()


def print_json(data: dict[str, Any]) -> None:
    """Print one JSON object on one line; what JSON lacks (fractions, infinities) becomes a string.

    So do integers of more digits than Python writes.
    """
    is_unicode = (sys.stdout.encoding or "").lower().startswith("utf")
    text = json.dumps(plain(data), ensure_ascii=not is_unicode, allow_nan=False)
    with _taken():
        sys.stdout.write(printable_json(text) + "\n")


def plain(value: Any) -> Any:
    """Rebuild ``value`` from what JSON has."""
    if isinstance(value, dict):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    if isinstance(value, Fraction) or (isinstance(value, float) and not math.isfinite(value)):
        return str(value)
    return short(value) if is_unprintable(value) else value


def title(text: str) -> RenderableType:
    """Return ``text`` in bold, for terminals that have bold."""
    from rich.text import Text

    return Text(printable(text), style="bold")


def table(
    *titles: str, rows: Iterable[Iterable[str]], lines: bool = False, fold: bool = False
) -> Table:
    """Return a table of text, in which nothing is markup.

    ``lines`` separates the rows; ``fold`` breaks long words instead of shortening them.
    """
    from rich.table import Table
    from rich.text import Text

    made = Table(*titles, show_lines=lines)
    for column in made.columns if fold else ():
        column.overflow = "fold"
    for row in rows:
        made.add_row(*(Text(printable(cell, "\n")) for cell in row))
    return made


def show(renderable: RenderableType) -> None:
    """Print a table, or something else that rich lays out; its text must have been through here."""
    from rich.console import Console

    class Patient(Console):
        """A console that does not end the process, with an exit code of its own, when a pipe breaks."""

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    with _taken():
        Patient().print(renderable, soft_wrap=False)


@contextlib.contextmanager
def _taken() -> Iterator[None]:
    """Drop what a reader that has gone does not take; say so where a disk is full."""
    _speak()
    try:
        yield
    except BrokenPipeError:
        _drop()
    except OSError as error:
        _drop()
        raise LocumError(f"cannot write the output: {error.strerror}") from None


def _speak() -> None:
    """Take away the line that says that the command is at work."""
    watching = current()
    if watching is not None:
        watching.heard()


def _drop() -> None:
    """Write nowhere from now on: Python flushes once more when it ends, and must not fail then."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
