"""Store the results of a sweep in a file, to which each result is appended as a line.

The file is locked if the system has file locks. A killed process leaves complete lines and at most one
incomplete line, which the next sweep removes. A file with any other content is rejected.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from locum.errors import InputError, LocumError
from locum.experiments.sweeps.sweep_case import MOST_LINE, Result, could_begin, read_line
from locum.files import check_target, open_file

try:
    import fcntl
except ImportError:  # Windows: the file is not locked
    fcntl = None  # type: ignore[assignment]

#: Maximum size of a file of results in bytes.
MOST_FILE = 2**40


def read(path: str | Path) -> Iterator[Result]:
    """Yield the results in a file in order, without an incomplete last line.

    If a key occurs several times, its last result is valid.
    """
    with open_file(path, MOST_FILE) as file:
        number = 0
        while line := file.readline(MOST_LINE + 1):
            number += 1
            if not line.endswith(b"\n") and could_begin(line):
                return
            try:
                yield read_line(line)
            except InputError as error:
                raise InputError(
                    f"{path}, line {number}: {error}; expected a file that only sweeps have written: "
                    "try another name for the output"
                ) from None


class Store:
    """The file to which a sweep appends its results, locked until it is closed if the system has file
    locks.
    """

    def __init__(self, path: str | Path) -> None:
        check_target(path)
        self.path = Path(path)
        try:
            flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
            self._handle = os.open(self.path, flags, 0o666)
        except (OSError, ValueError) as error:
            raise InputError(f"cannot write {path}: {getattr(error, 'strerror', error)}") from None
        try:
            self._lock()
            #: Last result for each key.
            self.results = {result.key: result for result in read(self.path)}
            os.ftruncate(self._handle, _end_of_lines(self.path))
        except BaseException:
            self.close()
            raise

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

    def append(self, result: Result) -> None:
        """Append a result as a complete line; if writing fails, remove the incomplete line."""
        line = result.line()
        size = os.fstat(self._handle).st_size
        try:
            if os.write(self._handle, line) != len(line):
                raise OSError(28, "no space left")
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._handle, size)
            raise LocumError(
                f"cannot write {self.path}: {error.strerror}; what was written before is kept"
            ) from None
        self.results[result.key] = result

    def close(self) -> None:
        """Flush all data to the disk, and close the file."""
        os.fsync(self._handle)
        os.close(self._handle)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _end_of_lines(path: Path) -> int:
    """Return the number of bytes up to the end of the last complete line."""
    with path.open("rb") as file:
        return sum(len(line) for line in file if line.endswith(b"\n"))
