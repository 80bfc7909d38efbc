"""Save transformers in folders with config.json and model.safetensors, and read untrusted folders.

The metadata of the weight file contains the format version and three hashes: of the program, the
weights and config.json. A folder is rejected if one of the hashes does not match. The header, the sizes
and the hashes of the program and config.json are checked before the weights are read. Nothing is
unpickled, and no content of a folder is executed.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from locum.errors import InputError, LocumError
from locum.files import Content, open_file, parse_json, read_all, read_json, write_folder
from locum.networks.transformer.config import Config
from locum.networks.transformer.folder.description import FORMAT, VERSION, agree, describe, understand
from locum.networks.transformer.folder.shapes import Shape
from locum.networks.transformer.weights import Array, Weights

CONFIG, WEIGHTS = "config.json", "model.safetensors"
#: Maximum size in bytes of config.json and of the header of the weight file, and default of the maximum
#: for all tensors.
CONFIG_LIMIT, HEADER_LIMIT, WEIGHTS_LIMIT = 2**25, 2**24, 2**31
_TYPES = {"float32": "F32", "float64": "F64"}
#: Maximum number of attempts to read or check a folder that another process is replacing.
_ATTEMPTS = 100


# Writing -----------------------------------------------------------------------------------------


def write(config: Config, weights: Weights, folder: str | Path) -> None:
    """Write a transformer to a folder, completely or not at all.

    A folder that contains only a saved model is replaced. ``InputError`` is raised if the folder has
    other content.
    """
    files = contents(config, weights)
    _check_place(Path(folder))
    write_folder(folder, files)


def contents(config: Config, weights: Weights) -> dict[str, Content]:
    """Return the contents of the files of a saved transformer by file name."""
    shape = Shape.of(weights)
    agree(config, shape)
    tensors = dict(weights.named())
    expected = dict(shape.tensors())
    for name, tensor in tensors.items():
        if tensor.shape != expected.get(name) or tensor.dtype != np.dtype(config.dtype):
            raise InputError(
                f"{name}: expected {config.dtype} of shape {expected.get(name)}, got {tensor.dtype} of "
                f"shape {tensor.shape}"
            )
        _check_finite(name, tensor)
    description = describe(config, shape).encode()
    if len(description) > CONFIG_LIMIT:
        raise InputError(
            f"cannot save: {CONFIG} would have {len(description):,} bytes, and the limit is "
            f"{CONFIG_LIMIT:,}"
        )
    metadata = {
        "format": FORMAT,
        "version": str(VERSION),
        "program": config.program_hash,
        "weights": weights.fingerprint(),
        "config": hashlib.sha256(description).hexdigest(),
    }
    return {CONFIG: description, WEIGHTS: _pack(tensors, metadata, config.dtype)}


def _pack(
    tensors: Mapping[str, Array], metadata: Mapping[str, str], dtype: str
) -> Iterator[bytes | memoryview]:
    """Yield a file in the safetensors format: a JSON header, then the bytes of the tensors."""
    shapes = {name: tensor.shape for name, tensor in tensors.items()}
    header = {"__metadata__": dict(metadata)} | _header(shapes, dtype)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # tensors begin at a multiple of 8 bytes
    yield len(text).to_bytes(8, "little") + text
    for name in sorted(tensors):
        yield _bytes_of(np.ascontiguousarray(tensors[name], _little_endian(dtype)))


def _header(shapes: Mapping[str, tuple[int, ...]], dtype: str) -> dict[str, Any]:
    """Return the type, shape and offsets of every tensor, in the order of the safetensors library."""
    header, end = {}, 0
    for name in sorted(shapes):
        start, end = end, end + math.prod(shapes[name]) * np.dtype(dtype).itemsize
        header[name] = {
            "dtype": _TYPES[dtype],
            "shape": list(shapes[name]),
            "data_offsets": [start, end],
        }
    return header


def _little_endian(dtype: str) -> np.dtype[Any]:
    return np.dtype(dtype).newbyteorder("<")


def _bytes_of(array: Array) -> memoryview:
    """Return the bytes of a contiguous array without a copy."""
    return array.reshape(-1).view(np.uint8).data


def _check_place(target: Path) -> None:
    for _ in range(_ATTEMPTS):
        before = _version_of(target)
        try:
            names = {entry.name for entry in target.iterdir()}
        except OSError:
            return  # no such folder, another process is replacing it, or writing will report the error
        if not names or (names == {CONFIG, WEIGHTS} and _is_saved_model(target)):
            return
        if before == _version_of(target):
            break
        # The folder was replaced while it was read, so the files may belong to two folders.
        time.sleep(0.001)
    raise InputError(
        f"cannot save into {target}: it holds other files; try a folder that is new, or empty, or "
        "that holds a saved model and nothing else"
    )


def _is_saved_model(folder: Path) -> bool:
    """Return whether a folder contains a Locum configuration of any version, or no longer exists."""
    try:
        data = read_json(folder / CONFIG, CONFIG_LIMIT)
    except LocumError:
        return not folder.exists()  # another process replaced the folder between two checks
    return isinstance(data, dict) and data.get("format") == FORMAT


# Reading -----------------------------------------------------------------------------------------


def read(folder: str | Path, limit: int = WEIGHTS_LIMIT) -> tuple[Config, Weights]:
    """Return the transformer in a folder written by :func:`write`, with bitwise equal weights.

    Weights of more than ``limit`` bytes are rejected.
    """
    place = Path(folder)
    for _ in range(_ATTEMPTS - 1):
        before = _version_of(place)
        try:
            return _read(place, limit)
        except InputError:
            # While another process saves to the folder, the folder may be missing for a moment, or its
            # files may belong to two models.
            if before is not None and before == _version_of(place):
                raise
            time.sleep(0.001)
    return _read(place, limit)


def _version_of(place: Path) -> tuple[int, ...] | None:
    """Return metadata that change when a folder is replaced; None if they cannot be read."""
    try:
        status = os.stat(place)
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_ctime_ns


def _read(place: Path, limit: int) -> tuple[Config, Weights]:
    if not place.is_dir():
        raise InputError(f"expected a folder with a saved model, got {place}, which is not a folder")
    with open_file(place / CONFIG, CONFIG_LIMIT, links=False) as file:
        description = read_all(file, place / CONFIG, CONFIG_LIMIT)
    try:
        config, shape = understand(description)
    except InputError as error:
        raise InputError(
            f"{place / CONFIG} is not a valid configuration of a saved model: {error}"
        ) from None
    size = shape.bytes(config.dtype)
    if size > limit:
        raise InputError(
            f"cannot load {place}: expected weights of at most {limit:,} bytes, got {size:,} bytes; "
            "try "
            f"limit={size}"
        )
    with open_file(place / WEIGHTS, size + HEADER_LIMIT, links=False) as file:
        try:
            return config, _read_weights(file, config, shape, description)
        except MemoryError:
            raise InputError(f"cannot load {place}: not enough memory") from None
        except (InputError, OSError) as error:
            raise InputError(
                f"{place / WEIGHTS} is not a valid weights file of a saved model: {error}"
            ) from None


def _read_weights(file: IO[bytes], config: Config, shape: Shape, description: bytes) -> Weights:
    expected, size = shape.bytes(config.dtype), os.fstat(file.fileno()).st_size
    length = int.from_bytes(file.read(8), "little")
    if length > HEADER_LIMIT or 8 + length + expected != size:
        raise InputError(
            f"expected a file of {8 + length + expected:,} bytes for its header and the tensors of "
            f"{CONFIG}, "
            f"got {size:,} bytes"
        )
    header = _parse_header(file.read(length))
    metadata = header.pop("__metadata__")
    _check_metadata(metadata, config, description)
    places = _header(dict(shape.tensors()), config.dtype)
    for name in sorted(header.keys() | places.keys()):
        if header.get(name) != places.get(name):
            described, expected_row = str(header.get(name, "missing"))[:90], places.get(name, "unknown")
            raise InputError(
                f"the tensor {name[:60]!r} is {described} in the header, but {expected_row} in {CONFIG}"
            )
    tensors = {}
    for name, dimensions in shape.tensors():
        tensor: Array = np.empty(dimensions, _little_endian(config.dtype))
        file.seek(8 + length + places[name]["data_offsets"][0])
        content = file.readinto(_bytes_of(tensor)) if tensor.size else 0  # type: ignore[attr-defined]
        if content != tensor.nbytes:
            raise InputError("the file was changed while it was read")
        _check_finite(name, tensor)
        tensors[name] = tensor.astype(config.dtype, copy=False)
    weights = shape.fill(tensors)
    if metadata.get("weights") != weights.fingerprint():
        raise InputError("the weights have changed since they were saved: their hash differs")
    return weights


def _parse_header(content: bytes) -> dict[str, Any]:
    try:
        header = parse_json(content.decode("utf-8"))
    except (InputError, UnicodeDecodeError):
        raise InputError("the header is not JSON") from None
    if not isinstance(header, dict) or not isinstance(header.get("__metadata__"), dict):
        raise InputError("the header is not a JSON object with metadata")
    return header


def _check_metadata(metadata: Mapping[str, Any], config: Config, description: bytes) -> None:
    for name, expected, problem in (
        ("format", FORMAT, "the file has another format"),
        ("version", str(VERSION), f"expected version {VERSION}, got another version"),
        (
            "program",
            config.program_hash,
            f"the weights are those of another program than the program in {CONFIG}",
        ),
        (
            "config",
            hashlib.sha256(description).hexdigest(),
            f"{CONFIG} has changed since the weights were saved: its hash differs",
        ),
    ):
        if metadata.get(name) != expected:
            raise InputError(problem)


def _check_finite(name: str, tensor: Array) -> None:
    if not np.isfinite(tensor).all():
        raise InputError(f"{name}: expected finite numbers, got NaN or an infinity")
