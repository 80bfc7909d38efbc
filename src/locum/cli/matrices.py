"""Matrices from files: .npy, .npz and .safetensors. Nothing is ever unpickled."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from locum.errors import InputError

Numbers = NDArray[Any]


def read_array(path: Path) -> Numbers:
    """The one array of a .npy file (or of a file that holds just one)."""
    if path.suffix == ".npy":
        return _array(_load(path), path)
    found = read_arrays(path)
    if len(found) != 1:
        raise InputError(f"{path} holds {len(found)} arrays ({_listed(found)}): one is wanted here")
    return next(iter(found.values()))


def read_arrays(path: Path) -> dict[str, Numbers]:
    """The named arrays of a .npz or .safetensors file."""
    if path.suffix == ".safetensors":
        return _safetensors(path)
    if path.suffix == ".npz":
        loaded = _load(path)
        if isinstance(loaded, np.ndarray):
            raise InputError(f"{path} is no .npz file: it holds a single array without a name")
        try:
            return {name: _array(loaded[name], path) for name in loaded.files}
        except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
            raise InputError(f"{path} holds something that is not an array: {error}") from None
    raise InputError(f"{path}: matrices are read from .npy, .npz and .safetensors files")


def _load(path: Path) -> Any:
    _require_file(path)
    try:
        return np.load(path, allow_pickle=False)
    except (ValueError, OSError, EOFError, zipfile.BadZipFile):
        raise InputError(f"{path} is no {path.suffix} file of plain numbers") from None


def _safetensors(path: Path) -> dict[str, Numbers]:
    _require_file(path)
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        return dict(load_file(path))
    except (SafetensorError, OSError, ValueError):
        raise InputError(f"{path} is no .safetensors file") from None
    except (KeyError, TypeError) as error:
        raise InputError(f"{path} holds numbers of a type that NumPy does not know: {error}") from None


def _require_file(path: Path) -> None:
    if not path.exists():
        raise InputError(f"there is no file {path}")
    if not path.is_file():
        raise InputError(f"{path} is not a file")


def _array(value: Any, path: Path) -> Numbers:
    if not isinstance(value, np.ndarray):
        raise InputError(f"{path} does not hold an array")
    return value


def _listed(found: dict[str, Numbers]) -> str:
    return ", ".join(found) or "none"
