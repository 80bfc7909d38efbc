"""Make networks harder to interpret without training, and preserve the circuit and the answers.

- ``rotated``: an orthogonal rotation of the residual stream, and of every head. Slots are no longer
  axes, and the matrices are no longer sparse.
- ``superposed``: a random projection of the residual stream, if possible onto as few axes as the
  written signals have dimensions. Components read the stream through decoders. If there are more slots
  than axes, slots share axes.
- ``decoys``: additional heads and hidden units that are not part of the circuit.
- ``normed``: softer heads and tables (:mod:`~locum.experiments.dataset.softening`), then a layer norm
  before each sublayer and before the unembedding. The residual stream is mirrored, so that its mean is
  0. A constant direction of the stream limits changes of the variance. Weight norms are balanced.
- ``realistic``: softer heads and tables, decoys, superposition, layer norms in a random basis, and
  balanced weight norms. :class:`WeightOptions` defines the options of these two tiers.

Each transformation maps a :class:`Labelled` network to another network. Most transformations use a
random generator. Only softmax heads can be rotated, because hard heads require exact ties.

A decoy head attends in the same way as a true head of its layer, or randomly if the layer contains no
true head. The values of decoy heads and the inputs of decoy units are random combinations of the
residual stream. Decoys write to directions of the residual stream that only decoys read. Every layer
contains decoys, and all heads and units of a layer are shuffled. Decoys can therefore not be recognised
by their index or by being inactive.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from locum.errors import InputError
from locum.experiments.dataset.labelled import Labelled
from locum.experiments.dataset.softening import attention_gaps, soften
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
#: Tiers with softer heads and tables.
SOFT = (NORMED, REALISTIC)
#: Tier of trained networks (``interchange_training.py``), which are not derived from plain networks.
TRAINED = "trained"
#: Number added to variances in layer norms, as in PyTorch.
EPSILON = 1e-5
#: Maximum number of sizes of the constant direction that are tried in a network with layer norms: the
#: largest norm of the residual stream, and its doublings.
_DOUBLINGS = 22
#: Maximum number of inputs of each length on which the residual stream is measured.
_MEASURED = 200

#: Number of random projections of which the best is used for a superposed stream.
_DRAWS = 16

#: Inputs as token ids, [batch, position] for each length, and a test whether a network is correct on
#: all inputs.
Batches = Sequence[Array]
Right = Callable[[Labelled], bool]


@dataclass(frozen=True)
class WeightOptions:
    """The softness and width of the networks in the tiers ``normed`` and ``realistic``."""

    #: Smallest gap between the largest attention score of a query and the next score.
    sharpness: float = 10.0
    #: Slope of a table at its values, relative to the mean slope between values.
    tread: float = 0.1
    #: Number of axes of the residual stream in the tier ``realistic``; None for the minimum.
    d_model: int | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.sharpness <= 1e6:
            raise InputError(f"sharpness: expected 1 to 1e6, got {self.sharpness}; try 10")
        if not 0 <= self.tread <= 0.5:
            raise InputError(f"tread: expected 0 to 0.5, got {self.tread}; try 0.1")
        if self.d_model is not None and not 1 <= self.d_model <= 4096:
            raise InputError(f"d_model: expected 1 to 4096 axes, got {self.d_model}; try 64")


def in_tier(
    tier: str,
    plain: Labelled,
    batches: Batches,
    right: Right,
    generator: np.random.Generator,
    options: WeightOptions | None = None,
) -> Labelled:
    """Return the network of a tier, derived from the plain network.

    ``batches`` are all inputs, or empty if there are too many. ``right`` tests whether a network has
    the correct answers and labels.
    """
    options = options or WeightOptions()
    if tier == PLAIN:
        return plain
    if tier in SOFT:
        if not batches:
            raise InputError("expected few enough inputs to run all of them, got too many")
        softer = soften(plain, batches, sharpness=options.sharpness, tread=options.tread)
        softer = with_slots_of_one_size(softer, batches)
        if tier == NORMED:
            return balanced(normed(softer, batches, right))
        hidden = superposed(with_decoys(softer, generator), right, generator)
        return balanced(normed(hidden, batches, right, generator, options.d_model))
    if tier == ROTATED:
        return rotated(plain, generator)
    if tier == SUPERPOSED:
        return superposed(plain, right, generator)
    return with_decoys(plain, generator)


def with_slots_of_one_size(labelled: Labelled, batches: Batches) -> Labelled:
    """Return the network with every axis of the residual stream scaled to a largest magnitude of 1.

    The magnitude is measured on some of the inputs. Axes that are 0 on these inputs are not scaled.
    """
    seen = np.concatenate(list(streams(labelled, batches).values()))
    sizes = np.abs(seen).max(axis=0)
    sizes = np.where(sizes > 0, sizes, 1.0)
    tensors = _rewritten(labelled, np.diag(1 / sizes), lambda point: np.diag(sizes))
    return labelled.changed(tensors, labelled.directions / sizes)


def balanced(labelled: Labelled) -> Labelled:
    """Return the network with weight norms balanced between queries and keys, values and outputs, and
    both sides of hidden units.
    """
    tensors = dict(labelled.tensors)

    def scale(names: tuple[str, ...], factor: Array) -> None:
        for name in names:
            tensor = tensors[name]
            tensors[name] = tensor * factor.reshape(*factor.shape, *[1] * (tensor.ndim - factor.ndim))

    for layer, parts in enumerate(labelled.config["layers"]):
        attn, mlp = f"blocks.{layer}.attn", f"blocks.{layer}.mlp"
        if parts.get("attention"):
            for one, other, biases in (("Q", "K", ("Q", "K")), ("V", "O", ("V",))):
                sizes = [np.linalg.norm(tensors[f"{attn}.W_{x}"], axis=(1, 2)) for x in (one, other)]
                factor = _between(*sizes)
                scale((f"{attn}.W_{one}", f"{attn}.b_{one}"), factor)
                more = [f"{attn}.b_{other}"] if other in biases else []
                scale((f"{attn}.W_{other}", *more), 1 / factor)
        if parts.get("feed_forward"):
            W_in, W_out = tensors[f"{mlp}.W_in"], tensors[f"{mlp}.W_out"]
            factor = _between(np.linalg.norm(W_in, axis=0), np.linalg.norm(W_out, axis=1))
            tensors[f"{mlp}.W_in"] = W_in * factor
            scale((f"{mlp}.b_in",), factor)
            scale((f"{mlp}.W_out",), 1 / factor)
    return labelled.changed(tensors, labelled.directions)


def _between(one: Array, other: Array) -> Array:
    """Return the factors by which ``one`` must grow and ``other`` shrink to become equal; 1 if either
    is 0.
    """
    both = (one > 0) & (other > 0)
    factors: Array = np.sqrt(np.where(both, other, 1.0) / np.where(both, one, 1.0))
    return factors


def orthogonal(size: int, generator: np.random.Generator) -> Array:
    """Return a random orthogonal matrix, drawn uniformly."""
    q, r = np.linalg.qr(generator.normal(size=(size, size)))
    turned: Array = q * np.sign(np.diagonal(r))
    return turned


def _rewritten(labelled: Labelled, write: Array, read: Callable[[str], Array]) -> dict[str, Array]:
    """Return the tensors of the network in another basis of the residual stream.

    A component that wrote x writes x @ ``write``. At each reading point, which is the name of a hook,
    components read through the matrix ``read(point)``.
    """
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
    """Return the network with randomly rotated residual stream and heads."""
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


def measure_weights(labelled: Labelled, batches: Batches, tie: float) -> dict[str, Any]:
    """Return statistics in which compiled weights differ from trained weights: sizes, norms, score
    gaps.

    Scores that differ by at most ``tie`` are equal.
    """
    gammas = [
        t[0] for name, t in labelled.tensors.items() if ".ln" in f".{name}" and name.endswith(".w")
    ]
    deviations = [value.std(axis=1) for value in streams(labelled, batches).values()]
    return {
        "largest_weight": max(float(np.abs(tensor).max()) for tensor in labelled.tensors.values()),
        "attention_gaps": {
            name: [float(number) if np.isfinite(number) else None for number in gap]
            for name, gap in attention_gaps(labelled, batches, tie).items()
        },
        "norm_weights": [float(min(gammas)), float(max(gammas))] if gammas else None,
        # Variation of the divisors of layer norms: standard deviation divided by mean.
        "norm_variation": max(float(one.std() / one.mean()) for one in deviations) if gammas else 0.0,
    }


def streams(labelled: Labelled, batches: Batches) -> dict[str, Array]:
    """Return the residual stream at every reading point on some of the inputs, [inputs × positions,
    axis].
    """
    seen: dict[str, list[Any]] = {}
    network = labelled.network

    def keep(name: str, value: Any) -> None:
        if name == FINAL or "hook_resid" in name:
            seen.setdefault(name, []).append(value)

    for ids in batches:
        network.stream(ids[:: len(ids) // _MEASURED + 1], keep)
    return {
        name: np.concatenate([value.reshape(-1, labelled.width) for value in values])
        for name, values in seen.items()
    }


def superposed(labelled: Labelled, right: Right, generator: np.random.Generator) -> Labelled:
    """Return the network with the residual stream projected onto as few axes as its signals have
    dimensions.

    If the projected network is not correct, one more axis is used, and finally as many axes as before.
    The result may still be incorrect. Decoders are exact, up to rounding, for all outputs of
    embeddings, heads and hidden units, even if an intervention combines outputs on different inputs.
    The labels therefore remain valid.
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
    """Return an orthonormal basis (as rows) of all possible residual streams at each reading point."""
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
    best = np.inf
    for _ in range(_DRAWS):  # keep the projection with the smallest decoders
        drawn = generator.normal(size=(labelled.width, axes))
        drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
        found = {name: np.linalg.pinv(basis @ drawn) @ basis for name, basis in spans.items()}
        largest = max(float(np.linalg.norm(decoder, 2)) for decoder in found.values())
        if largest < best:
            best, project, decoders = largest, drawn, found
    tensors = _rewritten(labelled, project, lambda point: decoders[point])
    return labelled.changed(tensors, labelled.directions @ project)


