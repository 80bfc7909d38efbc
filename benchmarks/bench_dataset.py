"""Score baselines on a dataset, and print the average precision of each method and level.

    python benchmarks/bench_dataset.py FOLDER --json > benchmarks/dataset_baselines.json

FOLDER is the output of ``locum dataset make -o FOLDER --size 100``. Circuits with up to three layers
are scored. ``--circuits`` sets their maximum number, which is 30 by default.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections import defaultdict
from pathlib import Path

from locum.experiments.dataset import Item, load, score
from locum.experiments.dataset.attribution import by_attribution
from locum.experiments.dataset.baseline import by_acdc, by_patching

PAIRS, STEPS = 8, 8


def circuits(folder: Path, most: int) -> list[Item]:
    """Return at most ``most`` small networks with softmax heads, in a random order."""
    items = [
        item for item in load(folder).where(attention="softmax") if len(item.model.weights.layers) <= 3
    ]
    random.Random(0).shuffle(items)
    return items[:most]


def measured(item: Item) -> dict[tuple[str, str], float]:
    """Return the average precision of each method and level for one item, where it is defined."""
    model, truth, pairs = item.model, item.truth, item.pairs[:PAIRS]
    result = {
        "EAP": by_attribution(model, truth, pairs),
        "EAP-IG": by_attribution(model, truth, pairs, STEPS),
        "ACDC": by_acdc(model, truth, pairs),
        "activation patching": by_patching(model, truth, pairs),
    }
    return {
        (method, level): row["average_precision"]
        for method, entries in result.items()
        for level, row in score(truth, entries)["levels"].items()
        if row["average_precision"] is not None
    }


def main() -> None:
    """Score the baselines and print the averages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--circuits", type=int, default=30)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    values: dict[tuple[str, str], list[float]] = defaultdict(list)
    items = circuits(options.folder, options.circuits)
    for item in items:
        for key, value in measured(item).items():
            values[key].append(value)
        print(item.row["id"], file=sys.stderr)
    rows = [
        {"method": m, "level": v, "average_precision": round(sum(found) / len(found), 3)}
        for (m, v), found in sorted(values.items())
    ]
    if options.json:
        print(json.dumps({"circuits": len(items), "rows": rows}))
    else:
        for row in rows:
            print(f"{row['level']:<6} {row['method']:<20} {row['average_precision']:.3f}")


if __name__ == "__main__":
    main()
