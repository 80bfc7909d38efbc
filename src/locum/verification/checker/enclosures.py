"""Rational enclosures of exp, log, √, tanh and erf at rational numbers, with integers alone.

Refutations are about numbers: there exp(3/2) is not an indeterminate, but lies between two rational
numbers that are close to each other.

>>> low, high = enclosure("exp", Fraction(1))
>>> float(low), high - low < Fraction(1, 10**60)
(2.718281828459045, True)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from locum.verification.checker.polynomials import TooLargeError

#: Bits behind the point.
PRECISION = 256
_UNIT = 1 << PRECISION
#: The greatest argument of an exponential, and the greatest degree of a root that is taken as such.
_LARGEST = 10_000
_DEGREE = 64

Interval = tuple[Fraction, Fraction]


def enclosure(name: str, x: Fraction) -> Interval:
    """Enclose a function's value at x, where it is defined."""
    return _FUNCTIONS[name](x)


def power(base: Fraction, exponent: Fraction) -> Interval:
    """Enclose a positive base to a rational power."""
    if exponent < 0:
        low, high = power(base, -exponent)
        return 1 / high, 1 / low
    if exponent.denominator > _DEGREE:
        low, high = (exponent * end for end in _log(base))
        return _exp(low)[0], _exp(high)[1]
    if exponent.numerator * max(base.numerator.bit_length(), base.denominator.bit_length()) > 100_000:
        raise TooLargeError("a power is too large to be enclosed")
    raised, degree = base**exponent.numerator, exponent.denominator
    root = root_below((raised.numerator << (PRECISION * degree)) // raised.denominator, degree)
    return Fraction(root, _UNIT), Fraction(root + 1, _UNIT)


def root_below(value: int, degree: int) -> int:
    """Return the greatest integer n with n^degree ≤ value, by Newton's method from above.

    >>> root_below(26, 3), root_below(27, 3), root_below(0, 2), root_below(10**40, 2) == 10**20
    (2, 3, 0, True)
    """
    if degree == 1 or not value:
        return value
    # Above the root the steps go down, and never below it; the first that does not go down is it.
    root = 1 << -(-value.bit_length() // degree)
    while True:
        lower = ((degree - 1) * root + value // root ** (degree - 1)) // degree
        if lower >= root:
            return root
        root = lower


def _exp(x: Fraction) -> Interval:
    if abs(x) > _LARGEST:
        raise TooLargeError(f"exp of a number beyond {_LARGEST:,} is too large to be enclosed")
    if x < 0:
        low, high = _exp(-x)
        return 1 / high, 1 / low
    halvings = max(0, math.ceil(x).bit_length() + 8)
    # Fixed point with guard bits: one for each squaring, and some for the terms of the series.
    bits = PRECISION + 2 * halvings + math.ceil(x * Fraction(3, 2)) + 64
    unit = 1 << bits
    small_low = (x.numerator << bits) // (x.denominator << halvings)
    total_low = total_high = 0
    term_low = term_high = unit
    n = 0
    while term_high:
        total_low, total_high = total_low + term_low, total_high + term_high
        n += 1
        term_low = term_low * small_low // (unit * n)
        term_high = -(-term_high * (small_low + 1) // (unit * n))
        if term_high == 1 and n > 10:
            break
    # The rest of the series is less than its first term left out, twice.
    total_high += 2 * term_high + 2
    for _ in range(halvings):
        total_low, total_high = total_low**2 // unit, -(-(total_high**2) // unit)
    return Fraction(total_low, unit), Fraction(total_high, unit)


def _sqrt(x: Fraction) -> Interval:
    return power(x, Fraction(1, 2)) if x else (Fraction(0), Fraction(0))


def _log(x: Fraction) -> Interval:
    """Enclose log x = k·log 2 + 2 artanh((m − 1)/(m + 1)) for x = m·2ᵏ, m between 1/2 and 2."""
    shift = x.numerator.bit_length() - x.denominator.bit_length()
    m = x / Fraction(2) ** shift
    low, high = _artanh((m - 1) / (m + 1))
    ends = [2 * shift * end for end in _artanh(Fraction(1, 3))]
    return 2 * low + min(ends), 2 * high + max(ends)


def _artanh(z: Fraction) -> Interval:
    """Sum z^(2n+1) / (2n+1), for |z| ≤ 1/3: the rest is less than its first term left out, twice."""
    if z < 0:
        low, high = _artanh(-z)
        return -high, -low
    bits = PRECISION + 64
    unit = 1 << bits
    power_low = (z.numerator << bits) // z.denominator
    power_high = power_low + 1
    square_low, square_high = power_low**2 // unit, -(-(power_high**2) // unit)
    total_low = total_high = n = 0
    while power_high > 1 and n < bits:
        total_low += power_low // (2 * n + 1)
        total_high += -(-power_high // (2 * n + 1))
        power_low = power_low * square_low // unit
        power_high = -(-power_high * square_high // unit)
        n += 1
    return Fraction(total_low, unit), Fraction(total_high + 2 * power_high, unit)


def _tanh(x: Fraction) -> Interval:
    """Enclose 1 − 2 / (exp(2x) + 1)."""
    low, high = _exp(2 * x)
    return 1 - 2 / (low + 1), 1 - 2 / (high + 1)


def _erf(x: Fraction) -> Interval:
    """Enclose 2/√π Σ (−1)ⁿ x^(2n+1) / (n! (2n+1)) by two partial sums: it alternates."""
    if x < 0:
        low, high = _erf(-x)
        return -high, -low
    if x > 12:
        return 1 - Fraction(1, 10**60), Fraction(1)
    square, term, total, n = x * x, x, Fraction(0), 0
    while True:
        summand = term / (2 * n + 1)
        total += summand if n % 2 == 0 else -summand
        n += 1
        term = _rounded(term * square / n)
        if n > square + 1 and term < Fraction(1, 1 << PRECISION):
            break
    # Rounding down changed each term by less than a unit that is far below the bound used here.
    slack = Fraction(1, 1 << (PRECISION // 2))
    scale_low, scale_high = (2 / bound for bound in reversed(_sqrt_pi()))
    return (total - slack) * scale_low, min((total + slack) * scale_high, Fraction(1))


def _rounded(value: Fraction) -> Fraction:
    return Fraction((value.numerator << (2 * PRECISION)) // value.denominator, 1 << (2 * PRECISION))


def _sqrt_pi() -> Interval:
    """Enclose √π, π by Machin's formula 16 arctan(1/5) − 4 arctan(1/239)."""
    low = 16 * _arctan(5)[0] - 4 * _arctan(239)[1]
    high = 16 * _arctan(5)[1] - 4 * _arctan(239)[0]
    return _sqrt(low)[0], _sqrt(high)[1]


def _arctan(inverse: int) -> Interval:
    """Enclose arctan(1/n), an alternating series of decreasing terms."""
    sums = [Fraction(0)]
    n = 0
    while len(sums) < 3 or abs(sums[-1] - sums[-2]) > Fraction(1, 1 << PRECISION):
        term = Fraction(1, (2 * n + 1) * inverse ** (2 * n + 1))
        sums.append(sums[-1] + (term if n % 2 == 0 else -term))
        n += 1
    return min(sums[-2:]), max(sums[-2:])


_FUNCTIONS: dict[str, Callable[[Fraction], Interval]] = {
    "exp": _exp,
    "log": _log,
    "sqrt": _sqrt,
    "tanh": _tanh,
    "erf": _erf,
}
