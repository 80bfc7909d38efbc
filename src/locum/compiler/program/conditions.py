"""Selectors as formulas: conjunctions of conditions, and what they say about values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from locum.compiler.target import DOMAIN
from locum.errors import CompileError
from locum.graph import COMPARISONS, Atom, Node, abbreviate, build, postorder

#: [query, key]
Pattern: TypeAlias = NDArray[np.bool_]


def conditions(selector: Node) -> list[Node]:
    """The selector as a conjunction; negations are carried inwards as far as they go.

    >>> from locum import indices, select, tokens
    >>> s = ~(select(tokens, 1, "==") | select(indices, indices, "<"))
    >>> conditions(s.node)
    [<select: select(tokens, 1, !=)>, <select: select(indices, indices, >=)>]
    """
    found: list[Node] = []
    stack = [(selector, False)]
    while stack:
        node, negated = stack.pop()
        if node.op == "selector_not":
            stack.append((node.inputs[0], not negated))
        elif node.op == ("selector_or" if negated else "selector_and"):
            stack.extend((i, negated) for i in reversed(node.inputs))
        elif node.op == "select" and negated:
            found.append(
                build(
                    "select",
                    *node.inputs,
                    predicate=COMPARISONS[str(node.attributes["predicate"])].negation,
                )
            )
        else:
            found.append(build("selector_not", node) if negated else node)
    return list(dict.fromkeys(found))


def select(keys: Sequence[Atom], queries: Sequence[Atom], predicate: str, where: Node) -> Pattern:
    """The pattern of a comparison, as RASP compares."""
    try:
        return DOMAIN.select(keys, queries, predicate)
    except TypeError as error:
        raise CompileError(f"these cannot be compared: {error}", abbreviate(where)) from None


def evaluated(
    condition: Node,
    keys: Sequence[Node],
    key_values: Sequence[tuple[Atom, ...]],
    queries: Sequence[Node],
    query_values: Sequence[tuple[Atom, ...]],
) -> Pattern:
    """The pattern of a formula, for these values of its keys and queries."""
    found: dict[Node, Pattern] = {}
    for node in postorder(condition):
        if node.op == "select":
            k, q = keys.index(node.inputs[0]), queries.index(node.inputs[1])
            found[node] = select(
                [values[k] for values in key_values],
                [values[q] for values in query_values],
                str(node.attributes["predicate"]),
                node,
            )
        elif node.op == "selector_not":
            found[node] = ~found[node.inputs[0]]
        elif node.op == "selector_and":
            found[node] = found[node.inputs[0]] & found[node.inputs[1]]
        elif node.op == "selector_or":
            found[node] = found[node.inputs[0]] | found[node.inputs[1]]
    return found[condition]


def reflexive(condition: Node) -> bool:
    """Whether a query certainly selects the key at its own position."""
    if condition.op != "select":
        return False
    key, query = condition.inputs
    return key is query and condition.attributes["predicate"] in ("==", "<=", ">=")
