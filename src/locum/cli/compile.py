"""Compile a program, or U, into the weights of a transformer.

PROGRAM is a file of RASP text, a graph as JSON, or the name of a listing or an example. The
folder that -o names gets config.json and model.safetensors; `locum apply` runs it. What a network
cannot hold is refused, with the reason and the s-op it lies in.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from locum.cli import output
from locum.cli.options import (
    PATH,
    complete_program,
    integers,
    json_option,
    name_option,
    settings_options,
)
from locum.cli.programs import Program
from locum.cli.tokens import read_tokens, read_vocabulary
from locum.compiler.compiling import compile_for
from locum.compiler.target import Target
from locum.errors import InputError, LocumError
from locum.files import check_target, write_file
from locum.settings import settings_of
from locum.simulators.weights import RECIPES

if TYPE_CHECKING:
    from locum.transformer import CompiledTransformer

#: Options that say which tokens a program takes; U knows that itself.
OF_PROGRAMS = ("name", "length", "vocabulary", "numeric", "fixed", "causal")
#: Tokens of the input that is drawn where none is given.
DRAWN = 8


@click.command("compile", help=__doc__)
@click.argument("program", type=PATH, required=False, shell_complete=complete_program)
@name_option
@settings_options(
    Target,
    vocabulary=click.option(
        "--vocab",
        "vocabulary",
        metavar="TOKENS",
        help="Tokens: abc, or one,two, or 1,2,3, or a file (.txt: one per line; .json: a list).",
    ),
    ranges=click.option(
        "--range", "ranges", type=(float, float), metavar="LOW HIGH", help="Range of numeric tokens."
    ),
)
@click.option(
    "--simulator",
    callback=integers(3),
    metavar="n,d,d_v",
    help="Compile U for this order instead of a program.",
)
@click.option("--recipe", type=click.Choice(RECIPES), help="How U is built, with --simulator.")
@click.option(
    "--input", "texts", multiple=True, metavar="TOKENS", help="An input to draw; may be repeated."
)
@click.option("-o", "--output", type=PATH, help="The folder to write; without it, only the report.")
@click.option("--html", type=PATH, help="Write a page: heads, residual stream, slots, weights.")
@json_option
def command(program: Path | None, **options: Any) -> None:
    """Compile, save, draw and report."""
    html = options["html"]
    check_target(html, program)
    compiled = _program if options["simulator"] is None else _simulator
    model, drawn, seconds = compiled(program, options)
    if options["texts"]:
        drawn = [read_tokens(text, model) for text in options["texts"]]
        for tokens in drawn:
            model(tokens)  # what it does not take is refused before anything is written
    page = _page(model, drawn) if html is not None else ""
    picture = "" if options["as_json"] else _picture(model, drawn)
    if options["output"] is not None:
        model.save(options["output"])
    if html is not None:
        write_file(html, page)
    if options["as_json"]:
        output.print_json(_as_json(model, options) | {"seconds": seconds})
        return
    output.say(_text(model, seconds))
    output.say()
    output.say(picture)
    output.say_written("Saved in", options["output"])
    output.say_written("Drawn in", html)


def _program(
    path: Path | None, options: dict[str, Any]
) -> tuple[CompiledTransformer, list[Any], float]:
    """Compile a program; return the network, inputs to show it on, and the seconds it took."""
    if path is None:
        raise InputError("expected a program or --simulator n,d,d_v, got neither")
    if options["recipe"] is not None:
        raise InputError("--recipe: expected --simulator n,d,d_v beside it, got a program")
    if options["length"] is None:
        raise InputError("expected --length, the number of tokens of the longest input, got none")
    if (options["vocabulary"] is None) == (not options["numeric"]):
        raise InputError("expected either --vocab TOKENS or --numeric, got neither or both")
    loaded = Program(path)
    name, value = loaded.sop(options["name"])
    text = options["vocabulary"]
    started = time.process_time()
    asked = {name: options[name] for name in settings_of(Target)}
    target = Target.read(**asked | {"vocabulary": None if text is None else read_vocabulary(text)})
    model = compile_for(target, value.node, name, names=loaded.names() | {value.node: name})
    seconds = time.process_time() - started
    return model, _example(model, loaded.tokens), seconds


def _simulator(
    path: Path | None, options: dict[str, Any]
) -> tuple[CompiledTransformer, list[Any], float]:
    """Compile U; return the network, a random ⟨T, X⟩ to show it on, and the seconds it took."""
    import numpy as np

    from locum.simulators import UniversalSimulator
    from locum.simulators.modules.sampling import random_module

    wrong = [f"--{name}" for name in OF_PROGRAMS if options[name]]
    if path is not None or wrong:
        raise InputError(
            f"--simulator compiles U, which knows its tokens: leave out {', '.join(wrong) or path}"
        )
    n, d, d_v = options["simulator"]
    recipe = options["recipe"]
    # Only the network is native: the tokens are those of any other recipe.
    U = UniversalSimulator(n, d, d_v, recipe="fetch" if recipe in (None, "native") else recipe)
    started = time.process_time()
    model = U.compile(recipe, **_network(options))
    seconds = time.process_time() - started
    generator = np.random.default_rng(0)
    T, X = random_module(U.order, generator), generator.normal(size=(n, d))
    return model, [_moved_inside(model, U.encode(T, X).tolist())], seconds


def _network(options: dict[str, Any]) -> dict[str, Any]:
    return {name: options[name] for name in settings_of(Target) if name not in OF_PROGRAMS}


def _example(model: CompiledTransformer, tokens: Any) -> list[Any]:
    """Return the program's example if the network takes it, else its vocabulary or small numbers."""
    shortest, longest = model.config.lengths
    length = longest if shortest == longest else min(longest, DRAWN)
    known = model.config.vocabulary or [float(number) for number in range(1, length + 1)]
    other = [known[place % len(known)] for place in range(length)]
    if model.config.vocabulary is None:
        other = _moved_inside(model, other)
    characters = all(isinstance(token, str) and len(token) == 1 for token in other)
    for candidate in (tokens, "".join(map(str, other)) if characters else other):
        try:
            model(candidate)
        except LocumError:
            continue
        return [candidate]
    return []


