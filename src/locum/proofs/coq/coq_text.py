"""Write programs and labelled tokens as terms of ``proofs/Rasp.v``.

Every node of the graph becomes one ``let``, so the size of the term is proportional to the size of the
graph. Families of heads are not expanded, so the number of heads does not change this size.

>>> from locum import indices
>>> print(coq_term((indices + 1).node))
let x0 := Indices in
let x1 := Constant (Integer 1) in
let x2 := Binary Add x0 x1 in
x2
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from locum.errors import InputError
from locum.graph import Node, postorder
from locum.graph.operations import PREDICATE_OF
from locum.simulators import (
    Attention,
    Encoder,
    LinearAttention,
    Linformer,
    MultiHeadAttention,
    Performer,
)
from locum.simulators.layer_simulator import LayerSimulator
from locum.simulators.modules.module import AttentionModule, Module, Numbers

UNARY = (
    "negate", "absolute", "exp", "log", "sqrt", "floor", "round", "tanh", "sin", "erf", "not",
    "indicator",
)  # fmt: skip
BINARY = (
    "add", "subtract", "multiply", "divide", "modulo", "floor_divide", "power", "minimum", "maximum",
    "and", "or",
)  # fmt: skip
PREDICATES = {"==": "Eq", "!=": "Ne", "<": "Lt", "<=": "Le", ">": "Gt", ">=": "Ge"}
#: Operations whose Coq constructor has the same inputs in the same order.
STRUCTURAL = (
    "indices", "length", "if_else", "selector_and", "selector_or", "selector_not", "best",
    "selector_width",
)  # fmt: skip


def coq_term(root: Node) -> str:
    """Write the program below ``root`` as a Coq term of type ``sop`` or ``selector``."""
    names: dict[Node, str] = {}
    lines = []
    for node in postorder(root):
        names[node] = f"x{len(names)}"
        lines.append(f"let {names[node]} := {_node(node, names)} in")
    return "\n".join([*lines, names[root]])


def _node(node: Node, names: dict[Node, str]) -> str:
    """Write one node as a Coq term, in which the inputs are referred to by their names."""
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
    """Return the name of an operation's Coq constructor, such as ``FloorDivide`` for floor_divide."""
    return "Width" if op == "selector_width" else op.title().replace("_", "")


def _family(node: Node) -> str:
    """Write a bound family as a Coq term; the graph names it ``#height.number``."""
    height, _, number = str(node.attributes["name"]).removeprefix("#").partition(".")
    if not (height.isdigit() and number.isdigit()):
        raise InputError(f"expected a closed program, got one with the free family {node!r}")
    return f"Family {height} {number} {node.attributes['size']}"


def _atom(value: object) -> str:
    """Write a number or a boolean as a Coq term; a float becomes the fraction that it represents."""
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


# The numbers that labels assign to matrices. X is always 0. In linear attention, Linformer and
# Performer, the matrices from W_Q on are numbered from 1.
_X, _A, _V, _O, _W1, _W2 = range(6)
_B1, _B2, _G1, _C1, _G2, _C2, _EPSILON = range(6, 13)


def label(number: int, rows: int, columns: int, head: int = 0) -> Numbers:
    """Return a matrix whose entries are labels.

    A label is an integer that encodes the number of the matrix, the head, the row and the column.
    """
    i, j = np.indices((rows, columns))
    return np.asarray((((number * 64 + head) * 64 + i) * 64 + j), dtype=np.float64)


@dataclass(frozen=True)
class Tokens:
    """The sequence of tokens of a simulator, as Coq terms over the sizes and as Python values."""

    #: The matrices of T and X, as a Coq term of the type list (part Z).
    parts: str
    #: The number of tokens that the theorem requires, as a Coq term.
    length: str
    #: A function that returns T for a shape, with labels as entries.
    module: Callable[..., Module]

    def sequence(self, simulator: LayerSimulator, *shape: int) -> list[int]:
        """Return the tokens ⟨T, X⟩ for a shape.

        The first two sizes of the shape are the numbers of rows and columns of X.
        """
        T, X = self.module(*shape), label(_X, shape[0], shape[1])
        if "rows" in simulator.layout.blocks:  # The number of rows is a token that T does not contain.
            matrices = T.matrices() | {"X": [X], "rows": [label(_O, 1, 1)]}
            tokens = simulator.flattened(simulator.parts(matrices, X))
        else:
            tokens = simulator.encode(T, X)
        return [int(token) for token in tokens]


def attention(n: int, d: int, d_v: int, mask: str | None = None) -> Attention:
    """Return an attention layer with one head, whose entries are labels."""
    return Attention(label(_A, d, d), label(_V, d, d_v), mask=mask)


def heads(d: int, d_v: int, count: int, projection: int = 0) -> MultiHeadAttention:
    """Return an attention layer with ``count`` heads, with W_O if ``projection`` is not 0."""
    each = [Attention(label(_A, d, d, head), label(_V, d, d_v, head)) for head in range(count)]
    outputs = [label(_O, d_v, projection, head) for head in range(count)]
    return MultiHeadAttention(each, np.concatenate(outputs) if projection else None)


def encoder(part: AttentionModule, d: int, d1: int, d2: int) -> Encoder:
    """Return the encoder of the paper: an attention layer followed by a feed-forward."""
    return Encoder(part, label(_W1, d, d1), label(_W2, d1, d2))


