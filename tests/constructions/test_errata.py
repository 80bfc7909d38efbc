"""The errata of the paper: each printed form fails, and each corrected form holds."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import locum
from locum import constructions as c
from locum.constructions import Matrix
from locum.languages.first_and_parity import Match2
from locum.paper import figure2, listings
from locum.paper.errata import ERRATA
from locum.rasp import Session
from locum.simulators import UniversalSimulator
from locum.simulators.modules.attention import Attention, MultiHeadAttention
from locum.simulators.modules.encoder_layers import Encoder
from tests.constructions.matrices import once
from tests.paper.source import paper
from tests.paper.test_listings import SQUARE, run

RANDOM = np.random.default_rng(2026)


def mean(pattern: Any, values: Any) -> Any:
    """RASP's aggregate: the mean of the selected values, 0 where a row selects nothing."""
    counts = pattern.sum(1)
    return np.where(counts > 0, pattern @ values / np.maximum(counts, 1), 0.0)


def average_hard(scores: Any, values: Any) -> Any:
    """Average-hard attention as the paper defines it: the mean over all maximal scores."""
    maximal = scores == scores.max(1, keepdims=True)
    return maximal @ values / maximal.sum(1)


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def attention(x: Any, a: Any, v: Any) -> Any:
    return softmax(x @ a @ x.T) @ x @ v


def corrected(listing: str, number: str, tokens: list[Any]) -> Any:
    """Run a listing in which the quoted line is replaced by the correction of the erratum."""
    erratum = ERRATA[number]
    (quote,) = erratum.quotes
    text = listings.text(listing)
    assert text.count(quote) == 1
    source = text.replace(quote, erratum.right.strip("`"))
    ((_, program),) = Session(tokens).script(source)
    return program(tokens)


def test_e1_2_73_is_not_e_to_three_significant_digits() -> None:
    assert f"{math.e:.3g}" == "2.72"
    scores = figure2.PRINTED["scores"].values
    exact = softmax(np.reshape(scores, (3, 3))).ravel()
    printed, error = figure2.PRINTED["softmax"].values, figure2.PRINTED["softmax"].error
    listing = np.array(run("softmax", scores))
    assert [round(float(x), 3) for x in listing[[3, 5]]] == [0.317, 0.364]
    assert [printed[3], printed[5]] == [0.318, 0.363]
    assert np.abs(listing - exact).max() == pytest.approx(1.4e-4, rel=0.01)
    view = Matrix(locum.tokens, 3, 3)
    four_digits = c.softmax(view, base=2.718, stable=False).run(scores).ravel()
    assert np.abs(four_digits - exact).max() == pytest.approx(error, rel=1e-3)
    assert four_digits.round(3).tolist() == printed
    np.testing.assert_allclose(c.softmax(view).run(scores).ravel(), exact, atol=1e-15)
    np.testing.assert_allclose(run("softmax_corrected", scores), exact, atol=1e-15)
    same = c.softmax(view, base=2.73, stable=False).run(scores).ravel()
    np.testing.assert_allclose(same, listing, atol=1e-15)


def test_e2_maxmin_with_a_negative_number() -> None:
    assert run("maxmin", [1.0, -2.0]) == [1.0, 1.0]
    for _ in range(20):
        tokens = RANDOM.normal(size=6).tolist()
        expected = [x for i in (0, 2, 4) for x in sorted(tokens[i : i + 2], reverse=True)]
        assert corrected("maxmin", "E2", tokens) == expected
        for recipe in ("partner", "paper"):
            assert c.maxmin(Matrix(locum.tokens, 1, 6), recipe).run(tokens).ravel().tolist() == expected


def test_e3_match2_misses_p_within_its_domain() -> None:
    assert run("match2", [5, 5]) == [0, 0]
    for tokens in itertools.product(range(1, 6), repeat=3):
        expected = [int(any((s + t) % 5 == 0 for t in tokens)) for s in tokens]
        assert corrected("match2", "E3", list(tokens)) == expected
        assert c.match2(locum.tokens, 5)(list(tokens)) == expected
        assert (run("match2", list(tokens)) != expected) == (5 in tokens)


def test_e4_application_binds_tighter_than_division() -> None:
    with pytest.raises(locum.LocumError, match="applying a program to an input"):
        run("inverse", SQUARE)
    erratum = ERRATA["E4"]
    call = f"({SQUARE})"
    printed, right = (text.replace("(A)", call) for text in (*erratum.quotes, erratum.right.strip("`")))
    text = listings.text("inverse")
    assert text.count(printed) == 1
    ((_, applied),) = Session(SQUARE).script(text.replace(printed, right))
    transposed = np.linalg.inv(np.reshape(SQUARE, (3, 3))).T
    np.testing.assert_allclose(np.reshape(applied.value, (3, 3)), transposed, atol=1e-13)


def test_e5_the_quotient_is_the_transposed_inverse() -> None:
    a = 2 * np.eye(3)
    cofactors = np.reshape(run("cofactor", a.ravel().tolist()), (3, 3))
    adjugate = np.linalg.inv(a) * np.linalg.det(a)
    np.testing.assert_allclose(adjugate, 4 * np.eye(3))
    np.testing.assert_allclose(cofactors / np.linalg.det(a), np.eye(3) / 2)
    ratio = np.reshape(run("cofactor", SQUARE), (3, 3)) / 45
    np.testing.assert_allclose(ratio.T, np.linalg.inv(np.reshape(SQUARE, (3, 3))), atol=1e-13)


