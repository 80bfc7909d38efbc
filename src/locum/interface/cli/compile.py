"""Compile a program, a language or U to transformer weights.

PROGRAM is a file or the name of a listing or an example. A file contains RASP text, C-RASP, B-RASP,
LTL, first-order logic or a graph as JSON. -o FOLDER writes config.json and model.safetensors, and
`locum apply` runs the network in this folder. If a program cannot be compiled, the error states the
reason.
"""

from __future__ import annotations

import ast
import random
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from locum.errors import CompileError, InputError, LocumError
from locum.interface.cli.options import (
    PATH,
    RECIPES,
    OutputFile,
    alphabet_option,
    choice,
    inputs_option,
    name_option,
    order_option,
    resource_limit_option,
    settings_options,
)
from locum.interface.cli.programs import DIALECTS, Program, complete_program
from locum.interface.cli.runner import Report
from locum.interface.cli.runner import command as make_command
from locum.interface.cli.tokens import read_condition, read_tokens, read_vocabulary
from locum.networks.compiler.target import Target
from locum.settings import settings_of

if TYPE_CHECKING:
    from locum.networks.transformer import CompiledTransformer

#: Options of RASP programs. U supports none of them, and languages only length, fixed and causal.
OF_PROGRAMS = ("length", "vocabulary", "numeric", "fixed", "causal", "inputs")
#: Maps settings to options with a different name.
_OPTIONS = {"vocabulary": "vocab", "ranges": "range"}
#: Maximum number of tokens of an example input of variable length, and default maximum length of the
#: words of a language.
DRAWN, WORD = 8, 8
#: Maximum number of random inputs that are tried until one satisfies the conditions on inputs.
ATTEMPTS = 500


@make_command("compile", __doc__)
@click.argument("program", type=PATH, required=False, shell_complete=complete_program)
@name_option
@click.option("--language", help="Language to compile: a regular expression or a file.")
@alphabet_option
@order_option("Order of U; compiles U instead of a program.")
@choice("--recipe", [*RECIPES, "native"], "Recipe of U.  [default: native for MLPs, else fetch]")
@settings_options(
    Target,
    vocabulary=click.option(
        "--vocab",
        "vocabulary",
        metavar="TOKENS",
        help="Vocabulary: abc, one,two, 1,2,3, or a .txt or .json file.",
    ),
    ranges=click.option(
        "--range",
        "ranges",
        type=(float, float),
        metavar="LOW HIGH",
        help="Range of the tokens with --numeric.",
    ),
    limit=resource_limit_option,
    inputs=click.option(
        "--inputs",
        multiple=True,
        callback=lambda context, option, texts: texts or None,
        metavar="CONDITION",
        help="Condition: '+: 1, -: 0..2' or an expression; repeatable.",
    ),
)
@inputs_option
@click.option("-o", "--output", type=PATH, help="Folder for the weights.")
@click.option(
    "--html", type=OutputFile(), help="File for a page of heads, residual stream and weights."
)
def command(program: Path | None, output: Path | None, html: Path | None, **options: Any) -> Report:
    """Compile the program, language or U, and return the report and the files to write."""
    sources = {"PROGRAM": program, "--language": options["language"], "--order": options["order"]}
    given = [name for name, value in sources.items() if value is not None]
    if len(given) != 1:
        raise InputError(f"expected one of {', '.join(sources)}, got {' and '.join(given) or 'none'}")
    if options["recipe"] is not None and options["order"] is None:
        raise InputError(f"--recipe: expected --order n,d,d_v with it, got {given[0]}")
    if program is not None and program.suffix in DIALECTS:
        options["language"] = str(program)
    started = time.process_time()
    try:
        if options["order"] is not None:
            model, example = _compile_simulator(options)
        elif options["language"] is not None:
            model, example = _compile_language(options)
        else:
            assert program is not None
            model, example = _compile_program(program, options)
    except CompileError as error:
        raise CompileError(_name_options(str(error))) from None
    seconds = time.process_time() - started
    inputs = [read_tokens(text, model) for text in options["texts"]]
    for tokens in inputs:
        model(tokens)  # raises an error for an invalid input before a file is written
    if not inputs and (shown := example()) is not None:
        inputs = [shown]
    files: dict[Path | None, Any] = {output: model.save}
    if html is not None:
        from locum.interface.display.network.page import network_page

        files[html] = network_page(model, inputs)
    data = _data(model) | {"seconds": seconds}
    return Report(data, lambda: _text(model, inputs, seconds), files=files)


