"""Every construction gives what NumPy gives, at several shapes, offsets and executors.

The name of a row begins with the name of its construction.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import locum
from locum import constructions as con
from locum import tokens

Array = Any


def softmax(scores: Array, base: float = math.e) -> Array:
    """Return the softmax of each row."""
    powers = base ** (scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def hardmax(scores: Array) -> Array:
    """Return equal weights of the largest entries of each row."""
    largest = scores == scores.max(1, keepdims=True)
    return largest / largest.sum(1, keepdims=True)


def causal(scores: Array) -> Array:
    """Remove the scores of later columns."""
    return np.where(np.tril(np.ones(scores.shape, bool)), scores, -np.inf)


def normalise(a: Array) -> Array:
    """Return the layer norm of each row."""
    return (a - a.mean(1, keepdims=True)) / np.sqrt(a.var(1, keepdims=True) + 1e-3)


def sort_groups(a: Array, group: int) -> Array:
    """Sort each group of entries in descending order."""
    return -np.sort(-a.reshape(-1, group), axis=1).reshape(a.shape)


def cofactors(a: Array) -> Array:
    """Return the matrix of cofactors by its definition."""
    minors = [[np.delete(np.delete(a, i, 0), j, 1) for j in range(len(a))] for i in range(len(a))]
    return np.array(
        [
            [(-1) ** (i + j) * np.linalg.det(m) for j, m in enumerate(row)]
            for i, row in enumerate(minors)
        ]
    )


def gelu_tanh(x: Array) -> Array:
    """Return the approximation of GELU by tanh."""
    return x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


#: Functions of one matrix: construction and reference.
ENTRIES: dict[str, tuple[Callable[[Any], Any], Callable[[Array], Array]]] = {
    "relu": (con.relu, lambda x: np.maximum(x, 0)),
    "relu through maxmin": (lambda m: con.relu(m, through="maxmin"), lambda x: np.maximum(x, 0)),
    "leaky_relu": (lambda m: con.leaky_relu(m, 0.1), lambda x: np.where(x > 0, x, 0.1 * x)),
    "leaky_relu through maxmin": (
        lambda m: con.leaky_relu(m, 0.25, through="maxmin"),
        lambda x: np.maximum(x, 0.25 * x),
    ),
    "absolute": (con.absolute, np.abs),
    "absolute through maxmin": (lambda m: con.absolute(m, through="maxmin"), np.abs),
    "sigmoid": (con.sigmoid, lambda x: 1 / (1 + np.exp(-x))),
    "silu": (con.silu, lambda x: x / (1 + np.exp(-x))),
    "quick_gelu": (con.quick_gelu, lambda x: x / (1 + np.exp(-1.702 * x))),
    "gelu": (con.gelu, lambda x: x / 2 * (1 + np.vectorize(math.erf)(x / 2**0.5))),
    "gelu_tanh": (con.gelu_tanh, gelu_tanh),
    "tanh": (con.tanh, np.tanh),
    "elu_plus_one": (con.elu_plus_one, lambda x: np.where(x > 0, x + 1, np.exp(x))),
    "scale": (lambda m: con.scale(m, 3), lambda x: 3 * x),
    "scale by a matrix": (lambda m: con.scale(m, con.total(m)), lambda x: x * x.sum()),
    "add": (lambda m: con.add(m, m), lambda x: 2 * x),
    "multiply": (lambda m: con.multiply(m, m), lambda x: x * x),
    "row_sums": (con.row_sums, lambda x: np.broadcast_to(x.sum(1, keepdims=True), x.shape)),
    "row_means": (con.row_means, lambda x: np.broadcast_to(x.mean(1, keepdims=True), x.shape)),
    "total": (con.total, lambda x: np.full((1, 1), x.sum())),
    "append_ones": (con.append_ones, lambda x: np.hstack([x, np.ones((len(x), 1))])),
    "broadcast_row": (
        lambda m: con.broadcast_row(m.block(0, 0, 1, m.columns), 3),
        lambda x: np.broadcast_to(x[:1], (3, x.shape[1])),
    ),
    "broadcast_column": (
        lambda m: con.broadcast_column(m.block(0, 0, m.rows, 1), 4),
        lambda x: np.broadcast_to(x[:, :1], (len(x), 4)),
    ),
    "transpose": (con.transpose, np.transpose),
    "transpose by the paper": (lambda m: con.transpose(m, "paper"), np.transpose),
    "softmax": (con.softmax, softmax),
    "softmax with another base": (lambda m: con.softmax(m, base=2.73), lambda x: softmax(x, 2.73)),
    "softmax, not stable": (lambda m: con.softmax(m, stable=False), softmax),
    "softmax, frugal": (lambda m: con.softmax(m, recipe="frugal"), softmax),
    "softmax with a causal mask": (
        lambda m: con.softmax(m, mask="causal"),
        lambda x: softmax(causal(x)),
    ),
    "softmax, frugal with a causal mask": (
        lambda m: con.softmax(m, mask="causal", recipe="frugal"),
        lambda x: softmax(causal(x)),
    ),
    "softmax of one key": (
        lambda m: con.softmax(m, mask=1), lambda x: np.eye(x.shape[1])[np.zeros(len(x), int)]
    ),
    "hardmax": (con.hardmax, hardmax),
    "hardmax, unique": (
        lambda m: con.hardmax(m, unique=True), lambda x: np.eye(x.shape[1])[x.argmax(1)]
    ),
    "hardmax with a causal mask": (
        lambda m: con.hardmax(m, mask="causal"), lambda x: hardmax(causal(x))
    ),
    "layer_norm": (lambda m: con.layer_norm(m, epsilon=1e-3), normalise),
    "layer_norm with gain and bias": (
        lambda m: con.layer_norm(
            m, m.block(0, 0, 1, m.columns), con.constant_matrix([[0.5] * m.columns]), epsilon=1e-3
        ),
        lambda x: normalise(x) * x[:1] + 0.5,
    ),
    "rms_norm": (
        lambda m: con.rms_norm(m, epsilon=1e-3),
        lambda x: x / np.sqrt((x**2).mean(1, keepdims=True) + 1e-3),
    ),
    "matmul with itself": (lambda m: con.matmul(m, con.transpose(m)), lambda x: x @ x.T),
    "groupsort": (lambda m: con.groupsort(m, m.columns), lambda x: -np.sort(-x, 1)),
    "maxout": (lambda m: con.maxout(m, m.columns), lambda x: x.max(1, keepdims=True)),
    "maxout through maxmin": (
        lambda m: con.maxout(m, m.columns, through="maxmin"), lambda x: x.max(1, keepdims=True)
    ),
    "constant_matrix": (
        lambda m: con.add(m, con.constant_matrix(np.arange(m.rows * m.columns).reshape(m.rows, -1))),
        lambda x: x + np.arange(x.size).reshape(x.shape),
    ),
    "multihead": (
        lambda m: con.multihead(con.transpose, m.rows, m.block(0, 0, 1, m.columns)),
        lambda x: x.reshape(-1, 1),
    ),
    "concatenate": (
        lambda m: con.concatenate(m.sop, (1, 1), (m.rows, m.columns))[1], lambda x: x
    ),
}  # fmt: skip
SHAPES = [(1, 1), (1, 4), (2, 3), (3, 2), (4, 5)]


def matrices(shape: tuple[int, int], seed: int) -> list[Array]:
    """Draw one matrix of small integers, with ties, and one of normally distributed numbers."""
    rng = np.random.default_rng(seed)
    return [rng.integers(-2, 3, size=shape).astype(float), rng.normal(size=shape)]


@pytest.mark.parametrize("name", ENTRIES)
def test_functions_of_a_matrix(name: str) -> None:
    """Neighbours of the matrix in the sequence have no influence."""
    build, reference = ENTRIES[name]
    for seed, shape in enumerate(SHAPES):
        offset = 1 if name == "concatenate" else seed % 3
        program = build(con.Matrix(tokens, *shape, offset))
        for a in matrices(shape, seed):
            given = [-7.0] * offset + a.ravel().tolist() + [9.0] * (seed % 2)
            for executor in ("dense", "fast"):
                found = np.array(program.run(given, executor=executor))
                np.testing.assert_allclose(
                    found, reference(a), atol=1e-9, err_msg=f"{shape}, {executor}"
                )


def reference_of_mean(a: Array, b: Array) -> Array:
    """Return the means of the rows of b, with the weights |a| + 1."""
    weights = abs(a) + 1
    return weights @ b / weights.sum(1, keepdims=True)


def weights(a: Any) -> Any:
    """Return |a| + 1."""
    return con.add(con.absolute(a), con.constant_matrix(np.ones((a.rows, a.columns))))


#: Functions of two matrices of shapes r×k and k×c.
PRODUCTS: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Array, Array], Array]]] = {
    **{
        f"matmul, {recipe}": (lambda a, b, recipe=recipe: con.matmul(a, b, recipe), np.matmul)
        for recipe in ("paper", "fetch", "tiled", "scatter")
    },
    "own_token_product": (con.own_token_product, np.matmul),
    "weighted_mean": (lambda a, b: con.weighted_mean(weights(a), b), reference_of_mean),
    "weighted_mean, scatter": (
        lambda a, b: con.weighted_mean(weights(a), b, "scatter"), reference_of_mean
    ),
    "multihead of products": (
        lambda a, b: con.multihead(
            con.matmul, a.rows, a.block(0, 0, 1, a.columns), b, steps=(a.columns, 0)
        ),
        np.matmul,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 3, 2), (3, 2, 4), (2, 5, 1)])
def test_functions_of_two_matrices(name: str, shape: tuple[int, int, int]) -> None:
    build, reference = PRODUCTS[name]
    r, k, c = shape
    program = build(*con.concatenate(tokens, (r, k), (k, c)))
    for a, b in zip(matrices((r, k), 1), matrices((k, c), 2), strict=True):
        given = [*a.ravel().tolist(), *b.ravel().tolist()]
        for executor in ("dense", "fast"):
            found = np.array(program.run(given, executor=executor))
            np.testing.assert_allclose(found, reference(a, b), atol=1e-9)


INVERSES = ("paper", "cofactor", "gauss-jordan", "newton-schulz", "faddeev-leverrier")


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_functions_of_a_square_matrix(order: int) -> None:
    """Inverses by each recipe, determinants and cofactors; a singular matrix is rejected."""
    a = np.random.default_rng(order).normal(size=(order, order)) + 2 * np.eye(order)
    m, given = con.Matrix(tokens, order, order), a.ravel().tolist()
    for recipe in {1: INVERSES[1:3], 3: INVERSES}.get(order, INVERSES[1:]):
        program = con.inverse(m, recipe)
        np.testing.assert_allclose(program.run(given), np.linalg.inv(a), atol=1e-7, err_msg=recipe)
        if order > 1:
            with pytest.raises(locum.ExecutionError, match="inverse: expected"):
                program.run(np.ones((order, order)).ravel())
    if order > 1:
        np.testing.assert_allclose(con.cofactor(m).run(given), cofactors(a), atol=1e-9)
    for options in ({}, {"cofactors": con.cofactor(m)} if order > 1 else {}, {"recipe": "paper"}):
        found = con.determinant(m, **options).run(given)
        np.testing.assert_allclose(found, [[np.linalg.det(a)]], atol=1e-9)


def test_inverses_are_exact() -> None:
    a = [[Fraction(2), Fraction(1, 3)], [Fraction(-1), Fraction(5)]]
    wanted = [[Fraction(15, 31), Fraction(-1, 31)], [Fraction(3, 31), Fraction(6, 31)]]
    for recipe in ("cofactor", "gauss-jordan", "faddeev-leverrier"):
        program = con.inverse(con.Matrix(tokens, 2, 2), recipe)
        assert program.run([*a[0], *a[1]], domain="exact").tolist() == wanted


def test_pairs() -> None:
    """Sort pairs with maxmin, and groups that extend over rows."""
    for seed, shape in enumerate([(1, 2), (2, 3), (3, 4)]):
        m = con.Matrix(tokens, *shape)
        for a in matrices(shape, seed):
            for recipe in ("partner", "paper"):
                found = con.maxmin(m, recipe).run(a.ravel().tolist())
                assert np.array_equal(found, sort_groups(a, 2)), recipe
            assert np.array_equal(con.groupsort(m, 2).run(a.ravel().tolist()), sort_groups(a, 2))


def test_positions_of_entries() -> None:
    """The positions agree with NumPy's, in both orders."""
    for shape in [(3,), (2, 3), (2, 3, 4)]:
        for index in np.ndindex(*shape):
            for order, letter in (("row", "C"), ("column", "F")):
                position = con.prop(shape, index, order)
                assert position == np.ravel_multi_index(index, shape, order=letter)
                assert con.unprop(shape, position, order) == index
    assert con.matrix(tokens, 2, 2, 1, "column").run([9, 1, 2, 3, 4]).tolist() == [[1, 3], [2, 4]]


