"""``locum check``: a certificate, verified without the prover."""

from __future__ import annotations

import json
from pathlib import Path

import click

from locum.cli.programs import json_option, print_json
from locum.errors import InputError


@click.command("check")
@click.argument("file", type=click.Path(path_type=Path))
@json_option
def command(file: Path, as_json: bool) -> None:
    """Verify the certificate that `locum prove … --certificate FILE` wrote.

    The program is built anew and run in every case on the checker's own numbers. Exit code 1 if the
    certificate is rejected.
    """
    from locum.verification import RejectedError, check

    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise InputError(f"{file} is not a certificate: it is not JSON") from None
    try:
        checked = check(content)
    except RejectedError as problem:
        if as_json:
            print_json({"accepted": False, "problem": str(problem)})
        else:
            click.echo(f"Rejected: {problem}")
        raise click.exceptions.Exit(1) from None
    if as_json:
        print_json({"accepted": True, "statement": checked.statement, "cases": checked.cases})
    else:
        click.echo(f"Accepted, {checked.statement}\n({checked.cases:,} cases gone through)")
