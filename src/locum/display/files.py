"""Writing a file whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from locum.errors import LocumError


def write_whole(path: Path, content: str | bytes) -> None:
    """Write ``content`` beside its place and move it there: an interruption leaves no half file."""
    path = path.resolve()  # a link stays a link
    if path.exists() and not path.is_file():
        raise LocumError(f"cannot write {path}: it is there and not an ordinary file")
    try:
        data = content.encode() if isinstance(content, str) else content
    except UnicodeEncodeError:
        raise LocumError(
            f"cannot write {path}: its text has half a character in it (a lone surrogate)"
        ) from None
    try:
        with tempfile.NamedTemporaryFile(
            dir=path.parent, prefix=f".{path.name}.", delete=False
        ) as file:
            temporary = Path(file.name)
            try:
                file.write(data)
            except BaseException:
                temporary.unlink(missing_ok=True)
                raise
        temporary.chmod(0o666 & ~_umask())
        os.replace(temporary, path)
    except OSError as error:
        raise LocumError(f"cannot write {path}: {error.strerror}") from None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
