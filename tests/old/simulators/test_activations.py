"""Activations: one table for programs and one for arrays, which agree; an unknown name is an error."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from locum import tokens
from locum.constructions import Matrix
from locum.constructions.activations import ACTIVATIONS as PROGRAMS
from locum.execution.array_activations import ACTIVATIONS as FUNCTIONS

#: Zeros of both signs, numbers around the bends, and numbers whose exponentials vanish or overflow.
EDGES = [0.0, -0.0, 1e-300, 0.5, -0.5, 1.0, -1.0, 3.0, -3.0, 40.0, -40.0, 800.0, -800.0]


def test_both_tables_have_the_same_names() -> None:
    assert list(PROGRAMS) == list(FUNCTIONS)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_programs_and_arrays_agree_on_edge_values(name: str) -> None:
    x = np.array([EDGES])
    expected = FUNCTIONS[name](x)
    assert np.isfinite(expected).all()
    for executor in ("dense", "fast"):
        result = PROGRAMS[name](Matrix(tokens, 1, len(EDGES))).run(x, executor=executor)
        assert np.abs(result - expected).max() <= 1e-15 * 800


@pytest.mark.parametrize("name", FUNCTIONS)
def test_they_are_torchs(name: str) -> None:
    torch: Any = pytest.importorskip("torch")
    x = torch.tensor(EDGES, dtype=torch.float64)
    functions = torch.nn.functional
    others: dict[str, Any] = {
        "gelu_tanh": lambda x: functions.gelu(x, approximate="tanh"),
        "quick_gelu": lambda x: x * torch.sigmoid(1.702 * x),
    }
    expected = (others.get(name) or getattr(functions, name))(x)
    assert float((FUNCTIONS[name](x) - expected).abs().max()) <= 1e-13
