"""Random models of the transformers library: right, or refused; two thousand by ``make fuzz``."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.simulators.random_models import verdict


@settings(max_examples=settings().max_examples // 10)
@given(st.integers(0, 10**6))
def test_random_models_are_right_or_refused(seed: int) -> None:
    assert verdict(seed) in ("right", "refused", "the library refuses")
