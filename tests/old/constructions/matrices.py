"""Draw random matrices and compare results with NumPy's."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

#: Marks tests that the default executor makes no difference to: they name theirs, run nothing, or are exact
#: (which the fast executor leaves to dense execution; ``test_linear_parts_are_exact_on_rationals`` sees it do so).
once = pytest.mark.parametrize("default_executor", ["dense"], indirect=True)

sizes = st.integers(1, 6)
small = st.integers(1, 4)
entries = st.one_of(
    st.floats(-4, 4),
    st.sampled_from([0.0, 1.0, -1.0, 2.0, -2.0, 3.0, -3.0]),
    st.sampled_from([0.0, 1e-9, -1e-9, 1e3, -1e3]),
)
#: All fractions from −5 to 5 with denominators up to 7, drawn at once: ``st.fractions`` makes a strategy each time.
rationals = st.sampled_from(
    sorted(
        {Fraction(p, q) for q in range(1, 8) for p in range(-5 * q, 5 * q + 1)},
        key=lambda x: (abs(x), x),
    )
)


@cache
def _lists(of: st.SearchStrategy[Any], size: int) -> st.SearchStrategy[list[Any]]:
    """Made once: Hypothesis validates every strategy anew."""
    return st.lists(of, min_size=size, max_size=size)


def arrays(data: st.DataObject, *shapes: tuple[int, int], of: Any = entries) -> list[Any]:
    drawn = []
    for shape in shapes:
        values = data.draw(_lists(of, math.prod(shape)))
        drawn.append(np.array(values, dtype=object if of is rationals else float).reshape(shape))
    return drawn


def together(*matrices: Any) -> list[Any]:
    return [x for m in matrices for x in m.ravel().tolist()]


def assert_close(actual: Any, expected: Any, tolerance: float = 1e-12) -> None:
    scale = max(1.0, float(np.abs(np.asarray(expected, dtype=float)).max()))
    np.testing.assert_allclose(
        np.asarray(actual, float), np.asarray(expected, float), atol=tolerance * scale
    )
