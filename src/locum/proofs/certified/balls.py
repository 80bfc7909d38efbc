"""Compute with balls, which enclose real numbers and the results of rounded arithmetic.

A ball is an ``arb`` of flint: a midpoint and a radius. Values can also be exact integers and rational
numbers. :class:`BallDomain` encloses the true result. With a
:class:`~locum.proofs.certified.balls.Rounding`, the domain widens every result that may be rounded,
including constants that the format cannot represent, by a bound on its rounding error. The enclosure
then also contains every result of a floating-point execution that performs the operations of this
program one by one.

A comparison that the enclosures do not decide raises an error, with one exception. With the option
``ties``, if ``best`` cannot decide which of several keys has the highest score, all of these keys are
candidates (``sensitivity.py``).

>>> import locum
>>> from locum.execution.dense import evaluate
>>> evaluate(locum.exp(locum.tokens).node, [fmpq(0)], BallDomain())
[1.00000000000000]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb, ctx, fmpq

from locum.execution.domains import Domain, Pattern, Value
from locum.execution.domains.exact import ExactDomain
from locum.execution.domains.floats import FloatDomain
from locum.graph import Atom
from locum.graph.operations import ROUNDINGS, TRANSCENDENTAL
from locum.proofs.certified.sensitivity import (
    Candidates,
    Rounded,
    TooCloseError,
    candidates_of,
    contenders,
)


@dataclass(frozen=True)
class Rounding:
    """A floating-point format with rounding errors |fl(x) − x| ≤ unit·|x| + tiny, up to ``largest``.

    Sums, differences, products, quotients and square roots are correctly rounded (IEEE 754). Library
    functions (exp, log, erf, tanh, sin, cos, powers) are assumed to have errors of at most ``library``
    units. A power of exact numbers with a rational value is assumed to be correctly rounded.
    """

    name: str
    unit: float
    tiny: float
    largest: float
    #: Number of bits of a significand, and exponent of the smallest positive number.
    bits: int
    lowest: int
    library: int = 4

    def holds(self, value: fmpq | int) -> bool:
        """Return whether the format represents a rational number exactly.

        Return False for all numbers whose absolute value is at least ``largest``.

        >>> FLOAT64.holds(fmpq(1, 4)), FLOAT64.holds(fmpq(1, 3)), FLOAT32.holds(2**24 + 1)
        (True, False, False)
        """
        number = Fraction(int(value.p), int(value.q)) if isinstance(value, fmpq) else Fraction(value)
        if not number:
            return True
        exponent = number.denominator.bit_length() - 1
        if number.denominator != 1 << exponent:
            return False
        top = abs(number.numerator)
        trailing = (top & -top).bit_length() - 1
        fits = (top >> trailing).bit_length() <= self.bits and trailing - exponent >= self.lowest
        return fits and top < int(self.largest) * number.denominator


FLOAT64 = Rounding("float64", 2.0**-53, 2.0**-1074, 2.0**1023, 53, -1074)
FLOAT32 = Rounding("float32", 2.0**-24, 2.0**-149, 2.0**127, 24, -149)
FORMATS = {rounding.name: rounding for rounding in (FLOAT64, FLOAT32)}


_EXACT, _FLOAT = ExactDomain(), FloatDomain()
#: Usual precision of the midpoints in bits.
PRECISION = 128
#: Python's floor division of floats is exact for quotients up to this number.
_EXACT_QUOTIENT = 2**52
#: Operations that return an exact integer for two integers.
_WHOLE = ("add", "subtract", "multiply")
#: Maximum number of cached results of an operation.
_REMEMBERED = 2**18


class BallDomain(Domain):
    """The domain of balls that enclose real results and, with a ``rounding``, floating-point results.

    With ``ties``, several keys may be candidates for the highest score. Otherwise the comparison of
    scores must be decided.
    """

    name = "ball"
    refusals = dict.fromkeys(ROUNDINGS, "it rounds; enclosures are of real numbers")

    def __init__(self, rounding: Rounding | None = None, ties: bool = False) -> None:
        self.rounding = rounding
        self.ties = ties
        if rounding is not None:
            self._largest, self._tiny = arb(rounding.largest), arb(rounding.tiny)
            self._units = {False: arb(rounding.unit), True: arb(rounding.library * rounding.unit)}
        own: dict[str, Callable[..., Value]] = {
            "add": self._add,
            # A number minus itself is exactly 0, for example at the maximum of a row.
            "subtract": lambda a, b: (
                0 if a is b else self._rounded(_ball(a) - _ball(b), "subtract", a, b)
            ),
            "multiply": self._multiply,
            "divide": self._divide,
            "power": self._power,
            "negate": self._negate,
            "absolute": self._absolute,
            "minimum": lambda a, b: a if self._less(a, b) else b,
            "maximum": lambda a, b: a if self._less(b, a) else b,
            **{name: self._library(name) for name in TRANSCENDENTAL},
            "log": self._log,
            "sqrt": self._sqrt,
            "equal": self._equal,
            "not_equal": lambda a, b: not self._equal(a, b),
            "less": self._less,
            "less_equal": lambda a, b: not self._less(b, a),
            "greater": lambda a, b: self._less(b, a),
            "greater_equal": lambda a, b: not self._less(a, b),
        }
        self.meanings = {
            **{name: self._concrete(name) for name in _EXACT.meanings},
            **{name: self._mixed(name, own[name]) for name in own},
            **{name: self._once(name, own[name]) for name in _WHOLE},
            "and": lambda a, b: self._truth(a) and self._truth(b),
            "or": lambda a, b: self._truth(a) or self._truth(b),
            "not": lambda a: not self._truth(a),
            "indicator": lambda a: 1 if self._truth(a) else 0,
            "if_else": lambda a, b, c: b if self._truth(a) else c,
        }

    def _library(self, name: str) -> Callable[..., Value]:
        """Return the function ``name`` on balls, which flint provides under the same name."""
        return lambda a: self._rounded(getattr(_ball(a), name)(), name, a, library=True)

    def _mixed(self, name: str, function: Callable[..., Value]) -> Callable[..., Value]:
        """Extend a function of balls to exact numbers.

        If no operand is a ball and the exact domain can compute the result, the result is computed
        exactly. Then it is rounded only if the format does not represent it. Integer operands that the
        format does not represent may be converted to balls first.
        """
        exact = _EXACT.meanings.get(name)
        transcendental = name in ("sqrt", "power")

        def meaning(*values: Value) -> Value:
            if all(isinstance(value, arb) for value in values):
                return function(*values)
            numbers = self._as_floats(values)
            if exact is not None and not any(isinstance(value, arb) for value in numbers):
                try:
                    return self._held(exact(*numbers))
                except ValueError:
                    if not transcendental:
                        raise
            return function(*numbers)

        return meaning

    def _once(self, name: str, function: Callable[..., Value]) -> Callable[..., Value]:
        """Return the operation ``name`` with a cache of results for identical operands.

        Rounded arithmetic is deterministic, so a repeated operation has the same rounding error.
        """
        exact, mixed = _EXACT.meanings[name], self._mixed(name, function)
        #: Results by the ids of both operands. The operands are kept, so that their ids stay unique.
        remembered: dict[tuple[int, int], tuple[Value, Value, Value]] = {}

        def meaning(a: Value, b: Value) -> Value:
            if type(a) is int and type(b) is int:
                return exact(a, b)
            entry = remembered.get((id(a), id(b)))
            if entry is None:
                if len(remembered) >= _REMEMBERED:
                    remembered.clear()
                entry = remembered[id(a), id(b)] = a, b, mixed(a, b)
            return entry[2]

        return meaning

    def _concrete(self, name: str) -> Callable[..., Value]:
        """Return an operation on exact numbers; a ball of radius 0 is converted to an exact number.

        The operation raises :class:`TooCloseError` for a ball with a larger radius.
        """

        def meaning(*values: Value, **attributes: Any) -> Value:
            values = tuple(_point(value, name) for value in values)
            result = _EXACT.meanings[name](*values, **attributes)
            floats = self.rounding is not None and any(isinstance(value, fmpq) for value in values)
            if name == "floor_divide" and floats and abs(result) > _EXACT_QUOTIENT:
                raise TooCloseError("a quotient is too large for its floor to be certain")
            return self._held(result)

        return meaning

    def _truth(self, value: Value) -> bool:
        """Return whether a value is not 0; raise an error if its enclosure does not decide this."""
        return not self._equal(value, 0) if isinstance(value, arb) else bool(value)

    # Rounded operations ---------------------------------------------------------------------------

    def _held(self, value: Value) -> Value:
        """Return an exact result; round a rational number that the format does not represent.

        Python integers are returned unchanged.
        """
        if self.rounding is None or not isinstance(value, fmpq) or self.rounding.holds(value):
            return value
        return self._rounded(_ball(value))

    def _as_floats(self, values: Sequence[Value]) -> Sequence[Value]:
        """Round integers that the format does not represent, if another operand is not an integer."""
        if self.rounding is None or all(isinstance(value, int) for value in values):
            return values
        return [
            self._rounded(_ball(value))
            if type(value) is int and not self.rounding.holds(value)
            else value
            for value in values
        ]

    def _rounded(self, value: arb, operation: str = "", *operands: Value, library: bool = False) -> arb:
        """Widen ``value`` by a bound on its rounding error, and record its operation and operands.

        Without a format, return ``value`` unchanged. Raise ``OverflowError`` for values that are not
        finite or may be too large for the format.
        """
        if not value.is_finite():
            raise OverflowError("the enclosure is not finite")
        if self.rounding is None:
            return value
        size = value.abs_upper()
        if not size < self._largest:
            raise OverflowError(f"a value may be too large for {self.rounding.name}")
        error = (size * self._units[library] + self._tiny).upper()
        widened = value + arb(0, error)
        return Rounded(widened, operation, tuple(map(_ball, operands)), error) if operation else widened

    def _unrounded(self, value: arb, operation: str, *operands: Value) -> arb:
        """Return the result of an operation without a rounding error; with a format, record it."""
        if self.rounding is None:
            return value
        return Rounded(value, operation, tuple(map(_ball, operands)), arb(0))

    def _negate(self, a: arb) -> arb:
        return self._unrounded(-a, "negate", a)

    def _absolute(self, a: arb) -> arb:
        if a > 0:
            return a
        return self._negate(a) if a < 0 else self._unrounded(abs(a), "absolute", a)

    def _add(self, a: Value, b: Value) -> arb:
        # Adding 0 is exact in every format, and sums over families begin with 0.
        if isinstance(a, int) and a == 0:
            return _ball(b)
        if isinstance(b, int) and b == 0:
            return _ball(a)
        return self._rounded(_ball(a) + _ball(b), "add", a, b)

    def _multiply(self, a: Value, b: Value) -> arb:
        for one, other in ((a, b), (b, a)):
            if isinstance(one, int) and one in (-1, 0, 1):
                times = _ball(other)
                return times if one == 1 else self._negate(times) if one else arb(0)
        return self._rounded(_ball(a) * _ball(b), "multiply", a, b)

    def _divide(self, a: Value, b: Value) -> arb:
        divisor = _ball(b)
        if divisor.contains(0):
            if divisor == 0:
                raise ZeroDivisionError("division by zero")
            raise TooCloseError("a denominator may be 0: its enclosure contains 0")
        return self._rounded(_ball(a) / divisor, "divide", a, b)

    def _power(self, a: Value, b: Value) -> arb:
        if isinstance(b, int) and not isinstance(b, bool):
            return self._rounded(_ball(a) ** b, "power", a, b, library=True)
        base = _ball(a)
        if not base > 0:
            raise TooCloseError("a power requires a positive base")
        return self._rounded(base ** _ball(b), "power", a, b, library=True)

    def _log(self, a: Value) -> arb:
        if not _ball(a) > 0:
            raise TooCloseError("a logarithm requires a positive number")
        return self._rounded(_ball(a).log(), "log", a, library=True)

    def _sqrt(self, a: Value) -> arb:
        if not _ball(a) >= 0:
            raise TooCloseError("a square root requires a non-negative number")
        return self._rounded(_ball(a).sqrt(), "sqrt", a)

    # Comparisons ----------------------------------------------------------------------------------

    def _less(self, a: Value, b: Value) -> bool:
        left, right = _ball(a), _ball(b)
        if left < right:
            return True
        if left >= right:
            return False
        raise TooCloseError("two numbers are too close to be compared")

    def _equal(self, a: Value, b: Value) -> bool:
        left, right = _ball(a), _ball(b)
        if not left.overlaps(right):
            return False
        if left.is_exact() and right.is_exact():
            return bool(left == right)
        raise TooCloseError("two numbers are too close to be compared")

    # Interface of a domain ---------------------------------------------------------------------

    def token(self, value: Value, cast: str) -> Value:
        if isinstance(value, arb):
            if cast in ("asis", "float"):
                return value
            return _EXACT.token(_point(value, cast), cast)
        return _EXACT.token(value, cast)

    def constant(self, atom: Atom) -> Value:
        return self._held(_EXACT.constant(atom))

    def accepts(self, value: object) -> bool:
        return isinstance(value, arb) or _EXACT.accepts(value)

    def mixture(self, values: Sequence[Value]) -> str | None:
        return _EXACT.mixture(values)

    def is_numeric(self, values: Sequence[Value]) -> bool:
        return _EXACT.is_numeric(values)

    def mean(self, values: Sequence[Value]) -> Value:
        total: Value = 0
        for value in values:
            total = self.meanings["add"](total, int(value) if isinstance(value, bool) else value)
        if type(total) is int and self.rounding is not None and not self.rounding.holds(total):
            total = self._rounded(_ball(total))
        return self.meanings["divide"](total, len(values))

    def select(self, keys: Sequence[Value], queries: Sequence[Value], predicate: str) -> Pattern:
        if {*map(type, keys), *map(type, queries)} <= {int, bool}:
            return _FLOAT.select(keys, queries, predicate)
        return super().select(keys, queries, predicate)

    def aggregate(self, selected: Pattern, values: Sequence[Value], default: Value) -> list[Value]:
        if selected.dtype == object:
            return [self._one_of(row, values, default) for row in candidates_of(selected)]
        self.require_numbers(selected, values)
        counts, first = selected.sum(axis=1), selected.argmax(axis=1)
        result = [
            values[k] if count else default
            for k, count in zip(first.tolist(), counts.tolist(), strict=True)
        ]
        for q in np.flatnonzero(counts > 1).tolist():
            result[q] = self.mean([values[k] for k in np.flatnonzero(selected[q]).tolist()])
        return result

    def _one_of(self, row: Candidates, values: Sequence[Value], default: Value) -> Value:
        """Return a value that encloses all possible results of an aggregate over candidates."""
        if not row.keys:
            return default
        chosen = [_ball(values[k]) for k in row.keys]
        if len(chosen) == 1 and row.nonempty:
            return values[row.keys[0]]
        if any(isinstance(values[k], bool) for k in row.keys) or not row.nonempty:
            raise TooCloseError("the enclosures do not determine which key has the highest score")
        hull = chosen[0]
        for value in chosen[1:]:
            hull = hull.union(value)
        if row.single or self.rounding is None:
            return hull
        # The result can be a mean of several candidates: add one rounding error for each addition, and
        # one for the division.
        size = max(value.abs_upper() for value in chosen)
        for _ in range(len(chosen)):
            hull = hull + arb(0, (size * self.rounding.unit * 2 + self.rounding.tiny).upper())
        return hull

    def best(self, selected: Any, scores: Sequence[Value]) -> Any:
        """Select the keys with the highest score.

        Without ``ties``, an undecided comparison of scores raises an error. With ``ties``, several
        keys become candidates if undecided comparisons do not determine the keys.
        """
        return contenders(selected, scores, self.meanings["greater"], self.ties)

    def widths(self, selected: Pattern) -> list[Value]:
        if selected.dtype == object:
            raise TooCloseError("the enclosures do not determine which key has the highest score")
        return super().widths(selected)


def precise(bits: int) -> Any:
    """Return a context manager that sets the precision of midpoints to ``bits``."""
    return ctx.workprec(bits)


def _ball(value: Value) -> arb:
    if isinstance(value, arb):
        return value
    return arb(fmpq(int(value)) if isinstance(value, (bool, int)) else value)


def _point(value: Value, what: str) -> Value:
    """Convert a ball of radius 0 to a rational number; ``what`` is the operation that requires it."""
    if not isinstance(value, arb):
        return value
    if not value.is_exact():
        raise TooCloseError(f"{what} requires an exact number")
    mantissa, exponent = value.man_exp()
    power = int(exponent)
    scale = fmpq(2**power) if power >= 0 else fmpq(1, 2**-power)
    return fmpq(mantissa) * scale
