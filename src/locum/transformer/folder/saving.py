"""Transformers in folders: ``config.json`` and ``model.safetensors``, written whole and read with care.

The weights' file carries, as metadata, the version of the format and three hashes: of the program, of
the weights, and of config.json. A folder of which a bit has changed is refused, not run. Nothing is
unpickled, and nothing that a folder contains is executed.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from locum.errors import InputError, LocumError
from locum.files import write_folder
from locum.transformer.compiled import CompiledTransformer
from locum.transformer.folder.description import FORMAT, VERSION, agree, describe, understand
from locum.transformer.folder.shapes import Shape
from locum.transformer.weights import Array

CONFIG, WEIGHTS = "config.json", "model.safetensors"
#: The most that config.json, and the header of the weights' file, may have, in bytes.
LONGEST_CONFIG, LONGEST_HEADER = 2**28, 2**25
_TYPES = {"float32": "F32", "float64": "F64"}


# Writing -----------------------------------------------------------------------------------------


def save(model: CompiledTransformer, folder: str | Path) -> None:
    """Write a model into a folder, which comes into being complete or not at all.

    A folder that holds a saved model (and nothing else) is replaced; one with anything else in it is
    left alone, and refused.
    """
    config, shape = model.config, Shape.of(model.weights)
    agree(config, shape)
    tensors = {name: np.ascontiguousarray(tensor) for name, tensor in model.weights.named()}
    _fit(tensors, shape, config.dtype)
    description = describe(config, shape).encode()
    metadata = {
        "format": FORMAT,
        "version": str(VERSION),
        "program": config.program_hash,
        "weights": model.hash,
        "config": hashlib.sha256(description).hexdigest(),
    }
    target = Path(folder).resolve()
    _check_place(target)
    write_folder(target, {CONFIG: description, WEIGHTS: _pack(tensors, metadata)})


def _pack(tensors: dict[str, Array], metadata: Mapping[str, str]) -> bytes:
    """A file of safetensors, the same bytes each time (the library shuffles the metadata)."""
    from safetensors.numpy import save as as_bytes

    content = as_bytes(tensors)
    start = 8 + int.from_bytes(content[:8], "little")
    header = {"__metadata__": metadata} | json.loads(content[8:start])
    packed = json.dumps(header, separators=(",", ":")).encode()
    packed += b" " * (-len(packed) % 8)  # tensors begin at a multiple of eight
    return len(packed).to_bytes(8, "little") + packed + content[start:]


def _check_place(target: Path) -> None:
    if not target.parent.is_dir():
        raise InputError(f"cannot save into {target}: there is no folder {target.parent}")
    if not target.exists():
        return
    if not target.is_dir():
        raise InputError(f"cannot save into {target}: it is there and not a folder")
    names = {entry.name for entry in target.iterdir()}
    if names and not (names == {CONFIG, WEIGHTS} and _is_ours(target / CONFIG)):
        raise InputError(
            f"cannot save into {target}: it holds other files; give a folder that is new, or empty, or "
            "that holds a saved model and nothing else"
        )


def _is_ours(path: Path) -> bool:
    """Whether a configuration says that it is one of ours, be it of another version."""
    try:
        found = json.loads(_read_file(path, LONGEST_CONFIG))
    except (LocumError, ValueError, RecursionError):
        return False
    return isinstance(found, dict) and found.get("format") == FORMAT


# Reading -----------------------------------------------------------------------------------------


def load(folder: str | Path) -> CompiledTransformer:
    """The model that :meth:`CompiledTransformer.save` wrote, bit for bit, or an :class:`InputError`."""
    place = Path(folder)
    if not place.is_dir():
        raise InputError(f"there is no saved model at {place}: it is not a folder")
    description = _read_file(place / CONFIG, LONGEST_CONFIG)
    try:
        config, shape = understand(description)
    except InputError as error:
        raise InputError(f"{place / CONFIG} is not that of a saved model: {error}") from None
    try:
        tensors, metadata = _read_weights(place / WEIGHTS, shape, config.dtype)
        model = CompiledTransformer(config, shape.fill(tensors))
        _check_metadata(metadata, model, description)
    except InputError as error:
        raise InputError(f"{place / WEIGHTS} is not that of a saved model: {error}") from None
    return model


def _check_metadata(
    metadata: Mapping[str, str], model: CompiledTransformer, description: bytes
) -> None:
    wanted = {
        "format": (FORMAT, "it is of another format"),
        "version": (str(VERSION), f"it is of another version than {VERSION}"),
        "program": (
            model.config.program_hash,
            "it was made from another program than config.json says",
        ),
        "weights": (model.hash, "its numbers are not those that were saved: their hash differs"),
        "config": (
            hashlib.sha256(description).hexdigest(),
            "config.json is not the one that was saved with it: its hash differs",
        ),
    }
    for name, (value, problem) in wanted.items():
        if metadata.get(name) != value:
            raise InputError(problem)


def _open_file(path: Path) -> int:
    """A handle on an ordinary file (no link, no folder, no pipe)."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        if path.is_symlink():
            raise InputError(f"{path} is a link; a saved model is of ordinary files")
        handle = os.open(path, flags | getattr(os, "O_BINARY", 0))
    except FileNotFoundError:
        raise InputError(f"{path} is missing: a saved model is {CONFIG} and {WEIGHTS}") from None
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise InputError(f"{path} is not an ordinary file")
    return handle


