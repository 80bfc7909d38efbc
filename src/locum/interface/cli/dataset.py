"""Make a dataset of circuits, and score found circuits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from locum.interface.cli import output as terminal
from locum.interface.cli.options import PATH
from locum.interface.cli.progress import counted
from locum.interface.cli.runner import Group, Report
from locum.interface.cli.runner import command as make_command

#: The tiers of a dataset (``dataset.making.TIERS``).
TIERS = ("plain", "trained")

command = Group("dataset", help=__doc__)


@make_command("make", group=command)
@click.option("-o", "--output", type=PATH, required=True, help="Folder for the dataset.")
@click.option("--size", type=int, required=True, help="Number of circuits.")
@click.option("--seed", type=int, default=0, show_default=True, help="Random seed.")
@click.option(
    "--tier", type=click.Choice(TIERS), default="plain", show_default=True, help="Kind of networks."
)
@click.option("--workers", type=int, help="Number of worker processes.  [default: one per core]")
def make(output: Path, size: int, seed: int, tier: str, workers: int | None) -> Report:
    """Make a dataset of circuits with ground truth.

    Each item consists of a program, a network whose outputs were compared with the program, and the
    circuit graph as the label. Networks are compiled in the tier plain. They are trained in the tier
    trained, which requires torch. To continue an interrupted command, run it again. The final files do
    not depend on the interruption.
    """
    from locum.experiments.dataset.generating import generate

    try:
        with counted("making circuits") as advance:
            summary = generate(output, size, seed=seed, tier=tier, workers=workers, progress=advance)
    except KeyboardInterrupt:
        terminal.complain(f"locum: finished results are in {output}; the same command continues")
        raise

    def text() -> Iterator[str]:
        yield f"{summary['items']} items in {output}"
        for title in ("split", "family", "layers", "attention"):
            counts = summary[f"by_{title}"].items()
            yield f"  {title:<11}{', '.join(f'{name} {count}' for name, count in counts)}"

    return Report(summary, text)


@make_command("score", group=command)
@click.argument("circuit", type=PATH)
@click.argument("found", type=PATH)
@click.option(
    "--threshold",
    type=float,
    default=0.0,
    show_default=True,
    help="Parts with a larger score count as found.",
)
def score(circuit: Path, found: Path, threshold: float) -> Report:
    """Score a circuit found by a method against the true circuit.

    CIRCUIT is the circuit.json of an item of the dataset. FOUND is a JSON file of edges, heads,
    queries/keys/values, each with an optional score, or another circuit.json. If CIRCUIT is in
    the folder of its item, the command also measures the faithfulness of the found edges.
    """
    from locum.experiments.dataset.parts import score_item
    from locum.experiments.dataset.scoring import Truth, score
    from locum.files import read_json
    from locum.networks.transformer.circuit import Circuit

    truth = Truth(Circuit.load(circuit).data())
    parts = read_json(found, 2**27)
    if isinstance(parts, dict) and "nodes" in parts:  # FOUND is a circuit.json
        edges = sorted(Truth(Circuit.load(found).data()).edges)
        parts = {"edges": [{"source": source, "target": target} for source, target in edges]}
    folder = circuit.parent
    is_item = all((folder / name).is_file() for name in ("config.json", "examples.json"))
    result = score_item(folder, truth, parts, threshold) if is_item else score(truth, parts, threshold)
    return Report(result, lambda: _score_text(result))


def _score_text(result: dict[str, Any]) -> Iterator[str]:
    yield "level   right  found  precision  recall  F1     ROC    average precision"
    for level, row in result["levels"].items():
        numbers = (row[name] for name in ("precision", "recall", "f1", "roc_auc", "average_precision"))
        precision, recall, f1, roc, average = ("–" if n is None else f"{n:.3f}" for n in numbers)
        yield (
            f"{level:<7} {row['right']:<6} {row['found']:<6} {precision:<10} {recall:<7} {f1:<6} "
            f"{roc:<6} {average}"
        )
    if "faithfulness" in result:
        curve = result["faithfulness"]
        yield (
            f"faithfulness: {curve['area']:.3f} (area under the curve); the true circuit preserves "
            f"{curve['of_the_circuit']:.0%} of answers with {curve['edges_of_the_circuit']:.0%} of the "
            "edges"
        )
