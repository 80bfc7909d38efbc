"""Print a program as a term of ``proofs/Rasp.v``.

Every node becomes one ``let``, so the term is as small as the graph; families of heads stay binders,
so it does not grow with the shape.

>>> from locum import indices
>>> print(coq_term((indices + 1).node))
let x0 := Indices in
let x1 := Constant (Integer 1) in
let x2 := Binary Add x0 x1 in
x2
"""

from __future__ import annotations

import math
from typing import Any

from locum.errors import InputError
from locum.graph import Node, postorder
from locum.graph.operations import PREDICATE_OF

UNARY = (
    "negate", "absolute", "exp", "log", "sqrt", "floor", "round", "tanh", "sin", "erf", "not",
    "indicator",
)  # fmt: skip
BINARY = (
    "add", "subtract", "multiply", "divide", "modulo", "floor_divide", "power", "minimum", "maximum",
    "and", "or",
)  # fmt: skip
PREDICATES = {"==": "Eq", "!=": "Ne", "<": "Lt", "<=": "Le", ">": "Gt", ">=": "Ge"}
#: Operations that are constructors of the same inputs in the same order.
STRUCTURAL = (
    "indices", "length", "if_else", "selector_and", "selector_or", "selector_not", "best",
    "selector_width",
)  # fmt: skip


def coq_term(root: Node) -> str:
    """Write the program below ``root`` as a Coq term of type ``sop`` (or ``selector``)."""
    names: dict[Node, str] = {}
    lines = []
    for node in postorder(root):
        names[node] = f"x{len(names)}"
        lines.append(f"let {names[node]} := {_node(node, names)} in")
    return "\n".join([*lines, names[root]])


def _node(node: Node, names: dict[Node, str]) -> str:
    """Write one node over the names of its inputs."""
    inputs = " ".join(names[part] for part in node.inputs)
    match node.op:
        case "tokens" if node.attributes["cast"] == "asis":
            return "Tokens"
        case "constant":
            return f"Constant {_atom(node.attributes['value'])}"
        case "family":
            return f"Head ({_family(node)})"
        case "select":
            return f"Select {PREDICATES[str(node.attributes['predicate'])]} {inputs}"
        case "aggregate":
            return f"Aggregate {inputs} {_atom(node.attributes['default'])}"
        case "sum_over":
            families = "; ".join(map(_family, node.inputs[1:]))
            return f"SumOver {names[node.inputs[0]]} [{families}]"
        case "member":
            values: Any = node.attributes["values"]
            return f"Unary (Member [{'; '.join(_atom(value)[1:-1] for value in values)}]) {inputs}"
        case op if op in STRUCTURAL:
            return f"{_constructor(op)} {inputs}".strip()
        case op if op in UNARY:
            return f"Unary {_constructor(op)} {inputs}"
        case op if op in BINARY:
            return f"Binary {_constructor(op)} {inputs}"
        case op if op in PREDICATE_OF:
            return f"Binary (Compare {PREDICATES[PREDICATE_OF[op]]}) {inputs}"
    raise InputError(
        f"proofs/Rasp.v has no operation {node.op!r}, got {node!r}; expected a program "
        "of numbers and booleans without lookup tables"
    )


def _constructor(op: str) -> str:
    """Write the constructor of an operation: ``FloorDivide`` for floor_divide."""
    return "Width" if op == "selector_width" else op.title().replace("_", "")


def _family(node: Node) -> str:
    """Write a bound family, which the graph calls ``#height.number``."""
    height, _, number = str(node.attributes["name"]).removeprefix("#").partition(".")
    if not (height.isdigit() and number.isdigit()):
        raise InputError(f"expected a closed program, got one with the free family {node!r}")
    return f"Family {height} {number} {node.attributes['size']}"


def _atom(value: object) -> str:
    """Write an atom; a float is the fraction that it is exactly."""
    if isinstance(value, bool):
        return f"(Boolean {str(value).lower()})"
    if isinstance(value, int):
        return f"(Integer {_integer(value)})"
    if isinstance(value, float) and math.isfinite(value):
        numerator, denominator = value.as_integer_ratio()
        return f"(Fraction {_integer(numerator)} {denominator})"
    raise InputError(f"expected numbers and booleans in a program for Coq, got the constant {value!r}")


def _integer(value: int) -> str:
    return str(value) if value >= 0 else f"({value})"
