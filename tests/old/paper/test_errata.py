"""The counterexample of each erratum: the printed form fails as the list of errata says."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import locum
from locum import aggregate, indices, length, select, tokens
from locum import constructions as c
from locum.constructions import Matrix
from locum.languages.first_and_parity import Match2
from locum.paper import algorithms as a
from locum.paper import figure2, listings
from locum.paper.algorithm_evidence import average_hard, fits, identify_matrix
from locum.paper.algorithms import SQUARE, prop
from locum.paper.errata import ERRATA
from locum.paper.statements import STATEMENTS
from locum.simulators import Attention, UniversalSimulator
from locum.simulators.hierarchy import paper_padding
from locum.simulators.modules.attention_kinds import LinearAttention
from tests.old.paper.test_listings import run

pytestmark = pytest.mark.always

ONE = np.ones((1, 1))


def raises(error: type[Exception], function: Callable[..., Any], *arguments: Any) -> bool:
    with pytest.raises(error):
        function(*arguments)
    return True


def softmax(x: Any) -> Any:
    e = np.exp(x)
    return e / e.sum(1, keepdims=True)


def attend(x: Any, A: Any, V: Any) -> Any:
    return softmax(x @ A @ x.T) @ x @ V


def gelu(x: float) -> float:
    return x * (1 + math.erf(x / math.sqrt(2))) / 2


def slope_of_gelu(x: float) -> float:
    return (1 + math.erf(x / math.sqrt(2))) / 2 + x * math.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def divisor(sequence: Any, r: int, columns: int) -> list[float]:
    """The array sum of Algorithm 2 as printed."""
    return list(np.sum([R @ np.exp(sequence) for R in a.softmax_matrices(r, columns)], axis=0))


def shift_matrix(size: int, t: int) -> Any:
    return np.eye(size)[[(size - t + i) % size for i in range(size)]]


def transpose_block(offset: int, size: Any, values: list[float]) -> Any:
    """Listing 1 on the block at an offset, with ``size`` instead of `length`."""
    at = indices - offset
    place = (at % 3) * (size / 3) + (at - at % 3) / 3
    return aggregate(select(at, place, "=="), tokens)(values)


def square_root() -> float:
    """The first entry that step 3 of the hierarchy's proof computes for X = (1, 0; 0, 0), A = V = I."""
    x, v = np.eye(2, 4) * [[1], [0]], np.diag([1.0, 1.0, 0.0, 0.0])
    return float((softmax(x @ np.eye(4) @ x.T / 2) @ x @ v)[0, 0])


def heads_of_product(n: int, d: int) -> int:
    x, matrix = c.concatenate(tokens, (n, d), (d, d))
    return sum(c.matmul(x, matrix).sop.architecture.heads)


def sorted_in_pairs(order: Any) -> bool:
    return all(order[i] >= order[i + 1] for i in (0, 2))


def is_found(word: tuple[int, ...]) -> list[bool]:
    """Match₂ by the weights of one softmax head."""
    (head,) = (task := Match2(5)).modules(len(word))
    assert isinstance(head, Attention)
    return [bool(value > 0.5) for value in head(task.embed(word))[:-1, 0]]


def relu_units(bound: float) -> int:
    options: dict[str, Any] = {"attention": "softmax", "feed_forward": "relu"}
    model = UniversalSimulator(2, 2, 2).compile("native", ranges=(-bound, bound), **options)
    return model.architecture.d_mlp


WORDS = list(itertools.product((0, 1), repeat=3))
reverse = aggregate(select(indices, length - 1 - indices, "=="), tokens)

