"""The errata of the paper (docs/errata.md): each shows the paper's form fail and ours right."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import locum
from locum import constructions as c
from locum.constructions import Matrix
from locum.language import Session
from tests.constructions.matrices import once
from tests.paper.test_listings import SQUARE, run

RANDOM = np.random.default_rng(2026)


def mean(pattern: Any, values: Any) -> Any:
    """Average-hard attention by the definition: 0 where a row selects nothing."""
    counts = pattern.sum(1)
    return np.where(counts > 0, pattern @ values / np.maximum(counts, 1), 0.0)


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def attention(x: Any, a: Any, v: Any) -> Any:
    return softmax(x @ a @ x.T) @ x @ v


def test_e1_the_base_of_the_exponential() -> None:
    x = np.array([[1.0, 2.0], [0.0, -1.0], [0.5, 0.5]])
    assert np.abs(np.reshape(run("softmax", x.ravel().tolist()), (3, 2)) - softmax(x)).max() > 1e-4
    for result in (
        run("softmax_corrected", x.ravel().tolist()),
        c.softmax(Matrix(locum.tokens, 3, 2)).run(x.ravel()),
    ):
        np.testing.assert_allclose(np.reshape(result, (3, 2)), softmax(x), atol=1e-15)
    np.testing.assert_allclose(
        c.softmax(Matrix(locum.tokens, 3, 2), base=2.73, stable=False).run(x.ravel()).ravel(),
        run("softmax", x.ravel().tolist()),
        atol=1e-15,
    )


def test_e2_maxmin_with_a_negative_number() -> None:
    assert run("maxmin", [1.0, -2.0]) == [1.0, 1.0]
    for recipe in ("partner", "paper"):
        assert c.maxmin(Matrix(locum.tokens, 1, 2), recipe=recipe).run([1.0, -2.0]).tolist() == [
            [1.0, -2.0]
        ]


def test_e3_match2_with_a_multiple_of_p() -> None:
    assert run("match2", [5, 5]) == [0, 0]
    assert c.match2(locum.tokens, 5)([5, 5]) == [1, 1]
    assert c.match2(locum.tokens, 5)([5, -5]) == [1, 1]  # averages to 0


def test_e4_application_binds_tighter_than_division() -> None:
    with pytest.raises(locum.LocumError, match="applying a program to an input"):
        run("inverse", SQUARE)
    result = c.inverse(Matrix(locum.tokens, 3, 3), recipe="paper").run(SQUARE)
    np.testing.assert_allclose(result, np.linalg.inv(np.reshape(SQUARE, (3, 3))), atol=1e-13)


def test_e5_the_listings_are_for_order_3_only() -> None:
    assert run("determinant", [1.0, 2.0, 3.0, 4.0])[0] != pytest.approx(-2.0)
    assert c.determinant(Matrix(locum.tokens, 2, 2)).run([1, 2, 3, 4])[0, 0] == -2.0
    # M_A / |A| is the transposed inverse, not the adjugate or its transpose.
    ratio = np.reshape(run("cofactor", SQUARE), (3, 3)) / 45
    np.testing.assert_allclose(ratio.T, np.linalg.inv(np.reshape(SQUARE, (3, 3))), atol=1e-13)


def algorithm_3(a: Any, b: Any, stride: int) -> Any:
    """Algorithm 3 as printed, with R'' at l·stride + l' + 1; the paper has stride k."""
    (r, k), columns = a.shape, b.shape[1]
    size, sequence = k * (r + columns), np.concatenate([a.ravel(), b.ravel()])
    result = np.zeros(size)
    for l, m in itertools.product(range(r), range(columns)):
        place = l * stride + m
        if place >= r * columns or place >= size:
            continue  # R'' is not defined there
        row, column, at = (np.zeros((size, size)) for _ in range(3))
        for i in range(size):
            row[i, k * l + i % k] = 1
            column[i, r * k + m + columns * (i % k)] = 1
        at[place, :k] = 1
        result += mean(at, mean(row, sequence) * mean(column, sequence))
    return (k * result)[: r * columns].reshape(r, columns)


