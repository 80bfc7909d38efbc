"""Generate a dataset of compiled circuits with ground truth, for benchmarks of interpretability.

Each of the --size circuits is a program, a network that was checked against it, and the circuit with
computed labels; it comes in every --tier. A command that was interrupted goes on when it is given
again, and gives the same files to the last byte.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from locum.cli import output
from locum.cli.options import PATH, json_option
from locum.cli.progress import counted


@click.command("dataset", help=__doc__)
@click.argument("folder", type=PATH)
@click.option("--size", type=int, required=True, help="How many circuits.")
@click.option("--seed", type=int, default=0, show_default=True, help="What is drawn hangs on it.")
@click.option(
    "--tier",
    "tiers",
    multiple=True,
    metavar="TIER",
    help="plain, rotated, superposed, decoys, normed, realistic, or all; may be repeated.  "
    "[default: plain, rotated, realistic]",
)
@click.option("--workers", type=int, help="Processes.  [default: one for each core]")
@json_option
def command(
    folder: Path, size: int, seed: int, tiers: tuple[str, ...], workers: int | None, as_json: bool
) -> None:
    """Generate, and say what there is."""
    from locum.dataset.generating import DEFAULT_TIERS, generate
    from locum.dataset.tiers import TIERS

    chosen = TIERS if "all" in tiers else tiers or DEFAULT_TIERS
    try:
        with counted("making circuits", quiet=as_json) as tell:
            summary = generate(folder, size, seed=seed, tiers=chosen, workers=workers, progress=tell)
    except KeyboardInterrupt:
        output.complain(f"locum: what is done is in {folder}; the same command goes on from there")
        raise
    if as_json:
        output.print_json(summary)
        return
    output.say(f"{summary['items']} items of {size} circuits in {folder}, {summary['files']} files")
    for title, name in (
        ("tiers", "by_tier"),
        ("split", "by_split"),
        ("families", "by_family"),
        ("layers", "by_layers"),
        ("attention", "by_attention"),
    ):
        output.say(f"  {title:<11}{_counts(summary[name])}")
    output.say(f"  index      sha256 {summary['index']}")
    output.say(f"Check it with: python {folder / 'verify.py'}")


def _counts(by_name: dict[str, Any]) -> str:
    return ", ".join(f"{name} {count}" for name, count in by_name.items())
