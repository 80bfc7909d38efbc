"""The export to torch: the module parameter for parameter."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import locum
from locum.errors import InputError
from locum.networks.transformer import LayerWeights
from locum.networks.transformer.functions import INSTRUCTIONS
from tests.old.networks.random_models import logits, random_inputs, random_model
from tests.old.networks.single_instructions import TOKENS, assert_same, expected, single
from tests.old.networks.test_compiled import answer_of, previous

torch = pytest.importorskip("torch")


def error(actual: Any, reference: Any) -> float:
    """The largest difference, relative to the largest number where that is above 1."""
    return float(np.abs(actual - reference).max() / max(1.0, np.abs(reference).max()))


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_module_is_the_forward_pass(seed: int, dtype: str) -> None:
    # In float32 without ties and steps: there, the last digit of a product decides.
    smooth: dict[str, Any] = {"heads": ["softmax"], "feeds": ["glu", "gelu", "relu", None]}
    model = random_model(seed, dtype=dtype, **({} if dtype == "float64" else smooth))
    inputs = random_inputs(model, seed)
    module = model.to_torch()
    actual = module(torch.tensor(model.encode(inputs)))
    assert actual.dtype == getattr(torch, dtype)
    reference = logits(model, inputs)
    assert actual.shape == reference.shape
    tolerance = 1e-12 if dtype == "float64" else 1e-5
    assert error(actual.detach().numpy(), reference) <= tolerance
    for switch in (
        module.set_use_split_qkv_input,
        module.set_use_attn_result,
        module.set_use_hook_mlp_in,
    ):
        switch(True)
    split = module(torch.tensor(model.encode(inputs)))
    if {"hard"}.isdisjoint(k for part in model.weights.layers for k in _kinds(part)):
        assert error(split.detach().numpy(), reference) <= tolerance


def _kinds(layer: LayerWeights) -> tuple[str, ...]:
    return () if layer.attention is None else layer.attention.kinds


@pytest.mark.parametrize("op", sorted(INSTRUCTIONS))
def test_every_instruction(op: str) -> None:
    model = single(op)
    with torch.no_grad():
        result = model.to_torch()(torch.tensor(TOKENS)).numpy()
    assert_same(result, expected(model), 1e-14)


@pytest.mark.parametrize("seed", range(10))
def test_the_state_dict_has_the_names_of_transformer_lens(seed: int) -> None:
    model = random_model(seed)
    state = model.to_torch().state_dict()
    named = dict(model.weights.named())
    assert state.keys() == named.keys()
    for name, tensor in state.items():
        np.testing.assert_array_equal(tensor.numpy(), named[name])


@pytest.mark.parametrize(
    "ids",
    [
        torch.tensor([[-1, 0]]),
        torch.tensor([[0, 3]]),
        torch.tensor([[0.0, 1.0]]),
        torch.tensor([[True, False, True]]),
        torch.tensor([[0, 1]], dtype=torch.uint8),
        [[0, 1]],
    ],
)
def test_ids_that_no_token_has_are_refused(ids: Any) -> None:
    """An id of −1 was the last token, others were errors of torch's."""
    model = locum.compile(locum.tokens, length=3, vocabulary="abc", attention="softmax")
    module = model.to_torch()
    with pytest.raises(InputError, match=r"expected (ids of tokens from 0 to 2|a tensor)"):
        module(ids)
    assert torch.equal(module(torch.tensor([[2]], dtype=torch.int32)), module(torch.tensor([[2]])))


def test_training_the_module_leaves_the_model_alone() -> None:
    model = random_model(5, feeds=["gelu"], heads=["softmax"], layers=2, numeric=True)
    before = model.hash
    module = model.to_torch()
    module(torch.tensor([[0.5]])).sum().backward()
    with torch.no_grad():
        for parameter in module.parameters():
            assert parameter.grad is not None
            parameter += 1
    assert model.hash == before


def test_the_module_by_hand() -> None:
    model = previous()
    module = model.to_torch()
    tokens = [2.0, 7.0, 1.5]
    logits = module(torch.tensor([tokens], dtype=torch.float64)).detach().numpy()
    assert model.decode(logits, tokens) == [answer_of(tokens)]
    assert module.to(torch.float32)(torch.tensor([[2.0]])).dtype == torch.float32
    assert module.to("meta")(torch.empty(1, 3, device="meta")).shape == (1, 3, 1)
    with pytest.raises(InputError, match="expected 1 to 4 tokens, got 5"):
        model.to_torch()(torch.zeros(1, 5))
    with pytest.raises(InputError, match=r"expected inputs of shape \[batch, position\]"):
        model.to_torch()(torch.zeros(5))


def test_without_torch_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    module = "locum.networks.transformer.exports.torch_module"
    monkeypatch.delitem(sys.modules, module, raising=False)
    with pytest.raises(InputError, match=r"pip install 'locum\[torch\]'"):
        previous().to_torch()
