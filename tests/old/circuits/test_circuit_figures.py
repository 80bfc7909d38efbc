"""Figures of circuits: lines end at ports and never run behind a box."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree

import pytest

import locum
from locum.experiments.circuits import check_circuit
from locum.rasp.programs import load_everyday

UNITS: dict[str, Any] = {"attention": "softmax", "feed_forward": "relu", "reuse_slots": False}
SVG = "{http://www.w3.org/2000/svg}"
Box = tuple[float, float, float, float]


def compiled(name: str) -> locum.CompiledTransformer:
    recipe = load_everyday(name)
    return locum.compile(recipe.program, length=3, vocabulary=recipe.vocabulary[:3], **UNITS)


def boxes_of(root: ElementTree.Element) -> list[Box]:
    numbers = ("x", "y", "width", "height")
    found = [e for e in root.iter(f"{SVG}rect") if e.get("class") == "box"]
    return [tuple(float(e.attrib[n]) for n in numbers) for e in found]  # type: ignore[misc]


def lines_of(root: ElementTree.Element) -> list[list[tuple[float, float]]]:
    """Return the points of each line, without arrows and the legend."""
    lines = []
    for group in root.iter(f"{SVG}g"):
        path = group.find(f"{SVG}path")
        if path is not None and group.find(f"{SVG}title") is not None:
            numbers = [float(n) for n in re.findall(r"[-\d.]+", path.attrib["d"])]
            lines.append(list(zip(numbers[::2], numbers[1::2], strict=True)))
    return lines


def crosses(box: Box, one: tuple[float, float], other: tuple[float, float]) -> bool:
    """Return whether a horizontal or vertical line enters a box."""
    x, y, width, height = box
    (left, right), (top, bottom) = sorted((one[0], other[0])), sorted((one[1], other[1]))
    return left < x + width and right > x and top < y + height and bottom > y


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("name", ["induction", "second_largest", "sort_freq", "dyck2", "palindrome"])
def test_no_line_runs_behind_a_box(name: str, narrow: bool) -> None:
    """D5: lines that skip a column ran behind its boxes."""
    circuit = compiled(name).circuit
    root = ElementTree.fromstring(circuit.draw(narrow=narrow))
    boxes, lines = boxes_of(root), lines_of(root)
    embedded = {"embed", "pos_embed"}
    ends = {
        (e.source.split(".")[0] if e.source.split(".")[0] in embedded else e.source, e.target)
        for e in circuit.edges
    }
    assert len(lines) == len(ends)
    for points in lines:
        for one, other in pairwise(points):
            assert one[0] == other[0] or one[1] == other[1]
            assert not any(crosses(box, one, other) for box in boxes)
        # It ends at the left side of a box.
        x, y = points[-1]
        assert any(abs(box[0] - x) < 0.2 and box[1] < y < box[1] + box[3] for box in boxes)
    # Lines with different ends are drawn at different points.
    assert len({(points[0], points[-1]) for points in lines}) == len(lines)
    assert len({points[-1] for points in lines}) == len(lines)
    width = float(root.attrib["width"])
    assert width <= 400 if narrow else width < 1100
    for x, y, wide, high in boxes:
        assert 0 <= x <= width - wide
        assert 0 <= y <= float(root.attrib["height"]) - high


def test_parts_are_boxes_with_ports_and_names(tmp_path: Any) -> None:
    """All columns of an embedding are one box; heads have q, k and v; nothing typed is markup."""
    before = locum.select(locum.indices, locum.indices - 1, "==")
    previous = locum.aggregate(before, locum.tokens, "?")
    program = locum.where(previous == "<&", locum.indices, 7) + 0 * locum.length
    names = {before: "before", previous: "<previous>"}
    model = locum.compile(program, length=3, vocabulary=["<&", "b"], names=names, **UNITS)
    circuit = check_circuit(model)
    drawn = circuit.draw(tmp_path / "circuit.svg")
    assert (tmp_path / "circuit.svg").read_text(encoding="utf-8") == drawn
    assert drawn in circuit._repr_html_()
    assert circuit.draw(narrow=True) in circuit._repr_html_()
    root = ElementTree.fromstring(drawn)
    words = [text.text for text in root.iter(f"{SVG}text")]
    for word in ("positions", "tokens", "q", "k", "v", "before", "<previous>", "layer 0", "answer"):
        assert word in words
    assert words.count("positions") == 1
    heads = sum(node.kind == "head" for node in circuit.nodes)
    layers = len({node.layer for node in circuit.nodes if node.kind == "units"})
    assert len(boxes_of(root)) == heads + layers + 3
    dotted = sum(path.get("class") == "idle" for path in root.iter(f"{SVG}path"))
    assert bool(dotted) == any(edge.necessary is False for edge in circuit.edges)
