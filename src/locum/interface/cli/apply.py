"""Run a compiled transformer on inputs.

FOLDER is a folder written by `locum compile -o FOLDER`. It is validated before use, and no code in it
is executed. With --check, the exit code is 1 if the network and its program differ.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from locum.errors import InputError
from locum.interface.cli.options import PATH, OutputFile, inputs_option
from locum.interface.cli.runner import Report
from locum.interface.cli.runner import command as make_command
from locum.interface.cli.tokens import read_tokens, read_tokens_file
from locum.text import at_most

if TYPE_CHECKING:
    from locum.networks.transformer import CompiledTransformer

#: Largest relative differences that count as rounding errors, by dtype.
ROUNDING = {"float64": 1e-9, "float32": 1e-4}


@make_command("apply", __doc__)
@click.argument("folder", type=PATH)
@inputs_option
@click.option(
    "--input-file",
    "files",
    multiple=True,
    type=PATH,
    help="File of one input: .json (a list) or .npy; repeatable.",
)
@click.option("--show-attention", is_flag=True, help="Show the attention pattern of every head.")
@click.option("--residual", is_flag=True, help="Show the residual stream after every sublayer.")
@click.option("--check", is_flag=True, help="Compare the outputs with the program's values.")
@click.option(
    "--html", type=OutputFile(), help="File for a page of heads, residual stream and weights."
)
def command(
    folder: Path, texts: tuple[str, ...], files: tuple[Path, ...], html: Path | None, **shown: bool
) -> Report:
    """Load a compiled transformer, run it on every input, and return the report."""
    from locum.networks.transformer import load

    model = load(folder)
    inputs = [*(read_tokens(text, model) for text in texts), *map(read_tokens_file, files)]
    if not inputs:
        raise InputError("expected an input, got none; try --input TOKENS or --input-file FILE")
    results = [_result(model, tokens, **shown) for tokens in inputs]
    written: dict[Path | None, Any] = {}
    if html is not None:
        from locum.interface.display.network.page import network_page

        written[html] = network_page(model, inputs)
    return Report(
        {"name": model.config.name, "weights": model.hash, "results": results},
        lambda: [_text(model, *pair) for pair in zip(inputs, results, strict=True)],
        holds=all(result.get("agrees") is not False for result in results),
        files=written,
    )


def _result(
    model: CompiledTransformer, tokens: Any, *, show_attention: bool, residual: bool, check: bool
) -> dict[str, Any]:
    """Run the transformer on one input, and return the values and requested details as a dictionary."""
    from locum.graph import sequence_type
    from locum.interface.display.network.network_text import answer_places

    values, cache = model.run_with_cache(tokens)
    result = {"input": tokens, "type": sequence_type(values), "values": values}
    places = answer_places(model, len(values))
    if places is not None:
        result["answer"] = [[values[place] for place in row] for row in places]
    if show_attention:
        layers = range(model.architecture.layers)
        result["attention"] = [
            cache["pattern", n][0].tolist() if ("pattern", n) in cache else [] for n in layers
        ]
    if residual:
        stream = model.residual(tokens)
        result["residual"] = {
            "slots": stream.slots,
            "moments": stream.moments,
            "positions": stream.positions,
            "values": stream.values.tolist(),
        }
    if check:
        result |= _check(model, tokens, values)
    return result


def _check(model: CompiledTransformer, tokens: Any, values: list[Any]) -> dict[str, Any]:
    """Compare the network's outputs ``values`` with the program's values under dense execution."""
    from locum.execution import run
    from locum.interface.display.network.network_report import bound
    from locum.interface.display.network.network_text import answer_places

    expected = run(model.program, tokens)
    places = answer_places(model, len(values))
    if places is not None:  # the outputs of U at other positions are not part of T(X)
        expected, values = (
            [sequence[place] for row in places for place in row] for sequence in (expected, values)
        )
    strings = any(isinstance(value, str) for value in (*expected, *values))
    if strings or model.config.outputs is not None:
        return {"program": expected, "agrees": expected == values}
    error = max(abs(float(a) - float(b)) for a, b in zip(expected, values, strict=True))
    size = max(1.0, *(abs(float(value)) for value in expected))
    allowed = ROUNDING[model.config.dtype] * size + (bound(model) or 0.0)
    return {"program": expected, "error": error, "allowed": allowed, "agrees": error <= allowed}


def _text(model: CompiledTransformer, tokens: Any, result: dict[str, Any]) -> str:
    """Format the result of one input: output values, and the requested details."""
    from locum.interface.display.network.network_text import attention_text, residual_text
    from locum.rasp import echo

    name = model.config.name if model.config.name.isidentifier() else "out"
    lines = [f"{name} = {echo.sequence(result['values'])}"]
    if "answer" in result:
        name = "T(X)"
        lines = ["T(X) =", *("  ".join(f"{value:10.6g}" for value in row) for row in result["answer"])]
    if "attention" in result:
        lines += ["", attention_text(model, tokens), ""]
    if "residual" in result:
        lines += ["", residual_text(model, tokens), ""]
    if "agrees" in result:
        lines.append(_verdict(result))
    return "\n".join(lines)


def _verdict(result: dict[str, Any]) -> str:
    from locum.rasp import echo

    if not result["agrees"]:
        return f"The outputs do NOT agree: the program returns {echo.sequence(result['program'])}."
    if "error" in result:
        allowed = f" (allowed: {at_most(result['allowed'], '.1e')})"
        return f"The program returns the same values, up to {at_most(result['error'], '.1e')}{allowed}."
    return "The program returns the same values."
