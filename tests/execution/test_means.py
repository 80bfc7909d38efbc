"""Means of numbers whose sum overflows, by every executor."""

from __future__ import annotations

import math
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import locum
from locum import aggregate, full, indices, select, tokens

MAX = sys.float_info.max
EXECUTORS = ("dense", "fast", "auto", "heads")
SELECTORS = {
    "all": full,
    "before": select(indices, indices, "<="),
    "window": select(indices, indices - 2, ">=") & select(indices, indices, "<="),
    "groups": select(indices % 3, indices % 3, "=="),
    "smaller": select(tokens, tokens, "<="),
}
pytestmark = pytest.mark.filterwarnings("ignore::locum.execution.fast.FallbackWarning")


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_mean_does_not_overflow(executor: str) -> None:
    mean = aggregate(full, tokens)
    for values, expected in (
        ([1e308, 1e308], 1e308),
        ([MAX] * 7, MAX),
        ([-MAX] * 3, -MAX),
        ([1e308, 1e308, -1e308, -1e308], 0.0),
        ([math.inf, 1e308, 1e308], math.inf),
        ([1e308, 1e308, -math.inf], -math.inf),
    ):
        assert mean(values, executor=executor) == [expected] * len(values)
        array = mean(np.array(values), executor=executor)
        assert array.tolist() == [expected] * len(values)
    assert all(map(math.isnan, mean([1e308, math.inf, -math.inf], executor=executor)))


@pytest.mark.parametrize("executor", EXECUTORS)
def test_the_mean_is_used_further(executor: str) -> None:
    """With an infinite mean the quotient is 0, which no check of results finds."""
    assert (1 / aggregate(full, tokens))([1e308, 1e308], executor=executor) == [1e-308, 1e-308]


def test_products_overflow_as_in_python() -> None:
    for executor in EXECUTORS:
        assert (tokens * 10)([1e308], executor=executor) == [math.inf]
        with pytest.raises(locum.ExecutionError, match="too large"):
            (tokens**2)([1e308], executor=executor)


large = st.sampled_from([MAX, -MAX, 1e308, -1e308, math.inf, -math.inf, 1.0, 0.0, 5e-324])


@given(st.sampled_from(list(SELECTORS)), st.lists(large, min_size=1, max_size=9))
def test_random_means_of_large_numbers(name: str, values: list[float]) -> None:
    program, selector = aggregate(SELECTORS[name], tokens), SELECTORS[name]
    pattern = selector(values)
    results = {executor: program(values, executor=executor) for executor in EXECUTORS}
    for position, row in enumerate(pattern):
        chosen = [value for value, selected in zip(values, row, strict=True) if selected]
        infinite = [value for value in chosen if math.isinf(value)]
        exact = sum(infinite) if infinite else float(sum(map(Fraction, chosen)) / len(chosen))
        # Sums that do not overflow are rounded: as large as the values, and not as the mean.
        rounding = 0.0 if infinite else 1e-15 * max(map(abs, chosen))
        for executor, result in results.items():
            got = result[position]
            same = got == exact or (math.isnan(got) and math.isnan(exact))
            assert same or abs(got - exact) <= rounding, executor
