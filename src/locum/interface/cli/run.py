"""Run a program on an input, or show its heads, steps or flow.

PROGRAM is a file of RASP text (.rasp), C-RASP (.crasp), B-RASP (.brasp) or LTL (.ltl), a graph as JSON,
or the name of a listing or an example. Shown is every expression of the program, otherwise its last
definition, or the names given with --name. Programs of other dialects accept or reject a word.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from locum.errors import InputError, LocumError
from locum.graph import abbreviate, sequence_type
from locum.interface.cli import output
from locum.interface.cli.options import (
    DOMAINS,
    EXECUTORS,
    alphabet_option,
    choice,
    input_option,
    output_option,
)
from locum.interface.cli.programs import DialectProgram, Program, load_program, program_argument
from locum.interface.cli.runner import Part, Report
from locum.interface.cli.runner import command as make_command
from locum.rasp import echo
from locum.rasp.handles import Selector, SOp
from locum.text import shortened

#: Rows of the largest selector that is printed as a whole, and rows that are printed of a larger one.
_LARGEST_GRID, _FIRST = 200, 20
#: Characters of the input that are printed.
_LONGEST_INPUT = 200
_MODES = ("explain", "count", "plan", "draw")


@make_command("run", __doc__)
@program_argument
@input_option
@click.option("--name", "names", multiple=True, help="Name to show; may be repeated.")
@click.option("--explain", is_flag=True, help="Show every name: definition, layers and value.")
@click.option("--count", is_flag=True, help="Count layers and heads.")
@click.option("--plan", is_flag=True, help="Show the steps of the fast executor.")
@click.option("--draw", is_flag=True, help="Draw layers, heads and values (SVG).")
@click.option(
    "--length", type=click.IntRange(1), help="Number of tokens of --plan.  [default: the input's]"
)
@output_option(text="File of --draw, or - for standard output.  [default: flow.svg]")
@alphabet_option
@choice("--domain", DOMAINS, "Kind of number.", "float")
@choice("--executor", EXECUTORS, "Executor.", "dense")
def command(program: Path, names: tuple[str, ...], **options: Any) -> Report:
    """Run what the program shows, or do what a mode asks for."""
    chosen = [mode for mode in _MODES if options[mode]] or ["run"]
    if len(chosen) > 1:
        raise InputError(f"expected one of {', '.join(f'--{mode}' for mode in chosen)}, got all")
    (mode,) = chosen
    for option, owner in (("length", "plan"), ("output", "draw")):
        if options[option] is not None and mode != owner:
            raise InputError(f"--{option}: expected --{owner} with it")
    if mode in ("plan", "draw") and len(names) > 1:
        raise InputError(f"--{mode}: expected one --name, got {len(names)}")
    needs_word = mode != "count" and options["length"] is None
    loaded = load_program(program, options["input_text"], options["alphabet"], needs_word=needs_word)
    name = names[0] if names else None
    match mode:
        case "count":
            return count(loaded, names)
        case "plan":
            return plan(loaded, name, options["length"])
        case "draw":
            return draw(loaded, name, options["output"] or Path("flow.svg"))
    explain = mode == "explain"
    return run(loaded, names, options["executor"], options["domain"], explain=explain)


# Values ---------------------------------------------------------------------------------------------


def run(
    loaded: Program, names: tuple[str, ...], executor: str, domain: str, *, explain: bool
) -> Report:
    """Run the program on its input."""
    values = [loaded.value(name) for name in names]
    if explain:
        values = values or list(_programs(loaded).items())
    values = values or loaded.shown or [loaded.value(None)]
    results = [_result(name, value, loaded, executor, domain) for name, value in values]
    if explain:
        known = loaded.names()
        for result, (_, value) in zip(results, values, strict=True):
            if isinstance(value, (SOp, Selector)):
                others = {node: name for node, name in known.items() if node is not value.node}
                result["definition"] = abbreviate(value.node, others)
                result["layers"] = value.architecture.layers if isinstance(value, SOp) else None
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
            if "definition" in result:
                layers = result["layers"]
                depth = "" if layers is None else f" ({layers} layer{'' if layers == 1 else 's'})"
                yield f"{result['name']}: {result['definition']}{depth}"
            yield _text(result, loaded.tokens)
        if verdict:
            yield verdict

    return Report(data, text)


def _programs(loaded: Program) -> dict[str, SOp | Selector]:
    """Return every s-op and selector that the program names or shows."""
    programs = {n: v for n, v in loaded.named().items() if isinstance(v, (SOp, Selector))}
    if not programs:
        raise InputError(f"{loaded.path} neither names nor shows an s-op; try --name")
    return programs


def _result(name: str, value: Any, loaded: Program, executor: str, domain: str) -> dict[str, Any]:
    """Describe a value as a JSON object; a program is run on the input."""
    if isinstance(value, (SOp, Selector)):
        try:
            values = loaded.run(value, executor, domain)
        except LocumError as error:
            raise LocumError(f"{name} has no value here: {error}") from None
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
    if isinstance(tokens, list) and all(isinstance(one, str) and len(one) == 1 for one in tokens):
        tokens = "".join(tokens)
    return shortened(echo.quoted(tokens), _LONGEST_INPUT)


def _grid(pattern: Sequence[Sequence[int]], tokens: Any) -> str:
    most = None if len(pattern) <= _LARGEST_GRID else _FIRST
    return echo.grid(pattern, tokens, most)


# Layers and heads, steps, pictures ------------------------------------------------------------------


def count(loaded: Program, names: tuple[str, ...]) -> Report:
    """Count the heads of the names, or of all."""
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


def plan(loaded: Program, name: str | None, length: int | None) -> Report:
    """Plan one s-op for the fast executor."""
    from locum.execution import fast

    name, value = loaded.sop(name)
    length = len(loaded.tokens) if length is None else length
    planned = fast.plan(value.node, length, names=loaded.names())
    steps = planned.explain()
    data = {
        "name": name, "length": length, "steps": steps.splitlines(),
        "counts": dict(sorted(planned.counts.items())),
        "structured": {abbreviate(node, loaded.names()): why for node, why in planned.opaque.items()},
    }  # fmt: skip
    return Report(data, lambda: [f"{name} on {length} tokens:", steps])


def draw(loaded: Program, name: str | None, target: Path) -> Report:
    """Draw one s-op, to a file or to standard output."""
    from locum.rasp.drawing.flow import flow_svg

    name, value = loaded.sop(name)
    picture = flow_svg(value.node, loaded.tokens, name, loaded.names())
    size = value.architecture
    data = {"name": name, "input": loaded.tokens, "heads": size.heads}
    if str(target) == "-":
        return Report(data | {"svg": picture}, lambda: [picture.removesuffix("\n")])
    return Report(data, lambda: [f"{name}: {size}"], files={target: picture})
