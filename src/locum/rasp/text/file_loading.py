"""Find and read the files that a program loads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from locum.errors import LocumError
from locum.files import read_text
from locum.rasp.text.mistakes import RaspError, cut


def find(name: str, folders: Sequence[Path]) -> Path:
    """Return the path of ``name``.rasp in the first folder that contains it.

    ``name`` may include the suffix ``.rasp``. If no folder contains the file, :class:`RaspError` is
    raised.
    """
    file = f"{name.removesuffix('.rasp')}.rasp"
    for folder in folders:
        try:
            path = (folder / file).resolve()
            if path.is_file():
                return path
        except (OSError, ValueError, RuntimeError):  # too long, a NUL character, a link to itself
            continue
    raise RaspError("load", f"could not find file: {cut(file)}")


def read(path: Path, name: str, characters: int) -> str:
    """Return the text of a file with all line endings as newlines.

    :class:`RaspError` is raised if the file is larger than ``4 * characters`` bytes or cannot be read.
    """
    try:
        text = read_text(path, limit=4 * characters)
    except LocumError as error:
        raise RaspError("load", f"cannot read file {cut(name)}.rasp: {error}") from None
    return with_newlines(text)


def with_newlines(text: str) -> str:
    r"""Return ``text`` with all line endings converted to newlines.

    >>> with_newlines("a;\r\nb;\rc;\n")
    'a;\nb;\nc;\n'
    """
    return text.replace("\r\n", "\n").replace("\r", "\n")
