"""Products with few heads: their numbers, their counts, and what a compiler relies on."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import locum
from locum import constructions as c
from locum.constructions import Matrix
from locum.constructions.bipartite import places_for_all
from tests.old.compiler.selectors import distinct_selectors, empty_selections, without_tables
from tests.old.constructions.matrices import (
    arrays,
    assert_close,
    once,
    rationals,
    sizes,
    small,
    together,
)

SHAPES = list(itertools.product(range(1, 7), repeat=3))
#: Shapes with k ≥ rc/(r + c).
ROOMY = [(r, k, columns) for r, k, columns in SHAPES if k * (r + columns) >= r * columns]


def views(r: int, k: int, columns: int) -> tuple[Matrix, Matrix]:
    a, b = c.concatenate(locum.tokens, (r, k), (k, columns))
    return a, b


def numbers(*shapes: tuple[int, int]) -> list[Any]:
    chance = np.random.default_rng(sum(map(sum, shapes)))
    return [chance.normal(size=shape) for shape in shapes]


# Entries at their own tokens --------------------------------------------------------------------------


@once
@pytest.mark.parametrize("r", range(1, 7))
def test_one_layer_of_2k_minus_1_heads_wherever_there_is_room(r: int) -> None:
    shapes = [shape for shape in ROOMY if shape[0] == r]
    assert shapes
    for _, k, columns in shapes:
        a, b = numbers((r, k), (k, columns))
        product = c.own_token_product(*views(r, k, columns))
        assert_close(product.run(together(a, b)), a @ b)
        assert product.sop.architecture.heads == distinct_selectors(product.sop) == [2 * k - 1]


@once
def test_every_entry_has_a_token_of_its_own() -> None:
    for r, k, columns in ROOMY:
        x, y = views(r, k, columns)
        product = c.own_token_product(x, y)
        places = Counter(itertools.chain(*product.positions))
        assert set(places.values()) == {1}
        for i, j in itertools.product(range(r), range(columns)):
            needed = {x.position(i, t) for t in range(k)} | {y.position(t, j) for t in range(k)}
            assert product.positions[i][j] in needed


def test_without_room_there_is_no_such_product() -> None:
    refused = 0
    for r, k, columns in SHAPES:
        if (r, k, columns) not in ROOMY:
            with pytest.raises(locum.GraphError, match=r"k ≥ rc/\(r \+ c\), here k ≥ "):
                c.own_token_product(*views(r, k, columns))
            refused += 1
    assert refused == len(SHAPES) - len(ROOMY) > 0


@once
@given(st.data(), st.sampled_from([shape for shape in ROOMY if max(shape) <= 4]), st.integers(0, 3))
def test_own_tokens_are_exact_on_rationals(
    data: st.DataObject, shape: tuple[int, int, int], more: int
) -> None:
    r, k, columns = shape
    a, b = arrays(data, (r, k), (k, columns), of=rationals)
    product = c.own_token_product(*views(r, k, columns))
    inputs = together(a, b) + [1] * more
    assert (product.run(inputs, domain="exact") == a.dot(b)).all()
    assert (product.compact().run(inputs, domain="exact") == a.dot(b)).all()


def test_own_tokens_of_views_and_of_results() -> None:
    a, b = numbers((3, 4), (4, 2))
    x, y = views(3, 4, 2)
    assert_close(c.own_token_product(y.transpose(0, 1), x.transpose(0, 1)).run([a, b]), (a @ b).T)
    gram = c.own_token_product(x, x.transpose(0, 1))  # every token is one of both sides
    assert_close(gram.run([a]), a @ a.T)
    doubled = 2 * locum.tokens
    twice = c.own_token_product(x.map(doubled), y.map(doubled))
    assert_close(twice.run([a, b]), 4 * a @ b)
    assert twice.compact().sop.architecture.heads == [7, 1]


def test_own_tokens_refuse_what_they_cannot_read() -> None:
    x, y = views(3, 4, 2)
    with pytest.raises(locum.GraphError, match="views of one s-op"):
        c.own_token_product(x, y.map(locum.tokens + 1))
    with pytest.raises(locum.GraphError, match="inner dimensions 4 and 3 differ"):
        c.own_token_product(x, x)
    with pytest.raises(
        locum.GraphError, match="expected a number, since it determines the number of heads"
    ):
        c.own_token_product(Matrix(locum.tokens, 3, locum.length // 3), y)
    with pytest.raises(
        locum.InputError, match="at least 20 tokens for the inputs of this 3×2 product, got 19"
    ):
        c.own_token_product(x, y).run([0] * 19)
    with pytest.raises(locum.InputError, match="expected numbers as the entries of a 3×2 matrix"):
        c.Placed(locum.where(locum.indices < 3, "a", "b"), ((0, 1), (2, 3), (4, 5)), 6, 6).run([0] * 6)


@once
@given(st.dictionaries(st.integers(0, 5), st.lists(st.integers(0, 5), max_size=3), max_size=5))
def test_places_for_all(choices: dict[int, list[int]]) -> None:
    result = places_for_all(choices)
    ways = [w for w in itertools.product(*choices.values()) if len(set(w)) == len(w)]
    if result is None:
        assert not ways
    else:
        assert tuple(result[who] for who in choices) in ways


# One head ---------------------------------------------------------------------------------------------


@once
@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 3, 4), (3, 3, 3), (6, 1, 5), (4, 8, 4)])
def test_a_product_by_one_head(shape: tuple[int, int, int]) -> None:
    r, k, columns = shape
    a, b = numbers((r, k), (k, columns))
    product = c.matmul(*views(r, k, columns), recipe="scatter")
    assert product.sop.architecture.heads == distinct_selectors(product.sop) == [1]
    result = product.sop([*together(a, b), *[7.0] * (r * columns)])
    assert_close(np.reshape(result[: r * columns], (r, columns)), a @ b)
    assert set(result[r * columns :]) == {0}


def test_two_heads_where_the_matrices_do_not_lie_apart() -> None:
    (a,) = numbers((3, 4))
    x = Matrix(locum.tokens, 3, 4)
    gram = c.matmul(x, x.transpose(0, 1), recipe="scatter")
    assert_close(gram.run([a]), a @ a.T)
    assert gram.sop.architecture.heads == [2]


@given(st.data(), small, small, small, st.booleans(), st.integers(0, 3), st.integers(1, 3))
def test_views_under_one_head(
    data: st.DataObject, r: int, k: int, columns: int, swapped: bool, gap: int, stride: int
) -> None:
    """Strides, offsets and transposes; B in front of A, too."""
    a, b = arrays(data, (r, k), (k, columns))
    second = gap + stride * r * k
    x = Matrix(locum.tokens, r, k, offset=gap, row_stride=stride * k, column_stride=stride)
    y = Matrix(locum.tokens, k, columns, offset=second, row_stride=1, column_stride=k)
    inputs = [9.0] * (second + k * columns)
    for i, t in itertools.product(range(r), range(k)):
        inputs[gap + stride * (i * k + t)] = a[i, t]
    inputs[second:] = b.T.ravel().tolist()
    left, right = (y.transpose(0, 1), x.transpose(0, 1)) if swapped else (x, y)
    product = c.matmul(left, right, recipe="scatter")
    assert_close(product.run(inputs), (a @ b).T if swapped else a @ b)
    assert product.sop.architecture.heads == [1]


def test_scattering_needs_numbers() -> None:
    k = locum.length // 7
    x, y = Matrix(locum.tokens, 3, k), Matrix(locum.tokens, k, 4, offset=3 * k)
    with pytest.raises(
        locum.GraphError, match=r"inner dimension \(recipe scatter\): expected a number"
    ):
        c.matmul(x, y, recipe="scatter")
    y = Matrix(locum.tokens, 2, 2, offset=9)
    for strides in ((0, 0), (0, 1), (1, 0), (1, 1)):
        with pytest.raises(locum.GraphError, match="got a 2×2 matrix with several entries at one"):
            c.matmul(Matrix(locum.tokens, 2, 2, 0, *strides), y, recipe="scatter")


# Means by weights ---------------------------------------------------------------------------------------


@given(st.data(), sizes, sizes, sizes, st.sampled_from(("fetch", "scatter")))
def test_weighted_mean(data: st.DataObject, r: int, k: int, columns: int, recipe: str) -> None:
    w, v = arrays(data, (r, k), (k, columns))
    w = np.abs(w) + 0.5
    x, y = views(r, k, columns)
    mean = c.weighted_mean(x, y, recipe=recipe)
    assert_close(mean.run(together(w, v)), w @ v / w.sum(axis=1, keepdims=True))
    assert mean.sop.architecture.heads == c.matmul(x, y, recipe=recipe).sop.architecture.heads


def test_what_weighted_mean_refuses() -> None:
    x, y = views(1, 2, 1)
    with pytest.raises(locum.GraphError, match="weighted_mean: expected the recipe fetch"):
        c.weighted_mean(x, y, recipe="paper")
    with pytest.raises(locum.ExecutionError, match="division by zero"):
        c.weighted_mean(x, y).run([1, -1, 2, 3])


# What a compiler relies on ----------------------------------------------------------------------------


@once
@pytest.mark.parametrize("recipe", ["fetch", "tiled", "scatter", "own"])
@pytest.mark.parametrize("shape", [(2, 2, 2), (3, 4, 3), (5, 3, 2), (3, 5, 4), (5, 4, 7), (2, 1, 1)])
def test_no_query_is_left_without_keys(shape: tuple[int, int, int], recipe: str) -> None:
    """So a network needs no sink for these."""
    r, k, columns = shape
    x, y = views(r, k, columns)
    product = c.own_token_product(x, y) if recipe == "own" else c.matmul(x, y, recipe=recipe)
    for more in (0, 1, 5):
        assert empty_selections(product.sop, [1.0] * (product.needs + more)) == 0


@once
@pytest.mark.parametrize("r", [2, 3, 5])
@pytest.mark.parametrize("columns", [2, 4, 7])
def test_the_tiled_product_has_k_in_tables_of_the_position_alone(r: int, columns: int) -> None:
    """One set of weights for all k: what is not such a table is the same program."""

    def product(recipe: str, k: int) -> locum.SOp:
        return c.matmul(*views(r, k, columns), recipe=recipe).sop

    tiled, fetch, paper = (
        {without_tables(product(recipe, k).node) for k in (4, 5, 7, 10)}
        for recipe in ("tiled", "fetch", "paper")
    )
    assert len(tiled) == 1
    assert len({tuple(distinct_selectors(product("tiled", k))) for k in (4, 5, 7, 10)}) == 1
    assert len(fetch) == len(paper) == 4  # in the paper's, the factor k that makes sums of means
    for k in (4, 5, 7, 10):
        a, b = numbers((r, k), (k, columns))
        assert_close(
            np.reshape(product("tiled", k)(together(a, b))[: r * columns], (r, columns)), a @ b
        )
