"""Balanced weights: the same outputs to the bit, by weights of nearly one size."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import locum
from locum.errors import InputError
from locum.languages.cookbook import COOKBOOK, Compiled
from locum.networks.transformer import (
    AttentionWeights,
    CompiledTransformer,
    Config,
    FeedForwardWeights,
    LayerWeights,
    Weights,
)
from locum.networks.transformer.balancing import Spread
from locum.networks.transformer.circuit import CircuitNode
from locum.simulators import UniversalSimulator
from tests.transformer.random_models import logits, random_inputs, random_model

EXACT = {"feed_forward": "exact"}
UNITS = {"attention": "softmax", "ranges": (-1, 1), "tolerance": 1e-2}
#: U in each recipe, with hard and softmax heads, and of units where the recipe has them.
NETWORKS: list[tuple[str, dict[str, Any]]] = [
    *((recipe, EXACT) for recipe in ("paper", "fetch", "tiled", "width-1", "inverse", "native")),
    *((recipe, {"attention": "softmax", **EXACT}) for recipe in ("paper", "fetch", "tiled", "inverse")),
    *(("native", {**UNITS, "feed_forward": kind}) for kind in ("glu", "gelu", "relu")),
    ("fetch", {**UNITS, "feed_forward": "glu"}),
    ("fetch", {"dtype": "float32", **EXACT}),
    ("native", {"dtype": "float32", **UNITS, "feed_forward": "relu"}),
    ("fetch", {"reuse_slots": False, **EXACT}),
]


def ratio(model: CompiledTransformer) -> float:
    return Spread.of(model.weights).ratio


def same_bits(model: CompiledTransformer, other: CompiledTransformer, inputs: Any) -> bool:
    return bool(np.array_equal(logits(model, inputs), logits(other, inputs)))


def ranged(network: tuple[str, dict[str, Any]]) -> str:
    recipe, options = network
    return " ".join([recipe, *(str(value) for value in options.values() if isinstance(value, str))])


@pytest.mark.parametrize("network", NETWORKS, ids=ranged)
def test_u_gives_the_same_bits(network: tuple[str, dict[str, Any]], tmp_path: Path) -> None:
    recipe, options = network
    own = "fetch" if recipe == "native" else recipe
    model = UniversalSimulator(2, 2, 2, recipe=own).compile(recipe, **options)
    balanced = model.balanced()
    inputs = np.random.default_rng(0).uniform(-1, 1, (8, model.config.lengths[1])).tolist()
    assert same_bits(model, balanced, inputs)
    assert model(inputs) == balanced(inputs)
    assert ratio(balanced) <= ratio(model)
    if options.get("attention") == "softmax" and recipe != "inverse":
        assert ratio(balanced) < ratio(model) / 8
    assert balanced.error_bound == model.error_bound
    assert balanced.circuit == model.circuit
    assert balanced.architecture == model.architecture
    for name in ("slots", "heads", "program", "program_hash", "name", "outputs", "lengths"):
        assert getattr(balanced.config, name) == getattr(model.config, name)
    # What is said of slots is true of what residual() shows.
    assert np.array_equal(balanced.residual(inputs[0]).values, model.residual(inputs[0]).values)
    balanced.save(tmp_path / "model")
    loaded = locum.load(tmp_path / "model")
    assert loaded.hash == balanced.hash
    assert loaded(inputs) == model(inputs)
    assert np.array_equal(loaded.residual(inputs[0]).values, model.residual(inputs[0]).values)


@pytest.mark.parametrize(
    "name", [name for name, entry in COOKBOOK.items() if isinstance(entry, Compiled)]
)
def test_the_cookbook_gives_the_same_answers(name: str) -> None:
    entry = COOKBOOK[name]
    assert isinstance(entry, Compiled)
    model, balanced = entry.model, entry.model.balanced()
    assert ratio(balanced) <= ratio(model)
    vocabulary = model.config.vocabulary
    assert vocabulary is not None
    draw = np.random.default_rng(1)
    for length in (model.config.lengths[0], model.config.lengths[1]):
        words = [[vocabulary[i] for i in draw.integers(len(vocabulary), size=length)] for _ in range(9)]
        assert balanced(words) == model(words)


@pytest.mark.parametrize("seed", range(36))
def test_random_networks_give_the_same_bits(seed: int) -> None:
    """Causal or not, with and without sinks, layers, heads and feed-forwards, float32 and float64."""
    model = random_model(seed)
    if seed % 3 == 0:
        config = dataclasses.replace(model.config, causal=True)
        model = CompiledTransformer(config, model.weights)
    balanced = model.balanced()
    inputs = random_inputs(model, seed)
    assert same_bits(model, balanced, inputs)
    assert balanced(inputs) == model(inputs)
    twice = balanced.balanced()
    assert same_bits(model, twice, inputs)
    assert np.array_equal(twice.residual(inputs[0]).values, model.residual(inputs[0]).values)
    assert ratio(twice) <= ratio(balanced) <= ratio(model)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("seed", range(8))
def test_extreme_weights_stay_within_floats(seed: int, dtype: str) -> None:
    """Every slot and head scaled far up or down: what balancing does may not over- or underflow."""
    model = random_model(seed, dtype=dtype, numeric=False, layers=2)
    draw, far = np.random.default_rng(seed), 10 if dtype == "float32" else 80

    def stretched(part: Any) -> Any:
        arrays = {
            name: np.ldexp(value, draw.integers(-far, far + 1, value.shape)).astype(dtype)
            for name, value in (vars(part) if part is not None else {}).items()
            if isinstance(value, np.ndarray)
        }
        return part if part is None else dataclasses.replace(part, **arrays)

    layers = tuple(
        LayerWeights(stretched(layer.attention), stretched(layer.feed_forward))
        for layer in model.weights.layers
    )
    weights = dataclasses.replace(stretched(model.weights), layers=layers)
    model = CompiledTransformer(model.config, weights)
    balanced = model.balanced()
    for _, tensor in balanced.weights.named():
        assert np.isfinite(tensor).all()
    assert balanced.architecture.nonzeros == model.architecture.nonzeros
    try:
        expected = model(inputs := random_inputs(model, seed))
    except locum.errors.LocumError:
        return  # it left the range of floats before
    assert balanced(inputs) == expected


def one_slot(slot: list[float], dtype: str = "float64", **options: Any) -> CompiledTransformer:
    """A network without heads that reads a token off one slot, written by W_pos and W_E."""
    weights = Weights(
        np.array([slot], dtype), np.zeros((2, len(slot)), dtype), (), np.ones((len(slot), 1), dtype),
        np.zeros(1, dtype),
    )  # fmt: skip
    config = Config(
        None, (1, 2), False, None, "hard", "exact", dtype, ("token",) * len(slot), (), **options
    )
    return CompiledTransformer(config, weights)


def test_weights_at_the_ends_of_floats() -> None:
    model = one_slot([1.7e308, 1e-307, 1e-307, 1e-307, 1e-307])
    balanced = model.balanced()
    assert balanced([0.5]) == model([0.5])
    assert all(np.isfinite(tensor).all() for _, tensor in balanced.weights.named())
    zeros = one_slot([0.0])
    zeros.weights.W_U[:] = 0
    assert zeros.balanced()([3.0]) == [0.0]


def test_least_tokens_are_not_lost_and_huge_ones_are_refused() -> None:
    model = one_slot([2.0**-10])
    balanced = model.balanced()
    assert ratio(balanced) == 1
    assert balanced([2.0**-1064]) == model([2.0**-1064]) != [0.0]
    with pytest.raises(InputError, match="expected a number from"):
        balanced([1e300])
    with pytest.raises(InputError, match="expected tokens up to"):
        one_slot([1.0], ranges=((1e200, 1e300),)).balanced()


def test_gelu_units_and_functions_keep_their_inputs() -> None:
    for kind in ("gelu", "exact"):
        options = {"feed_forward": kind} if kind == "exact" else {**UNITS, "feed_forward": kind}
        model = UniversalSimulator(1, 1, 1).compile("native", **options)
        inputs = [[0.5, -0.25, 1.0]]
        before, after = (m.run_with_cache(inputs)[1] for m in (model, model.balanced()))
        layers = [layer for layer in range(3) if ("pre", layer) in before]
        assert layers
        for layer in layers:
            assert np.array_equal(before["pre", layer], after["pre", layer])


def test_pictures_and_a_hostile_report() -> None:
    from locum.interface.display.network.network_text import network_text

    reverse = locum.aggregate(
        locum.select(locum.indices, locum.length - 1 - locum.indices, "=="), locum.tokens
    )
    model = locum.compile(reverse, length=4, vocabulary="ab", attention="softmax").balanced()
    assert "indices" in network_text(model, "abba")
    for said in (1, {}, {"slots": "x"}, {"slots": [1e9] * 9}, {"slots": [10**9] * len(model.slots)}):
        config = dataclasses.replace(model.config, report={"balanced": said})
        other = CompiledTransformer(config, model.weights)
        assert other.residual("ab").values.shape[-1] == len(model.slots)
        assert other.balanced()("abba") == list("abba")


def exported() -> list[tuple[str, Callable[[Any, Any, Path], Any]]]:
    torch = pytest.importorskip("torch")

    def tensor(model: Any, inputs: Any) -> Any:
        return torch.tensor(model.encode(inputs))

    def onnx(model: Any, inputs: Any, folder: Path) -> Any:
        from tests.transformer.test_onnx import encoded, run

        model.to_onnx(folder / "model.onnx")
        return run(folder / "model.onnx", encoded(model, inputs))

    def lens(model: Any, inputs: Any, folder: Path) -> Any:
        pytest.importorskip("transformer_lens")
        return model.to_transformer_lens()(model.transformer_lens_inputs(inputs)).detach()

    return [
        ("torch", lambda model, inputs, _: model.to_torch()(tensor(model, inputs)).detach()),
        ("encoder", lambda model, inputs, _: model.to_encoder()(tensor(model, inputs)).detach()),
        ("onnx", onnx),
        ("lens", lens),
    ]


@pytest.mark.parametrize("host", range(4), ids=["torch", "encoder", "onnx", "lens"])
def test_exports_of_balanced_networks(host: int, tmp_path: Path) -> None:
    model = locum.compile(
        locum.selector_width(locum.select(locum.tokens, locum.tokens, "==")) * locum.indices,
        length=5,
        vocabulary="abc",
        attention="softmax",
        feed_forward="relu",
    )
    balanced, inputs = model.balanced(), [list("abcab"), list("aaacb")]
    assert ratio(balanced) < ratio(model)
    _, call = exported()[host]
    result = np.asarray(call(balanced, inputs, tmp_path))
    assert balanced.decode(result, inputs) == model(inputs)


def test_a_decoder_is_balanced() -> None:
    past = locum.select(locum.indices, locum.indices, "<=")
    seen = locum.selector_width(locum.select(locum.tokens, locum.tokens, "==") & past)
    options: dict[str, Any] = {"attention": "softmax", "feed_forward": "gelu", "causal": True}
    model = locum.compile(seen, length=6, vocabulary="ab", **options)
    balanced = model.balanced()
    assert balanced("abaab") == model("abaab") == [1, 1, 2, 3, 2]
    torch = pytest.importorskip("torch")
    result = balanced.to_decoder()(torch.tensor(balanced.encode([list("abaab")]))).detach().numpy()
    assert balanced.decode(result, [list("abaab")]) == [[1, 1, 2, 3, 2]]


def test_a_head_of_one_number_is_balanced_by_the_root() -> None:
    """q·k = 4096·1 becomes 64·64: the gauge of one head by hand."""
    shape = (1, 1, 1)
    head = AttentionWeights(
        np.full(shape, 4096.0), np.zeros((1, 1)), np.ones(shape), np.zeros((1, 1)),
        np.ones(shape), np.zeros((1, 1)), np.ones(shape), np.zeros(1), ("softmax",),
    )  # fmt: skip
    model = one_slot([1.0])
    weights = dataclasses.replace(model.weights, layers=(LayerWeights(head, None),))
    balanced = CompiledTransformer(model.config, weights).balanced()
    attention = balanced.weights.layers[0].attention
    assert attention is not None
    assert attention.W_Q[0, 0, 0] * attention.W_K[0, 0, 0] * balanced.weights.W_E[0, 0] ** 2 == 4096
    assert ratio(balanced) == 64


def test_the_least_floats_of_a_query_are_kept() -> None:
    """A query of x and a key of y·2⁻¹² would meet at 2⁻⁶ each: then the least x is 0, and ties all."""
    shape, none = (1, 1, 1), np.zeros((1, 1))
    head = AttentionWeights(
        np.ones(shape), none, np.full(shape, 2.0**-12), none,
        np.ones(shape), none, np.ones(shape), np.zeros(1), ("hard",),
    )  # fmt: skip
    model = one_slot([1.0])
    weights = dataclasses.replace(model.weights, layers=(LayerWeights(head, None),))
    model = CompiledTransformer(model.config, weights)
    inputs = [[2.0**-1073, 2.0**101], [5 * 2.0**-1074, -(2.0**100)]]
    assert logits(model, inputs)[0, 0] == 2.0**101
    assert same_bits(model, model.balanced(), inputs)


def test_the_least_floats_of_a_slot_are_kept() -> None:
    """A slot that is written by 1 and 2²⁰ and read by 2⁻¹⁰ and 1, with no other freedom."""
    feed = FeedForwardWeights(
        "gelu", np.array([[2.0**-10, 1.0], [0, 0]]), np.zeros(2),
        np.array([[0, 1.0], [0, 1.0]]), np.zeros(2),
    )  # fmt: skip
    model = one_slot([1.0])
    weights = Weights(
        np.array([[1.0, 0]]),
        np.array([[0, 0], [2.0**20, 0]]),
        (LayerWeights(None, feed),),
        np.array([[0], [1.0]]),
        np.zeros(1),
    )
    config = dataclasses.replace(model.config, slots=("token", "answer"))
    model = CompiledTransformer(config, weights)
    inputs = [[2.0**-1070, 1.0], [3 * 2.0**-1074, 2.0]]
    assert logits(model, inputs)[0, 0] == 2.0**-1071
    assert same_bits(model, model.balanced(), inputs)


def test_what_is_ablated_is_meant_as_labels_say() -> None:
    """A slot of a balanced network holds 2ᵏ times what its label says; so does what it is set to."""
    model = UniversalSimulator(2, 1, 1).compile("native", **UNITS, feed_forward="glu")
    balanced, inputs = model.balanced(), [[0.5, -0.25, 1.0, 0.75]]
    assert any(balanced.config.report["balanced"]["slots"])
    nodes = [n for n in model.circuit.nodes if n.kind in ("embed", "pos_embed", "slot")]
    assert {node.kind for node in nodes} == {"embed", "pos_embed", "slot"}
    parts: list[str | CircuitNode] = [*nodes, "embed", "blocks.1.hook_resid_mid"]
    for part in [*parts, "blocks.0.hook_attn_out"]:
        assert balanced.ablate(inputs, part, value=0.75) == model.ablate(inputs, part, value=0.75)
    pattern = "blocks.0.attn.hook_pattern"
    assert balanced.ablate(inputs, pattern, value=0.5) == model.ablate(inputs, pattern, value=0.5)
    for part in ("blocks.0.attn", "blocks.0.mlp", "blocks.0.attn.hook_q", "blocks.0.mlp.hook_pre"):
        assert balanced.ablate(inputs, part) == model.ablate(inputs, part)
        with pytest.raises(InputError, match="expected the value 0 at blocks"):
            balanced.ablate(inputs, part, value=0.75)
    with pytest.raises(InputError, match="expected a head and places within"):
        balanced.ablate(inputs, "embed", places=[99], value=1.0)
    torch = pytest.importorskip("torch")
    ids = torch.tensor(model.encode(inputs))
    actual, expected = (m.to_torch().ablate(ids, nodes[0], value=0.75) for m in (balanced, model))
    assert torch.equal(actual, expected)