def test_matching() -> None:
    """Match₂ and Match₃ equal their definitions on all short inputs."""
    for p in (1, 2, 3, 5):
        for x in itertools.product(range(1, 4), repeat=3):
            wanted = [int(any((a + b) % p == 0 for b in x)) for a in x]
            assert con.match2(tokens, p)(list(x)) == wanted, (p, x)
            wanted = [int(any((a + b + c) % p == 0 for b in x for c in x)) for a in x]
            for form in ("padded", "heads", "tensor"):
                program = con.match3(con.Matrix(tokens, 1, 3), p, form)
                assert program.run(list(x)).tolist() == [wanted], (p, x, form)


def test_parity() -> None:
    """k-PARITY equals its definition on all inputs, in all forms."""
    for chosen, heads, wave in itertools.product(
        [(0,), (1, 3), (0, 1, 2)], ("one", "each"), (True, False)
    ):
        program = con.k_parity(tokens, chosen, heads=heads, wave=wave)
        for bits in itertools.product((0, 1), repeat=4):
            assert program(list(bits)) == [sum(bits[i] for i in chosen) % 2] * 4, (chosen, heads, wave)


def test_parts_of_sequences() -> None:
    """Identify and shift equal slices and rotations; summed equals a sum."""
    for n in range(1, 6):
        x = list(range(10, 10 + n))
        for t in range(-2, 7):
            wanted = [x[(i + t) % n] for i in range(n)]
            assert con.shift(tokens, t)(x) == con.shift(tokens, t, n)(x) == wanted
            found = con.identify(tokens, t, 2)(x)
            assert found == [v if t <= i < t + 2 else 0 for i, v in enumerate(x)]
        before = locum.select(locum.indices, locum.indices, "<=")
        wanted = list(itertools.accumulate(x))
        assert con.summed(before, tokens)(x) == pytest.approx(wanted)
        assert con.summed(before, tokens, locum.indices + 1)(x) == pytest.approx(wanted)