def algorithm_3(a: Any, b: Any, stride: int, length: int | None = None) -> Any:
    """Algorithm 3 with R″ at l·stride + l′ + 1, on k(r + c) tokens or on ``length``; the paper has stride k."""
    (r, k), columns = a.shape, b.shape[1]
    size = length or k * (r + columns)
    sequence = np.zeros(size)
    sequence[: k * (r + columns)] = [*a.ravel(), *b.ravel()]
    result = np.zeros(size)
    for l, m in itertools.product(range(r), range(columns)):
        place = l * stride + m
        if place >= r * columns or place >= size:
            continue  # R″ is not defined there
        row, column, at = (np.zeros((size, size)) for _ in range(3))
        for i in range(size):
            row[i, k * l + i % k] = 1
            column[i, r * k + m + columns * (i % k)] = 1
        at[place, :k] = 1
        result += at @ ((row @ sequence) * (column @ sequence))
    return result[: r * columns]


@pytest.mark.parametrize("shape", [(2, 2, 3), (2, 3, 2), (3, 2, 4)])
def test_e6_the_index_of_algorithm_3(shape: tuple[int, int, int]) -> None:
    r, k, columns = shape
    a, b = RANDOM.normal(size=(r, k)), RANDOM.normal(size=(k, columns))
    expected = (a @ b).ravel()
    assert np.abs(algorithm_3(a, b, stride=k) - expected).max() > 1e-3
    np.testing.assert_allclose(algorithm_3(a, b, stride=columns), expected, atol=1e-13)
    x, y = c.concatenate(locum.tokens, (r, k), (k, columns))
    np.testing.assert_allclose(c.matmul(x, y).run([*a.ravel(), *b.ravel()]), a @ b, atol=1e-13)


def test_e7_the_blocks_of_algorithm_2() -> None:
    """The printed block of R_l has r rows, but a row of A occupies c positions."""
    r, columns = 2, 3
    x = RANDOM.normal(size=(r, columns))
    powers, sums, right = np.exp(x).ravel(), np.zeros(r * columns), np.zeros(r * columns)
    for l in range(r):
        printed, fixed = np.zeros((6, 6)), np.zeros((6, 6))
        printed[r * l : r * l + r, l * columns : (l + 1) * columns] = 1
        fixed[columns * l : columns * (l + 1), l * columns : (l + 1) * columns] = 1
        sums += printed @ powers
        right += fixed @ powers
    assert (sums == 0).tolist() == [False, False, False, False, True, True]
    np.testing.assert_allclose(powers / right, softmax(x).ravel(), atol=1e-15)
    np.testing.assert_allclose(
        c.softmax(Matrix(locum.tokens, 2, 3)).run(x.ravel()), softmax(x), atol=1e-15
    )


def test_e8_four_heads_need_one_call_of_cofactor() -> None:
    """By text, two calls of Cofactor() have eight selectors; shared, they have four heads."""
    calls = ERRATA["E4"].quotes[0].count("Cofactor()")
    definition = listings.text("cofactor").partition("def Cofactor()")[2]
    assert calls * definition.count("select(") == 8
    text = listings.text("inverse_corrected")
    last = "Transpose(cofactors / Det(cofactors));"
    assert text.count(last) == 1
    quotient = text.replace(last, "cofactors / Det(cofactors);")
    for source, heads in ((text, [1, 4, 1, 1, 1]), (quotient, [1, 4, 1, 1])):
        assert Session(SQUARE).script(source)[-1][1].architecture.heads == heads


def test_e9_the_base_case_of_proposition_1d() -> None:
    for rows, columns, printed in ((2, 3, [0, 1, 2, 2, 3, 4]), (3, 2, [0, 1, 3, 4, 6, 7])):
        places = list(itertools.product(range(rows), range(columns)))
        assert [rows * i + j for i, j in places] == printed != list(range(6))
        assert [columns * i + j for i, j in places] == list(range(6))
        assert [c.prop((rows, columns), place) for place in places] == list(range(6))
    for rows, columns in itertools.product(range(1, 6), repeat=2):
        printed = [rows * i + j for i in range(rows) for j in range(columns)]
        assert (len(set(printed)) < len(printed)) == (1 < rows < columns)
        assert (max(printed) > rows * columns - 1) == (rows > columns)


def test_e10_the_operation_circ_needs_as_many_values_as_columns() -> None:
    pattern = np.ones((2, 3))
    with pytest.raises(IndexError):
        _ = [sum(pattern[i, j] * np.arange(2.0)[j] for j in range(3)) for i in range(2)]
    assert (pattern @ np.arange(3.0)).shape == (2,)


def test_e11_the_matrix_of_shift_rotates_in_the_other_direction() -> None:
    s, t = np.array([10.0, 20, 30, 40, 50]), 2
    printed, fixed = np.zeros((5, 5)), np.zeros((5, 5))
    for i in range(5):
        printed[i, (5 - t + i) % 5] = 1
        fixed[i, (i + t) % 5] = 1
    assert (printed @ s).tolist() == [40, 50, 10, 20, 30]
    assert (fixed @ s).tolist() == [30, 40, 50, 10, 20] == c.shift(locum.tokens, t)(s.tolist())
    assert run("shift", s.tolist()) == [30, 40, 50, 10, 20]