def _name_options(message: str) -> str:
    """Replace settings of Python in an error message by options of the command.

    >>> _name_options("try dtype='float64' and length=3, or fixed=True")
    'try --dtype float64 and --length 3, or --fixed'
    >>> _name_options("try inputs={'+': 1, '-': 2}")
    "try --inputs '+: 1, -: 2'"
    """
    names = "|".join(settings_of(Target))
    value = r"'[^']*'|\[…, \{[^}]*\}\]|\{[^}]*\}|…|[\w.+-]*\w"
    return re.sub(rf"\b({names})=({value})", lambda match: _option(*match.groups()), message)


def _option(name: str, value: str) -> str:
    """Return the command-line option for the setting ``name`` with ``value``, a Python expression."""
    option = "--" + _OPTIONS.get(name, name).replace("_", "-")
    if value in ("True", "False"):
        return option if value == "True" else option.replace("--", "--no-")
    if not value.startswith(("{", "[")):
        return f"{option} {value.strip(chr(39))}"
    items = ast.literal_eval(value.removeprefix("[…, ").removesuffix("]")).items()
    if name == "limit":
        return " ".join(f"{option} {key}={number}" for key, number in items)
    return f"{option} '{', '.join(f'{token}: {count}' for token, count in items)}'"


def _network(options: dict[str, Any]) -> dict[str, Any]:
    """Return the compile options that also apply to U and to languages."""
    return {name: options[name] for name in settings_of(Target) if name not in OF_PROGRAMS}


def _reject(options: dict[str, Any], what: str, *allowed: str) -> None:
    """Raise an error if the command contains options that ``what`` does not support.

    Options in ``allowed`` do not raise an error.
    """
    wrong = [
        "--" + _OPTIONS.get(name, name)
        for name in (*OF_PROGRAMS, "name", "alphabet")
        if options[name] is not None and options[name] is not False and name not in allowed
    ]
    if wrong:
        raise InputError(f"{what} has its own tokens: leave out {', '.join(wrong)}")


def _compile_program(
    path: Path, options: dict[str, Any]
) -> tuple[CompiledTransformer, Callable[[], Any]]:
    """Compile a RASP program, and return the network and a function that returns an example input."""
    from locum.networks.compiler.compiling import compile_for

    if options["alphabet"] is not None:
        raise InputError("--alphabet: expected a language with it; try --vocab TOKENS")
    if options["length"] is None:
        raise InputError("expected --length, the number of tokens of the longest input, got none")
    if (options["vocabulary"] is None) == (not options["numeric"]):
        raise InputError("expected either --vocab TOKENS or --numeric, got neither or both")
    loaded = Program(path)
    name, value = loaded.sop(options["name"])
    settings = {name: options[name] for name in settings_of(Target)}
    if options["vocabulary"] is not None:
        settings["vocabulary"] = read_vocabulary(options["vocabulary"])
    if options["inputs"] is not None:
        settings["inputs"] = [
            read_condition(text, settings["vocabulary"]) for text in options["inputs"]
        ]
    model = compile_for(
        Target.read(**settings), value.node, name, names=loaded.names() | {value.node: name}
    )
    return model, lambda: _example(model, loaded.tokens)


