"""Score what a method found against a circuit: at the level of edges, heads, queries/keys/values,
slots.
``found.json`` is an object with some of these lists; every entry may have a ``score`` (1 if left out):

- ``edges``: ``{"source": "blocks.0.attn.head.1", "target": "blocks.1.attn.head.0.k", "score": 0.7}``.
  Sources are ``embed``, ``pos_embed``, heads, ``blocks.0.mlp``; targets are queries, keys and values of
  heads (``….q``, ``.k``, ``.v``), ``blocks.0.mlp``, ``output``;
- ``heads``: ``{"id": "blocks.0.attn.head.1"}``; ``qkv``: ``{"id": "blocks.0.attn.head.1.q"}``;
- ``slots``: ``{"direction": [0.0, 1.0, …]}``, directions of the residual stream.

Where edges are given, heads and queries, keys, values that are left out follow from them. Whatever is
not listed has score 0. A name that the network does not have is refused, and so is an entry that comes
twice."""

from __future__ import annotations

import difflib
import itertools
import math
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from locum.errors import InputError
from locum.experiments.dataset.dataset_loading import load_item
from locum.experiments.dataset.parts import Edge, Truth, faithfulness, runs_of
from locum.experiments.dataset.verify import Network
from locum.networks.transformer.weights import Array

LEVELS = ("edges", "heads", "qkv", "slots")
#: A direction is a slot if the cosine of their angle is at least this.
ALIGNED = 0.95
#: How many points a faithfulness curve has.
_POINTS = 11


def score(
    truth: Truth, claimed: Any, directions: Array | None = None, threshold: float = 0.0
) -> dict[str, Any]:
    """Return precision, recall, F1, area under the ROC curve and average precision at every level."""
    if math.isnan(threshold):
        raise InputError("expected a number as the threshold that scores are compared with, got nan")
    scores = read_claimed(truth, claimed)
    levels: dict[str, Any] = {}
    truths: dict[str, tuple[Collection[Any], Collection[Any]]] = {
        "edges": (truth.candidates, truth.edges),
        "heads": (truth.heads, truth.true_heads),
        "qkv": (truth.inside, truth.true_inside),
    }
    for level, (candidates, right) in truths.items():
        if level in scores:
            values = scores[level]
            pairs = [(values.get(one, 0.0), one in right) for one in candidates]
            levels[level] = measures(pairs, len(right), threshold)
    if "slots" in scores:
        levels["slots"] = _slots(truth, scores["slots"], directions, threshold)
    return {"threshold": threshold, "levels": levels}


def measures(pairs: Sequence[tuple[float, bool]], right: int, threshold: float) -> dict[str, Any]:
    """Return the measures of (score, whether it is right) pairs; ``right`` is how many there are.

    >>> measures([(0.9, True), (0.4, False), (0.0, True)], 2, 0.0)["recall"]
    0.5
    """
    chosen = [is_right for value, is_right in pairs if value > threshold]
    hits = sum(chosen)
    precision = hits / len(chosen) if chosen else None
    recall = hits / right if right else None
    both = (precision or 0.0) + (recall or 0.0)
    return {
        "candidates": len(pairs),
        "right": right,
        "found": len(chosen),
        "precision": precision,
        "recall": recall,
        "f1": 2 * (precision or 0.0) * (recall or 0.0) / both if both else 0.0,
        "roc_auc": area_under_roc(pairs),
        "average_precision": _average_precision(pairs, right),
        "roc": _roc(pairs),
    }


def area_under_roc(pairs: Sequence[tuple[float, bool]]) -> float | None:
    """Return the chance that a right one scores above a wrong one, ties half; None without both.

    >>> area_under_roc([(0.9, True), (0.4, False), (0.4, True)])
    0.75
    """
    good = np.array([value for value, is_right in pairs if is_right])
    bad = np.array([value for value, is_right in pairs if not is_right])
    if not len(good) or not len(bad):
        return None
    above = (good[:, None] > bad).mean() + 0.5 * (good[:, None] == bad).mean()
    return float(above)


