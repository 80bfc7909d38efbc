"""Ranks in a total order of positions are all different: a head that looks one up selects one key."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from locum import Selector, SOp, aggregate, indices, select, selector_width, tokens
from locum.graph.node import node_of
from locum.networks import compiler
from locum.networks.compiler.program.patterns import Patterns
from locum.networks.compiler.target import Target
from tests.compiler.agreement import is_close

_VOCABULARY = (0, 1, 3)
_LENGTH = 4
_LESS, _SAME = select(tokens, tokens, "<"), select(tokens, tokens, "==")
_BEFORE = select(indices, indices, "<")
_CODE, _ODD = tokens + indices / 10, tokens % 2
_STABLE = _LESS | (_SAME & _BEFORE)

#: Orders of the positions, and whether ranks in them are all different.
_ORDERS: dict[str, tuple[Selector, bool]] = {
    "stable": (_STABLE, True),
    "descending": ((select(indices, indices, ">=") & _SAME) | select(tokens, tokens, ">"), True),
    "by a code": (select(_CODE, _CODE, "<"), True),
    "by a code, with itself": (select(_CODE, _CODE, ">="), True),
    "three keys": (select(_ODD, _ODD, "<") | (select(_ODD, _ODD, "==") & _STABLE), True),
    "ties": (_LESS, False),
    "equal ones counted": (select(tokens, tokens, "<=") | (_SAME & _BEFORE), False),
    "another key": (_LESS | (select(_ODD, _ODD, "==") & _BEFORE), False),
    "not of two": (select(tokens, indices, "<") | (_SAME & _BEFORE), False),
    "codes that meet": (select(tokens + indices, tokens + indices, "<"), False),
    "not equal": (_LESS | (select(tokens, tokens, "!=") & _BEFORE), False),
}  # fmt: skip


def _are_different(rank: SOp) -> bool:
    inputs = (word for n in range(1, _LENGTH + 1) for word in product(_VOCABULARY, repeat=n))
    return all(len(set(rank(list(word)))) == len(word) for word in inputs)


@pytest.mark.parametrize("name", _ORDERS)
def test_ranks_are_known_to_be_different(name: str) -> None:
    order, different = _ORDERS[name]
    rank = selector_width(order)
    patterns = Patterns(Target(length=_LENGTH, vocabulary=_VOCABULARY))
    assert patterns.unique(node_of(select(rank, indices, "=="))) == different
    assert _are_different(rank) == different


@pytest.mark.parametrize("options", [{}, {"dtype": "float32"}, {"attention": "softmax"}])
@pytest.mark.parametrize("name", _ORDERS)
def test_keys_that_are_looked_up_by_rank(name: str, options: dict[str, Any]) -> None:
    program = aggregate(select(selector_width(_ORDERS[name][0]), indices, "=="), tokens, -1)
    model = compiler.compile(program, length=_LENGTH, vocabulary=_VOCABULARY, **options)
    tolerance = (model.error_bound or 0) + 1e-12
    for word in product(_VOCABULARY, repeat=_LENGTH):
        assert is_close(model(list(word)), program(list(word)), tolerance), word


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("length", [5, 10])
def test_sorting_takes_three_layers(length: int, dtype: str) -> None:
    rank = selector_width(_STABLE)
    program = aggregate(select(rank, indices, "=="), tokens)
    options: dict[str, Any] = {"attention": "softmax", "dtype": dtype}
    model = compiler.compile(program, length=length, vocabulary=range(10), **options)
    assert model.architecture.layers == 3
    assert model.error_bound == 0
