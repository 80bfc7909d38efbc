"""Represent a network with its circuit, in any basis of its residual stream.

Tiers of a dataset transform such a network into another. Slots of the circuit are directions of
the residual stream. Row s of ``directions`` is the vector that one unit of slot s adds to the stream.
In a plain network, these directions are the axes. A trained network has no slots, and ``directions`` is
one row of zeros.

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

from locum.errors import InputError
from locum.experiments.dataset.verify import Network
from locum.files import Content
from locum.networks.transformer import CompiledTransformer
from locum.networks.transformer.circuit import Circuit
from locum.networks.transformer.folder.description import describe, understand
from locum.networks.transformer.folder.saving import contents
from locum.networks.transformer.folder.shapes import Shape
from locum.networks.transformer.weights import Array

DIRECTIONS = "slots.safetensors"


@dataclass(frozen=True)
class Labelled:
    """A network with its circuit: configuration (as JSON), tensors by name, circuit, and slot
    directions.
    """

    config: dict[str, Any]
    tensors: dict[str, Array]
    circuit: Circuit
    directions: Array

    @classmethod
    def of(cls, model: CompiledTransformer, circuit: Circuit) -> Labelled:
        """Return a compiled network with its circuit.

        Only the error bound of the compiler's report is kept.
        """
        kept = {name: model.config.report[name] for name in ("error_bound",) if model.config.report}
        config = replace(model.config, report=kept)
        data = json.loads(describe(config, Shape.of(model.weights)))
        width = model.weights.W_E.shape[1]
        return cls(data, dict(model.weights.named()), circuit, np.eye(width))

    @property
    def network(self) -> Network:
        """Executable network with this configuration and these tensors."""
        return Network(self.config, self.tensors)

    @property
    def width(self) -> int:
        """Width of the residual stream, d_model."""
        return int(self.tensors["embed.W_E"].shape[1])

    def changed(self, tensors: Mapping[str, Array], directions: Array, **config: Any) -> Labelled:
        """Return a copy with other tensors and directions.

        ``d_model``, the names of slots and the fields in ``config`` are updated in the configuration.
        """
        data = self.config | {"d_model": int(tensors["embed.W_E"].shape[1])} | config
        if len(data["slots"]) != data["d_model"] or not np.array_equal(
            directions, np.eye(*directions.shape)
        ):
            data["slots"] = [f"axis {i}" for i in range(data["d_model"])]
        return replace(self, config=data, tensors=dict(tensors), directions=directions)

    def files(self) -> dict[str, Content]:
        """Return a mapping from file names to the contents of the files of network and circuit."""
        config, shape = understand(json.dumps(self.config).encode())
        network = contents(config, shape.fill(self.tensors))
        label = json.dumps(self.circuit.data(), ensure_ascii=False, indent=1) + "\n"
        if not np.isfinite(self.directions).all():
            raise InputError(
                "expected finite numbers in the directions of slots, got NaN or an infinity"
            )
        directions = save({"directions": np.ascontiguousarray(self.directions)})
        return {**network, "circuit.json": label, DIRECTIONS: directions}
