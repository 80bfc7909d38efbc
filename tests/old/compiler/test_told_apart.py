"""Values that are equal as numbers, or one number in the stream: never told apart by accident."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest

from locum import (
    SOp,
    aggregate,
    best,
    full,
    indices,
    length,
    lookup,
    select,
    selector_width,
    tokens,
    tokens_str,
    where,
)
from locum.errors import CompileError, InputError, LocumError
from locum.graph import build
from locum.graph.atoms import canonical_set
from locum.networks import compiler
from locum.networks.transformer import load
from tests.compiler.agreement import is_close

_before = aggregate(select(indices, indices - 1, "=="), tokens)
_ONE_NUMBER = "expected values that differ in float"


def _agree(program: SOp, given_tokens: list[Any], **options: Any) -> int:
    """How many inputs of up to three tokens were compared with dense execution."""
    model = compiler.compile(program, length=3, **options, feed_forward="exact")
    compared = 0
    for size in (1, 2, 3):
        for inputs in product(given_tokens, repeat=size):
            try:
                expected = program(list(inputs))
            except LocumError:
                continue
            assert is_close(model(list(inputs)), expected), inputs
            compared += 1
    return compared


@pytest.mark.parametrize(
    "program",
    [
        aggregate(full, tokens),
        aggregate(select(tokens, tokens, ">="), tokens),
        aggregate(best(full, tokens), tokens) + aggregate(select(tokens, tokens, "<="), tokens),
    ],
)
def test_truths_among_numbers_are_averaged(program: SOp) -> None:
    vocabulary = [True, False, 1, 0]
    assert _agree(program, vocabulary, vocabulary=vocabulary) > 50


@pytest.mark.parametrize(
    ("program", "vocabulary", "dtype"),
    [
        (where(selector_width(full) > 1, tokens_str, "x"), [1, True, 1.0], "float64"),
        (_before == 2**53 + 1, [2**53, 2**53 + 1], "float64"),
        (selector_width(select(_before, tokens, "==")), [2**53, 2**53 + 1], "float64"),
        (_before == 2**24 + 1, [2**24, 2**24 + 1], "float32"),
        (selector_width(select(_before, tokens, "==")), [2**24, 2**24 + 1], "float32"),
    ],
)
def test_what_the_stream_does_not_tell_apart_is_refused(
    program: SOp, vocabulary: list[Any], dtype: str
) -> None:
    with pytest.raises(CompileError, match=_ONE_NUMBER):
        compiler.compile(program, length=3, vocabulary=vocabulary, dtype=dtype, feed_forward="exact")


def test_equal_keys_of_a_table_with_one_value_are_one_key(tmp_path: Path) -> None:
    vocabulary = [1, True, 2]
    named = lookup(tokens, {1: "one", 2: "two"})
    program = where(selector_width(full) > 2, named, "short")
    assert _agree(program, vocabulary, vocabulary=vocabulary) == 39
    model = compiler.compile(program, length=3, vocabulary=vocabulary, feed_forward="exact")
    model.save(tmp_path / "model")
    assert load(tmp_path / "model")([1, True, 2]) == ["one", "one", "two"]


def test_whole_numbers_beyond_the_floats_are_no_keys_of_real_numbers() -> None:
    result = lookup(tokens, {2**53: 5, 2**53 + 1: 3, 1: 0})
    assert _agree(result, [2**53, 1], numeric=True) == 14
    member = build("member", tokens.node, values=canonical_set([2**53 + 1, 10**400, 1]))
    assert _agree(SOp(member), [2**53, 1, 0.5], numeric=True) == 39
    with pytest.raises(CompileError, match="an entry for some value that is looked up"):
        compiler.compile(
            lookup(tokens, {2**53 + 1: 3, "a": 1}), length=2, numeric=True, feed_forward="exact"
        )


def test_whole_tokens_that_float32_does_not_hold_are_refused() -> None:
    model = compiler.compile(tokens + 1, length=2, numeric=True, dtype="float32", feed_forward="exact")
    assert model([2**24, 0.5]) == [2**24, 1.5]
    with pytest.raises(InputError, match="a finite number that float32 represents exactly"):
        model([2**24 + 1])
    with pytest.raises(CompileError, match=r"integers beyond 2\^24"):
        compiler.compile(
            tokens == 2**24 + 1, length=2, numeric=True, dtype="float32", feed_forward="exact"
        )


def test_a_token_without_a_value_is_not_its_equal() -> None:
    model = compiler.compile(
        lookup(tokens_str, {"1": 5, "2": 6}), length=2, vocabulary=[1, True, 2], feed_forward="exact"
    )
    assert model([1, 2]) == [5, 6]
    with pytest.raises(LocumError, match="is undefined for this token"):
        model([True])


def test_many_strings_are_looked_up_by_what_they_are_made_of() -> None:
    words = [f"{number:02d}" for number in range(50)]
    pair = tokens + aggregate(select(indices, indices - 1, "=="), tokens, "zz")
    table = {a + b: (int(a) + len(b)) % 7 for a in words for b in [*words, "zz"]}
    for program in (lookup(pair, {**table, 0: 1}), selector_width(select(pair, pair, "=="))):
        assert _agree(program, words[:3], vocabulary=words) == 39


def test_close_numbers_beside_strings_are_refused() -> None:
    words = lookup(tokens, {1: "a", 2: "b"})
    for other, fits in ((0.25, True), (0.1 + 1e-10, False)):
        program = where(length == 1, 0.1, where(length == 2, other, words))
        if fits:
            assert _agree(program, [1, 2], vocabulary=[1, 2]) == 14
            continue
        with pytest.raises(CompileError, match="got strings and numbers up to"):
            compiler.compile(program, length=3, vocabulary=[1, 2], feed_forward="exact")


def test_products_beyond_the_floats_are_not_compared() -> None:
    counts = [selector_width(select(tokens, number, "==")) + 9000 for number in range(5)]
    product_of_all = counts[0] * counts[1] * counts[2] * counts[3] * counts[4]
    # The product itself is an integer that no float holds; the network would give another one.
    with pytest.raises(CompileError, match=r"integers that float"):
        compiler.compile(product_of_all, length=10, vocabulary=[0, 1, 2, 3, 4], feed_forward="exact")
    # Ranks among the few values there are, which are told apart before there are floats.
    for query in (indices, product_of_all + 1):
        for predicate in ("<", "=="):
            width = selector_width(select(product_of_all, query, predicate))
            assert _agree(width, [0, 1, 4], vocabulary=[0, 1, 2, 3, 4]) == 39
    compared = product_of_all == product_of_all + 1
    with pytest.raises(CompileError, match=r"integers beyond 2\^53"):
        compiler.compile(compared, length=10, vocabulary=[0, 1, 2, 3, 4], feed_forward="exact")
