"""Score a found circuit against the true circuit: edges, heads, and queries/keys/values.

``found.json`` is an object with some of the following lists. Every entry may contain a ``score``
(default 1).

- ``edges``: ``{"source": "blocks.0.attn.head.1", "target": "blocks.1.attn.head.0.k", "score": 0.7}``.
  Sources are ``embed``, ``pos_embed``, heads, and ``blocks.0.mlp``. Targets are queries, keys and
  values of heads (``….q``, ``.k``, ``.v``), ``blocks.0.mlp``, and ``output``.
- ``heads``: ``{"id": "blocks.0.attn.head.1"}``; ``qkv``: ``{"id": "blocks.0.attn.head.1.q"}``.

Scores below 10⁻⁶ of the largest score of a level, both as absolute values, count as 0, because they may
be rounding errors. If edges are given, missing lists of heads and of queries, keys and values are
derived from them. Parts that are not listed have score 0. Unknown and repeated names are rejected.

A circuit contains a node for each slot that a head writes. Methods that find circuits use larger units:
heads, and edges from one part to the queries, keys or values of another. :class:`Truth` is the circuit
at this level, where an edge is true if it includes a necessary edge of the circuit.
"""

from __future__ import annotations

import difflib
import itertools
import math
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from locum.errors import InputError

LEVELS = ("edges", "heads", "qkv")
#: Fraction of the largest score below which scores count as 0.
_LEAST_SHARE = 1e-6

EMBED, PLACES, OUTPUT = "embed", "pos_embed", "output"
Edge = tuple[str, str]
#: Ways in which an edge can be necessary, strongest first.
NECESSITY = ("alone", "jointly", "length")


def part_of(node: str) -> str:
    """Return the part (embedding, head, feed-forward or output) to which a circuit node belongs as a
    writer.
    """
    parts = node.split(".")
    if "head" in parts:
        return ".".join(parts[:5])
    return ".".join(parts[:3]) if "mlp" in parts else parts[0]


def reader_of(node: str) -> str:
    """Return the part to which a circuit node belongs as a reader, with separate queries, keys and
    values.
    """
    parts = node.split(".")
    return node if "head" in parts else part_of(node)


def time_of(part: str) -> float:
    """Return the order of computation of a part as a number, where attention precedes the
    feed-forward.
    """
    parts = part.split(".")
    if parts[0] != "blocks":
        return float("inf") if part == OUTPUT else -1.0
    return 2 * int(parts[1]) + (parts[2] == "mlp")


@dataclass(frozen=True)
class Truth:
    """The true circuit at the level of parts: embeddings, heads, feed-forwards and the output."""

    #: Circuit as in ``circuit.json``.
    data: Mapping[str, Any]

    @cached_property
    def heads(self) -> tuple[str, ...]:
        """Names of all heads of the network, including decoys."""
        return tuple(node["id"] for node in self.data["nodes"] if node["kind"] == "head")

    @cached_property
    def layers(self) -> tuple[str, ...]:
        """Names of all feed-forwards of the network."""
        return tuple(
            dict.fromkeys(part_of(node["id"]) for node in self.data["nodes"] if node["kind"] == "units")
        )

    @cached_property
    def writers(self) -> tuple[str, ...]:
        """Names of all parts that write to the residual stream, in the order of the forward pass."""
        return (EMBED, PLACES, *sorted((*self.heads, *self.layers), key=time_of))

    @cached_property
    def readers(self) -> tuple[str, ...]:
        """Names of all parts that read from the residual stream, in the order of the forward pass."""
        inside = (f"{head}.{letter}" for head in self.heads for letter in "qkv")
        return (*sorted((*inside, *self.layers), key=time_of), OUTPUT)

    @cached_property
    def candidates(self) -> tuple[Edge, ...]:
        """All possible edges: pairs of a writer and a later reader."""
        return tuple(
            edge
            for edge in itertools.product(self.writers, self.readers)
            if time_of(edge[0]) < time_of(edge[1])
        )

    @cached_property
    def edges(self) -> frozenset[Edge]:
        """True edges: the edges that include a necessary edge of the circuit."""
        return frozenset(self.necessity)

    @cached_property
    def necessity(self) -> dict[Edge, str]:
        """How each true edge is necessary: alone, jointly with other edges, or only through the
        length.
        """
        found: dict[Edge, str] = {}
        for edge in self.data["edges"]:
            if not edge.get("necessary"):
                continue
            ends = part_of(edge["source"]), reader_of(edge["target"])
            kinds = {found.get(ends, edge.get("necessity", "alone")), edge.get("necessity", "alone")}
            found[ends] = min(kinds, key=NECESSITY.index)
        return found

    @cached_property
    def true_heads(self) -> frozenset[str]:
        """Heads whose output is the source of a true edge."""
        return frozenset(source for source, _ in self.edges if source in self.heads)

    @cached_property
    def inside(self) -> tuple[str, ...]:
        """Queries, keys and values of all heads."""
        return tuple(f"{head}.{letter}" for head in self.heads for letter in "qkv")

    @cached_property
    def true_inside(self) -> frozenset[str]:
        """Queries, keys and values that are the target of a true edge."""
        return frozenset(target for _, target in self.edges if target in self.inside)