def test_e12_identify_accepts_the_last_element() -> None:
    i, k, size = 2, 1, 3
    assert not i + k <= size - 1
    assert i + k <= size
    assert c.identify(locum.tokens, 1, 2)([10, 20, 30]) == [0, 20, 30]


def test_e13_length_and_offset_of_a_block() -> None:
    blocks = np.arange(12.0).reshape(2, 2, 3)
    expected = np.concatenate([block.T for block in blocks]).ravel().tolist()

    def blockwise(length: locum.SOp, offset: int) -> Any:
        start = offset * locum.where(locum.indices >= 6, 1, 0)
        local, columns = locum.indices % 6, length / 2
        place = start + (local % 2) * columns + (local - local % 2) / 2
        return locum.aggregate(locum.select(locum.indices, place, "=="), locum.tokens)(
            blocks.ravel().tolist()
        )

    arity = 1
    assert blockwise(locum.length, 6) != expected
    assert blockwise(locum.length / 2, arity) != expected
    assert blockwise(locum.length / 2, 6) == expected
    stacked = c.multihead(c.transpose, 2, Matrix(locum.tokens, 2, 3)).run(blocks.ravel())
    assert stacked.ravel().tolist() == expected


def simulate(n: int, d: int, d_v: int) -> Matrix:
    x, a, v = c.concatenate(locum.tokens, (n, d), (d, d), (d, d_v))
    return c.matmul(c.softmax(c.matmul(c.matmul(x, a), c.transpose(x))), c.matmul(x, v))


def test_e14_a_feed_forward_does_not_contract_a_sequence() -> None:
    with pytest.raises(ValueError, match="matmul"):
        np.zeros((7, 1)) @ np.zeros((7, 2))
    for program in (locum.tokens + 1, locum.aggregate(locum.full, locum.tokens)):
        assert len(program([1.0] * 7)) == 7
    # One program over one sequence: the products read the positions that they need.
    x, a, v = RANDOM.normal(size=(3, 3, 3))
    tokens = [*x.ravel(), *a.ravel(), *v.ravel()]
    np.testing.assert_allclose(simulate(3, 3, 3).run(tokens), attention(x, a, v), atol=1e-14)


def constant_shape(listing: str, tokens: list[float], *changes: tuple[str, str]) -> list[float]:
    """Run a listing after replacing text in it."""
    text = listings.text(listing)
    for old, new in changes:
        assert text.count(old) == 1
        text = text.replace(old, new)
    return list(Session(tokens).script(text)[-1][1](tokens))


def test_e14_operations_in_series_keep_the_redundant_tokens() -> None:
    def product(sequence: list[float], offset: int) -> list[float]:
        """A 3×3 product of the first 9 tokens and the 9 tokens from the offset on."""
        views = Matrix(locum.tokens, 3, 3), Matrix(locum.tokens, 3, 3, offset=offset)
        return list(c.matmul(*views, recipe="paper").sop(sequence))

    x, a, v = RANDOM.normal(size=(3, 3, 3))
    xs, as_, vs = (list(m.ravel()) for m in (x, a, v))
    y1 = product([*xs, *as_], 9)
    assert len(y1) == 18
    scores = product([*y1, *x.T.ravel()], 18)
    assert len(scores) == 27
    expected = x @ a @ x.T
    np.testing.assert_allclose(np.reshape(scores[:9], (3, 3)), expected, atol=1e-13)
    wrong = product([*y1, *x.T.ravel()], 9)  # the redundant tokens are between the operands
    assert np.abs(np.reshape(wrong[:9], (3, 3)) - expected).max() > 1e-3
    base, shape = ("2.73^", "2.718281828459045^"), ("length/3", "3")
    denominator = "denom = (denom1+denom2+denom3)"
    guard = f"{denominator};", f"{denominator} if indices < 9 else 1;"
    of_length = np.reshape(constant_shape("softmax", y1, base)[:9], (3, 3))
    assert np.abs(of_length - softmax(np.reshape(y1[:9], (3, 3)))).max() > 1e-3
    with pytest.raises(locum.LocumError, match="division by zero at position 9"):
        constant_shape("softmax", scores, base, shape)
    weights = constant_shape("softmax", scores, base, shape, guard)
    np.testing.assert_allclose(np.reshape(weights[:9], (3, 3)), softmax(expected), atol=1e-13)
    xv = product([*xs, *vs], 9)
    result = product([*weights, *xv], len(weights))
    np.testing.assert_allclose(np.reshape(result[:9], (3, 3)), attention(x, a, v), atol=1e-13)


def test_e15_zero_padding_is_not_exact() -> None:
    corner = np.diag([1.0, 0.0])  # X = (1) and V = (1) in order (2, 2, 2)
    assert attention(np.ones((1, 1)), np.zeros((1, 1)), np.ones((1, 1))) == 1.0
    assert attention(corner, np.diag([0.0, 1.0]), corner)[0, 0] == 0.5
    m, n, d = 2, 4, 3
    x, a, v = RANDOM.normal(size=(m, d)), RANDOM.normal(size=(d, d)), RANDOM.normal(size=(d, d))
    padded = np.concatenate([x, np.zeros((n - m, d))])
    actual, expected = attention(padded, a, v)[:m], attention(x, a, v)
    z = np.exp(x @ a @ x.T).sum(1, keepdims=True)
    assert np.abs(actual - expected).max() > 1e-3
    np.testing.assert_allclose(actual, expected * z / (z + n - m), atol=1e-13)
    repeated = np.concatenate([x, x])  # exact without a mask, since m divides n
    np.testing.assert_allclose(attention(repeated, a, v)[:m], expected, atol=1e-13)
    xs, as_, vs = c.concatenate(locum.tokens, (n, d), (d, d), (d, d))
    scores = c.matmul(c.matmul(xs, as_), c.transpose(xs))
    program = c.matmul(c.softmax(scores, mask=m), c.matmul(xs, vs))
    masked = program.run([*padded.ravel(), *a.ravel(), *v.ravel()])[:m]
    np.testing.assert_allclose(masked, expected, atol=1e-13)


