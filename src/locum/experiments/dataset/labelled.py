"""A network with its circuit, in whatever basis its residual stream has: what tiers take and give.

Slots of the circuit are directions of the stream: row s of ``directions`` is what one unit of slot s
adds to it. In a plain network these are the axes.

>>> import locum
>>> program = locum.aggregate(locum.select(locum.indices, locum.indices - 1, "=="), locum.tokens, "-")
>>> model = locum.compile(
...     program, length=3, vocabulary="ab", attention="softmax", feed_forward="relu", reuse_slots=False
... )
>>> plain = Labelled.of(model, model.circuit)
>>> plain.network([["a", "b"]]) == [model("ab")]
True

:func:`with_stairs` replaces hidden units that round by adding and subtracting a large number.
x + 1.5·2⁴⁰ − 1.5·2⁴⁰ is x rounded, in floating-point numbers and on an axis of its own. No trained
network does this, and no other basis keeps it. Where all inputs are known, so are the few values that
come out: a step between each two of them, two relu units each, does the same in every basis.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from safetensors.numpy import save

from locum.errors import InputError
from locum.experiments.dataset.verify import Network
from locum.files import Content
from locum.networks.transformer import CompiledTransformer
from locum.networks.transformer.circuit import Circuit
from locum.networks.transformer.folder.description import describe, understand
from locum.networks.transformer.folder.saving import CONFIG, WEIGHTS, contents
from locum.networks.transformer.folder.shapes import Shape
from locum.networks.transformer.weights import Array

#: The format of networks with norms, which ``locum.load`` does not read.
NORMED = "locum.experiments.dataset.network"
DIRECTIONS = "slots.safetensors"


@dataclass(frozen=True)
class Labelled:
    """Configuration (as JSON has it), tensors by name, the circuit, and the directions of its slots."""

    config: dict[str, Any]
    tensors: dict[str, Array]
    circuit: Circuit
    directions: Array

    @classmethod
    def of(cls, model: CompiledTransformer, circuit: Circuit) -> Labelled:
        """Return a compiled network with its circuit; of the compiler's report the bound is kept."""
        kept = {name: model.config.report[name] for name in ("error_bound",) if model.config.report}
        config = replace(model.config, report=kept)
        data = json.loads(describe(config, Shape.of(model.weights)))
        width = model.weights.W_E.shape[1]
        return cls(data, dict(model.weights.named()), circuit, np.eye(width))

    @property
    def network(self) -> Network:
        """What runs it."""
        return Network(self.config, self.tensors)

    @property
    def width(self) -> int:
        """The number of axes of the residual stream."""
        return int(self.tensors["embed.W_E"].shape[1])

    def changed(self, tensors: Mapping[str, Array], directions: Array, **config: Any) -> Labelled:
        """Return it with other numbers; sizes in the configuration follow."""
        data = self.config | {"d_model": int(tensors["embed.W_E"].shape[1])} | config
        if len(data["slots"]) != data["d_model"]:
            data["slots"] = [f"axis {i}" for i in range(data["d_model"])]
        return replace(self, config=data, tensors=dict(tensors), directions=directions)

    def files(self) -> dict[str, Content]:
        """Return the files of a network and its label, by their names."""
        if self.config.get("norm") is None:
            config, shape = understand(json.dumps(self.config).encode())
            network = contents(config, shape.fill(self.tensors))
        else:
            text = json.dumps(self.config | {"format": NORMED}, indent=1, allow_nan=False) + "\n"
            network = {CONFIG: text, WEIGHTS: save(_packed(self.tensors))}
        label = json.dumps(self.circuit.data(), ensure_ascii=False, indent=1) + "\n"
        directions = save(_packed({"directions": self.directions}))
        return {**network, "circuit.json": label, DIRECTIONS: directions}


def _packed(tensors: Mapping[str, Array]) -> dict[str, Any]:
    for name, tensor in tensors.items():
        if not np.isfinite(tensor).all():
            raise InputError(f"{name} has numbers that are not finite")
    return {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}


#: Biases from here on are those of units that round.
_LARGE = 2.0**30
#: The most values that stairs have.
_MOST = 80


