"""Pictures: well-formed, self-contained, with the heads that are counted."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import Any

import pytest
from hypothesis import given, settings

import locum
from locum.display.flow import MAX_MEMBERS, flow_svg
from locum.graph import Node, Sort
from tests.cases import CASES, matmul, reverse
from tests.strategies import inputs, programs

SVG = "{http://www.w3.org/2000/svg}"
LAYERS = [case for case in CASES if isinstance(case.program, locum.SOp)]


@pytest.mark.parametrize("case", LAYERS, ids=lambda case: case.name)
def test_every_case_can_be_drawn(case: Any) -> None:
    root = ET.fromstring(flow_svg(case.program.node, case.given, "x<y"))
    texts = ["".join(text.itertext()) for text in root.iter(f"{SVG}text")]
    layers = [text for text in texts if text.startswith("layer ")]
    heads = case.program.architecture.heads
    assert layers == [
        f"layer {n}: {h} head{'s' if h > 1 else ''}" for n, h in enumerate(heads, start=1)
    ]
    assert "x<y" in texts


@settings(max_examples=60)
@given(programs(sorts=(Sort.SOP,)), inputs)
def test_random_programs_can_be_drawn(program: Node, given: Any) -> None:
    try:
        picture = flow_svg(program, given)
    except locum.ExecutionError:
        return
    ET.fromstring(picture)
    assert "<script" not in picture


def test_a_large_family_shows_its_first_heads() -> None:
    picture = flow_svg(matmul(3, 1, 3).node, [1, 2, 3, 4, 5, 6, 0, 0, 0])
    assert f"… and {9 - MAX_MEMBERS} more heads of this family" in picture


def test_values_are_in_the_picture() -> None:
    picture = flow_svg(reverse.node, "abc", "reverse")
    assert "<title>reverse([" in picture
    assert ">length<" not in picture
    assert "select(indices, (length - 1) - indices, ==)" in picture
