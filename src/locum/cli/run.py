"""Run a program on an input and show what it computes.

PROGRAM is a file of RASP text, a graph as JSON, or the name of a listing or an example. Shown
is every expression that stands alone in the program, or the names given with --show.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from locum.cli import output
from locum.cli.options import input_option, json_option, program_argument, read_input
from locum.cli.programs import Program
from locum.errors import LocumError
from locum.graph import sequence_type
from locum.language import echo
from locum.language.handles import Selector, SOp
from locum.shortening import shortened

#: Rows of the largest selector that is printed as a whole, and rows that are printed of a larger one.
_LARGEST_GRID, _FIRST = 200, 20
#: Characters of the input that are printed.
_LONGEST_INPUT = 200


@click.command("run", help=__doc__)
@program_argument
@input_option
@click.option("--show", multiple=True, metavar="NAME", help="Show this name (may be repeated).")
@click.option("--domain", default="float", show_default=True, help="Kind of number: float or exact.")
@click.option("--executor", default="dense", show_default=True, help="dense, fast, heads or auto.")
@json_option
def command(
    program: Path,
    input_text: str | None,
    show: tuple[str, ...],
    domain: str,
    executor: str,
    as_json: bool,
) -> None:
    """Run what the program shows, or the names asked for."""
    loaded = Program(program, read_input(input_text))
    values = [loaded.value(name) for name in show] or loaded.shown or [loaded.value(None)]
    results = [_result(name, value, loaded, executor, domain) for name, value in values]
    if as_json:
        output.print_json({"input": loaded.tokens, "results": results})
        return
    output.say(f"input = {_input(loaded.tokens)}")
    for result in results:
        output.say(_text(result, loaded.tokens))


def _result(name: str, value: Any, loaded: Program, executor: str, domain: str) -> dict[str, Any]:
    """Describe a value as a JSON object; a program is run on the input."""
    if isinstance(value, (SOp, Selector)):
        try:
            values = loaded.run(value, executor, domain)
        except LocumError as error:
            raise LocumError(f"{name} has no value here: {error}") from None
        if isinstance(value, Selector):
            return {"name": name, "kind": "selector", "matrix": values.astype(int).tolist()}
        batch = isinstance(values[0], list)
        kind = [sequence_type(one) for one in values] if batch else sequence_type(values)
        return {"name": name, "kind": "s-op", "type": kind, "values": values}
    assert loaded.session is not None
    result = loaded.session.examples.result(value, name)
    return {"name": name, **result.to_dict(), "printed": result.printed}


def _text(result: dict[str, Any], tokens: Any) -> str:
    """Write a result for people."""
    name, batch = result["name"], isinstance(tokens, list) and isinstance(tokens[0], list)
    match result["kind"]:
        case "selector" if "printed" not in result:
            patterns = (
                zip(tokens, result["matrix"], strict=True) if batch else [(tokens, result["matrix"])]
            )
            return "\n".join(f"{name} =\n{_grid(pattern, one)}" for one, pattern in patterns)
        case "s-op" if "printed" not in result:
            rows = result["values"] if batch else [result["values"]]
            return "\n".join(f"{name} = {echo.sequence(row)}" for row in rows)
    return str(result["printed"]).strip("\n")


def _input(tokens: Any) -> str:
    """Write the input; of several sequences, how many there are."""
    if isinstance(tokens, list) and isinstance(tokens[0], list):
        return f"{len(tokens)} sequences"
    return shortened(echo.quoted(tokens), _LONGEST_INPUT)


def _grid(pattern: Sequence[Sequence[int]], tokens: Any) -> str:
    most = None if len(pattern) <= _LARGEST_GRID else _FIRST
    return echo.grid(pattern, tokens, most)
