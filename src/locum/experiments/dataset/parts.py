"""The parts of a network that methods find: embeddings, heads, their queries, keys and values, layers.

A circuit speaks of what one head writes into one slot; methods that find circuits speak of heads, and
of edges from one part to the queries, keys or values of another. :class:`Truth` is a circuit in these
words: an edge is true if something necessary flows along it.

>>> part_of("blocks.1.attn.head.0.o.2"), part_of("blocks.0.mlp.units.3"), part_of("embed.5")
('blocks.1.attn.head.0', 'blocks.0.mlp', 'embed')
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from locum.experiments.circuits.patching import Network, Pairs, Path, PathPatching
from locum.networks.transformer.circuit import Circuit

EMBED, PLACES, OUTPUT = "embed", "pos_embed", "output"
Edge = tuple[str, str]


def part_of(node: str) -> str:
    """Return the part that a node of a circuit belongs to, as a writer."""
    parts = node.split(".")
    if "head" in parts:
        return ".".join(parts[:5])
    return ".".join(parts[:3]) if "mlp" in parts else parts[0]


def reader_of(node: str) -> str:
    """Return the part that a node of a circuit is, as a reader: queries, keys and values apart."""
    parts = node.split(".")
    return node if "head" in parts else part_of(node)


def time_of(part: str) -> float:
    """Return when a part reads and writes: attention before the feed-forward of its layer."""
    parts = part.split(".")
    if parts[0] != "blocks":
        return float("inf") if part == OUTPUT else -1.0
    return 2 * int(parts[1]) + (parts[2] == "mlp")


@dataclass(frozen=True)
class Truth:
    """A circuit at the level of parts."""

    circuit: Circuit

    @cached_property
    def heads(self) -> tuple[str, ...]:
        """All heads of the network, decoys included."""
        return tuple(node.id for node in self.circuit.nodes if node.kind == "head")

    @cached_property
    def layers(self) -> tuple[str, ...]:
        """All feed-forwards of the network."""
        return tuple(
            dict.fromkeys(part_of(node.id) for node in self.circuit.nodes if node.kind == "units")
        )

    @cached_property
    def writers(self) -> tuple[str, ...]:
        """All parts that write into the stream, in the order of the forward pass."""
        return (EMBED, PLACES, *sorted((*self.heads, *self.layers), key=time_of))

    @cached_property
    def readers(self) -> tuple[str, ...]:
        """All parts that read from the stream, in the order of the forward pass."""
        inside = (f"{head}.{letter}" for head in self.heads for letter in "qkv")
        return (*sorted((*inside, *self.layers), key=time_of), OUTPUT)

    @cached_property
    def candidates(self) -> tuple[Edge, ...]:
        """All edges that there could be."""
        return tuple(
            edge
            for edge in itertools.product(self.writers, self.readers)
            if time_of(edge[0]) < time_of(edge[1])
        )

    @cached_property
    def edges(self) -> frozenset[Edge]:
        """The edges along which something necessary flows."""
        return frozenset(
            (part_of(edge.source), reader_of(edge.target)) for edge in self.circuit.necessary
        )

    @cached_property
    def true_heads(self) -> frozenset[str]:
        """The heads that write something necessary."""
        return frozenset(source for source, _ in self.edges if source in self.heads)

    @cached_property
    def inside(self) -> tuple[str, ...]:
        """Queries, keys and values of all heads."""
        return tuple(f"{head}.{letter}" for head in self.heads for letter in "qkv")

    @cached_property
    def true_inside(self) -> frozenset[str]:
        """Queries, keys and values that read something necessary."""
        return frozenset(target for _, target in self.edges if target in self.inside)

    @cached_property
    def true_slots(self) -> tuple[int, ...]:
        """The slots through which something necessary flows."""
        return tuple(sorted({edge.slot for edge in self.circuit.necessary}))


def runs_of(network: Network, pairs: Sequence[dict[str, Any]]) -> list[PathPatching]:
    """Return a run for the pairs of each length."""
    runs = []
    for length in sorted({len(pair["clean"]) for pair in pairs}):
        chosen = [pair for pair in pairs if len(pair["clean"]) == length]
        names = ("clean", "other", "positions", "elsewhere")
        clean, other, positions, elsewhere = ([pair[name] for pair in chosen] for name in names)
        whole = None if None in elsewhere else elsewhere
        runs.append(PathPatching(network, Pairs(clean, other, positions, whole)))
    return runs


def unchanged_share(runs: Sequence[PathPatching], changed: Collection[Edge]) -> float:
    """Return the share of pairs that keep their answer when these edges are as on the other input."""
    paths = [Path.read(*edge) for edge in changed]
    return float(np.concatenate([run.equal(run.patch(paths)) for run in runs]).mean())


def faithfulness(runs: Sequence[PathPatching], truth: Truth, kept: Collection[Edge]) -> float:
    """Return the share of pairs that keep their answer when all edges but these are changed."""
    keeping = set(kept)
    return unchanged_share(runs, [edge for edge in truth.candidates if edge not in keeping])