#: Erratum → the counterexample, which is true if the printed form fails.
COUNTEREXAMPLES: dict[str, Callable[[], Any]] = {
    "E1": lambda: f"{math.e:.3g}" == "2.72" and not figure2.figure2(base=2.73).reproduced,
    "E2": lambda: run("maxmin", [1.0, -2.0]) == [1.0, 1.0],
    "E3": lambda: run("match2", [5, 5]) == [0, 0],
    "E4": lambda: raises(locum.LocumError, run, "inverse", prop(SQUARE).tolist()),
    "E5": lambda: run("cofactor", prop(2 * np.eye(3)).tolist())[0] / 8 == 0.5 != 4,
    "E6": lambda: a.algorithm_3(np.ones(10), 2, 2, 3)[:6].tolist() == [2, 2, 4, 2, 2, 0],
    "E7": lambda: divisor(np.zeros(6), 2, 3)[4:] == [0, 0],
    "E9": lambda: [2 * i + j for i in range(2) for j in range(3)] == [0, 1, 2, 2, 3, 4],
    "E10": lambda: raises(IndexError, a.circ_as_printed, np.ones((2, 3)), np.ones(2)),
    "E11": lambda: (shift_matrix(5, 2) @ [10, 20, 30, 40, 50]).tolist() == [40, 50, 10, 20, 30],
    "E12": lambda: raises(IndexError, identify_matrix, 3, 2, 1)
    and c.identify(tokens, 1, 2)([10, 20, 30]) == [0, 20, 30],
    "E13": lambda: transpose_block(6, length, [0.0] * 6 + [1, 2, 3, 4, 5, 6])[6:] != [1, 3, 5, 2, 4, 6],
    "E14": lambda: raises(ValueError, np.matmul, np.zeros((7, 1)), np.zeros((7, 2)))
    and len(aggregate(locum.full, tokens)([1.0] * 7)) == 7,
    "E15": lambda: paper_padding(UniversalSimulator(2, 2, 2), Attention(0 * ONE, ONE), ONE) == 0.5,
    "E16": lambda: round(square_root(), 3) == 0.622 != 0.731,
    "E17": lambda: fits(4, 2, 2) and fits(4, 2, 4) and fits(4, 2, 1) and fits(4, 4, 1),
    "E18": lambda: all((math.isqrt(n * n + 4 * (3 * n + 9)) - n) / 2 == 3 for n in (1, 2, 3, 5)),
    "E19": lambda: raises(ValueError, np.add, np.ones((3, 2)), np.ones((3, 3))),
    "E20": lambda: all((a.transposition_matrix(3, 2) @ prop(x) == prop(x.T)).all()
                       for x in np.random.default_rng(0).normal(size=(5, 3, 2))),
    "E22": lambda: round(slope_of_gelu(math.sqrt(2)), 4) == 1.1289 > 1.0998,
    "E23": lambda: average_hard(np.zeros((1, 4)), np.ones(4)) == 1
    and aggregate(select(indices, 9, "=="), tokens)([1, 1]) == [0, 0],
    "E24": lambda: [3 * (((i - i % 3) / 9 + 1) % 3) + (i % 3 + 2) % 3 for i in (2, 4)] == [4, 4],
    "E26": lambda: prop(np.vstack([[[1], [2]], [[3], [4]]])).tolist() != [1, 3, 2, 4],
    "E27": lambda: (prop(np.ones((2, 3))) == prop(np.ones((3, 2)))).all(),
    "E28": lambda: c.match3(Matrix(tokens, 1, 3), 5, "heads").run([1, 2, 2]).tolist() == [[1, 1, 1]],
    "E29": lambda: [w for w in WORDS if not any(w[s] % 2 == 0 for s in range(3))] == [(1, 1, 1)],
    "E30": lambda: (np.maximum([[2]] @ (3 * ONE), 0) == np.maximum([[6]] @ ONE, 0)).all(),
    "E31": lambda: is_found((5, 1, 4)) == [True, True, True] and is_found((1, 1)) == [False, False],
    "E32": lambda: round(float((figure2.X * figure2.T.A)[0, 0]), 3) == 0.08
    and run("matmul", [*prop(figure2.X), *prop(np.asarray(figure2.T.A))]) == [0.0] * 18,
    "E33": lambda: np.linalg.matrix_rank(np.eye(3)[1:, [0, 2]]) == 1,
    "E34": lambda: c.maxmin(Matrix(tokens, 1, 2)).run([0, 1]).tolist()
    == c.maxmin(Matrix(tokens, 1, 2)).run([1, 0]).tolist(),
    "E35": lambda: average_hard(np.array([[1 / 3, 2 / 3]]), np.array([3.0, 6.0])) == 6,
    "E36": lambda: run("transpose", [0, 1, 2, 3, 4, 5]) == [0, 2, 4, 1, 3, 5] != [0, 3, 1, 4, 2, 5],
    "E37": lambda: (heads_of_product(2, 2), heads_of_product(2, 3)) == (8, 11),
    "E38": lambda: sorted_in_pairs((2, 1, 4, 3)) and sorted_in_pairs((4, 3, 2, 1)),
    "E40": lambda: not fits(3, 1, 2) and not fits(4, 1, 4),
    "E41": lambda: transpose_block(6, length / 2, [0.0] * 6 + [1, 2, 3, 4, 5, 6])[:6] == [0, 1, 3, 0, 2, 4],
    "E42": lambda: reverse([1, 2, 3, 4]) == [4, 3, 2, 1] != [*reverse([1, 2]), *reverse([3, 4])],
    "E43": lambda: np.maximum(1e7 * np.ones(2), 0).sum() == 10 * np.maximum(1e6 * np.ones(2), 0).sum(),
    "E44": lambda: (relu_units(1.0), relu_units(2.0)) == (830, 4158),
    "E45": lambda: LinearAttention(ONE, ONE, 2 * ONE)([[2]]) == 16
    and LinearAttention(ONE, ONE, 2 * ONE, feature_map="elu+1")([[2]]) == 4,
}  # fmt: skip


