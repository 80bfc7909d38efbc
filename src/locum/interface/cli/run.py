"""Run a program or a compiled transformer on an input, or show a program's heads or flow.

PROGRAM is a file, the name of a listing or an example, or a folder. A file contains RASP text (.rasp),
C-RASP (.crasp), B-RASP (.brasp), LTL (.ltl), first-order logic (.fo) or a graph as JSON (.json). The
command shows the names given with --name. Without --name, it shows every expression statement of RASP
text, or the last definition if there is none, and every definition in another language. Programs of
C-RASP and B-RASP and formulas accept or reject a word.

A folder contains a network written by `locum compile -o FOLDER`. The command prints the output of the
network, or T(X) if the network is a compiled U. The folder is validated before use, and no code in it
is executed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from locum.errors import InputError, LocumError
from locum.graph import abbreviate, sequence_type
from locum.interface.cli import output
from locum.interface.cli.options import (
    DOMAINS,
    EXECUTORS,
    PATH,
    alphabet_option,
    choice,
    input_option,
    output_option,
)
from locum.interface.cli.programs import DialectProgram, Program, load_program
from locum.interface.cli.runner import Part, Report
from locum.interface.cli.runner import command as make_command
from locum.rasp import echo
from locum.rasp.handles import Selector, SOp
from locum.text import shortened

#: Maximum number of rows of a selector that is printed completely. Of a larger selector, the first rows
#: are printed.
_LARGEST_GRID, _FIRST = 200, 20
#: Maximum number of printed characters of the input.
_LONGEST_INPUT = 200


@make_command("run", __doc__)
@click.argument("program", type=PATH)
@input_option
@click.option("--name", "names", multiple=True, help="Name whose value is shown; may be repeated.")
@click.option("--count", is_flag=True, help="Count layers and heads, and do not run the program.")
@click.option("--draw", is_flag=True, help="Draw layers, heads and values (SVG).")
@output_option(text="File for --draw; - is standard output.  [default: flow.svg]")
@alphabet_option
@choice("--domain", DOMAINS, "Kind of numbers for arithmetic.  [default: float]")
@choice("--executor", EXECUTORS, "Executor that runs the program.  [default: dense]")
def command(program: Path, names: tuple[str, ...], **options: Any) -> Report:
    """Run the program or the network; count or draw the heads of a program, as the options specify."""
    if (program / "config.json").is_file():
        return run_network(program, {"name": names, **options})
    if options["count"] and options["draw"]:
        raise InputError("expected one of --count, --draw, got both")
    if options["output"] is not None and not options["draw"]:
        raise InputError("--output: expected --draw with it")
    if options["draw"] and len(names) > 1:
        raise InputError(f"--draw: expected one --name, got {len(names)}")
    loaded = load_program(
        program, options["input_text"], options["alphabet"], needs_word=not options["count"]
    )
    if options["count"]:
        return count(loaded, names)
    if options["draw"]:
        return draw(loaded, names[0] if names else None, options["output"] or Path("flow.svg"))
    return run(loaded, names, options["executor"] or "dense", options["domain"] or "float")


# Values ---------------------------------------------------------------------------------------------


def run(loaded: Program, names: tuple[str, ...], executor: str, domain: str) -> Report:
    """Run the program on its input, and return a report of its values or of the values in ``names``."""
    values = [loaded.value(name) for name in names] or loaded.shown or [loaded.value(None)]
    results = [_result(name, value, loaded, executor, domain) for name, value in values]
    data = {"input": loaded.tokens, "results": results}
    verdict = ""
    if isinstance(loaded, DialectProgram):
        answer = loaded.run(loaded.recogniser.sop, executor, domain)
        accepted = loaded.accepted(answer)
        data |= {
            "dialect": loaded.recogniser.dialect, "verdict": "accepted" if accepted else "rejected",
            "accept": loaded.accept,
        }  # fmt: skip
        place = {"first": "first symbol", "last": "last symbol", "end": "end marker"}[loaded.accept]
        verdict = f"{'Accepted' if accepted else 'Rejected'}, read at the {place}."

    def text() -> Iterator[Part]:
        yield f"input = {_input(loaded.tokens)}"
        for result in results:
            yield _text(result, loaded.tokens)
        if verdict:
            yield verdict

    return Report(data, text)


def _programs(loaded: Program) -> dict[str, SOp | Selector]:
    """Return a mapping from names to the s-ops and selectors that the program assigns or shows."""
    programs = {n: v for n, v in loaded.named().items() if isinstance(v, (SOp, Selector))}
    if not programs:
        raise InputError(f"{loaded.path} neither names nor shows an s-op; try --name")
    return programs


def _result(name: str, value: Any, loaded: Program, executor: str, domain: str) -> dict[str, Any]:
    """Return a value as a JSON-compatible dictionary; s-ops and selectors are run on the input."""
    if isinstance(value, (SOp, Selector)):
        try:
            values = loaded.run(value, executor, domain)
        except LocumError as error:
            raise LocumError(f"{name} is undefined for this input: {error}") from None
        if isinstance(value, Selector):
            matrix = [one.astype(int).tolist() for one in values]
            return {"name": name, "kind": "selector", "matrix": matrix}
        batch = isinstance(values[0], list)
        kind = [sequence_type(one) for one in values] if batch else sequence_type(values)
        return {"name": name, "kind": "s-op", "type": kind, "values": values}
    assert loaded.session is not None
    result = loaded.session.examples.result(value, name)
    return {"name": name, **result.to_dict(), "printed": result.printed}


def _text(result: dict[str, Any], tokens: Any) -> str:
    """Format one result: the values of an s-op, the pattern of a selector, or another value."""
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
    """Format the input, or the number of sequences of a batch."""
    if isinstance(tokens, list) and isinstance(tokens[0], list):
        return f"{len(tokens)} sequences"
    if isinstance(tokens, list) and all(isinstance(one, str) and len(one) == 1 for one in tokens):
        tokens = "".join(tokens)
    return shortened(echo.quoted(tokens), _LONGEST_INPUT)


def _grid(pattern: Sequence[Sequence[int]], tokens: Any) -> str:
    most = None if len(pattern) <= _LARGEST_GRID else _FIRST
    return echo.grid(pattern, tokens, most)


# Layers and heads, drawings -------------------------------------------------------------------------


def count(loaded: Program, names: tuple[str, ...]) -> Report:
    """Count the layers and heads of the programs in ``names``, by default of all programs."""
    from locum.graph.architecture import architecture
    from locum.graph.definitions import names_of_definitions

    chosen = dict(map(loaded.program, names)) if names else _programs(loaded)
    sizes = {name: architecture(value) for name, value in chosen.items()}
    rows = [
        {"name": name, "layers": size.layers, "heads": size.heads, "width": size.width}
        for name, size in sizes.items()
    ]

    def text() -> Iterator[Part]:
        titles = ("program", "layers", "heads per layer", "width")
        yield output.table(*titles, rows=[list(map(str, row.values())) for row in rows])
        if len(sizes) > 1:
            return
        names = loaded.names() | names_of_definitions(next(iter(chosen.values())).node)
        heads = [
            (str(number) if place == 0 else "", str(head.members), abbreviate(head.selector, names))
            for number, layer in enumerate(next(iter(sizes.values())).structure)
            for place, head in enumerate(layer)
        ]
        if heads:
            yield output.table("layer", "heads", "selector", rows=heads)

    return Report({**rows[-1], "programs": rows}, text)


def draw(loaded: Program, name: str | None, target: Path) -> Report:
    """Draw the layers and heads of one s-op to the file ``target``, or to standard output."""
    from locum.rasp.drawing.flow import flow_svg

    name, value = loaded.sop(name)
    picture = flow_svg(value.node, loaded.tokens, name, loaded.names())
    size = value.architecture
    data = {"name": name, "input": loaded.tokens, "heads": size.heads}
    if str(target) == "-":
        return Report(data | {"svg": picture}, lambda: [picture.removesuffix("\n")])
    return Report(data, lambda: [f"{name}: {size}"], files={target: picture})


# Compiled transformers ------------------------------------------------------------------------------


def run_network(folder: Path, options: Mapping[str, Any]) -> Report:
    """Run a compiled transformer on the input, and return a report of its output, or of T(X)."""
    from locum.interface.cli.tokens import read_tokens
    from locum.interface.display.network.network_data import answer_positions
    from locum.networks.transformer import load

    of_programs = ("name", "count", "draw", "output", "alphabet", "domain", "executor")
    wrong = [f"--{name}" for name in of_programs if options[name]]
    if wrong:
        raise InputError(f"{', '.join(wrong)}: expected a program, got the network in {folder}")
    if options["input_text"] is None:
        raise InputError(f"{folder}: expected an input, got none; try --input TOKENS")
    model = load(folder)
    tokens = read_tokens(options["input_text"], model)
    values = model(tokens)
    name = model.config.name if model.config.name.isidentifier() else "out"
    result = {"name": name, "type": sequence_type(values), "values": values}
    positions = answer_positions(model, len(values))
    if positions is not None:
        result["answer"] = [[values[position] for position in row] for row in positions]

    def text() -> Iterator[str]:
        yield f"input = {_input(tokens)}"
        if positions is None:
            yield f"{name} = {echo.sequence(values)}"
            return
        yield "T(X) ="
        for row in result["answer"]:
            yield "  ".join(f"{value:10.6g}" for value in row)

    return Report({"input": tokens, "weights": model.hash, "results": [result]}, text)
