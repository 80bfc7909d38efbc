"""Counts of what a predicate selects: as small as its conditions, and right on every input."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

import locum
from locum import SOp, aggregate, indicator, indices, length, select, selector_width, tokens
from locum.networks.compiler.scoring.factoring import factored
from locum.networks.compiler.scoring.scored_selectors import Selectors
from locum.networks.compiler.target import Target
from tests.compiler.agreement import is_close

pytestmark = pytest.mark.slow

VOCABULARY = [0, 1, 2]
WAYS: list[dict[str, Any]] = [
    {"attention": "softmax"},
    {"attention": "hard"},
    {"feed_forward": "exact"},
    {"feed_forward": "gelu", "attention": "softmax"},
    {"feed_forward": "glu"},
    {"dtype": "float32", "attention": "softmax"},
    {"fixed": True},
    {"reuse_slots": False},
]
COUNT = selector_width(select(tokens, tokens, "=="))


def predicate(holds: Callable[[int, int], bool], size: int, code: SOp = tokens * 100 + indices) -> Any:
    """Select pairs (t, i), coded as 100·t + i."""
    values = [100 * t + i for t in VOCABULARY for i in range(size)]
    return select(code, code, holds, over=[values, values])


def agree(program: SOp, size: int, **options: Any) -> Any:
    """Compare the network with dense execution on all inputs; return the network."""
    model = locum.compile(program, length=size, vocabulary=VOCABULARY, **options)
    bound = model.config.report["error_bound"] or 1e-9
    for short in range(size if options.get("fixed") else 1, size + 1):
        for inputs in product(VOCABULARY, repeat=short):
            assert is_close(model(list(inputs)), program(list(inputs)), bound), inputs
    return model


def size_of(model: Any) -> tuple[int, int]:
    return len(model.weights.layers), model.weights.W_E.shape[-1]


PREDICATES: dict[str, Callable[[int, int], bool]] = {
    "both": lambda k, q: k // 100 == q // 100 and k % 100 <= q % 100,
    "an order and a class": lambda k, q: k // 100 < q // 100 and k % 2 == q % 2,
    "no order": lambda k, q: (k // 100, q // 100) in {(0, 1), (1, 2), (2, 2)} and k % 100 != q % 100,
    "no conjunction": lambda k, q: k // 100 == q // 100 or k % 100 < q % 100,
    "crossed": lambda k, q: k // 100 == q % 100 and q // 100 <= k % 100,
}


@pytest.mark.parametrize("way", range(len(WAYS)))
@pytest.mark.parametrize("name", PREDICATES)
def test_counts_of_predicates_are_right(name: str, way: int) -> None:
    agree(selector_width(predicate(PREDICATES[name], 3)), 3, **WAYS[way])


@pytest.mark.parametrize("name", PREDICATES)
def test_a_count_is_not_deeper_than_a_mean(name: str) -> None:
    selector = predicate(PREDICATES[name], 4)
    options: dict[str, Any] = {"length": 4, "vocabulary": VOCABULARY, "attention": "softmax"}
    mean = size_of(locum.compile(aggregate(selector, tokens), **options))
    count = size_of(locum.compile(selector_width(selector), **options))
    assert count[0] <= mean[0] + 1
    assert count[1] <= 2 * mean[1]


def test_a_predicate_of_pairs_is_a_conjunction() -> None:
    selector = predicate(PREDICATES["both"], 8)
    model = locum.compile(selector_width(selector), length=8, vocabulary=VOCABULARY)
    both = select(tokens, tokens, "==") & select(indices, indices, "<=")
    same = locum.compile(selector_width(both), length=8, vocabulary=VOCABULARY)
    assert size_of(model) == size_of(same)
    assert size_of(model)[0] == 1


def test_only_conjunctions_are_factored() -> None:
    values = Selectors(Target(length=4, vocabulary=(0, 1, 2))).values
    parts = {name: factored(predicate(f, 4).node, values) for name, f in PREDICATES.items()}
    assert {name for name, found in parts.items() if found is None} == {"no conjunction"}
    assert parts["crossed"] == [
        select(indices, tokens, ">=").node,
        select(tokens, indices, "==").node,
    ]


def test_a_predicate_of_counts_is_a_conjunction() -> None:
    values = [100 * c + t for c in range(6) for t in VOCABULARY]
    code = COUNT * 100 + tokens
    holds = PREDICATES["both"]
    model = agree(selector_width(select(code, code, holds, over=[values, values])), 4)
    assert size_of(model)[0] <= 3


OF_POSITIONS: dict[str, tuple[Any, int]] = {
    "up to here": (select(indices, indices, "<="), 0),
    "before": (select(indices, indices, "<"), 0),
    "the same half": (select(indices // 2, indices // 2, "=="), 1),
    "from here": (select(indices, indices, ">="), 1),
    "others": (select(indices, indices, "!="), 1),
    "all": (locum.full, 1),
    "even": (select(indices % 2, 0, "=="), 1),
    "from the end": (select(indices, length - indices, ">="), 1),
    "one more": (select(indices, indices + 1, "<="), 1),
    "one": (select(indices, 0, "=="), 0),
    "none": (~locum.full, 0),
}


@pytest.mark.parametrize("way", range(len(WAYS)))
@pytest.mark.parametrize("name", OF_POSITIONS)
def test_widths_of_positions_are_functions_of_the_position(name: str, way: int) -> None:
    selector, layers = OF_POSITIONS[name]
    model = agree(selector_width(selector), 4, **WAYS[way])
    assert len(model.weights.layers) <= layers


@pytest.mark.parametrize("name", ["up to here", "before", "one"])
def test_widths_of_positions_in_decoders(name: str) -> None:
    selector, _ = OF_POSITIONS[name]
    assert not agree(selector_width(selector), 4, causal=True).weights.layers


def test_means_of_positions_need_no_head() -> None:
    for value in (indices, indices * indices, indices % 2):
        mean = aggregate(select(indices, indices, "<="), value)
        assert not agree(mean, 4, attention="softmax").weights.layers


def test_a_long_width_of_positions_takes_no_layer() -> None:
    prefix = selector_width(select(indices, indices, "<="))
    model = locum.compile(prefix, length=600, vocabulary="ab")
    assert not model.weights.layers
    assert model("a" * 600) == list(range(1, 601))


FIRST = select(indices, 0, "==")
RANK = COUNT * 40 - tokens * 3 - indices


def counted_by_first(selector: Any) -> SOp:
    """Count without selector_width: the share of position 0, which is always selected."""
    return round(1 / aggregate(selector | FIRST, indicator(indices == 0))) - 1


SHARES: dict[str, SOp] = {
    "equal tokens": counted_by_first(select(tokens, tokens, "==")),
    "an order, ties by position": counted_by_first(
        select(COUNT, COUNT, "<") | (select(COUNT, COUNT, "==") & select(indices, indices, "<"))
    ),
    "many values": counted_by_first(select(RANK, RANK, "<")),
    "twice the share": aggregate(select(tokens, tokens, "<") | FIRST, 2 * indicator(indices == 0)),
    "not always selected": aggregate(select(tokens, tokens, "=="), indicator(indices == 0), 3),
}


@pytest.mark.parametrize("way", range(len(WAYS)))
@pytest.mark.parametrize("name", SHARES)
def test_counts_without_selector_width_are_right(name: str, way: int) -> None:
    agree(SHARES[name], 4, **WAYS[way])


def test_counts_without_selector_width_are_as_small() -> None:
    options: dict[str, Any] = {"length": 8, "vocabulary": VOCABULARY}
    count = locum.compile(SHARES["equal tokens"], **options)
    assert size_of(count) <= (1, 8)
    ordered = locum.compile(SHARES["an order, ties by position"], **options)
    assert size_of(ordered)[1] <= 32


@pytest.mark.parametrize("way", range(len(WAYS)))
@pytest.mark.parametrize("predicate", ["<", "<=", ">", ">=", "!="])
def test_counts_of_many_values_are_right(predicate: str, way: int) -> None:
    agree(selector_width(select(RANK, 10 * tokens + COUNT, predicate)), 4, **WAYS[way])


def test_comparing_many_values_takes_fewer_slots_than_values() -> None:
    ranked = selector_width(select(tokens + indices / 10, tokens + indices / 10, "<"))
    model = locum.compile(ranked, length=20, vocabulary=range(10), attention="softmax")
    assert size_of(model) <= (3, 40)
    for inputs in ([3], [9, 0] * 10, list(range(10)), [0] * 20):
        assert model(inputs) == ranked(inputs)
