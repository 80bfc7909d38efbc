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
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from locum.dataset.decoys import with_decoys
from locum.dataset.labelled import Labelled
from locum.dataset.verify import FINAL
from locum.transformer.weights import Array

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