def test_e16_the_square_root_of_d() -> None:
    x, one = np.diag([1.0, 0.0]), np.eye(2)
    larger = [np.zeros((2, 4)), np.zeros((4, 4)), np.zeros((4, 4))]
    for part, whole in zip((x, one, one), larger, strict=True):
        whole[:2, :2] = part
    larger[1][2:, 2:] = np.eye(2)  # the identity block of step 2
    xs, as_, vs = larger
    printed = softmax(xs @ as_ @ xs.T / math.sqrt(4)) @ xs @ vs
    assert round(float(printed[0, 0]), 3) == 0.622
    assert round(float(attention(x, one, one)[0, 0]), 3) == 0.731
    np.testing.assert_allclose(attention(xs, as_, vs)[:, :2], attention(x, one, one), atol=1e-15)


def fits(n: int, d: int, d_v: int, minimum: Callable[[int, int], Fraction]) -> bool:
    """Tell whether k is at least the minimum for (r, c) in all four products of Theorem 1."""
    products = ((n, d, d), (n, d, n), (n, d, d_v), (n, n, d_v))
    return all(k >= minimum(r, columns) for r, k, columns in products)


def test_e17_the_criterion_is_n_at_most_d() -> None:
    def of_lemma(r: int, columns: int) -> Fraction:
        return Fraction(r * columns, r + columns)

    def of_text(r: int, columns: int) -> Fraction:
        return Fraction(min(r, columns))

    for n, d, d_v in itertools.product(range(1, 9), repeat=3):
        assert fits(n, d, d_v, of_text) == (n <= d)
        assert fits(n, d, d_v, of_lemma) == (2 * d >= n and d * (n + d_v) >= n * d_v)
    assert fits(2, 2, 1, of_text)
    assert fits(4, 2, 1, of_lemma)


@pytest.mark.parametrize("order", [(2, 2, 1), (4, 2, 1), (4, 2, 4), (5, 2, 2)])
def test_e17_n_may_exceed_d_and_d_v(order: tuple[int, int, int]) -> None:
    n, d, d_v = order
    x, a, v = RANDOM.normal(size=(n, d)), RANDOM.normal(size=(d, d)), RANDOM.normal(size=(d, d_v))
    assert n > min(d, d_v)
    result = simulate(n, d, d_v).run([*x.ravel(), *a.ravel(), *v.ravel()])  # (5, 2, 2) is padded
    np.testing.assert_allclose(result, attention(x, a, v), atol=1e-13)


def test_e18_d_is_found_for_every_n() -> None:
    for n, d in itertools.product(range(1, 40), repeat=2):
        assert (math.isqrt(n * n + 4 * (n * d + d * d)) - n) / 2 == d


def test_e19_the_residual_sum_needs_d_equal_to_d_v() -> None:
    with pytest.raises(locum.GraphError, match="cannot add a 3×1 matrix to a 3×2 one"):
        c.add(Matrix(locum.tokens, 3, 2), simulate(3, 2, 1))
    x, a, v = RANDOM.normal(size=(3, 2)), RANDOM.normal(size=(2, 2)), RANDOM.normal(size=(2, 2))
    tokens = [*x.ravel(), *a.ravel(), *v.ravel()]
    result = c.add(Matrix(locum.tokens, 3, 2), simulate(3, 2, 2)).run(tokens)
    np.testing.assert_allclose(result, x + attention(x, a, v), atol=1e-14)
    # With an output projection, W₁ has d rows.
    v, output = RANDOM.normal(size=(2, 1)), RANDOM.normal(size=(1, 2))
    w1, w2 = RANDOM.normal(size=(2, 4)), RANDOM.normal(size=(4, 2))
    T = Encoder(MultiHeadAttention([Attention(a, v)], output), w1, w2)
    expected = np.maximum((x + attention(x, a, v) @ output) @ w1, 0) @ w2
    np.testing.assert_allclose(UniversalSimulator(T.order(3))(T, x), expected, atol=1e-13)


def test_e20_one_attention_matrix_for_all_values() -> None:
    r, columns = 3, 2
    transposing = np.zeros((6, 6))  # Algorithm 1: R[rj + i, ci + j] = 1
    for i, j in itertools.product(range(r), range(columns)):
        transposing[r * j + i, columns * i + j] = 1
    program = c.transpose(Matrix(locum.tokens, r, columns), "paper")
    for a in RANDOM.normal(size=(10, r, columns)):
        assert (transposing @ a.ravel()).tolist() == a.T.ravel().tolist()
        assert program.run(a.ravel()).tolist() == a.T.tolist()
    wider = c.transpose(Matrix(locum.tokens, r, 3), "paper")
    assert wider.sop.node is not program.sop.node  # it depends on the shape


