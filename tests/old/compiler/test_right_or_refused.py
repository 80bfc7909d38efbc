"""Defects of earlier compilers, each as it was met: the network is right, or the program refused."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from importlib import import_module
from importlib.util import find_spec
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

from locum import (
    SOp,
    aggregate,
    best,
    constant,
    erf,
    exp,
    floor,
    full,
    indices,
    length,
    log,
    lookup,
    maximum,
    minimum,
    select,
    selector_width,
    sin,
    sqrt,
    tanh,
    tokens,
    tokens_bool,
    tokens_float,
    tokens_int,
    where,
)
from locum.errors import CompileError, ExecutionError
from locum.networks import compiler
from locum.networks.transformer import CompiledTransformer
from tests.compiler.agreement import logits
from tests.compiler.edge_programs import PREDICATES
from tests.compiler.test_edge_programs import difference
from tests.old.execution.one_type import agrees

WIDTH = selector_width(select(tokens, tokens, "=="))

#: Values of position and length that every library computes in its own way.
FUNCTIONS = {
    "exp": exp(length - indices),
    "log": log(length - indices + 1),
    "tanh": tanh((length + indices) / 3),
    "sqrt": sqrt((length - indices) / 10),
    "erf": erf((length - indices) / 7),
    "sin": sin(length - indices),
    "power": 1.1 ** (length - indices),
    "cube root": ((length + indices) / 3) ** (1 / 3),
    "reciprocal": 1 / ((length + indices) / 3 + 1),
    "mean": aggregate(full, length * 0.1),
}


def hosts(model: CompiledTransformer) -> dict[str, Callable[[str], list[Any]]]:
    """The network as NumPy and torch run it, if torch is here."""
    ways: dict[str, Callable[[str], list[Any]]] = {"numpy": model}
    if find_spec("torch"):
        torch, module = import_module("torch"), model.to_torch()

        def by_torch(inputs: str) -> list[Any]:
            logits = module(torch.as_tensor(model.encode(inputs))).detach().numpy()
            return model.decode(logits, inputs)[0]

        ways["torch"] = by_torch
    return ways


def test_every_host_is_installed() -> None:
    """Say so where the tables below go without one."""
    pytest.importorskip("torch")
    model = compiler.compile(length, length=2, vocabulary="a", feed_forward="exact")
    assert {name: run("aa") for name, run in hosts(model).items()} == {
        name: [2, 2] for name in ("numpy", "torch")
    }


def check_hosts(program: SOp, longest: int, dtype: str, sizes: Iterable[int]) -> None:
    """Compile for inputs as long as ``longest``, and compare every host with dense execution."""
    model = compiler.compile(
        program, length=longest, vocabulary="ab", dtype=dtype, feed_forward="exact"
    )
    assert model.error_bound < 1e-5
    expected = {size: program("a" * size, executor="dense") for size in sizes}
    for host, run in hosts(model).items():
        for size, answer in expected.items():
            assert run("a" * size) == pytest.approx(answer, abs=model.error_bound), (host, size)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_selectors_over_values_of_position_and_length(name: str, dtype: str) -> None:
    """Run the table of functions on every host, on inputs of several lengths."""
    x = FUNCTIONS[name]
    sizes = (1, 2, 5, 9, 17, 24)
    check_hosts(aggregate(select(x, x, "<"), indices, -1), 24, dtype, sizes)
    check_hosts(selector_width(select(x, x, "==")), 24, dtype, sizes)
    check_hosts(aggregate(select(x, x, ">"), indices, -1), 6, dtype, range(1, 7))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_random_lengths_of_the_table_of_functions(name: str, dtype: str) -> None:
    """Compile for one drawn length and predicate; with the fuzz profile, for every length to 24."""
    x = FUNCTIONS[name]
    draw = random.Random(name + dtype)
    many = settings().max_examples > 1000
    for longest in range(1, 25) if many else [draw.randint(1, 24)]:
        program = selector_width(select(x, x, draw.choice(PREDICATES)))
        sizes = range(1, longest + 1) if many else [longest]
        check_hosts(program, longest, dtype, sizes)


def worst(model: Any, program: SOp, vocabulary: list[Any], longest: int, count: int = 60) -> float:
    draw = random.Random(0)
    inputs = [draw.choices(vocabulary, k=draw.randint(1, longest)) for _ in range(count)]
    return max(difference(model, program, sequence) or 0.0 for sequence in inputs)


@pytest.mark.parametrize("size", [5, 8])
def test_a_snap_in_a_shared_slot(size: int) -> None:
    program = aggregate(select(indices, (WIDTH + indices) % length, "=="), indices, -1)
    options: dict[str, Any] = {"feed_forward": "relu", "dtype": "float32"}
    model = compiler.compile(program, length=size, vocabulary="abc", **options)
    assert worst(model, program, list("abc"), size) <= model.error_bound < 1e-3


@pytest.mark.parametrize("large", [10**3, 10**6])
@pytest.mark.parametrize("kind", ["relu", "gelu", "glu"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_large_tokens_beside_a_length(large: int, kind: str, dtype: str) -> None:
    longer = length < tokens
    program = selector_width(select(longer, longer, "=="))
    vocabulary = [0, 1, 2, large]
    try:
        model = compiler.compile(
            program, length=3, vocabulary=vocabulary, feed_forward=kind, dtype=dtype
        )
    except CompileError:
        assert dtype == "float32"
        return
    assert model([large] * 3) == [3, 3, 3]
    assert worst(model, program, vocabulary, 3) <= model.error_bound < 1e-3


@pytest.mark.parametrize("attention", ["hard", "softmax"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_rounding_before_a_jump(attention: str, dtype: str) -> None:
    remainder = (length + erf(constant(4))) % 5
    same = where(aggregate(full, constant(0.1)) == 0.1, 1, 0)
    for program, longest in ((remainder, 9), (same, 50)):
        model = compiler.compile(
            program,
            length=longest,
            vocabulary="ab",
            attention=attention,
            dtype=dtype,
            feed_forward="exact",
        )
        for size in range(1, longest + 1):
            error = difference(model, program, ["a"] * size)
            assert error is not None
            assert error <= model.error_bound < 1e-6


def test_a_comparison_of_rounded_means_has_no_bound() -> None:
    """The network adds up in another order: what jumps there is listed, and nothing is certified."""
    program = aggregate(select(tokens, tokens, "<="), tokens) > 0.2
    model = compiler.compile(program, length=5, vocabulary=[0.1, 0.2, 0.3], feed_forward="exact")
    assert model.config.report["depends on rounding"]
    assert model.error_bound >= 1


def test_a_string_that_only_a_late_table_has() -> None:
    x2 = sqrt(abs_of(tokens))
    x3 = where(indices * 3 > x2, "", "a")
    moved = aggregate(best(select(indices * 3, x2, ">"), -indices), constant("zz"), "?")
    program = moved + where(selector_width(full) >= 2, "", x3)
    vocabulary = [1e-3, 1e3, -7.25]
    for kind in ("exact", "relu"):
        model = compiler.compile(program, length=31, vocabulary=vocabulary, feed_forward=kind)
        draw = random.Random(1)
        for _ in range(5):
            inputs = draw.choices(vocabulary, k=draw.randint(1, 31))
            assert model(inputs) == program(inputs, executor="dense")


def abs_of(x: SOp) -> SOp:
    return where(x < 0, -x, x)


@pytest.mark.parametrize("divided", [lambda x: x % 7, lambda x: x // 3])
def test_remainders_beyond_the_floats_are_refused_when_compiling(divided: Any) -> None:
    counts = [selector_width(select(tokens, number, "==")) + 9000 for number in range(5)]
    product = counts[0] * counts[1] * counts[2] * counts[3] * counts[4]
    with pytest.raises(CompileError, match=r"integers beyond 2\^53"):
        compiler.compile(
            divided(product + tokens), length=40, vocabulary=[0, 1, 2, 3, 4], feed_forward="exact"
        )


def test_gated_units_without_a_tolerance_refuse_what_is_too_far_off() -> None:
    codes = {token: i for i, token in enumerate("abcdefghij?")}
    before = aggregate(select(indices, indices - 1, "=="), tokens, "?")
    table = {i: -1000003 if i % 11 == 10 else int(i // 11 != i % 11) for i in range(121)}
    program = lookup(lookup(tokens, codes) * 11 + lookup(before, codes), table)
    options: dict[str, Any] = {"feed_forward": "glu", "attention": "softmax"}
    with pytest.raises(CompileError, match="tolerance"):
        compiler.compile(
            program,
            length=10,
            vocabulary="abcdefghij",
            dtype="float32",
            **options,
        )
    model = compiler.compile(program, length=10, vocabulary="abcdefghij", **options)
    assert worst(model, program, list("abcdefghij"), 10, 20) <= model.error_bound < 1e-3


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_long_inputs_need_no_list_of_positions(dtype: str) -> None:
    programs = {
        "reverse": aggregate(select(indices, length - 1 - indices, "=="), tokens),
        "shift": aggregate(select(indices, indices - 1, "=="), tokens, "-"),
        "rotate": aggregate(select(indices, (indices + 1) % length, "=="), tokens),
        "hist": WIDTH,
    }
    draw = random.Random(2)
    for name, program in programs.items():
        model = compiler.compile(
            program, length=2048, vocabulary="abcd", dtype=dtype, feed_forward="exact"
        )
        assert sum(model.architecture.heads) <= 2, name
        assert model.architecture.d_model <= 8, name
        for size in (1, 2, 700):
            inputs = draw.choices("abcd", k=size)
            assert model(inputs) == program(inputs, executor="dense"), (name, size)


def test_first_occurrences_have_one_head_at_every_length() -> None:
    same_before = select(tokens, tokens, "==") & select(indices, indices, "<=")
    first = where(selector_width(same_before) == 1, indices, -1)
    program = aggregate(select(first, indices, "=="), tokens, "-")
    for longest in (40, 48, 256):
        model = compiler.compile(program, length=longest, vocabulary="abcd", feed_forward="exact")
        assert model.architecture.heads == (1, 1)
        inputs = random.Random(longest).choices("abcd", k=longest)
        assert model(inputs) == program(inputs, executor="dense")


@pytest.mark.parametrize("program", [exp(tokens * 0) + length, length / (tokens * 0 + 2)])
def test_tokens_without_bounds_times_zero(program: SOp) -> None:
    """0·∞ is NaN; a signal that is multiplied by 0 adds nothing to what is rounded."""
    model = compiler.compile(program, length=2, numeric=True, feed_forward="exact")
    assert model([3.0, 1e9]) == pytest.approx(program([3.0, 1e9]), abs=model.error_bound)
    assert model.error_bound < 1e-9


NEVER = aggregate(select(tokens, "zz", "=="), tokens)
NEVER_BY_LENGTH = aggregate(select(length, 0.5, "<="), tokens)
NONE_BEFORE = aggregate(select(indices, indices, ">"), tokens)


@pytest.mark.parametrize(
    ("program", "longest"),
    [
        (selector_width(select(NEVER, 0, "==")), 2),
        (selector_width(select(NEVER, 0, "!=")), 2),
        (selector_width(select(NONE_BEFORE, 0, "==")), 1),
        (aggregate(select(NEVER_BY_LENGTH, 0, "!="), 5, "a"), 1),
        (aggregate(select(NEVER_BY_LENGTH, 0, "!="), indices + 1), 3),
    ],
)
@pytest.mark.parametrize("attention", ["hard", "softmax"])
def test_defaults_beside_strings_are_selected(program: SOp, longest: int, attention: str) -> None:
    """Among values of both kinds, the number 0 was compared as if it were a string."""
    model = compiler.compile(
        program, length=longest, vocabulary="abc", attention=attention, feed_forward="exact"
    )
    for size in range(1, longest + 1):
        for inputs in ("a" * size, "abc"[:size]):
            assert model(inputs) == pytest.approx(program(inputs, executor="dense")), inputs


@pytest.mark.parametrize("kind", ["exact", "relu"])
@pytest.mark.parametrize(
    "inner",
    [
        where(tokens == "a", 1, "z"),
        aggregate(select(tokens, tokens, "!="), 1, "z"),
        where(tokens == "a", NEVER, "z"),
    ],
)
def test_strings_beside_one_number_are_moved(inner: SOp, kind: str) -> None:
    """A string's code came out as a number."""
    program = aggregate(select(tokens, tokens, "=="), inner)
    model = compiler.compile(program, length=3, vocabulary="abc", feed_forward=kind)
    compared = 0
    for inputs in ("a", "b", "c", "aa", "ab", "bc", "bca", "cba"):
        try:
            expected = program(inputs, executor="dense")
        except ExecutionError:  # it mixes strings with numbers
            continue
        compared += 1
        assert model(inputs) == expected, inputs
    assert compared >= 3


