"""Write a transformer without its tensors as ``config.json``, and read it.

The file contains the fields of :class:`Config`, and for each layer the kinds of its heads, the kind of
its feed-forward, and the instructions of symbolic feed-forwards. Fields with default values are
omitted. :mod:`~locum.networks.transformer.folder.saving` reads only files whose hash is correct.
"""

from __future__ import annotations

import dataclasses
import json
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np

from locum.errors import GraphError, InputError
from locum.graph.serialize import decode_attribute, encode_attribute
from locum.networks.transformer.config import Config
from locum.networks.transformer.functions import Functions, Instruction
from locum.networks.transformer.input_conditions import read_condition
from locum.networks.transformer.weights import (
    Array,
    AttentionWeights,
    FeedForwardWeights,
    LayerWeights,
    Weights,
)

FORMAT, VERSION = "locum.transformer", 2


def describe(config: Config, weights: Weights) -> str:
    """Return the text of ``config.json`` for a transformer.

    The widths ``d_head`` and ``d_mlp`` are only for readers of the file.
    """
    layers = []
    for layer in weights.layers:
        heads, feed = layer.attention, layer.feed_forward
        layers.append(
            {
                "attention": None
                if heads is None
                else {"kinds": heads.kinds, "d_head": heads.W_Q.shape[-1]},
                "feed_forward": None
                if feed is None
                else {"kind": feed.kind, "d_mlp": len(feed.W_out), "functions": feed.functions},
            }
        )
    data = {"format": FORMAT, "version": VERSION} | _to_data(config) | {"layers": _to_data(layers)}
    return json.dumps(data, indent=1, allow_nan=False) + "\n"


def _to_data(value: Any) -> Any:
    """Convert ``value`` to JSON-compatible data; fields with default values are omitted.

    Values that JSON does not support, such as infinities, are written as in graph files.
    """
    if dataclasses.is_dataclass(value):
        return {
            field.name: _to_data(part)
            for field in dataclasses.fields(value)
            if not _is_default(field, part := getattr(value, field.name))
        }
    if isinstance(value, Mapping):
        return {str(name): _to_data(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_to_data(part) for part in value]
    if isinstance(value, (np.generic, np.ndarray)):
        return _to_data(value.tolist())
    return None if value is None else encode_attribute(value)


def _is_default(field: dataclasses.Field[Any], value: Any) -> bool:
    factory = field.default_factory
    default = field.default if factory is dataclasses.MISSING else factory()
    return type(value) is type(default) and bool(value == default)


def read_description(text: str, tensors: Mapping[str, Array]) -> tuple[Config, Weights]:
    """Return the transformer whose ``config.json`` contains ``text``, with the given tensors."""
    data = _from_data(json.loads(text))
    if not isinstance(data, dict) or (data.get("format"), data.get("version")) != (FORMAT, VERSION):
        raise InputError(f"{FORMAT}, version {VERSION}, is not the format of its configuration")
    fields = {each.name: data[each.name] for each in dataclasses.fields(Config) if each.name in data}
    conditions = tuple(map(read_condition, fields.pop("inputs", ())))
    report = fields.pop("report", {})
    config = Config(**_as_tuples(fields), inputs=conditions, report=report)
    parts: dict[str, dict[str, Any]] = defaultdict(dict)
    for name, tensor in tensors.items():
        part, _, last = name.rpartition(".")
        parts[part][last] = tensor
    ends = parts["embed"] | parts["pos_embed"] | parts["unembed"]
    layers = []
    for number, layer in enumerate(data["layers"]):
        heads, feed = layer["attention"], layer["feed_forward"]
        attn, mlp = parts[f"blocks.{number}.attn"], parts[f"blocks.{number}.mlp"]
        layers.append(
            LayerWeights(
                None if heads is None else AttentionWeights(**attn, kinds=tuple(heads["kinds"])),
                None
                if feed is None
                else FeedForwardWeights(feed["kind"], **mlp, functions=_functions(feed["functions"])),
            )
        )
    return config, Weights(**ends, layers=tuple(layers))


def _functions(data: Mapping[str, Any] | None) -> Functions | None:
    if data is None:
        return None
    instructions = tuple(Instruction(**_as_tuples(each)) for each in data["instructions"])
    return Functions(data["arguments"], instructions, tuple(data["outputs"]))


def _from_data(value: Any) -> Any:
    """Reverse :func:`_to_data`; tuples become lists."""
    if isinstance(value, list):
        return [_from_data(part) for part in value]
    if isinstance(value, dict):
        try:
            return decode_attribute(value)
        except GraphError:
            return {name: _from_data(part) for name, part in value.items()}
    return value


def _as_tuples(value: Any) -> Any:
    """Convert nested lists to tuples, also as values of a mapping."""
    if isinstance(value, list):
        return tuple(map(_as_tuples, value))
    if isinstance(value, dict):
        return {name: _as_tuples(part) for name, part in value.items()}
    return value
