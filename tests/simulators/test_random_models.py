"""Random models of the transformers library: right, or refused; two thousand by ``make fuzz``."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import locum
from tests.simulators.random_models import verdict
from tests.simulators.random_torch import afterwards_verdict, torch_verdict

torch: Any = pytest.importorskip("torch")


@settings(max_examples=settings().max_examples // 10)
@given(st.integers(0, 10**6))
def test_random_models_are_right_or_refused(seed: int) -> None:
    assert verdict(seed) in ("right", "refused", "the library refuses")


@settings(max_examples=settings().max_examples // 4)
@given(st.integers(0, 10**6))
def test_random_layers_of_torch_are_right_or_refused(seed: int) -> None:
    assert torch_verdict(seed) in ("right", "refused", "torch refuses")


@settings(max_examples=settings().max_examples // 4)
@given(st.integers(0, 10**6))
def test_random_changes_of_a_stand_in_are_taken_or_refused(seed: int) -> None:
    assert afterwards_verdict(seed) in ("right", "refused", "torch refuses")


def test_the_activation_of_a_decoder_layer_is_copied() -> None:
    """In a deepcopy by torch it is relu, whatever module it was."""
    layer = torch.nn.TransformerDecoderLayer(4, 1, 8, 0.0, torch.nn.Tanh(), batch_first=True).eval()
    X, M = torch.randn(1, 3, 4), torch.randn(1, 2, 4)
    assert torch.allclose(locum.stand_in(layer)(X, M), layer(X, M), atol=1e-5)
    assert torch.allclose(locum.simulate(layer, X, M), layer(X, M), atol=1e-5)
