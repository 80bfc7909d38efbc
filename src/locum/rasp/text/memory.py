"""Count the bytes of all values that are reachable from the names of a session.

A budget sums the memory of everything that was built, and does not subtract garbage. When this sum
exceeds half of the limit, the session counts the memory that is in use, unless there are too many
values to count.
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

#: Bytes of a node with its handle and its entry in the pool, of a part of a tree, and of a scope.
_NODE, _TREE, _SCOPE = 1_500, 400, 1_000
#: Maximum number of values that are counted in a session, and the number counted per step.
_COUNTED, _COUNTED_PER_STEP = 200_000, 15
#: Steps for Python's garbage collection.
_COLLECTION = 8_000


def bytes_of(scopes: Iterable[Scope], most: int) -> tuple[int, int]:
    """Return the number of bytes that are reachable from ``scopes``, and the number of values visited.

    The bytes of each object are counted once. The second number also includes the length of each list.
    The search stops when this number exceeds ``most``.
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
        # Members that are the same object are counted once.
        waiting.extend({id(part): part for part in parts}.values())
    return total, count


def _attribute(value: Any) -> int:
    if isinstance(value, tuple):
        return sum(8 + _attribute(part) for part in value)
    return sys.getsizeof(value)


def _trees(function: Function) -> int:
    """Estimate the number of bytes of a function's syntax trees from their number of nodes."""
    waiting, parts = [*function.body, function.returns], 0
    while waiting:
        tree = waiting.pop()
        parts += 1
        waiting.extend(getattr(tree, "children", ()))
    return _TREE * parts


class Census:
    """A counter that occasionally measures how many bytes the values of a session use."""

    def __init__(self, limits: Limits, budget: Budget) -> None:
        self._limits, self._budget = limits, budget
        #: Number of bytes above which values are counted before each statement.
        self._begins_at = math.inf

    def begin_text(self) -> None:
        """Reset the counter at the start of a text, even if the previous text had too many values to
        count.
        """
        self._begins_at = self._limits.memory / 2

    @property
    def is_due(self) -> bool:
        """Whether the estimated memory is large enough that the values should be counted."""
        return self._budget.memory > self._begins_at

    def count(self, scope: Scope) -> None:
        """Set the budget's memory to the bytes in use, unless there are too many values to count."""
        size, values = bytes_of([scope], _COUNTED)
        self._budget.spend_on_text(1 + values / _COUNTED_PER_STEP)
        if values > _COUNTED:
            self._begins_at = math.inf
            return
        if self._budget.memory - size > self._limits.memory / 8:
            # Functions and the scopes of their definitions refer to each other.
            self._budget.spend_on_text(_COLLECTION)
            gc.collect()
        self._budget.memory = size
