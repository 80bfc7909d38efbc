"""Reproduce the paper on one page: every label as printed, as regenerated, with a verdict.

Proves claims, runs figures and listings, measures rivals: about half a minute. Exit code 1 if
anything does not hold as stated.
"""

from __future__ import annotations

from pathlib import Path

import click

from locum.cli import output
from locum.cli.options import PATH, json_option
from locum.cli.progress import counted
from locum.files import check_target, write_file


@click.command("paper", help=__doc__)
@click.option("--html", type=PATH, help="Write a page.")
@click.option("--markdown", type=PATH, help="Write the same as Markdown.")
@json_option
def command(html: Path | None, markdown: Path | None, as_json: bool) -> None:
    """Regenerate everything."""
    from locum.paper.report import reproduce

    check_target(html)
    check_target(markdown)
    with counted("reproducing", quiet=as_json) as advance:
        report = reproduce(advance)
    if html is not None or markdown is not None:
        from locum.display.report import report_markdown, report_page

        if html is not None:
            write_file(html, report_page(report))
        if markdown is not None:
            write_file(markdown, report_markdown(report))
    if as_json:
        output.print_json(report.to_dict())
    else:
        from rich.table import Table

        rows = ((row.title, row.label, row.verdict, f"{row.seconds:.1f}") for row in report.rows)
        output.show(output.add_rows(Table("paper", "label", "verdict", "seconds"), rows))
        output.say(
            f"{len(report.rows)} labels, {report.proofs} claims proven for all inputs, "
            f"{report.refutations} printed statements refuted, in {report.seconds:.0f} s."
        )
        output.say_written("Written to", html, markdown)
    if not report.holds:
        raise click.exceptions.Exit(1)
