"""The page of a model on U: whole, self-contained, with the numbers of the run in it."""

from __future__ import annotations

import base64
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from locum.display import model_page as pages
from locum.simulators import EncoderModel, ModelRun
from locum.simulators.models.tokenising import Text
from tests.simulators.checkpoints import write


@pytest.fixture
def run(tmp_path: Path) -> ModelRun:
    return EncoderModel(write(tmp_path), backend="numpy").run([[2, 5, 3], [2, 6, 7, 3]])


def data_of(page: str) -> Any:
    (result,) = re.findall(r'<script id="data" type="application/json">(.*?)</script>', page, re.DOTALL)
    return json.loads(result)


def unpacked(packed: Any) -> Any:
    return np.frombuffer(base64.b64decode(packed["data"])).reshape(packed["shape"])


def test_the_numbers_of_the_run_are_in_it(run: ModelRun) -> None:
    data = data_of(pages.model_page(run, 1, 1))
    assert data["first"] == {"layer": 1, "head": 1}
    assert len(data["maps"]) == 2 * 2 * 2
    for entry in data["maps"]:
        ours, theirs = run.attention(entry["text"], entry["layer"], entry["head"])
        np.testing.assert_array_equal(unpacked(entry["ours"]), ours)
        np.testing.assert_array_equal(unpacked(entry["theirs"]), theirs)
        np.testing.assert_allclose(ours.sum(axis=1), 1, rtol=0, atol=1e-12)
    assert data["errors"] == run.errors
    np.testing.assert_array_equal(unpacked(data["similarities"]), run.similarities)


def test_large_maps_are_left_out(run: ModelRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "NUMBERS", 120)
    chosen = data_of(pages.model_page(run, 1, 0))["maps"]
    assert {(m["layer"], m["head"]) for m in chosen} == {(1, 0), (1, 1)}
    monkeypatch.setattr(pages, "NUMBERS", 10)
    chosen = data_of(pages.model_page(run, 1, 0))["maps"]
    assert {(m["layer"], m["head"]) for m in chosen} == {(1, 0)}


def test_it_reaches_for_nothing_outside(run: ModelRun) -> None:
    page = pages.model_page(run)
    assert not re.search(r"https?://|src=|@import|url\(|fetch\(|<link", page)


def test_no_text_breaks_out(run: ModelRun) -> None:
    nasty = "</script><script>alert(1)</script><!--"
    run.batch.texts[0] = Text(nasty, ["</script>", "b", "c"], [2, 5, 3])
    page = pages.model_page(run)
    scripts: list[Any] = []

    class Scripts(HTMLParser):
        def handle_starttag(self, tag: str, attrs: Any) -> None:
            if tag == "script":
                scripts.append(attrs)

    Scripts().feed(page)
    assert len(scripts) == 2
    assert data_of(page)["texts"][0]["text"] == nasty


def test_without_a_comparison(tmp_path: Path) -> None:
    run = EncoderModel(write(tmp_path), backend="numpy").run([[2, 5, 3]], compare=False)
    data = data_of(pages.model_page(run))
    assert data["errors"] is None
    assert all(entry["theirs"] is None for entry in data["maps"])