@pytest.mark.parametrize("shape", [(2, 2, 3), (2, 3, 2), (3, 2, 4)])
def test_e6_the_index_of_algorithm_3(shape: tuple[int, int, int]) -> None:
    r, k, columns = shape
    a, b = RANDOM.normal(size=(r, k)), RANDOM.normal(size=(k, columns))
    assert np.abs(algorithm_3(a, b, stride=k) - a @ b).max() > 1e-3
    np.testing.assert_allclose(algorithm_3(a, b, stride=columns), a @ b, atol=1e-13)
    x, y = c.concatenate(locum.tokens, (r, k), (k, columns))
    np.testing.assert_allclose(c.matmul(x, y).run([*a.ravel(), *b.ravel()]), a @ b, atol=1e-13)


def test_e7_the_blocks_of_algorithm_2() -> None:
    """R_l has r rows from r(l−1) on; the rows of A take up c positions each."""
    r, columns = 2, 3
    x = RANDOM.normal(size=(r, columns))
    powers, sums, right = np.exp(x).ravel(), np.zeros(r * columns), np.zeros(r * columns)
    for l in range(r):
        printed, mended = np.zeros((6, 6)), np.zeros((6, 6))
        printed[r * l : r * l + r, l * columns : (l + 1) * columns] = 1
        mended[columns * l : columns * (l + 1), l * columns : (l + 1) * columns] = 1
        sums += columns * mean(printed, powers)
        right += columns * mean(mended, powers)
    assert (sums == 0).any()  # a zero denominator
    np.testing.assert_allclose(powers / right, softmax(x).ravel(), atol=1e-15)
    np.testing.assert_allclose(
        c.softmax(Matrix(locum.tokens, 2, 3)).run(x.ravel()), softmax(x), atol=1e-15
    )


def test_e8_heads_are_shared_or_they_are_eight() -> None:
    """Weiss counts 8 heads for two calls of Cofactor(); equal selectors are one head here."""
    n = locum.length**0.5
    whole = Matrix(locum.tokens, n, n)
    assert c.inverse(whole, recipe="paper", order=3).sop.architecture.heads == [1, 4, 1, 1, 1]


def test_e9_the_base_case_of_proposition_1d() -> None:
    rows, columns = 2, 3
    printed = [rows * i + j for i in range(rows) for j in range(columns)]
    assert len(set(printed)) < len(printed)
    assert sorted(c.prop((2, 3), (i, j)) for i in range(2) for j in range(3)) == list(range(6))


def test_e10_the_operation_circ_needs_as_many_values_as_columns() -> None:
    pattern, values = np.ones((2, 3)), np.arange(3.0)
    assert mean(pattern, values).shape == (2,)
    with pytest.raises(ValueError, match="matmul"):
        mean(pattern, np.arange(2.0))  # S in R^r, as the definition says


def test_e11_the_matrix_of_shift_turns_the_other_way() -> None:
    s, t = np.array([10.0, 20, 30, 40, 50]), 2
    printed, mended = np.zeros((5, 5)), np.zeros((5, 5))
    for i in range(5):
        printed[i, (5 - t + i) % 5] = 1
        mended[i, (i + t) % 5] = 1
    defined = [30, 40, 50, 10, 20]
    assert mean(printed, s).tolist() != defined
    assert mean(mended, s).tolist() == defined == c.shift(locum.tokens, t)(s.tolist())


def test_e12_identify_may_take_the_last_element() -> None:
    i, k, size = 2, 1, 3
    assert not i + k <= size - 1  # the paper's bound forbids it
    assert c.identify(locum.tokens, 1, 2)([10, 20, 30]) == [0, 20, 30]


def test_e13_length_must_become_the_length_of_a_block() -> None:
    blocks = np.arange(12.0).reshape(2, 2, 3)
    expected = np.concatenate([block.T for block in blocks])
    local, start = locum.indices % 6, locum.indices - locum.indices % 6

    def blockwise(length: locum.SOp) -> Any:
        columns = length / 2
        place = start + (local % 2) * columns + (local - local % 2) / 2
        return locum.aggregate(locum.select(locum.indices, place, "=="), locum.tokens)(
            blocks.ravel().tolist()
        )

    assert blockwise(locum.length) != expected.ravel().tolist()
    assert blockwise(locum.length / 2) == expected.ravel().tolist()
    assert (
        c.multihead(c.transpose, 2, Matrix(locum.tokens, 2, 3)).run(blocks.ravel()) == expected
    ).all()


