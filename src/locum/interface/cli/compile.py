"""Compile a program, a language or U to transformer weights.

PROGRAM is a file or the name of a listing or an example. A file contains RASP text, C-RASP, B-RASP,
LTL, first-order logic or a graph as JSON. -o FOLDER writes config.json and model.safetensors, and
`locum run FOLDER` runs the network in this folder. If a program cannot be compiled, the error states
the reason.
"""

from __future__ import annotations

import ast
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from locum.errors import CompileError, InputError
from locum.interface.cli.options import (
    PATH,
    RECIPES,
    alphabet_option,
    choice,
    name_option,
    order_option,
    resource_limit_option,
    settings_options,
)
from locum.interface.cli.programs import DIALECTS, Program
from locum.interface.cli.runner import Report
from locum.interface.cli.runner import command as make_command
from locum.interface.cli.tokens import read_condition, read_vocabulary
from locum.networks.compiler.target import Target
from locum.settings import settings_of

if TYPE_CHECKING:
    from locum.networks.transformer import CompiledTransformer

#: Options of RASP programs. U supports none of them, and languages only length, fixed and causal.
OF_PROGRAMS = ("length", "vocabulary", "numeric", "fixed", "causal", "inputs")
#: Maps settings to options with a different name.
_OPTIONS = {"vocabulary": "vocab", "ranges": "range"}
#: Default maximum length of the words of a language.
WORD = 8


@make_command("compile", __doc__)
@click.argument("program", type=PATH, required=False)
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
@click.option("-o", "--output", type=PATH, help="Folder for the weights.")
def command(program: Path | None, output: Path | None, **options: Any) -> Report:
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
            model = _compile_simulator(options)
        elif options["language"] is not None:
            model = _compile_language(options)
        else:
            assert program is not None
            model = _compile_program(program, options)
    except CompileError as error:
        raise CompileError(_name_options(str(error))) from None
    seconds = time.process_time() - started
    data = _data(model) | {"seconds": seconds}
    return Report(data, lambda: _text(model, seconds), files={output: model.save})


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


def _compile_program(path: Path, options: dict[str, Any]) -> CompiledTransformer:
    """Compile a RASP program to a network."""
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
    names = loaded.names() | {value.node: name}
    return compile_for(Target.read(**settings), value.node, name, names=names)


def _compile_language(options: dict[str, Any]) -> CompiledTransformer:
    """Compile a program that recognises the language given by ``--language``."""
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
    return recogniser.compile(options["length"] or WORD, **chosen, **_network(options))


def _compile_simulator(options: dict[str, Any]) -> CompiledTransformer:
    """Compile U to a network."""
    from locum.simulators import UniversalSimulator

    _reject(options, "U")
    n, d, d_v = options["order"]
    recipe = options["recipe"]
    # The recipe "native" is a recipe of weights. Its input tokens are the same as in other recipes.
    U = UniversalSimulator(n, d, d_v, recipe="fetch" if recipe in (None, "native") else recipe)
    return U.compile(recipe, **_network(options))


def _text(model: CompiledTransformer, seconds: float) -> Iterator[str]:
    from locum.interface.display.network.network_report import facts

    yield model.config.name
    taken = ("compiled in", f"{seconds * 1e3:.0f} ms of CPU time")
    for name, value in [*facts(model), taken]:
        yield f"  {name:<13}{value}"


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
