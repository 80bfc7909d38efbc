"""``locum analyse``: layers and heads of a program."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from locum.analysis import Architecture, architecture
from locum.cli.programs import Program, json_option, name_option, print_json, program_argument
from locum.errors import LocumError
from locum.graph import Node, abbreviate
from locum.graph.definitions import names_of_definitions
from locum.language.handles import Selector, SOp


@click.command("analyse")
@program_argument
@name_option
@json_option
def command(program: Path, name: str | None, as_json: bool) -> None:
    """Layers and heads of the transformer that PROGRAM describes.

    Of one name with --name, otherwise of every s-op and selector that the program names or shows.
    """
    loaded = Program(program)
    chosen = {name: loaded.program(name)[1]} if name is not None else _all(loaded)
    sizes = {one: architecture(value) for one, value in chosen.items()}
    if as_json:
        rows = [_figures(one, size) for one, size in sizes.items()]
        print_json({**rows[-1], "programs": rows})
        return
    names = loaded.names()
    for value in chosen.values():
        names.update(names_of_definitions(value.node))
    _print_table(sizes, names)


def _all(loaded: Program) -> dict[str, SOp | Selector]:
    named: dict[str, Any] = {}
    if loaded.session is not None:
        named.update({n: v for n, v in loaded.session.scope.names.items() if n != "out"})
    named.update(loaded.shown)
    programs = {n: v for n, v in named.items() if isinstance(v, (SOp, Selector))}
    if not programs:
        raise LocumError(f"{loaded.path} names no s-op and shows none: choose one with --name")
    return programs


def _figures(name: str, size: Architecture) -> dict[str, Any]:
    return {"name": name, "layers": size.layers, "heads": size.heads, "width": size.width}


def _print_table(sizes: dict[str, Architecture], names: dict[Node, str]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console()
    table = Table("program", "layers", "heads per layer", "width")
    for name, size in sizes.items():
        table.add_row(name, str(size.layers), escape(str(size.heads)), str(size.width))
    console.print(table)
    if len(sizes) > 1:
        return
    (size,) = sizes.values()
    heads = Table("layer", "heads", "selector")
    for number, layer in enumerate(size.structure, start=1):
        for place, head in enumerate(layer):
            shown = str(number) if place == 0 else ""
            heads.add_row(shown, str(head.members), escape(abbreviate(head.selector, names)))
    if size.layers:
        console.print(heads)
