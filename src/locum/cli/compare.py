"""Compare the paper's constructions with looped transformers, operation by operation.

Our recipes and our reconstructions of the looped transformers of Giannou et al. are run: layers, heads,
sizes, errors against NumPy. The sentences below the table name attention and feed-forwards of each
network; exact feed-forwards are instructions, not weights. Systems that cannot be run are cited.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from locum.cli import output
from locum.cli.options import PATH, json_option
from locum.cli.progress import counted
from locum.files import check_target, write_file

if TYPE_CHECKING:
    from locum.paper.compare import Row


@click.command("compare", help=__doc__)
@click.option("--html", type=PATH, help="Write a page.")
@json_option
def command(html: Path | None, as_json: bool) -> None:
    """Run and list every system."""
    from locum.paper.compare import compare, winners

    check_target(html)
    with counted("measuring", quiet=as_json) as advance:
        rows = compare(advance)
    if html is not None:
        from locum.display.report import compare_page

        write_file(html, compare_page(rows))
    if as_json:
        output.print_json({"rows": [row.to_dict() for row in rows], "winners": winners(rows)})
        return
    _print_table(rows)
    for sentence in winners(rows):
        output.say(sentence)
    output.say_written("Written to", html)


def _print_table(rows: list[Row]) -> None:
    from rich.table import Table

    table = Table(
        "operation", "system", "claimed", "layers × passes", "heads", "d_model", "tokens", "errors",
        show_lines=True,
    )  # fmt: skip
    output.show(output.add_rows(table, map(_cells, rows)))


def _cells(row: Row) -> tuple[str, ...]:
    from locum.paper.compare import shown

    operation = f"{row.operation} {row.order}".strip()
    if row.status == "cited":
        return operation, row.system, row.claimed, "cited", "", "", "", row.note
    return (
        operation, row.system, row.claimed, f"{row.layers} × {row.passes}", str(row.heads),
        str(row.d_model), str(row.tokens), " ".join(map(shown, row.errors)),
    )  # fmt: skip
