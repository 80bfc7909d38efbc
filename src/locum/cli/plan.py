"""Show the steps on whole arrays by which the fast executor runs a program on numbers.

PROGRAM is a file of RASP text, a graph as JSON, or the name of a listing or an example. What is
not lowered to views and products is run by sorting and sums over ranges (structured).
"""

from __future__ import annotations

from pathlib import Path

import click

from locum.cli import output
from locum.cli.options import json_option, name_option, program_argument
from locum.cli.programs import Program
from locum.graph import abbreviate


@click.command("plan", help=__doc__)
@program_argument
@name_option
@click.option(
    "--length", type=click.IntRange(1), help="Plan for so many tokens.  [default: the example's]"
)
@json_option
def command(program: Path, name: str | None, length: int | None, as_json: bool) -> None:
    """Plan one s-op and print its steps."""
    from locum.execution import fast

    loaded = Program(program)
    name, value = loaded.sop(name)
    length = len(loaded.tokens) if length is None else length
    plan = fast.plan(value.node, length, names=loaded.names())
    if as_json:
        structured = {abbreviate(node, loaded.names()): why for node, why in plan.opaque.items()}
        steps, counts = plan.explain().splitlines(), dict(sorted(plan.counts.items()))
        output.print_json(
            {"name": name, "length": length, "steps": steps, "counts": counts, "structured": structured}
        )
        return
    output.say(f"{name} on {length} tokens:")
    output.say(plan.explain())
