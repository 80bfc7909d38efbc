"""Find circuits by baseline methods for the dataset.

- :func:`by_patching` is activation patching. Edges, heads, queries, keys, values and axes of the
  residual stream are replaced, one at a time, by their values on another input. The score is the
  fraction of pairs whose answer changes. An axis is replaced in several places, and its largest score
  counts.
- :func:`by_weights` uses only weights. The score of an edge is the norm of the product of its writer's
  and reader's weights, divided by the product of their norms. The method exploits sparsity, which the
  harder tiers remove.
- :func:`by_acdc` is ACDC. Edges are removed in order, starting at the output, if the distance of the
  outputs grows by less than a threshold. The score of an edge is the largest of six thresholds at which
  ACDC keeps the edge, or 0.
- :func:`at_random` returns random scores.

``attribution.py`` contains gradient-based baselines. All methods return input for ``locum dataset
score``.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from locum.experiments.circuits.patching import PathPatching
from locum.experiments.dataset.parts import runs_of, unchanged_share
from locum.experiments.dataset.scoring import EMBED, OUTPUT, PLACES, Edge, Truth, time_of
from locum.experiments.dataset.verify import FINAL, Network
from locum.networks.transformer.path_patching import Path


def by_patching(network: Network, truth: Truth, pairs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return scores of edges, heads, queries, keys, values and axes, computed by activation
    patching.
    """
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
    """Return the effect of replacing each axis of the residual stream, as a fraction of pairs.

    An axis is replaced after the embeddings or after a layer, for the pairs of one length at a time.
    The largest of these effects counts. The replacement is the value on the other input, with permuted
    position embeddings.
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
    """Return the final residual stream after replacing one axis at a hook."""

    def change(name: str, stream: Any) -> None:
        if name == point:
            stream[..., axis] = value

    return network.stream(clean, change)


def by_weights(network: Network, truth: Truth) -> dict[str, Any]:
    """Return scores of edges, heads, queries, keys, values and axes, computed from products of
    weights.
    """
    tensors = network.tensors
    # Contributions that are equal for all tokens, or at all positions, carry no information.
    words, places = tensors["embed.W_E"], tensors["pos_embed.W_pos"][network.sink :]
    writes: dict[str, Any] = {EMBED: words - words.mean(axis=0), PLACES: places - places.mean(axis=0)}
    reads: dict[str, Any] = {OUTPUT: tensors["unembed.W_U"]}
    for layer in range(len(network.layers)):
        attn, mlp = f"blocks.{layer}.attn", f"blocks.{layer}.mlp"
        for head in range(network.heads(layer)):
            name = f"{attn}.head.{head}"
            # The possible outputs of a head are the residual stream times W_V times W_O.
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


class _Logits(Network):
    """A network whose answers are its logits, so that path patching returns logits."""

    def answers(self, logits: Any) -> Any:
        """Return the logits unchanged."""
        return logits


#: Thresholds of ACDC, as a KL divergence in nats or a squared error.
_THRESHOLDS = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)


def by_acdc(network: Network, truth: Truth, pairs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return scores of edges: the largest threshold at which ACDC keeps an edge, or 0."""
    runs = runs_of(_Logits(network.config, network.tensors), pairs)
    # Readers are in reverse order, starting at the output; for one reader, later writers come first.
    order = sorted(truth.candidates, key=lambda edge: (-time_of(edge[1]), edge[1], -time_of(edge[0])))
    scores = dict.fromkeys(truth.candidates, 0.0)
    for threshold in _THRESHOLDS:
        removed: list[Path] = []
        before = 0.0
        for edge in order:
            tried = [*removed, Path.read(*edge)]
            distance = _distance(runs, tried, network.is_categorical)
            if distance - before < threshold:
                removed, before = tried, distance
            else:
                scores[edge] = threshold
    return scored(scores)


def _distance(runs: Sequence[PathPatching], paths: Sequence[Path], is_categorical: bool) -> float:
    """Return the mean distance between the clean outputs and the outputs with patched ``paths``.

    The distance is the KL divergence for categorical outputs, and the squared error for numbers.
    """
    distances = []
    for run in runs:
        clean, patched = np.asarray(run.answers), np.asarray(run.patch(paths))
        if is_categorical:
            one, other = _log_softmax(clean), _log_softmax(patched)
            distances.append((np.exp(one) * (one - other)).sum(axis=-1).mean(axis=1))
        else:
            distances.append(((clean - patched) ** 2).mean(axis=(1, 2)))
    return float(np.concatenate(distances).mean())


def _log_softmax(logits: Any) -> Any:
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def at_random(network: Network, truth: Truth, seed: int = 0) -> dict[str, Any]:
    """Return random scores of edges and of axes of the residual stream."""
    draw = np.random.default_rng(seed)
    axes = [float(draw.random()) for _ in range(network.tensors["embed.W_E"].shape[1])]
    return scored({edge: float(draw.random()) for edge in truth.candidates}, axes)


def _clean(score: float) -> float:
    """Return the score, or 0 for a score that is 0 up to rounding."""
    return score if score > 1e-9 else 0.0


def _scored_parts(
    edges: dict[Edge, float], heads: dict[str, float], inside: dict[str, float], axes: list[float]
) -> dict[str, Any]:
    return {
        **scored(edges, axes),
        "heads": [{"id": name, "score": score} for name, score in heads.items()],
        "qkv": [{"id": name, "score": score} for name, score in inside.items()],
    }


def scored(edges: Mapping[Edge, float], axes: Sequence[float] | None = None) -> dict[str, Any]:
    """Return scores of edges, and of axes of the residual stream, as input for ``locum dataset
    score``.
    """
    found: dict[str, Any] = {
        "edges": [{"source": s, "target": t, "score": score} for (s, t), score in edges.items()]
    }
    if axes is not None:
        identity = np.eye(len(axes)).tolist()
        found["slots"] = [{"direction": identity[i], "score": score} for i, score in enumerate(axes)]
    return found
