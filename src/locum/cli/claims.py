"""``locum claims``: every claim of the paper, proven, refuted, measured or counted."""

from __future__ import annotations

from pathlib import Path

import click

from locum.cli.programs import json_option, print_json
from locum.cli.progress import counted
from locum.files import check_target, write_file


@click.command("claims")
@click.option("--all", "everything", is_flag=True, help="At all shapes (some minutes), not just a few.")
@click.option("--html", type=click.Path(path_type=Path), help="Write a page with the formulas.")
@json_option
def command(everything: bool, html: Path | None, as_json: bool) -> None:
    """The claims of the paper and their status; everything is proven and refuted anew.

    Exit code 1 if a claim is not proven, or an erratum not refuted.
    """
    from locum.paper.findings import rows

    if html is not None:
        check_target(html)
    with counted("proving", quiet=as_json) as advance:
        found = rows(everything, advance)
    if html is not None:
        from locum.display.claims import page

        write_file(html, page(found).encode())
    if as_json:
        print_json({"claims": [row.to_dict() for row in found]})
    else:
        from rich.console import Console
        from rich.markup import escape
        from rich.table import Table

        table = Table("paper", "status", "for all inputs", "seconds", show_lines=True)
        for row in found:
            proven = [verdict.claim.title for verdict in row.proofs if verdict.holds]
            others = [f"NOT PROVEN: {v.claim.title}" for v in row.proofs if not v.holds]
            wrong = [f"{n}: {v}" for n, v in row.refutations.items()]
            text = "\n".join([", ".join(proven), *others, *wrong]).strip()
            spent = sum(v.seconds for v in [*row.proofs, *row.refutations.values()])
            table.add_row(
                escape(row.finding.item.paper), ", ".join(row.status), escape(text), f"{spent:.1f}"
            )
        Console().print(table)
        count = sum(len(row.proofs) for row in found)
        click.echo(f"{count} claims proven for all inputs." if all(r.holds for r in found) else "")
    if not all(row.holds for row in found):
        raise click.exceptions.Exit(1)
