"""Prove claims about programs."""

from __future__ import annotations

from typing import Any

import click

from locum.interface.cli.options import limit_option
from locum.interface.cli.progress import counted
from locum.interface.cli.runner import Group, Report
from locum.interface.cli.runner import command as make_command

command = Group("prove", help=__doc__)


def _complete_claim(context: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
    """Complete the names of claims."""
    from locum.proofs.claims.named import FAMILIES

    return [name for name in FAMILIES if name.startswith(begun)]


def _complete_recipe(context: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
    from locum.proofs.claims.named import FAMILIES

    family = FAMILIES.get(str(context.params.get("name")))
    return [name for name in (family.recipes if family else ()) if name.startswith(begun)]


@make_command("claim", group=command)
@click.argument("name", shell_complete=_complete_claim)
@click.argument("shape", nargs=-1, type=int)
@click.option(
    "--recipe",
    shell_complete=_complete_recipe,
    help="Recipe of the construction.  [default: the first one]",
)
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