def _moved_inside(model: CompiledTransformer, numbers: list[Any]) -> list[Any]:
    """Move each number to the nearest that the network was made for."""
    ranges = model.config.ranges
    if ranges is None:
        return numbers
    ends = [ranges[place % len(ranges)] for place in range(len(numbers))]
    return [min(max(x, low), high) for x, (low, high) in zip(numbers, ends, strict=True)]


def _picture(model: CompiledTransformer, drawn: list[Any]) -> str:
    from locum.display.network.text import network_text

    return network_text(model, drawn[0] if drawn else None)


def _page(model: CompiledTransformer, drawn: list[Any]) -> str:
    from locum.display.network.page import network_page

    return network_page(model, drawn)


def _text(model: CompiledTransformer, seconds: float) -> str:
    from locum.display.network.report import facts

    taken = ("compiled in", f"{seconds * 1e3:.0f} ms of processor time")
    lines = [f"  {name:<13}{value}" for name, value in [*facts(model), taken]]
    return "\n".join([model.config.name, *lines])


def _as_json(model: CompiledTransformer, options: dict[str, Any]) -> dict[str, Any]:
    config = model.config
    return {
        "name": config.name,
        "architecture": model.architecture.as_json(),
        "vocabulary": config.vocabulary,
        "lengths": config.lengths,
        "sink": config.sink,
        "outputs": config.outputs,
        "slots": config.slots,
        "heads": config.heads,
        "dtype": config.dtype,
        "report": config.report,
        "program": config.program_hash,
        "weights": model.hash,
        "folder": None if options["output"] is None else str(options["output"]),
        "html": None if options["html"] is None else str(options["html"]),
    }