def test_e21_biases_are_real_by_definition() -> None:
    text = paper()
    assert r"b^{(\ell)} \in \mathbb{R}^{n_{\ell}}$, given that" in text
    (bound,) = ERRATA["E21"].quotes
    assert text.index(r"b^{(\ell)} \in \mathbb{R}^{n_{\ell}}$") < text.index(bound)


def phi(x: Any) -> Any:
    return np.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def gelu(x: Any) -> Any:
    return x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))) / 2


def silu(x: Any) -> Any:
    return x / (1 + np.exp(-x))


def test_e22_the_lipschitz_constant_of_gelu() -> None:
    x = np.linspace(-8, 8, 160_001)

    def slope(values: Any) -> float:
        return float(np.abs(np.diff(values) / np.diff(x)).max())

    constant = (1 + math.erf(1)) / 2 + math.sqrt(2) * phi(math.sqrt(2))
    assert round(constant, 4) == 1.1289
    assert slope(gelu(x)) == pytest.approx(constant, abs=1e-6)
    assert slope(gelu(x)) > 1.0998
    assert slope(silu(x)) == pytest.approx(1.0998, abs=1e-4)
    assert slope(silu(1.702 * x) / 1.702) == pytest.approx(1.0998, abs=1e-4)
    # "Smooth" is about the derivative.
    derivative = np.gradient(gelu(x), x)
    assert slope(derivative) == pytest.approx(2 * phi(0.0), abs=1e-4)
    assert round(2 * phi(0.0), 4) == 0.7979
    values = [0.5, -1.5, math.sqrt(2)]
    ours = c.gelu(Matrix(locum.tokens, 1, 3)).run(values).ravel()
    np.testing.assert_allclose(ours, gelu(np.array(values)), atol=1e-15)


def test_e23_a_row_of_zeros_attends_to_everything() -> None:
    r = 2
    for x in (np.zeros((r, r)), RANDOM.normal(size=(r, r))):
        powers = np.exp(x).ravel()
        rasp, printed, fixed = np.zeros(r * r), np.zeros(r * r), np.zeros(r * r)
        for l in range(r):
            block = np.zeros((r * r, r * r))  # R_l, which has rows of zeros
            block[r * l : r * (l + 1), r * l : r * (l + 1)] = 1
            rasp += r * mean(block, powers)
            printed += r * average_hard(block, powers)
            sink = np.column_stack([block, np.full(r * r, 0.5)])
            fixed += r * average_hard(sink, np.append(powers, 0.0))
        expected = softmax(x).ravel()
        assert np.abs(powers / printed - expected).max() > 0.05
        np.testing.assert_allclose(powers / rasp, expected, atol=1e-15)
        np.testing.assert_allclose(powers / fixed, expected, atol=1e-15)
        if not x.any():
            assert (powers / printed).tolist() == [0.25] * 4


def aggregate_hard(pattern: Any, values: Any) -> Any:
    """A selector of RASP as scores of average-hard attention."""
    return average_hard(np.asarray(pattern, dtype=float), np.asarray(values, dtype=float))


def test_e23_listings_5_and_6_rely_on_empty_selections() -> None:
    def match2(aggregate: Callable[[Any, Any], Any], tokens: list[int], p: int) -> list[int]:
        rest = np.array(tokens) % p
        detect = aggregate(np.equal.outer(p - rest, rest), np.array(tokens))
        return [int(value != 0) for value in detect]

    assert match2(mean, [1, 1], 5) == run("match2", [1, 1]) == [0, 0]
    assert match2(aggregate_hard, [1, 1], 5) == [1, 1]

    def maxmin(aggregate: Callable[[Any, Any], Any], tokens: list[float]) -> list[float]:
        at, s = np.arange(len(tokens)), np.array(tokens)
        even = np.equal.outer(at % 2 + 1, np.ones(len(at)))
        minimum = aggregate(np.equal.outer(at + 1, at) & even, s)
        flip = np.where(s - minimum < 0, 1.0, 0.0)
        flip = flip + aggregate(np.equal.outer(at, at + 1), flip)
        sides = (np.tile((at % 2 == n)[:, None], len(at)) for n in (0, 1))
        revby2 = sum(
            aggregate(side, np.full(len(at), x)) for side, x in zip(sides, (1, -1), strict=True)
        )
        other = aggregate(np.equal.outer(at + revby2, at), s)
        return [float(x) for x in flip * other + (1 - flip) * s]

    assert maxmin(mean, [3.0, 1.0]) == run("maxmin", [3.0, 1.0]) == [3.0, 1.0]
    assert maxmin(mean, [1.0, 3.0]) == run("maxmin", [1.0, 3.0]) == [3.0, 1.0]
    assert maxmin(aggregate_hard, [1.0, 3.0]) == [1.0, 3.0]


def algorithm_5(r: int, a: int, b: int, divisor: int, gather: bool = False) -> Any:
    """A matrix of Algorithm 5 for the shift (a, b): R[j, i] = 1 as printed, or R[i, j] = 1."""
    matrix = np.zeros((r * r, r * r))
    for i in range(r * r):
        j = int(r * ((Fraction(i - i % r, divisor) + a) % r)) + (i % r + b) % r
        matrix[(i, j) if gather else (j, i)] = 1
    return matrix


