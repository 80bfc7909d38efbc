"""``locum errata``: where the paper is wrong, and what is right."""

from __future__ import annotations

import click

from locum.cli.programs import json_option, print_json


@click.command("errata")
@json_option
def command(as_json: bool) -> None:
    """List the paper's errata: what is wrong, the smallest counterexample, what is right.

    The wrong results (A) are refuted by `locum prove NUMBER`.
    """
    from locum.paper.errata import ERRATA, SEVERITIES

    names = ("number", "severity", "where", "wrong", "counterexample", "right")
    if as_json:
        print_json({"errata": [{name: getattr(e, name) for name in names} for e in ERRATA.values()]})
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table("", "where", "what is wrong", "counterexample", "right", show_lines=True)
    for e in ERRATA.values():
        table.add_row(
            f"{e.number} {e.severity}", *map(escape, (e.where, e.wrong, e.counterexample, e.right))
        )
    Console().print(table)
    click.echo("; ".join(f"{letter}: {meaning}" for letter, meaning in SEVERITIES.items()))