def _ranked(pairs: Sequence[tuple[float, bool]]) -> list[tuple[int, int]]:
    """Return how many right and wrong ones have at least each score, from the highest on."""
    counts, hits, misses = [], 0, 0
    for value in sorted({value for value, _ in pairs}, reverse=True):
        hits += sum(is_right for other, is_right in pairs if other == value)
        misses += sum(not is_right for other, is_right in pairs if other == value)
        counts.append((hits, misses))
    return counts


def _roc(pairs: Sequence[tuple[float, bool]]) -> list[list[float]]:
    good = sum(is_right for _, is_right in pairs)
    bad = len(pairs) - good
    if not good or not bad:
        return []
    return [[0.0, 0.0], *([misses / bad, hits / good] for hits, misses in _ranked(pairs))]


def _average_precision(pairs: Sequence[tuple[float, bool]], right: int) -> float | None:
    """Return the mean precision over the right ones; those that no candidate is count as 0."""
    if not right:
        return None
    total, before = 0.0, 0
    for hits, misses in _ranked(pairs):
        total += (hits - before) / right * (hits / (hits + misses))
        before = hits
    return total


def _slots(
    truth: Truth,
    claimed: Sequence[tuple[Array, float]],
    directions: Array | None,
    threshold: float,
) -> dict[str, Any]:
    """Match directions with slots that something necessary flows through, each slot once."""
    width = len(claimed[0][0]) if claimed else 0
    known = np.eye(width) if directions is None else np.asarray(directions, float)
    if claimed and known.shape[1] != width:
        raise InputError(
            f"slots: expected directions of {known.shape[1]} numbers, as many as d_model, got {width}"
        )
    units = {
        slot: _unit(known[slot]) for slot in truth.true_slots if slot < len(known) and known[slot].any()
    }
    pairs, taken = [], set()
    for direction, value in sorted(claimed, key=lambda one: -one[1]):
        unit = _unit(direction)
        close = {slot: abs(float(unit @ other)) for slot, other in units.items() if slot not in taken}
        best = max(close, key=close.__getitem__, default=None)
        is_right = best is not None and close[best] >= ALIGNED
        if is_right:
            taken.add(best)
        pairs.append((value, is_right))
    return measures(pairs, len(units), threshold)


def _unit(direction: Array) -> Array:
    """Scale a direction to length 1; by its largest number first, whose square may be no float."""
    scaled = direction / np.abs(direction).max()
    return np.asarray(scaled / np.linalg.norm(scaled))


# Reading -----------------------------------------------------------------------------------------


def read_claimed(truth: Truth, claimed: Any) -> dict[str, Any]:
    """Return the scores of each level that was given or follows from edges."""
    if not isinstance(claimed, Mapping) or not set(claimed) <= {*LEVELS} or not claimed:
        got = sorted(claimed) if isinstance(claimed, Mapping) else type(claimed).__name__
        raise InputError(f"expected an object with some of {', '.join(LEVELS)}, got {got}")
    scores: dict[str, Any] = {}
    for level in claimed:
        if not isinstance(claimed[level], list):
            raise InputError(f"{level}: expected a list, got {type(claimed[level]).__name__}")
    if "edges" in claimed:
        edges = scores["edges"] = _edges(truth, claimed["edges"])
        scores["heads"] = _follow(edges, 0, truth.heads)
        scores["qkv"] = _follow(edges, 1, truth.inside)
    for level, known in (("heads", truth.heads), ("qkv", truth.inside)):
        if level in claimed:
            scores[level] = _named(claimed[level], level, known)
    if "slots" in claimed:
        scores["slots"] = [
            _direction(entry, place, claimed["slots"]) for place, entry in enumerate(claimed["slots"])
        ]
    return scores