@pytest.mark.parametrize("number", COUNTEREXAMPLES)
def test_the_printed_form_fails(number: str) -> None:
    assert COUNTEREXAMPLES[number]()


def test_each_erratum_has_a_counterexample_or_is_text_only() -> None:
    text_only = {number for number, erratum in ERRATA.items() if erratum.text_only}
    assert text_only == {number for s in STATEMENTS.values() for number in s.text_only}
    remarks = {number for number, erratum in ERRATA.items() if erratum.severity == "remark"}
    assert remarks == {"E25"}
    assert ERRATA.keys() == COUNTEREXAMPLES.keys() | text_only | remarks
    assert not text_only & COUNTEREXAMPLES.keys()


def test_lemma_c_2_approximates_relu_by_gelu() -> None:
    """The direction of erratum E46, which is text only."""
    for scale in (1, 10, 100):
        errors = [abs(gelu(scale * x) / scale - max(x, 0)) for x in np.linspace(-5, 5, 1001).tolist()]
        assert max(errors) <= 0.17 / scale


@pytest.mark.parametrize("listing", ["maxmin", "match2"])
def test_the_quoted_line_of_a_listing_has_a_correction(listing: str) -> None:
    """Listings 5 and 6 are right after the quoted line is replaced by the correction."""
    erratum = ERRATA[{"maxmin": "E2", "match2": "E3"}[listing]]
    text = listings.text(listing).replace(erratum.quotes[0], erratum.right.strip("`"))
    for word in itertools.product((1, 5, 4) if listing == "match2" else (-1.0, 0.0, 2.0), repeat=4):
        ((_, program),) = locum.rasp.Session(list(word)).script(text)
        expected: list[float] = [int(any((s + t) % 5 == 0 for t in word)) for s in word]
        if listing == "maxmin":
            expected = [x for i in (0, 2) for x in sorted(word[i : i + 2], reverse=True)]
        assert program(list(word)) == expected


# Counts -----------------------------------------------------------------------------------------


