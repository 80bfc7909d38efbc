"""``understudy run``: a program's value on an input."""

from __future__ import annotations

from pathlib import Path

import click

from understudy.cli.programs import json_option, print_json, program_argument, read_input, read_program
from understudy.graph import Sort, sequence_type, sort_of
from understudy.language import echo


@click.command("run")
@program_argument
@click.option("--input", "given", default='"hello"', show_default=True, help="The input, as JSON.")
@click.option("--domain", default="float", show_default=True, help="Kind of number: float or exact.")
@json_option
def command(program: Path, given: str, domain: str, as_json: bool) -> None:
    """Run PROGRAM (a graph as JSON, see understudy.dumps) on an input."""
    from understudy.execution import run

    node = read_program(program)
    tokens = read_input(given)
    value = run(node, tokens, domain=domain)
    batch = isinstance(tokens, list) and isinstance(tokens[0], list)
    if sort_of(node) is Sort.SELECTOR:
        if as_json:
            print_json({"kind": "selector", "input": tokens, "matrix": value.astype(int).tolist()})
            return
        for one, pattern in zip(tokens, value, strict=True) if batch else [(tokens, value)]:
            click.echo(echo.grid(pattern, one))
        return
    if as_json:
        kind = [sequence_type(v) for v in value] if batch else sequence_type(value)
        print_json({"kind": "s-op", "input": tokens, "type": kind, "values": value})
        return
    for one in value if batch else [value]:
        click.echo(echo.sequence(one))