def decoding_error(labelled: Labelled, other: Labelled, batches: Batches) -> float:
    """Return the largest difference between the logits of two networks on all batches."""
    pairs = ((labelled.network.logits(ids), other.network.logits(ids)) for ids in batches)
    return max(float(np.abs(one - two).max()) for one, two in pairs)


def normed(
    labelled: Labelled,
    batches: Batches,
    right: Right,
    generator: np.random.Generator | None = None,
    d_model: int | None = None,
) -> Labelled:
    """Return the network with layer norms before each sublayer and before the unembedding.

    With a ``generator``, the residual stream gets a random basis of ``d_model`` axes; without it, each
    axis is mirrored. A constant direction of the stream limits changes of the variance. The length of
    this direction is doubled until the network is correct, up to a maximum number of times. The result
    may still be incorrect.
    """
    seen = streams(labelled, batches)
    longest = max(float(np.linalg.norm(value, axis=1).max()) for value in seen.values())
    basis = _mirrored(labelled.width) if generator is None else None
    if generator is not None:
        size = labelled.width + 2 if d_model is None else d_model
        if size < labelled.width + 2:
            raise InputError(f"d_model: expected {labelled.width + 2} axes or more, got {d_model}")
        basis = _centred(labelled.width + 1, size, generator)
    assert basis is not None
    for exponent in range(_DOUBLINGS):
        candidate = _with_norms(labelled, seen, basis, longest * 2.0**exponent)
        if right(candidate):
            break
    return candidate


