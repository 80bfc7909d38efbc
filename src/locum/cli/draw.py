"""``locum draw``: a program on an input as a picture."""

from __future__ import annotations

from pathlib import Path

import click

from locum.cli.programs import (
    Program,
    input_option,
    json_option,
    name_option,
    print_json,
    program_argument,
    read_input,
)
from locum.errors import LocumError
from locum.files import check_target, write_file
from locum.language.handles import SOp


@click.command("draw")
@program_argument
@name_option
@input_option
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    default="flow.svg",
    show_default=True,
    help="The file to write, or - for standard output.",
)
@json_option
def command(program: Path, name: str | None, given: str | None, output: Path, as_json: bool) -> None:
    """Draw PROGRAM on an input: layers as columns, heads as grids, values flowing (SVG)."""
    from locum.display.flow import flow_svg

    if str(output) != "-":
        check_target(output, program)
    loaded = Program(program, read_input(given))
    name, value = loaded.program(name)
    if not isinstance(value, SOp):
        raise LocumError(f"{name} is a selector; an s-op can be drawn (aggregate over it, say)")
    picture = flow_svg(value.node, loaded.tokens, name, loaded.names())
    if str(output) == "-":
        click.echo(picture, nl=False)
        return
    write_file(output, picture)
    size = value.architecture
    if as_json:
        print_json({"name": name, "input": loaded.tokens, "output": str(output), "heads": size.heads})
    else:
        click.echo(f"{name}: {size}; drawn in {output}")