def _read_file(path: Path, most: int, least: int = 0) -> bytes:
    """The content of a file whose size lies between two bounds."""
    with os.fdopen(_open_file(path), "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if not least <= size <= most:
            wanted = f"at most {most:,}" if size > most else f"at least {least:,}"
            raise InputError(f"{path} has {size:,} bytes, but should have {wanted}")
        try:
            return file.read(size)
        except (OSError, MemoryError) as error:
            raise InputError(f"cannot read {path}: {error or 'not enough memory'}") from None


def _read_weights(path: Path, shape: Shape, dtype: str) -> tuple[dict[str, Array], Mapping[str, str]]:
    import safetensors
    from safetensors.numpy import load as from_bytes

    expected = shape.bytes(dtype)
    content = _read_file(path, expected + 8 + LONGEST_HEADER, least=expected + 8)
    # The header is looked at before the library is: its length, then what it declares.
    length = int.from_bytes(content[:8], "little")
    if length != len(content) - 8 - expected:
        raise InputError("its header does not end where the tensors of config.json would begin")
    try:
        header = json.loads(content[8 : 8 + length].decode("utf-8"))
    except (ValueError, RecursionError):
        raise InputError("its header is not JSON") from None
    metadata = _check_header(header, shape, dtype)
    try:
        tensors = from_bytes(content)
    except (safetensors.SafetensorError, ValueError, KeyError, TypeError, MemoryError) as error:
        raise InputError(f"it is not a file of safetensors ({error})") from None
    _fit(tensors, shape, dtype)
    # The library's are views of the file's bytes, which cannot be written to; a model's own can.
    return {name: tensor.copy() for name, tensor in tensors.items()}, metadata


def _check_header(header: Any, shape: Shape, dtype: str) -> Mapping[str, str]:
    """The metadata; names, types and shapes are those of ``shape``, or this is refused."""
    if not isinstance(header, dict):
        raise InputError("its header is not an object")
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict):
        raise InputError("its metadata are not an object")
    wanted = dict(shape.tensors())
    for name in [name for name in wanted if name not in header][:1]:
        raise InputError(f"the tensor {name} is missing")
    for name in [name for name in header if name not in wanted][:1]:
        raise InputError(f"it has a tensor {name!r} that the transformer does not")
    for name, size in wanted.items():
        row = header[name]
        given = row.get("shape") if isinstance(row, dict) else None
        if given != list(size):
            raise InputError(f"{name} should have the shape {list(size)}, not {str(given)[:60]}")
        if row.get("dtype") != _TYPES[dtype]:
            raise InputError(f"{name} should be of {dtype}, not {str(row.get('dtype'))[:60]}")
    return metadata


def _fit(tensors: Mapping[str, Array], shape: Shape, dtype: str) -> None:
    """Refuse other names, shapes or dtypes than those of ``shape``, and what is not finite."""
    wanted = dict(shape.tensors())
    if tensors.keys() != wanted.keys():
        raise InputError(
            f"the tensors {sorted(tensors.keys() ^ wanted.keys())} are missing, or too many"
        )
    for name, size in wanted.items():
        tensor = tensors[name]
        if tensor.shape != size or tensor.dtype != np.dtype(dtype):
            raise InputError(
                f"{name} should be of {dtype} in the shape {list(size)}, not of {tensor.dtype} in "
                f"{list(tensor.shape)}"
            )
        if not np.isfinite(tensor).all():
            raise InputError(f"{name} has numbers that are not finite")
