"""What the panes of the page show of a program: values, counts, heads and weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from locum.analysis import architecture
from locum.compiler import compile as compile_program
from locum.display.flow import flow_svg
from locum.display.heads import shown_heads
from locum.display.network.page import network_data
from locum.errors import InputError
from locum.execution import run as run_program
from locum.graph.definitions import expand_definitions, names_of_definitions
from locum.language import echo
from locum.playground.program import Program, described
from locum.playground.requests import tokens as read_tokens
from locum.playground.requests import vocabulary as read_vocabulary
from locum.transformer import CompiledTransformer

#: Heads that are drawn, and the widest residual stream that is shown.
MAX_HEADS, MAX_WIDTH = 60, 512
#: Length of the longest input of a compiled network, where the request does not say.
DEFAULT_LENGTH = 8
#: The difference up to which numbers of a network count as those of the program.
CLOSE = 1e-6


def run(source: str, typed: str) -> dict[str, Any]:
    """Run every statement on the input: values, types and mistakes, each with its line."""
    program = Program(source, read_tokens(typed))
    return {
        "input": [echo.scalar(token) for token in program.tokens],
        "statements": [described(statement) for statement in program.statements],
        "errors": program.errors,
        "sops": [name for name, value in program.programs().items() if hasattr(value, "plan")],
    }


def analyse(source: str, typed: str) -> dict[str, Any]:
    """Count layers and heads of every s-op and selector."""
    program = _right(source, typed)
    owners = {
        name: number for number, statement in enumerate(program.statements) for name in statement.built
    }
    rows = []
    for name, value in program.programs().items():
        size = architecture(value)
        counts = {"layers": size.layers, "heads": size.heads, "width": size.width}
        rows.append({"name": name, "statements": [owners[name]], **counts})
    return {"programs": rows}


def draw(source: str, typed: str, name: str | None, svg: bool) -> dict[str, Any]:
    """Return every head of an s-op on the input: pattern, values read and given, statements."""
    program = _right(source, typed)
    name, value = program.sop(name)
    tokens = list(program.tokens)
    root = expand_definitions(value.node)
    own = {expand_definitions(node): words for node, words in program.names.items()}
    names = {**names_of_definitions(value.node), **own}
    structure = architecture(root).structure
    if sum(len(layer) for layer in structure) > MAX_HEADS:
        raise InputError(
            f"expected at most {MAX_HEADS} heads to draw; try a smaller s-op of the program"
        )
    layers = []
    for layer in structure:
        heads = []
        for head in layer:
            statements = program.statements_of((head.selector, *head.serves))
            for shown in shown_heads(head, tokens, names):
                values = [
                    {"label": v.label, "reads": _texts(v.reads), "gives": _texts(v.gives)}
                    for v in shown.values
                ]
                pattern = [[int(cell) for cell in row] for row in shown.pattern]
                entry = {"label": shown.label, "note": shown.note, "statements": statements}
                heads.append(entry | {"pattern": pattern, "values": values})
        layers.append(heads)
    drawn = {"name": name, "input": _texts(tokens), "layers": layers}
    drawn["output"] = _texts(run_program(root, tokens))
    if svg:
        drawn["svg"] = flow_svg(value.node, tokens, name, program.names)
    return drawn


def compile(source: str, typed: str, name: str | None, **options: Any) -> dict[str, Any]:  # noqa: A001
    """Compile an s-op to weights: slots over time, heads, feed-forwards, sizes, error bound."""
    program, name, model = _compiled(source, typed, name, options)
    data = network_data(model, [program.tokens])
    owners = program.by_label(program.sop(name)[1].node)
    for stays in data["slots"]:
        for stay in stays:
            stay["statements"] = owners.of(stay["label"])
    for heads in data["heads"]:
        for head in heads:
            head["statements"] = owners.of(head["label"])
    agreement = _applied(program, name, model, [program.tokens])[0]
    return {"name": name, "network": data, "agrees": agreement["agrees"]}


def apply(
    source: str, typed: str, name: str | None, inputs: list[str], **options: Any
) -> dict[str, Any]:
    """Run the compiled network on inputs, each beside the program's own values."""
    program, name, model = _compiled(source, typed, name, options)
    return {
        "name": name,
        "runs": _applied(program, name, model, [read_tokens(text) for text in inputs]),
    }


def _compiled(
    source: str, typed: str, name: str | None, options: dict[str, Any]
) -> tuple[Program, str, CompiledTransformer]:
    program = _right(source, typed)
    name, value = program.sop(name)
    numeric, listed = options.pop("numeric"), options.pop("vocabulary")
    low, high = options.pop("low"), options.pop("high")
    if (low is None) != (high is None):
        raise InputError("low and high: expected both, or neither, got one of them")
    words: Sequence[Any] | None = None
    if not numeric:
        given = program.tokens if not listed else read_vocabulary(listed)
        words = list(dict.fromkeys(given))
    length = options.pop("length") or max(len(program.tokens), DEFAULT_LENGTH)
    model = compile_program(
        value,
        length=length,
        vocabulary=words,
        numeric=numeric,
        ranges=None if low is None else (low, high),
        name=name,
        names=program.names | {value.node: name},
        **{key: option for key, option in options.items() if option is not None},
    )
    if model.architecture.d_model > MAX_WIDTH:
        raise InputError(
            f"this network has {model.architecture.d_model:,} slots; the playground shows {MAX_WIDTH}. "
            "Try a shorter length or a smaller vocabulary, or `locum compile`"
        )
    return program, name, model


def _applied(
    program: Program, name: str, model: CompiledTransformer, inputs: Sequence[Any]
) -> list[dict[str, Any]]:
    runs = []
    for tokens in inputs:
        output = list(model(tokens))
        expected = list(run_program(program.sop(name)[1].node, tokens))
        agrees = all(_close(one, other) for one, other in zip(output, expected, strict=True))
        texts = {"output": _texts(output), "expected": _texts(expected)}
        runs.append({"input": _texts(tokens), **texts, "agrees": agrees})
    return runs


def _close(one: Any, other: Any) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return bool(one == other)
    return bool(abs(float(one) - float(other)) <= CLOSE * max(1.0, abs(float(other))))


def _right(source: str, typed: str) -> Program:
    program = Program(source, read_tokens(typed))
    program.require_right()
    return program


def _texts(values: Sequence[Any]) -> list[str]:
    return [echo.scalar(value) for value in values]
