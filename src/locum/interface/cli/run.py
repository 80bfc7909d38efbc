"""Run a program on an input, or show its heads, steps or flow.

PROGRAM is a file, or the name of a listing or an example. A file contains RASP text (.rasp), C-RASP
(.crasp), B-RASP (.brasp), LTL (.ltl), first-order logic (.fo) or a graph as JSON (.json). The command
shows the names given with --name. Without --name, it shows every expression statement of RASP text, or
the last definition if there is none, and every definition in another language. Programs of C-RASP and
B-RASP, formulas, and counter automata (.counter) accept or reject a word.

SUBLEQ and FLEQ programs (.subleq, .fleq) run on a looped transformer, and each step is compared with
a direct computation. --input '{"n": 5}' sets words or registers. The exit code is 1 if a step differs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from locum.errors import InputError, LocumError
from locum.files import read_text
from locum.graph import abbreviate, sequence_type
from locum.interface.cli import output
from locum.interface.cli.options import (
    DOMAINS,
    EXECUTORS,
    alphabet_option,
    choice,
    input_option,
    output_option,
    read_input,
)
from locum.interface.cli.programs import (
    COUNTER,
    DIALECTS,
    LIMIT,
    MACHINES,
    DialectProgram,
    Program,
    load_program,
    program_argument,
    read_word,
    split_alphabet,
)
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
_MODES = ("explain", "count", "plan", "draw")


@make_command("run", __doc__)
@program_argument
@input_option
@click.option("--name", "names", multiple=True, help="Name whose value is shown; may be repeated.")
@click.option("--explain", is_flag=True, help="Show each name: definition, layers and value.")
@click.option("--count", is_flag=True, help="Count layers and heads, and do not run the program.")
@click.option("--plan", is_flag=True, help="Show the steps of the fast executor.")
@click.option("--draw", is_flag=True, help="Draw layers, heads and values (SVG).")
@click.option(
    "--length", type=click.IntRange(1), help="Number of tokens for --plan.  [default: from the input]"
)
@output_option(text="File for --draw; - is standard output.  [default: flow.svg]")
@click.option(
    "--steps", type=click.IntRange(0), help="Maximum number of machine steps.  [default: 1000]"
)
@alphabet_option
@choice("--domain", DOMAINS, "Kind of numbers for arithmetic.", "float")
@choice("--executor", EXECUTORS, "Executor that runs the program.", "dense")
def command(program: Path, names: tuple[str, ...], **options: Any) -> Report:
    """Run the program, or count, plan, draw or explain it, as the options specify."""
    chosen = [mode for mode in _MODES if options[mode]] or ["run"]
    if len(chosen) > 1:
        raise InputError(f"expected one of {', '.join(f'--{mode}' for mode in chosen)}, got all")
    (mode,) = chosen
    for option, owner in (("length", "plan"), ("output", "draw")):
        if options[option] is not None and mode != owner:
            raise InputError(f"--{option}: expected --{owner} with it")
    if program.suffix in MACHINES:
        return run_machine(program, names, mode, options)
    if program.suffix == COUNTER:
        return run_counters(program, names, mode, options)
    if options["steps"] is not None:
        raise InputError(f"--steps: expected a {' or '.join(MACHINES)} program, got {program}")
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
    """Run the program on its input, and return a report of its values or of the values in ``names``."""
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


# Layers and heads, steps, pictures ------------------------------------------------------------------


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


def plan(loaded: Program, name: str | None, length: int | None) -> Report:
    """Return the steps of the fast executor for one s-op on inputs of ``length`` tokens."""
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
    """Draw the layers and heads of one s-op to the file ``target``, or to standard output."""
    from locum.rasp.drawing.flow import flow_svg

    name, value = loaded.sop(name)
    picture = flow_svg(value.node, loaded.tokens, name, loaded.names())
    size = value.architecture
    data = {"name": name, "input": loaded.tokens, "heads": size.heads}
    if str(target) == "-":
        return Report(data | {"svg": picture}, lambda: [picture.removesuffix("\n")])
    return Report(data, lambda: [f"{name}: {size}"], files={target: picture})


# Looped machines ------------------------------------------------------------------------------------


def run_counters(path: Path, names: tuple[str, ...], mode: str, options: Mapping[str, Any]) -> Report:
    """Run a counter automaton on a word, and report its verdict and its steps."""
    from locum.languages.named_languages import read

    _reject_options(path, mode, options, allowed=("run", "explain"), steps=" or ".join(MACHINES))
    if names:
        raise InputError(f"--name: expected a program with definitions, got {path}")
    automaton = read(path, alphabet=split_alphabet(options["alphabet"])).counter
    assert automaton is not None
    if options["input_text"] is None:
        raise InputError(f"{path}: expected a word, got none; try --input WORD")
    word = read_word(options["input_text"])
    accepted = automaton.accepts(word)
    trace = automaton.trace(word)
    data = {
        "name": path.stem, "input": word, "verdict": "accepted" if accepted else "rejected",
        "trace": trace,
    }  # fmt: skip

    def text() -> Iterator[Part]:
        for step in trace if mode == "explain" else trace[-1:]:
            counters = ", ".join(f"{name} = {value}" for name, value in step["counters"].items())
            yield f"{step['symbol'] or 'start'}: state {step['state']}, {counters}"
        yield f"{'Accepted' if accepted else 'Rejected'}."

    return Report(data, text)


def _reject_options(
    path: Path, mode: str, options: Mapping[str, Any], allowed: Sequence[str], **others: str
) -> None:
    """Raise an error for an option or a mode that the program in ``path`` does not support.

    ``allowed`` contains the supported modes. ``others`` maps further unsupported options to the
    programs that support them.
    """
    defaults = {"domain": "float", "executor": "dense"}
    unused = [(name, "RASP") for name, default in defaults.items() if options[name] != default]
    unused += [(name, programs) for name, programs in others.items() if options[name] is not None]
    unused += [(mode, "RASP")] if mode not in allowed else []
    for option, programs in unused[:1]:
        raise InputError(f"--{option}: expected a {programs} program, got {path}")


def run_machine(path: Path, names: tuple[str, ...], mode: str, options: Mapping[str, Any]) -> Report:
    """Run a SUBLEQ or FLEQ program on a looped transformer, or count its layers and heads."""
    from locum.networks.looped.machine_text import READERS, STEPS, MachineTextError

    words = f"{', '.join(DIALECTS)} or {COUNTER}"
    _reject_options(path, mode, options, allowed=("run", "explain", "count"), alphabet=words)
    text = read_text(path, LIMIT)
    try:
        program = READERS[path.suffix](text)
    except MachineTextError as error:
        raise InputError(f"{path}: {error}") from None
    values = read_input(options["input_text"])
    if values is not None and not isinstance(values, dict):
        example = json.dumps({program.shown[0] if program.shown else "a": 5})
        raise InputError(f"--input: expected a JSON object, got {str(values)[:40]}; try '{example}'")
    program = program.with_values(values or {})
    program = program.with_shown(names) if names else program
    size = program.architecture
    block = {"layers": size.layers, "heads": size.heads, "width": max(size.heads)}
    if mode == "count":
        return Report({"name": path.stem, **block}, lambda: [f"{path.stem}: {size}"])
    limit = STEPS if options["steps"] is None else options["steps"]
    try:
        done = program.run(limit)
    except MachineTextError as error:
        raise InputError(f"{path}: {error}") from None
    trace = [{"line": line, "values": values} for line, values in done.trace]
    data = {
        "name": path.stem, "values": done.values, "steps": done.steps, "halted": done.halted,
        "error": done.error, "agrees": done.agrees, **block,
    }  # fmt: skip
    if mode == "explain":
        data["trace"] = trace

    def text_of_run() -> Iterator[Part]:
        for step, (line, values) in enumerate(done.trace if mode == "explain" else (), start=1):
            shown = ", ".join(f"{name} = {_number(value)}" for name, value in values.items())
            yield f"step {step}, line {line}: {shown}"
        for name, value in done.values.items():
            yield f"{name} = {_number(value)}"
        plural = "" if done.steps == 1 else "s"
        ended = "Halted" if done.halted else "Stopped without halting"
        yield f"{ended} after {done.steps} step{plural} of {size.layers} layers."
        if not done.agrees:
            yield f"The looped transformer differs from plain arithmetic by up to {done.error:.3g}."
        elif done.error:
            yield f"Largest difference from plain arithmetic: {done.error:.1e}."
        if not done.halted:
            yield f"Try --steps {10 * max(1, limit)}."

    return Report(data, text_of_run, holds=done.agrees)


def _number(value: Any) -> str:
    """Format an integer, or a matrix with six significant digits."""
    if not isinstance(value, list):
        return str(value)
    return "; ".join(" ".join(f"{round(entry, 9):.6g}" for entry in row) for row in value)
