"""Count layers and heads of the transformer that a program describes.

PROGRAM is a file of RASP text, a graph as JSON, or the name of a listing or an example. Counted
is what --name names, otherwise every s-op and selector that the program names or shows.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from locum.analysis import Architecture, architecture
from locum.cli import output
from locum.cli.options import json_option, name_option, program_argument
from locum.cli.programs import Program
from locum.errors import InputError
from locum.graph import Node, abbreviate
from locum.graph.definitions import names_of_definitions
from locum.language.handles import Selector, SOp


@click.command("analyse", help=__doc__)
@program_argument
@name_option
@json_option
def command(program: Path, name: str | None, as_json: bool) -> None:
    """Count the heads of one name, or of all."""
    loaded = Program(program)
    chosen = {name: loaded.program(name)[1]} if name is not None else _all(loaded)
    sizes = {one: architecture(value) for one, value in chosen.items()}
    if as_json:
        rows = [_figures(one, size) for one, size in sizes.items()]
        output.print_json({**rows[-1], "programs": rows})
        return
    names = loaded.names()
    for value in chosen.values():
        names.update(names_of_definitions(value.node))
    _print_tables(sizes, names)


def _all(loaded: Program) -> dict[str, SOp | Selector]:
    """Return every s-op and selector that the program names or shows."""
    named: dict[str, Any] = {}
    if loaded.session is not None:
        named.update({n: v for n, v in loaded.session.scope.names.items() if n != "out"})
    named.update(loaded.shown)
    programs = {n: v for n, v in named.items() if isinstance(v, (SOp, Selector))}
    if not programs:
        raise InputError(f"{loaded.path} neither names nor shows an s-op; try --name")
    return programs


def _figures(name: str, size: Architecture) -> dict[str, Any]:
    return {"name": name, "layers": size.layers, "heads": size.heads, "width": size.width}


def _print_tables(sizes: dict[str, Architecture], names: dict[Node, str]) -> None:
    """Print a row for each program; of a single one, also its heads."""
    from rich.table import Table

    rows = [(name, str(s.layers), str(s.heads), str(s.width)) for name, s in sizes.items()]
    output.show(output.add_rows(Table("program", "layers", "heads per layer", "width"), rows))
    if len(sizes) > 1:
        return
    (size,) = sizes.values()
    heads = [
        (str(number) if place == 0 else "", str(head.members), abbreviate(head.selector, names))
        for number, layer in enumerate(size.structure)
        for place, head in enumerate(layer)
    ]
    if heads:
        output.show(output.add_rows(Table("layer", "heads", "selector"), heads))
