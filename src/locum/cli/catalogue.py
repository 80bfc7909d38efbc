"""``locum catalogue``: our function for each item of the paper, with its heads."""

from __future__ import annotations

import click

from locum.cli.programs import json_option, print_json


@click.command("catalogue")
@json_option
def command(as_json: bool) -> None:
    """List the paper's constructions: function, claim, heads counted, verdict, errata.

    Everything is counted and checked anew on an instance; exit code 1 if a claim does not hold.
    """
    from locum.paper.findings import examine_all

    findings = examine_all()
    if as_json:
        print_json({"items": [finding.to_dict() for finding in findings]})
    else:
        from rich.console import Console
        from rich.markup import escape
        from rich.table import Table

        table = Table(
            "paper", "functions", "the paper's claim", "heads per layer", "verdict", show_lines=True
        )
        for column in table.columns:
            column.overflow = "fold"
        for finding in findings:
            item = finding.item
            counts = (
                "\n".join(f"{recipe}: {heads}" for recipe, heads in finding.heads.items()) or "none"
            )
            errata = f" ({', '.join(item.errata)})" if item.errata else ""
            table.add_row(
                item.paper,
                ", ".join(item.functions),
                escape(item.claim),
                escape(counts),
                finding.verdict + errata,
            )
        Console().print(table)
        click.echo(
            "The errata, with counterexamples: locum errata. Proofs for all inputs: locum claims."
        )
    if not all(finding.holds for finding in findings):
        raise click.exceptions.Exit(1)
