"""Layers and heads, against the counts of Weiss's own analysis and of the paper."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given

import locum
from locum import indices, length, tokens
from locum.graph import Node, traversal
from locum.rasp import architecture
from tests.cases import before, dyck1, histogram, matmul, most_frequent, reverse, sort
from tests.old.graph.strategies import programs

same = locum.select(tokens, tokens, "==")
causal = locum.select(indices, indices, "<=")


def transpose(rows: int) -> locum.SOp:
    """Listing 1 of the paper."""
    columns = length / rows
    reflected = (indices % rows) * columns + (indices - indices % rows) / rows
    return locum.aggregate(locum.select(indices, reflected, "=="), tokens)


def cofactor() -> locum.SOp:
    """Listing 7 of the paper."""
    n = length**0.5
    i, j = (indices - indices % n) / n, indices % n

    def entry(u: int, v: int) -> locum.SOp:
        place = (i + u) % n * n + (j + v) % n
        return locum.aggregate(locum.select(indices, place, "=="), tokens)

    return entry(2, 2) * entry(1, 1) - entry(2, 1) * entry(1, 2)


def determinant(cofactors: locum.SOp) -> locum.SOp:
    """Listing 8 of the paper."""
    mask = locum.select(indices, length**0.5, "<") & locum.select(indices, indices, "==")
    return length * locum.aggregate(locum.full, locum.aggregate(mask, tokens * cofactors))


@pytest.mark.parametrize(
    ("program", "heads"),
    [
        (tokens, []),
        (indices * 2 + 1, []),
        (length, [1]),
        (locum.aggregate(locum.full, indices), [1]),
        (locum.aggregate(locum.full, indices) + length, [1]),
        (locum.aggregate(locum.full, length), [1, 1]),
        (histogram, [2]),
        (reverse, [1, 1]),
        (sort(tokens, tokens), [2, 1]),
        (locum.aggregate(before, locum.aggregate(before, locum.aggregate(before, indices))), [1, 1, 1]),
        # Several values through one selector are one head; its negation is another.
        (locum.aggregate(before, indices) + locum.aggregate(before, tokens), [1]),
        (locum.aggregate(before, indices) + locum.aggregate(~before, indices), [2]),
        # One selector in two layers is a head in each.
        (
            locum.aggregate(before, locum.aggregate(before, indices)) + locum.aggregate(before, 1),
            [1, 1],
        ),
        # Two texts, one structure: one head (Weiss counts two).
        (locum.aggregate(locum.select(tokens, tokens, "=="), indices) + locum.aggregate(same, 1), [1]),
        (dyck1, [1, 1]),
        (locum.aggregate(locum.best(locum.full, indices), tokens), [1]),
        (locum.aggregate(locum.best(locum.full, length), tokens), [1, 1]),
        (transpose(3), [1, 1]),
        (cofactor(), [1, 4]),
        (determinant(cofactor()), [1, 4, 1, 1]),
        (cofactor() / determinant(cofactor()), [1, 4, 1, 1]),
        (matmul(4, 4, 4), [8, 16]),
        (matmul(3, 2, 4), [7, 12]),
    ],
)
def test_counts(program: locum.SOp, heads: list[int]) -> None:
    result = architecture(program)
    assert result.heads == heads
    assert result.layers == len(heads)
    assert result.width == max(heads, default=0)


def test_most_frequent_has_the_depth_of_the_paper() -> None:
    assert architecture(most_frequent).layers == 3


def test_a_selector_is_the_head_it_would_be() -> None:
    assert architecture(locum.select(indices, length, "<")).heads == [1, 1]


@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 3, 4), (5, 2, 3)])
def test_families_count_all_their_members(shape: tuple[int, int, int]) -> None:
    r, k, c = shape
    assert architecture(matmul(r, k, c)).heads == [r + c, r * c]


def test_families_are_equal_whatever_binds_them() -> None:
    """The same heads under an inner and under an outer sum are counted once."""
    l, m = locum.family(3), locum.family(2)
    gather = locum.aggregate(locum.select(indices, l, "=="), tokens)
    inner = locum.sum_over(l, gather)
    outer = locum.sum_over(l, gather * locum.sum_over(m, m + l))
    assert architecture(inner + outer).heads == [3]


def test_heads_serve_their_aggregates() -> None:
    layer = architecture(locum.aggregate(before, indices) + locum.aggregate(before, tokens)).structure[
        0
    ]
    assert [len(head.serves) for head in layer] == [2]
    assert layer[0].selector is before.node


@given(programs())
def test_every_layer_has_a_head(program: Node) -> None:
    result: Any = architecture(program)
    assert all(count >= 1 for count in result.heads)


@pytest.mark.parametrize("members", [1, 3])
def test_counting_heads_visits_each_node_a_few_times(
    members: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice as many heads, each computed from the one before, are twice as much work."""
    visited = 0
    walk = traversal.walk

    def counting(*arguments: Any) -> Iterator[Any]:
        nonlocal visited
        for part in walk(*arguments):
            visited += 1
            yield part

    monkeypatch.setattr(traversal, "walk", counting)
    work = []
    for heads in (100, 200, 400):
        x = indices
        for _ in range(heads):
            row = locum.family(members)
            at = locum.select(indices, x, "==") & locum.select(indices, row, ">=")
            x = locum.sum_over(row, locum.aggregate(at, x))
        visited = 0
        assert sum(architecture(x).heads) == members * heads
        work.append(visited)
    assert work[2] - work[1] == 2 * (work[1] - work[0])
