"""Make networks harder to read without training them: the circuit, and every answer, stays.

- ``rotated``: an orthogonal rotation of the residual stream, and others inside every head. No slot is
  an axis any more, no weight is zero.
- ``superposed``: the stream is projected at random on fewer axes, as many as what is written has
  dimensions, and each reader gets a decoder. Slots outnumber axes and share them.
- ``decoys``: heads and hidden units that read what others read and write what only decoys read, in
  places drawn at random.
- ``normed``: a layer norm before each half of a layer and before the unembedding. The stream is
  mirrored, so that its mean is 0, and two constant axes of large numbers, as trained networks have
  them, keep the variance the same up to a relative error of 10⁻¹².
- ``realistic``: decoys, then superposition, then norms in a basis drawn at random.

All take a :class:`Labelled` network and a random generator, and return another. Only softmax heads can
be turned: a hard head needs exact ties.

Decoys read what true parts read, attend as true heads do, and write into directions of the stream that
decoys alone read. Every layer gets some, and all heads and units of a layer are put in a random order,
so that neither a place nor being read nor being active tells them apart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from locum.experiments.dataset.labelled import Labelled
from locum.experiments.dataset.verify import FINAL
from locum.networks.transformer.circuit import Circuit, CircuitEdge, CircuitNode
from locum.networks.transformer.weights import Array

PLAIN, ROTATED, SUPERPOSED, DECOYS, NORMED, REALISTIC = TIERS = (
    "plain",
    "rotated",
    "superposed",
    "decoys",
    "normed",
    "realistic",
)
#: What is added to variances, as in torch.
EPSILON = 1e-5
#: How much longer than the stream the constant axes of a normed network are.
_LONGER = 2.0**20

#: Inputs as token ids, [batch, position] for each length; and whether a network is right on all.
Batches = Sequence[Array]
Right = Callable[[Labelled], bool]


def in_tier(
    tier: str, plain: Labelled, batches: Batches, right: Right, generator: np.random.Generator
) -> Labelled:
    """Return the network of a tier; ``batches`` are inputs to measure the stream on."""
    if tier == PLAIN:
        return plain
    if tier == ROTATED:
        return rotated(plain, generator)
    if tier == SUPERPOSED:
        return superposed(plain, right, generator)
    if tier == DECOYS:
        return with_decoys(plain, generator)
    if tier == NORMED:
        return normed(plain, batches)
    covered = superposed(with_decoys(plain, generator), right, generator)
    return normed(covered, batches, generator)


def orthogonal(size: int, generator: np.random.Generator) -> Array:
    """Return a rotation drawn uniformly."""
    q, r = np.linalg.qr(generator.normal(size=(size, size)))
    turned: Array = q * np.sign(np.diagonal(r))
    return turned


def _rewritten(labelled: Labelled, write: Array, read: Callable[[str], Array]) -> dict[str, Array]:
    """Return tensors that write x @ write for x, and read through ``read(reading point)``."""
    rewritten: dict[str, Array] = {}
    for name, tensor in labelled.tensors.items():
        part, _, last = name.rpartition(".")
        layer = part.removesuffix(".attn").removesuffix(".mlp")
        if last in ("W_E", "W_pos", "W_O", "W_out", "b_O", "b_out"):
            rewritten[name] = tensor @ write
        elif last in ("W_Q", "W_K", "W_V"):
            rewritten[name] = read(f"{layer}.hook_resid_pre") @ tensor
        elif last == "W_in":
            rewritten[name] = read(f"{layer}.hook_resid_mid") @ tensor
        elif last == "W_U":
            rewritten[name] = read(FINAL) @ tensor
        else:
            rewritten[name] = tensor
    return rewritten


def rotated(labelled: Labelled, generator: np.random.Generator) -> Labelled:
    """Turn the stream, and the inside of every head."""
    turn = orthogonal(labelled.width, generator)
    tensors = _rewritten(labelled, turn, lambda point: turn.T)
    for layer in range(len(labelled.config["layers"])):
        attn = f"blocks.{layer}.attn"
        if f"{attn}.W_Q" not in tensors:
            continue
        heads, _, size = tensors[f"{attn}.W_Q"].shape
        scores = np.stack([orthogonal(size, generator) for _ in range(heads)])
        values = np.stack([orthogonal(size, generator) for _ in range(heads)])
        for letter, inside in (("Q", scores), ("K", scores), ("V", values)):
            tensors[f"{attn}.W_{letter}"] = tensors[f"{attn}.W_{letter}"] @ inside
            bias = tensors[f"{attn}.b_{letter}"][:, None]
            tensors[f"{attn}.b_{letter}"] = (bias @ inside)[:, 0]
        tensors[f"{attn}.W_O"] = np.swapaxes(values, 1, 2) @ tensors[f"{attn}.W_O"]
    return labelled.changed(tensors, labelled.directions @ turn)


def streams(labelled: Labelled, batches: Batches) -> dict[str, Array]:
    """Return what is read at every reading point, [inputs × positions, axis]."""
    seen: dict[str, list[Any]] = {}
    network = labelled.network

    def keep(name: str, value: Any) -> None:
        if name == FINAL or "hook_resid" in name:
            seen.setdefault(name, []).append(value)

    for ids in batches:
        network.stream(ids, keep)
    return {
        name: np.concatenate([value.reshape(-1, labelled.width) for value in values])
        for name, values in seen.items()
    }


def superposed(labelled: Labelled, right: Right, generator: np.random.Generator) -> Labelled:
    """Project on as few axes as all that parts can write has dimensions; on all, if that is not right.

    Decoders are exact for whatever embeddings, heads and hidden units write, also where an intervention
    puts together what they write on different inputs. So labels hold as they are.
    """
    spans = _spans(labelled)
    needed = max(len(basis) for basis in spans.values())
    for axes in (needed, needed + 1, labelled.width):
        if axes <= labelled.width:
            projected = _projected(labelled, spans, axes, generator)
            if right(projected):
                return projected
    return projected


def _spans(labelled: Labelled) -> dict[str, Array]:
    """Return orthonormal rows that span what can have been written before each reading point."""
    tensors, spans = labelled.tensors, {}
    written = [tensors["embed.W_E"], tensors["pos_embed.W_pos"]]
    for layer in range(len(labelled.config["layers"])):
        spans[f"blocks.{layer}.hook_resid_pre"] = _basis(written)
        attn, mlp = f"blocks.{layer}.attn", f"blocks.{layer}.mlp"
        if f"{attn}.W_O" in tensors:
            written += [*tensors[f"{attn}.W_O"], tensors[f"{attn}.b_O"][None]]
        spans[f"blocks.{layer}.hook_resid_mid"] = _basis(written)
        if f"{mlp}.W_out" in tensors:
            written += [tensors[f"{mlp}.W_out"], tensors[f"{mlp}.b_out"][None]]
    return spans | {FINAL: _basis(written)}


def _basis(written: Sequence[Array]) -> Array:
    rows = np.concatenate(list(written))
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    rows = rows[lengths[:, 0] > 0] / lengths[lengths[:, 0] > 0]
    _, sizes, basis = np.linalg.svd(rows, full_matrices=False)
    kept: Array = basis[sizes > 1e-9 * sizes[0]]
    return kept


def _projected(
    labelled: Labelled, spans: dict[str, Array], axes: int, generator: np.random.Generator
) -> Labelled:
    project = generator.normal(size=(labelled.width, axes))
    project /= np.linalg.norm(project, axis=1, keepdims=True)
    decoders = {name: np.linalg.pinv(basis @ project) @ basis for name, basis in spans.items()}
    tensors = _rewritten(labelled, project, lambda point: decoders[point])
    return labelled.changed(tensors, labelled.directions @ project)


def decoding_error(labelled: Labelled, other: Labelled, batches: Batches) -> float:
    """Return by how much a network's logits differ from those of another, at most."""
    pairs = ((labelled.network.logits(ids), other.network.logits(ids)) for ids in batches)
    return max(float(np.abs(one - two).max()) for one, two in pairs)


