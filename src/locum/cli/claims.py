"""Prove and refute the paper's claims: what holds for all inputs, and what does not.

Each item of the paper is proven (for all inputs, at some shapes), refuted as printed (with the
corrected claim proven), measured (compared with direct computation on numbers) or counted (heads
and layers). Exit code 1 if a claim is not proven, or an erratum not refuted.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from locum.cli import output
from locum.cli.options import PATH, json_option
from locum.cli.progress import counted
from locum.files import check_target, write_file, write_folder

if TYPE_CHECKING:
    from locum.paper.findings import Finding


@click.command("claims", help=__doc__)
@click.option("--all", "everything", is_flag=True, help="At all shapes (some minutes), not just a few.")
@click.option("--html", type=PATH, help="Write a page, and the certificates in a folder beside it.")
@json_option
def command(everything: bool, html: Path | None, as_json: bool) -> None:
    """Prove every claim anew."""
    from locum.paper.findings import prove_all

    check_target(html)
    with counted("proving", quiet=as_json) as advance:
        findings = prove_all(everything, advance)
    if html is not None:
        from locum.display.claims import certificates, page

        folder = html.with_name(f"{html.stem}-certificates")
        write_file(html, page(findings, folder.name))
        write_folder(folder, certificates(findings))
    holds = all(finding.holds for finding in findings)
    if as_json:
        output.print_json({"claims": [finding.claim_dict() for finding in findings]})
    else:
        _print_table(findings)
        if holds:
            count = len({proof.statement for finding in findings for proof in finding.proofs})
            output.say(f"{count} claims proven for all inputs.")
        output.say_written("Written to", html)
    if not holds:
        raise click.exceptions.Exit(1)


def _print_table(findings: list[Finding]) -> None:
    """Print what is proven and refuted, item by item."""
    from rich.table import Table

    def row(finding: Finding) -> tuple[str, ...]:
        proven = [proof.claim.title for proof in finding.proofs if proof.holds]
        unproven = [f"NOT PROVEN: {proof.claim.title}" for proof in finding.proofs if not proof.holds]
        refuted = [f"{number}: {verdict}" for number, verdict in finding.refutations.items()]
        known = "\n".join([", ".join(proven), *unproven, *refuted]).strip()
        spent = sum(v.seconds for v in [*finding.proofs, *finding.refutations.values()])
        theorems = "\n".join(finding.item.theorems)
        return finding.item.paper, ", ".join(finding.status), known, theorems, f"{spent:.1f}"

    table = Table("paper", "status", "all inputs", "all shapes", "seconds", show_lines=True)
    output.show(output.add_rows(table, map(row, findings)))
