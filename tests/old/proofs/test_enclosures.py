"""Bounds of functions enclose the values of ball arithmetic."""

from __future__ import annotations

from fractions import Fraction

import pytest
from flint import arb, ctx, fmpq
from hypothesis import given
from hypothesis import strategies as st

from locum.errors import InputError
from locum.proofs.checker.proof_case import enclose

NUMBERS = st.fractions(min_value=-100, max_value=100, max_denominator=10**30)


@given(st.sampled_from(["exp", "log", "sqrt"]), NUMBERS, st.integers(-300, 300))
def test_random_bounds_enclose_the_value(name: str, x: Fraction, shift: int) -> None:
    x = x if name == "exp" else abs(x) * Fraction(2) ** shift
    if name == "log" and not x:
        return
    bounds = enclose(name, x, x)
    assert bounds is not None
    with ctx.workprec(2_000):
        value = getattr(arb(fmpq(x.numerator, x.denominator)), name)()
        low, high = (arb(fmpq(end.numerator, end.denominator)) for end in bounds)
        assert low <= value <= high
        assert high - low <= max(1, abs(value)) * arb(2) ** -80


def test_arguments_beyond_the_limit_are_rejected() -> None:
    with pytest.raises(InputError, match="expected an argument from −10,000 to 10,000"):
        enclose("exp", 0, 10_001)
    assert enclose("cos", 0, 1) is None
