"""Compute the content of the panes Values, Counts and Heads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from locum.errors import InputError
from locum.execution import run as run_program
from locum.graph.architecture import architecture
from locum.interface.playground.flow_pane import ProgramHeads
from locum.interface.playground.program_pane import Program, described
from locum.interface.playground.requests import tokens as read_tokens
from locum.rasp import echo
from locum.rasp.drawing.flow import shown_heads
from locum.rasp.handles import SOp

#: Maximum number of drawn heads, where a family of heads counts as one head.
MAX_HEADS = 60


def run(source: str, typed: str) -> dict[str, Any]:
    """Run every statement on the input, and return values, types and errors with their lines."""
    program = Program(source, read_tokens(typed))
    sops = [name for name, value in program.programs().items() if isinstance(value, SOp)]
    return {
        "input": [echo.scalar(token) for token in program.tokens],
        # After ``set example`` in a program, values are not computed on the typed input.
        "own": program.has_own_example,
        "used": program.used_until,
        "statements": [described(statement, program.tokens) for statement in program.statements],
        "errors": program.errors,
        "sops": sops,
        "why": None if sops else program.why_no_sop(),
    }


def analyse(source: str, typed: str) -> dict[str, Any]:
    """Return the layers and heads of every s-op and selector of a program."""
    program = right(source, typed)
    owners = {
        name: number for number, statement in enumerate(program.statements) for name in statement.built
    }
    rows = []
    for name, value in program.programs().items():
        size = architecture(value)
        counts = {"layers": size.layers, "heads": size.heads, "width": size.width}
        rows.append({"name": name, "statements": [owners[name]], **counts})
    return {"programs": rows}


def draw(source: str, typed: str, name: str | None) -> dict[str, Any]:
    """Return the heads of an s-op on the input: patterns, read and returned values, statements."""
    program = right(source, typed)
    name, value = program.sop(name)
    tokens = list(program.tokens)
    own = ProgramHeads(program, value.node)
    if sum(len(layer) for layer in own.structure) > MAX_HEADS:
        raise InputError(
            f"expected at most {MAX_HEADS} heads to draw; try a smaller s-op of the program"
        )
    layers, place = [], 0
    for layer in own.structure:
        heads = []
        for head in layer:
            statements = program.statements_of((head.selector, *head.serves))
            drawn_heads = shown_heads(head, tokens, own.names)
            for number, shown in enumerate(drawn_heads, own.heads[place][1][0]):
                values = [
                    {"label": v.label, "reads": texts(v.reads), "gives": texts(v.gives)}
                    for v in shown.values
                ]
                pattern = [[int(cell) for cell in row] for row in shown.pattern]
                entry: dict[str, Any] = {
                    "label": shown.label,
                    "note": shown.note,
                    "statements": statements,
                }
                entry |= {"number": number, "for": own.purpose(place)}
                heads.append(entry | {"pattern": pattern, "values": values})
            place += 1
        layers.append(heads)
    output = run_program(value.node, tokens)
    return {"name": name, "input": texts(tokens), "layers": layers, "output": texts(output)}


def right(source: str, typed: str) -> Program:
    """Return a program that has been run on its input; raise its first error if it has errors."""
    program = Program(source, read_tokens(typed))
    program.require_right()
    return program


def texts(values: Sequence[Any]) -> list[str]:
    """Format values as in the REPL."""
    return [echo.scalar(value) for value in values]
