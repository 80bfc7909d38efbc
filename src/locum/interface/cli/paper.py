"""Reproduce the paper: check statements, and list errata."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from locum.errors import InputError
from locum.interface.cli import output
from locum.interface.cli.options import output_option
from locum.interface.cli.progress import counted
from locum.interface.cli.runner import Group, Part, Report
from locum.interface.cli.runner import command as make_command

if TYPE_CHECKING:
    from locum.paper.paper_report import Row

command = Group("paper", help=__doc__)
#: Width of a line of text in characters.
_WIDTH = 100


# Statements -----------------------------------------------------------------------------------------


def _complete_statement(context: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
    from locum.paper.statements import STATEMENTS

    return [key for key in STATEMENTS if key.startswith(begun)]


@make_command("report", group=command)
@click.argument("statement", required=False, shell_complete=_complete_statement)
@output_option(
    ".html", ".md", multiple=True, text="File for an HTML or Markdown page; may be repeated."
)
def report(statement: str | None, output: tuple[Path, ...]) -> Report:
    """Check every statement of the paper as printed.

    STATEMENT is a label of the paper, such as algo:softmax, to check only this statement. Checking all
    statements takes about a minute of CPU time. The exit code is 1 if a check of Locum's own programs
    fails, or if a printed statement fails and no erratum explains the failure. The exit code is also 1
    if an erratum lowers no verdict.
    """
    from locum.interface.display.report_page import report_markdown, report_page
    from locum.paper.paper_report import reproduce, reproduce_one

    if statement is not None and output:
        raise InputError("--output: expected no STATEMENT with it; the page shows all statements")
    if statement is not None:
        row = reproduce_one(statement)
        return Report(row.to_dict(), lambda: _statement_text(row), holds=row.holds)
    with counted("reproducing") as advance:
        made = reproduce(advance)
    write = {".html": report_page, ".md": report_markdown}
    files: dict[Path | None, Any] = {path: write[path.suffix](made) for path in output}
    return Report(made.to_dict(), lambda: _report_text(made), holds=made.holds, files=files)


def _statement_text(row: Row) -> Iterator[Part]:
    """Format the quotation, the evidence and the verdict of one statement."""
    from locum.interface.display.report_page import list_unchecked

    yield f"{row.title} ({row.kind}, line {row.line} of the source)"
    if row.quote:
        yield row.quote
    if row.evidence:
        rows = (
            ("✓" if e.holds else "✗", e.what, e.result, e.about, e.erratum * (not e.holds))
            for e in row.evidence
        )
        yield output.table("", "what was run", "result", "about", "erratum", rows=rows, lines=True)
    if row.unchecked:
        yield list_unchecked(row)
    yield f"Verdict: {row.verdict}."


def _report_text(made: Any) -> Iterator[Part]:
    from locum.interface.display.report_page import describe_results

    rows = (
        (row.title, row.key, row.verdict, ", ".join(row.errata), f"{row.seconds:.1f}")
        for row in made.rows
    )
    yield output.table("statement", "name", "verdict", "errata", "seconds", rows=rows)
    yield describe_results(made)


# Errata -------------------------------------------------------------------------------------------


@make_command("errata", group=command)
@click.argument("number", required=False)
def errata(number: str | None) -> Report:
    """List the paper's errata, with counterexamples.

    NUMBER is the number of an erratum, such as E7, to list only this erratum.
    """
    from locum.paper.errata import ERRATA, SEVERITIES

    if number is not None and number.upper() not in ERRATA:
        raise InputError(f"NUMBER: expected E1 to E{len(ERRATA)}, got {number!r}")
    listed = list(ERRATA.values()) if number is None else [ERRATA[number.upper()]]
    names = (
        "number", "severity", "where", "quotes", "wrong", "counterexample", "right", "text_only",
    )  # fmt: skip
    rows = [{name: getattr(erratum, name) for name in names} for erratum in listed]

    def text() -> Iterator[str]:
        for erratum in listed:
            yield f"{erratum.number} ({erratum.severity}): {erratum.where}"
            yield from (_paragraph("Quote", quote) for quote in erratum.quotes)
            yield _paragraph("Problem", erratum.wrong)
            label = "Counterexample (text only)" if erratum.text_only else "Counterexample"
            yield _paragraph(label, erratum.counterexample)
            yield _paragraph("Correction", erratum.right)
            yield ""
        yield "; ".join(f"{letter}: {meaning}" for letter, meaning in SEVERITIES.items())

    return Report({"errata": rows}, text)


def _paragraph(label: str, text: str) -> str:
    """Return a paragraph that begins with ``label``, indented and wrapped at spaces."""
    lines = textwrap.wrap(
        f"{label}: {text}", _WIDTH, initial_indent="  ", subsequent_indent="    ",
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
    return "\n".join(lines)
