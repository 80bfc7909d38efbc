"""The pictures of the documents are what ``python docs/pictures/draw.py`` draws now.

Benchmarks draw the figures in subfolders from files of measurements in ``benchmarks/``.
"""

from __future__ import annotations

import json
import re
import runpy
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from benchmarks import bench_scaling, bench_size_by_length

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "pictures"
DRAW: dict[str, Any] = runpy.run_path(str(FOLDER / "draw.py"))


@pytest.mark.parametrize("name", DRAW["SVG"])
def test_pictures_are_up_to_date(name: str) -> None:
    text = DRAW["SVG"][name]()
    ET.fromstring(text)
    assert "prefers-color-scheme: dark" in text
    assert (FOLDER / f"{name}.svg").read_text(encoding="utf-8") == text


def test_every_picture_has_its_code() -> None:
    shots = {f"{name}.png" for name in DRAW["SERVED"]}
    drawn = {f"{name}.svg" for name in DRAW["SVG"]} | shots
    assert {path.name for path in FOLDER.iterdir() if path.suffix in (".svg", ".png")} == drawn


def measured(name: str) -> Any:
    return json.loads((ROOT / "benchmarks" / f"{name}.json").read_text(encoding="utf-8"))


@pytest.mark.slow
def test_benchmarks_draw_the_saved_measurements(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    drawn = [
        bench_size_by_length.draw(measured("size_by_length")["rows"]),
        *(path.read_text() for path in bench_scaling.draw(measured("scaling")["rows"], tmp_path)),
    ]
    assert len(drawn) == 7
    for text in drawn:
        ET.fromstring(text)


def test_saved_sizes_of_networks_are_current() -> None:
    saved = {(row["program"], row["length"]): row for row in measured("size_by_length")["rows"]}
    for name in ("reverse", "variance", "sum"):
        (row,) = bench_size_by_length.measure([10], [name])
        assert {key: row[key] for key in (*bench_size_by_length.SIZES, "parameters")} == {
            key: saved[name, 10][key] for key in (*bench_size_by_length.SIZES, "parameters")
        }, name


@pytest.mark.parametrize("path", sorted(FOLDER.rglob("*.svg")), ids=lambda path: path.stem)
def test_text_is_readable_on_a_page_of_400_pixels(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    box = re.search(r"viewBox=['\"]0 0 (\S+) ", text)
    assert box is not None
    smallest = min(float(size) for size in re.findall(r"font-size=['\"]([\d.]+)['\"]", text))
    # The margins of the page are 16 pixels wide.
    assert smallest * min(1, 368 / float(box[1])) >= 7
