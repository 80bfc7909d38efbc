"""Trials of model types: results with different non-finite entries differ."""

from __future__ import annotations

import math
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")
pytest.importorskip("transformers")

from experiments.architectures.trial import compare  # noqa: E402


@pytest.mark.parametrize("other", [-math.inf, math.nan, 0.0])
def test_different_non_finite_entries_differ(other: float) -> None:
    expected = torch.tensor([math.inf, 1.0])
    assert compare([expected], [torch.tensor([math.inf, 1.0])]) == 0
    assert compare([expected], [torch.tensor([other, 1.0])]) == math.inf
