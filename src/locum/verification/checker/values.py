"""What may stand at one position in a case of a proof: the forms of the checker's values.

A scalar is a bool, a rational number, a :class:`~locum.verification.checker.numbers.Quotient`, or

- :class:`Open`: a boolean that the case does not decide, known by what it depends on;
- :data:`UNKNOWN`: nothing is known, not even whether it is a boolean or a number;
- :class:`Missing`: there is no value, as after a division by zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from locum.verification.checker.quotients import Quotient, Rational

#: What may stand at one position.
Scalar: TypeAlias = Any


@dataclass(frozen=True)
class Open:
    """A boolean that the case does not decide; equal numbers, equal booleans."""

    number: int


@dataclass(frozen=True)
class Missing:
    """No value, and why."""

    reason: str


class _Unknown:
    def __repr__(self) -> str:
        return "unknown"


UNKNOWN = _Unknown()


def is_rational(value: Scalar) -> bool:
    """Return whether a value is a number without variables."""
    return type(value) is int or isinstance(value, Fraction)


def simple(value: Rational) -> Rational:
    """Return a fraction without a denominator as an integer."""
    return value.numerator if isinstance(value, Fraction) and value.denominator == 1 else value


def length(value: Scalar) -> int:
    """Return the bits of a number without variables; 0 for other values, and for a few bits."""
    if isinstance(value, Fraction):
        return 64 + value.numerator.bit_length() + value.denominator.bit_length()
    return value.bit_length() if type(value) is int and value.bit_length() > 64 else 0


def is_number(value: Scalar) -> bool:
    """Return whether a value is certainly a number, not a boolean."""
    return is_rational(value) or isinstance(value, Quotient)


def is_boolean(value: Scalar) -> bool:
    """Return whether a value is certainly a boolean."""
    return isinstance(value, (bool, Open))


def without_value(values: Sequence[Scalar]) -> Scalar | None:
    """Return the first operand that is missing; else UNKNOWN, if one is; else None."""
    for value in values:
        if isinstance(value, Missing):
            return value
    return UNKNOWN if any(value is UNKNOWN for value in values) else None
