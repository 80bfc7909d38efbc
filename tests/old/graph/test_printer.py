"""Printing: RASP text that reads back to the same object; short forms that stay short."""

from __future__ import annotations

import pytest
from hypothesis import given

import locum
from locum.graph import Node, abbreviate, to_rasp
from locum.rasp import Session
from tests.cases import CASES, matmul
from tests.old.graph.strategies import programs


def read_back(text: str) -> Node:
    session = Session()
    session.define(text)
    node = session.get("out").node
    assert isinstance(node, Node)
    return node


@given(programs())
def test_printing_round_trips(program: Node) -> None:
    assert read_back(to_rasp(program)) is program


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_cases_round_trip(case: object) -> None:
    node = case.program.node  # type: ignore[attr-defined]
    assert read_back(to_rasp(node)) is node


def test_shared_parts_are_said_once() -> None:
    """2^60 paths: the text must be as small as the graph."""
    value, l = locum.tokens_int, locum.family(2)
    for _ in range(30):
        value = value * value
    inside = l + locum.indices
    for _ in range(30):
        inside = inside * inside
    program = locum.sum_over(l, inside) + value
    text = locum.rasp.to_rasp(program)
    assert len(text) < 2_000
    assert read_back(text) is program.node


def test_deep_programs_round_trip() -> None:
    chain = locum.indices
    for _ in range(5_000):
        chain = -(chain + 1)
    assert read_back(locum.rasp.to_rasp(chain)) is chain.node


def test_names_are_used() -> None:
    histogram = locum.selector_width(locum.select(locum.tokens_str, locum.tokens_str, "=="))
    names = {histogram.node: "histogram", histogram.node.inputs[0]: "same"}
    assert to_rasp((histogram + 1).node, names) == (
        "same = select(tokens_str, tokens_str, ==);\nhistogram = selector_width(same);\nhistogram + 1;"
    )


def test_matmul_is_a_few_lines() -> None:
    text = locum.rasp.to_rasp(matmul(3, 2, 4))
    assert "sum l in range(3), m in range(4) {" in text
    assert len(text.splitlines()) <= 4
    assert read_back(text) is matmul(3, 2, 4).node


def test_what_rasp_cannot_say() -> None:
    for text in ('a"b', "a\nb"):
        with pytest.raises(locum.GraphError, match="no literal"):
            locum.rasp.to_rasp(locum.constant(text))


@given(programs())
def test_short_forms_are_one_short_line(program: Node) -> None:
    line = abbreviate(program)
    assert "\n" not in line
    assert len(line) <= 72


def test_short_forms_leave_most_of_a_large_table_out() -> None:
    program = locum.lookup(locum.indices, {i: i % 2 for i in range(5000)}) + 1
    assert abbreviate(program.node) == "({0: 0, 1: 1, 2: 0, 3: 1, …}[indices]) + 1"
