"""Draw the charts of docs/learning.md: ``python -m experiments.learning.charts results.csv FOLDER``."""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import math
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

from locum.interface.display.charts import as_file, line_chart

Row = dict[str, str]


def _where(rows: Sequence[Row], **wanted: object) -> list[Row]:
    return [row for row in rows if all(row[name] == str(value) for name, value in wanted.items())]


def _scales(rows: Sequence[Row]) -> list[str]:
    return sorted({row["sigma"] for row in rows}, key=float)


def _share(rows: Sequence[Row], sigma: str) -> float:
    """Return the percentage of networks that recovered from noise of scale ``sigma``."""
    here = [row["recovered"] == "True" for row in rows if row["sigma"] == sigma]
    return 100 * sum(here) / len(here)


def _median(rows: Sequence[Row]) -> float:
    return statistics.median(float(row["error"] or "inf") for row in rows)


def basin(rows: Sequence[Row]) -> str:
    """Draw the percentage of networks that recover, as a function of the noise scale."""
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
    title = f"Recovery of U(2, 1, 1) from noise (n = {_number(chosen, sigmas)} per point)"
    return line_chart(
        title,
        _logarithms(sigmas),
        lines,
        "relative noise σ of the weights",
        ticks=sigmas,
        values="recovered networks (%)",
    )


def _logarithms(values: Sequence[str]) -> list[int]:
    """Return the positions of values on a logarithmic axis."""
    return [round(100 * math.log10(float(value))) for value in values]


def _number(groups: Mapping[str, Sequence[Row]], scales: Sequence[str], name: str = "sigma") -> str:
    """Return the number of networks for each point of a chart, or the range of these numbers."""
    counts = {sum(row[name] == scale for row in group) for group in groups.values() for scale in scales}
    return f"{min(counts)}" if len(counts) == 1 else f"{min(counts)} to {max(counts)}"


def radius(rows: Sequence[Row], keys: str, positions: str) -> float:
    """Return an estimate of the noise scale from which half of the networks recover.

    The estimate is the Spearman–Kärber estimate on a logarithmic axis, which is computed from the area
    under the recovery curve.
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
    """Draw the radius of the basin of one fetching head as a function of the number of positions."""
    own = _where(rows, group="positions")
    counts = sorted({row["positions"] for row in own}, key=int)
    kinds = ("squares", "one-hot", "bits")
    lines = {
        kind: [radius(rows, kind, count) for count in counts]
        for kind in kinds
        if all(_where(own, keys=kind, positions=count) for count in counts)
    }
    groups = {kind: _where(own, keys=kind, positions=counts[0]) for kind in lines}
    title = f"Basin of a fetching head (n = {_number(groups, _scales(own))} per noise scale)"
    return line_chart(
        title,
        _logarithms(counts),
        lines,
        "positions N",
        ticks=counts,
        logarithmic=True,
        values="noise σ from which half recover",
    )


def orders(rows: Sequence[Row]) -> str:
    """Draw the radius of the basin of U as a function of the number of tokens, N.

    A second curve is proportional to 1/N².
    """
    tokens = {"2x1x1": 4, "2x2x2": 12, "3x2x2": 14, "4x4x4": 48, "8x4x4": 64, "8x8x8": 192}
    own = _where(rows, group="orders", trainable="nonzeros", rate="0.0001")
    found = [_half(_where(own, order=order)) for order in tokens]
    counts = list(tokens.values())
    lines = {"U": found, "1/N²": [found[0] * (counts[0] / count) ** 2 for count in counts]}
    groups = {order: _where(own, order=order) for order in tokens}
    each = {len(group) // len(_scales(group)) for group in groups.values()}
    title = f"Basin of U by size (n = {'/'.join(map(str, sorted(each)))} per noise scale)"
    return line_chart(
        title,
        _logarithms(list(map(str, counts))),
        lines,
        "tokens N of ⟨T, X⟩",
        ticks=["4", "12", "", "48", "64", "192"],
        logarithmic=True,
        values="noise σ from which half recover",
    )


def zeros(rows: Sequence[Row]) -> str:
    """Draw the error of U during training from the exact weights, by the set of trainable weights."""
    own = [row for row in _where(rows, group="zeros", balanced=False) if row["step"]]
    steps = sorted({row["step"] for row in own}, key=int)[1:]
    lines = {
        name: [_median(_where(own, trainable=which, step=step)) for step in steps]
        for name, which in (("all weights", "all"), ("zeros alone", "zeros"), ("non-zeros", "nonzeros"))
    }
    number = _number({name: _where(own, trainable="all") for name in ("all",)}, steps, "step")
    title = f"Adam from the exact weights of U(2, 1, 1) (n = {number} per point)"
    return line_chart(
        title,
        _logarithms(steps),
        lines,
        "training steps (learning rate 10⁻³)",
        ticks=steps,
        logarithmic=True,
        values="median normalised RMSE",
    )


def balancing(rows: Sequence[Row]) -> str:
    """Draw the final error after training all weights at three learning rates.

    The weights are as compiled or balanced.
    """
    own = _where(rows, group="basin", optimiser="adam", trainable="all", relative=False, sigma="0.01")
    rates = ["1e-05", "0.0001", "0.001"]
    lines = {
        name: [_median(_where(own, rate=rate, balanced=balanced)) for rate in rates]
        for name, balanced in (("as compiled", False), ("balanced", True))
    }
    groups = {str(balanced): _where(own, balanced=balanced) for balanced in (False, True)}
    title = f"All weights of U(2, 1, 1) from σ = 0.01 (n = {_number(groups, rates, 'rate')} per point)"
    return line_chart(
        title,
        _logarithms(rates),
        lines,
        "learning rate of Adam",
        ticks=["10⁻⁵", "10⁻⁴", "10⁻³"],
        logarithmic=True,
        values="median normalised RMSE",
    )


CHARTS = {
    "basin": basin,
    "positions": positions,
    "zeros": zeros,
    "balancing": balancing,
    "orders": orders,
}


def main() -> None:
    """Read the table of results, and write the charts as SVG files."""
    parser = argparse.ArgumentParser(description="Draw the charts of docs/learning.md.")
    parser.add_argument("results", type=Path, help="the table, results.csv")
    parser.add_argument("folder", type=Path, help="folder for the SVG files")
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