def with_stairs(labelled: Labelled, batches: Sequence[Array]) -> Labelled:
    """Return the network with stairs in the place of units that round, as ``batches`` need them.

    Values that do not occur there would be taken for others: ``batches`` are all inputs.
    """
    tensors = dict(labelled.tensors)
    moved: dict[int, list[tuple[int, ...]]] = {}
    reads = _reads(labelled, batches)
    layers = [dict(layer) for layer in labelled.config["layers"]]
    for layer in range(len(layers)):
        mlp = f"blocks.{layer}.mlp"
        if f"{mlp}.b_in" not in tensors or not (np.abs(tensors[f"{mlp}.b_in"]) > _LARGE).any():
            continue
        before = reads[layer] @ tensors[f"{mlp}.W_in"]
        changed = _layer({name: tensors[f"{mlp}.{name}"] for name in _NAMES}, before)
        if changed is None:
            continue
        parts, moved[layer] = changed
        tensors |= {f"{mlp}.{name}": part for name, part in parts.items()}
        size = len(parts["b_in"])
        layers[layer]["feed_forward"] = {"kind": "relu", "d_in": size, "d_mlp": size}
    if not moved:
        return labelled
    stepped = labelled.changed(tensors, labelled.directions, layers=layers)
    nodes = tuple(
        replace(node, places=tuple(p for old in node.places for p in moved[node.layer][old]))
        if node.kind == "units" and node.layer in moved
        else node
        for node in labelled.circuit.nodes
    )
    return replace(stepped, circuit=replace(labelled.circuit, nodes=nodes))


_NAMES = ("W_in", "b_in", "W_out", "b_out")


def _reads(labelled: Labelled, batches: Sequence[Array]) -> dict[int, Array]:
    """Return what the units of each layer read, on all inputs."""
    seen: dict[int, list[Any]] = {}
    network = labelled.network

    def tap(name: str, value: Any) -> None:
        if name.endswith("hook_resid_mid"):
            seen.setdefault(int(name.split(".")[1]), []).append(value.reshape(-1, labelled.width))

    for ids in batches:
        network.stream(ids, tap)
    return {layer: np.concatenate(values) for layer, values in seen.items()}


def _layer(
    old: dict[str, Array], before: Array
) -> tuple[dict[str, Array], list[tuple[int, ...]]] | None:
    """Return the tensors of a layer with stairs, and the new places of each old unit."""
    columns: list[Array] = []
    biases: list[float] = []
    rows: list[Array] = []
    bias_out = old["b_out"].copy()
    places: list[tuple[int, ...]] = []
    for unit, bias in enumerate(old["b_in"]):
        weights, out = old["W_in"][:, unit], old["W_out"][unit]
        start = len(biases)
        if abs(bias) <= _LARGE:
            steps = [(weights, float(bias), out)]
        else:
            stairs = _stairs(before[:, unit], float(bias))
            if stairs is None:
                return None
            first, steps_there = stairs
            bias_out = (bias_out + bias * out) + first * out
            steps = [
                (weights * slope, (shift - at * slope), sign * height * out)
                for at, slope, height in steps_there
                for shift, sign in ((0.5, 1.0), (-0.5, -1.0))
            ]
        for column, constant, row in steps:
            columns.append(column)
            biases.append(constant)
            rows.append(row)
        places.append(tuple(range(start, len(biases))))
    parts = {"W_in": np.stack(columns, 1), "b_in": np.array(biases), "W_out": np.stack(rows)}
    return parts | {"b_out": bias_out}, places


def _stairs(values: Array, bias: float) -> tuple[float, list[tuple[float, float, float]]] | None:
    """Return the least value that comes out, and for each step where it is, how steep and how high."""
    rounded = np.maximum(values + bias, 0) - bias
    levels = np.unique(rounded)
    if len(levels) > _MOST or np.abs(levels).max() > _LARGE:
        return None
    low = np.array([values[rounded == level].min() for level in levels])
    high = np.array([values[rounded == level].max() for level in levels])
    gaps = low[1:] - high[:-1]
    if len(levels) > 1 and gaps.min() < 1e-3:
        return None
    return float(levels[0]), [
        (float(high[k] + gaps[k] / 2), float(4 / gaps[k]), float(levels[k + 1] - levels[k]))
        for k in range(len(gaps))
    ]
