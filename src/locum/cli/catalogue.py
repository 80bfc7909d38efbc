"""List the paper's constructions: our functions, the paper's claim, heads, theorems, verdict.

Everything is counted and checked anew on an instance; exit code 1 if a claim does not hold. What is
proven for all inputs: locum claims; the theorems, for all shapes, are in proofs/. With --cookbook: the
constructions that surveys of transformers and formal languages list, as weights, each run on all words
up to a length beside a plain recogniser.
"""

from __future__ import annotations

import click

from locum.cli import output
from locum.cli.options import json_option
from locum.cli.progress import counted


@click.command("catalogue", help=__doc__)
@click.option("--cookbook", is_flag=True, help="The constructions of the surveys instead.")
@json_option
def command(cookbook: bool, as_json: bool) -> None:
    """Count and check every item."""
    if cookbook:
        _cookbook(as_json)
    else:
        _paper(as_json)


def _cookbook(as_json: bool) -> None:
    from locum.cookbook import COOKBOOK

    entries = []
    with counted("checking", quiet=as_json) as tell:
        for done, (name, construction) in enumerate(COOKBOOK.items()):
            tell(done, len(COOKBOOK), name)
            entries.append(construction.to_dict())
    if as_json:
        output.print_json({"entries": entries})
    else:
        from rich.table import Table

        table = Table(
            "construction", "size", "attention, precision", "source", "verdict", show_lines=True
        )
        for column in table.columns:
            column.overflow = "fold"
        for entry in entries:
            entry["checked"] = f"on {entry['words']:,} words of up to {entry['longest']}"
        rows = [
            (
                f"{entry['name']}: {entry['about']}",
                f"{entry['layers']} layers, heads {', '.join(map(str, entry['heads']))}",
                f"{entry['attention']}, {entry['precision']}",
                entry["source"],
                f"{'right' if entry['holds'] else 'wrong'} {entry['checked']}; {entry['status']}",
            )
            for entry in entries
        ]
        output.show(output.add_rows(table, rows))
    if not all(entry["holds"] for entry in entries):
        raise click.exceptions.Exit(1)


def _paper(as_json: bool) -> None:
    """Count and check every item of the paper."""
    from locum.paper.findings import Finding, examine_all

    def row(finding: Finding) -> tuple[str, ...]:
        item = finding.item
        heads = "\n".join(f"{recipe}: {counts}" for recipe, counts in finding.heads.items())
        errata = f" ({', '.join(item.errata)})" if item.errata else ""
        functions = ", ".join(item.functions)
        theorems = "\n".join(item.theorems)
        return item.paper, functions, item.claim, heads or "none", theorems, finding.verdict + errata

    with counted("checking", quiet=as_json) as tell:
        findings = examine_all(tell)
    if as_json:
        output.print_json({"items": [finding.to_dict() for finding in findings]})
    else:
        from rich.table import Table

        titles = ("paper", "functions", "the paper's claim", "heads per layer", "all shapes", "verdict")
        table = Table(*titles, show_lines=True)
        for column in table.columns:
            column.overflow = "fold"
        output.show(output.add_rows(table, map(row, findings)))
        output.say("Errata with counterexamples: locum errata. Proofs for all inputs: locum claims.")
        output.say("All shapes: the theorem of that name in proofs/, which `make coq` checks.")
    if not all(finding.holds for finding in findings):
        raise click.exceptions.Exit(1)