def _compile_language(options: dict[str, Any]) -> tuple[CompiledTransformer, Callable[[], Any]]:
    """Compile a program that recognises the language given by ``--language``.

    Return the network and a function that returns an example input.
    """
    from locum.interface.cli.language import find_recogniser, read_language

    _reject(options, "a language", "length", "alphabet", "causal", "fixed")
    recogniser = find_recogniser(read_language(options["language"], options))
    if recogniser is None:
        raise InputError(
            f"{options['language']}: expected a language that is star-free or in "
            "C-RASP[periodic, local], got another; "
            "try locum language classify"
        )
    chosen = {name: options[name] for name in ("causal", "fixed") if options[name]}
    model = recogniser.compile(options["length"] or WORD, **chosen, **_network(options))
    return model, lambda: _example(model, "")


def _compile_simulator(options: dict[str, Any]) -> tuple[CompiledTransformer, Callable[[], Any]]:
    """Compile U, and return the network and a function that returns a random ⟨T, X⟩."""
    import numpy as np

    from locum.simulators import UniversalSimulator
    from locum.simulators.modules.sampling import random_module

    _reject(options, "U")
    n, d, d_v = options["order"]
    recipe = options["recipe"]
    # The recipe "native" is a recipe of weights. Its input tokens are the same as in other recipes.
    U = UniversalSimulator(n, d, d_v, recipe="fetch" if recipe in (None, "native") else recipe)
    model = U.compile(recipe, **_network(options))
    generator = np.random.default_rng(0)
    T, X = random_module(U.order, generator), generator.normal(size=(n, d))
    return model, lambda: _moved_inside(model, U.encode(T, X).tolist())


def _example(model: CompiledTransformer, tokens: Any) -> Any:
    """Return an input that the network accepts, or None if none is found.

    The candidates are the program's example ``tokens``, the vocabulary or small numbers and, if
    the network restricts its inputs, random inputs.
    """
    shortest, longest = model.config.lengths
    length = longest if shortest == longest else min(longest, DRAWN)
    known = model.config.vocabulary or [float(number) for number in range(1, length + 1)]
    other = [known[place % len(known)] for place in range(length)]
    if model.config.vocabulary is None:
        other = _moved_inside(model, other)
    characters = all(isinstance(token, str) and len(token) == 1 for token in other)
    generator = random.Random(0)
    attempts = (
        generator.choices(known, k=length) for _ in range(ATTEMPTS if model.config.inputs else 0)
    )
    for drawn in (tokens, other, *attempts):
        candidate = "".join(drawn) if characters and drawn is not tokens else drawn
        try:
            model(candidate)
        except LocumError:
            continue
        return candidate
    return None


def _moved_inside(model: CompiledTransformer, numbers: list[Any]) -> list[Any]:
    """Replace each number by the nearest number in the range of the network's tokens."""
    ranges = model.config.ranges
    if ranges is None:
        return numbers
    ends = [ranges[place % len(ranges)] for place in range(len(numbers))]
    return [min(max(x, low), high) for x, (low, high) in zip(numbers, ends, strict=True)]


def _text(model: CompiledTransformer, inputs: list[Any], seconds: float) -> Iterator[str]:
    from locum.interface.display.network.network_report import facts
    from locum.interface.display.network.network_text import network_text

    yield model.config.name
    taken = ("compiled in", f"{seconds * 1e3:.0f} ms of CPU time")
    for name, value in [*facts(model), taken]:
        yield f"  {name:<13}{value}"
    yield ""
    yield network_text(model, inputs[0] if inputs else None)


def _data(model: CompiledTransformer) -> dict[str, Any]:
    config = model.config
    return {
        "name": config.name,
        "architecture": model.architecture.as_json(),
        "vocabulary": config.vocabulary,
        "lengths": config.lengths,
        "sink": config.sink,
        "outputs": config.outputs,
        "slots": config.slots,
        "head_names": config.heads,
        "dtype": config.dtype,
        "report": config.report,
        "program": config.program_hash,
        "weights": model.hash,
    }