def simulate(n: int, d: int, d_v: int) -> Matrix:
    x, a, v = c.concatenate(locum.tokens, (n, d), (d, d), (d, d_v))
    return c.matmul(c.softmax(c.matmul(c.matmul(x, a), c.transpose(x))), c.matmul(x, v))


def test_e14_nothing_needs_to_be_contracted() -> None:
    """One program over one sequence; but denominators outside a matrix must be guarded."""
    x, a, v = RANDOM.normal(size=(3, 3, 3))
    tokens = [*x.ravel(), *a.ravel(), *v.ravel()]
    np.testing.assert_allclose(simulate(3, 3, 3).run(tokens), attention(x, a, v), atol=1e-14)
    session = Session([1.0] * 4)
    dead = "x = 1 / (indices - 3) if indices < 3 else 0;"
    assert session.execute(dead)[0].category == "runtime:ZeroDivisionError"
    guarded = "x = 1 / ((indices - 3) if indices < 3 else 1);"
    assert session.execute(guarded)[0].kind == "s-op"


def test_e15_zero_padding_is_not_exact() -> None:
    m, n, d = 2, 4, 3
    x, a, v = RANDOM.normal(size=(m, d)), RANDOM.normal(size=(d, d)), RANDOM.normal(size=(d, d))
    padded = np.concatenate([x, np.zeros((n - m, d))])
    actual, expected = attention(padded, a, v)[:m], attention(x, a, v)
    z = np.exp(x @ a @ x.T).sum(1, keepdims=True)
    assert np.abs(actual - expected).max() > 1e-3
    np.testing.assert_allclose(actual, expected * z / (z + n - m), atol=1e-13)
    # Masked softmax on the larger size is exact.
    xs, as_, vs = c.concatenate(locum.tokens, (n, d), (d, d), (d, d))
    scores = c.matmul(c.matmul(xs, as_), c.transpose(xs))
    program = c.matmul(c.softmax(scores, mask=m), c.matmul(xs, vs))
    masked = program.run([*padded.ravel(), *a.ravel(), *v.ravel()])[:m]
    np.testing.assert_allclose(masked, expected, atol=1e-13)


def test_e16_the_square_root_of_d() -> None:
    m, e, d = 2, 2, 4
    x, a, v = RANDOM.normal(size=(m, e)), 2 * RANDOM.normal(size=(e, e)), RANDOM.normal(size=(e, e))
    bigger = [np.zeros((m, d)), np.zeros((d, d)), np.zeros((d, d))]
    for part, whole in zip((x, a, v), bigger, strict=True):
        whole[: part.shape[0], : part.shape[1]] = part
    xs, as_, vs = bigger
    scaled = softmax(xs @ as_ @ xs.T / math.sqrt(d)) @ xs @ vs
    assert np.abs(scaled[:, :e] - attention(x, a, v)).max() > 1e-3
    np.testing.assert_allclose(attention(xs, as_, vs)[:, :e], attention(x, a, v), atol=1e-14)


@pytest.mark.parametrize("order", [(4, 2, 1), (4, 2, 2), (3, 2, 1), (4, 2, 4), (5, 2, 2)])
def test_e17_n_may_exceed_d_and_d_v(order: tuple[int, int, int]) -> None:
    n, d, d_v = order
    x, a, v = RANDOM.normal(size=(n, d)), RANDOM.normal(size=(d, d)), RANDOM.normal(size=(d, d_v))
    assert n > min(d, d_v)
    result = simulate(n, d, d_v).run([*x.ravel(), *a.ravel(), *v.ravel()])  # (5, 2, 2) is padded
    np.testing.assert_allclose(result, attention(x, a, v), atol=1e-13)


def test_e18_the_size_is_always_found() -> None:
    """n² + 4(nd + d²) = (n + 2d)²: "n mod 4 = 0" is not needed."""
    for n, d in itertools.product(range(1, 40), repeat=2):
        assert (math.isqrt(n * n + 4 * (n * d + d * d)) - n) / 2 == d


def test_e19_the_residual_sum_needs_d_equal_to_d_v() -> None:
    with pytest.raises(locum.GraphError, match="cannot add a 3×1 matrix to a 3×2 one"):
        c.add(Matrix(locum.tokens, 3, 2), simulate(3, 2, 1))
    x = Matrix(locum.tokens, 3, 2)
    assert c.add(x, x).sop.architecture.heads == []


