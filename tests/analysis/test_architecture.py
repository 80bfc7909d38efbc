"""Layers and heads, against the counts of Weiss's own analysis and of the paper."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

import understudy as us
from tests.cases import before, dyck1, histogram, matmul, most_frequent, reverse, sort
from tests.strategies import programs
from understudy import architecture, indices, length, tokens
from understudy.graph import Node

same = us.select(tokens, tokens, "==")
causal = us.select(indices, indices, "<=")


def transpose(rows: int) -> us.SOp:
    """Listing 1 of the paper."""
    columns = length / rows
    reflected = (indices % rows) * columns + (indices - indices % rows) / rows
    return us.aggregate(us.select(indices, reflected, "=="), tokens)


def cofactor() -> us.SOp:
    """Listing 7 of the paper."""
    n = length**0.5
    i, j = (indices - indices % n) / n, indices % n

    def entry(u: int, v: int) -> us.SOp:
        place = (i + u) % n * n + (j + v) % n
        return us.aggregate(us.select(indices, place, "=="), tokens)

    return entry(2, 2) * entry(1, 1) - entry(2, 1) * entry(1, 2)


def determinant(cofactors: us.SOp) -> us.SOp:
    """Listing 8 of the paper."""
    mask = us.select(indices, length**0.5, "<") & us.select(indices, indices, "==")
    return length * us.aggregate(us.full, us.aggregate(mask, tokens * cofactors))


@pytest.mark.parametrize(
    ("program", "heads"),
    [
        (tokens, []),
        (indices * 2 + 1, []),
        (length, [1]),
        (us.aggregate(us.full, indices), [1]),
        (us.aggregate(us.full, indices) + length, [1]),
        (us.aggregate(us.full, length), [1, 1]),
        (histogram, [2]),
        (reverse, [1, 1]),
        (sort(tokens, tokens), [2, 1]),
        (us.aggregate(before, us.aggregate(before, us.aggregate(before, indices))), [1, 1, 1]),
        # Several values through one selector are one head; its negation is another.
        (us.aggregate(before, indices) + us.aggregate(before, tokens), [1]),
        (us.aggregate(before, indices) + us.aggregate(~before, indices), [2]),
        # One selector in two layers is a head in each.
        (us.aggregate(before, us.aggregate(before, indices)) + us.aggregate(before, 1), [1, 1]),
        # Two texts, one structure: one head (Weiss counts two).
        (us.aggregate(us.select(tokens, tokens, "=="), indices) + us.aggregate(same, 1), [1]),
        (dyck1, [1, 1]),
        (us.aggregate(us.best(us.full, indices), tokens), [1]),
        (us.aggregate(us.best(us.full, length), tokens), [1, 1]),
        (transpose(3), [1, 1]),
        (cofactor(), [1, 4]),
        (determinant(cofactor()), [1, 4, 1, 1]),
        (cofactor() / determinant(cofactor()), [1, 4, 1, 1]),
        (matmul(4, 4, 4), [8, 16]),
        (matmul(3, 2, 4), [7, 12]),
    ],
)
def test_counts(program: us.SOp, heads: list[int]) -> None:
    found = architecture(program)
    assert found.heads == heads
    assert found.layers == len(heads)
    assert found.width == max(heads, default=0)


def test_most_frequent_has_the_depth_of_the_paper() -> None:
    assert architecture(most_frequent).layers == 3


def test_a_selector_is_the_head_it_would_be() -> None:
    assert architecture(us.select(indices, length, "<")).heads == [1, 1]


@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 3, 4), (5, 2, 3)])
def test_families_count_all_their_members(shape: tuple[int, int, int]) -> None:
    r, k, c = shape
    assert architecture(matmul(r, k, c)).heads == [r + c, r * c]


def test_families_are_equal_whatever_binds_them() -> None:
    """The same heads under an inner and under an outer sum are counted once."""
    l, m = us.family(3), us.family(2)
    gather = us.aggregate(us.select(indices, l, "=="), tokens)
    inner = us.sum_over(l, gather)
    outer = us.sum_over(l, gather * us.sum_over(m, m + l))
    assert architecture(inner + outer).heads == [3]


def test_heads_serve_their_aggregates() -> None:
    layer = architecture(us.aggregate(before, indices) + us.aggregate(before, tokens)).structure[0]
    assert [len(head.serves) for head in layer] == [2]
    assert layer[0].selector is before.node


@given(programs())
def test_every_layer_has_a_head(program: Node) -> None:
    found: Any = architecture(program)
    assert all(count >= 1 for count in found.heads)
