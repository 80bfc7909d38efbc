"""``locum catalogue``: the paper's items, what it claims, what we count."""

from __future__ import annotations

import click

from locum.cli.programs import json_option, print_json


@click.command("catalogue")
@json_option
def command(as_json: bool) -> None:
    """Each item of the paper: function, claim, heads counted, verdict, erratum.

    Everything is counted and checked anew; exit code 1 if a claim does not hold.
    """
    from locum.paper.checks_of_u import ITEMS as ABOUT_U
    from locum.paper.items import ITEMS, findings

    found = findings([*ITEMS, *ABOUT_U])
    if as_json:
        print_json({"items": [finding.to_dict() for finding in found]})
    else:
        from rich.console import Console
        from rich.markup import escape
        from rich.table import Table

        table = Table(
            "paper", "functions", "the paper's claim", "heads per layer", "verdict", show_lines=True
        )
        for column in table.columns:
            column.overflow = "fold"
        for finding in found:
            counts = "\n".join(f"{name}: {heads}" for name, heads in finding.counted.items()) or "none"
            erratum = f" ({finding.item.erratum})" if finding.item.erratum else ""
            table.add_row(
                finding.item.paper,
                finding.item.function,
                escape(finding.item.claim),
                escape(counts),
                finding.verdict + erratum,
            )
        Console().print(table)
        click.echo("Errata are in docs/errata.md; each has a test that shows the paper's form fail.")
    if not all(finding.holds for finding in found):
        raise click.exceptions.Exit(1)
