"""Save transformers in folders with ``config.json`` and ``model.safetensors``, and load them.

The metadata of the weight file contains one SHA-256 hash of ``config.json`` and all tensors, so that a
damaged folder is rejected. No content of a folder is executed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from locum.errors import InputError, LocumError
from locum.files import write_folder
from locum.networks.transformer.config import Config
from locum.networks.transformer.folder.description import FORMAT, describe, read_description
from locum.networks.transformer.weights import Array, Weights, hash_tensors

CONFIG, WEIGHTS = "config.json", "model.safetensors"


def write(config: Config, weights: Weights, folder: str | Path) -> None:
    """Write a transformer to a folder, completely or not at all.

    A folder that contains only a saved model is replaced. ``InputError`` is raised if the folder has
    other content.
    """
    place = Path(folder)
    if place.is_dir() and any(place.iterdir()) and not _is_saved_model(place):
        raise InputError(
            f"cannot save into {place}: it holds other files; try a folder that is new, or empty, or "
            "that holds a saved model and nothing else"
        )
    write_folder(place, contents(config, weights))


def _is_saved_model(folder: Path) -> bool:
    """Return whether a folder contains the files of a saved model, of any version, and no others."""
    if {entry.name for entry in folder.iterdir()} != {CONFIG, WEIGHTS}:
        return False
    return f'"format": "{FORMAT}"'.encode() in (folder / CONFIG).read_bytes()


def contents(config: Config, weights: Weights) -> dict[str, bytes]:
    """Return the contents of the files of a saved transformer by file name."""
    description = describe(config, weights).encode()
    tensors = {name: np.ascontiguousarray(tensor) for name, tensor in weights.named()}
    return {
        CONFIG: description,
        # The library writes several entries of metadata in random order.
        WEIGHTS: save(tensors, {"sha256": _hash(description, tensors)}),
    }


def read(folder: str | Path) -> tuple[Config, Weights]:
    """Return the transformer in a folder written by :func:`write`, with bitwise equal weights."""
    try:
        description = (Path(folder) / CONFIG).read_bytes()
        with safe_open(Path(folder) / WEIGHTS, framework="np") as file:
            expected = (file.metadata() or {}).get("sha256")
            if expected is None:
                raise InputError(f"there is no hash in {WEIGHTS}")
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if _hash(description, tensors) != expected:
            raise InputError("its files have changed since they were saved: their hash differs")
        return read_description(description.decode(), tensors)
    except (OSError, SafetensorError, ValueError, TypeError, KeyError, LocumError) as error:
        raise InputError(
            f"expected a folder with a saved model, got {folder}: {error}; try model.save(folder)"
        ) from None


def _hash(description: bytes, tensors: Mapping[str, Array]) -> str:
    """Return the SHA-256 hash of ``config.json`` and the tensors by name."""
    digest = hashlib.sha256(description)
    digest.update(hash_tensors(sorted(tensors.items())).encode())
    return digest.hexdigest()
