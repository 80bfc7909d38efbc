"""List the closed table of operations: the whole language on one page."""

from __future__ import annotations

import click

from locum.cli import output
from locum.cli.options import json_option
from locum.graph import OPERATIONS


@click.command("operations", help=__doc__)
@json_option
def command(as_json: bool) -> None:
    """Print the table."""
    if as_json:
        rows = [
            {
                "name": row.name,
                "group": row.group,
                "takes": [sort.value for sort in row.takes],
                "gives": row.gives.value,
                "attributes": sorted(row.attributes),
                "meaning": row.meaning,
            }
            for row in OPERATIONS.values()
        ]
        output.print_json({"operations": rows})
        return
    from rich.table import Table

    table = Table("operation", "takes → gives", "meaning")
    group = ""
    for row in OPERATIONS.values():
        if group and row.group != group:
            table.add_section()
        group = row.group
        name = row.name + (f" ({', '.join(row.attributes)})" if row.attributes else "")
        takes = ", ".join(sort.value for sort in row.takes)
        output.add_rows(table, [(name, f"{takes} → {row.gives.value}", row.meaning)])
    output.show(table)
