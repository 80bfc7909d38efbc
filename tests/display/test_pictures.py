"""The pictures of the documents are what the code draws now: ``python docs/pictures/draw.py``."""

from __future__ import annotations

import runpy
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"
DRAW: dict[str, Any] = runpy.run_path(str(FOLDER / "draw.py"))


@pytest.mark.parametrize("name", DRAW["SVG"])
def test_pictures_are_up_to_date(name: str) -> None:
    text = DRAW["SVG"][name]()
    ET.fromstring(text)
    assert "prefers-color-scheme: dark" in text
    assert (FOLDER / f"{name}.svg").read_text(encoding="utf-8") == text


def test_every_picture_has_its_code() -> None:
    shots = {f"{name}.png" for name in (*DRAW["SIZES"], *DRAW["SERVED"])}
    drawn = {f"{name}.svg" for name in DRAW["SVG"]} | shots
    assert {path.name for path in FOLDER.iterdir() if path.suffix in (".svg", ".png")} == drawn
    assert DRAW["pages"]().keys() == DRAW["SIZES"].keys()
