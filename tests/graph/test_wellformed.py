"""The specification accepts what front ends build and rejects what the table does not allow."""

from __future__ import annotations

import pytest
from hypothesis import given

import locum
from locum.graph import Node, build, family, problems
from tests.cases import CASES
from tests.strategies import programs

INDICES = build("indices")
FULL = locum.full.node


@given(programs())
def test_random_programs_are_legal(program: Node) -> None:
    assert problems(program) == []


def test_all_cases_are_legal() -> None:
    for case in CASES:
        assert problems(case.program.node) == [], case.name


@pytest.mark.parametrize(
    ("op", "inputs", "attributes", "words"),
    [
        ("sinh", (INDICES,), {}, "there is no operation 'sinh'"),
        ("add", (INDICES,), {}, "add: expected 2 input(s), got 1"),
        ("add", (INDICES, FULL), {}, "add: expected an s-op as input 2, got a selector"),
        ("aggregate", (INDICES, INDICES), {"default": 0}, "expected a selector as input 1"),
        ("select", (INDICES, INDICES), {}, "expected the attributes ['predicate'], got []"),
        ("select", (INDICES, INDICES), {"predicate": "=<"}, "one of ==, !=, <, <=, >, >="),
        ("tokens", (), {"cast": "complex"}, "one of asis, str, int, float, bool"),
        ("constant", (), {"value": (1, 2)}, "expected a bool, an int, a float or a string"),
        ("member", (INDICES,), {"values": 3}, "distinct atoms in canonical order"),
        ("member", (INDICES,), {"values": (2, 1)}, "distinct atoms in canonical order"),
        ("lookup", (INDICES,), {"table": ()}, "one or more (atom, atom) pairs"),
        ("lookup", (INDICES,), {"table": ((1, 2), (True, 3))}, "one or more (atom, atom) pairs"),
        ("family", (), {"name": "l", "size": 0}, "expected an integer from 1 to"),
        ("family", (), {"name": "", "size": 2}, "a non-empty string"),
        ("sum_over", (INDICES, INDICES), {}, "expected a family parameter as input 2"),
    ],
)
def test_illegal_nodes(
    op: str, inputs: tuple[Node, ...], attributes: dict[str, object], words: str
) -> None:
    with pytest.raises(locum.GraphError) as caught:
        build(op, *inputs, **attributes)  # type: ignore[arg-type]
    assert words in str(caught.value)
    # The same rule finds it in a graph that was put together behind the table's back.
    if op != "sinh":
        raw = Node(op, inputs, attributes)  # type: ignore[arg-type]
        assert any(words in problem for problem in problems(raw))


def test_sums_that_were_bound_by_hand() -> None:
    l = family(2, "l")
    assert any("height" in problem for problem in problems(Node("sum_over", (INDICES, l))))
    assert any("twice" in problem for problem in problems(Node("sum_over", (l, l, l))))