def test_strings_beside_means_are_refused() -> None:
    inner = where(tokens == "a", 1, where(tokens == "b", 2, "z"))
    mixed = aggregate(select(tokens, "c", "!="), inner, "z")
    for program in (mixed, mixed == "z", selector_width(select(mixed, "z", "=="))):
        with pytest.raises(
            CompileError, match=r"(?s)strings mixed with means of numbers.* in aggregate"
        ):
            compiler.compile(program, length=3, vocabulary="abc", feed_forward="exact")


@pytest.mark.parametrize("numeric", [True, False])
@pytest.mark.parametrize(
    "program",
    [
        aggregate(full, constant(2)),
        aggregate(select(tokens, tokens, "<="), tokens),
        aggregate(select(indices, length - 1 - indices, "=="), tokens),
        aggregate(select(indices, indices, "<"), indices, -1) + tokens,
        aggregate(select(indices, tokens, "=="), tokens == 1, False),
        where(indices < 1, tokens, aggregate(full, tokens)),
        tokens * (tokens == 1),
    ],
)
def test_answers_have_one_type(program: SOp, numeric: bool) -> None:
    """All answers of a network have the type of its program on the vocabulary, or on floats."""
    options: dict[str, Any] = {"numeric": True} if numeric else {"vocabulary": [0, 1, 2, 0.5]}
    model = compiler.compile(program, length=3, **options, feed_forward="exact")
    for inputs in ([0], [2, 1], [1, 2, 0], [2, 2, 1], [0.5, 1, 0], [1, 0, 0.5], [2, 0.5, 1]):
        expected = program(list(map(float, inputs)) if numeric else inputs, executor="dense")
        answer = model(inputs)
        assert agrees(answer, expected, program, options.get("vocabulary", [0.0])), inputs
        assert list(map(repr, model.decode(logits(model, inputs), inputs)[0])) == list(
            map(repr, answer)
        )


