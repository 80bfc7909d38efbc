"""Path patching of the networks of a dataset, on its counterfactual pairs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from locum.circuits.pairs import Pairs
from locum.circuits.patching import Path, PathPatching
from locum.dataset.parts import Edge, Truth
from locum.dataset.verify import Network


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
