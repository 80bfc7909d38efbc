"""Reproduce the paper: check statements, and compare results."""

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
    from locum.paper import compare
    from locum.paper.findings import Finding
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
    if no check demonstrates one of the errata.
    """
    from locum.interface.display.report_page import report_markdown, report_page
    from locum.paper.paper_report import reproduce, reproduce_one

    if statement is not None and output:
        raise InputError("--output: expected no STATEMENT with it; the page shows all statements")
    with counted("reproducing") as advance:
        if statement is not None:
            row = reproduce_one(statement, advance)
            return Report(row.to_dict(), lambda: _statement_text(row), holds=row.holds)
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


# Items and errata -----------------------------------------------------------------------------------


@make_command("items", group=command)
@click.option("--cookbook", is_flag=True, help="List constructions from surveys instead.")
def items(cookbook: bool) -> Report:
    """List the paper's constructions, with claims and verdicts.

    The command counts heads and layers of each construction, and checks it on an instance. The exit
    code is 1 if a claim does not hold. `locum prove all` proves the claims for all inputs of some
    shapes. The folder proofs/ contains theorems for all shapes.

    --cookbook lists constructions from surveys on transformers and formal languages instead, and
    compares each construction with a Python function on words up to a given length.
    """
    if cookbook:
        return _cookbook()
    from locum.paper.findings import examine_all

    with counted("checking") as advance:
        findings = examine_all(advance)

    def row(finding: Finding) -> tuple[str, ...]:
        item = finding.item
        heads = "\n".join(f"{recipe}: {counts}" for recipe, counts in finding.heads.items())
        errata = f" ({', '.join(item.errata)})" if item.errata else ""
        functions = ", ".join(item.functions)
        theorems = "\n".join(item.theorems)
        return item.paper, functions, item.claim, heads or "none", theorems, finding.verdict + errata

    def text() -> Iterator[Part]:
        titles = ("paper", "functions", "the paper's claim", "heads per layer", "all shapes", "verdict")
        yield output.table(*titles, rows=map(row, findings), lines=True, fold=True)
        yield "Errata with counterexamples: locum paper errata. Proofs for all inputs: locum prove all."
        yield "All shapes: the theorem of that name in proofs/, which `make coq` checks."

    return Report(
        {"items": [finding.to_dict() for finding in findings]},
        text,
        holds=all(finding.holds for finding in findings),
    )


def _cookbook() -> Report:
    from locum.languages.cookbook import COOKBOOK

    entries: list[dict[str, Any]] = []
    with counted("checking") as advance:
        for done, (name, construction) in enumerate(COOKBOOK.items()):
            advance(done, len(COOKBOOK), name)
            entries.append(construction.to_dict())

    def row(entry: dict[str, Any]) -> tuple[str, ...]:
        words = f"on {entry['words']:,} words of up to {entry['longest']}"
        return (
            f"{entry['name']}: {entry['about']}",
            f"{entry['layers']} layers, heads {', '.join(map(str, entry['heads']))}",
            f"{entry['attention']}, {entry['precision']}",
            entry["source"],
            f"{'right' if entry['holds'] else 'wrong'} {words}; {entry['status']}",
        )

    def text() -> Iterator[Part]:
        titles = ("construction", "size", "attention, precision", "source", "verdict")
        yield output.table(*titles, rows=map(row, entries), lines=True, fold=True)

    return Report({"entries": entries}, text, holds=all(entry["holds"] for entry in entries))


@make_command("errata", group=command)
@click.argument("number", required=False)
def errata(number: str | None) -> Report:
    """List the paper's errata, with counterexamples.

    NUMBER is the number of an erratum, such as E7, to list only this erratum. For some errata, such as
    E7, `locum prove claim NUMBER` refutes the printed statement.
    """
    from locum.paper.errata import ERRATA, SEVERITIES

    if number is not None and number.upper() not in ERRATA:
        raise InputError(f"NUMBER: expected E1 to E{len(ERRATA)}, got {number!r}")
    listed = list(ERRATA.values()) if number is None else [ERRATA[number.upper()]]
    names = ("number", "severity", "where", "quotes", "wrong", "counterexample", "right")
    rows = [{name: getattr(erratum, name) for name in names} for erratum in listed]

    def text() -> Iterator[str]:
        for erratum in listed:
            yield f"{erratum.number} ({erratum.severity}): {erratum.where}"
            yield from (_paragraph("Quote", quote) for quote in erratum.quotes)
            yield _paragraph("Problem", erratum.wrong)
            yield _paragraph("Counterexample", erratum.counterexample)
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


# Rivals ---------------------------------------------------------------------------------------------


@make_command("rivals", group=command)
@output_option(".html", text="File for an HTML page of the table.")
def rivals(output: Path | None) -> Report:
    """Compare the paper's constructions with looped transformers.

    The command runs Locum's recipes and reconstructions of the looped transformers of Giannou et al. It
    lists layers, heads, sizes, and errors against NumPy. Notes below the table describe networks with
    the smallest errors or the fewest layers; symbolic feed-forwards are instructions, not weights. For
    systems that are not run, published claims are cited.
    """
    from locum.interface.display.report_page import compare_page
    from locum.paper.compare import compare, winners

    with counted("measuring") as advance:
        rows = compare(advance)
    data = {"rows": [row.to_dict() for row in rows], "winners": winners(rows)}
    files = {} if output is None else {output: compare_page(rows)}
    return Report(data, lambda: [_rivals_table(rows), *winners(rows)], files=files)


def _rivals_table(rows: list[compare.Row]) -> Part:
    titles = (
        "operation",
        "system",
        "claimed",
        "layers × passes",
        "heads",
        "d_model",
        "tokens",
        "errors",
    )
    return output.table(*titles, rows=map(_rival_cells, rows), lines=True)


def _rival_cells(row: compare.Row) -> tuple[str, ...]:
    from locum.paper.compare import shown

    operation = f"{row.operation} {row.order}".strip()
    if row.status == "cited":
        return operation, row.system, row.claimed, "cited", "", "", "", row.note
    return (
        operation, row.system, row.claimed, f"{row.layers} × {row.passes}", str(row.heads),
        str(row.d_model), str(row.tokens), " ".join(map(shown, row.errors)),
    )  # fmt: skip
