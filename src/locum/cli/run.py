"""``locum run``: what a program shows, on an input."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from locum.cli.programs import (
    Program,
    input_option,
    json_option,
    print_json,
    program_argument,
    read_input,
)
from locum.errors import LocumError
from locum.graph import sequence_type
from locum.language import echo
from locum.language.handles import Selector, SOp


@click.command("run")
@program_argument
@input_option
@click.option("--show", multiple=True, metavar="NAME", help="Show this name (may be repeated).")
@click.option("--domain", default="float", show_default=True, help="Kind of number: float or exact.")
@click.option(
    "--executor", default="dense", show_default=True, help="What runs it: dense, fast, heads or auto."
)
@json_option
def command(
    program: Path,
    given: str | None,
    show: tuple[str, ...],
    domain: str,
    executor: str,
    as_json: bool,
) -> None:
    """Run PROGRAM (RASP text, or a graph as JSON) on an input and show what it computes.

    Shown is every expression that stands alone in the program, or the names given with --show.
    """
    loaded = Program(program, read_input(given))
    values = [loaded.value(name) for name in show] or loaded.shown or [loaded.value(None)]
    chosen: dict[str, Any] = {"domain": domain, "executor": executor}
    results = [_result(name, value, loaded, chosen) for name, value in values]
    if as_json:
        print_json({"input": loaded.tokens, "results": results})
        return
    for result in results:
        click.echo(_text(result, loaded.tokens))


def _result(name: str, value: Any, loaded: Program, chosen: dict[str, Any]) -> dict[str, Any]:
    """A value as a JSON object, run on the input if it is a program."""
    if isinstance(value, (SOp, Selector)):
        from locum.execution import run

        try:
            found = run(value.node, loaded.tokens, names=loaded.names(), **chosen)
        except LocumError as error:
            raise LocumError(f"{name} has no value here: {error}") from None
        if isinstance(value, Selector):
            return {"name": name, "kind": "selector", "matrix": found.astype(int).tolist()}
        batch = isinstance(found[0], list)
        kind = [sequence_type(one) for one in found] if batch else sequence_type(found)
        return {"name": name, "kind": "s-op", "type": kind, "values": found}
    assert loaded.session is not None
    result = loaded.session.examples.result(value, name)
    return {"name": name, **result.to_dict(), "printed": result.printed}


def _text(result: dict[str, Any], tokens: Any) -> str:
    """The same for people."""
    name, batch = result["name"], isinstance(tokens, list) and isinstance(tokens[0], list)
    match result["kind"]:
        case "selector" if "printed" not in result:
            patterns = (
                zip(tokens, result["matrix"], strict=True) if batch else [(tokens, result["matrix"])]
            )
            return "\n".join(f"{name} =\n{echo.grid(pattern, one)}" for one, pattern in patterns)
        case "s-op" if "printed" not in result:
            rows = result["values"] if batch else [result["values"]]
            return "\n".join(f"{name} = {echo.sequence(row)}" for row in rows)
    return str(result.pop("printed")).strip("\n")
