"""Store the results of a sweep in a file, which is validated and repaired when it is opened.

The file is locked if the system has file locks. Each line is written by one system call. A killed
process therefore leaves complete lines and at most one incomplete line. The next sweep removes this
line, or only adds its missing newline. A file with any other content is rejected.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Self

from locum.errors import InputError, LocumError
from locum.experiments.sweeps.sweep_case import (
    MOST_LINE,
    RejectedLineError,
    Result,
    could_begin,
    read_line,
)
from locum.files import check_target, open_file

try:
    import fcntl
except ImportError:  # Windows: the file is not locked
    fcntl = None  # type: ignore[assignment]

#: Maximum size of a file of results in bytes.
MOST_FILE = 2**40
#: Seconds after which written data are flushed to the disk.
_SYNCHRONISE = 1.0


def read(path: str | Path) -> Iterator[Result]:
    """Yield the results in a file in order, without an incomplete last line.

    A last line that lacks only its newline is yielded. If a key occurs several times, its last result
    is valid.
    """
    with open_file(path, MOST_FILE) as file:
        for result in _results(file, path):
            if isinstance(result, Result):
                yield result


def _results(file: IO[bytes], path: str | Path) -> Iterator[Result | bytes]:
    """Yield the results in a file, and finally the bytes of an incomplete last line, if there is one.

    A last line that lacks only its newline is yielded as a result, followed by empty bytes.
    """
    number = 0
    while line := file.readline(MOST_LINE + 1):
        number += 1
        if not line.endswith(b"\n"):
            # Zeros are data that did not reach the disk, but a file of only zeros is not recognised.
            foreign = number == 1 and not line.strip(b"\0")
            if foreign or len(line) > MOST_LINE or not could_begin(line):
                raise InputError(_refusal(path, number, "not a result of a sweep"))
            try:
                yield read_line(line + b"\n")
                yield b""
            except RejectedLineError:
                yield line
            return
        try:
            yield read_line(line)
        except RejectedLineError as error:
            raise InputError(_refusal(path, number, str(error))) from None


def _refusal(path: str | Path, number: int, reason: str) -> str:
    return (
        f"{path}, line {number}: {reason}; expected a file that only `locum sweep` has written: "
        "try another name for the output"
    )


class Store:
    """The file to which a sweep appends its results, locked until it is closed if the system has file
    locks.
    """

    def __init__(self, path: str | Path) -> None:
        check_target(path)
        self.path = Path(path)
        #: Whether this object created the file, so that it removes the file if nothing is written.
        self._is_new = False
        self._handle = self._open()
        #: Description of the repair when the file was opened, or None.
        self.repair: str | None = None
        #: Last result for each key.
        self.results: dict[str, Result] = {}
        self._synchronised = time.monotonic()
        try:
            self._lock()
            while not self._is_current():  # another sweep removed its empty file
                os.close(self._handle)
                self._handle = self._open()
                self._lock()
            self._load()
            #: Size of the file, which no other program may change.
            self._size = os.fstat(self._handle).st_size
        except BaseException:
            self.close()
            raise

    def _open(self) -> int:
        flags = os.O_RDWR | os.O_APPEND | getattr(os, "O_BINARY", 0)
        flags |= getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
        try:
            with contextlib.suppress(FileExistsError):
                handle = os.open(self.path, flags | os.O_CREAT | os.O_EXCL, 0o666)
                self._is_new = True
                return handle
            self._is_new = False
            return os.open(self.path, flags | os.O_CREAT, 0o666)
        except (OSError, ValueError) as error:
            raise InputError(f"cannot write {self.path}: {getattr(error, 'strerror', error)}") from None

    def _is_current(self) -> bool:
        """Return whether the path of the file still refers to the open file."""
        try:
            return os.path.samestat(os.fstat(self._handle), os.stat(self.path))
        except FileNotFoundError:
            return False

    def _lock(self) -> None:
        if fcntl is None:
            return
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                f"another sweep is writing {self.path}: wait until it has ended, or try another name"
            ) from None
        except OSError:  # a file system without locks
            return

    def _load(self) -> None:
        cut = None
        with os.fdopen(os.dup(self._handle), "rb") as file:
            file.seek(0)
            for entry in _results(file, self.path):
                if isinstance(entry, Result):
                    self.results[entry.key] = entry
                else:
                    cut = entry
        if cut is None:
            return
        if not cut:
            self._write(b"\n")
            self.repair = "the last line lacked its newline, which was added"
            return
        os.ftruncate(self._handle, os.fstat(self._handle).st_size - len(cut))
        self.repair = (
            f"the last line was cut off after {len(cut):,} bytes and was removed; its case is run again"
        )

    def append(self, result: Result) -> None:
        """Append a result as a complete line; if writing fails, remove the incomplete line."""
        self.check()
        line = result.line()
        self._write(line)
        self._size += len(line)
        self.results[result.key] = result
        if time.monotonic() - self._synchronised >= _SYNCHRONISE:
            self._synchronise()

    def check(self) -> None:
        """Raise ``LocumError`` if another program has changed the size of the file, or moved or removed
        it.
        """
        if not self._is_current():
            happened = "was moved or removed"
        elif os.fstat(self._handle).st_size != self._size:
            happened = "was changed by another program"
        else:
            return
        raise LocumError(
            f"{self.path} {happened} while the sweep wrote it, and results may be lost; the same "
            "command computes what is missing"
        )

    def _write(self, line: bytes) -> None:
        size = os.fstat(self._handle).st_size
        try:
            written = os.write(self._handle, line)
            if written != len(line):
                raise OSError(28, "no space left")
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._handle, size)
            raise LocumError(
                f"cannot write {self.path}: {error.strerror}; what was written before is kept"
            ) from None

    def _synchronise(self) -> None:
        os.fsync(self._handle)
        self._synchronised = time.monotonic()

    def close(self) -> None:
        """Flush all data to the disk, and remove a new file that is still empty."""
        if self._handle < 0:
            return
        handle, self._handle = self._handle, -1
        try:
            os.fsync(handle)
            if self._is_new and os.fstat(handle).st_size == 0:
                self.path.unlink(missing_ok=True)
        finally:
            os.close(handle)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
