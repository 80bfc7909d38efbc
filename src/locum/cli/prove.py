"""``locum prove``: a claim, for all inputs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from locum.cli.programs import json_option, print_json
from locum.cli.progress import counted
from locum.errors import InputError
from locum.files import check_target, write_file

if TYPE_CHECKING:
    from locum.verification import Claim


@click.command("prove")
@click.argument("name")
@click.argument("shape", nargs=-1, type=int)
@click.option("--recipe", help="Which form of the construction.  [default: its first]")
@click.option("--seconds", default=600.0, show_default=True, help="Give up after so long.")
@click.option("--terms", default=200_000, show_default=True, help="Give up beyond so many terms.")
@click.option(
    "--certificate", type=click.Path(path_type=Path), help="Write what `locum check` verifies."
)
@json_option
def command(
    name: str,
    shape: tuple[int, ...],
    recipe: str | None,
    seconds: float,
    terms: int,
    certificate: Path | None,
    as_json: bool,
) -> None:
    """Prove a claim for all inputs of a shape: locum prove matmul 3 3 4.

    NAME is a construction or a form of U (a wrong one lists them), or an erratum: E1, E2, E3, E6, E7,
    E11, E15, E16. Exit code 1 if the claim is refuted, or not proven within the limits.
    """
    from locum.paper.errata import ERRATA
    from locum.verification import Proof, prove

    if certificate is not None:
        check_target(certificate)
    claim: str | Claim = name
    if name in ERRATA:
        if shape or recipe:
            raise InputError(f"the erratum {name} has a shape of its own: try locum prove {name}")
        refutable = ERRATA[name].refutable
        if refutable is None:
            numbers = ", ".join(number for number, e in ERRATA.items() if e.refutable)
            raise InputError(
                f"the erratum {name} is not about a result that numbers refute; those are {numbers}"
            )
        claim = refutable.claim()
    with counted("proving", quiet=as_json) as advance:
        verdict = prove(
            claim,
            *shape,
            recipe=recipe,
            seconds=seconds,
            terms=terms,
            progress=lambda done, total, cases: advance(done, total, f"{cases} cases"),
        )
    if certificate is not None and isinstance(verdict, Proof):
        write_file(certificate, json.dumps(verdict.certificate()).encode())
    if as_json:
        print_json(verdict.to_dict())
    else:
        click.echo(str(verdict))
        if certificate is not None and isinstance(verdict, Proof):
            click.echo(f"Certificate in {certificate}: locum check {certificate}")
    if not verdict.holds:
        raise click.exceptions.Exit(1)
