"""What operations meet: numbers, booleans, and what stands in place of a value that is missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flint import fmpq, fmpz

from locum.execution.domains import Value
from locum.verification.prover.booleans import Boolean
from locum.verification.prover.cases import Undecided
from locum.verification.prover.ring import Ratio


@dataclass(frozen=True)
class Broken:
    """What has no value, and why."""

    reason: str


#: What may stand in place of a value.
OPEN = (Undecided, Broken)


def first_open(values: Sequence[Value]) -> Undecided | Broken | None:
    """Return the first operand without a definite value; ``Broken`` before ``Undecided``."""
    first = None
    for value in values:
        if isinstance(value, Broken):
            return value
        if first is None and isinstance(value, Undecided):
            first = value
    return first


def is_rational(value: Value) -> bool:
    """Return whether a value is a number without symbols."""
    return type(value) is int or isinstance(value, fmpq)


def is_number(value: Value) -> bool:
    """Return whether a value is certainly a number, not a boolean."""
    return is_rational(value) or isinstance(value, Ratio)


def is_boolean(value: Value) -> bool:
    """Return whether a value is certainly a boolean."""
    return isinstance(value, (bool, Boolean))


def integral(value: fmpq) -> Value:
    """Return a rational number without a denominator as an integer."""
    return int(value.p) if fmpz(value.q) == 1 else value
