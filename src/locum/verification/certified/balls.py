"""Ball arithmetic: enclosures of real numbers, and of what rounded arithmetic makes of them.

Values that depend on the input are flint's ``arb``, a midpoint and a radius; whole numbers and
rationals of the program stay exact. :class:`BallDomain` encloses the true result. With a
``Rounding`` every operation's result is widened by what one rounding can change, so that the
enclosure also holds whatever floating-point execution of this program, operation by operation, can
give.

A comparison that the enclosures do not decide is an error, never a guess.

>>> import locum
>>> from locum.execution.dense import evaluate
>>> evaluate(locum.exp(locum.tokens).node, [fmpq(0)], BallDomain())
[1.00000000000000]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from flint import arb, ctx, fmpq

from locum.execution.domains import Domain, Pattern, Value
from locum.execution.domains.exact import ExactDomain
from locum.execution.domains.floats import FloatDomain
from locum.graph import Atom

_EXACT, _FLOAT = ExactDomain(), FloatDomain()
#: Bits of the midpoints.
PRECISION = 128


class TooCloseError(ValueError):
    """Two enclosures overlap, so that nobody can say which number is greater."""


@dataclass(frozen=True)
class Rounding:
    """A floating-point format: |fl(x) − x| ≤ unit·|x| + tiny, and nothing above ``largest``.

    Sums, differences, products, quotients and square roots are correctly rounded (IEEE 754). Library
    functions (exp, log, tanh, erf, powers) are taken to be off by at most ``library`` units.
    """

    name: str
    unit: float
    tiny: float
    largest: float
    library: int = 4


FLOAT64 = Rounding("float64", 2.0**-53, 2.0**-1074, 2.0**1023)
FLOAT32 = Rounding("float32", 2.0**-24, 2.0**-149, 2.0**127)
FORMATS = {rounding.name: rounding for rounding in (FLOAT64, FLOAT32)}


class BallDomain(Domain):
    """Real balls; with a rounding, what floating point can make of them."""

    name = "ball"

    def __init__(self, rounding: Rounding | None = None) -> None:
        self.rounding = rounding
        own: dict[str, Callable[..., Value]] = {
            "add": self._add,
            # A number minus itself is 0, rounded or not: the greatest score of a row, say.
            "subtract": lambda a, b: 0 if a is b else self._rounded(_ball(a) - _ball(b)),
            "multiply": self._multiply,
            "divide": self._divide,
            "power": self._power,
            "negate": lambda a: -a,
            "absolute": lambda a: a if _is(a > 0) else -a if _is(a < 0) else abs(a),
            "minimum": lambda a, b: a if self._less(a, b) else b,
            "maximum": lambda a, b: a if self._less(b, a) else b,
            "exp": lambda a: self._rounded(_ball(a).exp(), library=True),
            "log": self._log,
            "sqrt": self._sqrt,
            "tanh": lambda a: self._rounded(_ball(a).tanh(), library=True),
            "erf": lambda a: self._rounded(_ball(a).erf(), library=True),
            "equal": self._equal,
            "not_equal": lambda a, b: not self._equal(a, b),
            "less": self._less,
            "less_equal": lambda a, b: not self._less(b, a),
            "greater": lambda a, b: self._less(b, a),
            "greater_equal": lambda a, b: not self._less(a, b),
        }
        transcendental = ("exp", "log", "sqrt", "tanh", "erf", "power")
        self.meanings = {
            **{name: self._concrete(name) for name in _EXACT.meanings},
            **{name: self._mixed(name, own[name], name in transcendental) for name in own},
        }

    def _mixed(
        self, name: str, function: Callable[..., Value], transcendental: bool
    ) -> Callable[..., Value]:
        """Balls if there are any among the values (or a number has no exact result), else exact."""
        exact = _EXACT.meanings.get(name)

        def meaning(*values: Value) -> Value:
            if exact is not None and not any(isinstance(value, arb) for value in values):
                try:
                    return exact(*values)
                except ValueError:
                    if not transcendental:
                        raise
            return function(*values)

        return meaning

    def _concrete(self, name: str) -> Callable[..., Value]:
        def meaning(*values: Value, **attributes: Any) -> Value:
            if name in ("if_else", "and", "or", "not", "indicator"):
                return _EXACT.meanings[name](self._truth(values[0]), *values[1:])
            if any(isinstance(value, arb) for value in values):
                values = tuple(_point(value, name) for value in values)
            return _EXACT.meanings[name](*values, **attributes)

        return meaning

    def _truth(self, value: Value) -> Value:
        return not self._equal(value, 0) if isinstance(value, arb) else value

    # Rounded operations ---------------------------------------------------------------------------

    def _rounded(self, value: arb, library: bool = False) -> arb:
        """``value`` widened by one rounding."""
        if not value.is_finite():
            raise OverflowError("the enclosure is not finite")
        if self.rounding is None:
            return value
        size = value.abs_upper()
        if not size < self.rounding.largest:
            raise OverflowError(f"a value may be too large for {self.rounding.name}")
        units = self.rounding.library if library else 1
        error = (size * (units * self.rounding.unit) + self.rounding.tiny).upper()
        return value + arb(0, error)

    def _add(self, a: Value, b: Value) -> arb:
        # Adding 0 is exact in every format; sums over families begin with it.
        if isinstance(a, int) and a == 0:
            return _ball(b)
        if isinstance(b, int) and b == 0:
            return _ball(a)
        return self._rounded(_ball(a) + _ball(b))

    def _multiply(self, a: Value, b: Value) -> arb:
        for one, other in ((a, b), (b, a)):
            if isinstance(one, int) and one in (-1, 0, 1):
                return _ball(one) * _ball(other)
        return self._rounded(_ball(a) * _ball(b))

    def _divide(self, a: Value, b: Value) -> arb:
        divisor = _ball(b)
        if divisor.contains(0):
            if divisor == 0:
                raise ZeroDivisionError("division by zero")
            raise TooCloseError("a denominator may be 0: its enclosure holds 0")
        return self._rounded(_ball(a) / divisor)

    def _power(self, a: Value, b: Value) -> arb:
        if isinstance(b, int) and not isinstance(b, bool):
            return self._rounded(_ball(a) ** b, library=True)
        base = _ball(a)
        if not base > 0:
            raise TooCloseError("a power needs a positive base")
        return self._rounded(base ** _ball(b), library=True)

    def _log(self, a: Value) -> arb:
        if not _ball(a) > 0:
            raise TooCloseError("a logarithm needs a positive number")
        return self._rounded(_ball(a).log(), library=True)

    def _sqrt(self, a: Value) -> arb:
        if not _ball(a) >= 0:
            raise TooCloseError("a square root needs a number that is not negative")
        return self._rounded(_ball(a).sqrt())

    # Comparisons ----------------------------------------------------------------------------------

    def _less(self, a: Value, b: Value) -> bool:
        left, right = _ball(a), _ball(b)
        if left < right:
            return True
        if left >= right:
            return False
        raise TooCloseError("two numbers are too close to be told apart")

    def _equal(self, a: Value, b: Value) -> bool:
        left, right = _ball(a), _ball(b)
        if not left.overlaps(right):
            return False
        if left.is_exact() and right.is_exact():
            return bool(left == right)
        raise TooCloseError("two numbers are too close to be told apart")

    # What a domain has to say ---------------------------------------------------------------------

    def token(self, value: Value, cast: str) -> Value:
        if isinstance(value, arb):
            if cast in ("asis", "float"):
                return value
            return _EXACT.token(_point(value, cast), cast)
        return _EXACT.token(value, cast)

    def constant(self, atom: Atom) -> Value:
        return _EXACT.constant(atom)

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
        return self.meanings["divide"](total, len(values))

    def select(self, keys: Sequence[Value], queries: Sequence[Value], predicate: str) -> Pattern:
        if all(type(value) in (int, bool) for value in (*keys, *queries)):
            return _FLOAT.select(keys, queries, predicate)
        return super().select(keys, queries, predicate)

    def aggregate(self, selected: Pattern, values: Sequence[Value], default: Value) -> list[Value]:
        self.require_numbers(selected, values)
        result = []
        for row in selected:
            keys = np.flatnonzero(row).tolist()
            if len(keys) > 1:
                result.append(self.mean([values[k] for k in keys]))
            else:
                result.append(values[keys[0]] if keys else default)
        return result

    def best(self, selected: Any, scores: Sequence[Value]) -> Any:
        """As the definition; a key's own score is not compared with itself."""
        greater = self.meanings["greater"]
        pattern = selected.copy()
        for q, row in enumerate(selected):
            keys = [k for k, here in enumerate(row.tolist()) if here]
            for k in keys:
                pattern[q, k] = not any(
                    greater(scores[other], scores[k])
                    for other in keys
                    if scores[other] is not scores[k]
                )
        return pattern


def precise(bits: int) -> Any:
    """A context in which midpoints have so many bits."""
    return ctx.workprec(bits)


def _ball(value: Value) -> arb:
    if isinstance(value, arb):
        return value
    return arb(fmpq(int(value)) if isinstance(value, (bool, int)) else value)


def _is(answer: Any) -> bool:
    return bool(answer)


def _point(value: Value, what: str) -> Value:
    """A ball without radius as the rational that it is."""
    if not isinstance(value, arb):
        return value
    if not value.is_exact():
        raise TooCloseError(f"{what} needs an exact number")
    mantissa, exponent = value.man_exp()
    power = int(exponent)
    scale = fmpq(2**power) if power >= 0 else fmpq(1, 2**-power)
    return fmpq(mantissa) * scale
