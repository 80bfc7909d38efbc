"""Two methods of our own that find circuits, so that the dataset proves itself.

- :func:`by_patching` is activation patching: every edge, head and axis of the stream is set to what it
  is on another input, one at a time; its score is the share of pairs whose answer changes.
- :func:`by_weights` looks at weights alone: an edge scores by the product of what its writer writes and
  its reader reads. It is what sparsity gives away, and what the harder tiers take away.

Both return what ``locum dataset score`` reads.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from locum.experiments.dataset.parts import EMBED, OUTPUT, PLACES, Edge, Truth, runs_of, unchanged_share
from locum.experiments.dataset.verify import FINAL, Network


def by_patching(network: Network, truth: Truth, pairs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return edges, heads, queries, keys, values and axes, scored by patching each of them."""
    runs = runs_of(network, pairs)

    def effect(edges: list[Edge]) -> float:
        return 1.0 - unchanged_share(runs, edges)

    edges = {edge: effect([edge]) for edge in truth.candidates}
    heads = {
        head: effect([edge for edge in truth.candidates if edge[0] == head]) for head in truth.heads
    }
    inside = {
        reader: effect([edge for edge in truth.candidates if edge[1] == reader])
        for reader in truth.inside
    }
    return _scored_parts(edges, heads, inside, _axes(network, pairs))


def _axes(network: Network, pairs: Sequence[dict[str, Any]]) -> list[float]:
    """Return the effect of each axis of the stream, set behind the embeddings and behind every layer.

    It is set to what it is on the other input, with what positions embed exchanged between positions.
    """
    effects = np.zeros(network.tensors["embed.W_E"].shape[1])
    points = [*(f"blocks.{layer}.hook_resid_pre" for layer in range(len(network.layers))), FINAL]
    for length in {len(pair["clean"]) for pair in pairs}:
        chosen = [pair for pair in pairs if len(pair["clean"]) == length]
        clean, other = (
            np.array([network.ids(pair[name]) for pair in chosen]) for name in ("clean", "other")
        )
        answers = network.answers(network.logits(clean))
        _, places = network.embed(clean)
        exchanged = places.copy()
        for row, pair in enumerate(chosen):
            exchanged[row, network.sink :] = places[row, network.sink :][pair["positions"]]
        streams: dict[str, Any] = {}
        network.stream(other, streams.__setitem__)
        for axis, point in itertools.product(range(len(effects)), points):
            value = (streams[point] + exchanged - places)[..., axis]
            others = network.answers(network.read_off(_with_axis(network, clean, point, axis, value)))
            changed = (np.abs(others - answers) > 1e-4).any(axis=1).sum() / len(pairs)
            effects[axis] = max(effects[axis], changed)
    listed: list[float] = effects.tolist()
    return listed


def _with_axis(network: Network, clean: Any, point: str, axis: int, value: Any) -> Any:
    """Return the stream with one axis set, from a reading point on."""

    def change(name: str, stream: Any) -> None:
        if name == point:
            stream[..., axis] = value

    return network.stream(clean, change)


def by_weights(network: Network, truth: Truth) -> dict[str, Any]:
    """Return the same, scored by the norms of products of weights."""
    tensors = network.tensors
    # What is the same for all tokens, or at all positions, tells a reader nothing.
    words, places = tensors["embed.W_E"], tensors["pos_embed.W_pos"][network.sink :]
    writes: dict[str, Any] = {EMBED: words - words.mean(axis=0), PLACES: places - places.mean(axis=0)}
    reads: dict[str, Any] = {OUTPUT: tensors["unembed.W_U"]}
    for layer in range(len(network.layers)):
        attn, mlp = f"blocks.{layer}.attn", f"blocks.{layer}.mlp"
        for head in range(network.heads(layer)):
            name = f"{attn}.head.{head}"
            # What a head can write: its values times its output, through the stream.
            writes[name] = tensors[f"{attn}.W_V"][head] @ tensors[f"{attn}.W_O"][head]
            for letter in "qkv":
                reads[f"{name}.{letter}"] = tensors[f"{attn}.W_{letter.upper()}"][head]
        if network.has_units(layer):
            writes[mlp], reads[mlp] = tensors[f"{mlp}.W_out"], tensors[f"{mlp}.W_in"]
    edges = {}
    for writer, reader in truth.candidates:
        one, other = writes[writer], reads[reader]
        scale = float(np.linalg.norm(one) * np.linalg.norm(other)) or 1.0
        edges[writer, reader] = _clean(float(np.linalg.norm(one @ other)) / scale)
    heads = {head: max(v for e, v in edges.items() if e[0] == head) for head in truth.heads}
    inside = {part: max(v for e, v in edges.items() if e[1] == part) for part in truth.inside}
    read = np.concatenate(list(reads.values()), axis=1)
    axes = np.linalg.norm(read, axis=1) / (np.linalg.norm(read) or 1.0)
    return _scored_parts(edges, heads, inside, [_clean(float(axis)) for axis in axes])


def _clean(score: float) -> float:
    """Set to 0 what is 0 up to rounding."""
    return score if score > 1e-9 else 0.0


def _scored_parts(
    edges: dict[Edge, float], heads: dict[str, float], inside: dict[str, float], axes: list[float]
) -> dict[str, Any]:
    identity = np.eye(len(axes))
    return {
        "edges": [{"source": s, "target": t, "score": score} for (s, t), score in edges.items()],
        "heads": [{"id": name, "score": score} for name, score in heads.items()],
        "qkv": [{"id": name, "score": score} for name, score in inside.items()],
        "slots": [
            {"direction": identity[axis].tolist(), "score": score} for axis, score in enumerate(axes)
        ],
    }
