"""Elementwise operations on arrays, with the answers that Python's numbers give.

Whole numbers stay int64 and are refused where they could exceed it; mixtures of whole and real numbers
become real. What is an error at one position in RASP (a division by zero, a logarithm of nothing, a
number too large for a float) is an :class:`ElementError` here, which knows where it happened.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from locum.execution.heads.arrays import Array, Backend
from locum.graph import COMPARISONS, Attribute
from locum.graph.atoms import EXACT_INTEGERS, INT64_LIMIT


class ElementError(Exception):
    """An operation without a value; ``bad`` is true where (None: not at a position)."""

    def __init__(self, problem: str, kind: str, bad: Array | None = None) -> None:
        super().__init__(problem)
        self.kind = kind
        self.bad = bad


def apply(
    backend: Backend, op: str, inputs: Sequence[Array], attributes: Mapping[str, Attribute]
) -> Array:
    """The operation at every element of the broadcast inputs."""
    with np.errstate(all="ignore"):
        return _MEANINGS[op](backend, *inputs, **attributes)


def compare(backend: Backend, predicate: str, a: Array, b: Array, *, negated: bool = False) -> Array:
    """``a ? b`` with one of select's predicates (or, negated, that this is not so), exactly."""
    a, b = _alike(backend, a, b)
    holds = COMPARISONS[predicate].holds(a, b)
    return ~holds if negated else holds


def number(value: Any) -> Any:
    """An atom that an array can hold, or an error: strings have no codes."""
    if isinstance(value, str):
        raise ElementError(
            f"the string {value!r} is no number: heads run programs on numbers", "refused"
        )
    if not isinstance(value, float) and abs(value) >= INT64_LIMIT:
        raise ElementError("it has a whole number of more than 62 bits", "refused")
    return value


def largest(backend: Backend, array: Array) -> int:
    """The greatest magnitude among whole numbers; 0 for none."""
    if array.size == 0 if not backend.torch else array.numel() == 0:
        return 0
    whole = backend.to_int(array)
    return max(abs(int(backend.xp.max(whole))), abs(int(backend.xp.min(whole))))


def _alike(backend: Backend, a: Array, b: Array) -> tuple[Array, Array]:
    """Both as whole numbers, or both as real ones."""
    if backend.is_whole(a) and backend.is_whole(b):
        return backend.to_int(a), backend.to_int(b)
    return real(backend, a), real(backend, b)


def real(backend: Backend, a: Array) -> Array:
    """As real numbers, unless a whole number would be rounded."""
    limit = EXACT_INTEGERS[backend.real_name]
    if backend.is_whole(a) and not backend.is_bool(a) and largest(backend, a) > limit:
        problem = f"a whole number above {limit} meets real numbers, which would round it"
        raise ElementError(problem, "refused")
    return backend.to_real(a)


def _refuse(backend: Backend, bad: Array, problem: str, kind: str) -> None:
    if bool(backend.xp.any(bad)):
        raise ElementError(problem, kind, bad)


def require_room(bound: int) -> None:
    """Refuse whole numbers that int64 might not hold."""
    if bound >= INT64_LIMIT:
        raise ElementError("it may have a whole number of more than 62 bits", "refused")


def _arithmetic(name: str) -> Callable[..., Array]:
    def meaning(backend: Backend, a: Array, b: Array) -> Array:
        a, b = _alike(backend, a, b)
        if backend.is_whole(a):
            first, second = largest(backend, a), largest(backend, b)
            require_room(first * second if name == "multiply" else first + second)
        return getattr(backend.xp, name)(a, b)

    return meaning


def _division(name: str) -> Callable[..., Array]:
    def meaning(backend: Backend, a: Array, b: Array) -> Array:
        a, b = _alike(backend, a, b)
        if name == "divide":
            a, b = real(backend, a), real(backend, b)
        _refuse(backend, b == 0, "division by zero", "ZeroDivisionError")
        return getattr(backend.xp, name)(a, b)

    return meaning


def _power(backend: Backend, a: Array, b: Array) -> Array:
    xp = backend.xp
    a, b = _alike(backend, a, b)
    _refuse(backend, (a == 0) & (b < 0), "zero to a negative power", "ZeroDivisionError")
    if backend.is_whole(a):
        if not bool(xp.any(b < 0)):
            require_room(
                2 ** min(math.ceil(largest(backend, b) * math.log2(largest(backend, a) + 1)), 99)
            )
            return xp.pow(a, b)
        a, b = real(backend, a), real(backend, b)
    # Infinity and nan have rules of their own in Python; only what is finite is vouched for.
    result = xp.pow(a, b)
    finite = xp.isfinite(a) & xp.isfinite(b)
    _refuse(backend, xp.isnan(result) & finite, "a power that is not a real number", "not real")
    _refuse(backend, xp.isinf(result) & finite, "a power that is too large", "OverflowError")
    return result


def _function(
    name: str, allowed: Callable[[Any, Array], Array] | None = None
) -> Callable[[Backend, Array], Array]:
    def meaning(backend: Backend, a: Array) -> Array:
        a = real(backend, a)
        if allowed is not None:
            bad = ~(allowed(backend.xp, a) | backend.xp.isnan(a))
            _refuse(backend, bad, f"{name} is not defined there", "ValueError")
        result = getattr(backend.xp, name)(a)
        too_large = backend.xp.isinf(result) & backend.xp.isfinite(a)
        _refuse(backend, too_large, f"{name} is too large there", "OverflowError")
        return result

    return meaning


