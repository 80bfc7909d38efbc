"""Draw a program on an input: layers as columns, heads as grids, values flowing (SVG).

PROGRAM is a file of RASP text, a graph as JSON, or the name of a listing or an example.
"""

from __future__ import annotations

from pathlib import Path

import click

from locum.cli import output
from locum.cli.options import (
    PATH,
    input_option,
    json_option,
    name_option,
    program_argument,
    read_input,
)
from locum.cli.programs import Program
from locum.files import check_target, write_file


@click.command("draw", help=__doc__)
@program_argument
@name_option
@input_option
@click.option(
    "-o",
    "--output",
    "target",
    type=PATH,
    default="flow.svg",
    show_default=True,
    help="The file to write, or - for standard output.",
)
@json_option
def command(
    program: Path, name: str | None, input_text: str | None, target: Path, as_json: bool
) -> None:
    """Draw one s-op, to a file or to standard output."""
    from locum.language.drawing.flow import flow_svg

    to_file = str(target) != "-"
    if to_file:
        check_target(target, program)
    loaded = Program(program, read_input(input_text))
    name, value = loaded.sop(name)
    picture = flow_svg(value.node, loaded.tokens, name, loaded.names())
    size = value.architecture
    if to_file:
        write_file(target, picture)
    if as_json:
        drawn = {"name": name, "input": loaded.tokens, "output": str(target), "heads": size.heads}
        output.print_json(drawn if to_file else drawn | {"svg": picture})
    elif to_file:
        output.say(f"{name}: {size}; drawn in {target}")
    else:
        output.say(picture, end="")
