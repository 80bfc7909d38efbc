"""The table of results and its charts: what a sweep wrote becomes rows, and rows become pictures."""

from __future__ import annotations

import csv
import xml.etree.ElementTree as ElementTree

import pytest

pytest.importorskip("torch")

from experiments.learning.__main__ import COLUMNS, rows_of, table, written
from experiments.learning.charts import CHARTS, radius

from locum.experiments.learning.grid import GROUPS
from locum.experiments.learning.training import learn
from locum.experiments.sweeps.sweep_case import Case, Result, key_of
from locum.interface.display.charts import as_file
from tests.documents import ROOT

RESULTS = ROOT / "experiments" / "learning" / "results.csv"


def _rows() -> list[dict[str, str]]:
    with RESULTS.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_results_are_those_of_the_grid() -> None:
    rows = _rows()
    versions = {row["locum"] for row in rows}  # keys depend on the version that computed them
    known = {
        key_of("learning", Case("learning", settings).settings, version, 1)[:12]: group
        for version in versions
        for group, listed in GROUPS.items()
        for settings in listed()
    }
    assert tuple(rows[0]) == COLUMNS
    assert all(known[row["case"]] == row["group"] for row in rows)
    assert sum(not row["step"] for row in rows) >= 500
    assert all(row["seed"] and row["torch"] and row["locum"] for row in rows)


def test_what_the_page_says_of_positions() -> None:
    rows = _rows()
    squares, digits = ([radius(rows, keys, n) for n in ("4", "32")] for keys in ("squares", "bits"))
    assert squares[0] / squares[1] > 30
    assert 0.5 < digits[0] / digits[1] < 2


def test_charts_are_those_of_the_results() -> None:
    rows = _rows()
    for name, draw in CHARTS.items():
        picture = as_file(draw(rows))
        assert ElementTree.fromstring(picture).tag.endswith("svg")
        saved = ROOT / "docs" / "pictures" / "learning" / f"{name}.svg"
        assert saved.read_text(encoding="utf-8") == picture, name


def test_lines_of_a_sweep_become_rows() -> None:
    case = Case("learning", {"task": "U", "order": [1, 1, 1], "seeds": 2, "steps": 1, "curve": [0]})
    result = learn(**case.settings)
    hashes = result.pop("hashes")
    versions = {"locum": "0", "revision": 1, "torch": "2", "numpy": "2", "python": "3"}
    line = Result(case.key, "learning", case.settings, "done", result, 1.0, versions, hashes)
    rows = rows_of("a group", line)
    assert [row.get("step") for row in rows] == [None, None, 0, 0]
    assert set(rows[0]) - set(COLUMNS) == set()
    assert written(rows[0])["order"] == "1x1x1"
    assert table([]) == []
