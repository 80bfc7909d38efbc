"""Sums: a count of keys times their mean is small and right, at every length and of every type."""

from __future__ import annotations

import itertools
import random
import re
from typing import Any

import pytest

import locum
from locum import (
    SOp,
    aggregate,
    full,
    indicator,
    indices,
    length,
    select,
    selector_width,
    tokens,
    where,
)
from locum.errors import CompileError, GraphError
from locum.graph import abbreviate, postorder
from locum.networks.compiler import compile as compile_program
from locum.rasp import Session

DIGITS = tuple(range(10))
PAST, SAME = select(indices, indices, "<="), select(tokens, tokens, "==")
LESS = select(tokens, tokens, "<")
TOTAL = round(length * aggregate(full, tokens))

KINDS: dict[str, dict[str, Any]] = {
    "relu": {},
    "softmax": {"attention": "softmax"},
    "float32": {"dtype": "float32"},
    "softmax32": {"dtype": "float32", "attention": "softmax"},
    "gelu": {"feed_forward": "gelu", "attention": "softmax"},
    "gelu32": {"feed_forward": "gelu", "dtype": "float32"},
    "glu": {"feed_forward": "glu"},
    "exact": {"feed_forward": "exact"},
    "fixed": {"fixed": True},
    "no reuse": {"reuse_slots": False},
    "coarse": {"attention": "softmax", "tolerance": 0.2},
}


@pytest.mark.parametrize("longest", [5, 10, 30, 50])
def test_the_sum_of_digits_is_small_at_every_length(longest: int) -> None:
    double = compile_program(TOTAL, length=longest, vocabulary=DIGITS)
    assert double.architecture.layers == 2
    assert double.architecture.d_mlp <= 4 * longest
    assert double.architecture.d_model <= 10
    single = compile_program(TOTAL, length=longest, vocabulary=DIGITS, dtype="float32")
    assert single.architecture.layers == 3
    assert single.architecture.d_mlp <= 4 * longest
    assert single.error_bound < 0.25
    draw = random.Random(longest)
    for size in (1, 2, longest - 1, longest):
        inputs = draw.choices(DIGITS, k=size)
        for model in (double, single):
            assert model(inputs) == TOTAL(inputs) == [sum(inputs)] * size
            assert model([9] * size) == [9 * size] * size


