"""TransformerLens: uniform shapes, the formula that it computes, and itself where installed."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import math
import sys
from typing import Any

import numpy as np
import pytest

from locum.errors import CompileError, InputError
from tests.old.networks.random_models import logits, random_inputs, random_model
from tests.old.networks.test_compiled import previous

torch = pytest.importorskip("torch")
INSTALLED = importlib.util.find_spec("transformer_lens") is not None


def soft(seed: int) -> Any:
    return random_model(
        seed, heads=["softmax"], feeds=[("glu", "gelu", "relu")[seed % 3], None], scale=0.4
    )


def lens_forward(
    config: dict[str, Any], state: dict[str, Any], inputs: Any, last: Any = lambda stream: stream
) -> Any:
    """What a HookedTransformer of this configuration computes, as its documentation has it.

    ``last`` is a hook at the last ``hook_resid_post``.
    """
    assert (config["normalization_type"], config["use_attn_scale"]) == (None, True)
    assert config["attention_dir"] == "bidirectional"
    stream = inputs
    if inputs.ndim == 2:
        stream = state["embed.W_E"][inputs] + state["pos_embed.W_pos"][: inputs.shape[1]]
    for number in range(config["n_layers"]):
        part = {
            name.removeprefix(f"blocks.{number}."): value
            for name, value in state.items()
            if name.startswith(f"blocks.{number}.")
        }
        q, k, v = (
            np.einsum("bpd,hde->bphe", stream, part[f"attn.W_{name}"]) + part[f"attn.b_{name}"]
            for name in "QKV"
        )
        scores = np.einsum("bqhe,bkhe->bhqk", q, k) / math.sqrt(config["d_head"])
        pattern = np.exp(scores - scores.max(-1, keepdims=True))
        pattern /= pattern.sum(-1, keepdims=True)
        z = np.einsum("bhqk,bkhe->bqhe", pattern, v)
        stream = stream + np.einsum("bqhe,hed->bqd", z, part["attn.W_O"]) + part["attn.b_O"]
        if config["attn_only"]:
            continue
        if config["gated_mlp"]:
            gate = np.maximum(stream @ part["mlp.W_gate"], 0)
            post = gate * (stream @ part["mlp.W_in"]) + part["mlp.b_in"]
        else:
            pre = stream @ part["mlp.W_in"] + part["mlp.b_in"]
            erf = np.vectorize(math.erf, otypes=[pre.dtype])
            gelu = config["act_fn"] == "gelu"
            post = pre * (1 + erf(pre / math.sqrt(2))) / 2 if gelu else np.maximum(pre, 0)
        stream = stream + post @ part["mlp.W_out"] + part["mlp.b_out"]
    return last(stream) @ state["unembed.W_U"] + state["unembed.b_U"]


@pytest.mark.parametrize("seed", range(30))
def test_the_uniform_model_is_the_forward_pass(seed: int) -> None:
    model = soft(seed)
    inputs = random_inputs(model, seed)
    config, state = model.transformer_lens_config(), model.state_dict_for_transformer_lens()
    d, heads, width, hidden = (config[name] for name in ("d_model", "n_heads", "d_head", "d_mlp"))
    assert state["embed.W_E"].shape == (config["d_vocab"], d)
    assert state["pos_embed.W_pos"].shape == (config["n_ctx"], d)
    for number in range(config["n_layers"]):
        assert state[f"blocks.{number}.attn.W_Q"].shape == (heads, d, width)
        assert state[f"blocks.{number}.attn.W_O"].shape == (heads, width, d)
        if not config["attn_only"]:
            assert state[f"blocks.{number}.mlp.W_in"].shape == (d, hidden)
    assert {tensor.dtype for tensor in state.values()} == {getattr(torch, config["dtype"])}
    tensors = model.transformer_lens_inputs(inputs)
    assert all(isinstance(tensor, torch.Tensor) for tensor in (tensors, *state.values()))
    arrays = {name: tensor.numpy() for name, tensor in state.items()}
    actual = lens_forward(config, arrays, tensors.numpy())
    expected = logits(model, inputs)
    tolerance = 1e-12 if config["dtype"] == "float64" else 1e-5
    np.testing.assert_allclose(
        actual[:, int(model.config.sink) :], expected, atol=tolerance, rtol=tolerance
    )


@pytest.mark.parametrize("seed", [2, 3, 4, 5, 6, 7])
def test_hooks_that_scale_the_stream_leave_the_slot_of_ones_alone(seed: int) -> None:
    """As docs/circuits.md says: with the last slot left as it is, hooks do what they do here."""
    model = soft(seed)
    inputs = random_inputs(model, seed)
    name = f"blocks.{len(model.weights.layers) - 1}.hook_resid_post"
    expected = (
        model.to_torch()
        .run_with_hooks(torch.as_tensor(model.encode(inputs)), [(name, lambda value, hook: 3 * value)])
        .detach()
        .numpy()
    )
    state = {n: tensor.numpy() for n, tensor in model.state_dict_for_transformer_lens().items()}
    tokens = model.transformer_lens_inputs(inputs).numpy()

    def all_but_ones(stream: Any) -> Any:
        return np.concatenate([3 * stream[..., :-1], stream[..., -1:]], axis=-1)

    actual, everything = (
        lens_forward(model.transformer_lens_config(), state, tokens, last)[:, int(model.config.sink) :]
        for last in (all_but_ones, lambda stream: 3 * stream)
    )
    tolerance = 1e-11 if model.config.dtype == "float64" else 1e-3
    np.testing.assert_allclose(actual, expected, atol=tolerance)
    more = np.broadcast_to(2 * model.weights.b_U, actual.shape)
    np.testing.assert_allclose(everything - actual, more, atol=tolerance)


@pytest.mark.skipif(not INSTALLED, reason="transformer_lens is not installed")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(12))
def test_transformer_lens_itself(seed: int) -> None:
    model = soft(seed)
    inputs = random_inputs(model, seed)
    hooked = model.to_transformer_lens()
    tokens = model.transformer_lens_inputs(inputs)
    options = {"start_at_layer": 0} if model.config.vocabulary is None else {}
    with torch.no_grad():
        result = hooked(tokens, return_type="logits", **options).numpy()[:, int(model.config.sink) :]
    tolerance = 1e-12 if model.config.dtype == "float64" else 1e-5
    np.testing.assert_allclose(result, logits(model, inputs), atol=tolerance, rtol=tolerance)
    if not options:
        _, theirs = hooked.run_with_cache(tokens)
        _, ours = model.run_with_cache(inputs)
        for number in range(len(model.weights.layers)):
            stream = theirs["resid_post", number].detach().numpy()
            np.testing.assert_allclose(
                stream[..., :-1], ours["resid_post", number], atol=tolerance, rtol=tolerance
            )
            np.testing.assert_array_equal(stream[..., -1], 1)


def loaded(model: Any) -> Any:
    """Load the exported state into a new model, as docs/transformer.md shows."""
    lens = importlib.import_module("transformer_lens")
    fields = model.transformer_lens_config()
    fields["dtype"] = getattr(torch, fields["dtype"])
    state = model.state_dict_for_transformer_lens()
    try:
        hooked = lens.HookedTransformer(lens.HookedTransformerConfig(**fields, device="cpu"))
    except ImportError:  # TransformerLens 4
        config = lens.TransformerBridgeConfig(**fields, architecture="TransformerLensNative")
        hooked = lens.TransformerBridge.boot_native(config, device="cpu", dtype=fields["dtype"])
        conversion = importlib.import_module("transformer_lens.utilities.tl_checkpoint_conversion")
        state = conversion.convert_tl_checkpoint(state, config)
    hooked.load_state_dict(state, strict=False)
    return hooked


@pytest.mark.skipif(not INSTALLED, reason="transformer_lens is not installed")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(12))
def test_the_state_dict_is_the_state_of_the_export(seed: int) -> None:
    """Tensor by tensor, and by the logits of a model that is loaded from it by hand."""
    model = soft(seed)
    hooked, state = model.to_transformer_lens(), model.state_dict_for_transformer_lens()
    for number in range(model.transformer_lens_config()["n_layers"]):
        for name in ("W_Q", "W_K", "W_V", "W_O", "b_Q", "b_K", "b_V", "b_O"):
            own = getattr(hooked.blocks[number].attn, name).detach()
            assert torch.equal(own, state[f"blocks.{number}.attn.{name}"]), name
    tokens = model.transformer_lens_inputs(random_inputs(model, seed))
    options = {"start_at_layer": 0} if model.config.vocabulary is None else {}
    with torch.no_grad():
        expected = hooked(tokens, return_type="logits", **options)
        assert torch.equal(loaded(model)(tokens, return_type="logits", **options), expected)


@pytest.mark.skipif(not INSTALLED, reason="transformer_lens is not installed")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(8))
def test_split_inputs_and_results_of_heads_in_transformer_lens(seed: int) -> None:
    """Logits, and gradients at the inputs and outputs of heads, are those of ``to_torch``."""
    model = random_model(
        seed,
        heads=["softmax"],
        feeds=[("gelu", "relu")[seed % 2], None],
        layers=2,
        numeric=False,
        dtype="float64",
    )
    inputs = random_inputs(model, seed)
    sink = int(model.config.sink)
    gradients: list[dict[str, Any]] = [{}, {}]
    for own, (network, tokens) in zip(
        gradients,
        (
            (model.to_torch(), torch.tensor(model.encode(inputs))),
            (model.to_transformer_lens(), model.transformer_lens_inputs(inputs)),
        ),
        strict=True,
    ):
        plain = network(tokens)[:, -len(inputs[0]) :]
        np.testing.assert_allclose(plain.detach().numpy(), logits(model, inputs), atol=1e-12)
        network.set_use_split_qkv_input(True)
        network.set_use_attn_result(True)
        network.set_use_hook_mlp_in(True)
        kept: dict[str, Any] = {}

        def keep(value: Any, hook: Any, name: str = "", kept: dict[str, Any] = kept) -> None:
            value.retain_grad()
            kept[name] = value

        names = [
            f"blocks.{number}.{name}"
            for number, layer in enumerate(model.weights.layers)
            for name in _hooks(layer)
        ]
        hooks = [(name, functools.partial(keep, name=name)) for name in names]
        answer = network.run_with_hooks(tokens, fwd_hooks=hooks)
        np.testing.assert_allclose(answer[:, -plain.shape[1] :].detach(), plain.detach(), atol=1e-12)
        answer[:, -plain.shape[1] :].square().sum().backward()
        own |= {name: value.grad for name, value in kept.items()}
    ours, theirs = gradients
    assert ours.keys() == theirs.keys()
    assert len(ours) >= 2
    for name, gradient in ours.items():
        # TransformerLens pads heads, and has a slot of ones.
        own = theirs[name][tuple(map(slice, gradient.shape))]
        np.testing.assert_allclose(own, gradient, atol=1e-10, err_msg=f"{name}, sink {sink}")


def _hooks(layer: Any) -> list[str]:
    heads = ["hook_q_input", "hook_k_input", "hook_v_input", "attn.hook_result"]
    return heads * (layer.attention is not None) + ["hook_mlp_in"] * (layer.feed_forward is not None)


@pytest.mark.parametrize("seed", range(8))
def test_logits_with_a_row_for_the_sink_are_read(seed: int) -> None:
    model = random_model(
        seed, heads=["softmax"], feeds=["relu", None], layers=2, sink=True, dtype="float64"
    )
    inputs = random_inputs(model, seed)
    state = {name: t.numpy() for name, t in model.state_dict_for_transformer_lens().items()}
    tokens = model.transformer_lens_inputs(inputs).numpy()
    with_sink = lens_forward(model.transformer_lens_config(), state, tokens)
    assert with_sink.shape[1] == len(inputs[0]) + 1
    answers = model.decode(with_sink, inputs)
    assert answers == model.decode(with_sink[:, 1:], inputs)
    if model.config.outputs is None:
        np.testing.assert_allclose(answers, model(inputs), atol=1e-9)
    else:
        assert answers == model(inputs)
    with pytest.raises(InputError, match=r"try model\.decode\(logits, inputs\)"):
        model.decode(with_sink)
    with pytest.raises(InputError, match="expected logits of shape"):
        model.decode(with_sink[:, :0], inputs)


def test_what_transformer_lens_cannot_hold() -> None:
    with pytest.raises(CompileError, match="hard attention head, in layer 0; try attention='softmax'"):
        previous().state_dict_for_transformer_lens()
    with pytest.raises(CompileError, match="got exact"):
        random_model(2, heads=["softmax"], feeds=["exact"], layers=1).transformer_lens_config()


def test_without_transformer_lens_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("transformer_lens", "torch"):
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(
            InputError, match=rf"{package} is not installed: pip install 'locum\[lens\]'"
        ):
            soft(0).to_transformer_lens()
