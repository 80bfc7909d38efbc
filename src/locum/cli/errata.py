"""List the paper's errata: what is wrong, the smallest counterexample, what is right.

The wrong results (A) are refuted by `locum prove NUMBER`.
"""

from __future__ import annotations

import click

from locum.cli import output
from locum.cli.options import json_option


@click.command("errata", help=__doc__)
@json_option
def command(as_json: bool) -> None:
    """Print the table."""
    from locum.paper.errata import ERRATA, SEVERITIES

    names = ("number", "severity", "where", "wrong", "counterexample", "right")
    rows = [{name: str(getattr(erratum, name)) for name in names} for erratum in ERRATA.values()]
    if as_json:
        output.print_json({"errata": rows})
        return
    from rich.table import Table

    table = Table("", "", "where", "what is wrong", "counterexample", "right", show_lines=True)
    output.show(output.add_rows(table, [row.values() for row in rows]))
    output.say("; ".join(f"{letter}: {meaning}" for letter, meaning in SEVERITIES.items()))
