"""Matrix products as weights: how few layers and heads do, and that they are right."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import locum
from locum.constructions import Matrix, matmul
from locum.constructions.layout import concatenate
from locum.constructions.own_token import own_token_product
from locum.networks.compiler import Target
from locum.networks.compiler.compiling import compile_for
from locum.networks.transformer import CompiledTransformer

SHAPES = [(1, 1, 1), (2, 2, 2), (3, 3, 4), (4, 8, 4), (5, 2, 3), (8, 8, 8)]


@cache
def product(shape: tuple[int, int, int], recipe: str) -> tuple[Matrix, CompiledTransformer]:
    r, k, c = shape
    a, b = concatenate(locum.tokens, (r, k), (k, c))
    result = matmul(a, b, recipe)
    length = max(r * k + k * c, result.needs)
    return result, locum.compile(
        result.sop, length=length, numeric=True, fixed=True, feed_forward="exact"
    )


def factors(shape: tuple[int, int, int], seed: int = 0) -> tuple[Any, Any]:
    r, k, c = shape
    draw = np.random.default_rng(seed)
    return draw.normal(size=(r, k)), draw.normal(size=(k, c))


def multiplied(result: Matrix, model: CompiledTransformer, A: Any, B: Any) -> Any:
    tokens = np.concatenate([A.ravel(), B.ravel()])
    blanks = np.zeros(model.config.lengths[1] - len(tokens))
    values = np.asarray(model(np.concatenate([tokens, blanks])))
    positions = result.places.positions
    return result.places.take(values[positions.start : positions.stop])


@pytest.mark.parametrize("recipe", ["paper", "fetch", "scatter", "tiled"])
@pytest.mark.parametrize("shape", SHAPES)
def test_every_recipe_multiplies(shape: tuple[int, int, int], recipe: str) -> None:
    result, model = product(shape, recipe)
    A, B = factors(shape)
    assert np.abs(multiplied(result, model, A, B) - A @ B).max() <= 1e-13


@pytest.mark.parametrize("shape", SHAPES)
def test_layers_and_heads(shape: tuple[int, int, int]) -> None:
    r, k, c = shape
    fetch, scatter, paper = (
        product(shape, recipe)[1].architecture for recipe in ("fetch", "scatter", "paper")
    )
    assert fetch.layers == 1
    assert fetch.heads[0] <= 2 * k
    assert scatter.layers <= 2
    assert sum(scatter.heads) == 1
    assert paper.layers <= 2
    assert sum(paper.heads) <= r + c + r * c


@pytest.mark.parametrize(
    "shape",
    [(r, k, c) for r in range(1, 7) for k in range(1, 7) for c in range(1, 7) if k * (r + c) >= r * c],
)
def test_one_layer_of_2k_minus_1_heads(shape: tuple[int, int, int]) -> None:
    """Wherever Hall's condition k ≥ rc/(r + c) allows, up to 6."""
    r, k, c = shape
    a, b = concatenate(locum.tokens, (r, k), (k, c))
    result = own_token_product(a, b)
    model = locum.compile(
        result.sop, length=result.needs, numeric=True, fixed=True, feed_forward="exact"
    )
    assert model.architecture.layers == 1
    assert sum(model.architecture.heads) == 2 * k - 1
    A, B = factors(shape)
    values = np.asarray(model(np.concatenate([A.ravel(), B.ravel()])))
    assert np.abs(values[np.array(result.positions)] - A @ B).max() <= 1e-13


@pytest.mark.parametrize(("r", "c"), [(2, 2), (3, 3), (3, 4), (4, 4), (5, 7), (8, 8)])
def test_tiled_weights_do_not_depend_on_k(r: int, c: int) -> None:
    """But for the table of positions they are the same to the last bit, for four values of k."""
    actual = []
    for k in (6, 7, 8, 11):
        a, b = concatenate(locum.tokens, (r, k), (k, c))
        result = matmul(a, b, "tiled")
        size = max(r * k + k * c, result.needs)
        target = Target(length=size, numeric=True, fixed=True, feed_forward="exact")
        model = compile_for(target, result.sop.node, "tiled", share_positions=False)
        actual.append({n: w for n, w in model.weights.named() if n != "pos_embed.W_pos"})
        assert model.architecture.layers == 2
        assert model.architecture.heads[1] == 1
    for other in actual[1:]:
        assert other.keys() == actual[0].keys()
        assert all(w.tobytes() == actual[0][name].tobytes() for name, w in other.items())
