"""Every construction against its printed formula, written here in NumPy or plain Python.

No expected value is computed by Locum, so a mistake that a construction shares with its T, or with
another recipe, is found. Two cases of each construction run by default, and 1,000 in all under
``make fuzz``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import settings

from locum import constructions as c
from locum import tokens
from locum.constructions import Matrix
from locum.simulators import (
    Attention,
    Encoder,
    LinearAttention,
    Linformer,
    MultiHeadAttention,
    Performer,
    Sumformer,
    UniversalSimulator,
)

pytestmark = pytest.mark.filterwarnings("ignore::locum.execution.fast.FallbackWarning")


class Outcome(NamedTuple):
    """The result of a construction, and the value of its formula."""

    actual: Any
    expected: Any
    #: The size of the terms that are added up. Errors are relative to it, or to the largest entry.
    size: float = 0.0


class Chance:
    """Sizes and numbers from one seed."""

    def __init__(self, seed: list[int]) -> None:
        self.generator = np.random.default_rng(seed)
        self.executor = self.one_of("dense", "fast", "heads")

    def one_of(self, *choices: Any) -> Any:
        return choices[int(self.generator.integers(len(choices)))]

    def size(self, most: int = 5) -> int:
        return int(self.generator.integers(1, most + 1))

    def normal(self, *shape: int) -> Any:
        return self.generator.normal(size=shape)

    def whole(self, *shape: int, low: int = -4, high: int = 4) -> Any:
        return self.generator.integers(low, high + 1, size=shape).astype(float)

    def numbers(self, *shape: int) -> Any:
        """Normal numbers, large and small ones, integers, or many zeros."""
        kind = self.one_of("normal", "large", "small", "whole", "sparse")
        if kind == "whole":
            return self.whole(*shape)
        scale = {"large": 1e6, "small": 1e-6}.get(kind, 1.0)
        kept = self.generator.random(shape) < (0.3 if kind == "sparse" else 1)
        return scale * self.normal(*shape) * kept

    def run(self, program: Any, *matrices: Any) -> Any:
        """Run a construction on matrices, one after another."""
        return program.run(np.concatenate([m.ravel() for m in matrices]), executor=self.executor)

    def simulated(self, T: Any, X: Any, **options: Any) -> Any:
        """Return U(T, X)."""
        return UniversalSimulator.of(T, len(X), **options)(T, X, executor=self.executor)


Case = Callable[[Chance], Outcome]
CASES: dict[str, Case] = {}


def case(*variants: Any) -> Callable[[Callable[..., Outcome]], Callable[..., Outcome]]:
    """Enter a construction into the table, once for each of its variants."""

    def enter(function: Callable[..., Outcome]) -> Callable[..., Outcome]:
        def of(variant: Any) -> Case:
            return lambda chance: function(chance, variant)

        for variant in variants:
            CASES[f"{function.__name__}-{variant}"] = of(variant)
        if not variants:
            CASES[function.__name__] = function
        return function

    return enter


def view(*shapes: tuple[int, int]) -> Any:
    views = c.concatenate(tokens, *shapes)
    return views if len(views) > 1 else views[0]


# Formulas -----------------------------------------------------------------------------------------


def softmax(scores: Any, kept: Any = True) -> Any:
    """e^(sᵢⱼ) / Σₗ e^(sᵢₗ), over the entries that are kept."""
    scores = np.where(kept, scores, -np.inf)
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def attention(X: Any, A: Any, V: Any, kept: Any = True) -> Any:
    """σ(X A Xᵀ) X V (Theorem 1)."""
    return softmax(X @ A @ X.T, kept) @ X @ V


def normalised(x: Any, epsilon: float = 1e-5) -> Any:
    centred = x - x.mean(axis=1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + epsilon)


def determinant(a: list[list[Fraction]]) -> Fraction:
    """Σ over permutations of sign · Π a[i][p(i)] (Leibniz)."""
    total = Fraction(0)
    for p in itertools.permutations(range(len(a))):
        sign = (-1) ** sum(x > y for x, y in itertools.combinations(p, 2))
        total += sign * math.prod((a[i][j] for i, j in enumerate(p)), start=Fraction(1))
    return total


def permanent(a: Any) -> float:
    """Σ over permutations of Π |a[i][p(i)]|."""
    rows = np.abs(a).tolist()
    places = itertools.permutations(range(len(rows)))
    return math.fsum(math.prod(rows[i][j] for i, j in enumerate(p)) for p in places)


def cofactors(a: Any) -> tuple[list[list[Fraction]], Fraction]:
    """(−1)^(i+j) · det of A without row i and column j; and det A."""
    exact = [[Fraction(x) for x in row] for row in a.tolist()]

    def minor(i: int, j: int) -> Fraction:
        return determinant([row[:j] + row[j + 1 :] for k, row in enumerate(exact) if k != i])

    places = range(len(exact))
    return [[(-1) ** (i + j) * minor(i, j) for j in places] for i in places], determinant(exact)


ACTIVATIONS: dict[str, Callable[[float], float]] = {
    "relu": lambda x: max(x, 0.0),
    "leaky_relu": lambda x: x if x > 0 else 0.01 * x,
    "absolute": abs,
    "gelu": lambda x: x * (1 + math.erf(x / math.sqrt(2))) / 2,
    "gelu_tanh": lambda x: x / 2 * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "quick_gelu": lambda x: x / (1 + math.exp(-1.702 * x)),
    "silu": lambda x: x / (1 + math.exp(-x)),
    "sigmoid": lambda x: 1 / (1 + math.exp(-x)),
    "tanh": math.tanh,
    "elu_plus_one": lambda x: x + 1 if x > 0 else math.exp(x),
}


# Matrices -----------------------------------------------------------------------------------------


@case("row", "column")
def prop(chance: Chance, order: str) -> Outcome:
    """Proposition 1D: entry (i, j) lies at i·c + j, or at j·r + i."""
    r, k = chance.size(), chance.size()
    a = chance.numbers(r, k)
    flat = [a[i, j] for i in range(r) for j in range(k)]
    if order == "column":
        flat = [a[i, j] for j in range(k) for i in range(r)]
    assert all(flat[c.prop((r, k), (i, j), order)] == a[i, j] for i in range(r) for j in range(k))
    assert all(c.prop((r, k), c.unprop((r, k), p, order), order) == p for p in range(r * k))
    return Outcome(c.matrix(tokens, r, k, order=order).run(flat, executor=chance.executor), a)


@case("view", "paper")
def transpose(chance: Chance, recipe: str) -> Outcome:
    a = chance.numbers(chance.size(), chance.size())
    expected = [[a[i, j] for i in range(a.shape[0])] for j in range(a.shape[1])]
    return Outcome(chance.run(c.transpose(view(a.shape), recipe), a), expected)


@case("paper", "frugal", "paper plain", "frugal plain", "base", "causal")
def softmaxes(chance: Chance, form: str) -> Outcome:
    a = chance.normal(chance.size(), chance.size()) * chance.one_of(0.1, 1, 10)
    if form == "base":
        return Outcome(chance.run(c.softmax(view(a.shape), base=2.0), a), softmax(a * math.log(2)))
    if form == "causal":
        kept = np.tril(np.ones(a.shape)) > 0
        return Outcome(chance.run(c.softmax(view(a.shape), mask="causal"), a), softmax(a, kept))
    recipe, _, plain = form.partition(" ")
    return Outcome(chance.run(c.softmax(view(a.shape), stable=not plain, recipe=recipe), a), softmax(a))


@case("paper", "fetch", "tiled", "scatter", "own token", "weighted mean")
def matmul(chance: Chance, recipe: str) -> Outcome:
    r, k, columns = chance.size(), chance.size(), chance.size()
    if recipe == "own token":
        k = max(k, math.ceil(r * columns / (r + columns)))
    a, b = chance.numbers(r, k), chance.numbers(k, columns)
    if recipe == "weighted mean":
        a = np.abs(a) + 0.1
    left, right = view((r, k), (k, columns))
    exact = [[math.fsum(a[i, l] * b[l, j] for l in range(k)) for j in range(columns)] for i in range(r)]
    expected, size = np.array(exact), np.abs(a) @ np.abs(b)
    if recipe == "own token":
        placed = c.own_token_product(left, right)
        program = chance.one_of(placed, placed.compact())
    elif recipe == "weighted mean":
        program = c.weighted_mean(left, right, chance.one_of("fetch", "scatter"))
        expected, size = (x / a.sum(axis=1, keepdims=True) for x in (expected, size))
    else:
        program = c.matmul(left, right, recipe)
    return Outcome(chance.run(program, a, b), expected, size.max())


@case()
def sums(chance: Chance) -> Outcome:
    """Sums and means of rows, of all entries; rows and columns repeated; a column of ones."""
    r, k, times = chance.size(), chance.size(), chance.size()
    a, b, m = chance.normal(r, k), chance.normal(r, k), view((r, k))
    first, second = view((r, k), (r, k))
    row, column = Matrix(tokens, 1, k), Matrix(tokens, r, 1, column_stride=1, row_stride=k)
    repeated = np.repeat(a.sum(axis=1, keepdims=True), k, axis=1)
    actual = [
        chance.run(c.row_sums(m), a),
        chance.run(c.row_means(m), a),
        chance.run(c.total(m), a),
        chance.run(c.broadcast_row(row, times), a),
        chance.run(c.broadcast_column(column, times), a),
        chance.run(c.append_ones(m), a),
        chance.run(c.scale(m, 2.5), a),
        chance.run(c.add(first, second), a, b),
        chance.run(c.multiply(first, second), a, b),
    ]
    expected = [
        repeated,
        repeated / k,
        [[math.fsum(a.ravel())]],
        [a[0]] * times,
        np.array([[x] * times for x in a[:, 0]]),
        [[*line, 1.0] for line in a],
        2.5 * a,
        a + b,
        a * b,
    ]
    shapes = [np.shape(x) for x in expected]
    assert [x.shape for x in actual] == shapes
    both = [np.concatenate([np.ravel(x) for x in each]) for each in (actual, expected)]
    return Outcome(both[0], both[1])


@case("average", "unique", "causal")
def hardmax(chance: Chance, form: str) -> Outcome:
    """Weights of the greatest entries of each row: all of them alike, or the leftmost."""
    a = chance.whole(chance.size(), chance.size(), low=-1, high=1)
    kept = np.tril(np.ones(a.shape)) > 0 if form == "causal" else np.ones(a.shape) > 0
    expected = np.zeros(a.shape)
    for i, row in enumerate(a):
        greatest = max(x for x, keep in zip(row, kept[i], strict=True) if keep)
        places = [j for j, x in enumerate(row) if x == greatest and kept[i, j]]
        places = places[:1] if form == "unique" else places
        expected[i, places] = 1 / len(places)
    mask = "causal" if form == "causal" else None
    return Outcome(chance.run(c.hardmax(view(a.shape), form == "unique", mask), a), expected)


# Activations --------------------------------------------------------------------------------------


@case(*ACTIVATIONS, "relu maxmin", "leaky_relu maxmin", "absolute maxmin")
def activation(chance: Chance, form: str) -> Outcome:
    name, _, through = form.partition(" ")
    a = chance.normal(chance.size(), chance.size()) * chance.one_of(0.1, 1, 20)
    options = {"through": "maxmin"} if through else {}
    expected = np.vectorize(ACTIVATIONS[name], otypes=[float])(a)
    return Outcome(chance.run(getattr(c, name)(view(a.shape), **options), a), expected, np.abs(a).max())


@case("partner", "paper")
def maxmin(chance: Chance, recipe: str) -> Outcome:
    a = chance.numbers(chance.size(), 2 * chance.size(3))
    pairs = [sorted(pair, reverse=True) for pair in a.reshape(-1, 2)]
    return Outcome(chance.run(c.maxmin(view(a.shape), recipe), a), np.reshape(pairs, a.shape))


@case()
def groupsort(chance: Chance) -> Outcome:
    group = chance.size()
    a = chance.whole(chance.size(), group * chance.size(3))
    groups = [sorted(part, reverse=True) for part in a.reshape(-1, group)]
    return Outcome(chance.run(c.groupsort(view(a.shape), group), a), np.reshape(groups, a.shape))


@case("best", "maxmin")
def maxout(chance: Chance, through: str) -> Outcome:
    group, r = chance.size(), chance.size()
    a = chance.numbers(r, group * chance.size(3))
    expected = [[max(part) for part in row.reshape(-1, group)] for row in a]
    return Outcome(chance.run(c.maxout(view(a.shape), group, through), a), expected)


@case("layer", "layer affine", "rms", "rms affine")
def norm(chance: Chance, form: str) -> Outcome:
    r, k = chance.size(), chance.size()
    a, gain, bias = 3 * chance.normal(r, k), chance.normal(1, k), chance.normal(1, k)
    m, g, b = view((r, k), (1, k), (1, k))
    kind, _, affine = form.partition(" ")
    if kind == "layer":
        program = c.layer_norm(m, g, b, epsilon=1e-3) if affine else c.layer_norm(m, epsilon=1e-3)
        expected = normalised(a, 1e-3) * gain + bias if affine else normalised(a, 1e-3)
    else:
        program = c.rms_norm(m, g, epsilon=1e-3) if affine else c.rms_norm(m, epsilon=1e-3)
        expected = a / np.sqrt((a * a).mean(axis=1, keepdims=True) + 1e-3) * (gain if affine else 1)
    return Outcome(chance.run(program, a, gain, bias), expected)


# Determinants and inverses ------------------------------------------------------------------------


def square(chance: Chance, order: int) -> Any:
    return chance.normal(order, order) * chance.one_of(1e-3, 1, 1e3)


@case("cofactor", "frugal", "paper")
def determinants(chance: Chance, recipe: str) -> Outcome:
    order = chance.size()
    a = square(chance, order)
    expected, exact = cofactors(a)
    if recipe == "cofactor":
        floats = [[float(x) for x in row] for row in expected]
        return Outcome(
            chance.run(c.cofactor(view((order, order))), a), floats, np.abs(a).max() ** (order - 1)
        )
    program = c.determinant(view((order, order)), recipe=recipe)
    return Outcome(chance.run(program, a), [[float(exact)]], permanent(a))


@case("default", "paper", "cofactor", "gauss-jordan", "newton-schulz", "faddeev-leverrier")
def inverse(chance: Chance, recipe: str) -> Outcome:
    order = 3 if recipe == "paper" else chance.size()
    left, right = (np.linalg.qr(chance.normal(order, order))[0] for _ in range(2))
    condition = chance.one_of(1, 10, 100)
    a = (left * np.geomspace(1, 1 / condition, order)) @ right * chance.one_of(1e-3, 1, 1e3)
    exact_cofactors, exact = cofactors(a)
    expected = [[float(exact_cofactors[j][i] / exact) for j in range(order)] for i in range(order)]
    program = c.inverse(view((order, order)), None if recipe == "default" else recipe)
    # The accuracy of each recipe, as it is documented; Faddeev–LeVerrier takes powers of the matrix.
    factor = {
        "gauss-jordan": condition,
        "newton-schulz": condition,
        "faddeev-leverrier": condition**order,
    }
    lost = factor.get(recipe, permanent(a) / abs(float(exact)))
    return Outcome(chance.run(program, a), expected, lost * np.abs(expected).max())


# Sequences ----------------------------------------------------------------------------------------


@case()
def match2(chance: Chance) -> Outcome:
    x, p = chance.whole(chance.size(8), low=-9, high=20).astype(int).tolist(), chance.size(9)
    expected = [int(any((a + b) % p == 0 for b in x)) for a in x]
    return Outcome(c.match2(tokens, p)(x, executor=chance.executor), expected)


@case("padded", "heads", "tensor")
def match3(chance: Chance, form: str) -> Outcome:
    x, p = chance.whole(chance.size(6), low=-9, high=20).astype(int).tolist(), chance.size(11)
    expected = [[int(any((a + b + d) % p == 0 for b in x for d in x)) for a in x]]
    program = c.match3(Matrix(tokens, 1, len(x)), p, form)
    return Outcome(program.run(x, executor=chance.executor), expected)


@case("one", "each", "one wave", "each wave")
def k_parity(chance: Chance, form: str) -> Outcome:
    heads, _, wave = form.partition(" ")
    bits = chance.whole(chance.size(9), low=0, high=1).astype(int).tolist()
    chosen = chance.generator.permutation(len(bits))[: chance.size(len(bits))].tolist()
    expected = [sum(bits[place] for place in chosen) % 2] * len(bits)
    program = c.k_parity(tokens, chosen, heads, wave=bool(wave))
    return Outcome(program(bits, executor=chance.executor), expected)


@case("shift", "identify")
def sequences(chance: Chance, name: str) -> Outcome:
    x, first = chance.numbers(chance.size(9)).tolist(), chance.size(9) - 1
    count = chance.size(9)
    if name == "shift":
        expected = [x[(i + first) % len(x)] for i in range(len(x))]
        return Outcome(c.shift(tokens, first)(x, executor=chance.executor), expected)
    expected = [value if first <= i < first + count else 0.0 for i, value in enumerate(x)]
    return Outcome(c.identify(tokens, first, count)(x, executor=chance.executor), expected)


@case("matmul", "transpose", "softmax")
def multihead(chance: Chance, name: str) -> Outcome:
    """H blocks, each with matrices of its own."""
    heads, r, k, columns = (chance.size(4) for _ in range(4))
    a, b = chance.normal(heads, r, k), chance.normal(heads, k, columns)
    views = Matrix(tokens, r, k), Matrix(tokens, k, columns, heads * r * k)
    if name == "matmul":
        recipe = chance.one_of("paper", "fetch", "tiled")
        program = c.multihead(lambda x, y: c.matmul(x, y, recipe), heads, *views)
        return Outcome(chance.run(program, a, b), np.vstack(a @ b), (np.abs(a) @ np.abs(b)).max())
    operation = c.transpose if name == "transpose" else c.softmax
    expected = [x.T if name == "transpose" else softmax(x) for x in a]
    return Outcome(chance.run(c.multihead(operation, heads, views[0]), a), np.vstack(expected))


@case("one variable", "several variables", "own weights")
def lipschitz(chance: Chance, form: str) -> Outcome:
    """z ← W·MaxMin(z) + b; and a network that equals a function at its knots."""
    inputs, points = 1 if form == "one variable" else chance.size(3), chance.size(3)
    if form == "own weights":
        sizes = [inputs, *(2 * chance.size(3) for _ in range(chance.size(2))), 1]
        shapes = zip(sizes[1:], sizes, strict=False)
        network = c.MaxMinNetwork(tuple((chance.normal(r, k), chance.normal(r)) for r, k in shapes))
        x = chance.normal(points, inputs)
    else:
        knots = chance.normal(chance.size(), inputs)
        centre = chance.normal(inputs)
        network = c.lipschitz_network(lambda z: math.dist(z, centre), knots)
        x = knots[[chance.size(len(knots)) - 1 for _ in range(points)]]
    expected = []
    for z in x:
        for number, (weights, bias) in enumerate(network.layers):
            if number:
                z = np.array([sorted(pair, reverse=True) for pair in z.reshape(-1, 2)]).ravel()
            z = weights @ z + bias
        expected.append(list(z))
    if form != "own weights":
        expected = [[math.dist(z, centre)] for z in x]
    layers = [
        np.abs(weights).sum(axis=1).max() + np.abs(bias).max() for weights, bias in network.layers
    ]
    return Outcome(chance.run(network.program(points), x), expected, math.prod(layers))


# U ------------------------------------------------------------------------------------------------


def terms(*matrices: Any) -> float:
    """Return the largest entry of a product of absolute values: its terms, added up."""
    product = np.eye(len(matrices[0]))
    for matrix in matrices:
        product = product @ np.abs(matrix)
    return float(product.max())


def of_order(chance: Chance) -> tuple[Any, Any, Any]:
    """Draw X, A and V; scores stay moderate, as recipes without a maximum need."""
    n, d, d_v = (chance.size(4) for _ in range(3))
    return chance.normal(n, d), chance.normal(d, d) / d, chance.normal(d, d_v)


@case("fetch", "paper", "tiled", "width-1", "causal", "inverse", "hierarchy", "projections")
def simulated_attention(chance: Chance, form: str) -> Outcome:
    X, A, V = of_order(chance)
    (n, d), size = X.shape, terms(X, V)
    if form == "causal":
        kept = np.tril(np.ones((n, n))) > 0
        actual = chance.simulated(Attention(A, V, mask="causal"), X)
        return Outcome(actual, attention(X, A, V, kept), size)
    if form == "inverse":
        A, V = (np.eye(d) + 0.2 * chance.normal(d, d) / d for _ in range(2))
        actual = chance.simulated(Attention(A, V), X, recipe="inverse")
        return Outcome(actual, attention(X, A, V), 100 * terms(X, V))
    if form == "hierarchy":
        larger = (n + chance.size(3) - 1, d + chance.size(3) - 1, V.shape[1] + chance.size(3) - 1)
        U = UniversalSimulator(*larger)
        actual = U.embed(Attention(A, V), X, executor=chance.executor)
        return Outcome(actual, attention(X, A, V), size)
    if form == "projections":
        width = chance.size(4)
        W_Q, W_K = chance.normal(d, width), chance.normal(d, width)
        b_Q, b_K, b_V = chance.normal(width), chance.normal(width), chance.normal(V.shape[1])
        scores = (X @ W_Q + b_Q) @ (X @ W_K + b_K).T / math.sqrt(width)
        T = Attention.from_projections(W_Q, W_K, V, scale=width**-0.5, biases=(b_Q, b_K, b_V))
        return Outcome(chance.simulated(T, X), softmax(scores) @ (X @ V + b_V), size)
    return Outcome(chance.simulated(Attention(A, V), X, recipe=form), attention(X, A, V), size)


@case("average", "unique")
def pooling(chance: Chance, form: str) -> Outcome:
    """The mean over the values of the greatest scores, or the value of the leftmost."""
    n, d, d_v = (chance.size(4) for _ in range(3))
    X, A, V = (
        chance.whole(n, d, low=-1, high=1),
        chance.whole(d, d, low=-1, high=1),
        chance.normal(d, d_v),
    )
    scores, values = X @ A @ X.T, X @ V
    expected = []
    for row in scores:
        places = np.flatnonzero(row == row.max())
        expected.append(values[places].mean(axis=0) if form == "average" else values[places[0]])
    return Outcome(chance.simulated(Attention(A, V, pooling=form), X), expected, terms(X, V))


@case("concatenate", "sum", "W_O")
def heads(chance: Chance, form: str) -> Outcome:
    X, A, V = of_order(chance)
    each = [(A, V), *((chance.normal(*A.shape) / len(A), chance.normal(*V.shape)) for _ in range(2))]
    each = each[: chance.size(3)]
    outputs = [attention(X, a, v) for a, v in each]
    size = sum(terms(X, v) for _, v in each)
    modules = [Attention(a, v) for a, v in each]
    if form == "sum":
        T = MultiHeadAttention(modules, combine="sum")
        return Outcome(chance.simulated(T, X), sum(outputs), size)
    side_by_side = np.hstack(outputs)
    if form == "concatenate":
        return Outcome(chance.simulated(MultiHeadAttention(modules), X), side_by_side, size)
    W_O, b_O = chance.normal(side_by_side.shape[1], chance.size()), chance.normal(1)
    b_O = np.repeat(b_O, W_O.shape[1])
    T = MultiHeadAttention(modules, W_O, b_O)
    return Outcome(chance.simulated(T, X), side_by_side @ W_O + b_O, size * np.abs(W_O).sum())


@case("paper", "post", "pre")
def encoder(chance: Chance, form: str) -> Outcome:
    """ReLU((X + attention(X)) W₁) W₂, and the encoders with layer norms."""
    n, d, d1 = (chance.size(4) for _ in range(3))
    d2 = chance.size(4) if form == "paper" else d
    X, A, V = chance.normal(n, d), chance.normal(d, d) / d, chance.normal(d, d)
    W1, W2 = chance.normal(d, d1), chance.normal(d1, d2)
    T = Encoder(Attention(A, V), W1, W2, norm="none" if form == "paper" else form, epsilon=1e-2)

    def feed_forward(y: Any) -> Any:
        return np.maximum(y @ W1, 0) @ W2

    if form == "paper":
        expected = feed_forward(X + attention(X, A, V))
    elif form == "post":
        y = normalised(X + attention(X, A, V), 1e-2)
        expected = normalised(y + feed_forward(y), 1e-2)
    else:
        y = X + attention(normalised(X, 1e-2), A, V)
        expected = y + feed_forward(normalised(y, 1e-2))
    size = np.abs(X).max() + terms(X, V) if form == "paper" else 10 * d**0.5  # of a norm, ε = 1/100
    return Outcome(chance.simulated(T, X), expected, size * (1 + terms(np.ones((1, d)), W1, W2)))


@case("linear", "linear causal", "elu+1", "linformer", "performer", "performer scale", "sumformer")
def kinds(chance: Chance, form: str) -> Outcome:
    n, d, d_v, rank = (chance.size(4) for _ in range(4))
    width = 1 + chance.size(4)  # with one column, every power of the width is 1
    X, V = chance.normal(n, d), chance.normal(d, d_v)
    W_Q, W_K = chance.normal(d, width), chance.normal(d, width)
    Q, K = X @ W_Q, X @ W_K
    if form in ("linear", "linear causal"):
        T: Any = LinearAttention(W_Q, W_K, V, mask="causal" if "causal" in form else None)
        scores = np.tril(Q @ K.T) if "causal" in form else Q @ K.T
        return Outcome(chance.simulated(T, X), scores @ X @ V, terms(X, W_Q, W_K.T, X.T, X, V))
    if form == "elu+1":
        phi = np.vectorize(ACTIVATIONS["elu_plus_one"], otypes=[float])
        weights = phi(Q) @ phi(K).T
        T = LinearAttention(W_Q, W_K, V, feature_map="elu+1")
    elif form == "linformer":
        E, F = chance.normal(rank, n), chance.normal(rank, n)
        expected = softmax(Q @ (E @ X @ W_K).T) @ F @ X @ V
        return Outcome(chance.simulated(Linformer(W_Q, W_K, V, E, F), X), expected, terms(F, X, V))
    elif form == "sumformer":
        W_phi, W_x, W_sum = chance.normal(d, rank), chance.normal(d, width), chance.normal(rank, width)
        V = chance.normal(width, d_v)
        total = np.maximum(X @ W_phi, 0).sum(axis=0, keepdims=True)
        expected = np.maximum(X @ W_x + total @ W_sum, 0) @ V
        size = terms(X, W_x, V) + n * terms(X, W_phi, W_sum, V)
        return Outcome(chance.simulated(Sumformer(W_phi, W_x, W_sum, V), X), expected, size)
    else:
        omega = chance.normal(rank, width)
        scale = width**-0.5 if form == "performer scale" else 1.0
        options: Any = {"scale": scale} if form == "performer scale" else {}
        T = Performer(W_Q, W_K, V, omega, **options)

        def feature(z: Any) -> Any:
            return [math.exp(w @ z - z @ z / 2) / math.sqrt(rank) for w in omega]

        q, k = (np.array([feature(scale**0.5 * row) for row in rows]) for rows in (Q, K))
        weights = q @ k.T
    expected = weights @ X @ V / weights.sum(axis=1, keepdims=True)
    return Outcome(chance.simulated(T, X), expected, terms(X, V))


@case()
def memory(chance: Chance) -> Outcome:
    """σ(X A Mᵀ) M V: attention to the rows of another matrix."""
    X, A, V = of_order(chance)
    M = chance.normal(chance.size(4), X.shape[1])
    T = Attention(A, V)
    U = UniversalSimulator.of(T, len(X), len(M))
    expected = softmax(X @ A @ M.T) @ M @ V
    return Outcome(U(T, X, M, executor=chance.executor), expected, terms(M, V))


# The test -----------------------------------------------------------------------------------------


def error(name: str, number: int) -> float:
    """Return the error of one case, relative to its size."""
    outcome = CASES[name](Chance([sum(map(ord, name)), number]))
    actual, expected = (np.asarray(x, dtype=float) for x in outcome[:2])
    assert actual.shape == expected.shape, name
    difference = float(np.abs(actual - expected).max())
    return difference and difference / max(float(outcome.size), float(np.abs(expected).max()))


#: How many cases there are at least, in all.
ALL = 1_000
COUNT = math.ceil(ALL / len(CASES)) if settings().max_examples > ALL else 2


@pytest.mark.parametrize("name", CASES)
def test_random_cases_of_the_printed_formulas(name: str) -> None:
    for number in range(COUNT):
        assert error(name, number) <= 1e-14, number


def test_every_construction_has_its_formula() -> None:
    text = Path(__file__).read_text(encoding="utf-8")
    parts = {"Matrix", "Placed", "constant_matrix", "summed"}  # which other constructions are made of
    called = {name for name in c.__all__ if f"c.{name}(" in text} | {*ACTIVATIONS}
    assert set(c.__all__) <= called | parts
