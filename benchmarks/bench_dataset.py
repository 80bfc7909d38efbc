"""Score baselines on the tiers of a dataset, and draw the heat map of docs/dataset.md.

    python benchmarks/bench_dataset.py FOLDER --json > benchmarks/dataset_baselines.json
    python benchmarks/bench_dataset.py --read benchmarks/dataset_baselines.json --svg FILE

FOLDER is the output of ``locum dataset make -o FOLDER --size 100 --tier all``. Circuits with up to
three layers are scored on all tiers. ``--circuits`` sets their maximum number, which is 30 by default.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.plots import heat_maps
from locum.experiments.dataset import Item, score
from locum.experiments.dataset.attribution import by_attribution
from locum.experiments.dataset.baseline import at_random, by_acdc, by_patching, by_weights
from locum.experiments.dataset.dataset_loading import load_item
from locum.experiments.dataset.tiers import TIERS

LEVELS = {
    "edges": "Edges",
    "heads": "Heads",
    "qkv": "Queries, keys and values of heads",
    "slots": "Slots of the residual stream",
}
METHODS = ("EAP", "EAP-IG", "ACDC", "activation patching", "weights alone", "random")
PAIRS, STEPS = 8, 8


def circuits(folder: Path, most: int) -> list[str]:
    """Return at most ``most`` names of small circuits that exist in all tiers, in a random order."""
    names = sorted(path.name for path in (folder / "items" / "plain").iterdir())
    names = [n for n in names if all((folder / "items" / tier / n).is_dir() for tier in TIERS)]
    random.Random(0).shuffle(names)
    few = [n for n in names if len(load_item(folder / "items/plain" / n).network.layers) <= 3]
    return few[:most]


def measured(item: Item) -> dict[tuple[str, str], float]:
    """Return the average precision of each method and level for one item, where it is defined."""
    network, truth, pairs = item.network, item.truth, item.pairs[:PAIRS]
    result = {
        "EAP": by_attribution(item.model, network, truth, pairs),
        "EAP-IG": by_attribution(item.model, network, truth, pairs, STEPS),
        "ACDC": by_acdc(network, truth, pairs),
        "activation patching": by_patching(network, truth, pairs),
        "weights alone": by_weights(network, truth),
        "random": at_random(network, truth),
    }
    return {
        (method, level): row["average_precision"]
        for method, entries in result.items()
        for level, row in score(truth, entries, item.directions)["levels"].items()
        if row["average_precision"] is not None
    }


def draw(report: dict[str, Any]) -> str:
    """Draw a panel for each level as SVG: methods are rows, tiers are columns, shades are scores."""
    averages = {(r["method"], r["tier"], r["level"]): r["average_precision"] for r in report["rows"]}
    panels = {}
    for level, title in LEVELS.items():
        values = [[averages.get((method, tier, level)) for tier in TIERS] for method in METHODS]
        panels[title] = [
            [(0.0, "–") if value is None else (value, f"{value:.2f}") for value in row]
            for row in values
        ]
    title = f"Average precision of baselines, mean of {report['circuits']} circuits"
    return heat_maps(title, panels, METHODS, tuple(TIERS), x="tier", y="method")


def main() -> None:
    """Score the baselines and print the averages; with ``--svg``, draw the heat map."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--read", type=Path, help="Draw the report of a JSON file, without scoring.")
    parser.add_argument("--circuits", type=int, default=30)
    parser.add_argument("--svg", type=Path)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.read is not None:
        options.svg.write_text(draw(json.loads(options.read.read_text())), encoding="utf-8")
        return
    values: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    names = circuits(options.folder, options.circuits)
    differences = []
    for name in names:
        edges = {}
        for tier in TIERS:
            item = load_item(options.folder / "items" / tier / name)
            for (method, level), value in measured(item).items():
                values[method, tier, level].append(value)
                edges[method, tier, level] = value
        plain, rotated = (edges.get(("EAP", tier, "edges")) for tier in ("plain", "rotated"))
        differences.append(abs((plain or 0.0) - (rotated or 0.0)))
        print(f"{name}: {differences[-1]:.4f}", file=sys.stderr)
    averages = {key: sum(result) / len(result) for key, result in values.items()}
    rows = [
        {"method": m, "tier": t, "level": v, "average_precision": round(a, 3)}
        for (m, t, v), a in sorted(averages.items())
    ]
    report = {
        "circuits": len(names),
        "largest_difference_of_eap_between_plain_and_rotated": max(differences, default=None),
        "rows": rows,
    }
    if options.json:
        print(json.dumps(report))
    else:
        for row in rows:
            where = f"{row['level']:<6} {row['method']:<20} {row['tier']:<11}"
            print(f"{where} {row['average_precision']:.3f}")
        print(f"EAP of edges, plain and rotated: at most {max(differences, default=0.0):.4f} apart")
    if options.svg is not None:
        options.svg.write_text(draw(report), encoding="utf-8")


if __name__ == "__main__":
    main()