def test_lipschitz_networks() -> None:
    """A network equals its function at the knots, is 1-Lipschitz, and as a program equals itself."""
    knots = np.linspace(-2, 2, 5)
    network = con.lipschitz_network(math.sin, knots)
    assert isinstance(network, con.MaxMinNetwork)
    np.testing.assert_allclose(network(knots), np.sin(knots), atol=1e-12)
    points = np.linspace(-3, 3, 61)
    values = np.array(network(points))
    assert (abs(np.diff(values)) <= np.diff(points) + 1e-12).all()
    assert (abs(values[10:-10] - np.sin(points[10:-10])) <= 1 + 1e-12).all()
    np.testing.assert_allclose(
        network.program(3).run([0.3, -1.2, 2.0]).ravel(), network([0.3, -1.2, 2.0])
    )
    own = con.MaxMinNetwork((([[1.0], [-1.0]], [0.0, 0.5]), ([[0.5, 0.5]], [0.0])))
    np.testing.assert_allclose(own([0.2, 3.0]), [0.25, 0.25])


def test_matrices_at_other_positions() -> None:
    """A matrix may be a view with strides, a block, or of entries at given positions."""
    x = np.arange(24.0)
    view = con.Matrix(tokens, 2, 3, 1, 6, 2)
    assert np.array_equal(view.run(x.tolist()), x[1:13].reshape(2, 6)[:, ::2])
    product = con.own_token_product(*con.concatenate(tokens, (2, 2), (2, 2)))
    assert isinstance(product, con.Placed)
    values = product.sop(x[:8].tolist())
    wanted = x[:4].reshape(2, 2) @ x[4:8].reshape(2, 2)
    assert [[values[p] for p in row] for row in product.positions] == wanted.tolist()
