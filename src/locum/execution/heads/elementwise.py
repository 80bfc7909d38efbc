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

from locum.execution.arrays import Array, Arrays, erf
from locum.graph import COMPARISONS, Attribute
from locum.graph.atoms import EXACT_INTEGERS, INT64_LIMIT


class ElementError(Exception):
    """An operation without a value; ``bad`` is true where (None: not at a position)."""

    def __init__(self, problem: str, kind: str, bad: Array | None = None) -> None:
        super().__init__(problem)
        self.kind = kind
        self.bad = bad


def apply(
    arrays: Arrays, op: str, inputs: Sequence[Array], attributes: Mapping[str, Attribute]
) -> Array:
    """The operation at every element of the broadcast inputs."""
    with np.errstate(all="ignore"):
        return _MEANINGS[op](arrays, *inputs, **attributes)


def compare(arrays: Arrays, predicate: str, a: Array, b: Array, *, negated: bool = False) -> Array:
    """``a ? b`` with one of select's predicates (or, negated, that this is not so), exactly."""
    a, b = _alike(arrays, a, b)
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


def largest(arrays: Arrays, array: Array) -> int:
    """The greatest magnitude among whole numbers; 0 for none."""
    return max(map(abs, arrays.range_of(array)))


def _alike(arrays: Arrays, a: Array, b: Array) -> tuple[Array, Array]:
    """Both as whole numbers, or both as real ones."""
    if arrays.is_int(a) and arrays.is_int(b):
        return arrays.to_int(a), arrays.to_int(b)
    return real(arrays, a), real(arrays, b)


def real(arrays: Arrays, a: Array) -> Array:
    """As real numbers, unless a whole number would be rounded."""
    limit = EXACT_INTEGERS[arrays.float_name]
    if arrays.is_int(a) and not arrays.is_bool(a) and largest(arrays, a) > limit:
        problem = f"a whole number above {limit} meets real numbers, which would round it"
        raise ElementError(problem, "refused")
    return arrays.to_float(a)


def _refuse(arrays: Arrays, bad: Array, problem: str, kind: str) -> None:
    if bool(arrays.xp.any(bad)):
        raise ElementError(problem, kind, bad)


def require_room(bound: int) -> None:
    """Refuse whole numbers that int64 might not hold."""
    if bound >= INT64_LIMIT:
        raise ElementError("it may have a whole number of more than 62 bits", "refused")


def _arithmetic(name: str) -> Callable[..., Array]:
    def meaning(arrays: Arrays, a: Array, b: Array) -> Array:
        a, b = _alike(arrays, a, b)
        if arrays.is_int(a):
            first, second = largest(arrays, a), largest(arrays, b)
            require_room(first * second if name == "multiply" else first + second)
        return getattr(arrays.xp, name)(a, b)

    return meaning


def _division(name: str) -> Callable[..., Array]:
    def meaning(arrays: Arrays, a: Array, b: Array) -> Array:
        a, b = _alike(arrays, a, b)
        if name == "divide":
            a, b = real(arrays, a), real(arrays, b)
        _refuse(arrays, b == 0, "division by zero", "ZeroDivisionError")
        return getattr(arrays.xp, name)(a, b)

    return meaning


def _power(arrays: Arrays, a: Array, b: Array) -> Array:
    xp = arrays.xp
    a, b = _alike(arrays, a, b)
    _refuse(arrays, (a == 0) & (b < 0), "zero to a negative power", "ZeroDivisionError")
    if arrays.is_int(a):
        if not bool(xp.any(b < 0)):
            require_room(
                2 ** min(math.ceil(largest(arrays, b) * math.log2(largest(arrays, a) + 1)), 99)
            )
            return xp.pow(a, b)
        a, b = real(arrays, a), real(arrays, b)
    # Infinity and nan have rules of their own in Python; only what is finite is vouched for.
    result = xp.pow(a, b)
    finite = xp.isfinite(a) & xp.isfinite(b)
    _refuse(arrays, xp.isnan(result) & finite, "a power that is not a real number", "not real")
    _refuse(arrays, xp.isinf(result) & finite, "a power that is too large", "OverflowError")
    return result


def _function(
    name: str, allowed: Callable[[Any, Array], Array] | None = None
) -> Callable[[Arrays, Array], Array]:
    def meaning(arrays: Arrays, a: Array) -> Array:
        a = real(arrays, a)
        if allowed is not None:
            bad = ~(allowed(arrays.xp, a) | arrays.xp.isnan(a))
            _refuse(arrays, bad, f"{name} is not defined there", "ValueError")
        result = getattr(arrays.xp, name)(a)
        too_large = arrays.xp.isinf(result) & arrays.xp.isfinite(a)
        _refuse(arrays, too_large, f"{name} is too large there", "OverflowError")
        return result

    return meaning


