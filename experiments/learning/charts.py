"""Draw the charts of docs/learning.md: ``python -m experiments.learning.charts results.csv FOLDER``."""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import math
import statistics
from collections.abc import Sequence
from pathlib import Path

from locum.interface.display.charts import as_file, line_chart

Row = dict[str, str]


def _where(rows: Sequence[Row], **wanted: object) -> list[Row]:
    return [row for row in rows if all(row[name] == str(value) for name, value in wanted.items())]


def _scales(rows: Sequence[Row]) -> list[str]:
    return sorted({row["sigma"] for row in rows}, key=float)


def _share(rows: Sequence[Row], sigma: str) -> float:
    """Return how many of a hundred networks recovered."""
    here = [row["recovered"] == "True" for row in rows if row["sigma"] == sigma]
    return 100 * sum(here) / len(here)


def _median(rows: Sequence[Row]) -> float:
    return statistics.median(float(row["error"] or "inf") for row in rows)


def basin(rows: Sequence[Row]) -> str:
    """Draw how often U recovers, by the scale of noise."""
    own = [
        row for row in _where(rows, group="basin", optimiser="adam", relative=False) if not row["step"]
    ]
    chosen = {
        "all weights": _where(own, trainable="all", rate="0.0001", balanced=False),
        "all, balanced": _where(own, trainable="all", rate="0.0001", balanced=True),
        "non-zeros": _where(own, trainable="nonzeros", rate="0.001", balanced=False),
    }
    sigmas = _scales(own)
    lines = {name: [_share(part, sigma) for sigma in sigmas] for name, part in chosen.items()}
    title = "Networks of a hundred that recover, by noise on the weights of U(2, 1, 1); Adam"
    return line_chart(title, range(len(sigmas)), lines, "noise σ on the weights", ticks=sigmas)


def radius(rows: Sequence[Row], keys: str, positions: str) -> float:
    """Return the scale of noise from which half recover: the area under the curve of recovery.

    This is Spearman and Kärber's estimate on a logarithmic axis, which uses all scales.
    """
    return _half(_where(rows, group="positions", keys=keys, positions=positions))


def _half(own: Sequence[Row]) -> float:
    sigmas = _scales(own)
    found = math.log(float(sigmas[0]))
    for low, high in itertools.pairwise(sigmas):
        share = (_share(own, low) + _share(own, high)) / 200
        found += share * math.log(float(high) / float(low))
    return math.exp(found)


def positions(rows: Sequence[Row]) -> str:
    """Draw the radius of the basin of one head that fetches, by the number of positions."""
    own = _where(rows, group="positions")
    counts = sorted({row["positions"] for row in own}, key=int)
    kinds = ("squares", "one-hot", "bits")
    lines = {
        kind: [radius(rows, kind, count) for count in counts]
        for kind in kinds
        if all(_where(own, keys=kind, positions=count) for count in counts)
    }
    title = "Noise from which half of the heads recover, by the number of positions"
    places = range(len(counts))
    return line_chart(title, places, lines, "positions N", ticks=counts, logarithmic=True)


def orders(rows: Sequence[Row]) -> str:
    """Draw the radius of the basin of U by the tokens of its input, beside one that falls like 1/N²."""
    tokens = {"2x1x1": 4, "2x2x2": 12, "3x2x2": 14, "4x4x4": 48, "8x4x4": 64, "8x8x8": 192}
    own = _where(rows, group="orders", trainable="nonzeros", rate="0.0001")
    found = [_half(_where(own, order=order)) for order in tokens]
    counts = list(tokens.values())
    lines = {"U": found, "1/N²": [found[0] * (counts[0] / count) ** 2 for count in counts]}
    title = "Noise from which half of the networks U recover, by the tokens of ⟨T, X⟩; Adam, non-zeros"
    places = range(len(counts))
    return line_chart(title, places, lines, "tokens N", ticks=list(map(str, counts)), logarithmic=True)


def zeros(rows: Sequence[Row]) -> str:
    """Draw how the exact weights are lost, by which of them Adam may move."""
    own = [row for row in _where(rows, group="zeros", balanced=False) if row["step"]]
    steps = sorted({row["step"] for row in own}, key=int)[1:]
    lines = {
        name: [_median(_where(own, trainable=which, step=step)) for step in steps]
        for name, which in (("all weights", "all"), ("zeros alone", "zeros"), ("non-zeros", "nonzeros"))
    }
    title = "Error of U(2, 1, 1) after so many steps of Adam at 1e-3 from the exact weights"
    return line_chart(title, range(len(steps)), lines, "steps", ticks=steps, logarithmic=True)


def balancing(rows: Sequence[Row]) -> str:
    """Draw the error that training all weights ends with, at three rates, balanced or not."""
    own = _where(rows, group="basin", optimiser="adam", trainable="all", relative=False, sigma="0.01")
    rates = ["1e-05", "0.0001", "0.001"]
    lines = {
        name: [_median(_where(own, rate=rate, balanced=balanced)) for rate in rates]
        for name, balanced in (("as compiled", False), ("balanced", True))
    }
    title = "Error after training all weights of U(2, 1, 1) from noise 0.01, by Adam's rate"
    return line_chart(title, range(3), lines, "rate of Adam", ticks=rates, logarithmic=True)


CHARTS = {
    "basin": basin,
    "positions": positions,
    "zeros": zeros,
    "balancing": balancing,
    "orders": orders,
}


def main() -> None:
    """Read the table and write the pictures."""
    parser = argparse.ArgumentParser(description="Draw the charts of docs/learning.md.")
    parser.add_argument("results", type=Path, help="the table, results.csv")
    parser.add_argument("folder", type=Path, help="where the pictures go")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    with arguments.results.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    arguments.folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, draw in CHARTS.items():
        path = arguments.folder / f"{name}.svg"
        path.write_text(as_file(draw(rows)), encoding="utf-8")
        written.append(str(path))
    print(json.dumps({"written": written}) if arguments.json else "\n".join(written))


if __name__ == "__main__":
    main()
