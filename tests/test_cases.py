"""Every executor on every case of the table."""

from __future__ import annotations

import math

import pytest

from locum import ExecutionError, Selector
from locum.execution import EXECUTORS
from tests.cases import CASES, FAILURES, Case, Failure

#: Those that run every program; ``heads`` runs programs on numbers (tests/execution/test_heads.py).
COMPLETE = [executor for executor in EXECUTORS if executor != "heads"]


@pytest.mark.filterwarnings("ignore::locum.execution.fast.FallbackWarning")
@pytest.mark.parametrize("executor", COMPLETE)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(case: Case, executor: str) -> None:
    value = case.program(case.given, executor=executor)
    if isinstance(case.program, Selector):
        assert value.tolist() == case.expected
        return
    if executor == "dense":  # the others compute in arrays: 1, 1.0 and True are one number there
        assert [type(v) for v in value] == [type(v) for v in case.expected]
    assert [isinstance(v, str) for v in value] == [isinstance(v, str) for v in case.expected]
    for actual, expected in zip(value, case.expected, strict=True):
        if isinstance(expected, float):
            assert math.isclose(actual, expected, rel_tol=1e-12, abs_tol=1e-15)
        else:
            assert actual == expected


@pytest.mark.filterwarnings("ignore::locum.execution.fast.FallbackWarning")
@pytest.mark.parametrize("executor", COMPLETE)
@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: failure.name)
def test_failure(failure: Failure, executor: str) -> None:
    with pytest.raises(ExecutionError) as caught:
        failure.program(failure.given, executor=executor)
    for words in failure.words:
        assert words in str(caught.value)


def test_the_table_covers_every_operation() -> None:
    from locum.graph import OPERATIONS, postorder

    used = {node.op for case in CASES for node in postorder(case.program.node)}
    assert used == set(OPERATIONS)


def test_names_are_unique() -> None:
    names = [case.name for case in CASES] + [failure.name for failure in FAILURES]
    assert len(names) == len(set(names))
