"""Compute with arrays of numbers by the rules of Python's numbers, for the head executor.

Integers are int64, and an integer that may have more than 62 bits raises an error. Mixtures of integers
and floats become floats. An operation that is undefined at a position raises :class:`ElementError` with
this position. Examples are a division by zero, a logarithm of 0 and ``exp(1000.0)``. In IEEE 754
arithmetic, such an operation on floats returns an infinity or NaN instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from locum.execution import elementwise
from locum.execution.arrays import Array, Arrays
from locum.execution.elementwise import MEANINGS, Policy, refusing
from locum.execution.heads import head_strings
from locum.execution.heads.head_strings import ElementError as ElementError
from locum.execution.heads.head_strings import is_text
from locum.graph import COMPARISONS, OPERATIONS, Attribute
from locum.graph.atoms import EXACT_INTEGERS, INT64_LIMIT

_REFUSE = refusing(ElementError)


def _policy(arrays: Arrays) -> Policy:
    """Return the policy for undefined results: IEEE 754 values, or an error."""
    return elementwise.ieee if arrays.ieee else _REFUSE


def apply(
    arrays: Arrays, op: str, inputs: Sequence[Array], attributes: Mapping[str, Attribute]
) -> Array:
    """Compute the elementwise operation ``op`` on the broadcast inputs."""
    with np.errstate(all="ignore"):
        if op == "if_else":
            return choose(arrays, *inputs)
        if OPERATIONS[op].group == "logic" and op not in ("member", "lookup"):
            mask = elementwise.apply(arrays, op, inputs, _policy(arrays))
            return arrays.to_int(mask) if MEANINGS[op].kind == "int" else mask
        table: Any = attributes.get("table", ())
        for _, value in table:
            head_strings.require_atom(value)
        gives_text = any(isinstance(value, str) for _, value in table)
        if gives_text or any(map(is_text, inputs)):
            head_strings.require_strings(arrays)
            return head_strings.apply(op, inputs, attributes)
        if op in ("member", "lookup"):
            return elementwise.apply(arrays, op, inputs, _policy(arrays), attributes)
        return _compute(arrays, op, alike(arrays, *inputs))


def _compute(arrays: Arrays, op: str, inputs: Sequence[Array]) -> Array:
    """Compute arithmetic, a function or a comparison of arrays that are all int64, or all floats."""
    meaning = MEANINGS[op]
    if not arrays.is_int(inputs[0]):
        result = _computed(arrays, op, inputs)
        is_integer = meaning.kind == "int" and not arrays.ieee
        return _integers(arrays, op, result) if is_integer else result
    if meaning.kind == "int":
        return inputs[0]
    whole_power = op == "power" and not arrays.any(inputs[1] < 0)
    if not (meaning.keeps_whole or meaning.kind == "bool" or whole_power):
        return _computed(arrays, op, [real(arrays, a) for a in inputs])
    if meaning.kind is None and meaning.bound is not None:
        require_room(*meaning.bound(*map(arrays.range_of, inputs)))
    return elementwise.apply(arrays, op, inputs, _REFUSE)


def _computed(arrays: Arrays, op: str, inputs: Sequence[Array]) -> Array:
    """Compute a function of floats; undefined results raise an error unless arithmetic is IEEE 754."""
    if arrays.ieee:
        return MEANINGS[op].array(arrays, *inputs)
    return elementwise.checked(arrays, op, inputs, _REFUSE)


def _integers(arrays: Arrays, op: str, rounded: Array) -> Array:
    too_large = abs(rounded) >= INT64_LIMIT
    if arrays.any(too_large):
        raise ElementError(f"{op} returns an integer of more than 62 bits", "refused", too_large)
    return arrays.to_int(rounded)


def compare(arrays: Arrays, predicate: str, a: Array, b: Array, *, negated: bool = False) -> Array:
    """Return ``a ? b``, or its negation, for one of the predicates of ``select``, exactly."""
    if is_text(a) or is_text(b):
        holds = head_strings.apply(COMPARISONS[predicate].operation, (a, b), {})
    else:
        holds = COMPARISONS[predicate].holds(*alike(arrays, a, b))
    return ~holds if negated else holds


def largest(arrays: Arrays, array: Array) -> int:
    """Return the largest absolute value in an array of integers, or 0 for an empty array."""
    return max(map(abs, arrays.range_of(array)))


def alike(arrays: Arrays, *inputs: Array) -> list[Array]:
    """Convert all inputs to int64 if they are all integers, otherwise to floats."""
    if all(map(arrays.is_int, inputs)):
        return [arrays.to_int(a) for a in inputs]
    return [real(arrays, a) for a in inputs]


def real(arrays: Arrays, a: Array) -> Array:
    """Convert an array to floats, or raise an error if an integer might be rounded."""
    limit = EXACT_INTEGERS[arrays.float_name]
    if arrays.is_int(a) and not arrays.is_bool(a) and largest(arrays, a) > limit:
        problem = f"an integer above {limit} meets floats, which would round it"
        raise ElementError(problem, "refused")
    return arrays.to_float(a)


def require_room(*bounds: float) -> None:
    """Raise an error if the absolute value of one of the bounds on integers is 2⁶² or more."""
    if max(map(abs, bounds)) >= INT64_LIMIT:
        raise ElementError("a value may be an integer of more than 62 bits", "refused")


def cast(arrays: Arrays, tokens: Array, kind: str) -> Array:
    """Convert an array of tokens to the type ``kind``: "asis", "float", "bool" or "int"."""
    match kind:
        case "asis":
            return tokens
        case "float":
            return real(arrays, tokens)
        case "bool":
            return elementwise.truth(arrays, tokens)
        case "int" if arrays.is_int(tokens):
            return arrays.to_int(tokens)
        case "int":
            bad = ~(abs(tokens) < INT64_LIMIT)
            if arrays.any(bad):
                raise ElementError("int returns an integer of more than 62 bits", "OverflowError", bad)
            return arrays.to_int(arrays.xp.trunc(tokens))
    raise ElementError(f"expected a cast of numbers, got {kind}", "internal")


def choose(arrays: Arrays, condition: Array, a: Array, b: Array) -> Array:
    """Return ``a`` where the condition holds, else ``b``; the result is boolean if both inputs are."""
    if is_text(a) or is_text(b):
        head_strings.require_strings(arrays)
        return head_strings.choose(elementwise.truth(arrays, condition), a, b)
    if not (arrays.is_bool(a) and arrays.is_bool(b)):
        a, b = alike(arrays, a, b)
    return MEANINGS["if_else"].array(arrays, condition, a, b)


def means(
    arrays: Arrays,
    counts: Array,
    totals: Array,
    default: Attribute,
    bools: bool,
    divided: Callable[[float], Array],
) -> Array:
    """Return the mean of each row, given the numbers of selected keys and the sums of their values.

    A row without selected keys receives ``default``, and a row with one key receives its value.
    ``divided`` is a function of a number that returns the sums of the values divided by this number.
    If a row has several keys and a mean is not finite, this function is called, since only the sum may
    have overflowed.
    """
    xp = arrays.xp
    if arrays.any(counts > 1):
        if bools:
            raise ElementError("expected numbers to average, got booleans", "average")
        number_of_keys = arrays.to_float(xp.where(counts > 0, counts, 1))
        totals = real(arrays, totals) / number_of_keys
        if not arrays.all(xp.isfinite(totals)):
            scale = 2.0 ** arrays.largest(counts).bit_length()
            small, limit = divided(scale) / number_of_keys, float(xp.finfo(totals.dtype).max) / scale
            # A mean exceeds the largest float only by rounding, or if a value is infinite.
            limited = xp.where(xp.isfinite(small), xp.clip(small, -limit, limit), small)
            totals = xp.where(xp.isfinite(totals), totals, limited * scale)
    elif bools:
        totals = elementwise.truth(arrays, totals)
    if arrays.all(counts > 0):
        return totals
    otherwise = head_strings.array_of([default])
    return choose(arrays, counts > 0, totals, head_strings.put(arrays, otherwise))
