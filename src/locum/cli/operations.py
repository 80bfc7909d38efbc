"""``locum operations``: the table of operations, for people and for scripts."""

from __future__ import annotations

import click

from locum.cli.programs import json_option, print_json
from locum.graph import OPERATIONS


@click.command("operations")
@json_option
def command(as_json: bool) -> None:
    """The closed table of operations: the whole language on one page."""
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
        print_json({"operations": rows})
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table("operation", "takes → gives", "meaning")
    group = ""
    for row in OPERATIONS.values():
        if group and row.group != group:
            table.add_section()
        group = row.group
        name = row.name + (f" ({', '.join(row.attributes)})" if row.attributes else "")
        takes = ", ".join(sort.value for sort in row.takes)
        table.add_row(name, f"{takes} → {row.gives.value}", escape(row.meaning))
    Console().print(table)
