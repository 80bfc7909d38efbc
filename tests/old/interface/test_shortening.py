"""Bounds are written with few digits, and never below what they are."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locum import aggregate, full, tokens
from locum.interface.display.network.network_report import details, facts
from locum.networks import compiler
from locum.text import at_most


@given(
    st.just(0.0) | st.floats(min_value=1e-300, max_value=1e300),
    st.sampled_from([".1g", ".3g", ".6g", ".1e", ".6e"]),
)
def test_a_bound_is_not_rounded_down(number: float, form: str) -> None:
    written, exact = Decimal(at_most(number, form)), Decimal(number)
    digits = int(form[1]) + (form[2] == "e")
    assert exact <= written <= exact + Decimal(10) ** (exact.adjusted() - digits + 1)
    nearest = format(number, form)
    assert at_most(number, form) == nearest or Decimal(nearest) < exact


def test_reports_round_bounds_up() -> None:
    program = tokens * aggregate(full, tokens) / 3
    model = compiler.compile(program, length=3, numeric=True, ranges=(-1, 1), tolerance=0.25)
    bound = model.error_bound
    assert 0 < bound <= 0.25
    said = dict(facts(model))["error"]
    assert Decimal(said.split()[2]) >= Decimal(bound)
    (line,) = (line for line in model.report().splitlines() if line.startswith("error_bound"))
    assert Decimal(line.split()[1]) >= Decimal(bound)
    (gate,) = model.config.report["realised"]
    assert gate["own_error"] > 0.25
    assert "error 0.251 alone, 0.251 including its inputs" in details(model)


@pytest.mark.parametrize(
    ("bound", "said"), [(0.2500086, "0.251"), (0.25, "0.25"), (99.96, "100"), (9.996e-5, "0.0001")]
)
def test_what_a_reader_sees(bound: float, said: str) -> None:
    assert at_most(bound) == said
