"""``locum plan``: how the fast executor would run a program."""

from __future__ import annotations

from pathlib import Path

import click

from locum.cli.programs import Program, json_option, name_option, print_json, program_argument
from locum.errors import LocumError
from locum.graph import abbreviate
from locum.language.handles import SOp


@click.command("plan")
@program_argument
@name_option
@click.option(
    "--length", type=click.IntRange(1), help="Plan for so many tokens. [default: the example's]"
)
@json_option
def command(program: Path, name: str | None, length: int | None, as_json: bool) -> None:
    """The steps on whole arrays by which PROGRAM is run fast, on numbers.

    What is not lowered to views and products is run by sorting and sums over stretches (structured).
    """
    from locum.execution import fast

    loaded = Program(program)
    shown, value = loaded.program(name)
    if not isinstance(value, SOp):
        raise LocumError(f"{shown} is a selector: a plan is made for an s-op")
    length = len(loaded.tokens) if length is None else length
    plan = fast.plan(value.node, length, names=loaded.names())
    opaque = {abbreviate(node, loaded.names()): reason for node, reason in plan.opaque.items()}
    if as_json:
        counts = dict(sorted(plan.counts.items()))
        found = {"name": shown, "length": length, "steps": plan.explain().splitlines()}
        print_json({**found, "counts": counts, "structured": opaque})
        return
    click.echo(f"{shown} on {length} tokens:")
    click.echo(plan.explain())
