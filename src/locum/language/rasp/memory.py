"""How many bytes the values of a session take: a census of all that its names can reach.

A budget adds up what was built and does not see what became garbage meanwhile. When it runs low, a
session counts what is really there.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from locum.budget import Budget
from locum.graph import Node
from locum.language.handles import Selector, SOp
from locum.language.rasp.scope import Scope
from locum.language.rasp.values import Applied, Function

#: Bytes of a node with its handle and its place in the pool, of a part of a tree, of a scope.
_NODE, _TREE, _SCOPE = 1_500, 400, 1_000
#: Values that are counted in one step.
_VALUES = 15


def bytes_of(scopes: Iterable[Scope], budget: Budget) -> int:
    """Count the bytes of everything that the names of these scopes lead to, each once."""
    waiting: list[Any] = list(scopes)
    seen: set[int] = set()
    total = 0
    while waiting:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        budget.spend_on_text(1 / _VALUES)
        match value:
            case str() | int() | float():
                total += sys.getsizeof(value)
            case list():
                total += sys.getsizeof(value)
                waiting.extend(value)
            case dict():
                total += sys.getsizeof(value)
                waiting.extend((*value, *value.values()))
            case SOp() | Selector():
                waiting.append(value.node)
            case Node():
                total += _NODE + sum(_attribute(part) for part in value.attributes.values())
                waiting.extend(value.inputs)
            case Function():
                total += _trees(value, budget)
                waiting.append(value.scope)
            case Scope():
                total += _SCOPE
                waiting.extend(value.names.values())
                if value.parent is not None:
                    waiting.append(value.parent)
            case Applied():
                waiting += (value.program, value.tokens)
    return total


def _attribute(value: Any) -> int:
    if isinstance(value, tuple):
        return sum(8 + _attribute(part) for part in value)
    return sys.getsizeof(value)


def _trees(function: Function, budget: Budget) -> int:
    """Count the parts of a function's trees."""
    waiting, parts = [*function.body, function.returns], 0
    while waiting:
        tree = waiting.pop()
        parts += 1
        waiting.extend(getattr(tree, "children", ()))
    budget.spend_on_text(parts / _VALUES)
    return _TREE * parts
