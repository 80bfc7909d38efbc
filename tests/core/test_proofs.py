"""Claims of the paper are proven at two shapes or more, and wrong claims are refuted."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, getcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import locum
from locum import constructions as con
from locum import tokens
from locum.proofs import (
    FAMILIES,
    Certified,
    Claim,
    Formula,
    Proof,
    Refutation,
    Refuted,
    Unproven,
    about,
    certify,
    claim,
    prove,
)

#: Claim → shapes, each with a recipe or None.
PROVEN: dict[str, list[tuple[tuple[int, ...], str | None]]] = {
    "transpose": [((5, 2), "paper"), ((2, 3), "view")],
    "matmul": [((4, 2, 1), "paper"), ((2, 2, 3), None), ((2, 3, 2), "tiled"), ((3, 2, 2), "scatter")],
    "softmax": [((4, 3), "plain"), ((4, 3), "stable"), ((2, 3), None)],
    "relu": [((7,), "maxmin"), ((3,), None)],
    "maxmin": [((6,), "paper"), ((2,), None)],
    "groupsort": [((4, 2), None), ((3, 3), None)],
    "cofactor": [((4,), None), ((2,), None)],
    "determinant": [((4,), "paper"), ((3,), None)],
    "inverse": [((4,), "cofactor"), ((3,), "paper"), ((2,), None)],
    "identify": [((5, 1, 1), None), ((4, 3, 2), None)],
    "shift": [((5, 1), None), ((5, 2), None)],
    "multihead_transpose": [((3, 2, 2), None), ((1, 2, 3), None)],
    "multihead_matmul": [((1, 2, 2, 2), None), ((2, 2, 1, 2), None)],
    "summed": [((5,), None), ((6,), None)],
    "positions": [((2, 3), None), ((3, 2), None)],
    "layer_norm": [((2, 3), None), ((3, 4), None)],
    "match2": [((2, 3), None), ((2, 5), None)],
    "attention": [
        ((3, 2, 2), "tiled"), ((3, 2, 2), "width-1"), ((3, 2, 2), "paper"), ((2, 2, 2), "inverse"),
    ],
    "encoder": [((2, 2, 2, 2, 2), None), ((3, 1, 1, 2, 1), None)],
    "multihead_attention": [((2, 2, 2, 2), None), ((3, 2, 1, 1), None)],
    "multihead_encoder": [((2, 2, 2, 1, 2, 2), None), ((1, 2, 1, 1, 1, 1), None)],
    "hard_attention": [((2, 2, 2), None), ((2, 1, 2), None)],
    "causal_attention": [((2, 2, 2), None), ((3, 1, 1), None)],
    "cross_attention": [((2, 3, 2, 2), None), ((3, 2, 1, 1), None)],
    "normed_encoder": [((2, 2, 2), "post"), ((2, 2, 1), "pre")],
    "decoder": [((2, 2, 1, 1), "none"), ((2, 1, 2, 1), "post")],
    "linformer": [((2, 2, 2), None), ((3, 1, 1), None)],
    "linear": [((2, 2, 2), None), ((3, 1, 1), None)],
    "performer": [((3, 2, 2), None), ((2, 1, 1), None)],
    "sumformer": [((2, 2, 2), None), ((3, 1, 1), None)],
    "hierarchy": [((1, 1, 1, 2, 2, 2), None), ((2, 2, 2, 2, 4, 4), None)],
}  # fmt: skip


@pytest.mark.parametrize("name", PROVEN)
def test_claims_are_proven(name: str) -> None:
    for shape, recipe in PROVEN[name]:
        verdict = prove(name, *shape, recipe=recipe)
        assert isinstance(verdict, Proof), str(verdict)
        assert verdict.claim.entries == claim(name, *shape, recipe=recipe).entries


def test_every_named_claim_is_proven() -> None:
    assert PROVEN.keys() == FAMILIES.keys()


def state(program: Any, reference: Callable[..., Any], *sizes: int, **options: Any) -> Claim:
    """Return a claim about a program of one matrix."""
    return about("wrong", sizes, program, [("X", *sizes)], reference, **options)


M, ROW = con.Matrix(tokens, 2, 2), con.Matrix(tokens, 1, 2)
EMPTY = locum.aggregate(locum.select(tokens, 5, "=="), tokens, 1)
X, EPSILON = con.concatenate(tokens, (2, 2), (1, 1))
NORMS = [("X", 2, 2), ("epsilon", 1, 1)]
#: Wrong claims: a wrong index, sign, tie, default, condition, modulus, base or order.
WRONG: dict[str, Claim] = {
    "transpose": state(con.transpose(M), lambda x: x, 2, 2),
    "sign": state(con.determinant(M), lambda x: -x.determinant(), 2, 2),
    "swapped operands": state(con.matmul(M, con.transpose(M)), lambda x: x.T @ x, 2, 2),
    "relu of −x": state(con.relu(M), lambda x: (-x).relu(), 2, 2),
    "base": state(con.softmax(ROW, base=2.73), lambda x: x.softmax(), 1, 2),
    "ascending": state(con.maxmin(ROW), lambda x: Formula.beside(x[0, 1], x[0, 0]), 1, 2),
    "tie": state(con.hardmax(ROW, unique=True), lambda x: x.hardmax(), 1, 2),
    "modulus": state(con.match2(tokens, 3), lambda x: x.match2(2), 1, 2, integer=True),
    "division by 0": state(tokens / tokens, lambda x: [[1]], 1, 1),
    "default": state(EMPTY, lambda x: [[0]], 1, 1),
    "mean for sum": state(
        con.summed(locum.full, tokens), lambda x: [[(x[0, 0] + x[0, 1]) / 2] * 2], 1, 2
    ),
    "shift by 2": state(con.shift(tokens, 1), lambda x: [[x[0, 2], x[0, 0], x[0, 1]]], 1, 3),
    "another ε": about(
        "norm", (2, 2), con.layer_norm(X, epsilon=EPSILON), NORMS,
        lambda x, e: x.layer_norm(e + 1), conditions=lambda x, e: [(e, ">")],
    ),
    "without the mean": about(
        "norm", (2, 2), con.rms_norm(X, epsilon=EPSILON), NORMS,
        lambda x, e: x.layer_norm(e), conditions=lambda x, e: [(e, ">")],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_claims_are_refuted(name: str) -> None:
    verdict = prove(WRONG[name])
    assert isinstance(verdict, Refutation), str(verdict)
    assert isinstance(verdict.refuted, Refuted)
    assert verdict.holds is False


RIGHT: dict[str, Claim] = {
    "guarded division": state(
        locum.where(tokens == 0, 1, tokens / locum.where(tokens == 0, 1, tokens)), lambda x: [[1]], 1, 1
    ),
    "a condition": state(1 / tokens, lambda x: 1 / x, 1, 1, conditions=lambda x: [(x, "!=")]),
    "integers": state((2 * tokens) % 2, lambda x: x * 0, 1, 1, integer=True),
    "fractions": state(tokens / 3, lambda x: x * Fraction(1, 3), 1, 2),
    "a layout": about(
        "last", (1,), con.Matrix(tokens, 1, 1, 1), [("s", 1, 1)], lambda s: s, layout=[7, (0, 0, 0)]
    ),
}


@pytest.mark.parametrize("name", RIGHT)
def test_other_claims_are_proven(name: str) -> None:
    assert isinstance(prove(RIGHT[name]), Proof)


def test_searches_end_at_their_limits() -> None:
    for options, shape in (({"seconds": 0.0}, (6, 6, 6)), ({"terms": 3}, (3, 2, 2))):
        verdict = prove("attention", *shape, **options)
        assert isinstance(verdict, Unproven)
        assert verdict.holds is None


def attend(A: Any, V: Any, X: Any) -> list[list[Decimal]]:
    """Return attention in decimals of 60 digits."""
    a, v, x = (np.vectorize(Decimal, otypes=[object])(part) for part in (A, V, X))
    powers = np.vectorize(Decimal.exp, otypes=[object])(x @ a @ x.T)
    result: list[list[Decimal]] = (powers @ (x @ v) / powers.sum(1, keepdims=True)).tolist()
    return result


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("scale", [1.0, 8.0])
def test_certified_results(dtype: str, scale: float) -> None:
    """The enclosures contain the result, and executions differ from it by less than the bounds."""
    getcontext().prec = 60
    rng = np.random.default_rng(0)
    A, V, X = (rng.integers(-9, 9, size=(2, 2)) * scale / 8 for _ in range(3))
    T, U = locum.Attention(A, V), locum.UniversalSimulator(2, 2, 2)
    found, wanted = certify(U, T, X, dtype=dtype), attend(A, V, X)
    assert isinstance(found, Certified)
    values = U(T, X, executor="dense")
    for i, j in np.ndindex(2, 2):
        assert Decimal(found.lower[i, j]) <= wanted[i][j] <= Decimal(found.upper[i, j])
        if dtype == "float64":
            assert abs(Decimal(values[i, j]) - wanted[i][j]) <= Decimal(found.errors[i, j])
    assert Decimal(0) < Decimal(found.error) < Decimal(1e-3 if dtype == "float32" else 1e-11)
