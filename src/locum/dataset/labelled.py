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
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from safetensors.numpy import save

from locum.dataset.verify import Network
from locum.errors import InputError
from locum.files import Content
from locum.transformer import CompiledTransformer
from locum.transformer.circuit import Circuit
from locum.transformer.folder.description import describe, understand
from locum.transformer.folder.saving import CONFIG, WEIGHTS, contents
from locum.transformer.folder.shapes import Shape
from locum.transformer.weights import Array

#: The format of networks with norms, which ``locum.load`` does not read.
NORMED = "locum.dataset.network"
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
