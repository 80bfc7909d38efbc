"""Run networks with some edges between parts as they are on another input: path patching.

Every reader gets a stream of its own: the sum of what all parts write, with those of the chosen edges
as on the other input. So nobody else sees the change. It works in any basis and behind layer norms.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from locum.dataset.parts import EMBED, OUTPUT, PLACES, Edge, Truth
from locum.dataset.verify import Network

#: Real-valued answers are called equal up to this share of the largest, as labels are computed.
_EQUAL = 1e-4


class PathRun:
    """A network on pairs of inputs of one length."""

    def __init__(self, network: Network, truth: Truth, pairs: Sequence[dict[str, Any]]) -> None:
        self.network, self.truth = network, truth
        sink = network.sink
        self.words, self.places = network.embed([network.ids(pair["clean"]) for pair in pairs])
        other, places = network.embed([network.ids(pair["other"]) for pair in pairs])
        # Positions are the same in both: what they embed is exchanged between positions.
        places = places.copy()
        for row, pair in enumerate(pairs):
            places[row, sink:] = self.places[row, sink:][pair["positions"]]
        self.clean, self.logits = _run(network, {EMBED: self.words, PLACES: self.places})
        whole, _ = _run(network, {EMBED: other, PLACES: self.places})
        self.other = whole | {PLACES: places}
        elsewhere = self._elsewhere(pairs)
        #: What each part writes where an edge is changed.
        self.exchanged = {
            part: elsewhere[part]
            if elsewhere and np.allclose(value, self.clean[part], rtol=0, atol=1e-9)
            else value
            for part, value in self.other.items()
        }
        self.answers = network.answers(self.logits)

    def _elsewhere(self, pairs: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """Return what parts write on inputs of another length, where pairs have one."""
        others = [pair["elsewhere"] for pair in pairs]
        if any(row is None for row in others):
            return {}
        size, sink = self.words.shape[1], self.network.sink
        parts = {part: np.array(value) for part, value in self.clean.items()}
        for length in {len(row) for row in others}:
            rows = [row for row, other in enumerate(others) if len(other) == length]
            embedded = self.network.embed([self.network.ids(others[row]) for row in rows])
            written, _ = _run(self.network, dict(zip((EMBED, PLACES), embedded, strict=True)))
            at = np.minimum(np.arange(sink, size), length + sink - 1)
            for part, value in written.items():
                parts[part][rows, sink:] = value[:, at]
        return parts

    def patched(self, edges: Collection[Edge]) -> Any:
        """Return the logits with these edges as on the other inputs.

        What a part writes on all inputs of one length alike is taken from inputs of another length.
        """
        changes: dict[str, dict[str, Any]] = {}
        for writer, reader in edges:
            changes.setdefault(reader, {})[writer] = self.exchanged[writer]
        with np.errstate(all="ignore"):
            embedded = {EMBED: self.words, PLACES: self.places}
            return _run(self.network, embedded, changes)[1]

    def same(self, logits: Any) -> Any:
        """Return for every pair whether the answer is the clean one at every position."""
        answers = self.network.answers(logits)
        if self.network.config.get("outputs") is not None:
            return (answers == self.answers).all(axis=1)
        scale = _EQUAL * max(1.0, float(np.abs(self.answers).max(initial=0.0)))
        return (np.abs(answers - self.answers) <= scale).all(axis=1)


def _run(
    network: Network,
    embedded: Mapping[str, Any],
    changes: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
) -> tuple[dict[str, Any], Any]:
    """Return what every part writes, and the logits; ``changes`` are of writers, by reader."""
    now = dict(embedded)
    constant: Any = 0.0

    def read(reader: str) -> Any:
        total = constant
        different = changes.get(reader, {})
        for part, value in now.items():
            total = total + different.get(part, value)
        return total

    for layer in range(len(network.layers)):
        block = f"blocks.{layer}"
        if network.heads(layer):
            norm, heads = f"{block}.ln1", range(network.heads(layer))
            plain = network.normed(norm, read(""))
            projected = {letter: network.projected(layer, letter.upper(), plain) for letter in "qkv"}
            for head in heads:
                for letter in "qkv":
                    reader = f"{block}.attn.head.{head}.{letter}"
                    if reader in changes:
                        own = network.normed(norm, read(reader))
                        whole = network.projected(layer, letter.upper(), own)
                        projected[letter][:, :, head] = whole[:, :, head]
            z = network.attended(layer, projected["q"], projected["k"], projected["v"])
            written = network.written(layer, z)
            for head in heads:
                now[f"{block}.attn.head.{head}"] = written[head]
            constant = constant + network.tensors[f"{block}.attn.b_O"]
        if network.has_units(layer):
            mlp = f"{block}.mlp"
            own = network.normed(f"{block}.ln2", read(mlp))
            active = np.maximum(network.before_units(layer, own), 0)
            now[mlp] = active @ network.tensors[f"{mlp}.W_out"]
            constant = constant + network.tensors[f"{mlp}.b_out"]
    return now, network.read_off(read(OUTPUT))


def runs_of(network: Network, truth: Truth, pairs: Sequence[dict[str, Any]]) -> list[PathRun]:
    """Return a run for the pairs of each length."""
    lengths = sorted({len(pair["clean"]) for pair in pairs})
    return [
        PathRun(network, truth, [pair for pair in pairs if len(pair["clean"]) == length])
        for length in lengths
    ]


def faithfulness(runs: Sequence[PathRun], kept: Collection[Edge]) -> float:
    """Return the share of pairs that keep their answer when all other edges are as on another input."""
    keeping = set(kept)
    changed = [edge for edge in runs[0].truth.candidates if edge not in keeping]
    same = [run.same(run.patched(changed)) for run in runs]
    return float(np.concatenate(same).mean())