def _rounding(name: str) -> Callable[[Arrays, Array], Array]:
    def meaning(arrays: Arrays, a: Array) -> Array:
        if arrays.is_int(a):
            return arrays.to_int(a)
        bad = ~(arrays.xp.abs(a) < INT64_LIMIT)
        _refuse(arrays, bad, f"{name} has no whole number of 62 bits there", "OverflowError")
        return arrays.to_int(getattr(arrays.xp, name)(a))

    return meaning


def cast(arrays: Arrays, tokens: Array, kind: str) -> Array:
    """Tokens as the program sees them."""
    if kind == "asis":
        return tokens
    if kind == "float":
        return real(arrays, tokens)
    if kind == "bool":
        return truth(tokens)
    if kind == "int":
        return _rounding("trunc")(arrays, tokens)
    raise ElementError("heads run programs on numbers, and these are strings", "refused")


def _extreme(predicate: str) -> Callable[..., Array]:
    def meaning(arrays: Arrays, a: Array, b: Array) -> Array:
        a, b = _alike(arrays, a, b)
        return arrays.xp.where(compare(arrays, predicate, a, b), a, b)

    return meaning


def choose(arrays: Arrays, condition: Array, a: Array, b: Array) -> Array:
    """``a`` where the condition holds, else ``b``; truth values stay such if both are."""
    if not (arrays.is_bool(a) and arrays.is_bool(b)):
        a, b = _alike(arrays, a, b)
    return arrays.xp.where(truth(condition), a, b)


def truth(a: Array) -> Array:
    """Truth as Python sees it."""
    return a != 0


def _negate(arrays: Arrays, a: Array) -> Array:
    return -arrays.to_int(a) if arrays.is_int(a) else -a


def _absolute(arrays: Arrays, a: Array) -> Array:
    return arrays.xp.abs(arrays.to_int(a) if arrays.is_int(a) else a)


def _member(arrays: Arrays, a: Array, *, values: Any) -> Array:
    found = arrays.xp.zeros_like(a, dtype=arrays.xp.bool)
    for value in values:
        if not isinstance(value, str):
            found = found | compare(arrays, "==", a, _scalar(arrays, value))
    return found


def _lookup(arrays: Arrays, a: Array, *, table: Any) -> Array:
    pairs = [(key, number(value)) for key, value in table if not isinstance(key, str)]
    if not pairs:
        raise ElementError("the table has nothing for numbers", "missing")
    keys = np.array([number(key) for key, _ in pairs])
    order = np.argsort(keys, kind="stable")
    values = _values_of_table([value for _, value in pairs])
    a, ascending = _alike(arrays, a, arrays.put(keys[order]))
    place = arrays.xp.clip(arrays.xp.searchsorted(ascending, a.reshape(-1)), 0, len(keys) - 1)
    place = place.reshape(a.shape)
    _refuse(arrays, ascending[place] != a, "the table has nothing for the value there", "missing")
    return arrays.put(values[order])[place]


def _values_of_table(values: list[Any]) -> np.ndarray[Any, Any]:
    if any(isinstance(value, float) for value in values):
        return np.array([float(value) for value in values])
    kind = np.bool_ if all(isinstance(value, bool) for value in values) else np.int64
    return np.array(values, dtype=kind)


def means(arrays: Arrays, counts: Array, totals: Array, default: Attribute, bools: bool) -> Array:
    """No key: the default. One: its value. More: the sum over the number, as a real number."""
    xp = arrays.xp
    if bool(xp.any(counts > 1)):
        if bools:
            raise ElementError("asked to average several values, but they are truth values", "average")
        totals = real(arrays, totals) / xp.astype(xp.where(counts > 0, counts, 1), arrays.float)
    elif bools:
        totals = truth(totals)
    if bool(xp.all(counts > 0)):
        return totals
    return choose(arrays, counts > 0, totals, _scalar(arrays, default))


def _scalar(arrays: Arrays, value: Any) -> Array:
    return arrays.put(np.asarray(number(value)))


def _logic(function: Callable[[Any, Array, Array], Array]) -> Callable[..., Array]:
    return lambda arrays, a, b: function(arrays.xp, truth(a), truth(b))


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
    "erf": lambda arrays, a: erf(real(arrays, a)),
    "tanh": _function("tanh"),
    "floor": _rounding("floor"),
    "round": _rounding("round"),
    "equal": lambda arrays, a, b: compare(arrays, "==", a, b),
    "not_equal": lambda arrays, a, b: compare(arrays, "!=", a, b),
    "less": lambda arrays, a, b: compare(arrays, "<", a, b),
    "less_equal": lambda arrays, a, b: compare(arrays, "<=", a, b),
    "greater": lambda arrays, a, b: compare(arrays, ">", a, b),
    "greater_equal": lambda arrays, a, b: compare(arrays, ">=", a, b),
    "and": _logic(lambda xp, a, b: a & b),
    "or": _logic(lambda xp, a, b: a | b),
    "not": lambda arrays, a: ~truth(a),
    "if_else": choose,
    "indicator": lambda arrays, a: arrays.to_int(truth(a)),
    "member": _member,
    "lookup": _lookup,
}