SUMS: dict[str, SOp] = {
    "rounded": TOTAL,
    "remainder": TOTAL % 7,
    "not rounded": length * aggregate(full, tokens),
    "of the past": round((indices + 1) * aggregate(PAST, tokens)),
    "of equal tokens": round(aggregate(SAME, indices) * selector_width(SAME)),
    "of smaller tokens": round(selector_width(LESS) * aggregate(LESS, tokens, 5)),
    "of a union": round(selector_width(SAME | PAST) * aggregate(SAME | PAST, tokens)),
    "indicators": round(length * aggregate(full, indicator(tokens > 2))),
    "indicators, not rounded": length * aggregate(full, indicator(tokens > 2)) == 2,
    "signs": round(length * aggregate(full, where(tokens > 2, 1, -1))),
    "signs of the past": round((indices + 1) * aggregate(PAST, where(tokens > 2, 1, -1))),
    "of counts": round(length * aggregate(full, indicator(selector_width(SAME) > 1))),
    "compared": length * aggregate(full, tokens) == 29,
    "among others": TOTAL - 2 * tokens,
    "another count": round(length * aggregate(select(tokens, 1, "!="), tokens)),
    "locum.sum": locum.sum(SAME, tokens),
    "nothing": length * aggregate(full, tokens * 0) + indices,
    "of one value": round(selector_width(LESS) * aggregate(LESS, 3)),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", SUMS)
def test_sums_are_within_the_bound(name: str, kind: str) -> None:
    program, options = SUMS[name], KINDS[kind]
    try:
        model = compile_program(program, length=8, vocabulary=DIGITS, limit=None, **options)
    except CompileError as error:  # numbers near 72 are rounded by more than 1e-3 in float32
        assert "32" in kind
        assert "; try " in str(error)
        return
    draw = random.Random(f"{name} {kind}")
    for trial in range(8):
        size = 8 if kind == "fixed" else (8, 7, 1, draw.randint(2, 8))[trial % 4]
        inputs = [9] * size if trial == 4 else draw.choices(DIGITS, k=size)
        if name == "compared" and size == 7:
            inputs = [9, 9, 9, 2, 0, 0, 0]
        expected, actual = program(inputs), model(inputs)
        bound = model.error_bound
        assert all(abs(a - w) <= bound + 1e-6 * abs(w) for a, w in zip(actual, expected, strict=True))
        if model.config.outputs is not None:
            assert actual == expected


def test_a_sum_that_dense_execution_rounds_is_compared_as_it_is() -> None:
    """7 · (29 / 7) is not 29."""
    program = SUMS["compared"]
    inputs = [9, 9, 9, 2, 0, 0, 0]
    assert program(inputs) == [False] * 7
    assert compile_program(program, length=8, vocabulary=DIGITS)(inputs) == [False] * 7


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("longest", [4, 12])
def test_heads_score_by_sums(longest: int, dtype: str) -> None:
    fetched = aggregate(select(indices, TOTAL % length, "=="), tokens)
    counted = selector_width(select(SUMS["of the past"], SUMS["of the past"], "=="))
    draw = random.Random(longest)
    for program in (fetched, counted):
        model = compile_program(program, length=longest, vocabulary=DIGITS[:6], dtype=dtype)
        for size in (1, longest - 1, longest, longest):
            inputs = draw.choices(DIGITS[:6], k=size)
            assert model(inputs) == program(inputs)


def test_sums_of_text_compile() -> None:
    session = Session()
    *_, (_, program) = session.script("sum(select(tokens_int, tokens_int, <=), tokens_int);")
    model = compile_program(program, length=30, vocabulary="0123456789")
    assert model.architecture.d_mlp <= 130
    text = "314159265358979"
    assert model(text) == pytest.approx(program(text), abs=model.error_bound + 1e-12)


def test_sums_in_python() -> None:
    assert locum.sum(full, tokens)([3, 1, 2]) == [6] * 3
    assert set(map(type, locum.sum(full, tokens)([3, 1, 2]))) == {int}
    assert locum.sum(full, tokens)([0.5, 0.25]) == [0.75] * 2
    assert locum.sum(select(tokens, 2, "=="), tokens)([1, 3]) == [0, 0]
    assert locum.sum(PAST, indices)("abcd") == [0, 1, 3, 6]
    assert (length * aggregate(full, tokens))([9, 9, 9, 2, 0, 0, 0]) != [29] * 7
    assert locum.sum(full, tokens)([9, 9, 9, 2, 0, 0, 0]) == [29] * 7
    assert "sum" not in locum.__all__
    with pytest.raises(GraphError, match=r"try .* sum\(selector, values\)"):
        locum.sum_over(full, tokens)  # type: ignore[arg-type]


def test_sums_of_real_numbers_compile() -> None:
    program = locum.sum(full, tokens)
    model = compile_program(program, length=20, numeric=True, ranges=(-3, 3))
    assert model.architecture.d_mlp <= 80
    assert model.error_bound < 1e-6
    draw = random.Random(0)
    for size in (1, 7, 20):
        inputs = [draw.uniform(-3, 3) for _ in range(size)]
        assert model(inputs) == pytest.approx(program(inputs), abs=model.error_bound)
    assert model([1.0, 2.0]) == pytest.approx([3, 3], abs=model.error_bound)


_BEFORE, _HERE = select(indices, indices, "<"), select(indices, indices, "==")
_RANKED = aggregate(select(selector_width(SAME | (_HERE & _BEFORE)), indices, "=="), tokens)
_SINGLE = {"vocabulary": DIGITS, "dtype": "float32"}
REFUSED: list[tuple[SOp, dict[str, Any]]] = [
    (TOTAL, {"length": 200, **_SINGLE}),
    (SUMS["not rounded"], {"length": 50, **_SINGLE}),
    (_RANKED, {"length": 50, **_SINGLE}),
    (_RANKED, {"length": 50, "attention": "softmax", **_SINGLE}),
    (tokens > 0.5, {"length": 4, "numeric": True}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("program", "options"), REFUSED)
def test_what_an_error_recommends_compiles(program: SOp, options: dict[str, Any]) -> None:
    with pytest.raises(CompileError) as refused:
        compile_program(program, **options)
    message = str(refused.value)
    assert "on a grid" not in message
    advice = re.search(
        r"; (?:or )?try ([^;,]*?)( \(symbolic feed-forwards, executed as code\))?$", message
    )
    assert advice is not None
    changes = dict(part.split("=", 1) for part in advice[1].split(" and "))
    changed = {name: value.strip("'") for name, value in changes.items()}
    numbers = {name: float(value) for name, value in changed.items() if name == "tolerance"}
    compile_program(program, **options | changed | numbers)


@pytest.mark.parametrize("attention", ["hard", "softmax"])
def test_a_multiple_of_a_choice_keeps_both_branches(attention: str) -> None:
    """The factor is 1 or more, so the choice itself is a term of the product."""
    mean = locum.aggregate(locum.full, locum.tokens)
    for factor in (locum.length, 0 - locum.length):
        for program in (
            factor * locum.where(locum.tokens <= 1, 0, mean),
            factor * locum.where(locum.tokens <= 1, mean, locum.tokens),
        ):
            model = locum.compile(program, length=3, vocabulary=[0, 1, 2], attention=attention)
            for size in (1, 2, 3):
                for row in itertools.product([0, 1, 2], repeat=size):
                    expected, actual = program(list(row)), model(list(row))
                    assert max(abs(a - e) for a, e in zip(actual, expected, strict=True)) <= max(
                        model.error_bound, 1e-12
                    )


def test_sums_of_integers_far_from_zero() -> None:
    model = locum.compile(locum.sum(locum.full, locum.tokens), length=2, vocabulary=[300_000, 300_001])
    assert model([300_001, 300_000]) == [600_001] * 2


@pytest.mark.parametrize("feed_forward", ["relu", "exact"])
def test_sums_of_integers_beyond_floats_are_rejected(feed_forward: str) -> None:
    total = locum.sum(locum.full, locum.tokens)
    with pytest.raises(locum.CompileError):
        locum.compile(total, length=2, vocabulary=[10**400, 1], feed_forward=feed_forward)


def test_a_mean_of_real_numbers_that_is_compared_is_rejected() -> None:
    mean = locum.aggregate(locum.full, locum.tokens)
    with pytest.raises(locum.CompileError, match="real numbers that are compared"):
        locum.compile(mean > 0.5, length=4, numeric=True, ranges=(0, 1))


@pytest.mark.parametrize("length", [7, 8, 9])
def test_sums_of_fractions_whose_tables_float32_cannot_hold(length: int) -> None:
    program = locum.sum(select(tokens, tokens, "<="), tokens)
    options: dict[str, Any] = {"vocabulary": [0.5, 0.25, 0], "dtype": "float32"}
    model = locum.compile(program, length=length, **options)
    for size in (1, length):
        word = [0.5, 0.25, 0, 0.5, 0.5, 0, 0.25, 0.25, 0][:size]
        errors = [abs(a - b) for a, b in zip(model(word), program(word), strict=True)]
        assert max(errors) <= model.error_bound < 1e-3


def test_errors_name_the_sum_and_no_count_of_the_compiler() -> None:
    options: dict[str, Any] = {"vocabulary": [2**20, 2**20 + 1], "dtype": "float32"}
    with pytest.raises(CompileError) as refused:
        locum.compile(locum.sum(full, tokens), length=6, **options)
    assert "in selector_width(select(1, 1, ==)) * aggregate(select(1, 1, ==), tokens);" in str(
        refused.value
    )


def test_errors_name_the_selector_whose_scores_are_squares() -> None:
    count = selector_width(select(tokens, tokens, "=="))
    program = selector_width(select(count, count, "=="))
    options: dict[str, Any] = {"vocabulary": "abc", "attention": "softmax"}
    with pytest.raises(CompileError) as refused:
        locum.compile(program, length=50, dtype="float32", **options)
    assert " * " not in str(refused.value)
    assert "in select(selector_width(" in str(refused.value)
    assert str(refused.value).endswith("; try dtype='float64'")
    assert locum.compile(program, length=50, dtype="float64", **options).error_bound < 1e-6


@pytest.mark.parametrize(
    ("addends", "kind"),
    [
        *itertools.product([(0, 100_000), (0, 1, 70_000), (-3, 7, 12_345)], ("relu", "softmax", "glu")),
        ((0, 100_000), "float32"),
    ],
)
def test_sums_of_few_integers_that_are_far_apart(addends: tuple[int, ...], kind: str) -> None:
    program = locum.sum(PAST, tokens)
    model = compile_program(program, length=10, vocabulary=addends, **KINDS[kind])
    assert model.architecture.layers <= 2
    draw = random.Random(len(addends))
    for size in (1, 2, 9, 10, 10):
        inputs = draw.choices(addends, k=size)
        assert model(inputs) == program(inputs)


def test_no_error_recommends_inputs_of_one_token() -> None:
    program = locum.sum(PAST, tokens)
    with pytest.raises(CompileError) as refused:
        compile_program(program, length=6, vocabulary=[0, 2**40])
    assert "length=1" not in str(refused.value)


@pytest.mark.parametrize("kind", ["relu", "softmax32", "gelu", "glu", "no reuse"])
@pytest.mark.parametrize("addends", [(0, 0.5, 1), (0.1, 0.2, 0.7, 1), (-1, 2.5, 3, 0.001)])
def test_sums_of_integers_and_fractions(addends: tuple[float, ...], kind: str) -> None:
    draw = random.Random(len(addends))
    for selector in (full, PAST & select(tokens, 1, "<=")):
        program = locum.sum(selector, tokens)
        model = compile_program(program, length=10, vocabulary=addends, **KINDS[kind])
        assert model.architecture.layers <= 4
        assert model.architecture.d_mlp <= 60
        for size in (1, 2, 9, 10, 10):
            for inputs in (draw.choices(addends, k=size), [addends[-1]] * size):
                errors = [abs(a - b) for a, b in zip(model(inputs), program(inputs), strict=True)]
                assert max(errors) <= model.error_bound <= 1e-3


def test_comparisons_of_sums_of_integers_and_fractions() -> None:
    """7 · (29 / 7) is not 29, but the sum of these integers is 29."""
    total = locum.sum(full, tokens)
    for program in (total == 29, total > 28.5, where(total == 29, 1, 0)):
        model = compile_program(program, length=7, vocabulary=[9, 2, 0, 0.5])
        for inputs in ([9, 9, 9, 2, 0, 0, 0], [9, 9, 9, 0.5, 0.5, 0.5, 0.5], [9, 9, 9, 2], [0.5]):
            assert model(inputs) == program(inputs)


@pytest.mark.parametrize(
    ("program", "vocabulary"),
    [
        (locum.sum(full, tokens), [0.1, 0.2, -3.7, 1e6]),
        (aggregate(select(aggregate(full, tokens), indices, "<="), tokens), [0.25, 5, 1e5]),
    ],
)
def test_errors_name_a_part_of_the_program(program: SOp, vocabulary: list[float]) -> None:
    with pytest.raises(CompileError) as refused:
        compile_program(program, length=12, vocabulary=vocabulary, dtype="float32")
    assert refused.value.where in {abbreviate(node) for node in postorder(program.node)}