def normed(
    labelled: Labelled, batches: Batches, generator: np.random.Generator | None = None
) -> Labelled:
    """Put layer norms in; with a generator, in a basis drawn at random, else mirrored axis by axis."""
    width = labelled.width
    if generator is None:
        spread = np.concatenate([np.eye(width), -np.eye(width)], axis=1) / np.sqrt(2)
    else:  # any orthonormal rows whose mean is 0
        centred = np.linalg.qr(np.column_stack([np.ones(width + 1), np.eye(width + 1)[:, :-1]]))[0]
        spread = orthogonal(width, generator) @ centred[:, 1:].T
    longest = max(
        float(np.linalg.norm(value, axis=1).max()) for value in streams(labelled, batches).values()
    )
    constant = _LONGER * 2.0 ** np.ceil(np.log2(max(longest, 1.0)))
    wide = np.concatenate([spread, np.zeros((width, 2))], axis=1)
    tensors = _rewritten(labelled, wide, lambda point: wide.T)
    tensors["pos_embed.W_pos"][:, -2:] = [constant, -constant]
    size = wide.shape[1]
    scale = float(np.sqrt(2 * constant**2 / size + EPSILON))
    points = ["ln_final"]
    for layer, parts in enumerate(labelled.config["layers"]):
        points += [f"blocks.{layer}.ln1"] if parts.get("attention") else []
        points += [f"blocks.{layer}.ln2"] if parts.get("feed_forward") else []
    for point in points:
        tensors[f"{point}.w"], tensors[f"{point}.b"] = np.full(size, scale), np.zeros(size)
    return labelled.changed(tensors, labelled.directions @ wide, norm={"epsilon": EPSILON})


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
