"""``locum claims``: every claim of the paper, proven, refuted, measured or counted."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from locum.cli.programs import json_option, print_json
from locum.cli.progress import counted
from locum.files import check_target, write_file

if TYPE_CHECKING:
    from locum.paper.findings import Finding


@click.command("claims")
@click.option("--all", "everything", is_flag=True, help="At all shapes (some minutes), not just a few.")
@click.option("--html", type=click.Path(path_type=Path), help="Write a page with the formulas.")
@json_option
def command(everything: bool, html: Path | None, as_json: bool) -> None:
    """The claims of the paper and their status; everything is proven and refuted anew.

    Exit code 1 if a claim is not proven, or an erratum not refuted.
    """
    from locum.paper.findings import prove_all

    if html is not None:
        check_target(html)
    with counted("proving", quiet=as_json) as advance:
        findings = prove_all(everything, advance)
    if html is not None:
        from locum.display.claims import page

        write_file(html, page(findings).encode())
    holds = all(finding.holds for finding in findings)
    if as_json:
        print_json({"claims": [finding.claim_dict() for finding in findings]})
    else:
        _show(findings)
        count = sum(len(finding.proofs) for finding in findings)
        if holds:
            click.echo(f"{count} claims proven for all inputs.")
        if html is not None:
            click.echo(f"Written to {html}.")
    if not holds:
        raise click.exceptions.Exit(1)


def _show(findings: list[Finding]) -> None:
    """Print a table of what is proven and refuted."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table("paper", "status", "for all inputs", "seconds", show_lines=True)
    for finding in findings:
        proven = [proof.claim.title for proof in finding.proofs if proof.holds]
        unproven = [f"NOT PROVEN: {proof.claim.title}" for proof in finding.proofs if not proof.holds]
        refuted = [f"{number}: {verdict}" for number, verdict in finding.refutations.items()]
        known = "\n".join([", ".join(proven), *unproven, *refuted]).strip()
        spent = sum(v.seconds for v in [*finding.proofs, *finding.refutations.values()])
        status = ", ".join(finding.status)
        table.add_row(escape(finding.item.paper), status, escape(known), f"{spent:.1f}")
    Console().print(table)
