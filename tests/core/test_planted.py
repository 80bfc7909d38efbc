"""The random programs find planted faults: an interpreter with a fault takes the place of Locum."""

from __future__ import annotations

import operator
import random
from typing import Any, ClassVar

import pytest
from hypothesis import Phase, find, settings

from tests.core.programs import DISCRETE, POSITIONAL, POSITIONS, cases
from tests.core.reference import ELEMENTWISE, Run, UndefinedError


class FirstOfTies(Run):
    """`best` selects only the first of several keys with the largest score."""

    def best(self, row: list[bool], scores: list[Any]) -> list[bool]:
        chosen = super().best(row, scores)
        return [here and not any(chosen[:key]) for key, here in enumerate(chosen)]


class NarrowMask(Run):
    """A selector of the keys up to the query excludes the query."""

    def compute(self, p: Any, heads: dict[str, int]) -> list[Any]:
        return super().compute((*p[:3], "<") if p[0] == "select" and p[3] == "<=" else p, heads)


class IntegerMean(Run):
    """The mean of integers is an integer."""

    def mean(self, values: list[Any]) -> Any:
        mean = super().mean(values)
        return int(mean) if all(isinstance(v, int) for v in values) else mean


class NoDefault(Run):
    """A head that selects no key returns 0, or the empty text."""

    def aggregate(self, rows: list[list[bool]], values: list[Any], default: Any) -> list[Any]:
        return super().aggregate(rows, values, type(default)())


class SwappedOperands(Run):
    """A difference has its operands in the wrong order."""

    elementwise: ClassVar = {**ELEMENTWISE, "subtract": lambda a, b: operator.sub(b, a)}


STRATEGIES = {
    "test_meaning": cases(),
    "test_positions": cases(
        8, ("whole",), operations=POSITIONS, typed=1.0, kind="number", useful=POSITIONAL
    ),
    "test_compile": cases(6, ("digits",), operations=DISCRETE, typed=1.0, kind="number"),
}


@pytest.mark.parametrize("fault", [FirstOfTies, NarrowMask, IntegerMean, NoDefault, SwappedOperands])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_fault_is_found(strategy: str, fault: type[Run]) -> None:
    """At most 200 programs are drawn until one has another value."""

    def differs(case: Any) -> bool:
        program, tokens = case
        try:
            wanted = Run(tokens).defined(program)
        except UndefinedError:
            return False
        try:
            found = fault(tokens).defined(program)
        except UndefinedError:
            return True
        return repr(found) != repr(wanted)

    only = settings(max_examples=200, database=None, phases=[Phase.generate])
    program, tokens = find(STRATEGIES[strategy], differs, settings=only, random=random.Random(0))
    assert differs((program, tokens))
