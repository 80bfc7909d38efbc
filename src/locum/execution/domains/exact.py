"""Run programs on exact rational numbers, without rounding.

Integers are Python integers. Floats, fractions, and results such as quotients, roots and means are
flint's ``fmpq`` internally, and :class:`fractions.Fraction` in the result. A float in the program or
the input is the rational number that it represents: 0.5 is 1/2, and 0.1 is
3602879701896397/36028797018963968. For one tenth, use the token ``Fraction(1, 10)``, or divide by 10
in the program. Transcendental functions, roundings to floating-point types, and roots with irrational
values are not supported.

>>> import locum
>>> locum.aggregate(locum.full, locum.tokens)([1, 2, 4], domain="exact")
[Fraction(7, 3), Fraction(7, 3), Fraction(7, 3)]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from flint import fmpq, fmpz

from locum.budget import MAX_BITS
from locum.execution.domains import Domain, NotRealError, Pattern, Value
from locum.execution.domains.floats import SHARED, FloatDomain
from locum.graph import Atom, is_atom
from locum.graph.operations import ROUNDINGS, TRANSCENDENTAL

#: A domain that compares integers exactly, with NumPy if they are below 2⁶² in absolute value.
_INTEGERS = FloatDomain()
_LEAVES = "it leaves the rationals; run it in the float domain"


def _rational(value: Value) -> Value:
    """Convert floats and fractions to ``fmpq``; return ints, bools and strings unchanged."""
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{value!r} is not a rational number")
        return fmpq(*value.as_integer_ratio())
    if isinstance(value, Fraction):
        return fmpq(value.numerator, value.denominator)
    return value


def _number(value: Value) -> fmpq:
    if isinstance(value, str):
        raise TypeError(f"the string {value!r} is not a number")
    return value if isinstance(value, fmpq) else fmpq(int(value))


def _divide(a: Value, b: Value) -> fmpq:
    if _number(b) == 0:
        raise ZeroDivisionError("division by zero")
    return _number(a) / _number(b)


def _floor(a: Value) -> int:
    return int(_number(a).floor())


def _floor_divide(a: Value, b: Value) -> int:
    return _floor(_divide(a, b))


def _modulo(a: Value, b: Value) -> Value:
    if isinstance(a, int) and isinstance(b, int) and b != 0:
        return a % b
    return _number(a) - _number(b) * _floor_divide(a, b)


def _round(a: Value) -> int:
    exact = _number(a)
    return round(Fraction(int(exact.p), int(exact.q)))


def _root(a: fmpq, degree: int) -> fmpq:
    """Return the rational root of ``a`` with this degree, or raise an error if the root is not
    rational.
    """
    if a < 0 and degree % 2 == 0:
        raise NotRealError(f"{a} has no real root of degree {degree}")
    sign = -1 if a < 0 else 1
    parts = []
    for part in (abs(int(a.p)), int(a.q)):
        root = int(fmpz(part).root(degree))
        if root**degree != part:
            raise ValueError(f"the root of degree {degree} of {a} is not rational")
        parts.append(root)
    return fmpq(sign * parts[0], parts[1])


def _sqrt(a: Value) -> fmpq:
    return _root(_number(a), 2)


def _power(a: Value, b: Value) -> Value:
    base, exponent = _number(a), _number(b)
    if base == 0 and exponent < 0:
        raise ZeroDivisionError("zero to a negative power")
    if base < 0 and exponent.q != 1:
        raise NotRealError(f"{base} to the power of {exponent} is not a real number")
    size = max(int(base.p).bit_length(), int(base.q).bit_length())
    if abs(exponent) * size > MAX_BITS and base not in (-1, 0, 1):
        raise OverflowError(f"a number of more than {MAX_BITS} bits")
    whole = isinstance(a, int) and exponent.q == 1 and exponent >= 0
    result = _root(base, int(exponent.q)) ** int(exponent.p)
    return int(result.p) if whole else result


def _member(a: Value, *, values: tuple[Atom, ...]) -> bool:
    return any(a == _rational(value) for value in values)


def _lookup(a: Value, *, table: tuple[tuple[Atom, Atom], ...]) -> Value:
    exact = tuple((_rational(key), _rational(value)) for key, value in table)
    return SHARED["lookup"](a, table=exact)


class ExactDomain(Domain):
    """The domain of rational numbers, booleans and strings."""

    name = "exact"
    meanings: Mapping[str, Callable[..., Value]] = {
        **SHARED,
        "divide": _divide,
        "modulo": _modulo,
        "floor_divide": _floor_divide,
        "power": _power,
        "sqrt": _sqrt,
        "floor": _floor,
        "round": _round,
        "member": _member,
        "lookup": _lookup,
    }
    refusals: Mapping[str, str] = {
        **dict.fromkeys(TRANSCENDENTAL, _LEAVES),
        **dict.fromkeys(ROUNDINGS, "it rounds; run it in the float domain"),
    }

    def accepts(self, value: object) -> bool:
        return is_atom(value) or isinstance(value, (Fraction, fmpq))

    def token(self, value: Value, cast: str) -> Value:
        if cast == "str":
            return str(value)
        if cast == "bool":
            return bool(value)
        if isinstance(value, str) and cast == "int":
            return int(value)
        if isinstance(value, str) and cast == "float":
            if not math.isfinite(float(value)):
                raise ValueError(f"{value!r} is not a rational number")
            value = Fraction(value)
        if cast == "int":
            exact = _number(_rational(value))
            return math.trunc(Fraction(int(exact.p), int(exact.q)))
        return _number(_rational(value)) if cast == "float" else _rational(value)

    def constant(self, atom: Atom) -> Value:
        return _rational(atom)

    def mixture(self, values: Sequence[Value]) -> str | None:
        if len({issubclass(kind, str) for kind in set(map(type, values))}) < 2:
            return None
        return "a sequence cannot mix strings with numbers or bools"

    def is_numeric(self, values: Sequence[Value]) -> bool:
        kinds = set(map(type, values))
        return bool(kinds - {bool}) and not any(issubclass(kind, str) for kind in kinds)

    def select(self, keys: Sequence[Value], queries: Sequence[Value], predicate: str) -> Pattern:
        if {*map(type, keys), *map(type, queries)} <= {bool, int}:  # the common case of positions
            return _INTEGERS.select(keys, queries, predicate)
        return super().select(keys, queries, predicate)

    def mean(self, values: Sequence[Value]) -> Value:
        total = fmpq(0)
        for value in values:
            total += value
        return total / len(values)

    def result(self, value: Value) -> Any:
        return Fraction(int(value.p), int(value.q)) if isinstance(value, fmpq) else value