def test_denominators_are_guarded_at_every_position() -> None:
    """RASP divides at every position, also where a conditional drops the quotient."""
    session = locum.rasp.Session([1.0] * 4)
    dead = "x = 1 / (indices - 3) if indices < 3 else 0;"
    assert session.execute(dead)[0].category == "runtime:ZeroDivisionError"
    guarded = "x = 1 / ((indices - 3) if indices < 3 else 1);"
    assert session.execute(guarded)[0].kind == "s-op"


@pytest.mark.parametrize(("r", "columns"), [(3, 4), (5, 5)])
def test_a_product_has_r_plus_c_plus_rc_heads(r: int, columns: int) -> None:
    """The bound O(2rc) of the paper holds."""
    x, y = c.concatenate(tokens, (r, 6), (6, columns))
    assert sum(c.matmul(x, y).sop.architecture.heads) == r + columns + r * columns <= 2 * r * columns


TILES = [(2, 2, 2), (3, 3, 3), (3, 4, 3), (4, 4, 3), (5, 7, 4), (8, 8, 4), (16, 16, 6)]


@pytest.mark.parametrize(("r", "columns", "heads"), TILES)
def test_frugal_counts(r: int, columns: int, heads: int) -> None:
    """The marks that the paper's counts are to be beaten by."""
    k = length // (r + columns)
    x, y = Matrix(tokens, r, k), Matrix(tokens, k, columns, offset=r * k)
    assert c.matmul(x, y, recipe="tiled").sop.architecture.heads == [
        1,
        heads,
        1,
    ]  # one network for all k
    x, y = c.concatenate(tokens, (r, 4), (4, columns))
    assert c.matmul(x, y, recipe="tiled").sop.architecture.heads == [heads, 1]
    assert c.matmul(x, y, recipe="fetch").sop.architecture.heads == [8]
    assert c.matmul(x, y).sop.architecture.heads == [r + columns, r * columns]


def test_other_frugal_counts() -> None:
    view = Matrix(tokens, 8, 8)
    assert c.transpose(view).sop.architecture.heads == []
    assert c.transpose(view, recipe="paper").sop.architecture.heads == [1]
    assert c.softmax(view, stable=False, recipe="frugal").sop.architecture.heads == [1]
    assert c.inverse(Matrix(tokens, 3, 3)).sop.architecture.heads == [5, 1]
    for size in (2, 10, 100):
        assert c.maxmin(Matrix(tokens, 1, size)).sop.architecture.heads == [1]
        assert c.maxmin(Matrix(tokens, 1, size), recipe="paper").sop.architecture.heads == [3, 1]


@pytest.mark.parametrize("k", [2, 3, 5])
def test_listings_and_constructions_agree(k: int) -> None:
    values = np.random.default_rng(2026).normal(size=7 * k).tolist()
    x, y = c.concatenate(tokens, (3, k), (k, 4))
    np.testing.assert_allclose(
        c.matmul(x, y).run(values).ravel(), run("matmul", values)[:12], atol=1e-13
    )
    values = np.random.default_rng(2026).normal(size=3 * k).tolist()
    view = Matrix(tokens, 3, k)
    assert c.transpose(view, recipe="paper").run(values).ravel().tolist() == run("transpose", values)
    assert c.relu(view).run(values).ravel().tolist() == run("relu", values)
    result = c.softmax(view, base=2.73, stable=False).run(values).ravel()
    np.testing.assert_allclose(result, run("softmax", values), atol=1e-15)
    square = np.random.default_rng(2026).normal(size=9).tolist()
    view = Matrix(tokens, 3, 3)
    np.testing.assert_allclose(
        c.cofactor(view).run(square).ravel(), run("cofactor", square), atol=1e-14
    )
    np.testing.assert_allclose(
        c.determinant(view).run(square)[0, 0], run("determinant", square)[0], rtol=1e-12
    )
    positive = np.abs(np.random.default_rng(2026).normal(size=8)).tolist()
    assert c.maxmin(Matrix(tokens, 1, 8)).run(positive).ravel().tolist() == run("maxmin", positive)
    assert c.match2(tokens, 5)([1, 2, 3, 4]) == run("match2", [1, 2, 3, 4])
