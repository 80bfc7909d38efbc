"""Score a circuit that some method found against the true one, at several levels.

CIRCUIT is the circuit.json of an item, FOUND what was found: edges, heads, queries/keys/values, slots,
each with a score. Beside the item's network the faithfulness of the edges is measured, too.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from locum.cli import output
from locum.cli.options import PATH, json_option


@click.command("score", help=__doc__)
@click.argument("circuit", type=PATH)
@click.argument("found", type=PATH)
@click.option(
    "--threshold", type=float, default=0.0, show_default=True, help="Scores above it are found."
)
@json_option
def command(circuit: Path, found: Path, threshold: float, as_json: bool) -> None:
    """Read both, score, and print."""
    from locum.dataset.parts import Truth
    from locum.dataset.scoring import score, score_item
    from locum.files import read_json
    from locum.transformer.circuit import Circuit

    truth = Truth(Circuit.load(circuit))
    parts = read_json(found, 2**27)
    folder = circuit.parent
    beside = all((folder / name).is_file() for name in ("config.json", "examples.json"))
    result = (
        score_item(folder, truth, parts, threshold)
        if beside
        else score(truth, parts, threshold=threshold)
    )
    if as_json:
        output.print_json(result)
        return
    output.say("level   right  found  precision  recall  F1     ROC    average precision")
    for level, row in result["levels"].items():
        numbers = (row[name] for name in ("precision", "recall", "f1", "roc_auc", "average_precision"))
        precision, recall, f1, roc, average = map(_shown, numbers)
        output.say(
            f"{level:<7} {row['right']:<6} {row['found']:<6} {precision:<10} {recall:<7} {f1:<6} "
            f"{roc:<6} {average}"
        )
    if "faithfulness" in result:
        curve = result["faithfulness"]
        output.say(
            f"faithfulness: {curve['area']:.3f} (area under the curve); the true circuit keeps "
            f"{curve['of_the_circuit']:.0%} of answers by {curve['edges_of_the_circuit']:.0%} of edges"
        )


def _shown(number: Any) -> str:
    return "–" if number is None else f"{number:.3f}"
