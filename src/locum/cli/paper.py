"""Reproduce the paper: every statement as printed, what was run, and the verdict.

STATEMENT is a label of the paper, such as algo:softmax: only that statement is run. Without it, all are
run, which takes about half a minute. Exit code 1 if our side fails, or no erratum explains what fails.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from locum.cli import output
from locum.cli.options import PATH, json_option
from locum.cli.progress import counted
from locum.files import check_target, write_file

if TYPE_CHECKING:
    from locum.paper.report import Row


def _complete(context: click.Context, parameter: click.Parameter, start: str) -> list[CompletionItem]:
    from locum.paper.statements import STATEMENTS

    return [CompletionItem(key) for key in STATEMENTS if key.startswith(start)]


@click.command("paper", help=__doc__)
@click.argument("statement", required=False, shell_complete=_complete)
@click.option("--html", type=PATH, help="Write a page.")
@click.option("--markdown", type=PATH, help="Write the same as Markdown.")
@json_option
def command(statement: str | None, html: Path | None, markdown: Path | None, as_json: bool) -> None:
    """Run one statement, or all of them."""
    if statement is None:
        holds = _run_all(html, markdown, as_json)
    elif html is None and markdown is None:
        holds = _run_one(statement, as_json)
    else:
        raise click.UsageError("--html and --markdown write the whole report; try without STATEMENT.")
    if not holds:
        raise click.exceptions.Exit(1)


def _run_one(key: str, as_json: bool) -> bool:
    """Print the quote, what was run and the verdict of one statement."""
    from locum.paper.report import reproduce_one

    with counted("reproducing", quiet=as_json) as advance:
        row = reproduce_one(key, advance)
    if as_json:
        output.print_json(row.to_dict())
    else:
        _show(row)
    return row.holds


def _show(row: Row) -> None:
    from rich.table import Table

    from locum.display.report import list_unchecked

    output.say(f"{row.title} ({row.kind}, line {row.line} of the source)")
    if row.quote:
        output.say(row.quote)
    if row.evidence:
        table = Table("", "what was run", "result", "about", "erratum", show_lines=True)
        marks = {True: "✓", False: "✗"}
        rows = (
            (marks[each.holds], each.what, each.result, each.about, each.erratum * (not each.holds))
            for each in row.evidence
        )
        output.show(output.add_rows(table, rows))
    if row.unchecked:
        output.say(list_unchecked(row))
    output.say(f"Verdict: {row.verdict}.")


def _run_all(html: Path | None, markdown: Path | None, as_json: bool) -> bool:
    """Run every statement, write the pages, and print the verdicts."""
    from locum.display.report import describe_results, report_markdown, report_page
    from locum.paper.report import reproduce

    check_target(html)
    check_target(markdown)
    with counted("reproducing", quiet=as_json) as advance:
        report = reproduce(advance)
    if html is not None:
        write_file(html, report_page(report))
    if markdown is not None:
        write_file(markdown, report_markdown(report))
    if as_json:
        output.print_json(report.to_dict())
    else:
        from rich.table import Table

        table = Table("statement", "name", "verdict", "errata", "seconds")
        rows = (
            (row.title, row.key, row.verdict, ", ".join(row.errata), f"{row.seconds:.1f}")
            for row in report.rows
        )
        output.show(output.add_rows(table, rows))
        output.say(describe_results(report))
        output.say_written("Written to", html, markdown)
    return report.holds
