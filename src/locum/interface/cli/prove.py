"""Prove claims about programs."""

from __future__ import annotations

from typing import Any

import click

from locum.interface.cli.options import limit_option
from locum.interface.cli.progress import counted
from locum.interface.cli.runner import Group, Report
from locum.interface.cli.runner import command as make_command

command = Group("prove", help=__doc__)


@make_command("claim", group=command)
@click.argument("name")
@click.argument("shape", nargs=-1, type=int)
@click.option("--recipe", help="Recipe of the construction.  [default: the first one]")
@click.option("--tolerance", type=float, help="Bound below which determinants count as 0 (inverse).")
@limit_option(600.0)
@click.option(
    "--terms",
    type=click.IntRange(1),
    default=200_000,
    show_default=True,
    help="Limit of the number of terms.",
)
@click.option(
    "--megabytes",
    type=click.IntRange(1),
    default=1_500,
    show_default=True,
    help="Memory limit in megabytes.",
)
def claim(name: str, shape: tuple[int, ...], limit: float, **options: Any) -> Report:
    """Prove a claim for all inputs of a shape, or refute it.

    Example: locum prove claim matmul 3 3 4. NAME is a construction, or a layer that U simulates, such
    as attention. The error for an unknown NAME lists all names. The exit code is 1 if the claim is
    refuted, or not proven within the limits.
    """
    from locum.proofs import prove

    with counted("proving") as advance:
        verdict = prove(
            name,
            *shape,
            seconds=limit,
            progress=lambda done, total, cases: advance(done, total, f"{cases} cases"),
            **options,
        )
    return Report(verdict.to_dict(), lambda: [str(verdict)], holds=bool(verdict.holds))
