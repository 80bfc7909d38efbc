"""The content of the panes for values, counts, heads and claims."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from locum.errors import InputError
from locum.execution import run as run_program
from locum.graph.architecture import architecture
from locum.graph.definitions import expand_definitions, names_of_definitions
from locum.interface.display.automaton import MAX_DRAWN, automaton_svg
from locum.interface.playground.program_pane import Program, described
from locum.interface.playground.requests import tokens as read_tokens
from locum.languages import regular
from locum.languages.classification import classify as classify_automaton
from locum.proofs import Unproven
from locum.proofs import prove as prove_claim
from locum.proofs.claims.named import FAMILIES
from locum.rasp import echo
from locum.rasp.drawing.flow import flow_svg, shown_heads
from locum.rasp.handles import SOp

#: Heads that are drawn.
MAX_HEADS = 60


def run(source: str, typed: str) -> dict[str, Any]:
    """Run every statement on the input: values, types and mistakes, each with its line."""
    program = Program(source, read_tokens(typed))
    sops = [name for name, value in program.programs().items() if isinstance(value, SOp)]
    return {
        "input": [echo.scalar(token) for token in program.tokens],
        # A program may say ``set example``; what was typed is then not what is shown.
        "own": program.has_own_example,
        "used": program.used_until,
        "statements": [described(statement, program.tokens) for statement in program.statements],
        "errors": program.errors,
        "sops": sops,
        "why": None if sops else program.why_no_sop(),
    }


def analyse(source: str, typed: str) -> dict[str, Any]:
    """Count layers and heads of every s-op and selector."""
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


def draw(source: str, typed: str, name: str | None, svg: bool) -> dict[str, Any]:
    """Return every head of an s-op on the input: pattern, values read and given, statements."""
    program = right(source, typed)
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
                    {"label": v.label, "reads": texts(v.reads), "gives": texts(v.gives)}
                    for v in shown.values
                ]
                pattern = [[int(cell) for cell in row] for row in shown.pattern]
                entry = {"label": shown.label, "note": shown.note, "statements": statements}
                heads.append(entry | {"pattern": pattern, "values": values})
        layers.append(heads)
    drawn = {"name": name, "input": texts(tokens), "layers": layers}
    drawn["output"] = texts(run_program(root, tokens))
    if svg:
        drawn["svg"] = flow_svg(value.node, tokens, name, program.names)
    return drawn


def right(source: str, typed: str) -> Program:
    """Return a program, or refuse it for its first mistake."""
    program = Program(source, read_tokens(typed))
    program.require_right()
    return program


def texts(values: Sequence[Any]) -> list[str]:
    """Write values as the REPL does."""
    return [echo.scalar(value) for value in values]


#: Seconds for the search of a proof, terms of a polynomial, entries of a shape together.
SECONDS, TERMS, MAX_SHAPE = 3.0, 20_000, 12


def prove(name: str, shape: list[int], recipe: str | None, certificate: bool) -> dict[str, Any]:
    """Prove a claim for all inputs of a shape, or refute it, or say that neither was possible.

    With ``certificate``, what ``locum prove check`` goes through again is in the answer, as text.
    """
    require_small(shape)
    verdict = prove_claim(name, *shape, recipe=recipe, seconds=SECONDS, terms=TERMS, megabytes=400)
    reply = {"text": str(verdict), **verdict.to_dict()}
    if certificate:
        if isinstance(verdict, Unproven):
            raise InputError(f"there is no certificate: {verdict}")
        reply["certificate"] = json.dumps(verdict.certificate)
    return reply


def require_small(shape: list[int]) -> None:
    """Refuse a shape whose proof would take long."""
    if sum(shape) > MAX_SHAPE:
        raise InputError(
            f"shape: expected integers that sum to at most {MAX_SHAPE}, got {sum(shape)}; "
            "`locum prove claim` has no such limit"
        )


def classify(regex: str) -> dict[str, Any]:
    """Classify a regular language: each verdict with its reason and its consequence."""
    automaton = regular.language(regex.strip(), None, plus="union")
    verdicts = classify_automaton(automaton)
    lines = [
        {"key": line.key, "holds": line.holds, "reason": line.reason, "consequence": line.consequence}
        for line in verdicts.lines()
    ]
    program = verdicts.program("end") or verdicts.program("last")
    drawn = automaton_svg(automaton, regex) if len(automaton) <= MAX_DRAWN else None
    return {
        "states": len(automaton),
        "monoid": len(verdicts.monoid),
        "lines": lines,
        "program": None if program is None else program.text,
        "svg": drawn,
    }


def claims() -> list[dict[str, Any]]:
    """List the claims that can be proven, with their parameters and recipes."""
    return [
        {"name": f.name, "parameters": list(f.parameters), "recipes": list(f.recipes)}
        for f in FAMILIES.values()
    ]
