"""Rational bounds of exp, log and √, which all increase."""

from __future__ import annotations

import math
from fractions import Fraction

from locum.errors import InputError
from locum.verification.checker.quotients import Rational

Interval = tuple[Fraction, Fraction]
#: Bits after the binary point, and the greatest argument of an exponential.
_BITS = 400
_LARGEST = 10_000


def enclose(name: str, low: Rational, high: Rational) -> Interval | None:
    """Enclose the values of a function from ``low`` to ``high``, where it is defined."""
    function = {"exp": _exp, "log": _log, "sqrt": _sqrt}.get(name)
    return None if function is None else (function(Fraction(low))[0], function(Fraction(high))[1])


def _down(x: Fraction) -> Fraction:
    return Fraction((x.numerator << _BITS) // x.denominator, 1 << _BITS)


def _up(x: Fraction) -> Fraction:
    return -_down(-x)


def _exp(x: Fraction) -> Interval:
    """Sum the series at y = x/2ᵏ ≤ 1/2, where its rest is less than its last term; square k times."""
    if abs(x) > _LARGEST:
        raise InputError(f"exp: expected an argument of at most {_LARGEST:,}, got a greater one")
    if x < 0:
        low, high = _exp(-x)
        return 1 / high, 1 / low
    halvings = max(0, x.numerator.bit_length() - x.denominator.bit_length() + 2)
    low, high = least, most = Fraction(1), Fraction(1)
    y = _down(x / 2**halvings), _up(x / 2**halvings)
    for n in range(1, 100):
        least, most = _down(least * y[0] / n), _up(most * y[1] / n)
        low, high = low + least, high + most
    high += most
    for _ in range(halvings):
        low, high = _down(low * low), _up(high * high)
    return low, high


def _log(x: Fraction) -> Interval:
    """Use log x = g + log(1 + e) with e = x/exp(g) − 1, for any g; e − e² ≤ log(1 + e) ≤ e."""
    guess = Fraction(math.log(x.numerator) - math.log(x.denominator))
    low, high = _exp(guess)
    least, most = x / high - 1, x / low - 1
    if abs(least) > Fraction(1, 2) or abs(most) > Fraction(1, 2):
        raise InputError("log: expected a number whose logarithm a float is close to")
    return _down(guess + least - least * least), _up(guess + most)


def _sqrt(x: Fraction) -> Interval:
    root = math.isqrt((x.numerator << 2 * _BITS) // x.denominator)
    return Fraction(root, 1 << _BITS), Fraction(root + 1, 1 << _BITS)
