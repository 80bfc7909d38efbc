"""Widths as sums of widths: unions, and keys ordered by one thing first and then by another."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

import locum
from locum import SOp, aggregate, indicator, indices, length, select, selector_width, tokens
from locum.networks.compiler.scoring.candidates import split
from locum.networks.compiler.scoring.scored_selectors import Selectors
from locum.networks.compiler.target import Target

SAME, LESS = select(tokens, tokens, "=="), select(tokens, tokens, "<")
BEFORE, AFTER = select(indices, indices, "<"), select(indices, indices, ">")
COUNT = selector_width(SAME)
KEYS = tokens * 10 + indices
FALLING = -tokens - indices / 100


def ordered(predicate: str, keys: SOp) -> SOp:
    return selector_width(select(keys, keys, predicate))


#: Each is counted by several heads where one would be dear; the number is how many of them.
PROGRAMS: dict[str, tuple[SOp, int]] = {
    "disjoint": (selector_width(select(COUNT, COUNT, "<") | (select(COUNT, COUNT, "==") & BEFORE)), 2),
    "overlapping": (selector_width(select(COUNT, COUNT, ">") | AFTER), 2),
    "not both": (selector_width(~(select(COUNT, COUNT, "<=") & BEFORE)), 2),
    "within": (selector_width((select(COUNT, COUNT, "<") | SAME) & BEFORE), 3),
    "rising": (ordered("<", KEYS), 2),
    "or equal": (ordered(">=", KEYS), 2),
    "falling": (ordered("<", FALLING), 2),
    "falling, or equal": (ordered("<=", FALLING), 2),
    "by frequency": (ordered("<", indices / 64 - COUNT), 2),
    "by digits": (ordered("<", COUNT * 8 + tokens * 3 + indices), 2),
    "by digits, or equal": (ordered(">=", COUNT * 8 + tokens * 3 + indices), 2),
    "different": (selector_width(select(COUNT, tokens, "!=")), 2),
    "different, before": (selector_width(select(COUNT, COUNT, "!=") & BEFORE), 2),
    "longer first": (ordered(">", length + indices / 64), 2),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_split_has_the_same_width(name: str) -> None:
    program, heads = PROGRAMS[name]
    selector = program.node.inputs[0]
    target = Target(length=4, vocabulary=(0, 1, 2))
    parts = split(selector, Selectors(target).values)
    assert parts is not None
    assert len(parts) == heads
    for inputs in itertools.product([0, 1, 2], repeat=4):
        widths = [
            [sign * width for width in SOp(locum.graph.build("selector_width", part))(list(inputs))]
            for part, sign in parts
        ]
        assert [sum(column) for column in zip(*widths, strict=True)] == program(list(inputs))


@pytest.mark.parametrize("options", [{"feed_forward": "exact"}, {}, {"attention": "softmax"}])
@pytest.mark.parametrize("name", PROGRAMS)
def test_networks_of_what_is_split(name: str, options: dict[str, Any]) -> None:
    program, _ = PROGRAMS[name]
    model = locum.compile(program, length=7, vocabulary=(0, 1, 2), **options)
    draw = random.Random(name)
    for _ in range(12):
        inputs = [draw.choice([0, 1, 2]) for _ in range(draw.randint(1, 7))]
        assert model(inputs) == program(inputs), inputs


def test_few_values_that_are_not_ordered_by_parts_are_not_split() -> None:
    values = Selectors(Target(length=4, vocabulary=(0, 1, 2))).values
    for keys in (tokens + indices, tokens * 5 + indices * indices, tokens * indices):
        assert split(select(keys, keys, "<").node, values) is None
    assert split(select(KEYS, KEYS, "==").node, values) is None
    assert split(select(KEYS, indices, "<").node, values) is None


def test_sorting_at_fifty() -> None:
    """Tracr's sort by frequency: two heads count, where every key was brought to every position."""
    program = aggregate(select(ordered("<", indices / 50 - COUNT), indices, "=="), tokens)
    model = locum.compile(program, length=50, vocabulary=range(5), attention="softmax")
    assert len(model.weights.layers) <= 6
    draw = random.Random(0)
    for size in (1, 37, 50):
        inputs = [draw.randrange(5) for _ in range(size)]
        assert model(inputs) == program(inputs)


def test_means_of_the_same_keys_are_apart() -> None:
    """(k − l)/m is 0 or at least 1/50 from it, though too many fractions to be listed."""
    prefix = select(indices, indices, "<=")
    opened, closed = (aggregate(prefix, indicator(tokens == b)) for b in "()")
    for program in (opened - closed < 0, closed == opened):
        model = locum.compile(program, length=50, vocabulary="()x", attention="softmax")
        draw = random.Random(4)
        for _ in range(6):
            inputs = [draw.choice("()x") for _ in range(draw.randint(1, 50))]
            assert model(inputs) == program(inputs)
    other = aggregate(prefix, indicator(tokens == "x"), 0.5)
    with pytest.raises(locum.CompileError, match="separation"):
        locum.compile(opened - closed < other, length=50, vocabulary="()x")
