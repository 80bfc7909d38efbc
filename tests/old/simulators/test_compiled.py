"""U as weights: every recipe, the paper's figure, one set of weights for many T, and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from locum.errors import CompileError, InputError
from locum.networks.transformer import CompiledTransformer
from locum.paper import figure2
from locum.simulators import Attention, Order, UniversalSimulator

#: Layers, heads and width of the residual stream of U(3, 3, 3): what a prototype needed.
FINDINGS = {
    "paper": (7, 52, 148),
    "fetch": (5, 21, 59),
    "width-1": (8, 3, 66),
    "native": (3, 19, 54),
}


def simulator(order: tuple[int, int, int], recipe: str) -> UniversalSimulator:
    return UniversalSimulator(*order, recipe="fetch" if recipe == "native" else recipe)


def pair(order: tuple[int, int, int], seed: int, scale: float = 1.0) -> tuple[Attention, Any]:
    n, d, d_v = order
    draw = np.random.default_rng(seed)
    T = Attention(A=scale * draw.normal(size=(d, d)), V=draw.normal(size=(d, d_v)))
    return T, draw.normal(size=(n, d))


def relative_error(U: UniversalSimulator, model: CompiledTransformer, T: Attention, X: Any) -> float:
    direct = T(X)
    result = U.decode(model(U.encode(T, X)))
    return float(np.abs(result - direct).max() / np.abs(direct).max())


@pytest.mark.parametrize("recipe", ["paper", "fetch", "tiled", "width-1", "native"])
@pytest.mark.parametrize("order", [(1, 1, 1), (2, 2, 2), (3, 2, 4), (4, 4, 4), (5, 2, 1)])
def test_every_recipe_computes_attention(recipe: str, order: tuple[int, int, int]) -> None:
    U = simulator(order, recipe)
    model = U.compile(recipe, feed_forward="exact")
    for seed in range(5):
        assert relative_error(U, model, *pair(order, seed)) <= 1e-13


@pytest.mark.parametrize("recipe", FINDINGS)
def test_counts_are_no_larger_than_the_findings(recipe: str) -> None:
    result = simulator((3, 3, 3), recipe).compile(recipe, feed_forward="exact").architecture
    layers, heads, width = FINDINGS[recipe]
    assert result.layers <= layers
    assert sum(result.heads) <= heads
    assert result.d_model < width
    if recipe == "width-1":
        assert max(result.heads) == 1


@pytest.mark.parametrize("recipe", FINDINGS)
def test_one_set_of_weights_serves_every_pair(recipe: str) -> None:
    order = (3, 3, 3)
    U = simulator(order, recipe)
    model = U.compile(recipe, feed_forward="exact")
    before = model.hash
    scales = np.geomspace(1e-2, 4, 200)
    for seed in range(200):
        assert relative_error(U, model, *pair(order, seed, scales[seed])) <= 1e-13
    assert model.hash == before
    assert simulator(order, recipe).compile(recipe, feed_forward="exact").hash == before


@pytest.mark.parametrize("recipe", ["paper", "fetch", "width-1"])
def test_figure_2(recipe: str) -> None:
    """With the paper's base 2.718 its errors come out to every printed digit."""
    U = UniversalSimulator(3, 3, 3, recipe=recipe, stable=False, base=2.718)
    Y = U.decode(U.compile(recipe, feed_forward="exact")(U.encode(figure2.T, figure2.X)))
    assert f"{np.abs(Y - figure2.T(figure2.X)).max():.6e}" == "3.040329e-07"


def test_a_causal_native_head() -> None:
    T, X = pair((4, 3, 2), 7)
    masked = Attention(A=T.A, V=T.V, mask="causal")
    U = UniversalSimulator.of(masked, 4)
    result = U.decode(U.compile("native", feed_forward="exact")(U.encode(masked, X)))
    assert np.abs(result - masked(X)).max() <= 1e-13


def test_a_batch_compiles_without_the_native_head() -> None:
    T, (first, second) = pair((2, 2, 2), 7)[0], np.random.default_rng(8).uniform(-1, 1, (2, 2, 2))
    T = Attention(A=np.clip(T.A, -1, 1), V=np.clip(T.V, -1, 1))
    U, X = UniversalSimulator(Order.of(2, 2, 2, batch=2)), np.stack([first, second])
    result = U.decode(U.compile()(U.encode(T, X)))
    assert np.abs(result - np.concatenate([T(first), T(second)])).max() <= 1e-2
    with pytest.raises(CompileError, match="native"):
        U.compile("native")


def test_stable_softmax_survives_large_scores() -> None:
    order = (2, 2, 2)
    U = UniversalSimulator(*order)
    T, X = pair(order, 3, scale=1e4)
    assert relative_error(U, U.compile(stable=True, feed_forward="exact"), T, X) <= 1e-12
    with pytest.raises(ValueError, match="exp"):
        U.compile(feed_forward="exact")(U.encode(T, X))


def test_hidden_units_are_the_default() -> None:
    """They are native, and serve numbers from −1 to 1 where nobody says otherwise."""
    U = UniversalSimulator(2, 2, 2)
    draw = np.random.default_rng(0)
    for model in (U.compile(), U.compile(attention="softmax", feed_forward="gelu", ranges=(-2, 2))):
        assert model.architecture.layers == 3
        assert "recipe native" in model.config.name
        assert model.config.ranges is not None
        low, high = model.config.ranges[0]
        A, V, X = draw.uniform(low, high, size=(3, 2, 2))
        T = Attention(A, V)
        assert np.abs(U.decode(model(U.encode(T, X))) - T(X)).max() <= model.error_bound <= 1e-3
        with pytest.raises(InputError, match="ranges"):
            model(U.encode(T, high + 1 + X))
    special = U.specialise(Attention(np.eye(2), np.eye(2))).compile()
    assert special.weights.feed_forwards == {"relu"}
    with pytest.raises(CompileError, match="symbolic feed-forwards, executed as code"):
        UniversalSimulator(4, 4, 4).compile("fetch")


def test_refusals() -> None:
    U = UniversalSimulator(3, 2, 2)
    with pytest.raises(CompileError, match=r"recipe: expected one of .*, got 'none'"):
        U.compile("none", feed_forward="exact")
    with pytest.raises(CompileError, match="one head of softmax attention"):
        UniversalSimulator(Order.of(2, 2, 2, heads=2)).compile("native", feed_forward="exact")
    with pytest.raises(CompileError, match=r"at least \d+ tokens .* try UniversalSimulator"):
        UniversalSimulator(6, 3, 3).compile("width-1", feed_forward="exact")


@pytest.mark.parametrize("pre_norm", [False, True])
def test_a_transformer_runs_a_transformer(pre_norm: bool) -> None:
    """A whole encoder layer of torch (norms, biases, GELU, two heads) by the weights of U alone."""
    torch = pytest.importorskip("torch")
    from locum.simulators import from_torch

    torch.manual_seed(1)
    layer = torch.nn.TransformerEncoderLayer(
        4, 2, 6, activation="gelu", norm_first=pre_norm, batch_first=True, dtype=torch.float64
    ).eval()
    with torch.no_grad():
        for parameter in layer.parameters():  # biases and gains that are not just 0 and 1
            parameter += 0.3 * torch.randn_like(parameter)
    T, X = from_torch(layer), torch.randn(3, 4, dtype=torch.float64)
    U = UniversalSimulator.of(T, 3)
    model = U.compile(feed_forward="exact")
    with torch.no_grad():
        direct = layer(X[None])[0].numpy()
    assert np.abs(U.decode(model(U.encode(T, X.numpy()))) - direct).max() <= 1e-12