def test_types_do_not_depend_on_the_inputs() -> None:
    mean = aggregate(select(indices, indices, "<="), tokens)
    model = compiler.compile(mean, length=2, vocabulary=[0, 2], feed_forward="exact")
    numbers = logits(model, [2, 2])
    for inputs in ((), ([2, 2],)):
        assert list(map(type, model.decode(numbers, *inputs)[0])) == [float, float]


@pytest.mark.parametrize("kind", ["exact", "relu", "gelu", "glu"])
@pytest.mark.parametrize(
    ("program", "vocabulary"),
    [
        (tokens, [2**53 + 1, 2**53]),
        (aggregate(select(indices, length - 1 - indices, "=="), tokens), [2**53 + 1, 2**53]),
        (tokens + 0, [2**53 + 1, 1]),
        (aggregate(select(indices, indices, "<="), round(tokens)), [2**53 + 1, 1]),
        (tokens * tokens * tokens, [10**6 + 1, 1]),
        (WIDTH + 10**17, "ab"),
        (3 ** (indices * 20), "ab"),
        (aggregate(select(tokens, 7, "=="), tokens * 0.5, 2**53 + 1), [1, 2]),
    ],
)
def test_integers_beyond_the_floats_are_refused(program: SOp, vocabulary: Any, kind: str) -> None:
    """Refuse when compiling what came out rounded, with a bound of 0."""
    with pytest.raises(CompileError):
        compiler.compile(program, length=3, vocabulary=vocabulary, feed_forward=kind)
    with pytest.raises(CompileError, match="up to 2\\^53"):
        compiler.compile(program, length=3, vocabulary=vocabulary, feed_forward="exact")


