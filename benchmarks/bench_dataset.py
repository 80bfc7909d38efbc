"""Score our two baselines on the tiers of a dataset, and draw the chart of docs/dataset.md.

``python benchmarks/bench_dataset.py FOLDER [--circuits 30] [--svg FILE]``; FOLDER is what
``locum dataset make -o FOLDER --size 100 --tier all`` wrote: circuits of up to three layers, all tiers.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from locum.experiments.dataset import Item, score
from locum.experiments.dataset.baseline import by_patching, by_weights
from locum.experiments.dataset.dataset_loading import load_item
from locum.experiments.dataset.tiers import TIERS
from locum.rasp.drawing.svg import Drawing

LEVELS = ("edges", "heads", "qkv", "slots")
PAIRS = 8
_SHORT = dict(zip(TIERS, ("plain", "rot.", "sup.", "dec.", "norm", "real."), strict=True))
Averages = dict[tuple[str, str, str], float]


def circuits(folder: Path, most: int) -> list[str]:
    """Names of circuits that are there in all tiers, in a random order."""
    names = sorted(path.name for path in (folder / "items" / "plain").iterdir())
    names = [n for n in names if all((folder / "items" / tier / n).is_dir() for tier in TIERS)]
    random.Random(0).shuffle(names)
    few = [n for n in names if len(load_item(folder / "items/plain" / n).network.layers) <= 3]
    return few[:most]


def measured(item: Item) -> dict[tuple[str, str], float]:
    """The average precision of both methods at every level."""
    result = {
        "activation patching": by_patching(item.network, item.truth, item.pairs[:PAIRS]),
        "weights alone": by_weights(item.network, item.truth),
    }
    return {
        (method, level): row["average_precision"]
        for method, entries in result.items()
        for level, row in score(item.truth, entries, item.directions)["levels"].items()
        if row["average_precision"] is not None
    }


def chart(averages: Averages, number: int) -> str:
    """Grouped bars: a row for each method, a group for each level, a bar for each tier."""
    drawing = Drawing()
    wide, high, left = 168, 120, 60
    methods = ("activation patching", "weights alone")
    for row, method in enumerate(methods):
        base = 64 + (row + 1) * (high + 58) - 58
        drawing.text(left, base - high - 14, method, size=13)
        for mark in (0.0, 0.5, 1.0):
            y = base - mark * high
            drawing.path(f"M {left} {y:.1f} H {left + len(LEVELS) * wide}")
            drawing.text(left - 8, y + 4, f"{mark:g}", "soft", size=10, at="end")
        for group, level in enumerate(LEVELS):
            x = left + group * wide + 12
            for bar, tier in enumerate(TIERS):
                value = averages.get((method, tier, level), 0.0)
                drawing.begin(f"{method}, {level}, {tier}: {value:.2f}")
                kind = "on" if tier == "plain" else "soft"
                drawing.box(x + bar * 24, base - value * high, 20, value * high, kind)
                # No line of the grid runs through a number.
                mark = next((m for m in (0.5, 1.0) if -1 <= (m - value) * high <= 10), value)
                drawing.text(
                    x + bar * 24 + 10,
                    base - mark * high - 3,
                    "1" if value > 0.995 else f"{value:.2f}"[1:],
                    "soft",
                    size=8,
                    at="middle",
                )
                drawing.text(x + bar * 24 + 10, base + 11, _SHORT[tier], "soft", size=7, at="middle")
                drawing.end()
            drawing.text(x + 70, base + 27, level, size=12, at="middle")
    title = f"Average precision by tier, mean of {number} circuits"
    drawing.text(left, 24, title, size=14)
    return drawing.svg(left + len(LEVELS) * wide + 20, 46 + 2 * (high + 58), title)


def main() -> None:
    """Score, print, draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--circuits", type=int, default=30)
    parser.add_argument("--svg", type=Path)
    options = parser.parse_args()
    values: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    names = circuits(options.folder, options.circuits)
    for name in names:
        for tier in TIERS:
            item = load_item(options.folder / "items" / tier / name)
            for (method, level), value in measured(item).items():
                values[method, tier, level].append(value)
    averages = {key: sum(result) / len(result) for key, result in values.items()}
    rows = [
        {"method": m, "tier": t, "level": v, "average_precision": round(a, 3)}
        for (m, t, v), a in sorted(averages.items())
    ]
    print(json.dumps({"circuits": len(names), "rows": rows}))
    if options.svg is not None:
        options.svg.write_text(chart(averages, len(names)), encoding="utf-8")


if __name__ == "__main__":
    main()
