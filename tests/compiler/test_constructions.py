"""The paper's constructions and U, as weights on real numbers: equal to dense up to a rounding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from locum import Attention, SOp, UniversalSimulator, tokens
from locum import constructions as c
from locum.constructions import Matrix
from locum.errors import ExecutionError
from locum.networks import compiler
from tests.compiler.agreement import fingerprint, is_close
from tests.constructions.catalogue import programs

pytestmark = pytest.mark.slow

#: Whole numbers, where the construction is about them.
WHOLE = ("match", "k-parity")
#: Tokens of the catalogue's programs that take a number of their own; 12 for the rest (a 3×4 matrix).
TOKENS = {
    ("matmul", "paper"): 21,
    ("matmul", "fetch"): 21,
    ("matmul", "tiled"): 21,
    ("cofactor", "paper"): 9,
    ("cofactor", "order 4"): 16,
    ("determinant", "paper"): 9,
    ("determinant", "frugal"): 9,
    ("inverse", "paper"): 9,
    ("inverse", "cofactor"): 9,
    ("inverse", "gauss-jordan"): 18,
}


def _catalogue() -> list[Any]:
    return [
        pytest.param(program, TOKENS.get(name, 12), name[0] in WHOLE, id=": ".join(name))
        for name, program in programs().items()
    ]


def _numbers(seed: int, count: int, whole: bool = False) -> list[float]:
    chance = np.random.default_rng(seed)
    result = chance.integers(0, 3, count) if whole else chance.normal(size=count)
    return [float(number) for number in result]


def agrees(program: SOp, inputs: list[list[float]], tolerance: float = 1e-12, **options: Any) -> None:
    model = compiler.compile(
        program, length=len(inputs[0]), numeric=True, fixed=True, **options, feed_forward="exact"
    )
    before = fingerprint(model)
    answered = 0
    for sequence in inputs:
        try:
            expected = program(sequence)
        except ExecutionError as error:  # a matrix that an iteration takes for singular
            with pytest.raises(ExecutionError) as raised:
                model(sequence)
            # The check that is stored has no families, so it names another expression.
            assert str(raised.value).split(", in ")[0] == str(error).split(", in ")[0]
            continue
        assert is_close(model(sequence), expected, tolerance)
        answered += 1
    assert answered
    assert fingerprint(model) == before


@pytest.mark.parametrize(("program", "length", "whole"), _catalogue())
def test_the_catalogue(program: SOp, length: int, whole: bool) -> None:
    agrees(program, [_numbers(seed, length, whole) for seed in range(4)])


def _product(r: int, k: int, columns: int, recipe: str) -> Matrix:
    a, b = c.concatenate(tokens, (r, k), (k, columns))
    return c.matmul(a, b, recipe)


@pytest.mark.parametrize("recipe", ["paper", "fetch", "tiled"])
@pytest.mark.parametrize(("r", "k", "columns"), [(1, 1, 1), (1, 4, 2), (2, 3, 4), (4, 2, 2), (3, 5, 1)])
def test_products(r: int, k: int, columns: int, recipe: str) -> None:
    product = _product(r, k, columns, recipe)
    length = max(product.needs, product.reads)
    agrees(product.sop, [_numbers(seed, length) for seed in range(3)])


def _view(r: int, columns: int) -> Matrix:
    return Matrix(tokens, r, columns)


MATRICES: dict[str, Matrix] = {
    "softmax": c.softmax(_view(3, 3)),
    "softmax, unstable": c.softmax(_view(2, 4), stable=False),
    "softmax, frugal": c.softmax(_view(3, 3), recipe="frugal"),
    "softmax, causal": c.softmax(_view(3, 3), mask="causal"),
    "softmax of some columns": c.softmax(_view(3, 3), mask=2),
    "softmax of base 2": c.softmax(_view(2, 3), base=2),
    "transpose": c.transpose(_view(3, 4), "paper"),
    "maxmin": c.maxmin(_view(2, 4)),
    "maxmin, paper": c.maxmin(_view(2, 4), "paper"),
    "groups of 4": c.groupsort(_view(2, 4), 4),
    "maxout": c.maxout(_view(2, 4), 2),
    "hardmax": c.hardmax(_view(2, 3)),
    "relu": c.relu(_view(2, 3)),
    "relu through maxmin": c.relu(_view(2, 3), "maxmin"),
    "gelu": c.gelu(_view(2, 3)),
    "silu": c.silu(_view(2, 3)),
    "tanh": c.tanh(_view(2, 3)),
    "layer norm": c.layer_norm(_view(2, 4)),
    "total": c.total(_view(2, 3)),
    "row means": c.row_means(_view(2, 3)),
    "broadcast": c.broadcast_row(_view(3, 3).block(1, 0, 1, 3), 2),
    "determinant": c.determinant(_view(4, 4)),
    "cofactor": c.cofactor(_view(3, 3)),
    "inverse of order 2": c.inverse(_view(2, 2), "cofactor"),
    "inverse by elimination": c.inverse(_view(3, 3), "gauss-jordan"),
    "inverse by polynomials": c.inverse(_view(3, 3), "faddeev-leverrier"),
    "inverse by iteration": c.inverse(_view(2, 2), "newton-schulz", steps=12),
    "heads": c.multihead(lambda x: c.matmul(c.softmax(c.matmul(x, c.transpose(x))), x), 2, _view(2, 2)),
    "attention": c.matmul(c.softmax(c.matmul(_view(3, 2), c.transpose(_view(3, 2)))), _view(3, 2)),
}


@pytest.mark.parametrize("name", MATRICES)
def test_matrices(name: str) -> None:
    matrix = MATRICES[name]
    length = max(matrix.needs, matrix.reads)
    agrees(matrix.sop, [_numbers(seed, length) for seed in range(5)])


def test_softmax_where_scores_tie() -> None:
    agrees(c.softmax(_view(2, 3)).sop, [[1.0, 1.0, 0.0, -2.0, -2.0, -2.0], [0.0] * 6])


def _simulated(
    order: tuple[int, int, int], recipe: str, stable: bool, tolerance: float, **options: Any
) -> None:
    n, d, d_v = order
    simulator = UniversalSimulator(n, d, d_v, recipe=recipe, stable=stable)
    chance = np.random.default_rng(sum(order))
    inputs = []
    for _ in range(3):
        attention = Attention(chance.normal(size=(d, d)), chance.normal(size=(d, d_v)))
        encoded = simulator.encode(attention, chance.normal(size=(n, d)))
        inputs.append([float(number) for number in encoded])
    agrees(simulator.program, inputs, tolerance, **options)


@pytest.mark.parametrize("recipe", ["paper", "fetch", "tiled"])
@pytest.mark.parametrize(
    "order", [(1, 1, 1), (2, 2, 2), (2, 3, 1), (3, 3, 3), (4, 3, 2), (4, 4, 4)], ids=str
)
def test_universal_simulators(order: tuple[int, int, int], recipe: str) -> None:
    _simulated(order, recipe, stable=False, tolerance=1e-12)


@pytest.mark.parametrize("recipe", ["paper", "fetch", "tiled"])
@pytest.mark.parametrize("order", [(2, 2, 2), (3, 3, 3)], ids=str)
def test_stable_universal_simulators(order: tuple[int, int, int], recipe: str) -> None:
    _simulated(order, recipe, stable=True, tolerance=1e-12)


@pytest.mark.parametrize("recipe", ["paper", "fetch", "tiled"])
def test_universal_simulators_in_float32(recipe: str) -> None:
    _simulated((3, 3, 3), recipe, stable=False, tolerance=1e-4, dtype="float32")