@pytest.mark.parametrize("gather", [False, True])
def test_e24_line_3_of_algorithm_5_has_r_for_n(gather: bool) -> None:
    misread = algorithm_5(3, 1, 2, divisor=9)
    assert np.flatnonzero(misread[4]).tolist() == [2, 4]
    shifts = ((1, 1), (2, 2), (1, 2), (2, 1))
    p, q, s, t = (algorithm_5(3, a, b, 3, gather) @ np.array(SQUARE) for a, b in shifts)
    assert (p * q - s * t).tolist() == run("cofactor", SQUARE)


def test_e25_algorithm_5_shifts_in_the_other_direction() -> None:
    first = {r: (algorithm_5(r, 1, 1, r) @ np.arange(r * r))[0] for r in (3, 4)}
    listing = {r: r * (2 % r) + 2 % r for r in (3, 4)}  # `one = idx3*n+idx4` at (0, 0)
    assert divmod(first[4], 4) == (3, 3) != divmod(listing[4], 4) == (2, 2)
    assert divmod(first[3], 3) == divmod(listing[3], 3) == (2, 2)
    # With R[i, j] = 1 and the names exchanged, the directions agree at every order.
    for r in (3, 4, 5):
        at = np.arange(r * r)
        for u, v in (
            (2, 2),
            (1, 1),
            (2, 1),
            (1, 2),
        ):  # Q, P, S, R of Algorithm 5; P, Q, R, S of Listing 7
            reads = algorithm_5(r, u, v, r, gather=True) @ at
            assert reads.tolist() == ((at // r + u) % r * r + (at % r + v) % r).tolist()


def test_e26_heads_are_stacked_side_by_side() -> None:
    n, d, d_v = 2, 2, 1
    x = RANDOM.normal(size=(n, d))
    heads = [(RANDOM.normal(size=(d, d)), RANDOM.normal(size=(d, d_v))) for _ in range(2)]
    below = np.vstack([attention(x, a, v) for a, v in heads])
    beside = np.hstack([attention(x, a, v) for a, v in heads])
    assert below.shape == (4, 1)
    assert beside.shape == (2, 2)
    assert not np.allclose(below.ravel(), beside.ravel())
    np.testing.assert_array_equal(below.ravel()[[0, 2, 1, 3]], beside.ravel())  # one permutation
    output = RANDOM.normal(size=(2, d))
    T = MultiHeadAttention([Attention(a, v) for a, v in heads], output)
    U = UniversalSimulator(T.order(n))
    np.testing.assert_allclose(U(T, x), beside @ output, atol=1e-13)
    # The multi-head lemma gives the first form.
    tokens = np.concatenate([below[:2].ravel(), below[2:].ravel()])
    stacked = c.multihead(lambda m: c.scale(m, 1), 2, Matrix(locum.tokens, 2, 1)).run(tokens)
    assert stacked.tolist() == below.tolist()


def test_e27_prop_is_not_injective_over_all_shapes() -> None:
    wide, tall = np.arange(1, 7).reshape(2, 3), np.arange(1, 7).reshape(3, 2)
    assert wide.ravel().tolist() == tall.ravel().tolist()
    assert wide.T.ravel().tolist() == [1, 4, 2, 5, 3, 6]
    assert tall.T.ravel().tolist() == [1, 3, 5, 2, 4, 6]
    for array in (wide, tall):  # with the shape, transposition has a program
        rows, columns = array.shape
        program = c.transpose(Matrix(locum.tokens, rows, columns), "paper")
        assert program.run(array.ravel().tolist()).tolist() == array.T.tolist()


def test_e28_n_heads_copy_all_tokens_to_every_position() -> None:
    n, p = 3, 5
    for word in itertools.product(range(1, p + 1), repeat=n):
        heads = [average_hard(np.tile(np.eye(n)[j], (n, 1)), np.array(word)) for j in range(n)]
        copies = np.column_stack(heads)
        assert copies.tolist() == [list(word)] * n  # a function of a position decides the rest


def test_e28_two_layers_of_n_heads_decide_match3() -> None:
    n, p = 3, 5
    program = c.match3(Matrix(locum.tokens, 1, n), p, "heads")
    assert program.sop.architecture.heads == [n, n]
    for word in itertools.product(range(1, p + 1), repeat=n):
        pairs = list(itertools.product(word, repeat=2))
        expected = [int(any((s + t + u) % p == 0 for t, u in pairs)) for s in word]
        assert program.run(list(word)).ravel().tolist() == expected


def test_e29_k_parity_fixes_the_set() -> None:
    words = list(itertools.product((0, 1), repeat=3))
    some = {word for word in words if any(word[s] % 2 == 0 for s in range(3))}
    assert some == set(words) - {(1, 1, 1)}
    for chosen in itertools.chain(
        itertools.combinations(range(3), 1), itertools.combinations(range(3), 2)
    ):
        language = {word for word in words if sum(word[i] for i in chosen) % 2 == 0}
        assert len(language) == 4 != len(some)
        accepted = {word for word in words if c.k_parity(locum.tokens, chosen)(list(word))[0] == 0}
        assert accepted == language


def test_e30_scaling_the_first_matrix_is_exact() -> None:
    w1, w2, v = RANDOM.integers(-4, 5, (3, 5)), RANDOM.integers(-4, 5, (5, 2)), -3
    for x in RANDOM.integers(-(10**6), 10**6, (20, 3)):
        expected = np.maximum(v * x @ w1, 0) @ w2
        assert (np.maximum(x @ (v * w1), 0) @ w2).tolist() == expected.tolist()


def test_e31_match2_has_explicit_weights() -> None:
    task = Match2(5)
    for word in itertools.product(range(1, 6), repeat=3):
        (head,) = task.modules(3)
        assert isinstance(head, Attention)
        found = [bool(value > 0.5) for value in head(task.embed(word))[:-1, 0]]
        assert found == [any((s + t) % 5 == 0 for t in word) for s in word]


def test_e32_the_symbols_of_the_figures() -> None:
    x, a = figure2.X, figure2.T.A
    y1 = np.reshape(figure2.PRINTED["XA"].values, (3, 3))
    assert round(float((x * a)[0, 0]), 3) == 0.08
    assert y1[0, 0] == 0.51
    np.testing.assert_allclose(x @ a, y1, atol=5e-4)
    y2 = np.reshape(figure2.PRINTED["scores"].values, (3, 3))
    y3 = np.reshape(figure2.PRINTED["softmax"].values, (3, 3))
    np.testing.assert_allclose(softmax(y2), y3, atol=6e-4)
    tokens = [*x.ravel().tolist(), *np.ravel(a).tolist()]
    assert run("matmul", tokens) == [0.0] * 18
    first, second = c.concatenate(locum.tokens, (3, 3), (3, 3))
    np.testing.assert_allclose(c.matmul(first, second).run(tokens), y1, atol=5e-4)


def test_e33_minors_have_order_k_but_not_rank_k() -> None:
    submatrix = np.delete(np.delete(np.eye(3), 0, axis=0), 1, axis=1)
    assert submatrix.tolist() == [[0, 0], [0, 1]]
    assert np.linalg.matrix_rank(submatrix) == 1


def test_e34_the_first_layer_must_not_sort_the_input() -> None:
    def network(z: Any, sort_input: bool, layers: list[tuple[Any, Any]]) -> float:
        for number, (w, b) in enumerate(layers):
            if number or sort_input:
                z = c.maxmin(Matrix(locum.tokens, 1, len(z))).run(list(z)).ravel()
            z = w @ z + b
        return float(z[0])

    for _ in range(10):
        layers = [
            (RANDOM.normal(size=(4, 2)), RANDOM.normal(size=4)),
            (RANDOM.normal(size=(1, 4)), RANDOM.normal(size=1)),
        ]
        low, high = (network(np.array(z), True, layers) for z in ((0.0, 1.0), (1.0, 0.0)))
        assert low == high
        assert max(abs(low - 0), abs(high - 1)) >= 0.5
    projection = [(np.eye(2), np.zeros(2)), (np.array([[0.5, 0.5]]), np.zeros(1))]
    first = [(np.array([[1.0, 0.0], [1.0, 0.0]]), np.zeros(2)), projection[1]]
    for z in RANDOM.uniform(size=(10, 2)):
        assert network(z, False, first) == pytest.approx(z[0], abs=1e-15)
        assert network(z, True, projection) == pytest.approx(z.mean(), abs=1e-15)


def test_e35_stochastic_rows_need_not_be_average_hard() -> None:
    values = np.array([3.0, 6.0])
    row = np.array([[1 / 3, 2 / 3]])
    assert average_hard(row, values).tolist() == [6.0]
    reachable = {average_hard(np.array([scores]), values)[0] for scores in ((1, 0), (0, 1), (1, 1))}
    assert reachable == {3.0, 4.5, 6.0}
    assert float((row @ values)[0]) not in reachable
    permutation = np.eye(5)[RANDOM.permutation(5)]
    s = RANDOM.normal(size=5)
    assert average_hard(permutation, s).tolist() == (permutation @ s).tolist()


def test_e36_reflected_indices_are_the_inverse_of_rho() -> None:
    r, columns = 3, 2
    rho = [r * j + i for i in range(r) for j in range(columns)]
    reflected = run("transpose", [0, 1, 2, 3, 4, 5])  # each position gives the index that it reads
    assert reflected == [0, 2, 4, 1, 3, 5] != rho
    assert rho == [0, 3, 1, 4, 2, 5]
    assert [reflected[place] for place in rho] == list(range(6))


def test_e37_the_heads_depend_on_d() -> None:
    counts = {}
    for n, d in ((2, 2), (2, 3)):
        x, a = c.concatenate(locum.tokens, (n, d), (d, d))
        counts[n, d] = sum(c.matmul(x, a).sop.architecture.heads)
        assert counts[n, d] == n + d + n * d
    assert counts == {(2, 2): 8, (2, 3): 11}
    wide = Attention(RANDOM.normal(size=(3, 3)), RANDOM.normal(size=(3, 3)))
    with pytest.raises(locum.LocumError):
        UniversalSimulator(4, 2, 2)(wide, RANDOM.normal(size=(2, 3)))


def test_e38_the_inequalities_do_not_determine_the_sequence() -> None:
    s, g = [1, 2, 3, 4], 2
    sorted_in_groups = [
        list(order)
        for order in itertools.permutations(s)
        if all(order[i] >= order[i + 1] for i in range(0, len(s), g))
    ]
    assert [2, 1, 4, 3] in sorted_in_groups
    assert [4, 3, 2, 1] in sorted_in_groups
    assert c.maxmin(Matrix(locum.tokens, 1, 4)).run(s).ravel().tolist() == [2, 1, 4, 3]
    assert run("maxmin", s) == [2, 1, 4, 3]


def test_e39_the_lines_of_algorithm_3() -> None:
    text = paper()
    end = text.index(r"\label{algo:matmul}")
    statements = text[text.rindex(r"\KwIn", 0, end) : end].split(r"\;")
    parts = (
        "(R_l)[i,j] = 1",
        r"(R^\prime_l)[i,j] = 1",
        r"Let $M_{ll^\prime}",
        r"(R^{\prime\prime}_l)[i,j] = 1",
        r"\Return",
    )
    for part, statement in zip(parts, statements, strict=False):
        assert part in statement
    assert r"(see Lines 1 and 2, \autoref{algo:matmul})" in text
    end = text.index(r"\label{algo:softmax}")
    statements = text[text.rindex(r"\KwIn", 0, end) : end].split(r"\;")
    assert "Let $R_l" in statements[1]  # statement 2, which Lemma multi-head calls line 3


def test_e40_the_second_product_of_the_feed_forward() -> None:
    n, d1, d2 = 3, 1, 2
    assert n * d2 > d1 * (n + d2)
    hidden, w2 = RANDOM.normal(size=(n, d1)), RANDOM.normal(size=(d1, d2))
    expected = (hidden @ w2).ravel()
    assert len(algorithm_3(hidden, w2, stride=d2)) == 5 < len(expected)
    length = max(d1 * (n + d2), n * d2)
    np.testing.assert_allclose(algorithm_3(hidden, w2, stride=d2, length=length), expected)
    left, right = RANDOM.normal(size=(3, 1)), RANDOM.normal(size=(1, 4))
    padded = [*left.ravel().tolist(), *right.ravel().tolist(), *[0.0] * 5]
    assert run("matmul", padded) == [0.0] * 12
    constant = constant_shape("matmul", padded, ("k = length/(3+4);", "k = 1;"))
    np.testing.assert_allclose(np.reshape(constant, (3, 4)), left @ right)
    x, a, v = RANDOM.normal(size=(3, 3, 3))
    w1 = RANDOM.normal(size=(3, d1))
    T = Encoder(Attention(a, v), w1, w2)
    result = UniversalSimulator(T.order(n))(T, x)
    np.testing.assert_allclose(result, np.maximum((x + attention(x, a, v)) @ w1, 0) @ w2, atol=1e-13)


def test_e41_heads_are_not_zero_outside_their_blocks() -> None:
    heads = 2
    blocks = [3.0, 5.0]
    block = [
        locum.select(locum.indices, h, "==") & locum.select(locum.indices, locum.indices, "==")
        for h in range(heads)
    ]
    parts = [locum.exp(locum.aggregate(chosen, locum.tokens)) for chosen in block]
    sums = [locum.aggregate(chosen, part) for chosen, part in zip(block, parts, strict=True)]
    assert parts[0](blocks)[1] == 1.0
    assert sums[0](blocks)[1] == 0.0
    with pytest.raises(locum.LocumError, match="division by zero at position 1"):
        (parts[0] / sums[0])(blocks)
    added = locum.exp(locum.tokens) / (sums[0] + sums[1])
    assert added(blocks) == [1.0, 1.0]
    inside = [locum.indices == h for h in range(heads)]
    guarded = [
        locum.where(here, part / locum.where(here, total, 1), 0)
        for here, part, total in zip(inside, parts, sums, strict=True)
    ]
    assert guarded[0](blocks) == [1.0, 0.0]
    assert (guarded[0] + guarded[1])(blocks) == [1.0, 1.0]


def test_e41_listing_1_copies_entries_outside_the_block() -> None:
    def transpose(offset: int) -> locum.SOp:
        at = locum.indices - offset
        columns = locum.length / 2 / 3
        reflected = (at % 3) * columns + (at - at % 3) / 3
        return locum.aggregate(locum.select(at, reflected, "=="), locum.tokens)

    zeros, second = [0.0] * 6, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert transpose(6)([*zeros, *second]) == [0, 1, 3, 0, 2, 4, 1, 3, 5, 2, 4, 6]
    result = locum.where(locum.indices >= 6, transpose(6), 0)([*zeros, *second])
    assert result == [*zeros, 1, 3, 5, 2, 4, 6]


def test_sums_are_exact_up_to_rounding() -> None:
    """k times a mean is not the sum bit for bit; on rationals it is."""
    differs = 0
    for _ in range(200):
        values = RANDOM.normal(size=3).tolist()
        total = c.summed(locum.full, locum.tokens, 3)
        differs += total(values)[0] != (values[0] + values[1]) + values[2]
        assert total([Fraction(x) for x in values], domain="exact")[0] == sum(map(Fraction, values))
    assert differs > 0


def test_denominators_are_guarded_at_every_position() -> None:
    """RASP divides at every position, also where a conditional drops the quotient."""
    session = Session([1.0] * 4)
    dead = "x = 1 / (indices - 3) if indices < 3 else 0;"
    assert session.execute(dead)[0].category == "runtime:ZeroDivisionError"
    guarded = "x = 1 / ((indices - 3) if indices < 3 else 1);"
    assert session.execute(guarded)[0].kind == "s-op"


@pytest.mark.parametrize(("r", "columns"), [(3, 4), (5, 5)])
def test_a_product_has_r_plus_c_plus_rc_heads(r: int, columns: int) -> None:
    """The bound O(2rc) of the paper holds."""
    x, y = c.concatenate(locum.tokens, (r, 6), (6, columns))
    assert sum(c.matmul(x, y).sop.architecture.heads) == r + columns + r * columns <= 2 * r * columns


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
