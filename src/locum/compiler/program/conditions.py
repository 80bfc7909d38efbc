"""Selectors as formulas: conjunctions of conditions, and what they say about values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from locum.compiler.target import DOMAIN
from locum.errors import CompileError
from locum.graph import COMPARISONS, Atom, Node, Sort, abbreviate, build, postorder, sort_of

#: [query, key]
Pattern: TypeAlias = NDArray[np.bool_]


def conditions(selector: Node) -> list[Node]:
    """Write a selector as a conjunction, with negations pushed inwards as far as they go.

    >>> from locum import indices, select, tokens
    >>> s = ~(select(tokens, 1, "==") | select(indices, indices, "<"))
    >>> conditions(s.node)
    [<select: select(tokens, 1, !=)>, <select: select(indices, indices, >=)>]
    """
    conjuncts: list[Node] = []
    stack = [(selector, False)]
    while stack:
        node, negated = stack.pop()
        if node.op == "selector_not":
            stack.append((node.inputs[0], not negated))
        elif node.op == ("selector_or" if negated else "selector_and"):
            stack.extend((i, negated) for i in reversed(node.inputs))
        elif node.op == "select" and negated:
            negation = COMPARISONS[node.predicate].negation
            conjuncts.append(build("select", *node.inputs, predicate=negation))
        else:
            conjuncts.append(build("selector_not", node) if negated else node)
    return list(dict.fromkeys(conjuncts))


def selectors_of(condition: Node) -> list[Node]:
    """List the selectors that a formula is made of, not those inside the s-ops that it compares.

    >>> from locum import select, selector_width, tokens
    >>> alike = selector_width(select(tokens, tokens, "=="))
    >>> [node.op for node in selectors_of((~select(alike, 1, "==")).node)]
    ['select', 'selector_not']
    """
    return list(postorder(condition, into=lambda node: sort_of(node) is Sort.SELECTOR))


def select(keys: Sequence[Atom], queries: Sequence[Atom], predicate: str, where: Node) -> Pattern:
    """Return the pattern of a comparison, as RASP compares."""
    try:
        return DOMAIN.select(keys, queries, predicate)
    except TypeError as error:
        raise CompileError(f"these cannot be compared: {error}", abbreviate(where)) from None


def evaluated(condition: Node, leaf: Callable[[Node, Sequence[Pattern]], Pattern]) -> Pattern:
    """Return the pattern of a formula; ``leaf`` gives that of a comparison, or of the best of keys."""
    patterns: dict[Node, Pattern] = {}
    for node in selectors_of(condition):
        parts = [patterns[i] for i in node.inputs if i in patterns]
        match node.op:
            case "selector_and":
                patterns[node] = parts[0] & parts[1]
            case "selector_or":
                patterns[node] = parts[0] | parts[1]
            case "selector_not":
                patterns[node] = ~parts[0]
            case _:
                patterns[node] = leaf(node, parts)
    return patterns[condition]


def reflexive(condition: Node) -> bool:
    """Return whether a query certainly selects the key at its own position."""
    if condition.op != "select":
        return False
    key, query = condition.inputs
    return key is query and condition.predicate in ("==", "<=", ">=")
