"""Add heads and hidden units that compute something and change nothing.

Decoys read what true parts read, attend as true heads do, and write into directions of the stream that
decoys alone read. Every layer gets some, and all heads and units of a layer are put in a random order,
so that neither a place nor being read nor being active tells them apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from locum.dataset.labelled import Labelled
from locum.transformer.circuit import Circuit, CircuitEdge, CircuitNode
from locum.transformer.weights import Array

#: Directions that decoys write, and hidden units of theirs in a layer.
_DIRECTIONS, _UNITS = 3, 6
DECOY = "decoy"


def with_decoys(labelled: Labelled, generator: np.random.Generator) -> Labelled:
    """Return a network with one or two more heads, and some more units, in every layer."""
    return _Adding(labelled, generator).added()


class _Adding:
    def __init__(self, labelled: Labelled, generator: np.random.Generator) -> None:
        self.labelled = labelled
        self.draw = generator
        self.width = labelled.width + _DIRECTIONS
        self.tensors: dict[str, Array] = {}
        #: Where each head (layer, number) and each unit of a layer is now.
        self.places: dict[tuple[int, int], int] = {}
        self.units: dict[int, dict[int, int]] = {}
        self.nodes: list[CircuitNode] = []

    def added(self) -> Labelled:
        """Add to every layer, and rename."""
        old = self.labelled
        for name in ("embed.W_E", "pos_embed.W_pos"):
            junk = self.draw.normal(size=(len(old.tensors[name]), _DIRECTIONS)) / 2
            self.tensors[name] = np.concatenate([old.tensors[name], junk], axis=1)
        self.tensors["unembed.W_U"] = self._wider(old.tensors["unembed.W_U"], 0)
        self.tensors["unembed.b_U"] = old.tensors["unembed.b_U"]
        layers, heads = [], []
        for layer, parts in enumerate(old.config["layers"]):
            attention = self._heads(layer, parts.get("attention"))
            feed_forward = self._hidden(layer, parts.get("feed_forward"))
            layers.append({"attention": attention, "feed_forward": feed_forward})
            heads.append([f"head {number}" for number in range(len(attention["kinds"]))])
        directions = np.zeros((len(old.directions) + _DIRECTIONS, self.width))
        directions[: len(old.directions), : old.width] = old.directions
        directions[len(old.directions) :, old.width :] = np.eye(_DIRECTIONS)
        changed = old.changed(self.tensors, directions, layers=layers, heads=heads)
        return replace(changed, circuit=self._circuit())

    def _wider(self, tensor: Array, axis: int) -> Array:
        shape = list(tensor.shape)
        shape[axis] = _DIRECTIONS
        return np.concatenate([tensor, np.zeros(shape)], axis=axis)

    def _junk(self, size: int) -> Array:
        """Return what a decoy writes: numbers of usual size, into the directions of decoys alone."""
        junk = np.zeros((size, self.width))
        junk[:, -_DIRECTIONS:] = self.draw.normal(size=(size, _DIRECTIONS))
        return junk

    def _heads(self, layer: int, shape: Mapping[str, Any] | None) -> dict[str, Any]:
        attn, old = f"blocks.{layer}.attn", self.labelled.tensors
        size = int(shape["d_head"]) if shape else 2
        true = len(shape["kinds"]) if shape else 0
        more = int(self.draw.integers(1, 3))
        parts: dict[str, list[Array]] = {name: [] for name in _HEAD}
        for head in range(true):
            for name in _HEAD:
                tensor = old[f"{attn}.{name}"][head]
                wide = {"W_O": 1}.get(name, 0) if name.startswith("W") else None
                parts[name].append(tensor if wide is None else self._wider(tensor, wide))
        for _ in range(more):
            self._decoy_head(parts, true, size)
        order = self.draw.permutation(true + more)
        for place, head in enumerate(order):
            if head < true:
                self.places[layer, int(head)] = place
            else:
                self._node(f"{attn}.head.{place}", "head", f"{attn}.hook_z", layer, place)
                for letter in "qkv":
                    name = f"{attn}.head.{place}.{letter}"
                    self._node(name, letter, f"{attn}.hook_{letter}", layer, place)
        for name in _HEAD:
            self.tensors[f"{attn}.{name}"] = np.stack([parts[name][head] for head in order])
        bias = old.get(f"{attn}.b_O", np.zeros(self.labelled.width))
        self.tensors[f"{attn}.b_O"] = self._wider(bias, 0)
        return {"kinds": ["softmax"] * (true + more), "d_head": size}

    def _decoy_head(self, parts: dict[str, list[Array]], true: int, size: int) -> None:
        """Make a head that attends as a true one does, or by what it draws, but moves other things."""
        copied = int(self.draw.integers(true)) if true else None
        for name in ("W_Q", "W_K", "b_Q", "b_K"):
            shape = (self.width, size) if name.startswith("W") else (size,)
            fresh = self.draw.normal(size=shape) / 2
            parts[name].append(fresh if copied is None else parts[name][copied].copy())
        # It moves numbers of order 1: what is moved is divided by how large it may be.
        span = np.abs(self.tensors["embed.W_E"]).max(axis=0) + np.abs(
            self.tensors["pos_embed.W_pos"]
        ).max(axis=0)
        scale = np.where(span > 0, 1 / np.maximum(span, 1), 0)
        parts["W_V"].append(self.draw.normal(size=(self.width, size)) * scale[:, None])
        parts["b_V"].append(self.draw.normal(size=size))
        parts["W_O"].append(self._junk(size))

    def _hidden(self, layer: int, shape: Mapping[str, Any] | None) -> dict[str, Any]:
        mlp, old = f"blocks.{layer}.mlp", self.labelled.tensors
        true = int(shape["d_mlp"]) if shape else 0
        width = self.labelled.width
        parts = {
            "W_in": self._wider(old[f"{mlp}.W_in"], 0) if true else np.zeros((self.width, 0)),
            "b_in": old[f"{mlp}.b_in"] if true else np.zeros(0),
            "W_out": self._wider(old[f"{mlp}.W_out"], 1) if true else np.zeros((0, self.width)),
        }
        span = np.abs(self.tensors["embed.W_E"]).max(axis=0) + 1
        fresh = self.draw.normal(size=(self.width, _UNITS)) / span[:, None]
        parts["W_in"] = np.concatenate([parts["W_in"], fresh], axis=1)
        parts["b_in"] = np.concatenate([parts["b_in"], self.draw.normal(size=_UNITS)])
        parts["W_out"] = np.concatenate([parts["W_out"], self._junk(_UNITS)])
        order = self.draw.permutation(true + _UNITS)
        self.tensors[f"{mlp}.W_in"] = parts["W_in"][:, order]
        self.tensors[f"{mlp}.b_in"] = parts["b_in"][order]
        self.tensors[f"{mlp}.W_out"] = parts["W_out"][order]
        self.tensors[f"{mlp}.b_out"] = self._wider(old.get(f"{mlp}.b_out", np.zeros(width)), 0)
        where = {int(unit): place for place, unit in enumerate(order)}
        self.units[layer] = where
        places = tuple(sorted(where[unit] for unit in range(true, true + _UNITS)))
        self._node(f"{mlp}.units.{DECOY}", "units", f"{mlp}.hook_post", layer, None, places)
        return {"kind": "relu", "d_in": true + _UNITS, "d_mlp": true + _UNITS}

    def _node(
        self,
        name: str,
        kind: str,
        hook: str,
        layer: int,
        head: int | None,
        places: tuple[int, ...] = (),
    ) -> None:
        node = CircuitNode(name, kind, hook, layer, head, places, label=DECOY, role=DECOY)
        self.nodes.append(node)

    # The circuit --------------------------------------------------------------------------------

    def _circuit(self) -> Circuit:
        circuit = self.labelled.circuit
        nodes = tuple(self._renamed(node) for node in circuit.nodes)
        edges = tuple(self._joined(edge) for edge in circuit.edges)
        return replace(circuit, nodes=(*nodes, *self.nodes), edges=edges)

    def _renamed(self, node: CircuitNode) -> CircuitNode:
        if node.head is not None and node.layer is not None:
            head = self.places[node.layer, node.head]
            return replace(node, id=self._name(node.id), head=head)
        if node.kind == "units" and node.layer is not None:
            where = self.units[node.layer]
            return replace(node, places=tuple(sorted(where[unit] for unit in node.places)))
        return node

    def _joined(self, edge: CircuitEdge) -> CircuitEdge:
        return replace(edge, source=self._name(edge.source), target=self._name(edge.target))

    def _name(self, name: str) -> str:
        """Return ``blocks.1.attn.head.0.q`` with the place that the head has now."""
        parts = name.split(".")
        if "head" not in parts:
            return name
        parts[4] = str(self.places[int(parts[1]), int(parts[4])])
        return ".".join(parts)


_HEAD = ("W_Q", "b_Q", "W_K", "b_K", "W_V", "b_V", "W_O")
