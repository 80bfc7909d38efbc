"""Verify the certificate that `locum prove … --certificate FILE` wrote, without the prover.

FILE is a proof, or a refutation by numbers. The checker has its own evaluators and arithmetic. The
command prints what the file shows. Exit code 1 if the file is rejected.
"""

from __future__ import annotations

from pathlib import Path

import click

from locum.cli import output
from locum.cli.options import PATH, json_option
from locum.files import read_json

#: The most bytes of a certificate.
LIMIT = 2**23
#: As in the checker, which is imported where it is used.
STEPS = 25_000_000


@click.command("check", help=__doc__)
@click.argument("file", type=PATH)
@click.option(
    "--steps", type=click.IntRange(1), default=STEPS, show_default=True, help="Limit of work."
)
@json_option
def command(file: Path, steps: int, as_json: bool) -> None:
    """Check a certificate and say whether it is accepted, and what it shows."""
    from locum.verification import Checked, RejectedError, check

    content = read_json(file, LIMIT)
    try:
        verified = check(content, steps=steps)
    except RejectedError as problem:
        if as_json:
            output.print_json({"accepted": False, "problem": str(problem)})
        else:
            output.say(f"Rejected: {problem}")
        raise click.exceptions.Exit(1) from None
    shows = verified.shows
    proven = isinstance(shows, Checked)
    if as_json:
        output.print_json(
            {
                "accepted": True,
                "shows": "proof" if proven else "refutation",
                "claim": verified.title,
                "statement": shows.statement,
                "program": shows.program,
                "cases": verified.cases,
            }
        )
        return
    owner = verified.title or "the file"
    output.say(f"Accepted: {'' if proven else 'it is not true that '}{shows.statement}")
    output.say(f"(P is the program of {owner}, SHA-256 {shows.program})")
    if isinstance(shows, Checked):
        output.say(f"({shows.cases:,} case{'' if shows.cases == 1 else 's'} checked)")
    else:
        output.say(f"({shows.problem})")
