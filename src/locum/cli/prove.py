"""Prove a claim for all inputs of a shape, or find a counterexample: locum prove matmul 3 3 4.

NAME is a construction or a form of U (a wrong one lists them), or the number of an erratum that can be
refuted, such as E2. The checker of `locum check` verifies the result before it is printed. Exit code 1
if the claim is refuted, or not proven within the limits.
"""

from __future__ import annotations

import json
from pathlib import Path

import click

from locum.cli import output
from locum.cli.options import PATH, complete_claim, json_option
from locum.cli.progress import counted
from locum.errors import InputError
from locum.files import check_target, write_file
from locum.verification.claims.claim import Claim


@click.command("prove", help=__doc__)
@click.argument("name", shell_complete=complete_claim)
@click.argument("shape", nargs=-1, type=int)
@click.option("--recipe", help="Which form of the construction.  [default: its first]")
@click.option("--tolerance", type=float, help="Of inverse: below it a determinant counts as 0.")
@click.option("--seconds", default=600.0, show_default=True, help="Give up after so much work.")
@click.option("--terms", default=200_000, show_default=True, help="Give up beyond so many terms.")
@click.option("--megabytes", default=1_500, show_default=True, help="Give up beyond so much memory.")
@click.option("--certificate", type=PATH, help="Write what `locum check` verifies.")
@json_option
def command(
    name: str,
    shape: tuple[int, ...],
    recipe: str | None,
    tolerance: float | None,
    seconds: float,
    terms: int,
    megabytes: int,
    certificate: Path | None,
    as_json: bool,
) -> None:
    """Prove one claim and say what came of it."""
    from locum.verification import Unproven, prove

    check_target(certificate)
    with counted("proving", quiet=as_json) as advance:
        verdict = prove(
            _claim(name, shape, recipe, tolerance),
            *shape,
            recipe=recipe,
            tolerance=tolerance,
            seconds=seconds,
            terms=terms,
            megabytes=megabytes,
            progress=lambda done, total, cases: advance(done, total, f"{cases} cases"),
        )
    if certificate is not None and not isinstance(verdict, Unproven):
        write_file(certificate, json.dumps(verdict.certificate))
    if as_json:
        output.print_json(verdict.to_dict())
    else:
        output.say(str(verdict))
        if certificate is not None and not isinstance(verdict, Unproven):
            output.say(f"Certificate in {certificate}: {verdict.check_command(certificate)}")
    if not verdict.holds:
        raise click.exceptions.Exit(1)


def _claim(
    name: str, shape: tuple[int, ...], recipe: str | None, tolerance: float | None
) -> str | Claim:
    """Return the claim that an erratum is about, or else the name of a claim."""
    from locum.paper.errata import ERRATA

    if name not in ERRATA:
        return name
    if shape or recipe or tolerance is not None:
        raise InputError(f"expected no options beside the erratum {name}; try locum prove {name}")
    refutable = ERRATA[name].refutable
    if refutable is None:
        numbers = ", ".join(number for number, erratum in ERRATA.items() if erratum.refutable)
        raise InputError(
            f"expected an erratum that can be refuted ({numbers}), got {name}; try locum errata"
        )
    return refutable.claim()
