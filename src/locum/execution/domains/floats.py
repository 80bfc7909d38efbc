"""Run programs on Python's bool, int, float and str, as RASP does.

As in Weiss's implementation, integers are unbounded, ``/`` returns floats, and ties are rounded to
even. An order comparison of a string with a number raises an error. Strings, products of integers, and
powers that would be too large also raise an error.

``select``, ``best`` and ``aggregate`` use NumPy if the result is identical. This is usually the
case for numbers that NumPy represents exactly, and for strings, which are replaced by their ranks. Sums
are computed from left to right.
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

#: Maximum number of elements of a temporary array with several rows.
_CHUNK = 2**22
#: Maximum number of digits of an integer that Python converts by default, since the time is quadratic.
_MOST_DIGITS = sys.int_info.default_max_str_digits


def to_integer(value: Any) -> int:
    """Convert a token to an integer; a text with more digits than Python converts raises an error."""
    try:
        return int(value)
    except ValueError:
        if not isinstance(value, str) or len(value) <= _MOST_DIGITS:
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


#: Messages of Python that are less precise than a message about the operation and its operands.
_PYTHON = (
    "math domain error",
    "math range error",
    "cannot convert float NaN to integer",
    "cannot convert float infinity to integer",
    "int too large to convert to float",
    "integer division result too large for a float",
)


def describe_failure(error: Exception, op: str, values: Sequence[Value]) -> str:
    """Describe the error of a function of scalars in a sentence about the operation."""
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
    if type(a) is float:  # the common case, in which no product is large
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
    if isinstance(a, str):  # Python would format the string
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
    return any(a == value for value in values)  # not ``in``, which finds a NaN if it is the same object


def _lookup(a: Value, *, table: tuple[tuple[Atom, Atom], ...]) -> Value:
    for key, value in table:
        if key == a:
            return value
    shown = ", ".join(short(key) for key, _ in table[:6]) + (", …" if len(table) > 6 else "")
    raise MissingError(f"expected a key of the lookup table ({shown}), got {short(a)}")


def _round_to(dtype: str) -> Callable[[Value], float]:
    """Return a function that rounds a number to the floating-point type ``dtype``."""

    def rounded(value: Value) -> float:
        if isinstance(value, str):
            raise TypeError(f"expected a number to round to {dtype}, got the string {short(value)}")
        result = float(round_array(np.asarray(float(value)), dtype))
        if math.isinf(result) and math.isfinite(value):
            raise OverflowError(f"the value exceeds the largest {dtype}")
        return result

    return rounded


#: Meanings shared by all domains of real numbers with Python's operators.
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
    """The domain of Python's numbers, booleans and strings."""

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
        for value in values:  # not sum(), which newer versions of Python compensate
            total += value
        mean = float(total * 1.0 / len(values))
        if math.isfinite(mean):
            return mean
        infinite = [value for value in values if not math.isfinite(value)]  # or NaN
        # Without infinite values, the sum overflows but the mean does not.
        return sum(infinite) if infinite else float(sum(map(Fraction, values)) / len(values))

    # Attention, with NumPy ----------------------------------------------------------------------

    def select(self, keys: Sequence[Value], queries: Sequence[Value], predicate: str) -> Pattern:
        together = _comparable([*keys, *queries])
        if together is None:
            apart = len(_strings(keys)) == 1 and len(_strings(queries)) == 1
            if apart and predicate in ("==", "!="):
                # Strings on one side and numbers on the other are never equal.
                return np.full((len(queries), len(keys)), predicate == "!=")
            return super().select(keys, queries, predicate)
        k, q = together[: len(keys)], together[len(keys) :]
        pattern: Pattern = COMPARISONS[predicate].holds(k[None, :], q[:, None])  # [query, key]
        return pattern

    def best(self, selected: Pattern, scores: Sequence[Value]) -> Pattern:
        array = _comparable(scores)
        if array is None:
            return super().best(selected, scores)
        _, order = np.unique(array, return_inverse=True)  # equal scores share a rank, from 0 on
        never = array != array  # NaN is neither greater nor less than anything
        pattern = np.empty_like(selected)
        step = max(1, _CHUNK // len(array))  # some rows at a time, since all ranks would be large
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
        step = max(1, _CHUNK // len(array))  # some rows at a time, since a full copy would be large
        for start in range(0, len(rows), step):
            # ``where`` instead of a product with the pattern, since inf · 0 is NaN. ``accumulate``
            # instead of ``sum``, since it adds from left to right as the definition does.
            chosen = np.where(rows[start : start + step], array[None, :], zero)
            with np.errstate(all="ignore"):  # as in Python, sums of floats may be infinite or NaN
                totals = zero + np.add.accumulate(chosen, axis=1)[:, -1]
                means += (totals.astype(np.float64) / counts[start : start + step]).tolist()
        for row in np.flatnonzero(~np.isfinite(means)).tolist():
            means[row] = self.mean([values[k] for k in np.flatnonzero(rows[row]).tolist()])
        return means


def _strings(values: Sequence[Value]) -> set[bool]:
    """Return a set that contains True if some value is a string, and False if some value is not a
    string.
    """
    return {isinstance(value, str) for value in values}


def _comparable(values: Sequence[Value]) -> NDArray[Any] | None:
    """Return an array of numbers that compare as the values do (the values or their ranks), or None.

    The result is None for a mixture of strings and other values.
    """
    array = _as_array(values)
    if array is not None:
        return array
    if len(_strings(values)) == 2:  # strings and numbers, including NaN
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
    """Return values, or the ranks of strings, as an int64 or float64 array that compares identically.

    The result is None for values of other types, for mixtures of strings and numbers, and if an integer
    is too large.
    """
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
    """Return whether sums of ``values`` in NumPy are rounded no more often than in Python."""
    whole = sum(abs(value) for value in values if type(value) is not float)
    mixed = any(type(value) is float for value in values)
    return bool(whole < (LARGEST_EXACT if mixed else INT64_LIMIT))