def _mirrored(width: int) -> Array:
    """Return orthonormal rows that are differences of two axes; the last row is the constant
    direction.
    """
    rows: Array = np.concatenate([np.eye(width + 1), -np.eye(width + 1)], axis=1) / np.sqrt(2)
    return rows


def _centred(rows: int, size: int, generator: np.random.Generator) -> Array:
    """Return ``rows`` random orthonormal rows of ``size`` axes, each with mean 0."""
    centred = np.linalg.qr(np.column_stack([np.ones(size), np.eye(size)[:, :-1]]))[0][:, 1:]
    basis: Array = orthogonal(size - 1, generator)[:rows] @ centred.T
    return basis


def _with_norms(labelled: Labelled, seen: dict[str, Array], basis: Array, constant: float) -> Labelled:
    """Return the network with layer norms, in another basis of the residual stream.

    The last row of ``basis`` is the constant direction of the stream, with the size ``constant``. The
    mean stream over the measured inputs becomes a bias of the components that read the stream, so that
    normalisation does not change this mean. All signals are scaled so that the standard deviation of
    the stream is near 1.
    """
    size = basis.shape[1]
    deviations = {
        point: np.sqrt(((value**2).sum(axis=1) + constant**2) / size) for point, value in seen.items()
    }
    scale = float(np.mean([values.mean() for values in deviations.values()]))
    write, last = basis[:-1] / scale, basis[-1]
    means = {point: value.mean(axis=0) for point, value in seen.items()}

    def read(point: str) -> Array:
        # The mean stream is subtracted here and added as a bias, which no norm changes.
        return scale * (basis[:-1].T - np.outer(last, means[point] / constant))

    tensors = _rewritten(labelled, write, read)
    tensors["pos_embed.W_pos"] = tensors["pos_embed.W_pos"] + constant * last / scale
    norms = {"ln_final": FINAL}
    for layer, parts in enumerate(labelled.config["layers"]):
        block = f"blocks.{layer}"
        if parts.get("attention"):
            norms[f"{block}.ln1"] = point = f"{block}.hook_resid_pre"
            for letter in "QKV":
                name = f"{block}.attn.b_{letter}"
                tensors[name] = (
                    tensors[name] + means[point] @ labelled.tensors[f"{block}.attn.W_{letter}"]
                )
        if parts.get("feed_forward"):
            norms[f"{block}.ln2"] = point = f"{block}.hook_resid_mid"
            name = f"{block}.mlp.b_in"
            tensors[name] = tensors[name] + means[point] @ labelled.tensors[f"{block}.mlp.W_in"]
    tensors["unembed.b_U"] = tensors["unembed.b_U"] + means[FINAL] @ labelled.tensors["unembed.W_U"]
    for norm, point in norms.items():
        gamma = float(deviations[point].mean()) / scale
        tensors[f"{norm}.w"], tensors[f"{norm}.b"] = np.full(size, gamma), np.zeros(size)
    return labelled.changed(tensors, labelled.directions @ write, norm={"epsilon": EPSILON})


