"""Python functions that branch on numbers, as s-ops: ``not x``, ``x or y``, ``1 if x > 0 else 0``.

An s-op has no truth value of its own, so a function that asks for one is run once for each answer. The
results become ``where(condition, …, …)``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from locum.errors import GraphError
from locum.graph import OPERATIONS, is_atom
from locum.rasp.handles import SOp
from locum.rasp.python import constant, where

#: Paths through a function that are followed.
MAX_PATHS = 64


class _Undecided(BaseException):
    """A truth value that has not been chosen; no function may catch it."""

    def __init__(self, condition: SOp) -> None:
        super().__init__()
        self.condition = condition


class _Operand:
    """An s-op of numbers or booleans that a function computes with; its truth values are given."""

    def __init__(self, sop: SOp, given: list[bool]) -> None:
        self.sop = sop
        self.given = given

    def __bool__(self) -> bool:
        if not self.given:
            raise _Undecided(self.sop if is_boolean(self.sop) else self.sop != 0)
        return self.given.pop(0)

    __hash__ = object.__hash__


def _method(name: str) -> Callable[..., Any]:
    def method(self: _Operand, *others: Any) -> Any:
        plain = [other.sop if isinstance(other, _Operand) else other for other in others]
        return _Operand(getattr(self.sop, name)(*plain), self.given)

    return method


_METHODS = (
    "__abs__", "__add__", "__eq__", "__floor__", "__floordiv__", "__ge__", "__gt__", "__le__", "__lt__",
    "__mod__", "__mul__", "__ne__", "__neg__", "__pow__", "__radd__", "__rfloordiv__", "__rmod__",
    "__rmul__", "__round__", "__rpow__", "__rsub__", "__rtruediv__", "__sub__", "__truediv__",
)  # fmt: skip
for _name in _METHODS:
    setattr(_Operand, _name, _method(_name))


def is_boolean(sop: SOp) -> bool:
    """Return whether all values of an s-op are booleans, by its operation."""
    return OPERATIONS[sop.node.op].group in ("comparison", "logic")


def follow(function: Callable[..., Any], arguments: Sequence[SOp]) -> tuple[SOp, list[SOp]] | None:
    """Return a function of s-ops, and the results of its paths; None where it cannot be called on them.

    >>> from locum.rasp.python import indices
    >>> sign, results = follow(lambda x: 1 if x > 2 else -1 if x < 2 else 0, [indices])
    >>> sign("abcde"), len(results)
    ([-1, -1, 0, 1, 1], 3)
    """
    results: list[SOp] = []

    def explore(decided: tuple[bool, ...]) -> SOp:
        given = list(decided)
        try:
            result = function(*(_Operand(argument, given) for argument in arguments))
        except _Undecided as asked:
            condition = asked.condition
        else:
            if not isinstance(result, _Operand) and not is_atom(result):
                raise GraphError(f"expected numbers as results, got {result!r:.80}")
            results.append(result.sop if isinstance(result, _Operand) else constant(result))
            if len(results) > MAX_PATHS:
                raise GraphError(f"expected at most {MAX_PATHS} paths")
            return results[-1]
        return where(condition, explore((*decided, True)), explore((*decided, False)))

    try:
        return explore(()), results
    except Exception:  # a function may do anything with what it is called on
        return None
