"""Read files with a limit on their size, write files atomically, and replace folders.

A file is written under a temporary name next to the target and then renamed. If writing is interrupted
or the disk is full, an existing file is unchanged.

>>> read_text("/dev/zero", limit=1000)
Traceback (most recent call last):
locum.errors.InputError: cannot read /dev/zero: it has more than 1,000 bytes
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, NoReturn

from locum.errors import InputError, LocumError

#: The content of a file.
Content = str | bytes

# Reading -----------------------------------------------------------------------------------------


@contextlib.contextmanager
def open_file(path: str | Path, limit: int) -> Iterator[IO[bytes]]:
    """Open a file of at most ``limit`` bytes for reading; the size of a device is not known."""
    try:
        file = open(path, "rb")  # noqa: SIM115
    except (OSError, ValueError) as error:  # ValueError: a NUL character in the path
        raise InputError(f"cannot read {path}: {_reason(error)}") from None
    with file:
        if os.fstat(file.fileno()).st_size > limit:
            raise InputError(f"cannot read {path}: it has more than {limit:,} bytes")
        yield file


def read_bytes(path: str | Path, limit: int) -> bytes:
    """Return the content of a file of at most ``limit`` bytes."""
    with open_file(path, limit) as file:
        try:
            content = file.read(limit + 1)
        except (OSError, MemoryError) as error:
            raise InputError(f"cannot read {path}: {_reason(error)}") from None
    if len(content) > limit:  # a file of unknown size, or a growing file
        raise InputError(f"cannot read {path}: it has more than {limit:,} bytes")
    return content


def read_text(path: str | Path, limit: int) -> str:
    """Return the text of a UTF-8 file of at most ``limit`` bytes, without a byte order mark."""
    content = read_bytes(path, limit)
    try:
        return _decode(content)
    except InputError as error:
        raise InputError(f"cannot read {path}: {error}") from None


def _decode(content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"byte {error.start} is not UTF-8 text") from None


def read_json(path: str | Path, limit: int) -> Any:
    """Return the data of a JSON file of at most ``limit`` bytes."""
    content = read_bytes(path, limit)
    try:
        return parse_json(content)
    except InputError as error:
        raise InputError(f"cannot read {path}: {error}") from None


def parse_json(text: str | bytes) -> Any:
    """Parse a JSON text and return its data; NaN, infinities and repeated names in an object are
    rejected.

    Bytes are decoded as UTF-8, with or without a byte order mark.

    >>> parse_json('{"a": [1, 2.5, null]}')
    {'a': [1, 2.5, None]}
    """

    def refuse(constant: str) -> NoReturn:
        raise InputError(f"{constant[:40]} is not a JSON number")

    def number(digits: str) -> float:
        value = float(digits)
        return value if math.isfinite(value) else refuse(digits)

    def named(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        content = dict(pairs)
        if len(content) < len(pairs):
            raise InputError("a JSON object contains the same name twice")
        return content

    if isinstance(text, bytes):
        text = _decode(text)
    try:
        return json.loads(text, parse_constant=refuse, parse_float=number, object_pairs_hook=named)
    except InputError:
        raise
    except RecursionError:
        raise InputError("the JSON is nested too deeply") from None
    except ValueError as error:
        raise InputError(f"not JSON ({error})") from None


def _reason(error: BaseException) -> str:
    if isinstance(error, MemoryError):
        return "not enough memory"
    return (isinstance(error, OSError) and error.strerror) or str(error)


# Writing -----------------------------------------------------------------------------------------


def check_target(path: str | Path | None, *inputs: str | Path | None) -> None:
    """Raise an error if ``path`` is not a regular file in an existing folder, or is one of the
    ``inputs`` of the same command.

    The file itself need not exist. Call this function before a long computation, so that the result is
    not lost. If ``path`` is None, nothing is checked.
    """
    if path is None:
        return
    target = _target(path)
    if not target.parent.is_dir():
        raise InputError(f"cannot write {path}: there is no folder {target.parent}")
    if target.exists() and not target.is_file():
        raise InputError(f"cannot write {path}: it exists and is not a regular file")
    if any(source is not None and _is_same(target, source) for source in inputs):
        raise InputError(f"cannot write {path}: the file is also an input; try another name")


def _is_same(path: Path, other: str | Path) -> bool:
    try:
        return os.path.samefile(path, other)
    except (OSError, ValueError):  # one of the files does not exist
        return False


def write_file(path: str | Path, content: Content) -> None:
    """Write or replace a file atomically. If an error occurs, an existing file is unchanged."""
    check_target(path)
    target = _target(path)  # a symbolic link remains a link
    fresh = target.with_name(f".{target.name[:40]}.{secrets.token_hex(8)}")
    encoded = _encode(path, content)
    try:
        try:
            _create(fresh, encoded)
            if target.exists():
                shutil.copymode(target, fresh)
            os.replace(fresh, target)
        except BaseException:
            fresh.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise LocumError(f"cannot write {path}: {_reason(error)}") from None


def make_folder(path: str | Path) -> None:
    """Create a folder and its missing parent folders."""
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LocumError(f"cannot write {path}: {_reason(error)}") from None


def write_folder(path: str | Path, files: Mapping[str, Content]) -> None:
    """Write a folder that contains exactly ``files`` (name → content), and replace an existing folder.

    If ``path`` is the working directory, an error is raised, since the process would otherwise be in a
    deleted folder.
    """
    target = _target(path)
    if not target.parent.is_dir():
        raise InputError(f"cannot write {path}: there is no folder {target.parent}")
    if target.exists() and not target.is_dir():
        raise InputError(f"cannot write {path}: it exists and is not a folder")
    if target == Path.cwd():
        raise InputError(
            f"cannot write {path}: it is the current folder, which would be replaced; "
            "try the name of a new folder"
        )
    encoded = {name: _encode(path, content) for name, content in files.items()}
    try:
        _write_folder(target, encoded)
    except OSError as error:
        raise LocumError(f"cannot write {path}: {_reason(error)}") from None


def _write_folder(target: Path, files: Mapping[str, bytes]) -> None:
    # One temporary folder contains the new folder, and the old folder after the first rename.
    workshop = Path(tempfile.mkdtemp(prefix=f".{target.name[:40]}.", dir=target.parent))
    fresh, old = workshop / "new", workshop / "old"
    try:
        fresh.mkdir()
        for name, content in files.items():
            _create(fresh / name, content)
        if target.exists():
            os.rename(target, old)
        os.rename(fresh, target)
    except BaseException:
        if old.exists() and not target.exists():
            os.rename(old, target)
        raise
    finally:
        shutil.rmtree(workshop, ignore_errors=True)


def _target(path: str | Path) -> Path:
    try:
        return Path(path).resolve()
    except (OSError, RuntimeError, ValueError) as error:  # a link to itself, a NUL character
        raise InputError(f"cannot write {path}: {_reason(error)}") from None


def _create(path: Path, content: bytes) -> None:
    with open(path, "xb") as file:
        file.write(content)


def _encode(path: str | Path, content: Content) -> bytes:
    if isinstance(content, bytes):
        return content
    try:
        return content.encode()
    except UnicodeEncodeError:
        raise InputError(
            f"cannot write {path}: its text contains an unpaired surrogate and is not valid Unicode"
        ) from None
