"""How many bytes the values of a session take: a census of all that its names can reach.

A budget adds up what was built and does not see what became garbage meanwhile. When it runs low, a
session counts what is really there, unless there is too much to count.
"""

from __future__ import annotations

import gc
import math
import sys
from collections.abc import Iterable
from typing import Any

from locum.budget import Budget
from locum.graph import Node
from locum.rasp.handles import Selector, SOp
from locum.rasp.text.limits import Limits
from locum.rasp.text.machine import Applied, Function, Scope

#: Bytes of a node with its handle and its place in the pool, of a part of a tree, of a scope.
_NODE, _TREE, _SCOPE = 1_500, 400, 1_000
#: Values that are counted to see how much memory a session takes: at most, and in one step.
_COUNTED, _COUNTED_PER_STEP = 200_000, 15
#: Steps that it takes Python to find unreachable values.
_COLLECTION = 8_000


def bytes_of(scopes: Iterable[Scope], most: int) -> tuple[int, int]:
    """Count the bytes and the values of everything that the names of these scopes lead to, each once.

    Where there are more than ``most`` values, counting ends.
    """
    waiting: list[Any] = list(scopes)
    seen: set[int] = set()
    total = count = 0
    while waiting and count <= most:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        parts: Iterable[Any] = ()
        match value:
            case str() | int() | float():
                total += sys.getsizeof(value)
            case list():
                total += sys.getsizeof(value)
                count += len(value)
                parts = value if count <= most else ()
            case dict():
                total += sys.getsizeof(value)
                parts = (*value, *value.values())
            case SOp() | Selector():
                parts = (value.node,)
            case Node():
                total += _NODE + sum(_attribute(part) for part in value.attributes.values())
                parts = value.inputs
            case Function():
                total += _trees(value)
                parts = (value.scope,)
            case Scope():
                total += _SCOPE
                parts = (*value.names.values(), value.parent)
            case Applied():
                parts = (value.program, value.tokens)
        count += 1
        # Of members that are the same object, one is enough.
        waiting.extend({id(part): part for part in parts}.values())
    return total, count


def _attribute(value: Any) -> int:
    if isinstance(value, tuple):
        return sum(8 + _attribute(part) for part in value)
    return sys.getsizeof(value)


def _trees(function: Function) -> int:
    """Count the parts of a function's trees."""
    waiting, parts = [*function.body, function.returns], 0
    while waiting:
        tree = waiting.pop()
        parts += 1
        waiting.extend(getattr(tree, "children", ()))
    return _TREE * parts


class Census:
    """Counts from time to time how many bytes the values of a session really take."""

    def __init__(self, limits: Limits, budget: Budget) -> None:
        self._limits, self._budget = limits, budget
        #: From so many bytes on, values are counted before each statement.
        self._begins_at = math.inf

    def begin_text(self) -> None:
        """Count again, even if values were too many in the text before."""
        self._begins_at = self._limits.memory / 2

    @property
    def is_due(self) -> bool:
        """Whether so much memory may be in use that values are to be counted."""
        return self._budget.memory > self._begins_at

    def count(self, scope: Scope) -> None:
        """Count what values really take, unless they are too many to be counted often."""
        size, values = bytes_of([scope], _COUNTED)
        self._budget.spend_on_text(1 + values / _COUNTED_PER_STEP)
        if values > _COUNTED:
            self._begins_at = math.inf
            return
        if self._budget.memory - size > self._limits.memory / 8:
            # Functions and the scopes they are defined in refer to each other.
            self._budget.spend_on_text(_COLLECTION)
            gc.collect()
        self._budget.memory = size
