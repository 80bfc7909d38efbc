"""Wrong calls raise the error of their kind, whose message names the problem and the value.

A row is a call, the class of its error, and two parts of the message.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import locum
from locum import (
    CompileError,
    ExecutionError,
    GraphError,
    InputError,
    LocumError,
    indices,
    rasp,
    tokens,
)
from locum import constructions as con
from locum.languages import LTL, b_rasp, c_rasp, classify, equivalent
from locum.proofs import prove
from locum.rasp import Limits, RaspError, Session

eye = np.eye(2)
reverse = locum.aggregate(locum.select(indices, locum.length - 1 - indices, "=="), tokens)

ROWS: list[tuple[Callable[[], Any], type[Exception], str, str]] = [
    (lambda: tokens(""), InputError, "expected at least one token", "got an empty input"),
    (lambda: tokens([]), InputError, "expected at least one token", "got an empty input"),
    (lambda: tokens([None]), InputError, "expected bools", "got None at position 0"),
    (lambda: tokens([[1, 2], "a"]), InputError, "one sequence or a batch", "one list"),
    (lambda: tokens("ab", executor="quick"), LocumError, "expected one of dense", "got 'quick'"),
    (lambda: tokens("ab", domain="complex"), LocumError, "expected one of float", "got 'complex'"),
    (lambda: (1 / indices)("ab"), ExecutionError, "division by zero", "at position 0"),
    (lambda: (tokens + 1)("ab"), ExecutionError, "add is not defined", "in tokens + 1"),
    (
        lambda: locum.aggregate(locum.full, tokens)("ab"),
        ExecutionError,
        "expected numbers to average",
        "not all numbers",
    ),
    (lambda: locum.log(tokens)([0]), ExecutionError, "log is not defined for 0", "in log"),
    (lambda: (tokens % 0)([1]), ExecutionError, "division by zero", "at position 0"),
    (
        lambda: tokens(np.zeros((2, 2, 2))),
        InputError,
        "expected an array of one axis",
        "got one of shape",
    ),
    (lambda: locum.select(tokens, tokens, "=>"), GraphError, "predicate", "got '=>'"),
    (
        lambda: locum.aggregate(tokens, tokens),
        GraphError,
        "aggregate: expected a selector",
        "got the s-op tokens",
    ),
    (
        lambda: locum.select(tokens, locum.full, "=="),
        GraphError,
        "select: expected an s-op",
        "got the selector select",
    ),
    (lambda: locum.lookup(tokens, {}), GraphError, "expected a table", "got {}"),
    (lambda: locum.family(0), GraphError, "expected a size", "got 0"),
    (lambda: locum.family(2.5), GraphError, "expected a size", "got 2.5"),
    (lambda: locum.sum_over(tokens, tokens), GraphError, "expected families", "got <tokens"),
    (lambda: locum.constant([1]), GraphError, "constant: expected an s-op or an atom", "got [1]"),
    (lambda: locum.constant(None), GraphError, "constant: expected an s-op or an atom", "got None"),
    (lambda: locum.family(3)("ab"), GraphError, "bound by no sum", "sum_over"),
    (lambda: bool(tokens), GraphError, "s-op tokens has no single truth value", "& | ~"),
    (lambda: locum.map(3, tokens), GraphError, "map: expected a function", "got 3"),
    (
        lambda: locum.where(locum.full, tokens, tokens),
        GraphError,
        "if_else: expected an s-op",
        "got the selector select",
    ),
    (lambda: rasp.to_rasp(3), GraphError, "expected a program", "got 3"),
    (lambda: locum.load("missing"), InputError, "expected a folder with a saved model", "got missing"),
    (lambda: locum.compile(reverse), CompileError, "length: expected an integer", "got nothing"),
    (
        lambda: locum.compile(reverse, length=0, vocabulary="ab"),
        CompileError,
        "length: expected an integer",
        "got 0",
    ),
    (
        lambda: locum.compile(reverse, length=4),
        CompileError,
        "expected vocabulary=… or numeric=True",
        "got neither",
    ),
    (
        lambda: locum.compile(reverse, length=4, vocabulary=""),
        CompileError,
        "vocabulary: expected one token or more",
        "got none",
    ),
    (
        lambda: locum.compile(reverse, length=4, vocabulary="ab", attention="linear"),
        CompileError,
        "attention: expected one of hard",
        "got 'linear'",
    ),
    (
        lambda: locum.compile(reverse, length=4, vocabulary="ab", feed_forward="sine"),
        CompileError,
        "feed_forward: expected one of relu",
        "got 'sine'",
    ),
    (
        lambda: locum.compile(reverse, length=4, vocabulary="ab", dtype="int8"),
        CompileError,
        "dtype: expected one of float64",
        "got 'int8'",
    ),
    (
        lambda: locum.compile(reverse, length=4, vocabulary="ab", colour=3),
        CompileError,
        "options: expected length",
        "got 'colour'",
    ),
    (
        lambda: locum.compile(reverse, length=4, vocabulary="ab", causal=True),
        CompileError,
        "causal",
        "got the length of the input",
    ),
    (
        lambda: locum.compile(reverse, length="4", vocabulary="ab"),
        CompileError,
        "length: expected an integer",
        "got '4'",
    ),
    (
        lambda: locum.compile(locum.full, length=4, vocabulary="ab"),
        CompileError,
        "expected an s-op to compile",
        "got a selector",
    ),
    (
        lambda: locum.compile(locum.tokens_int, length=3, vocabulary="ab"),
        CompileError,
        "the s-op is undefined for every input",
        "in tokens_int",
    ),
    (
        lambda: locum.compile(reverse, length=3, vocabulary="ab")("abab"),
        InputError,
        "expected 1 to 3 tokens",
        "got 4",
    ),
    (
        lambda: locum.compile(reverse, length=3, vocabulary="ab")("abc"),
        InputError,
        "expected tokens of the vocabulary",
        "got 'c'",
    ),
    (
        lambda: locum.compile(reverse, length=3, vocabulary="ab")(""),
        InputError,
        "expected at least one token",
        "got an empty input",
    ),
    (
        lambda: locum.compile(reverse, length=3, vocabulary="ab", fixed=True)("ab"),
        InputError,
        "expected 3 tokens",
        "got 2",
    ),
    (
        lambda: locum.compile(reverse, length=3, vocabulary="ab").ablate("ab", "nothing"),
        InputError,
        "the name of a hook",
        "got 'nothing'",
    ),
    (
        lambda: locum.compile(reverse, length=3, vocabulary="ab").patch("ab", "a", "nothing"),
        InputError,
        "the name of a hook",
        "got 'nothing'",
    ),
    (lambda: locum.UniversalSimulator(0, 1, 1), GraphError, "n: expected an integer ≥ 1", "got 0"),
    (
        lambda: locum.UniversalSimulator(2, 2, 2, recipe="slow"),
        GraphError,
        "recipe: expected one of paper",
        "got 'slow'",
    ),
    (
        lambda: locum.UniversalSimulator(2, 2, 2)(locum.Attention(eye, eye), np.eye(3)),
        InputError,
        "X: expected 2×2",
        "got 3×3",
    ),
    (
        lambda: locum.UniversalSimulator(2, 2, 2)(locum.Attention(np.eye(3), np.eye(3)), np.eye(2)),
        InputError,
        "T is of order",
        "embed(T, X)",
    ),
    (
        lambda: locum.UniversalSimulator(2, 2, 2)(locum.Attention(eye, eye), eye, executor="quick"),
        LocumError,
        "expected one of dense",
        "got 'quick'",
    ),
    (
        lambda: locum.UniversalSimulator(2, 2, 2)(
            locum.Attention(eye, eye), [[1, float("nan")], [0, 1]]
        ),
        InputError,
        "X has nan at [0",
        "only finite numbers",
    ),
    (
        lambda: locum.UniversalSimulator(2, 2, 2)(3, eye),
        InputError,
        "T: expected an Attention",
        "got int",
    ),
    (
        lambda: locum.UniversalSimulator(2, 2, 2)(locum.Attention(eye, eye), [["a", "b"], ["c", "d"]]),
        InputError,
        "X: expected real numbers",
        "got the type <U1",
    ),
    (lambda: locum.Attention(eye, np.eye(3)), InputError, "V: expected 2 rows", "got 3×3"),
    (lambda: locum.Attention([1, 2], eye), InputError, "A: expected a matrix", "got the shape 2"),
    (
        lambda: locum.Attention(eye, eye, pooling="maximum"),
        GraphError,
        "pooling: expected one of softmax",
        "got 'maximum'",
    ),
    (
        lambda: locum.Attention(eye, eye, mask="diagonal"),
        InputError,
        "expected the mask to be causal",
        "got 'diagonal'",
    ),
    (lambda: con.Matrix(tokens, 0, 2), GraphError, "rows: expected an integer ≥ 1", "got 0"),
    (
        lambda: con.matmul(con.Matrix(tokens, 2, 2), con.Matrix(tokens, 3, 2)),
        GraphError,
        "2×2 matrix by a 3×2",
        "differ",
    ),
    (
        lambda: con.determinant(con.Matrix(tokens, 2, 3)),
        GraphError,
        "expected a square matrix",
        "got a 2×3 one",
    ),
    (lambda: con.Matrix(tokens, 2, 2).run([1, 2]), InputError, "at least 4 tokens", "got 2"),
    (lambda: con.maxmin(con.Matrix(tokens, 1, 3)), GraphError, "groups that divide", "got 2"),
    (lambda: con.k_parity(tokens, ()), GraphError, "distinct positions", "()"),
    (lambda: Session().script("x = ;"), RaspError, "expected an expression", "found ';'"),
    (lambda: Session().script("x = y;"), RaspError, "Undefined variable", "y"),
    (lambda: Session().script("select(1, 2);"), RaspError, "select needs keys", "found ')'"),
    (
        lambda: Session(limits=Limits(steps=2)).script("for i in [1, 2, 3] { x = i; }"),
        RaspError,
        "more than 2 steps",
        "limit",
    ),
    (lambda: classify("(ab"), InputError, "regular expression", "got the end of the text"),
    (lambda: classify("a**b)"), InputError, "regular expression", "column 5"),
    (lambda: classify(""), InputError, "regular expression", "before the end"),
    (lambda: equivalent("(ab)*", "("), InputError, "regular expression", "before the end"),
    (
        lambda: c_rasp.parse("accepted = ", alphabet="ab"),
        InputError,
        "C-RASP",
        "got the end of the text",
    ),
    (
        lambda: c_rasp.parse("accepted = nothing", alphabet="ab"),
        InputError,
        "C-RASP",
        "nothing is not defined",
    ),
    (
        lambda: c_rasp.parse('accepted = "c"', alphabet="ab"),
        InputError,
        "expected an alphabet",
        "got none with c",
    ),
    (lambda: c_rasp.parse("x = 1", alphabet="ab"), InputError, "C-RASP", "got a count"),
    (
        lambda: b_rasp.parse("p = leftmost[", alphabet="ab"),
        InputError,
        "B-RASP",
        "got the end of the text",
    ),
    (lambda: LTL.parse("a U", alphabet="ab"), InputError, "LTL", "got the end of the text"),
    (
        lambda: LTL.parse("a", at="middle", alphabet="ab"),
        InputError,
        "at: expected 'first' or 'last'",
        "got 'middle'",
    ),
    (lambda: prove("nothing", 2), InputError, "expected the name of a claim", "got 'nothing'"),
    (lambda: prove("attention", 2), InputError, "takes n d d_v", "got [2]"),
    (lambda: prove("attention", 0, 2, 2), InputError, "takes n d d_v", "0"),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[2]}, {row[3]}")
def test_error(row: tuple[Callable[[], Any], type[Exception], str, str]) -> None:
    call, kind, *words = row
    with pytest.raises(kind) as caught:
        call()
    assert all(word in str(caught.value) for word in words), str(caught.value)
