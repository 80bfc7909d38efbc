"""Exports to torch: the module parameter for parameter, and the stock encoder."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import locum
from locum.errors import CompileError, InputError
from locum.networks.transformer import LayerWeights
from locum.networks.transformer.functions import INSTRUCTIONS
from tests.transformer.random_models import logits, random_inputs, random_model
from tests.transformer.single_instructions import TOKENS, assert_same, expected, single
from tests.transformer.test_compiled import answer_of, previous

torch = pytest.importorskip("torch")


def error(actual: Any, reference: Any) -> float:
    """The largest difference, relative to the largest number where that is above 1."""
    return float(np.abs(actual - reference).max() / max(1.0, np.abs(reference).max()))


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_module_is_the_forward_pass(seed: int, dtype: str) -> None:
    # In float32 without ties and steps: there, the last digit of a product decides.
    smooth: dict[str, Any] = {"heads": ["softmax"], "feeds": ["glu", "gelu", "relu", None]}
    norms = seed % 3 == 0
    model = random_model(
        seed, dtype=dtype, norms=norms, **({} if dtype == "float64" and not norms else smooth)
    )
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
    model = random_model(seed, norms=seed % 2 == 0)
    state = model.to_torch().state_dict()
    named = dict(model.weights.named())
    assert state.keys() == named.keys()
    for name, tensor in state.items():
        np.testing.assert_array_equal(tensor.numpy(), named[name])


@pytest.mark.parametrize("stock", [False, True])
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
def test_ids_that_no_token_has_are_refused(ids: Any, stock: bool) -> None:
    """An id of −1 was the last token, others were errors of torch's."""
    model = locum.compile(locum.tokens, length=3, vocabulary="abc", attention="softmax")
    module = model.to_encoder() if stock else model.to_torch()
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


# The stock encoder -------------------------------------------------------------------------------


def soft(seed: int, **options: Any) -> Any:
    options = {"layers": 1 + seed % 3, "scale": 0.4} | options
    return random_model(seed, heads=["softmax"], feeds=[("gelu", "relu")[seed % 2], None], **options)


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-14), ("float32", 5e-6)])
def test_the_encoder_is_the_forward_pass(dtype: str, tolerance: float) -> None:
    for seed in range(12):
        model = soft(seed, dtype=dtype)
        inputs = random_inputs(model, seed)
        module = model.to_encoder()
        assert type(module.encoder) is torch.nn.TransformerEncoder
        encoded = torch.tensor(model.encode(inputs))
        reference = logits(model, inputs)
        with torch.no_grad():  # torch's fast path, where it takes it
            assert error(module(encoded).numpy(), reference) <= tolerance, seed
        assert error(module(encoded).detach().numpy(), reference) <= tolerance, seed
        module.train()
        assert error(module(encoded).detach().numpy(), reference) <= tolerance, seed


def fresh(encoder: Any) -> Any:
    """A stock encoder made as anybody would make it, of the sizes that a state shows."""
    first = encoder.layers[0]
    layer = torch.nn.TransformerEncoderLayer(
        first.linear1.in_features,
        first.self_attn.num_heads,
        first.linear1.out_features,
        dropout=0.0,
        activation=first.activation,
        batch_first=True,
        dtype=torch.float64,
    )
    return torch.nn.TransformerEncoder(layer, len(encoder.layers), enable_nested_tensor=False)


def test_the_state_loads_into_a_fresh_encoder() -> None:
    model = soft(4, dtype="float64", layers=2)
    encoder = model.to_encoder().encoder
    other = fresh(encoder)
    for layer in other.layers:
        layer.norm1, layer.norm2 = torch.nn.Identity(), torch.nn.Identity()
    other.load_state_dict(encoder.state_dict())
    stream = torch.randn(2, 3, encoder.layers[0].linear1.in_features, dtype=torch.float64)
    # In training mode torch does not look for the eps of a norm, and there is no dropout.
    torch.testing.assert_close(other.train()(stream), encoder.train()(stream), rtol=0, atol=0)


def test_no_global_switch_is_touched() -> None:
    before = torch.backends.mha.get_fastpath_enabled()
    soft(1).to_encoder()
    assert torch.backends.mha.get_fastpath_enabled() == before


def test_what_a_stock_encoder_cannot_be() -> None:
    with pytest.raises(CompileError, match="hard attention head, in layer 0; try attention='softmax'"):
        previous().to_encoder()
    glu = random_model(2, heads=["softmax"], feeds=["glu"], layers=1)
    with pytest.raises(CompileError, match="in all feed-forwards, got glu"):
        glu.to_encoder()
    mixed = next(
        model
        for model in (
            random_model(seed, heads=["softmax"], feeds=["gelu", "relu"], layers=3) for seed in range(9)
        )
        if len({layer.feed_forward.kind for layer in model.weights.layers if layer.feed_forward}) == 2
    )
    with pytest.raises(CompileError, match="got gelu and relu"):
        mixed.to_encoder()


def test_without_torch_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    for name in ("torch_module", "stock"):
        monkeypatch.delitem(sys.modules, f"locum.networks.transformer.exports.{name}", raising=False)
    with pytest.raises(InputError, match=r"pip install 'locum\[torch\]'"):
        previous().to_torch()
    with pytest.raises(InputError, match=r"pip install 'locum\[torch\]'"):
        previous().to_encoder()
