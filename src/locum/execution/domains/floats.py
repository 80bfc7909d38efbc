"""The domain of RASP itself: Python's bool, int, float and str, computed as Python computes.

Integers are unbounded, ``/`` gives floats, halves round to even, comparing a string with a
number is an error: just as in Weiss's implementation. Where Python would build a gigantic number
or string, there is a limit and a clear error instead.

``select``, ``best`` and ``aggregate`` use NumPy where that gives the same answer to the last bit:
numbers that NumPy holds exactly, strings by their rank, sums from left to right.
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from locum.budget import MAX_BITS, MAX_STRING
from locum.execution.array_numbers import round_array
from locum.execution.domains import Domain, MissingError, NotRealError, Pattern, Value
from locum.graph import COMPARISONS, Atom, is_atom, sequence_type
from locum.graph.atoms import INT64_LIMIT, LARGEST_EXACT, short
from locum.graph.operations import ROUNDINGS, TRANSCENDENTAL

#: Numbers in one temporary array.
_CHUNK = 2**22
#: Digits of an integer that Python reads and writes: more would take time in their square.
_MOST_DIGITS = sys.int_info.default_max_str_digits


def to_integer(value: Any) -> int:
    """Return a token as an integer; texts of thousands of digits are refused."""
    try:
        return int(value)
    except ValueError:
        if len(value) <= _MOST_DIGITS:
            raise
    problem = f"expected an integer of at most {_MOST_DIGITS:,} digits, got {len(value):,} characters"
    raise ValueError(problem)


def _to_text(value: Any) -> str:
    try:
        return str(value)
    except ValueError:
        problem = f"expected an integer of at most {_MOST_DIGITS:,} digits to write, got {short(value)}"
    raise ValueError(problem)


_CASTS: dict[str, Callable[[Any], Atom]] = {
    "str": _to_text,
    "int": to_integer,
    "float": float,
    "bool": bool,
}


#: Texts of Python's own errors that say less than the operation and its operands.
_PYTHON = (
    "math domain error",
    "math range error",
    "cannot convert float NaN to integer",
    "cannot convert float infinity to integer",
    "int too large to convert to float",
    "integer division result too large for a float",
)


def describe_failure(error: Exception, op: str, values: Sequence[Value]) -> str:
    """Return the error of a function of scalars as a sentence about the operation."""
    listed = " and ".join(map(short, values))
    if isinstance(error, ZeroDivisionError):
        return "division by zero"
    if isinstance(error, OverflowError) and values:
        reason = "" if str(error) in _PYTHON or len(error.args) > 1 else f": {error}"
        return f"{op} of {listed} is too large{reason}"
    if values and (type(error) is TypeError or str(error) in _PYTHON):
        return f"{op} is not defined for {listed}"
    return str(error)


def _add(a: Value, b: Value) -> Value:
    if isinstance(a, str) and isinstance(b, str) and len(a) + len(b) > MAX_STRING:
        raise OverflowError(f"a string of more than {MAX_STRING} characters")
    return a + b


def _multiply(a: Value, b: Value) -> Value:
    if type(a) is float:  # no product of these is large, and most are of these
        return a * b
    if isinstance(a, int) and isinstance(b, int):
        if a.bit_length() + b.bit_length() > MAX_BITS:
            raise OverflowError(f"an integer of more than {MAX_BITS} bits")
    elif isinstance(a, str) or isinstance(b, str):
        text, times = (a, b) if isinstance(a, str) else (b, a)
        if isinstance(times, int) and len(text) * times > MAX_STRING:
            raise OverflowError(f"a string of more than {MAX_STRING} characters")
    return a * b


def _modulo(a: Value, b: Value) -> Value:
    if isinstance(a, str):  # Python would format a string
        raise TypeError("unsupported operand type(s) for %: strings have no remainder")
    return a % b


def _power(a: Value, b: Value) -> Value:
    if isinstance(a, int) and isinstance(b, int) and a.bit_length() * b > MAX_BITS and abs(a) > 1:
        raise OverflowError(f"an integer of more than {MAX_BITS} bits")
    result = a**b
    if isinstance(result, complex):
        raise NotRealError(f"{short(a)} to the power of {short(b)} is not a real number")
    return result


def _if_else(condition: Value, then: Value, otherwise: Value) -> Value:
    return then if condition else otherwise


def _member(a: Value, *, values: tuple[Atom, ...]) -> bool:
    return any(a == value for value in values)  # not "in": that finds NaN if it is the same object


def _lookup(a: Value, *, table: tuple[tuple[Atom, Atom], ...]) -> Value:
    for key, value in table:
        if key == a:
            return value
    shown = ", ".join(short(key) for key, _ in table[:6]) + (", …" if len(table) > 6 else "")
    raise MissingError(f"the table has nothing for {short(a)}; its keys are {shown}")


def _round_to(dtype: str) -> Callable[[Value], float]:
    """Return the function that rounds a number to a floating-point type."""

    def rounded(value: Value) -> float:
        if isinstance(value, str):
            raise TypeError(f"expected a number to round to {dtype}, got the string {short(value)}")
        result = float(round_array(np.asarray(float(value)), dtype))
        if math.isinf(result) and math.isfinite(value):
            raise OverflowError(f"it exceeds the largest {dtype}")
        return result

    return rounded


#: Meanings that any domain of real numbers with Python's operators can share.
SHARED: Mapping[str, Callable[..., Value]] = {
    "subtract": operator.sub,
    "divide": operator.truediv,
    "negate": operator.neg,
    "absolute": abs,
    "minimum": lambda a, b: a if a < b else b,
    "maximum": lambda a, b: a if a > b else b,
    **{predicate.operation: predicate.holds for predicate in COMPARISONS.values()},
    "and": lambda a, b: bool(a) and bool(b),
    "or": lambda a, b: bool(a) or bool(b),
    "not": operator.not_,
    "if_else": _if_else,
    "indicator": lambda a: 1 if a else 0,
    "member": _member,
    "lookup": _lookup,
    "add": _add,
    "multiply": _multiply,
}


class FloatDomain(Domain):
    """Python's numbers, and strings."""

    name = "float"
    meanings: Mapping[str, Callable[..., Value]] = {
        **SHARED,
        "modulo": _modulo,
        "floor_divide": operator.floordiv,
        "power": _power,
        **{name: getattr(math, name) for name in TRANSCENDENTAL},
        "sqrt": math.sqrt,
        "floor": math.floor,
        "round": round,
        **{dtype: _round_to(dtype) for dtype in ROUNDINGS},
    }

    def accepts(self, value: object) -> bool:
        return is_atom(value)

    def token(self, value: Value, cast: str) -> Value:
        return value if cast == "asis" else _CASTS[cast](value)

    def constant(self, atom: Atom) -> Value:
        return atom

    def mixture(self, values: Sequence[Value]) -> str | None:
        if sequence_type(values) is not None:
            return None
        names = sorted({type(value).__name__ for value in values})
        return f"a sequence cannot mix strings with numbers or bools (it has {', '.join(names)})"

    def is_numeric(self, values: Sequence[Value]) -> bool:
        return sequence_type(values) in ("int", "float")

    def mean(self, values: Sequence[Value]) -> float:
        total: Any = 0
        for value in values:  # not sum(): newer Pythons compensate there
            total += value
        mean = float(total * 1.0 / len(values))
        if math.isfinite(mean):
            return mean
        infinite = [value for value in values if not math.isfinite(value)]  # or NaN
        # If there are none, the sum overflows, and the mean does not.
        return sum(infinite) if infinite else float(sum(map(Fraction, values)) / len(values))

    # Attention, with NumPy ----------------------------------------------------------------------

    def select(self, keys: Sequence[Value], queries: Sequence[Value], predicate: str) -> Pattern:
        together = _comparable([*keys, *queries])
        if together is None:
            apart = len(_strings(keys)) == 1 and len(_strings(queries)) == 1
            if apart and predicate in ("==", "!="):
                # Strings on one side, numbers on the other: these are never equal.
                return np.full((len(queries), len(keys)), predicate == "!=")
            return super().select(keys, queries, predicate)
        k, q = together[: len(keys)], together[len(keys) :]
        pattern: Pattern = COMPARISONS[predicate].holds(k[None, :], q[:, None])  # [query, key]
        return pattern

    def best(self, selected: Pattern, scores: Sequence[Value]) -> Pattern:
        array = _comparable(scores)
        if array is None:
            return super().best(selected, scores)
        _, order = np.unique(array, return_inverse=True)  # equal scores share a rank, 0 upwards
        never = array != array  # nothing exceeds a NaN, and it exceeds nothing
        pattern = np.empty_like(selected)
        step = max(1, _CHUNK // len(array))  # so many rows at a time: all ranks would be large
        for start in range(0, len(selected), step):
            rows = selected[start : start + step]
            ranked = np.where(rows & ~never, order[None, :], -1)
            pattern[start : start + step] = rows & (
                never[None, :] | (ranked == ranked.max(axis=1, keepdims=True))
            )
        return pattern

    def aggregate(self, selected: Pattern, values: Sequence[Value], default: Value) -> list[Value]:
        self.require_numbers(selected, values)
        counts = selected.sum(axis=1)
        one = selected.argmax(axis=1)
        result = [
            values[k] if count == 1 else default
            for k, count in zip(one.tolist(), counts.tolist(), strict=True)
        ]
        several = np.flatnonzero(counts > 1)
        if several.size:
            means = self._means(selected[several], values, counts[several])
            for q, mean in zip(several.tolist(), means, strict=True):
                result[q] = mean
        return result

    def _means(self, rows: Pattern, values: Sequence[Value], counts: NDArray[Any]) -> list[float]:
        array = _as_array(values)
        if array is None or not _sums_are_exact(values):
            return [self.mean([values[k] for k in np.flatnonzero(row).tolist()]) for row in rows]
        zero, means = array.dtype.type(0), list[float]()
        step = max(1, _CHUNK // len(array))  # so many rows at a time: a whole copy would be large
        for start in range(0, len(rows), step):
            # where, not a product with the pattern: inf · 0 would be nan. accumulate, not sum: it
            # adds from left to right, as the definition does, and so gives the same float.
            chosen = np.where(rows[start : start + step], array[None, :], zero)
            with np.errstate(all="ignore"):  # as in Python, sums of floats may be infinite or nan
                totals = zero + np.add.accumulate(chosen, axis=1)[:, -1]
                means += (totals.astype(np.float64) / counts[start : start + step]).tolist()
        for row in np.flatnonzero(~np.isfinite(means)).tolist():
            means[row] = self.mean([values[k] for k in np.flatnonzero(rows[row]).tolist()])
        return means


def _strings(values: Sequence[Value]) -> set[bool]:
    """Return which of strings and others there are among some values."""
    return {isinstance(value, str) for value in values}


def _comparable(values: Sequence[Value]) -> NDArray[Any] | None:
    """Return numbers that compare as the values do: themselves, or their ranks; None if some do not."""
    array = _as_array(values)
    if array is not None:
        return array
    if len(_strings(values)) == 2:  # strings and numbers, be it NaN alone
        return None
    ranks = np.full(len(values), np.nan)
    numbers = [place for place, value in enumerate(values) if value == value]  # NaN has no rank
    numbers.sort(key=values.__getitem__)
    rank = 0
    for before, place in zip([numbers[0], *numbers], numbers, strict=False):
        rank += values[before] != values[place]
        ranks[place] = rank
    return ranks


def _as_array(values: Sequence[Value]) -> NDArray[Any] | None:
    """Return the values as an int64 or float64 array that compares just as they do, or None."""
    types = set(map(type, values))
    if types == {str}:
        ranks = {text: rank for rank, text in enumerate(sorted(set(values)))}
        return np.array([ranks[text] for text in values], dtype=np.int64)
    if not types <= {bool, int, float}:
        return None
    if float in types:
        exact = all(abs(v) <= LARGEST_EXACT for v in values if type(v) is not float)
        return np.array(values, dtype=np.float64) if exact else None
    exact = not values or (min(values) > -INT64_LIMIT and max(values) < INT64_LIMIT)
    return np.array(values, dtype=np.int64) if exact else None


def _sums_are_exact(values: Sequence[Value]) -> bool:
    """Return whether integers can be added in NumPy's types without a rounding Python would not do."""
    whole = sum(abs(value) for value in values if type(value) is not float)
    mixed = any(type(value) is float for value in values)
    return bool(whole < (LARGEST_EXACT if mixed else INT64_LIMIT))
