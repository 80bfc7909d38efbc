"""Programs saved to files and loaded again."""

from __future__ import annotations

from pathlib import Path

import pytest

import locum
from tests.cases import CASES


@pytest.mark.parametrize("case", CASES[::7], ids=lambda case: case.name)
def test_a_program_saved_as_json_is_the_same_object(case, tmp_path: Path) -> None:
    locum.save_program(case.program, tmp_path / "program.json")
    assert locum.load_program(tmp_path / "program.json") is case.program


def test_a_program_saved_as_text_has_the_same_values(tmp_path: Path) -> None:
    reverse = locum.aggregate(
        locum.select(locum.indices, locum.length - locum.indices - 1, "=="), locum.tokens_str
    )
    locum.save_program(reverse, tmp_path / "reverse.rasp")
    assert locum.load_program(tmp_path / "reverse.rasp")("abc") == ["c", "b", "a"]


def test_a_file_of_definitions_has_the_last_one(tmp_path: Path) -> None:
    (tmp_path / "two.rasp").write_text("a = indices + 1;\nb = a * 2;\n")
    assert locum.load_program(tmp_path / "two.rasp") is (locum.indices + 1) * 2


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.rasp", "", "no value"),
        ("a.rasp", "3;\n", "expected a program whose last statement"),
        ("a.rasp", "indices +;\n", "line 1"),
        ("a.json", "{", "JSON"),
        ("a.json", "", "JSON"),
    ],
)
def test_files_without_a_program_are_rejected(
    name: str, text: str, expected: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(locum.LocumError, match=expected):
        locum.load_program(tmp_path / name)


def test_a_missing_file_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(locum.InputError, match=r"missing\.json"):
        locum.load_program(tmp_path / "missing.json")
