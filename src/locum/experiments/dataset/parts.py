"""Score found circuits together with their networks: faithfulness curves, and all scores of an item."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path as FilePath
from typing import Any

import numpy as np

from locum.errors import InputError
from locum.experiments.circuits.patching import CompiledNetwork, Pairs, PathPatching
from locum.experiments.dataset.dataset_loading import load_item
from locum.experiments.dataset.scoring import Edge, Truth, read_claimed, score
from locum.networks.transformer import CompiledTransformer
from locum.networks.transformer.path_patching import Path

#: Number of points of a faithfulness curve.
_POINTS = 11


def runs_of(network: CompiledNetwork, pairs: Sequence[dict[str, Any]]) -> list[PathPatching]:
    """Return one path-patching run for the pairs of each length."""
    runs = []
    for length in sorted({len(pair["clean"]) for pair in pairs}):
        chosen = [pair for pair in pairs if len(pair["clean"]) == length]
        names = ("clean", "other", "positions", "elsewhere")
        clean, other, positions, elsewhere = ([pair[name] for pair in chosen] for name in names)
        whole = None if None in elsewhere else elsewhere
        runs.append(PathPatching(network, Pairs(clean, other, positions, whole)))
    return runs


def unchanged_share(runs: Sequence[PathPatching], changed: Collection[Edge]) -> float:
    """Return the fraction of pairs whose answers do not change when the signals of ``changed`` are
    replaced.
    """
    paths = [Path.read(*edge) for edge in changed]
    return float(np.concatenate([run.equal(run.patch(paths)) for run in runs]).mean())


def faithfulness(runs: Sequence[PathPatching], truth: Truth, kept: Collection[Edge]) -> float:
    """Return the fraction of pairs whose answers do not change if all edges except ``kept`` are
    replaced.
    """
    keeping = set(kept)
    return unchanged_share(runs, [edge for edge in truth.candidates if edge not in keeping])


def faithfulness_curve(
    model: CompiledTransformer, truth: Truth, claimed: Any, pairs: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """Return the fraction of pairs whose answers do not change, by the fraction of edges that are kept.

    The edges with the highest scores are kept. The signals of all other edges are replaced.
    ``of_the_circuit`` is this fraction if the edges of the true circuit are kept.
    """
    scores = read_claimed(truth, claimed).get("edges")
    if scores is None:
        raise InputError("a faithfulness curve needs edges, got none")
    runs = runs_of(CompiledNetwork(model), pairs)
    order = sorted(truth.candidates, key=lambda edge: (-scores.get(edge, 0.0), edge))
    points = []
    for step in range(_POINTS):
        kept = order[: round(len(order) * step / (_POINTS - 1))]
        points.append([len(kept) / len(order), faithfulness(runs, truth, kept)])
    areas = [(b[0] - a[0]) * (a[1] + b[1]) / 2 for a, b in itertools.pairwise(points)]
    return {
        "curve": points,
        "area": sum(areas),
        "of_the_circuit": faithfulness(runs, truth, truth.edges),
        "edges_of_the_circuit": len(truth.edges) / len(order),
    }


def score_item(folder: FilePath, truth: Truth, claimed: Any, threshold: float = 0.0) -> dict[str, Any]:
    """Return all scores of a found circuit for the item in ``folder``.

    Edges are also scored by their faithfulness on the pairs of the item.
    """
    item = load_item(folder)
    result = score(truth, claimed, threshold)
    if isinstance(claimed, Mapping) and "edges" in claimed:
        result["faithfulness"] = faithfulness_curve(item.model, truth, claimed, item.pairs)
    return result
