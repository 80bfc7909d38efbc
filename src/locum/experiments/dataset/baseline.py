"""Find circuits by baseline methods for the dataset.

- :func:`by_patching` is activation patching. Edges, heads, queries, keys and values are replaced, one
  at a time, by their values on another input. The score is the fraction of pairs whose answer changes.
- :func:`by_acdc` is ACDC. Edges are removed in order, starting at the output, if the distance of the
  outputs grows by less than a threshold. The score of an edge is the largest of six thresholds at which
  ACDC keeps the edge, or 0.

``attribution.py`` contains gradient-based baselines. All methods return input for ``locum dataset
score``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from locum.experiments.circuits.patching import CompiledNetwork, PathPatching
from locum.experiments.dataset.parts import runs_of, unchanged_share
from locum.experiments.dataset.scoring import Edge, Truth, time_of
from locum.networks.transformer import CompiledTransformer
from locum.networks.transformer.path_patching import Path


def by_patching(
    model: CompiledTransformer, truth: Truth, pairs: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """Return scores of edges, heads, queries, keys and values, computed by activation patching."""
    runs = runs_of(CompiledNetwork(model), pairs)

    def effect(edges: list[Edge]) -> float:
        return 1.0 - unchanged_share(runs, edges)

    heads = {
        head: effect([edge for edge in truth.candidates if edge[0] == head]) for head in truth.heads
    }
    inside = {
        reader: effect([edge for edge in truth.candidates if edge[1] == reader])
        for reader in truth.inside
    }
    return {
        **scored({edge: effect([edge]) for edge in truth.candidates}),
        "heads": [{"id": name, "score": score} for name, score in heads.items()],
        "qkv": [{"id": name, "score": score} for name, score in inside.items()],
    }


class _Logits(CompiledNetwork):
    """A network whose answers are its logits, so that path patching returns logits."""

    def answers(self, logits: Any) -> Any:
        """Return the logits unchanged."""
        return logits


#: Thresholds of ACDC, as a KL divergence in nats or a squared error.
_THRESHOLDS = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)


def by_acdc(
    model: CompiledTransformer, truth: Truth, pairs: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """Return scores of edges: the largest threshold at which ACDC keeps an edge, or 0."""
    network = _Logits(model)
    runs = runs_of(network, pairs)
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


def scored(edges: Mapping[Edge, float]) -> dict[str, Any]:
    """Return scores of edges as input for ``locum dataset score``."""
    return {"edges": [{"source": s, "target": t, "score": score} for (s, t), score in edges.items()]}
