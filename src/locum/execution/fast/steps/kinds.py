"""Which numbers come out: truth values, whole numbers or any, as far as the program alone says.

Plans compute in floating point; a result that dense execution would give as whole numbers or as truth
values is handed out as such.
"""

from __future__ import annotations

from locum.graph import Node, postorder

#: Elementwise operations whose results are truth values.
BOOLEAN = frozenset(
    (
        "equal",
        "not_equal",
        "less",
        "less_equal",
        "greater",
        "greater_equal",
        "and",
        "or",
        "not",
        "member",
    )
)
_WHOLE = frozenset(("indices", "length", "selector_width", "indicator", "floor", "round", "family"))
#: Operations that give whole numbers for whole numbers (and truth values).
_KEEPING = frozenset(("add", "subtract", "multiply", "modulo", "floor_divide", "negate", "absolute"))


def kinds_of(root: Node, tokens: str) -> dict[Node, str]:
    """``bool``, ``int`` or ``float`` for every node; the last also where it differs by position."""
    kinds: dict[Node, str] = {}
    for node in postorder(root):
        kinds[node] = _kind(node, [kinds[i] for i in node.inputs], tokens)
    return kinds


def _kind(node: Node, below: list[str], tokens: str) -> str:
    op = node.op
    if op in BOOLEAN:
        return "bool"
    if op in _WHOLE:
        return "int"
    if op == "tokens":
        cast = str(node.attributes["cast"])
        return tokens if cast == "asis" else cast
    if op == "constant":
        return type(node.attributes["value"]).__name__
    if op in _KEEPING or op == "sum_over":
        return "int" if set(below) <= {"int", "bool"} else "float"
    if op in ("minimum", "maximum") and below[0] == below[1]:
        return below[0]
    if op == "if_else" and below[1] == below[2]:
        return below[1]
    return "float"