def layer(part: AttentionModule, d: int, d1: int, norm: str, activation: str = "relu") -> Encoder:
    """Return an encoder layer with biases and norms around an attention layer."""
    rows = [label(number, 1, d) for number in (_G1, _C1, _G2, _C2)]
    return Encoder(
        part, label(_W1, d, d1), label(_W2, d1, d), label(_B1, 1, d1), label(_B2, 1, d), norm=norm,
        activation=activation, norm1=(rows[0], rows[1]), norm2=(rows[2], rows[3]),
        epsilon=float(label(_EPSILON, 1, 1)[0, 0]),
    )  # fmt: skip


def _projections(d: int, d_v: int, w: int) -> tuple[Numbers, Numbers, Numbers]:
    return label(1, d, w), label(2, d, w), label(3, d, d_v)


def linear(n: int, d: int, d_v: int, w: int, feature_map: str = "identity") -> LinearAttention:
    """Return a linear attention layer, whose entries are labels."""
    return LinearAttention(*_projections(d, d_v, w), feature_map=feature_map)


def linformer(n: int, d: int, d_v: int, w: int, k: int) -> Linformer:
    """Return a Linformer of rank k, whose entries are labels."""
    return Linformer(*_projections(d, d_v, w), label(4, k, n), label(5, k, n))


def performer(n: int, d: int, d_v: int, w: int, k: int) -> Performer:
    """Return a Performer with k features, whose entries are labels."""
    return Performer(*_projections(d, d_v, w), label(4, k, w))


_ATTENTION = "attention_parts n d {dv} (label 0 0) (label 1 0) (label 2 0)"
_HEADS = "heads_parts n d dv H (label 0 0) (label 1) (label 2)"
_PROJECTED = "projected_parts n d dv {p} H (label 0 0) (label 1) (label 2) (label 3)"
_FEED_FORWARD = "feed_forward_parts d d1 d2 (label 4 0) (label 5 0)"
_LAYER = (
    "layer_parts d d1 (label 4 0) (label 5 0) (label 6 0 0) (label 7 0 0) (label 8 0 0) (label 9 0 0) "
    "(label 10 0 0) (label 11 0 0) (label 12 0 0 0)"
)
_KIND = "(label 0 0) (label 1 0) (label 2 0) (label 3 0)"

ATTENTION = Tokens(_ATTENTION.format(dv="dv"), "attention_length n d dv", attention)
CAUSAL = replace(ATTENTION, module=lambda n, d, d_v: attention(n, d, d_v, "causal"))
TILED = Tokens(_ATTENTION.format(dv="dv"), "tiled_length n d dv", attention)
MASKED = Tokens(
    "masked_parts n d dv (label 3 0 0 0) (label 0 0) (label 1 0) (label 2 0)",
    "masked_length n d dv",
    attention,
)
HEADS = Tokens(_HEADS, "heads_length n d dv H", lambda n, d, d_v, count: heads(d, d_v, count))
PROJECTED = Tokens(
    _PROJECTED.format(p="p"),
    "projected_length n d dv p H",
    lambda n, d, d_v, p, count: heads(d, d_v, count, p),
)
ENCODER = Tokens(
    f"{_ATTENTION.format(dv='d')} ++ {_FEED_FORWARD}",
    "encoder_length n d d1 d2 (attention_size n d d) (attention_length n d d)",
    lambda n, d, d1, d2: encoder(attention(n, d, d), d, d1, d2),
)
ENCODER_OF_HEADS = Tokens(
    f"{_PROJECTED.format(p='d')} ++ {_FEED_FORWARD}",
    "encoder_length n d d1 d2 (projected_size n d dv d H) (projected_length n d dv d H)",
    lambda n, d, d_v, d1, d2, count: encoder(heads(d, d_v, count, d), d, d1, d2),
)
LINEAR = Tokens(f"kind_parts n d dv w {_KIND}", "linear_length n d dv w", linear)
ELU = replace(LINEAR, module=lambda n, d, d_v, w: linear(n, d, d_v, w, "elu+1"))
LINFORMER = Tokens(
    f"linformer_parts n d dv w k {_KIND} (label 4 0) (label 5 0)",
    "linformer_length n d dv w k",
    linformer,
)
PERFORMER = Tokens(
    f"performer_parts n d dv w 4 {_KIND} (label 4 0)",
    "performer_length n d dv w 4",
    lambda n, d, d_v, w: performer(n, d, d_v, w, 4),
)


def layer_of_one_head(norm: str, activation: str = "relu") -> Tokens:
    """Return the tokens of an encoder layer with one head, biases and norms."""
    return Tokens(
        f"{_ATTENTION.format(dv='d')} ++ {_LAYER}",
        "layer_length n d d1 (attention_size n d d) (attention_length n d d)",
        lambda n, d, d1: layer(attention(n, d, d), d, d1, norm, activation),
    )


def layer_of_heads(norm: str) -> Tokens:
    """Return the tokens of an encoder layer with several heads, biases and norms."""
    return Tokens(
        f"{_PROJECTED.format(p='d')} ++ {_LAYER}",
        "layer_length n d d1 (projected_size n d dv d H) (projected_length n d dv d H)",
        lambda n, d, d_v, d1, count: layer(heads(d, d_v, count, d), d, d1, norm),
    )
