"""Write a table from results of sweeps: ``python -m experiments.learning FILE.jsonl… -o results.csv``.

The table contains one row for each trained network. Additional rows with a ``step`` contain errors
during the training.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from locum.errors import LocumError
from locum.experiments.learning.grid import GROUPS
from locum.experiments.sweeps.sweep_case import Case, Result, read_line

COLUMNS = (
    "group", "case", "task", "order", "keys", "positions", "size", "tolerance", "soften", "balanced",
    "start", "trainable", "optimiser", "rate", "decay", "relative", "anneal", "inputs", "steps",
    "batch", "sigma", "seed", "step", "error_before", "error_wide_before", "error_smaller_before",
    "error", "error_wide", "error_smaller", "distance", "zeros_rms", "recovered",
    "parameters", "nonzeros", "largest", "hardware", "locum", "torch", "numpy", "python",
)  # fmt: skip


def rows_of(group: str, found: Result) -> list[dict[str, Any]]:
    """Convert the result of one case of a sweep to rows of the table."""
    settings, result = found.settings, found.result
    shared = {
        **{name: value for name, value in settings.items() if name in COLUMNS},
        **{name: value for name, value in found.versions.items() if name in COLUMNS},
        **{name: result[name] for name in ("hardware", "parameters", "nonzeros", "largest")},
        "group": group,
        "case": found.key[:12],
        "order": "x".join(map(str, settings["order"] or ())),
    }
    for name, task in (("keys", "fetch"), ("positions", "fetch"), ("size", "matmul")):
        if settings["task"] != task:
            shared[name] = ""
    if settings["task"] == "fetch":
        shared["tolerance"] = ""
    rows = [{**shared, **row} for row in result["rows"]]
    return rows + [{**shared, "sigma": settings["sigmas"][0], **point} for point in result["curves"]]


def table(lines: list[bytes]) -> list[dict[str, Any]]:
    """Return the rows of the completed trials in ``lines``, in the order of the groups and the grid."""
    done = {result.key: result for result in map(read_line, lines) if result.outcome == "done"}
    rows: list[dict[str, Any]] = []
    for group, listed in GROUPS.items():
        for settings in listed():
            found = done.get(Case("learning", settings).key)
            if found is not None:
                rows += rows_of(group, found)
    return rows


def written(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row in which floats are strings with up to six significant digits.

    >>> written({"sigma": 0.001, "error": 0.12345678, "seed": 3})
    {'sigma': '0.001', 'error': '0.123457', 'seed': 3}
    """
    return {name: f"{value:.6g}" if isinstance(value, float) else value for name, value in row.items()}


def main() -> None:
    """Read the command line and the results of sweeps, and write the table."""
    parser = argparse.ArgumentParser(description="Make a table of the results of a sweep.")
    parser.add_argument("results", type=Path, nargs="+", help="results of locum sweep")
    parser.add_argument("-o", "--output", type=Path, required=True, help="CSV file for the table")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    try:
        lines = [path.read_bytes().splitlines(keepends=True) for path in arguments.results]
        rows = table([line for part in lines for line in part])
    except (OSError, LocumError) as error:
        print(f"expected the results of sweeps: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    with arguments.output.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(map(written, rows))
    trained = sum("step" not in row for row in rows)
    if arguments.json:
        print(json.dumps({"output": str(arguments.output), "networks": trained}))
    else:
        print(f"{trained:,} networks in {arguments.output}")


if __name__ == "__main__":
    main()
