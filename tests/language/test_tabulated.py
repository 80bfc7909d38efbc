"""Python functions and predicates as tables."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

import locum
from locum import aggregate, indices, length, select, selector_width, tokens
from locum.errors import GraphError

WORDS = ("ab", "b", "")
UNITS: dict[str, Any] = {"attention": "softmax", "length": 6}
#: What no type checker lets through.
NO_VALUES: Any = 3
NO_FUNCTION: Any = "len"


def test_functions_of_one_and_of_several_s_ops() -> None:
    size = locum.map(len, tokens, over=WORDS)
    assert size(list(WORDS)) == [2, 1, 0]
    both = locum.map(lambda t, i, n: f"{t}{i}/{n}", tokens, indices, length, over=("ab", range(3), [3]))
    assert both("bab") == ["b0/3", "a1/3", "b2/3"]
    # 1, 1.0 and True are three values to Python and to the table.
    assert locum.map(lambda t: type(t).__name__, tokens, over=[1, 1.5])([1, 1.5]) == ["int", "float"]


def test_none_and_what_has_no_value() -> None:
    half = locum.map(lambda t: t // 2 if t % 2 == 0 else None, tokens, over=range(-4, 5))
    assert half([3, 4, -4]) == [-3, 2, -2]
    named = locum.map({"a": "x"}.get, tokens, over="ab")
    assert named("ab") == ["x", "None"]
    inverse = locum.map(lambda t: 1 / t, tokens, over=[0, 1, 2])
    assert inverse([1, 2]) == [1.0, 0.5]
    for inputs in ([0], [3]):
        with pytest.raises(locum.LocumError, match="expected a key of the lookup table"):
            inverse(inputs)


@pytest.mark.parametrize("options", [{"feed_forward": "exact"}, {}, {"feed_forward": "gelu"}])
def test_networks_of_functions_and_predicates(options: dict[str, Any]) -> None:
    rhymes = select(tokens, tokens, lambda k, q: k[-1:] == q[-1:] and k != q, over=(WORDS, WORDS))
    programs = [
        locum.map(lambda t, i: len(t) * i % 3, tokens, indices, over=(WORDS, range(6))),
        selector_width(rhymes),
        aggregate(locum.best(rhymes, indices), tokens, "none"),
    ]
    draw = random.Random(0)
    for program in programs:
        model = locum.compile(program, vocabulary=WORDS, **UNITS, **options)
        for _ in range(8):
            inputs = [draw.choice(WORDS) for _ in range(draw.randint(1, 6))]
            assert model(inputs) == program(inputs)


def test_any_predicate_selects_what_it_holds_for() -> None:
    draw = random.Random(1)
    for _ in range(20):
        holds = {pair: draw.random() < 0.4 for pair in itertools.product(range(4), range(3))}

        def predicate(k: int, q: int, holds: dict[tuple[int, int], bool] = holds) -> bool:
            return holds[k, q]

        selector = select(tokens, indices, predicate, over=(range(4), range(3)))
        for inputs in itertools.islice(itertools.product(range(4), repeat=3), 0, 64, 7):
            expected = [[holds[k, q] for k in inputs] for q in range(3)]
            assert selector(list(inputs)).tolist() == expected


def test_a_predicate_costs_classes() -> None:
    """Sixty values on each side, five kinds of queries: keys of five numbers, not of sixty."""
    kinds = [frozenset(random.Random(kind).sample(range(60), 20)) for kind in range(5)]
    selector = select(tokens, tokens, lambda k, q: k in kinds[q % 5], over=(range(60), range(60)))
    model = locum.compile(selector_width(selector), length=8, vocabulary=range(60))
    assert model.architecture.d_head <= 6
    assert model.architecture.d_model <= 20


def test_values_of() -> None:
    count = selector_width(select(tokens, tokens, "=="))
    assert locum.networks.compiler.values_of(count % 2, vocabulary="ab", length=4) == (0, 1)
    with pytest.raises(locum.CompileError, match="possible values can be listed"):
        locum.networks.compiler.values_of(
            aggregate(locum.full, locum.exp(tokens)), vocabulary=range(9), length=40
        )


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: locum.map(len, tokens, over=NO_VALUES), "expected over=… with values"),
        (lambda: locum.map(len, tokens, over=[]), "one value or more"),
        (lambda: locum.map(len, tokens, over=[[1]]), "numbers, strings or booleans"),
        (lambda: locum.map(NO_FUNCTION, tokens, over="ab"), "expected a function"),
        (lambda: locum.map(len, over="ab"), "one s-op or more"),
        (lambda: locum.map(max, tokens, indices, over="abc"), "2 lists of values"),
        (lambda: locum.map(lambda t: 1 / 0, tokens, over="ab"), "a value for some"),
        (lambda: locum.map(max, tokens, indices, over=(range(200), range(200))), "at most 32,768"),
        (lambda: select(tokens, tokens, lambda k, q: True), "2 lists of values"),
    ],
)
def test_bad_input(call: Any, words: str) -> None:
    with pytest.raises(GraphError, match=words):
        call()


def test_values_that_no_table_tells_apart_are_refused() -> None:
    """Equal values with different results, None above a number, NaN, lists: wrong once, or a crash."""
    with pytest.raises(GraphError, match="one result for values that are equal"):
        locum.map(lambda t: type(t).__name__, tokens, over=[1, 1.0])
    with pytest.raises(GraphError, match="one result for values that are equal"):
        locum.map(lambda t, i: type(t).__name__, tokens, indices, over=([1, 1.0], range(2)))
    with pytest.raises(GraphError, match="together with None"):
        locum.map(lambda t: None if t == "a" else float("-inf"), tokens, over="ab")
    with pytest.raises(GraphError, match="equal to themselves"):
        locum.map(lambda t: float("nan"), tokens, over="ab")
    with pytest.raises(GraphError, match="as values, got"):
        locum.map(lambda t: [t], tokens, over="ab")
    with pytest.raises(GraphError, match="a program holds no vocabulary"):
        locum.map(str.upper, tokens)
    with pytest.raises(GraphError, match="a program holds no vocabulary"):
        locum.select(tokens, tokens, lambda k, q: k == q)
    assert locum.map(str, tokens, over=["a", 1])(["a"]) == ["a"]
    apart = locum.map(lambda t: None if t == "a" else "None", tokens, over="ab")("ab")
    assert len(set(apart)) == 2


#: Queries that select disjoint keys, overlapping ones, none, and all.
PREDICATES: dict[str, Any] = {
    "disjoint": lambda k, q: k == q,
    "overlapping": lambda k, q: k <= q,
    "none": lambda k, q: False,
    "all": lambda k, q: True,
}


@pytest.mark.parametrize("kind", PREDICATES)
@pytest.mark.parametrize("executor", ["dense", "fast"])
def test_values_that_a_predicate_does_not_list_are_refused(kind: str, executor: str) -> None:
    """They counted as not selected, without a word."""
    holds = PREDICATES[kind]
    for program in (
        selector_width(select(tokens, tokens, holds, over=([0, 1, 2], [0, 1, 2]))),
        selector_width(select(tokens, indices, holds, over=([0, 1, 2], [0, 1, 2]))),
        selector_width(select(indices, tokens, holds, over=([0, 1, 2], [0, 1, 2]))),
    ):
        assert program([0, 1, 2], executor=executor) == [
            sum(holds(k, q) for k in range(3)) for q in range(3)
        ]
        for inputs in ([0, 0.5], [7, 1]):
            with pytest.raises(
                locum.LocumError, match=r"expected a key of the lookup table .*, got (0\.5|7)"
            ):
                program(inputs, executor=executor)


@pytest.mark.parametrize("kind", ["disjoint", "overlapping"])
@pytest.mark.parametrize("options", [{"feed_forward": "exact"}, {}])
def test_networks_refuse_values_that_a_predicate_does_not_list(
    kind: str, options: dict[str, Any]
) -> None:
    chosen = select(tokens, tokens, PREDICATES[kind], over=([0, 1, 2], [0, 1, 2]))
    program = selector_width(chosen)
    model = locum.compile(program, vocabulary=[0, 1, 2, 7], **UNITS, **options)
    assert model([2, 0, 1]) == program([2, 0, 1])
    with pytest.raises(locum.LocumError, match="is undefined for this token, in the token 7"):
        model([7, 1])


def test_what_a_predicate_raises_is_refused_with_the_pair() -> None:
    """Such a pair counted as not selected."""
    with pytest.raises(GraphError, match=r"ZeroDivisionError.*for key 0 and query 1"):
        select(tokens, indices, lambda k, q: 1 / k > q, over=([1, 0], [1, 2]))
    with pytest.raises(GraphError, match=r"TypeError.*for key 'a' and query 0"):
        select(tokens, indices, lambda k, q: k < q, over=("a", [0]))
    # None is no value: the function is not asked.
    found = select(tokens, tokens, lambda k, q: k < q, over=([None, 1, 2], [1, 2]))
    assert found([1, 2]).tolist() == [[False, False], [True, False]]


def test_a_predicate_treats_equal_values_alike() -> None:
    """1, 1.0 and True are one key of a table: what tells them apart cannot be one."""
    with pytest.raises(GraphError, match="one result for values that are equal, got False and True"):
        locum.select(tokens, tokens, lambda key, query: key is True, over=([1, True], [1, True]))
    with pytest.raises(GraphError, match="one result for queries that are equal"):
        locum.select(tokens, tokens, lambda key, query: query is True, over=([1, 2], [1, True]))
    alike = locum.select(tokens, tokens, lambda key, query: key == query, over=([1, True], [1, True]))
    assert alike([1, True]).tolist() == [[True, True], [True, True]]
