"""Elementwise operations: one table, and every executor agrees with dense execution at the edges."""

from __future__ import annotations

import gc

import pytest

import locum
from locum.execution import fast
from locum.execution.elementwise import MEANINGS
from locum.graph import OPERATIONS
from locum.graph.node import pool_size


def test_every_elementwise_operation_has_a_meaning() -> None:
    assert set(MEANINGS) == {row.name for row in OPERATIONS.values() if row.elementwise}


def test_programs_that_fell_back_are_forgotten() -> None:
    """What was warned of is held weakly: it used to keep every such program alive."""
    fast.forget_plans()
    gc.collect()
    before = pool_size()
    for number in range(40):
        program = locum.tokens + f"{number:0100}"  # too long for an array of strings
        with pytest.warns(fast.FallbackWarning):
            program("ab", executor="fast")
    del program
    gc.collect()
    assert pool_size() <= before + 2
