"""Every construction against NumPy on random shapes, and exactly on rationals."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import locum
from locum import constructions as c
from locum.constructions import Matrix
from locum.constructions.elimination import newton_steps
from locum.constructions.lipschitz import lipschitz_network
from tests.old.constructions.matrices import (
    arrays,
    assert_close,
    entries,
    once,
    rationals,
    sizes,
    small,
    together,
)


def np_softmax(x: Any, axis: int = 1) -> Any:
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


#: Made once: Hypothesis validates every strategy anew.
_small_floats, _smaller_floats = st.floats(-4, 4), st.floats(-3, 3)
_integers = st.integers(-4, 4).map(Fraction)
_with_ties = st.one_of(st.integers(-2, 2).map(Fraction), rationals)

RECIPES = ("paper", "fetch", "tiled", "scatter")


@given(st.data(), sizes, sizes, sizes, st.sampled_from(RECIPES))
def test_matmul(data: st.DataObject, r: int, k: int, cc: int, recipe: str) -> None:
    a, b = arrays(data, (r, k), (k, cc))
    x, y = c.concatenate(locum.tokens, (r, k), (k, cc))
    assert_close(c.matmul(x, y, recipe=recipe).run(together(a, b)), a @ b)


@once
@settings(max_examples=60)
@given(st.data(), small, small, small, st.sampled_from(RECIPES))
def test_matmul_is_exact_on_rationals(
    data: st.DataObject, r: int, k: int, cc: int, recipe: str
) -> None:
    a, b = arrays(data, (r, k), (k, cc), of=rationals)
    x, y = c.concatenate(locum.tokens, (r, k), (k, cc))
    result = c.matmul(x, y, recipe=recipe).run(together(a, b), domain="exact")
    assert (result == a.dot(b)).all()


@once
@given(st.data(), sizes, sizes, st.sampled_from(["view", "paper"]))
def test_transpose(data: st.DataObject, r: int, cc: int, recipe: str) -> None:
    (a,) = arrays(data, (r, cc), of=rationals)
    result = c.transpose(Matrix(locum.tokens, r, cc), recipe=recipe).run(together(a), domain="exact")
    assert (result == a.T).all()


@given(st.data(), sizes, sizes, st.sampled_from(["paper", "frugal"]), st.booleans())
def test_softmax(data: st.DataObject, r: int, cc: int, recipe: str, stable: bool) -> None:
    (a,) = arrays(data, (r, cc), of=entries if stable else _small_floats)
    result = c.softmax(Matrix(locum.tokens, r, cc), stable=stable, recipe=recipe).run(together(a))
    assert_close(result, np_softmax(a))


@given(st.data(), sizes, sizes, st.integers(1, 6), st.sampled_from(["paper", "frugal"]))
def test_masked_softmax(data: st.DataObject, r: int, cc: int, valid: int, recipe: str) -> None:
    a, m = arrays(data, (r, cc), (r, cc))
    view, mask = c.concatenate(locum.tokens, (r, cc), (r, cc))

    def reference(keep: Any) -> Any:
        result = np.zeros((r, cc))
        for i in range(r):
            if keep[i].any():
                result[i, keep[i]] = np_softmax(a[i : i + 1, keep[i]])[0]
        return result

    tokens = together(a, m)
    causal = np.arange(cc)[None, :] <= np.arange(r)[:, None]
    assert_close(c.softmax(view, mask="causal", recipe=recipe).run(tokens), reference(causal))
    first = np.broadcast_to(np.arange(cc)[None, :] < valid, (r, cc))
    assert_close(c.softmax(view, mask=valid, recipe=recipe).run(tokens), reference(first))
    assert_close(c.softmax(view, mask=mask, recipe=recipe).run(tokens), reference(m != 0))


def test_softmax_bases_and_large_scores() -> None:
    view, tokens = Matrix(locum.tokens, 2, 2), [1.0, 2.0, -1.0, 0.5]
    x = np.reshape(tokens, (2, 2))
    for base in (2.73, 2.718, 2.0):
        for stable in (True, False):
            expected = base**x / (base**x).sum(1, keepdims=True)
            assert_close(c.softmax(view, base=base, stable=stable).run(tokens), expected)
    assert c.softmax(view).run([3000, -3000, 1e300, 0]).tolist() == [[1.0, 0.0], [1.0, 0.0]]
    with pytest.raises(locum.ExecutionError, match="too large"):
        c.softmax(view, stable=False).run([3000, -3000, 0, 0])


@once
@given(st.data(), sizes, st.integers(1, 4), st.integers(1, 3))
def test_groupsort(data: st.DataObject, r: int, g: int, groups: int) -> None:
    shape = (r, g * groups)
    (a,) = arrays(data, shape, of=rationals if groups % 2 else _with_ties)
    expected = -np.sort(-np.array(a.tolist(), dtype=object).reshape(-1, g), axis=1)
    actual = c.groupsort(Matrix(locum.tokens, *shape), g).run(together(a), domain="exact")
    assert (actual == expected.reshape(shape)).all()
    if shape[0] * shape[1] % 2 == 0:
        pairs = -np.sort(-np.array(a.tolist(), dtype=object).reshape(-1, 2), axis=1)
        for recipe in ("partner", "paper"):
            actual = c.maxmin(Matrix(locum.tokens, *shape), recipe=recipe).run(
                together(a), domain="exact"
            )
            assert (actual == pairs.reshape(shape)).all()


ELEMENTWISE: dict[str, tuple[Callable[[Matrix], Matrix], Callable[[Any], Any]]] = {
    "relu": (c.relu, lambda x: np.maximum(x, 0)),
    "relu through MaxMin": (lambda m: c.relu(m, through="maxmin"), lambda x: np.maximum(x, 0)),
    "leaky ReLU": (lambda m: c.leaky_relu(m, 0.25), lambda x: np.maximum(x, 0.25 * x)),
    "leaky ReLU through MaxMin": (
        lambda m: c.leaky_relu(m, 0.25, through="maxmin"),
        lambda x: np.maximum(x, 0.25 * x),
    ),
    "absolute": (c.absolute, np.abs),
    "absolute through MaxMin": (lambda m: c.absolute(m, through="maxmin"), np.abs),
    "gelu": (c.gelu, np.vectorize(lambda x: 0.5 * x * (1 + math.erf(x / math.sqrt(2))))),
    "silu": (c.silu, lambda x: x * 0.5 * (1 + np.tanh(x / 2))),
    "sigmoid": (c.sigmoid, lambda x: 0.5 * (1 + np.tanh(x / 2))),
    "tanh": (c.tanh, np.tanh),
    "elu + 1": (c.elu_plus_one, lambda x: np.where(x > 0, x + 1, np.exp(np.minimum(x, 0)))),
    "scale": (lambda m: c.scale(m, 3), lambda x: 3 * x),
    "row sums": (c.row_sums, lambda x: np.broadcast_to(x.sum(1, keepdims=True), x.shape)),
    "row means": (c.row_means, lambda x: np.broadcast_to(x.mean(1, keepdims=True), x.shape)),
    "compact transposed": (lambda m: c.transpose(c.transpose(m).compact()), lambda x: x),
}


@pytest.mark.parametrize("name", ELEMENTWISE)
@settings(max_examples=25)
@given(data=st.data(), r=sizes, cc=sizes, offset=st.integers(0, 3))
def test_elementwise_and_rows(name: str, data: st.DataObject, r: int, cc: int, offset: int) -> None:
    build, reference = ELEMENTWISE[name]
    (a,) = arrays(data, (r, cc))
    tokens = [-1e6] * offset + together(a) + [1e6]  # neighbours must not matter
    assert_close(build(Matrix(locum.tokens, r, cc, offset)).run(tokens), reference(a))


@pytest.mark.parametrize("name", ["relu", "relu through MaxMin", "absolute", "row sums", "row means"])
def test_linear_parts_are_exact_on_rationals(name: str) -> None:
    build, _ = ELEMENTWISE[name]
    a = np.array([[Fraction(1, 3), Fraction(-2, 7)], [Fraction(5, 3), Fraction(0)]], dtype=object)
    exact = {
        "relu": np.maximum(a, 0), "relu through MaxMin": np.maximum(a, 0), "absolute": abs(a),
        "row sums": np.array([[a[i].sum()] * 2 for i in range(2)]),
        "row means": np.array([[a[i].sum() / 2] * 2 for i in range(2)]),
    }  # fmt: skip
    result = build(Matrix(locum.tokens, 2, 2)).run(together(a), domain="exact")
    assert (result == exact[name]).all()


@given(st.data(), sizes, st.integers(1, 4), st.integers(1, 3))
def test_maxout(data: st.DataObject, r: int, group: int, groups: int) -> None:
    (a,) = arrays(data, (r, group * groups))
    for through in ("best", "maxmin"):
        result = c.maxout(Matrix(locum.tokens, r, group * groups), group, through=through).run(
            together(a)
        )
        assert (result == a.reshape(r, groups, group).max(2)).all()


@given(st.data(), sizes, st.integers(2, 6))
def test_layer_norm(data: st.DataObject, r: int, cc: int) -> None:
    x, g, b = arrays(data, (r, cc), (1, cc), (1, cc), of=_smaller_floats)
    view, gain, bias = c.concatenate(locum.tokens, (r, cc), (1, cc), (1, cc))
    mean, variance = x.mean(1, keepdims=True), x.var(1, keepdims=True)
    expected = (x - mean) / np.sqrt(variance + 1e-5) * g + b
    assert_close(c.layer_norm(view, gain, bias).run(together(x, g, b)), expected, 1e-11)


@given(st.data(), sizes, sizes)
def test_sums_and_broadcasts(data: st.DataObject, r: int, cc: int) -> None:
    a, b = arrays(data, (r, cc), (r, cc))
    first, second = c.concatenate(locum.tokens, (r, cc), (r, cc))
    tokens = together(a, b)
    assert_close(c.add(first, second).run(tokens), a + b)
    assert_close(c.multiply(first, second).run(tokens), a * b)
    assert_close(c.total(first).run(tokens), [[a.sum()]])
    assert_close(c.scale(first, c.total(second)).run(tokens), a * b.sum())
    assert_close(
        c.broadcast_row(first.block(0, 0, 1, cc), 3).run(tokens), np.broadcast_to(a[:1], (3, cc))
    )
    assert_close(
        c.broadcast_column(first.block(0, 0, r, 1), 4).run(tokens), np.broadcast_to(a[:, :1], (r, 4))
    )


@once
@settings(max_examples=25)
@given(st.data(), st.integers(1, 4))
def test_inverse_is_exact_on_rationals(data: st.DataObject, r: int) -> None:
    (a,) = arrays(data, (r, r), of=_integers)
    a = np.array([[Fraction(int(x)) for x in row] for row in a], dtype=object).reshape(r, r)
    view = Matrix(locum.tokens, r, r)
    exact = _determinant(a)
    det = c.determinant(view).run(together(a), domain="exact")
    assert det[0, 0] == exact
    identity = np.array([[Fraction(int(i == j)) for j in range(r)] for i in range(r)], dtype=object)
    for recipe in ("cofactor", "gauss-jordan", "faddeev-leverrier"):
        program = c.inverse(view, recipe=recipe)
        if exact == 0:
            with pytest.raises(locum.ExecutionError, match="singular"):
                program.run(together(a), domain="exact")
        else:
            assert (program.run(together(a), domain="exact").dot(a) == identity).all()


def _determinant(a: Any) -> Fraction:
    r = len(a)
    total = Fraction(0)
    for p in itertools.permutations(range(r)):
        sign = (-1) ** sum(x > y for x, y in itertools.combinations(p, 2))
        total += sign * math.prod((a[i][p[i]] for i in range(r)), start=Fraction(1))
    return total


@pytest.mark.parametrize("order", range(1, 9))
def test_inverses_in_floats(order: int) -> None:
    random = np.random.default_rng(order)
    recipes = (
        ["gauss-jordan"]
        + (["cofactor"] if order <= 5 else [])
        + (["faddeev-leverrier"] if order <= 4 else [])
    )
    view = Matrix(locum.tokens, order, order)
    programs = [c.inverse(view, recipe=recipe) for recipe in recipes]
    for _ in range(4):
        a = random.normal(size=(order, order))
        for program in programs:
            result = program.run(a.ravel())
            residual = np.abs(result @ a - np.eye(order)).max()
            assert residual <= 1e-12 * np.linalg.cond(a)


def test_gauss_jordan_pivots() -> None:
    a = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 2.0], [4.0, 0.0, 0.0]])
    assert_close(
        c.inverse(Matrix(locum.tokens, 3, 3), recipe="gauss-jordan").run(a.ravel()), np.linalg.inv(a)
    )


def test_newton_schulz() -> None:
    a = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, -1.0], [0.0, 0.5, 2.0]])
    steps = newton_steps(3, np.linalg.cond(a), 1e-10)
    program = c.inverse(Matrix(locum.tokens, 3, 3), recipe="newton-schulz", steps=steps)
    assert_close(program.run(a.ravel()), np.linalg.inv(a), 1e-9)
    assert program.sop.architecture.layers <= 5 + 2 * steps  # two of them check the result


def conditioned(random: np.random.Generator, order: int, condition: float) -> Any:
    """Draw a matrix with this condition number."""
    left, right = (np.linalg.qr(random.normal(size=(order, order)))[0] for _ in range(2))
    values = condition ** -np.array([0.0, *random.uniform(size=order - 2), 1.0])
    return (left * values) @ right


def exact_inverse(a: Any) -> Any:
    """Invert in fractions, by cofactors."""
    order, exact = len(a), [[Fraction(x) for x in row] for row in a.tolist()]

    def minor(i: int, j: int) -> Fraction:
        return _determinant([[*row[:i], *row[i + 1 :]] for k, row in enumerate(exact) if k != j])

    entries = [[(-1) ** (i + j) * minor(i, j) for j in range(order)] for i in range(order)]
    return np.array([[float(x / _determinant(exact)) for x in row] for row in entries])


@pytest.mark.parametrize("recipe", ["newton-schulz", "faddeev-leverrier"])
@pytest.mark.parametrize("order", [2, 3, 4])
def test_the_residual_bounds_the_error_of_an_inverse(recipe: str, order: int) -> None:
    random = np.random.default_rng(order)
    program, outcomes = c.inverse(Matrix(locum.tokens, order, order), recipe=recipe), set()
    # Without rounding errors in the residual, 2×2 matrices with κ = 7e10 were accepted by chance.
    for condition in np.geomspace(10, 1e12, 40):
        a = conditioned(random, order, condition)
        try:
            result = program.run(a.ravel())
        except locum.ExecutionError as error:
            outcomes.add("rejected")
            assert 'try recipe="gauss-jordan"' in str(error) or "try steps=" in str(error)
        else:
            outcomes.add("accepted")
            expected = exact_inverse(a)
            assert np.linalg.norm(result - expected, 2) <= 2**-26 * np.linalg.norm(expected, 2)
    assert outcomes == {"accepted", "rejected"}


def test_newton_schulz_accepts_its_own_advice() -> None:
    a, view = np.diag([1, 1, 1 / 5000]), Matrix(locum.tokens, 3, 3)
    expected = r"^inverse: expected the entries .* after 27 steps, .*; try steps=54 or recipe=\"gauss-jordan\"$"
    for executor in ("dense", "fast", "heads"):
        with pytest.raises(locum.ExecutionError, match=expected):
            c.inverse(view, recipe="newton-schulz").run(a.ravel(), executor=executor)
    for options in ({"recipe": "newton-schulz", "steps": 54}, {"recipe": "gauss-jordan"}):
        assert_close(c.inverse(view, **options).run(a.ravel()), np.diag([1, 1, 5000.0]), 1e-8)


def test_float32_needs_a_larger_tolerance() -> None:
    torch = pytest.importorskip("torch")
    a = torch.tensor([[4.0, 1.0, 0.5], [1.0, 3.0, -1.0], [0.0, 0.5, 2.0]])
    for recipe in ("newton-schulz", "faddeev-leverrier"):
        rejected, accepted = (
            c.inverse(Matrix(locum.tokens, 3, 3), recipe, tolerance=tolerance).run([a], executor="fast")
            for tolerance in (None, 1e-4)
        )
        assert not torch.isfinite(rejected).any()
        assert accepted.dtype is torch.float32
        assert float((accepted @ a - torch.eye(3)).abs().max()) <= 1e-6


@pytest.mark.parametrize("order", [2, 3, 5])
def test_the_default_steps_are_enough_for_conditions_to_1000(order: int) -> None:
    random = np.random.default_rng(order)
    program = c.inverse(Matrix(locum.tokens, order, order), recipe="newton-schulz")
    for _ in range(10):
        a = conditioned(random, order, 999)
        residual = program.run(a.ravel()) @ a - np.eye(order)
        assert np.abs(residual).max() <= 1e-10


def test_the_papers_matrix() -> None:
    tokens = [7, 8, 12, 10, 11, 9, 2, 4, 21]
    a = np.reshape(tokens, (3, 3)).astype(float)
    view = Matrix(locum.tokens, 3, 3)
    assert c.determinant(view).run(tokens)[0, 0] == pytest.approx(45.0, abs=1e-12)
    for recipe in ("paper", "cofactor", "gauss-jordan", "faddeev-leverrier"):
        result = c.inverse(view, recipe=recipe).run(tokens)
        np.testing.assert_allclose(result, np.linalg.inv(a), atol=1e-13)


@pytest.mark.parametrize(
    "recipe", ["paper", "cofactor", "gauss-jordan", "faddeev-leverrier", "newton-schulz"]
)
def test_singular_matrices_are_refused(recipe: str) -> None:
    program = c.inverse(Matrix(locum.tokens, 3, 3), recipe=recipe)
    with pytest.raises(locum.ExecutionError, match=r"^inverse: expected .*singular"):
        program.run([1, 2, 3, 2, 4, 6, 1, 0, 1])
    # Rank 2 in floats, where the determinant comes out as 1.7e-17: flagged, not garbage.
    nearly = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
    with pytest.raises(locum.ExecutionError, match="singular"):
        program.run(nearly)
    for rank in (1, 2):
        random = np.random.default_rng(rank)
        for _ in range(5):
            low = random.normal(size=(3, rank)) @ random.normal(size=(rank, 3))
            with pytest.raises(locum.ExecutionError, match="singular"):
                program.run(low.ravel())


@once
@given(st.lists(st.integers(-9, 20), min_size=1, max_size=8), st.integers(1, 9))
def test_match2(tokens: list[int], p: int) -> None:
    expected = [int(any((a + b) % p == 0 for b in tokens)) for a in tokens]
    assert c.match2(locum.tokens, p)(tokens) == expected


@settings(max_examples=60)
@given(st.lists(st.integers(-9, 20), min_size=1, max_size=5), st.integers(1, 15))
def test_match3(tokens: list[int], p: int) -> None:
    expected = [[int(any((a + b + d) % p == 0 for b in tokens for d in tokens)) for a in tokens]]
    for form in ("padded", "heads", "tensor"):
        assert (
            c.match3(Matrix(locum.tokens, 1, len(tokens)), p, form=form).run(tokens).tolist()
            == expected
        )


@once
@pytest.mark.parametrize(
    ("n", "chosen"), [(8, (1, 4, 6)), (6, (0, 3, 5)), (5, (2,)), (4, (0, 1, 2, 3))]
)
def test_k_parity_on_all_inputs(n: int, chosen: tuple[int, ...]) -> None:
    programs = [
        c.k_parity(locum.tokens, chosen, heads=heads, wave=wave)
        for heads in ("one", "each")
        for wave in (True, False)
    ]
    for bits in itertools.product((0, 1), repeat=n):
        expected = sum(bits[i] for i in chosen) % 2
        for program in programs:
            assert program(list(bits)) == [expected] * n
    assert [program.architecture.layers for program in programs] == [1] * 4


@once
@given(
    st.lists(st.integers(-9, 9), min_size=1, max_size=8),
    st.integers(-9, 9),
    st.integers(0, 8),
    st.integers(1, 8),
)
def test_identify_and_shift(tokens: list[int], t: int, start: int, count: int) -> None:
    n = len(tokens)
    assert c.shift(locum.tokens, t)(tokens) == [tokens[(i + t) % n] for i in range(n)]
    assert c.shift(locum.tokens, t, n)(tokens) == [tokens[(i + t) % n] for i in range(n)]
    assert c.identify(locum.tokens, start, count)(tokens) == [
        tokens[i] if start <= i < start + count else 0 for i in range(n)
    ]


def test_composition_is_one_program_and_multihead_equals_separate_runs() -> None:
    def attend(x: Matrix) -> Matrix:
        return c.matmul(c.softmax(c.matmul(x, c.transpose(x))), x)

    random = np.random.default_rng(8)
    blocks = random.normal(size=(3, 3, 2))
    single = attend(Matrix(locum.tokens, 3, 2))
    reference = [np_softmax(x @ x.T) @ x for x in blocks]
    for block, expected in zip(blocks, reference, strict=True):
        assert_close(single.run(block.ravel()), expected)
    stacked = c.multihead(attend, 3, Matrix(locum.tokens, 3, 2)).run(blocks.ravel())
    assert_close(stacked, np.concatenate(reference))


@once
@settings(max_examples=30)
@given(st.data(), small, small, small, st.integers(1, 3))
def test_multihead_of_products(data: st.DataObject, r: int, k: int, cc: int, heads: int) -> None:
    shapes = [(heads * r, k), (heads * k, cc)]
    a, b = arrays(data, *shapes, of=rationals)
    views = Matrix(locum.tokens, r, k), Matrix(locum.tokens, k, cc, heads * r * k)
    for recipe in ("paper", "fetch"):
        program = c.multihead(lambda x, y, recipe=recipe: c.matmul(x, y, recipe), heads, *views)
        actual = program.run(together(a, b), domain="exact")
        expected = [a[h * r : h * r + r].dot(b[h * k : h * k + k]) for h in range(heads)]
        assert (actual == np.concatenate(expected)).all()


def test_lipschitz_networks() -> None:
    def f(x: float) -> float:
        return 0.9 * math.sin(x) + 0.05 * math.cos(2 * x)

    points = np.linspace(-3, 3, 601)
    errors = []
    for knots in (7, 13, 25, 97):
        network = lipschitz_network(f, np.linspace(-3, 3, knots).tolist())
        assert max(network.norms) <= 1 + 1e-12
        values = np.array(network(points.tolist()))
        assert (np.abs(np.diff(values)) <= np.diff(points) + 1e-12).all()
        errors.append(float(np.abs(values - [f(x) for x in points]).max()))
        assert errors[-1] <= 6 / (knots - 1)
    assert errors == sorted(errors, reverse=True)
    network = lipschitz_network(f, np.linspace(-3, 3, 5).tolist())
    few = [-2.5, -0.3, 1.1]
    assert_close(network.program(3).run(few)[:, 0], network(few))
    with pytest.raises(locum.GraphError, match="expected a 1-Lipschitz function"):
        lipschitz_network(lambda x: 2 * x, [0.0, 1.0])


@pytest.mark.parametrize("inputs", [1, 2, 3])
@pytest.mark.parametrize(
    "function",
    [
        lambda z: float(np.sqrt(z @ z)),
        lambda z: float(z.max()),
        lambda z: math.sin(z[0]) * math.cos(z[-1]) / 1.5,
        lambda z: -2.0,
    ],
)
def test_lipschitz_networks_of_several_variables(inputs: int, function: Any) -> None:
    random = np.random.default_rng(inputs)
    for count in (1, 2, 5, 12):
        knots = random.normal(size=(count, inputs))
        network = lipschitz_network(function, knots)
        assert (network.inputs, max(network.norms) <= 1) == (inputs, True)
        np.testing.assert_allclose(network(knots), [function(knot) for knot in knots], atol=1e-14)
        points = random.normal(size=(60, inputs))
        values, expected = np.array(network(points)), [function(point) for point in points]
        gaps = np.linalg.norm(points[:, None] - points, axis=2)
        assert (np.abs(values[:, None] - values) <= gaps + 1e-12).all()
        nearest = np.linalg.norm(points[:, None] - knots, axis=2).min(axis=1)
        assert (np.abs(values - expected) <= 2 * nearest + 1e-12).all()
    few = lipschitz_network(function, knots[:3])
    assert_close(few.program(2).run(points[:2].ravel())[:, 0], few(points[:2]))


def test_maxmin_networks_of_own_weights() -> None:
    random = np.random.default_rng(0)
    first, second, last = (random.normal(size=shape) for shape in ((4, 3), (2, 4), (1, 2)))
    biases = [random.normal(size=size) for size in (4, 2, 1)]
    network = c.MaxMinNetwork(tuple(zip((first, second, last), biases, strict=True)))
    x = random.normal(size=(2, 3))

    def maxmin(z: Any) -> Any:
        return np.concatenate([np.sort(pair)[::-1] for pair in np.split(z, len(z) // 2)])

    expected = []
    for point in x:
        z = second @ maxmin(first @ point + biases[0]) + biases[1]
        expected.append((last @ maxmin(z) + biases[2])[0])
    assert_close(network(x), expected)
    assert_close(network.program(2).run(x.ravel())[:, 0], expected)


def test_wrong_lipschitz_networks() -> None:
    eye, one, zero = np.eye(2), np.ones((1, 2)), np.zeros(1)
    word: Any = lambda z: "x"  # noqa: E731
    for make, words in (
        (lambda: lipschitz_network(lambda z: z[0] + z[1], [(0, 0), (1, 1)]), "a 1-Lipschitz function"),
        (lambda: lipschitz_network(abs, []), "one or more finite knots"),
        (lambda: lipschitz_network(abs, [[1, 2], [3]]), "knots: expected an array of numbers"),
        (lambda: lipschitz_network(lambda z: z, [(1, 2)]), "a finite value at"),
        (lambda: lipschitz_network(word, [1.0]), "the value at 1.0: expected an array"),
        (lambda: lipschitz_network(math.hypot, [1.0])([[1.0, 2.0]]), "rows of 1 numbers"),
        (lambda: c.MaxMinNetwork(()), "no layers"),
        (lambda: c.MaxMinNetwork(((eye, np.ones(2)),)), "a last layer of one row, got 2 rows"),
        (lambda: c.MaxMinNetwork(((eye, np.ones(3)),)), "one entry of b for each row of W"),
        (lambda: c.MaxMinNetwork(((one, zero), (np.eye(1), zero))), "an even number of rows"),
    ):
        with pytest.raises(locum.GraphError, match=words):
            make()


@once
@given(st.lists(st.integers(1, 4), min_size=1, max_size=4))
def test_prop_is_a_bijection(shape: list[int]) -> None:
    for order in ("row", "column"):
        places = [c.prop(shape, index, order) for index in itertools.product(*map(range, shape))]
        assert sorted(places) == list(range(math.prod(shape)))
        assert all(c.prop(shape, c.unprop(shape, p, order), order) == p for p in places)
    array = np.arange(math.prod(shape)).reshape(shape)
    for index in itertools.product(*map(range, shape)):
        assert array.ravel()[c.prop(shape, index)] == array[index]
        assert array.ravel("F")[c.prop(shape, index, "column")] == array[index]


def test_column_major_matrices() -> None:
    a = np.arange(6.0).reshape(2, 3)
    assert (c.matrix(locum.tokens, 2, 3, order="column").run(a.ravel("F")) == a).all()


@once
@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda a, b: c.matmul(a, b), "2×3 matrix by a 2×2 one: the inner dimensions 3 and 2 differ"),
        (lambda a, b: c.add(a, b), "cannot add a 2×2 matrix to a 2×3 one"),
        (lambda a, b: c.inverse(a), "expected a square matrix, got a 2×3 one"),
        (lambda a, b: c.determinant(b, order=3), "a 2×2 matrix is not of order 3"),
        (
            lambda a, b: c.groupsort(a, 4),
            "expected groups that divide the 6 entries of a 2×3 matrix, got 4",
        ),
        (lambda a, b: c.maxout(a, 2), "expected groups that divide 3 columns, got 2"),
        (lambda a, b: c.softmax(a, mask=b), "a 2×2 mask does not fit a 2×3 matrix"),
        (lambda a, b: c.softmax(a, mask="round"), "as the mask, got 'round'; try constant_matrix"),
        (lambda a, b: c.layer_norm(a, gain=b), "gain and bias: expected 1×c, got 2×2"),
        (
            lambda a, b: c.matmul(b, b, recipe="quick"),
            ", got 'quick'",
        ),
        (lambda a, b: c.inverse(b, recipe="paper"), "expected a matrix of order 3, got order 2"),
        (lambda a, b: c.multihead(c.transpose, 0, a), "heads: expected an integer ≥ 1, got 0"),
        (lambda a, b: Matrix(locum.tokens, 0, 2), "rows: expected an integer ≥ 1, got 0"),
        (
            lambda a, b: Matrix(locum.tokens, 2, cast(int, 2.5)),
            "columns: expected an integer ≥ 1, got 2.5",
        ),
        (lambda a, b: c.broadcast_row(a, 3), "expected a matrix of one row, got 2×3"),
        (lambda a, b: c.match3(a, 5), "match3: expected a sequence (a 1×n matrix), got a 2×3 one"),
        (
            lambda a, b: c.prop((2, 2), (0, 5)),
            "expected an index into an array of shape (2, 2), got (0, 5)",
        ),
        (lambda a, b: c.k_parity(locum.tokens, (1, 1)), "distinct positions"),
        (
            lambda a, b: c.softmax(Matrix(locum.tokens, locum.length, 2)),
            "expected a number, since it determines the number of heads",
        ),
    ],
)
def test_what_does_not_fit_is_refused(build: Any, words: str) -> None:
    with pytest.raises(locum.GraphError) as caught:
        build(Matrix(locum.tokens, 2, 3), Matrix(locum.tokens, 2, 2))
    assert words in str(caught.value)


def test_sequences_that_are_too_short_are_refused() -> None:
    a, b = c.concatenate(locum.tokens, (2, 3), (3, 2))
    with pytest.raises(
        locum.InputError,
        match=r"expected at least 12 tokens for the inputs of this 2×2 matrix, got 7",
    ):
        c.matmul(a, b).run([1] * 7)


@pytest.mark.parametrize("order", [2, 3, 4, 5, 6])
@pytest.mark.parametrize("condition", [1e3, 1e7, 1e10])
def test_the_default_inverse_of_ill_conditioned_matrices(order: int, condition: float) -> None:
    random = np.random.default_rng(order)
    left, right = (np.linalg.qr(random.normal(size=(order, order)))[0] for _ in range(2))
    a = left @ np.diag(np.geomspace(1, 1 / condition, order)) @ right
    result = c.inverse(Matrix(locum.tokens, order, order)).run(a.ravel())
    assert np.abs(result @ a - np.eye(order)).max() <= 1e-12 * condition


@pytest.mark.parametrize(
    "diagonal", [[1e20, 1.0], [1.0, 1e-15], [1e6, 1, 1, 1], [1e150] * 4, [1e-100] * 4]
)
def test_badly_scaled_matrices_are_not_called_singular(diagonal: list[float]) -> None:
    n = len(diagonal)
    result = c.inverse(Matrix(locum.tokens, n, n), recipe="gauss-jordan").run(np.diag(diagonal).ravel())
    np.testing.assert_allclose(result, np.diag(1 / np.array(diagonal)))


def test_the_tolerance_of_an_inverse_is_part_of_the_program() -> None:
    """It is the same in every domain; with a tolerance of 0 nothing but 0 counts as 0."""
    tokens = [Fraction(1), Fraction(1), Fraction(1), 1 + Fraction(1, 10**20)]
    for recipe in ("cofactor", "gauss-jordan"):
        view = Matrix(locum.tokens, 2, 2)
        with pytest.raises(locum.ExecutionError, match="singular"):
            c.inverse(view, recipe=recipe).run(tokens, domain="exact")
        result = c.inverse(view, recipe=recipe, tolerance=0).run(tokens, domain="exact")
        assert result[1, 1] == 10**20


def test_low_rank_is_flagged_at_every_order() -> None:
    random = np.random.default_rng(3)
    for order, rank in itertools.product((2, 4, 5, 6), (1, 2, 3)):
        if rank < order:
            low = random.normal(size=(order, rank)) @ random.normal(size=(rank, order))
            for recipe in ("gauss-jordan",) + (("cofactor",) if order <= 5 else ()):
                with pytest.raises(locum.ExecutionError, match="singular"):
                    c.inverse(Matrix(locum.tokens, order, order), recipe=recipe).run(low.ravel())


def test_ties_of_the_maximum() -> None:
    for value in (8.281565184266097e18, 1e308, -1e308, 0.1):
        assert_close(c.softmax(Matrix(locum.tokens, 1, 6)).run([value] * 6), np.full((1, 6), 1 / 6))
        assert c.maxout(Matrix(locum.tokens, 1, 6), 3).run([value] * 6).tolist() == [[value, value]]
    assert_close(c.softmax(Matrix(locum.tokens, 1, 2), base=0.5).run([3000, -3000]), [[0.0, 1.0]])
    assert c.relu(Matrix(locum.tokens, 1, 2)).run([math.inf, -math.inf]).tolist() == [[math.inf, 0.0]]


def test_sizes_from_the_length_are_not_padded_over() -> None:
    k = locum.length // 10
    a, b = Matrix(locum.tokens, 5, k), Matrix(locum.tokens, k, 5, offset=5 * k)
    with pytest.raises(
        locum.InputError, match="5×5 result needs 25 positions, but the sequence has 10"
    ):
        c.matmul(a, b).run([1.0] * 10)
    x = np.arange(15.0).reshape(5, 3), np.arange(15.0).reshape(3, 5)
    assert_close(c.matmul(a, b).run([*x[0].ravel(), *x[1].ravel()]), x[0] @ x[1])


@pytest.mark.parametrize(
    ("build", "tokens", "words"),
    [
        (
            lambda: Matrix(locum.tokens, 3, locum.length // 3, offset=5),
            [1] * 6,
            "expected at least 11 tokens for a 3×2 matrix",
        ),
        (
            lambda: c.broadcast_row(Matrix(locum.tokens, 1, 3), locum.length),
            [1, 2, 3],
            "ends at position 8",
        ),
        (
            lambda: c.softmax(Matrix(locum.tokens, 3, locum.length // 3)),
            [1, 2],
            "expected an integer ≥ 1, got",
        ),
        (
            lambda: c.cofactor(Matrix(locum.tokens, locum.length**0.5, locum.length**0.5), 3),
            [1] * 8,
            "expected an integer ≥ 1, got 2.8",
        ),
    ],
)
def test_sizes_that_do_not_come_out(build: Any, tokens: list[int], words: str) -> None:
    with pytest.raises(locum.InputError) as caught:
        build().run(tokens)
    assert words in str(caught.value)


def test_bookkeeping_of_multihead() -> None:
    a, b = c.concatenate(locum.tokens, (4, 1), (1, 4))
    q = c.matmul(c.matmul(a, b, "fetch"), b.transpose(0, 1))
    m = c.multihead(lambda x: c.scale(x, 1), 2, q.block(0, 0, 2, 1))
    assert (m.reads, m.needs) == (8, 16)
    assert m.run([1, 2, 3, 4, 1, 1, 1, 1]).ravel().tolist() == [4, 8, 12, 16]
    weights = c.constant_matrix([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]]).block(0, 0, 2, 2)
    result = c.multihead(lambda x, w: c.matmul(x, w, "fetch"), 2, Matrix(locum.tokens, 1, 2), weights)
    assert result.run([1, 1, 1, 1]).tolist() == [[4, 6], [12, 14]]
    with pytest.raises(locum.ExecutionError, match="singular"):
        c.multihead(c.inverse, 2, Matrix(locum.tokens, 2, 2)).run([1, 2, 3, 4, 1, 2, 2, 4])


def test_multihead_on_blocks_of_columns() -> None:
    x = np.arange(8.0).reshape(2, 4)
    first = Matrix(locum.tokens, 2, 4).block(0, 0, 2, 2)
    result = c.multihead(lambda m: c.matmul(m, c.transpose(m)), 2, first, steps=(2,)).run(x.ravel())
    assert_close(result, np.concatenate([x[:, :2] @ x[:, :2].T, x[:, 2:] @ x[:, 2:].T]))
    with pytest.raises(locum.GraphError, match="expected the distances between the blocks"):
        c.multihead(c.transpose, 2, first)


def test_views_are_checked_and_cost_nothing_where_they_need_not() -> None:
    view = Matrix(locum.tokens, 2, 2)
    for row, column, rows in ((1, 1, 2), (-1, 0, 1)):
        with pytest.raises(
            locum.GraphError, match="expected a range within the 2 entries of dimension"
        ):
            view.block(row, column, rows, 2)
    for arguments in ((2, 2, -1), (2, 2, 0, -1)):
        with pytest.raises(locum.GraphError, match="expected an integer ≥ 0, got -1"):
            Matrix(locum.tokens, *arguments)
    assert Matrix(locum.tokens, 6, 6).block(0, 0, 1, 1).reads == 1
    assert (
        c.add(Matrix(locum.tokens, 2, 2, 4), Matrix(locum.tokens, 2, 2, 4)).sop.architecture.heads == []
    )
    assert c.softmax(
        c.transpose(Matrix(locum.tokens, 4, 1)), recipe="frugal"
    ).sop.architecture.heads == [
        1,
        1,
    ]
    assert c.maxout(Matrix(locum.tokens, 2, 4), 2).sop.architecture.heads == [1]
    assert c.groupsort(view, 1).sop is view.sop
    two: Any = np.int64(2)
    assert Matrix(locum.tokens, two, two).run([[1, 2], [3, 4]]).tolist() == [[1, 2], [3, 4]]
    no_matrix: Any = np.eye(2)
    with pytest.raises(locum.GraphError, match="matmul: expected matrices, got ndarray"):
        c.matmul(view, no_matrix)
    no_matrix = locum.tokens
    with pytest.raises(locum.GraphError, match="softmax: expected matrices, got an s-op"):
        c.softmax(no_matrix)


def test_k_parity_needs_its_positions() -> None:
    with pytest.raises(locum.ExecutionError):
        c.k_parity(locum.tokens, (0, 5))([1, 0])
    assert c.k_parity(locum.tokens, (0, 5), heads="each")([1, 0]) == [1, 1]


@pytest.mark.parametrize("knots", [[0.0], [0.0, 1.0], [1.0, 0.0, 0.5], [0.0, 0.0, 1.0, 2.0, 3.0]])
def test_small_lipschitz_networks(knots: list[float]) -> None:
    network = lipschitz_network(math.sin, knots)
    assert_close(network(knots), [math.sin(x) for x in knots])
    assert_close(network.program(2).run([0.2, 0.7])[:, 0], network([0.2, 0.7]))
    fine = np.linspace(0, 1e-4, 101).tolist()
    assert max(lipschitz_network(lambda x: x + 0.1, fine).norms) <= 1
    with pytest.raises(locum.GraphError, match="finite value"):
        lipschitz_network(lambda x: math.nan, knots)
