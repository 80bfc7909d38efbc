"""Verify the certificate that `locum prove … --certificate FILE` wrote, without the prover.

The program is built anew and run in every case on the checker's own numbers. Exit code 1 if the
certificate is rejected.
"""

from __future__ import annotations

from pathlib import Path

import click

from locum.cli import output
from locum.cli.options import PATH, json_option
from locum.files import read_json

#: The most bytes of a certificate.
LIMIT = 2**28


@click.command("check", help=__doc__)
@click.argument("file", type=PATH)
@json_option
def command(file: Path, as_json: bool) -> None:
    """Check a certificate and say whether it is accepted."""
    from locum.verification import RejectedError, check

    content = read_json(file, LIMIT)
    try:
        checked = check(content)
    except RejectedError as problem:
        if as_json:
            output.print_json({"accepted": False, "problem": str(problem)})
        else:
            output.say(f"Rejected: {problem}")
        raise click.exceptions.Exit(1) from None
    if as_json:
        output.print_json({"accepted": True, "statement": checked.statement, "cases": checked.cases})
    else:
        output.say(f"Accepted, {checked.statement}\n({checked.cases:,} cases checked)")
