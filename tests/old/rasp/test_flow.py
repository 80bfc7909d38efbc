"""Pictures: well-formed, self-contained, with the heads that are counted."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import locum
from locum.graph import Node, Sort
from locum.graph.definitions import expand_definitions, names_of_definitions
from locum.rasp import echo
from locum.rasp.drawing.flow import MAX_MEMBERS, flow_svg, shown_heads
from locum.text import shortened_apart
from tests.cases import CASES, matmul, reverse
from tests.old.graph.strategies import inputs, programs

SVG = "{http://www.w3.org/2000/svg}"
LAYERS = [case for case in CASES if isinstance(case.program, locum.SOp)]


@pytest.mark.parametrize("case", LAYERS, ids=lambda case: case.name)
def test_every_case_can_be_drawn(case: Any) -> None:
    root = ET.fromstring(flow_svg(case.program.node, case.given, "x<y"))
    texts = ["".join(text.itertext()) for text in root.iter(f"{SVG}text")]
    layers = [text for text in texts if text.startswith("layer ")]
    heads = case.program.architecture.heads
    assert layers == [f"layer {n}: {h} head{'s' if h > 1 else ''}" for n, h in enumerate(heads)]
    assert "x<y" in texts


@settings(max_examples=60)
@given(programs(sorts=(Sort.SOP,)), inputs)
def test_random_programs_can_be_drawn(program: Node, tokens: Any) -> None:
    try:
        picture = flow_svg(program, tokens)
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


def test_labels_beside_a_grid_are_whole_or_say_that_they_are_not() -> None:
    program = locum.aggregate(locum.full, locum.tokens).node
    texts = texts_of(flow_svg(program, [12.125, 123456789]))
    # In the column of the input, and above and beside the grid; the rest is 12.1 or 1234 nowhere.
    assert texts.count("12.125") >= 3
    assert texts.count("123456…") == 2
    assert not {"12.1", "1234", "12.12", "12345"} & set(texts)


def texts_of(picture: str) -> list[str]:
    return ["".join(text.itertext()) for text in ET.fromstring(picture).iter(f"{SVG}text")]


def test_every_value_of_a_head_is_shown() -> None:
    """Parity: one head carries 1/length and the mean of the bits, and both are in the picture."""
    bits = locum.indicator(locum.tokens == "1")
    mean = locum.aggregate(locum.full, bits)
    texts = texts_of(flow_svg((locum.length * mean % 2).node, "10110", "parity"))
    assert texts.count("0.6") == 5
    assert texts.count("0.2") == 5
    assert "1: indicator(indices == 0)" in texts or "0: indicator(indices == 0)" in texts
    assert any("indicator(tokens" in text for text in texts)


@pytest.mark.parametrize("case", LAYERS, ids=lambda case: case.name)
def test_the_picture_has_what_each_head_gives(case: Any) -> None:
    """Each value of each head that is drawn stands in the picture at every position."""
    names = names_of_definitions(case.program.node)
    tokens = list(case.given)
    picture = flow_svg(case.program.node, tokens)
    titles = ["".join(title.itertext()) for title in ET.fromstring(picture).iter(f"{SVG}title")]
    root = expand_definitions(case.program.node)
    for layer in locum.rasp.architecture(root).structure:
        for head in layer:
            for shown in shown_heads(head, tokens, names):
                assert shown.label in titles
                for value in shown.values:
                    flows = f"{echo.sequence(value.reads)} → {echo.sequence(value.gives)}"
                    assert any(title.endswith(flows) for title in titles)


def test_a_head_that_carries_a_family_of_values() -> None:
    """The values of one head may depend on families that its selector does not have."""
    column = locum.family(3)
    value = locum.where(locum.indices == column, locum.tokens, 0)
    program = locum.sum_over(column, locum.aggregate(locum.full, value))
    (layer,) = locum.rasp.architecture(program).structure
    (head,) = shown_heads(layer[0], [3.0, 6.0, 9.0], {})
    assert [value.reads for value in head.values] == [[3.0, 0, 0], [0, 6.0, 0], [0, 0, 9.0]]
    assert [value.gives[0] for value in head.values] == [1.0, 2.0, 3.0]


def test_equal_selectors_of_different_families_are_one_head_with_both_values() -> None:
    first, second = locum.family(2), locum.family(2)
    parts = []
    for place, factor in ((first, 1), (second, 5)):
        chosen = locum.select(locum.indices, place, "==")
        parts.append(locum.sum_over(place, locum.aggregate(chosen, locum.tokens * (factor + place))))
    (layer,) = locum.rasp.architecture(parts[0] + parts[1]).structure
    heads = list(shown_heads(layer[0], [10.0, 100.0], {}))
    assert [[value.gives[0] for value in head.values] for head in heads] == [
        [10.0, 50.0],
        [200.0, 600.0],
    ]


@given(st.lists(st.text("ab(", max_size=30), max_size=6), st.integers(6, 20))
def test_different_titles_stay_different(titles: list[str], room: int) -> None:
    short = shortened_apart(titles, room)
    assert all(len(title) <= room for title in short)
    assert len(set(short)) == len(set(titles))


def test_names_of_the_program_are_used_for_definitions() -> None:
    counts = locum.selector_width(locum.select(locum.tokens, locum.tokens, "<"))
    program = locum.aggregate(locum.select(counts, locum.indices, "=="), locum.tokens)
    assert "select(counts, indices, ==)" in texts_of(
        flow_svg(program.node, "abc", "sorted", {counts.node: "counts"})
    )