@pytest.mark.parametrize("large", [2**53 + 1, 2**60, 10**40])
def test_integers_beyond_the_floats_are_moved_as_they_are(large: int) -> None:
    for program in (tokens, aggregate(select(indices, length - 1 - indices, "=="), tokens)):
        model = compiler.compile(program, length=3, vocabulary=[1, large, 7], feed_forward="exact")
        for inputs in ([large], [1, large], [large, 7, large]):
            assert repr(model(inputs)) == repr(program(inputs, executor="dense"))
        model = compiler.compile(program, length=3, vocabulary=[1, large, 0.5], feed_forward="exact")
        assert repr(model([1, 0.5])) == repr(program([1.0, 0.5]))
        if float(large) == large:
            assert model([large, 0.5]) == program([large, 0.5])
        else:
            with pytest.raises(ExecutionError, match="a float would round"):
                model([large, 0.5])


def test_large_integers_from_casts_are_moved_as_they_are() -> None:
    texts = [str(2**53 + 1), str(2**53 + 3)]
    model = compiler.compile(tokens_int, length=2, vocabulary=texts, feed_forward="exact")
    assert model(texts) == tokens_int(texts) == [2**53 + 1, 2**53 + 3]
    with pytest.raises(CompileError, match="represents exactly"):  # both would be 2⁵³
        compiler.compile(tokens_int, length=2, vocabulary=[str(2**53), str(2**53 + 1)])
    model = compiler.compile(tokens_float, length=2, vocabulary=[2**53 + 1, 3])
    assert model([2**53 + 1, 3]) == tokens_float([2**53 + 1, 3]) == [2.0**53, 3.0]


