"""Convert Python functions that branch on values, such as ``1 if x > 0 else 0``, to s-ops.

An s-op has no single truth value. At each point where a function requires a truth value, the function
is run once with True and once with False. ``where(condition, …, …)`` combines the results of all paths.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from locum.errors import GraphError
from locum.graph import OPERATIONS, is_atom
from locum.rasp.handles import SOp
from locum.rasp.python import constant, where

#: Maximum number of paths through a function.
MAX_PATHS = 64


class _Undecided(BaseException):
    """Raised if a function requires the truth value of ``condition``, and the path assumes no value.

    The class derives from BaseException, so that functions with ``except Exception`` do not catch it.
    """

    def __init__(self, condition: SOp) -> None:
        super().__init__()
        self.condition = condition


class _Operand:
    """An argument or intermediate s-op of a Python function, with the truth values of the current path
    that have not been used yet.
    """

    def __init__(self, sop: SOp, given: list[bool]) -> None:
        self.sop = sop
        self.given = given

    def __bool__(self) -> bool:
        if not self.given:
            raise _Undecided(self.sop if is_boolean(self.sop) else self.sop != 0)
        return self.given.pop(0)

    # A text or a dictionary lookup would be the same for all values of the s-op.
    def __repr__(self) -> str:
        raise TypeError("the values of an s-op are unknown")

    def __hash__(self) -> int:
        raise TypeError("the values of an s-op are unknown")


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
    """Return whether ``sop`` is a comparison, ``and``, ``or``, ``not`` or a test of membership in a
    set.
    """
    op = sop.node.op
    return OPERATIONS[op].group == "comparison" or op in ("and", "or", "not", "member")


def follow(function: Callable[..., Any], arguments: Sequence[SOp]) -> tuple[SOp, list[SOp]] | None:
    """Run ``function`` on s-ops, and return the resulting s-op and the results of all paths.

    Return None if the function raises an error, has more than ``MAX_PATHS`` paths, or returns an
    invalid result. Valid results are arguments, results of operators on arguments, and atoms.

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
    except Exception:  # functions may raise any error on these arguments
        return None
