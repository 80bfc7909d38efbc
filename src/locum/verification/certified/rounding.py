"""Floating-point formats: what one rounding can change, and which numbers need none."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from flint import fmpq


@dataclass(frozen=True)
class Rounding:
    """A floating-point format: |fl(x) − x| ≤ unit·|x| + tiny, and nothing above ``largest``.

    Sums, differences, products, quotients and square roots are correctly rounded (IEEE 754). Library
    functions (exp, log, tanh, erf, powers) are taken to be off by at most ``library`` units; a power
    that is a float is taken to be exact.
    """

    name: str
    unit: float
    tiny: float
    largest: float
    #: Bits of a significand, and the exponent of the smallest positive number.
    bits: int
    lowest: int
    library: int = 4

    def holds(self, value: fmpq | int) -> bool:
        """Return whether a rational number is one of the format.

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
        return fits and top < self.largest * number.denominator


FLOAT64 = Rounding("float64", 2.0**-53, 2.0**-1074, 2.0**1023, 53, -1074)
FLOAT32 = Rounding("float32", 2.0**-24, 2.0**-149, 2.0**127, 24, -149)
FORMATS = {rounding.name: rounding for rounding in (FLOAT64, FLOAT32)}