def test_booleans_among_large_integers_become_integers() -> None:
    model = compiler.compile(tokens, length=3, vocabulary=[2**60, True], feed_forward="exact")
    assert repr(model([2**60, True])) == repr([2**60, 1])


def test_real_numbers_beyond_the_exact_integers() -> None:
    cube = compiler.compile(tokens * tokens * tokens, length=2, numeric=True, feed_forward="exact")
    assert cube([10**5, 2.5]) == [10**15, 15.625]
    for number in (10**6 + 1, 1e6 + 1):  # tokens are floats
        assert repr(cube([number, 1])) == repr([(1e6 + 1) ** 3, 1.0])
    product = tokens * aggregate(select(indices, length - 1 - indices, "=="), tokens)
    bounded = compiler.compile(
        product * product, length=2, numeric=True, ranges=(0, 10**6), feed_forward="exact"
    )
    assert bounded.error_bound >= 2**-53 * 10**24


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_programs_with_infinities_are_compiled_or_refused(value: float) -> None:
    """Raise no ValueError from within: NaN has no integer ratio."""
    chosen = aggregate(select(tokens, 1, "=="), constant(value), -1)
    programs = (
        tokens + value,
        selector_width(select(tokens, chosen, "<")),
        aggregate(select(tokens, tokens, "=="), tokens, value),
        aggregate(select(tokens, chosen, "<"), where(tokens == 1, value, tokens)),
        lookup(tokens, {0: 1, 1: value, 2: 3}),
        where(tokens == 1, value, 0) * 0,
        aggregate(best(full, where(tokens == 1, value, tokens)), indices),
    )
    for program in programs:
        for kind in ("exact", "glu"):
            try:
                model = compiler.compile(program, length=2, vocabulary=[0, 1, 2], feed_forward=kind)
            except CompileError:
                continue
            for inputs in ([0], [1], [2, 0], [1, 2]):
                assert agrees(model(inputs), program(inputs, executor="dense"), program, inputs)


def test_programs_without_any_value_are_refused() -> None:
    never = lookup(tokens, {7: 1})
    with pytest.raises(CompileError, match="undefined for every input"):
        compiler.compile(never, length=2, vocabulary=[0, 1], feed_forward="exact")
    nothing = select(length, length, ">")
    divided = selector_width(nothing) / aggregate(select(length, 1, "<="), length)
    program = aggregate(select(length, aggregate(nothing, length), ">"), divided)
    model = compiler.compile(program, length=4, vocabulary=[0.0, 1, 0.5], feed_forward="exact")
    assert model([1]) == program([1]) == [0.0]
    with pytest.raises(ExecutionError, match="division by zero"):
        model([1, 1])
    compared = selector_width(select(lookup(lookup(tokens_bool, {7: 1}), {2: 0}), tokens, "<"))
    with pytest.raises(CompileError):
        compiler.compile(compared, length=3, numeric=True, ranges=(-4, 4), feed_forward="gelu")


