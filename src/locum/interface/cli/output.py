r"""Print the output of commands (text, tables and JSON) on every kind of standard output.

Commands print with this module, so that

- control characters from programs and model folders are shown as escapes (``locum.text``);
- a closed output (``| head -1``) discards the text, but does not change the exit code;
- characters that the encoding of the output lacks are shown as escapes, such as ``\u2208``.
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

#: Control characters of Locum's layout.
LAYOUT = "\n\t"


def prepare() -> None:
    """Make standard output and standard error writable. Output to a closed stream is discarded."""
    sys.stdout = _writable(sys.stdout)
    sys.stderr = _writable(sys.stderr)


def _writable(stream: TextIO | None) -> TextIO:
    if stream is None:
        return open(os.devnull, "w", encoding="utf-8")
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="backslashreplace")
    return stream


def finish() -> None:
    """Flush standard output, and discard the text if the output is closed."""
    with _taken():
        sys.stdout.flush()


def say(text: str = "", end: str = "\n") -> None:
    """Print ``text``, followed by ``end``, on standard output."""
    with _taken():
        converse(text + end)


def converse(text: str) -> None:
    """Print ``text`` in a dialogue; raise ``BrokenPipeError`` if the output is closed."""
    sys.stdout.write(printable(text, LAYOUT))


def complain(text: str) -> None:
    """Print ``text`` on standard error."""
    _speak()
    with contextlib.suppress(OSError):  # standard error cannot be written
        sys.stderr.write(f"{printable(text, LAYOUT)}\n")
        sys.stderr.flush()


def print_json(data: dict[str, Any]) -> None:
    """Print ``data`` as one JSON object on one line.

    Values that JSON does not support (fractions, infinities) become strings, and so do integers that
    are too large for Python to print.
    """
    is_unicode = (sys.stdout.encoding or "").lower().startswith("utf")
    text = json.dumps(plain(data), ensure_ascii=not is_unicode, allow_nan=False)
    with _taken():
        sys.stdout.write(printable_json(text) + "\n")


def plain(value: Any) -> Any:
    """Convert ``value`` and its parts to types that JSON supports."""
    if isinstance(value, dict):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    if isinstance(value, Fraction) or (isinstance(value, float) and not math.isfinite(value)):
        return str(value)
    return short(value) if is_unprintable(value) else value


def title(text: str) -> RenderableType:
    """Return ``text`` in bold, for terminals that support bold text."""
    from rich.text import Text

    return Text(printable(text), style="bold")


def table(
    *titles: str, rows: Iterable[Iterable[str]], lines: bool = False, fold: bool = False
) -> Table:
    """Return a table of plain text, in which markup is not interpreted.

    ``lines`` draws lines between rows. ``fold`` breaks long words instead of truncating them.
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
    """Print a table or another rich renderable, whose text is already escaped."""
    from rich.console import Console

    class Patient(Console):
        """A console that raises ``BrokenPipeError`` if a pipe closes, and does not end the process."""

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    with _taken():
        Patient().print(renderable, soft_wrap=False)


@contextlib.contextmanager
def _taken() -> Iterator[None]:
    """Discard output to a closed pipe; raise ``LocumError`` for other errors, such as a full disk."""
    _speak()
    try:
        yield
    except BrokenPipeError:
        _drop()
    except OSError as error:
        _drop()
        raise LocumError(f"cannot write the output: {error.strerror}") from None


def _speak() -> None:
    """Remove the progress line before other output is printed."""
    watching = current()
    if watching is not None:
        watching.heard()


def _drop() -> None:
    """Discard all further output, because Python flushes at exit, and an error would be printed."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
