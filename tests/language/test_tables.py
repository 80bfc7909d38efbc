"""The tables of the parser that are kept are those that Lark works out."""

from __future__ import annotations

import json
from importlib import resources

import pytest

from locum.rasp.text import reader

KEPT = json.loads(
    resources.files("locum.rasp.text").joinpath("tables.json").read_text(encoding="utf-8")
)
NEW = reader.tables(reader.worked_out())


def test_they_are_those_of_the_grammar() -> None:
    again = "the grammar has changed: python -m locum.rasp.text.reader"
    assert KEPT["made_from"]["grammar"] == NEW["made_from"]["grammar"], again


@pytest.mark.skipif(
    KEPT["made_from"]["lark"] != NEW["made_from"]["lark"], reason="tables are kept for another Lark"
)
def test_they_are_used_and_are_what_lark_works_out() -> None:
    assert KEPT == NEW
    parser = reader.grammar.__wrapped__()
    assert parser.source_path == "<deserialized>"
    assert reader.tables(parser) == NEW


@pytest.mark.parametrize("part", ["lark", "grammar"])
def test_those_made_from_something_else_are_not_used(
    part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = {**NEW["made_from"], part: "another"}
    monkeypatch.setattr(reader, "_made_from", lambda: other)
    parser = reader.grammar.__wrapped__()
    assert parser.source_path == "<string>"
    assert {**reader.tables(parser), "made_from": None} == {**NEW, "made_from": None}