def _follow(edges: Mapping[Edge, float], end: int, names: Collection[str]) -> dict[str, float]:
    best: dict[str, float] = {}
    for edge, value in edges.items():
        if edge[end] in names:
            best[edge[end]] = max(value, best.get(edge[end], 0.0))
    return best


def _entry(entry: Any, where: str, fields: Collection[str]) -> float:
    """Check the fields of an entry, and return its score."""
    if not isinstance(entry, Mapping) or not set(fields) <= set(entry) <= {*fields, "score"}:
        raise InputError(f"{where}: expected {', '.join(fields)} and perhaps score, got {entry!r:.120}")
    value = entry.get("score", 1.0)
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    # An integer may be larger than any float.
    if not number or not abs(value) <= sys.float_info.max:
        raise InputError(f"{where}: expected a finite number as score, got {value!r:.40}")
    return float(value)


def _known(name: Any, where: str, names: Collection[str]) -> str:
    if not isinstance(name, str) or name not in names:
        near = difflib.get_close_matches(str(name), list(names), 2, cutoff=0.3)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise InputError(f"{where}: the network has no {name!r:.80}{hint}")
    return name


def _named(entries: list[Any], level: str, names: Collection[str]) -> dict[str, float]:
    scores: dict[str, float] = {}
    for place, entry in enumerate(entries):
        where = f"{level}[{place}]"
        value = _entry(entry, where, ("id",))
        name = _known(entry["id"], where, names)
        if name in scores:
            raise InputError(f"{where}: {name} comes twice")
        scores[name] = value
    return scores


def _edges(truth: Truth, entries: list[Any]) -> dict[Edge, float]:
    scores: dict[Edge, float] = {}
    candidates = frozenset(truth.candidates)
    for place, entry in enumerate(entries):
        where = f"edges[{place}]"
        value = _entry(entry, where, ("source", "target"))
        edge = (
            _known(entry["source"], f"{where}.source", truth.writers),
            _known(entry["target"], f"{where}.target", truth.readers),
        )
        if edge not in candidates:
            raise InputError(f"{where}: {edge[0]} comes behind {edge[1]}, which cannot read it")
        if edge in scores:
            raise InputError(f"{where}: the edge from {edge[0]} to {edge[1]} comes twice")
        scores[edge] = value
    return scores


def _direction(entry: Any, place: int, entries: list[Any]) -> tuple[Array, float]:
    where = f"slots[{place}]"
    value = _entry(entry, where, ("direction",))
    try:
        direction = np.array(entry["direction"], dtype=float)
    except (TypeError, ValueError, OverflowError):
        direction = np.zeros(0)
    first = entries[0].get("direction") if isinstance(entries[0], Mapping) else None
    width = len(first) if isinstance(first, list) else 0
    sound = direction.ndim == 1 and len(direction) == width and np.isfinite(direction).all()
    if not sound or not direction.any():
        raise InputError(f"{where}: expected a direction of d_model finite numbers, not all of them 0")
    return direction, value


# Faithfulness ------------------------------------------------------------------------------------


def faithfulness_curve(
    network: Network, truth: Truth, claimed: Any, pairs: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """Return the share of answers that are kept by the best edges alone, for more and more of them.

    All other edges are as on the counterfactual input. ``of_the_circuit`` is the share that the edges
    of the true circuit keep.
    """
    scores = read_claimed(truth, claimed).get("edges")
    if scores is None:
        raise InputError("a faithfulness curve needs edges, got none")
    runs = runs_of(network, pairs)
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


def score_item(folder: Path, truth: Truth, claimed: Any, threshold: float = 0.0) -> dict[str, Any]:
    """Score beside an item: slots by its directions, and the faithfulness of edges on its pairs."""
    item = load_item(folder)
    result = score(truth, claimed, item.directions, threshold)
    if isinstance(claimed, Mapping) and "edges" in claimed:
        result["faithfulness"] = faithfulness_curve(item.network, truth, claimed, item.pairs)
    return result