#: Number of directions that decoys write, and number of decoy units in a layer.
_DIRECTIONS, _UNITS = 3, 6
DECOY = "decoy"


def with_decoys(labelled: Labelled, generator: np.random.Generator) -> Labelled:
    """Return the network with one or two decoy heads, and six decoy units, added to every layer."""
    return _Adding(labelled, generator).added()


class _Adding:
    def __init__(self, labelled: Labelled, generator: np.random.Generator) -> None:
        self.labelled = labelled
        self.draw = generator
        self.width = labelled.width + _DIRECTIONS
        self.tensors: dict[str, Array] = {}
        #: New index of each head (layer, head), and of each hidden unit of a layer.
        self.places: dict[tuple[int, int], int] = {}
        self.units: dict[int, dict[int, int]] = {}
        self.nodes: list[CircuitNode] = []

    def added(self) -> Labelled:
        """Return the network with decoys in every layer, and with the new indices in its circuit."""
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
        """Return ``size`` random rows of output weights that write only to the directions of decoys."""
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
        """Append the weights of a head that attends as a true head does, or randomly, but moves other
        values.
        """
        copied = int(self.draw.integers(true)) if true else None
        for name in ("W_Q", "W_K", "b_Q", "b_K"):
            shape = (self.width, size) if name.startswith("W") else (size,)
            fresh = self.draw.normal(size=shape) / 2
            parts[name].append(fresh if copied is None else parts[name][copied].copy())
        # Values are divided by their possible size, so that the head moves numbers of order 1.
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
        """Return the id of a node, such as ``blocks.1.attn.head.0.q``, with the new index of its
        head.
        """
        parts = name.split(".")
        if "head" not in parts:
            return name
        parts[4] = str(self.places[int(parts[1]), int(parts[4])])
        return ".".join(parts)


_HEAD = ("W_Q", "b_Q", "W_K", "b_K", "W_V", "b_V", "W_O")