def test_e20_a_product_has_r_plus_c_plus_rc_heads() -> None:
    for r, columns in ((3, 4), (5, 5)):
        x, y = c.concatenate(locum.tokens, (r, 6), (6, columns))
        assert sum(c.matmul(x, y).sop.architecture.heads) == r + columns + r * columns < 3 * r * columns


def test_e21_exactly_means_up_to_rounding() -> None:
    """k · mean is not the sum, bit for bit; on rationals it is."""
    off = 0
    for _ in range(200):
        values = RANDOM.normal(size=3).tolist()
        total = c.summed(locum.full, locum.tokens, 3)
        off += total(values)[0] != (values[0] + values[1]) + values[2]
        assert total([Fraction(x) for x in values], domain="exact")[0] == sum(map(Fraction, values))
    assert off > 0


TILES = [(2, 2, 2), (3, 3, 3), (3, 4, 3), (4, 4, 3), (5, 7, 4), (8, 8, 4), (16, 16, 6)]


@once
@pytest.mark.parametrize(("r", "columns", "heads"), TILES)
def test_frugal_counts(r: int, columns: int, heads: int) -> None:
    """The marks that the paper's counts are to be beaten by."""
    k = locum.length // (r + columns)
    x, y = Matrix(locum.tokens, r, k), Matrix(locum.tokens, k, columns, offset=r * k)
    assert c.matmul(x, y, recipe="tiled").sop.architecture.heads == [
        1,
        heads,
        1,
    ]  # one network for all k
    x, y = c.concatenate(locum.tokens, (r, 4), (4, columns))
    assert c.matmul(x, y, recipe="tiled").sop.architecture.heads == [heads, 1]
    assert c.matmul(x, y, recipe="fetch").sop.architecture.heads == [8]
    assert c.matmul(x, y).sop.architecture.heads == [r + columns, r * columns]


def test_other_frugal_counts() -> None:
    view = Matrix(locum.tokens, 8, 8)
    assert c.transpose(view).sop.architecture.heads == []
    assert c.transpose(view, recipe="paper").sop.architecture.heads == [1]
    assert c.softmax(view, stable=False, recipe="frugal").sop.architecture.heads == [1]
    assert c.inverse(Matrix(locum.tokens, 3, 3)).sop.architecture.heads == [5, 1]
    for size in (2, 10, 100):
        assert c.maxmin(Matrix(locum.tokens, 1, size)).sop.architecture.heads == [1]
        assert c.maxmin(Matrix(locum.tokens, 1, size), recipe="paper").sop.architecture.heads == [3, 1]


@pytest.mark.parametrize("k", [2, 3, 5])
def test_listings_and_constructions_agree(k: int) -> None:
    tokens = RANDOM.normal(size=7 * k).tolist()
    x, y = c.concatenate(locum.tokens, (3, k), (k, 4))
    np.testing.assert_allclose(
        c.matmul(x, y).run(tokens).ravel(), run("matmul", tokens)[:12], atol=1e-13
    )
    tokens = RANDOM.normal(size=3 * k).tolist()
    view = Matrix(locum.tokens, 3, k)
    assert c.transpose(view, recipe="paper").run(tokens).ravel().tolist() == run("transpose", tokens)
    assert c.relu(view).run(tokens).ravel().tolist() == run("relu", tokens)
    result = c.softmax(view, base=2.73, stable=False).run(tokens).ravel()
    np.testing.assert_allclose(result, run("softmax", tokens), atol=1e-15)
    square = RANDOM.normal(size=9).tolist()
    view = Matrix(locum.tokens, 3, 3)
    np.testing.assert_allclose(
        c.cofactor(view).run(square).ravel(), run("cofactor", square), atol=1e-14
    )
    np.testing.assert_allclose(
        c.determinant(view).run(square)[0, 0], run("determinant", square)[0], rtol=1e-12
    )
    positive = np.abs(RANDOM.normal(size=8)).tolist()
    assert c.maxmin(Matrix(locum.tokens, 1, 8)).run(positive).ravel().tolist() == run(
        "maxmin", positive
    )
    assert c.match2(locum.tokens, 5)([1, 2, 3, 4]) == run("match2", [1, 2, 3, 4])
