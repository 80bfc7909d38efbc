"""Quotients of polynomials, and what their variables stand for: the forms of the checker's numbers.

A :class:`Quotient` is a polynomial over an integer and a product of *factors*, polynomials that were
divided by. Factors are kept apart, so that sums over one denominator stay small.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from locum.verification.checker.polynomials import Polynomial

Rational: TypeAlias = "int | Fraction"
#: A variable and its power in a denominator; or the number of a factor and its power.
Powers: TypeAlias = tuple[tuple[int, int], ...]


class Quotient:
    """top / (scale · product of the factors)."""

    __slots__ = ("factors", "scale", "top")

    def __init__(self, top: Polynomial, scale: int = 1, factors: Powers = ()) -> None:
        self.top = top
        self.scale = scale
        self.factors = factors

    @property
    def key(self) -> Hashable:
        """What two quotients written in the same way have in common."""
        return self.top, self.scale, self.factors

    @property
    def rational(self) -> Rational | None:
        """Its value, if no variable occurs."""
        if self.factors or not self.top.is_constant:
            return None
        value = Fraction(self.top.terms.get(0, 0), self.scale)
        return value.numerator if value.denominator == 1 else value


@dataclass(frozen=True)
class Variable:
    """What a variable stands for: an entry, exp or another function of ``argument``, or a choice."""

    kind: str
    argument: Quotient | None = None
    #: Bounds on its value, if there are any; and whether a choice is an integer.
    low: Rational | None = None
    high: Rational | None = None
    integer: bool = False