def _rounding(name: str) -> Callable[[Backend, Array], Array]:
    def meaning(backend: Backend, a: Array) -> Array:
        if backend.is_whole(a):
            return backend.to_int(a)
        bad = ~(backend.xp.abs(a) < INT64_LIMIT)
        _refuse(backend, bad, f"{name} has no whole number of 62 bits there", "OverflowError")
        return backend.to_int(getattr(backend.xp, name)(a))

    return meaning


def cast(backend: Backend, tokens: Array, kind: str) -> Array:
    """Tokens as the program sees them."""
    if kind == "asis":
        return tokens
    if kind == "float":
        return real(backend, tokens)
    if kind == "bool":
        return truth(tokens)
    if kind == "int":
        return _rounding("trunc")(backend, tokens)
    raise ElementError("heads run programs on numbers, and these are strings", "refused")


def _extreme(predicate: str) -> Callable[..., Array]:
    def meaning(backend: Backend, a: Array, b: Array) -> Array:
        a, b = _alike(backend, a, b)
        return backend.xp.where(compare(backend, predicate, a, b), a, b)

    return meaning


def choose(backend: Backend, condition: Array, a: Array, b: Array) -> Array:
    """``a`` where the condition holds, else ``b``; truth values stay such if both are."""
    if not (backend.is_bool(a) and backend.is_bool(b)):
        a, b = _alike(backend, a, b)
    return backend.xp.where(truth(condition), a, b)


def truth(a: Array) -> Array:
    """Truth as Python sees it."""
    return a != 0


def _negate(backend: Backend, a: Array) -> Array:
    return -backend.to_int(a) if backend.is_whole(a) else -a


def _absolute(backend: Backend, a: Array) -> Array:
    return backend.xp.abs(backend.to_int(a) if backend.is_whole(a) else a)


def _member(backend: Backend, a: Array, *, values: Any) -> Array:
    found = backend.xp.zeros_like(a, dtype=backend.xp.bool)
    for value in values:
        if not isinstance(value, str):
            found = found | compare(backend, "==", a, _scalar(backend, value))
    return found


def _lookup(backend: Backend, a: Array, *, table: Any) -> Array:
    pairs = [(key, number(value)) for key, value in table if not isinstance(key, str)]
    if not pairs:
        raise ElementError("the table has nothing for numbers", "missing")
    keys = np.array([number(key) for key, _ in pairs])
    order = np.argsort(keys, kind="stable")
    values = _values_of_table([value for _, value in pairs])
    a, ascending = _alike(backend, a, backend.put(keys[order]))
    place = backend.xp.clip(backend.xp.searchsorted(ascending, a.reshape(-1)), 0, len(keys) - 1)
    place = place.reshape(a.shape)
    _refuse(backend, ascending[place] != a, "the table has nothing for the value there", "missing")
    return backend.put(values[order])[place]


def _values_of_table(values: list[Any]) -> np.ndarray[Any, Any]:
    if any(isinstance(value, float) for value in values):
        return np.array([float(value) for value in values])
    kind = np.bool_ if all(isinstance(value, bool) for value in values) else np.int64
    return np.array(values, dtype=kind)


def means(backend: Backend, counts: Array, totals: Array, default: Attribute, bools: bool) -> Array:
    """No key: the default. One: its value. More: the sum over the number, as a real number."""
    xp = backend.xp
    if bool(xp.any(counts > 1)):
        if bools:
            raise ElementError("asked to average several values, but they are truth values", "average")
        totals = real(backend, totals) / xp.astype(xp.where(counts > 0, counts, 1), backend.real)
    elif bools:
        totals = truth(totals)
    if bool(xp.all(counts > 0)):
        return totals
    return choose(backend, counts > 0, totals, _scalar(backend, default))


def _scalar(backend: Backend, value: Any) -> Array:
    return backend.put(np.asarray(number(value)))


def _logic(function: Callable[[Any, Array, Array], Array]) -> Callable[..., Array]:
    return lambda backend, a, b: function(backend.xp, truth(a), truth(b))


_MEANINGS: Mapping[str, Callable[..., Array]] = {
    "add": _arithmetic("add"),
    "subtract": _arithmetic("subtract"),
    "multiply": _arithmetic("multiply"),
    "divide": _division("divide"),
    "modulo": _division("remainder"),
    "floor_divide": _division("floor_divide"),
    "power": _power,
    "negate": _negate,
    "absolute": _absolute,
    "minimum": _extreme("<"),
    "maximum": _extreme(">"),
    "exp": _function("exp"),
    "log": _function("log", lambda xp, a: a > 0),
    "sqrt": _function("sqrt", lambda xp, a: a >= 0),
    "erf": lambda backend, a: backend.error_function(real(backend, a)),
    "tanh": _function("tanh"),
    "floor": _rounding("floor"),
    "round": _rounding("round"),
    "equal": lambda backend, a, b: compare(backend, "==", a, b),
    "not_equal": lambda backend, a, b: compare(backend, "!=", a, b),
    "less": lambda backend, a, b: compare(backend, "<", a, b),
    "less_equal": lambda backend, a, b: compare(backend, "<=", a, b),
    "greater": lambda backend, a, b: compare(backend, ">", a, b),
    "greater_equal": lambda backend, a, b: compare(backend, ">=", a, b),
    "and": _logic(lambda xp, a, b: a & b),
    "or": _logic(lambda xp, a, b: a | b),
    "not": lambda backend, a: ~truth(a),
    "if_else": choose,
    "indicator": lambda backend, a: backend.to_int(truth(a)),
    "member": _member,
    "lookup": _lookup,
}
