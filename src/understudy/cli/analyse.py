"""``understudy analyse``: layers and heads of a program."""

from __future__ import annotations

from pathlib import Path

import click

from understudy.analysis import architecture
from understudy.cli.programs import json_option, print_json, program_argument, read_program
from understudy.graph import abbreviate


@click.command("analyse")
@program_argument
@json_option
def command(program: Path, as_json: bool) -> None:
    """Layers and heads of the transformer that PROGRAM describes."""
    found = architecture(read_program(program))
    if as_json:
        print_json({"layers": found.layers, "heads": found.heads, "width": found.width})
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=str(found), title_justify="left")
    table.add_column("layer", justify="right")
    table.add_column("heads", justify="right")
    table.add_column("selector", overflow="fold")
    for number, layer in enumerate(found.structure, start=1):
        for place, head in enumerate(layer):
            shown = str(number) if place == 0 else ""
            table.add_row(shown, str(head.members), escape(abbreviate(head.selector)))
    Console().print(table)