def score(truth: Truth, claimed: Any, threshold: float = 0.0) -> dict[str, Any]:
    """Return precision, recall, F1, area under the ROC curve and average precision of a found circuit.

    The measures are computed at every level that ``claimed`` contains or that follows from its edges.
    Scores above ``threshold`` count as found.
    """
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
    if "edges" in scores:
        levels["edges"]["recall_by_necessity"] = _recalls(truth, scores["edges"], threshold)
    return {"threshold": threshold, "levels": levels}


def cut_noise(pairs: Sequence[tuple[float, bool]]) -> list[tuple[float, bool]]:
    """Return pairs (score, is correct) with scores far below the largest score set to 0.

    >>> cut_noise([(1.0, True), (1e-7, False)])
    [(1.0, True), (0.0, False)]
    """
    values = _cut([value for value, _ in pairs])
    return [(value, is_right) for value, (_, is_right) in zip(values, pairs, strict=True)]


def _cut(values: Collection[float]) -> list[float]:
    """Return ``values`` with values far below the largest one set to 0."""
    least = _LEAST_SHARE * max(map(abs, values), default=0.0)
    return [value if abs(value) >= least else 0.0 for value in values]


def _recalls(truth: Truth, scores: Mapping[Edge, float], threshold: float) -> dict[str, Any]:
    """Return the recall of true edges, separately for edges necessary alone, jointly, or through the
    length.
    """
    kinds: dict[str, list[bool]] = {}
    for edge, kind in sorted(truth.necessity.items()):
        kinds.setdefault(kind, []).append(scores.get(edge, 0.0) > threshold)
    return {kind: sum(kinds[kind]) / len(kinds[kind]) for kind in NECESSITY if kind in kinds}


def measures(pairs: Sequence[tuple[float, bool]], right: int, threshold: float) -> dict[str, Any]:
    """Return the measures of candidates, which are pairs (score, is correct).

    ``right`` is the number of correct items, and candidates with a score above ``threshold`` count as
    found.

    >>> measures([(0.9, True), (0.4, False), (0.0, True)], 2, 0.0)["recall"]
    0.5
    """
    pairs = cut_noise(pairs)
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
    """Return the probability that a correct candidate scores higher than a wrong one; ties count as
    half.

    The result is None if there are no correct or no wrong candidates.

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
    """Return, for each score from the highest down, the numbers of correct and wrong candidates with at
    least this score.
    """
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
    """Return the average precision over ``right`` correct candidates; None if there are none.

    Correct items that are not among the candidates count as 0.
    """
    if not right:
        return None
    total, before = 0.0, 0
    for hits, misses in _ranked(pairs):
        total += (hits - before) / right * (hits / (hits + misses))
        before = hits
    return total


# Reading -----------------------------------------------------------------------------------------


def read_claimed(truth: Truth, claimed: Any) -> dict[str, Any]:
    """Return the scores of each level that ``claimed`` contains or that follows from its edges."""
    if not isinstance(claimed, Mapping) or not set(claimed) <= {*LEVELS} or not claimed:
        got = sorted(claimed) if isinstance(claimed, Mapping) else type(claimed).__name__
        raise InputError(f"expected an object with some of {', '.join(LEVELS)}, got {got}")
    scores: dict[str, Any] = {}
    for level in claimed:
        if not isinstance(claimed[level], list):
            raise InputError(f"{level}: expected a list, got {type(claimed[level]).__name__}")
    if "edges" in claimed:
        edges = _edges(truth, claimed["edges"])
        # Heads and qkv whose edges all have rounding errors as scores would otherwise be ranked.
        edges = scores["edges"] = dict(zip(edges, _cut(edges.values()), strict=True))
        scores["heads"] = _follow(edges, 0, truth.heads)
        scores["qkv"] = _follow(edges, 1, truth.inside)
    for level, known in (("heads", truth.heads), ("qkv", truth.inside)):
        if level in claimed:
            scores[level] = _named(claimed[level], level, known)
    return scores


def _follow(edges: Mapping[Edge, float], end: int, names: Collection[str]) -> dict[str, float]:
    best: dict[str, float] = {}
    for edge, value in edges.items():
        if edge[end] in names:
            best[edge[end]] = max(value, best.get(edge[end], 0.0))
    return best


def _entry(entry: Any, where: str, fields: Collection[str]) -> float:
    """Return the score of an entry, after checking its fields."""
    if not isinstance(entry, Mapping) or not set(fields) <= set(entry) <= {*fields, "score"}:
        raise InputError(f"{where}: expected {', '.join(fields)} and perhaps score, got {entry!r:.120}")
    value = entry.get("score", 1.0)
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    # An integer may exceed the range of floats.
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
            raise InputError(f"{where}: {name} occurs twice")
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
            raise InputError(
                f"{where}: expected an edge to a later component, got {edge[0]} to {edge[1]}"
            )
        if edge in scores:
            raise InputError(f"{where}: the edge from {edge[0]} to {edge[1]} is repeated")
        scores[edge] = value
    return scores
