"""Train networks for the named programs of a dataset, and report the measures for their acceptance.

``python -m benchmarks.bench_trained --count 60 --output benchmarks/trained_networks.json`` writes one
row for each program, including failures. If the file exists, only missing programs are trained. After
``--seconds``, one hour by default, no further training is started.
``--figure steps.svg`` draws the training steps of the file, and ``--table`` prints its table.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.plots import line_chart


def rows_of(count: int, seconds: float, known: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the known rows, and a new row for each further program, until the time limit is reached."""
    from locum.experiments.dataset.generating import trained_candidates

    yield from known
    done = {row["source"] for row in known}
    ended = time.monotonic() + seconds
    for candidate in list(trained_candidates())[:count]:
        if candidate["source"] not in done and time.monotonic() < ended:
            yield train_one(candidate)


def train_one(candidate: dict[str, Any]) -> dict[str, Any]:
    """Train a network for one program, and return a row with its acceptance measures."""
    import torch

    from locum.experiments.dataset.making import make

    torch.set_num_threads(1)
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        made = make(folder, tier="trained", **candidate)
        item = made["row"]
        row = {**candidate, "accepted": item is not None, "seconds": 0.0}
        if item is None:
            row["reason"] = made["reason"]
        else:
            certificate = json.loads((Path(folder) / item["folder"] / "certificate.json").read_text())
            training = certificate["training"]
            shares = training["interventions"]
            row |= {
                name: item[name] for name in ("layers", "heads", "inputs", "necessary_edges", "edges")
            }
            row |= {
                "components": len(shares),
                "answers": training["answers"],
                "interventions": min(shares.values()),
                "pairs": training["pairs"],
                "outside": training["outside"],
                "outside_changed": training["outside_changed"],
                "steps": training["steps"],
                "failed_runs": training["failed_runs"],
                "curve": [[round(float(x), 4) for x in point] for point in training["curve"]],
            }
    row["seconds"] = round(time.perf_counter() - started, 1)
    return row


def draw(rows: list[dict[str, Any]]) -> str:
    """Draw the percentage of accepted networks whose training has ended, by training step."""
    accepted = [row for row in rows if row["accepted"]]
    steps = list(range(0, max(row["steps"] for row in accepted) + 1, 50))
    lines = {}
    for layers in sorted({row["layers"] for row in accepted}):
        ends = [row["steps"] for row in accepted if row["layers"] == layers]
        name = f"{layers} layer{'s' * (layers > 1)} (n = {len(ends)})"
        lines[name] = [100 * sum(end <= step for end in ends) / len(ends) for step in steps]
    title = f"Training time of {len(accepted)} accepted networks"
    values = "networks that meet the criteria (%)"
    return line_chart(title, steps, lines, "training step", values=values)


def write_table(rows: list[dict[str, Any]]) -> str:
    """Return a Markdown table of the accepted networks, followed by a table of failures."""
    lines = [
        "| program | layers | components | inputs | answers | interventions | outside | steps |",
        "|---|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {row['source']} | {row['layers']} | {row['components']} | {row['inputs']} | "
        f"{row['answers']:.0%} | {row['interventions']:.1%} | {row['outside']:.3f} | {row['steps']} |"
        for row in rows
        if row["accepted"]
    ]
    failed = [f"| {row['source']} | {row['reason']} |" for row in rows if not row["accepted"]]
    if failed:
        lines += ["", "| not accepted | reason |", "|---|---|", *failed]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Train networks and write their rows, or draw or print the rows of a file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--figure", type=Path)
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--json", action="store_true", help="print the rows as one JSON object")
    options = parser.parse_args()
    if options.table:
        sys.stdout.write(write_table(json.loads(options.output.read_text())))
    elif options.figure is None:
        known = json.loads(options.output.read_text()) if options.output.exists() else []
        rows = []
        for row in rows_of(options.count, options.seconds, known):
            rows.append(row)
            text = ",\n".join(json.dumps(each) for each in rows)
            options.output.write_text(f"[\n{text}\n]\n")
    else:
        options.figure.write_text(draw(json.loads(options.output.read_text())))
    if options.json:
        rows = json.loads(options.output.read_text())
        sys.stdout.write(json.dumps({"benchmark": "trained", "rows": rows}) + "\n")


if __name__ == "__main__":
    main()
