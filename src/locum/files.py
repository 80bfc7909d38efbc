"""Read untrusted files safely, write files atomically, and replace folders.

Only regular files are read, and the size of a file is checked before it is read. For a device, a pipe
or a huge file, the functions raise an error with a one-line message. A file is written under a
temporary name next to the target and then renamed. If writing is interrupted or the disk is full, an
existing file is unchanged.

>>> read_text("/dev/null", limit=1000)
Traceback (most recent call last):
locum.errors.InputError: cannot read /dev/null: expected a regular file, got a device
"""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
import re
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate
from pathlib import Path
from typing import IO, Any, NoReturn

from locum.errors import InputError, LocumError

#: Maximum nesting depth of JSON. Parsers are recursive, and their limits depend on the Python version.
DEEPEST = 500
#: Map opening and closing brackets to the changes of depth 1 and −1, as signed bytes.
#: ``_NOT_BRACKETS`` contains all other bytes.
_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[{]}"))

#: The content of a file.
Content = str | bytes

# Reading -----------------------------------------------------------------------------------------


@contextlib.contextmanager
def open_file(path: str | Path, limit: int) -> Iterator[IO[bytes]]:
    """Open a regular file of at most ``limit`` bytes for reading."""
    flags = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        handle = os.open(path, flags)
    except (OSError, ValueError) as error:  # ValueError: a NUL character in the path
        raise InputError(f"cannot read {path}: {_reason(error)}") from None
    try:
        _check(os.fstat(handle), path, limit)
    except InputError:
        os.close(handle)
        raise
    with os.fdopen(handle, "rb") as file:
        yield file


def _check(status: os.stat_result, path: str | Path, limit: int) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise InputError(f"cannot read {path}: expected a regular file, got {_kind(status.st_mode)}")
    if status.st_size > limit:
        raise InputError(
            f"cannot read {path}: it has {status.st_size:,} bytes, and the limit is {limit:,}"
        )


def read_bytes(path: str | Path, limit: int) -> bytes:
    """Return the content of a regular file of at most ``limit`` bytes."""
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


def _is_too_deep(text: str) -> bool:
    """Return whether a JSON text is nested more than ``DEEPEST`` levels deep, not counting brackets
    inside strings.

    The time is linear in the length of the text, even if a string is not terminated, since possessive
    quantifiers do not backtrack.
    """
    outside = re.sub(r'"(?:[^"\\]++|\\.)*+"?', "", text, flags=re.DOTALL)
    steps = outside.encode(errors="replace").translate(_STEPS, _NOT_BRACKETS)
    return any(map(DEEPEST.__lt__, accumulate(memoryview(steps).cast("b"))))


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
    if _is_too_deep(text):
        raise InputError(f"the JSON is nested too deeply: expected {DEEPEST} levels at most")
    try:
        return json.loads(text, parse_constant=refuse, parse_float=number, object_pairs_hook=named)
    except InputError:
        raise
    except RecursionError:
        raise InputError("the JSON is nested too deeply") from None
    except ValueError as error:
        raise InputError(f"not JSON ({error})") from None


def _kind(mode: int) -> str:
    kinds: dict[str, Callable[[int], bool]] = {
        "a folder": stat.S_ISDIR,
        "a pipe": stat.S_ISFIFO,
        "a socket": stat.S_ISSOCK,
    }
    return next((name for name, test in kinds.items() if test(mode)), "a device")


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
    fresh = target.with_name(_temporary(target))
    encoded = _encode(path, content)
    try:
        try:
            _create(fresh, encoded, like=target)
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

    If several processes write the same folder at once, each succeeds and the last folder remains. If
    ``path`` is the working directory, an error is raised, since the process would otherwise be in a
    deleted folder.
    """
    target = _target(path)
    if not target.parent.is_dir():
        raise InputError(f"cannot write {path}: there is no folder {target.parent}")
    # Inspect the folder only once: between two inspections another process may move it.
    with contextlib.suppress(OSError):
        if not stat.S_ISDIR(os.stat(target).st_mode):
            raise InputError(f"cannot write {path}: it exists and is not a folder")
    if target == _working_folder():
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
    # One temporary folder contains the new folder, and the old folders that a rename has moved there.
    # The target is missing only between two renames, and an interruption restores the old folder.
    workshop = target.with_name(_temporary(target))
    fresh = workshop / "new"
    old: Path | None = None
    try:
        os.makedirs(fresh)
        for name, content in files.items():
            _create(fresh / name, content)
        _synchronise(fresh)
        while True:
            try:
                aside = workshop / f"old-{secrets.token_hex(4)}"
                os.rename(target, aside)
                old = aside
            except FileNotFoundError:
                pass
            try:
                os.rename(fresh, target)
                break
            except OSError as error:  # another process was faster
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
        _synchronise(target.parent)
    except BaseException:
        if old is not None and not target.exists():
            with contextlib.suppress(OSError):  # another process was faster
                os.rename(old, target)
        raise
    finally:
        shutil.rmtree(workshop, ignore_errors=True)


def _target(path: str | Path) -> Path:
    try:
        return Path(path).resolve()
    except (OSError, RuntimeError, ValueError) as error:  # a link to itself, a NUL character
        raise InputError(f"cannot write {path}: {_reason(error)}") from None


def _working_folder() -> Path | None:
    try:
        return Path.cwd().resolve()
    except OSError:  # the folder was deleted in the meantime
        return None


def _temporary(target: Path) -> str:
    """Return a random name of a hidden file, which contains at most 40 characters of the name of
    ``target``.
    """
    return f".{target.name[:40]}.{secrets.token_hex(8)}"


def _create(path: Path, content: bytes, like: Path | None = None) -> None:
    """Create a file with the permissions of ``like`` if that file exists, otherwise with default
    permissions.
    """
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    with os.fdopen(handle, "wb") as file:
        if like is not None and like.exists():
            path.chmod(stat.S_IMODE(like.stat().st_mode))
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _encode(path: str | Path, content: Content) -> bytes:
    if isinstance(content, bytes):
        return content
    try:
        return content.encode()
    except UnicodeEncodeError:
        raise InputError(
            f"cannot write {path}: its text contains an unpaired surrogate and is not valid Unicode"
        ) from None


def _synchronise(folder: Path) -> None:
    """Flush the directory entries of a folder to the disk, on POSIX systems."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
