"""Keys that are positions or tokens, shifted by a number that is the same at all positions."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

import locum
from locum import aggregate, full, indices, length, select, selector_width, tokens
from locum.networks.compiler.scoring.scored_selectors import Selectors
from locum.networks.compiler.target import Target
from tests.compiler.agreement import is_close

ONES = selector_width(select(tokens, 1, "=="))
#: S-ops with one value at all positions of an input, and others.
SAME = {
    "length": length,
    "width": ONES,
    "sum": 2 * length - ONES,
    "last": aggregate(select(indices, length - 1, "=="), tokens),
    "mean": aggregate(full, tokens),
}
OTHER = {
    "token": tokens,
    "before": selector_width(select(indices, indices, "<")),
    "equal": selector_width(select(tokens, tokens, "==")),
}
WAYS: dict[str, Any] = {
    "plus": lambda key, shift: key + shift,
    "swapped": lambda key, shift: shift + key,
    "minus": lambda key, shift: key - shift,
    "twice": lambda key, shift: key - shift + shift - shift,
    "negative": lambda key, shift: shift - key,
}


def selectors() -> Selectors:
    return Selectors(Target.read(length=3, vocabulary=(0, 1, 3)))


@pytest.mark.parametrize("shift", [*SAME, *OTHER])
@pytest.mark.parametrize("way", WAYS)
def test_right_on_all_inputs(way: str, shift: str) -> None:
    by = (SAME | OTHER)[shift]
    for key, query in ((indices, indices + 1), (tokens, indices)):
        selector = select(WAYS[way](key, by), query, "==")
        program = aggregate(selector, tokens + 5, -1) + 10 * selector_width(selector)
        model = locum.compile(program, length=3, vocabulary=(0, 1, 3))
        for count in range(1, 4):
            for word in map(list, itertools.product((0, 1, 3), repeat=count)):
                assert is_close(model(word), program(word), max(1e-9, model.error_bound)), word


@pytest.mark.parametrize("way", [way for way in WAYS if way != "negative"])
def test_one_key_at_most(way: str) -> None:
    for name, shift in SAME.items():
        unique = selectors().unique(select(WAYS[way](indices, shift), indices, "==").node)
        assert unique == (name != "mean"), name  # sums of fractions may be rounded to one number
    for name, shift in OTHER.items():
        assert not selectors().unique(select(WAYS[way](indices, shift), tokens, "==").node) or (
            name == "before"
        )
        assert not selectors().unique(select(WAYS[way](tokens, shift), indices, "==").node)
