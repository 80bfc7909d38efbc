"""Hooks that write into what they are shown: this counts as if returned, and spares the weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from locum.networks.transformer import CompiledTransformer
from tests.old.networks.random_models import random_model


def _model() -> CompiledTransformer:
    """Two layers whose answers are numbers, so that small changes show."""
    for seed in range(100):
        model = random_model(seed, feeds=["glu"], heads=["softmax"], layers=2, numeric=True)
        attends = all(layer.attention is not None for layer in model.weights.layers)
        if attends and model.config.outputs is None and model.config.lengths[1] >= 2:
            return model
    raise AssertionError("no such model")


MODEL = _model()
INPUTS = [[0.5, -1.25], [2.0, 0.75]]
NAMES = list(MODEL.run_with_cache(INPUTS)[1])


def written(activation: Any, hook: Any) -> None:
    activation *= 0.5
    activation[..., 0] -= 0.25


def returned(activation: Any, hook: Any) -> Any:
    changed = activation * 0.5
    changed[..., 0] -= 0.25
    return changed


def returned_itself(activation: Any, hook: Any) -> Any:
    written(activation, hook)
    return activation


@pytest.mark.parametrize("name", NAMES)
def test_in_place_is_as_returned(name: str) -> None:
    digest, plain = MODEL.hash, MODEL(INPUTS)
    expected = MODEL.run_with_hooks(INPUTS, [(name, returned)])
    assert expected != plain
    for hook in (written, returned_itself):
        assert MODEL.run_with_hooks(INPUTS, [(name, hook)]) == expected
    assert MODEL.hash == digest
    assert MODEL(INPUTS) == plain


@pytest.mark.parametrize("mode", ["enable_grad", "no_grad", "inference_mode"])
@pytest.mark.parametrize("name", NAMES)
def test_in_place_is_as_returned_in_torch(name: str, mode: str) -> None:
    torch = pytest.importorskip("torch")
    module = MODEL.to_torch()
    before = {key: value.clone() for key, value in module.state_dict().items()}
    # One input, too: W_pos is then seen as it is, without being repeated.
    for rows in (INPUTS, INPUTS[:1]):
        inputs = torch.tensor(rows, dtype=torch.float64)
        with getattr(torch, mode)():
            plain = module(inputs)
            expected = module.run_with_hooks(inputs, [(name, returned)])
            assert not torch.equal(expected, plain)
            for hook in (written, returned_itself):
                assert torch.equal(module.run_with_hooks(inputs, [(name, hook)]), expected)
            _, cache = module.run_with_cache(inputs)
            written(cache[name], None)
            assert torch.equal(module(inputs), plain)
    for key, value in module.state_dict().items():
        assert torch.equal(value, before[key]), key


def test_a_pattern_that_is_read_only_changes_no_digit() -> None:
    name = "blocks.0.attn.hook_pattern"
    assert MODEL.run_with_hooks(INPUTS, [(name, lambda a, hook: None)]) == MODEL(INPUTS)


def test_writes_into_a_pattern_that_torch_does_not_count() -> None:
    torch = pytest.importorskip("torch")
    module, name = MODEL.to_torch(), "blocks.0.attn.hook_pattern"
    inputs = torch.tensor(INPUTS, dtype=torch.float64)

    def through_numpy(activation: Any, hook: Any) -> None:
        np.multiply(activation.detach().numpy(), 0, out=activation.detach().numpy())

    expected = module.run_with_hooks(inputs, [(name, lambda a, hook: a * 0)])
    assert torch.equal(module.run_with_hooks(inputs, [(name, through_numpy)]), expected)


def test_a_zero_added_in_place_to_a_pattern_has_its_gradient() -> None:
    torch = pytest.importorskip("torch")
    module, name = MODEL.to_torch(), "blocks.0.attn.hook_pattern"
    inputs = torch.tensor(INPUTS, dtype=torch.float64)
    result = []
    for in_place in (True, False):
        zero = torch.zeros((), dtype=torch.float64, requires_grad=True)

        def add(a: Any, hook: Any, zero: Any = zero, in_place: bool = in_place) -> Any:
            return a.add_(zero) if in_place else a + zero

        module.run_with_hooks(inputs, [(name, add)]).sum().backward()
        result.append(zero.grad)
    assert result[0] is not None
    assert torch.equal(result[0], result[1])
