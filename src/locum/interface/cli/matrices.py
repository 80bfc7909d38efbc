"""Read matrices from .npy, .npz and .safetensors files, without unpickling.

In .npy and .npz files, names, shapes and sizes are checked before numbers are read. Otherwise, the
header of a small .npz file could claim gigabytes of data.
"""

from __future__ import annotations

import contextlib
import math
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from numpy.lib import format as npy
from numpy.typing import NDArray

from locum.errors import InputError
from locum.files import open_file

Numbers = NDArray[Any]

#: Maximum size in bytes of a file and of the arrays in it.
LIMIT = 2**30


def read_array(path: Path) -> Numbers:
    """Return the array of a .npy file, or the only array of a .npz or .safetensors file."""
    if path.suffix == ".npy":
        with open_file(path, LIMIT) as file:
            size = file.seek(0, 2)
            file.seek(0)
            return _read(file, size, str(path))
    arrays = read_arrays(path)
    if len(arrays) != 1:
        listed = ", ".join(arrays) or "none"
        raise InputError(f"{path}: expected one array, got {len(arrays)} ({listed})")
    return next(iter(arrays.values()))


def read_arrays(path: Path) -> Mapping[str, Numbers]:
    """Return the named arrays of a .npz or .safetensors file."""
    if path.suffix == ".npz":
        return _Archive(path)
    if path.suffix == ".safetensors":
        return _safetensors(path)
    raise InputError(
        f"{path}: expected a .npy, .npz or .safetensors file, got {path.suffix or 'another'}"
    )


class _Archive(Mapping[str, Numbers]):
    """A mapping from names to the arrays of a .npz file; each array is decompressed on access."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with open_file(path, LIMIT) as file, _damage(f"{path} is not a .npz file"):
            members = zipfile.ZipFile(file).infolist()
        names = [member.filename.removesuffix(".npy") for member in members]
        if len(set(names)) < len(names):
            raise InputError(f"{path} is damaged: it contains an array twice")
        size = sum(member.file_size for member in members)
        if size > LIMIT:
            raise InputError(f"{path}: expected arrays of at most {LIMIT:,} bytes, got {size:,} bytes")
        self._members = dict(zip(names, members, strict=True))

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def __getitem__(self, name: str) -> Numbers:
        size, what = self._members[name].file_size, f"{name} in {self._path}"
        with (
            open_file(self._path, LIMIT) as file,
            _damage(f"{what} is damaged"),
            zipfile.ZipFile(file).open(self._members[name].filename) as content,
        ):
            return _read(content, size, what)


def _read(file: IO[bytes], size: int, what: str) -> Numbers:
    """Check the header of an array in NumPy's format, and read the array.

    ``size`` is the number of bytes of the array in the file, including the header. ``what`` names the
    array in errors.
    """
    with _damage(f"{what} is not an array in the .npy format"):
        version = npy.read_magic(file)
        read_header = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}[version]
        shape, _, dtype = read_header(file)
    if dtype.hasobject:
        raise InputError(f"{what}: expected an array of numbers, got Python objects")
    claimed, held = math.prod(shape) * dtype.itemsize, size - file.tell()
    if claimed > held or min(shape, default=0) < 0:
        dimensions = " × ".join(map(str, shape))
        raise InputError(f"{what} claims the shape {dimensions}, but has only {held:,} bytes")
    file.seek(0)
    with _damage(f"{what} is damaged"):
        return npy.read_array(file, allow_pickle=False)


@contextlib.contextmanager
def _damage(message: str) -> Iterator[None]:
    """Replace every exception except ``InputError`` by an ``InputError`` with this message.

    NumPy, zipfile and zlib raise various exceptions for damaged files.
    """
    try:
        yield
    except InputError:
        raise
    except Exception:
        raise InputError(message) from None


def _safetensors(path: Path) -> dict[str, Numbers]:
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    with open_file(path, LIMIT):
        pass
    try:
        return dict(load_file(path))
    except (SafetensorError, OSError, ValueError, MemoryError):
        raise InputError(f"{path} is not a .safetensors file") from None
    except (KeyError, TypeError) as error:
        raise InputError(
            f"{path} contains numbers of a type that NumPy does not support: {error}"
        ) from None