@pytest.mark.parametrize("tiny", [1e-300, 2.0**-200, 2.0**-149, 1e-40])
@pytest.mark.parametrize("kind", ["exact", "glu"])
def test_numbers_below_those_of_float32_are_within_the_bound(tiny: float, kind: str) -> None:
    """Count what is lost of numbers that become 0: rounding is not in proportion to them."""
    here = select(indices, indices, "==")
    last = select(indices, length - 1 - indices, "==")
    for program in (aggregate(last, constant(tiny), 0), aggregate(here, tokens, tiny), tokens * tiny):
        model = compiler.compile(
            program, length=3, vocabulary=[0.0, 1.0, tiny], dtype="float32", feed_forward=kind
        )
        for inputs in ([1.0], [tiny, 0.0], [tiny, tiny, 1.0]):
            error = difference(model, program, inputs)
            assert error is not None
            assert error <= model.error_bound
    count = selector_width(select(tokens, tiny, ">="))
    model = compiler.compile(count, length=2, numeric=True, feed_forward="exact")
    assert model([0.5, 0.0]) == [1, 1]


def test_types_where_booleans_are_among_the_tokens() -> None:
    for program in (maximum(tokens, tokens), aggregate(select(tokens, tokens, "<="), tokens)):
        vocabulary = [0, 1, True, 0.5]
        model = compiler.compile(program, length=3, vocabulary=vocabulary, feed_forward="exact")
        for inputs in ([True], [0.5, 0, True], [True, 1, True], [1, True]):
            expected = program(inputs, executor="dense")
            assert agrees(model(inputs), expected, program, vocabulary), inputs


@pytest.mark.parametrize("kind", ["relu", "gelu", "glu"])
@pytest.mark.parametrize("large", [2**30, 2**45, 2**52, 2**53, 2.0**70, 1e300])
@pytest.mark.parametrize(
    "program",
    [
        minimum(tokens, indices),
        where((indices == tokens) & (indices != 1), 0, length),
        floor(aggregate(select(indices, indices - 1, "=="), tokens) / 2) + (indices == tokens),
    ],
)
def test_tables_of_numbers_far_apart(program: SOp, large: float, kind: str) -> None:
    """Refuse tables by a code in which floats merge numbers; two values became one."""
    try:
        model = compiler.compile(program, length=2, vocabulary=[0, 1, large, 10**6], feed_forward=kind)
    except CompileError:
        assert large > 2**40
        return
    for inputs in ([1, 10**6], [large, 0], [1, 1], [0, 0], [large, large], [0, 1], [1, 0], [0, large]):
        error = difference(model, program, inputs)
        assert error is not None
        assert error <= model.error_bound, inputs


@pytest.mark.parametrize("kind", ["relu", "gelu", "glu"])
def test_tables_with_keys_a_rounding_apart(kind: str) -> None:
    """Tables with keys of one value that only rounding tells apart once had NaN for weights."""
    earlier = select(indices, indices, "<")
    keys, queries = lookup(tokens, {"a": 1, "b": 2, "c": 0}), lookup(tokens, {"a": 1, "b": 0, "c": 2})
    place = aggregate(best(select(keys, queries, "==") & earlier, -indices), indices, -1)
    later = selector_width(select(tokens, "c", "==") & select(indices, indices, ">"))
    program = (later + place - lookup(tokens, {"a": 0, "b": 2, "c": 1})) % 3
    model = compiler.compile(program, length=4, vocabulary="abc", feed_forward=kind)
    assert all(np.isfinite(tensor).all() for _, tensor in model.weights.named())
    assert model.error_bound < 1e-3
    for inputs in product("abc", repeat=4):
        assert model(list(inputs)) == program(list(inputs))


def test_the_nearest_integer_of_a_mean_is_right_or_refused() -> None:
    """Means of 30 positions are too many for a table; 2.5 is as near to 2 as to 3."""
    half = aggregate(select(constant("z"), "z", "!="), indices, 2.5)
    above = aggregate(select(5, indices, ">") & select(indices, indices, ">"), indices, -2)
    picked = aggregate(best(~select(constant("a"), tokens, "=="), above), half, 2.5)
    program = round(picked) % 3
    assert program("n" * 30) == [2] * 30
    with pytest.raises(CompileError, match="an argument of round with finitely many"):
        compiler.compile(program, length=30, vocabulary="n")
