"""Files and folders, whole or not at all: written beside their place, then moved there."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from locum.errors import LocumError


def place_file(content: bytes, target: Path) -> None:
    """Write one file; one that is there is replaced."""
    target = target.resolve()  # a link stays a link
    if target.exists() and not target.is_file():
        raise LocumError(f"cannot write {target}: it is there and not an ordinary file")
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        fresh = Path(name)
        try:
            with os.fdopen(handle, "wb") as file:
                _write(file, content)
            fresh.chmod(0o666 & ~_umask())
            os.replace(fresh, target)
        except BaseException:
            fresh.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise LocumError(f"cannot write {target}: {error.strerror or error}") from None


def place_folder(files: Mapping[str, bytes], target: Path) -> None:
    """Write files into a new folder, and put it in the place of the old one if there is one."""
    try:
        _place_folder(files, target)
    except OSError as error:
        raise LocumError(f"cannot write {target}: {error.strerror or error}") from None


def _place_folder(files: Mapping[str, bytes], target: Path) -> None:
    fresh = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}."))
    # What was there steps aside by a rename and is deleted last, so that its place is empty only
    # between two renames, and an interruption there puts it back.
    aside = fresh.with_name(fresh.name + ".old")
    try:
        for name, content in files.items():
            with open(fresh / name, "xb") as file:
                _write(file, content)
        fresh.chmod(0o777 & ~_umask())
        _sync_folder(fresh)
        if target.exists():
            os.rename(target, aside)
        os.rename(fresh, target)
        _sync_folder(target.parent)
    except BaseException:
        if aside.exists() and not target.exists():
            os.rename(aside, target)
        shutil.rmtree(fresh, ignore_errors=True)
        raise
    finally:
        if target.exists():
            shutil.rmtree(aside, ignore_errors=True)


def _write(file: IO[bytes], content: bytes) -> None:
    file.write(content)
    file.flush()
    os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
