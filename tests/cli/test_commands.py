"""Commands as a user types them: output, JSON, exit codes, errors without a traceback."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import understudy as us
from tests.cases import histogram, matmul


def understudy(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "understudy", *arguments], capture_output=True, text=True, check=False
    )


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "histogram.json"
    path.write_text(us.dumps(histogram))
    return str(path)


def test_run(program: str) -> None:
    assert understudy("run", program).stdout == "[1, 1, 2, 2, 1] (ints)\n"
    assert understudy("run", program, "--input", "[3, 3.0]").stdout == "[2]*2 (ints)\n"
    done = understudy("run", program, "--input", "[[1, 1], [1, 2]]", "--json")
    assert json.loads(done.stdout) == {
        "kind": "s-op",
        "input": [[1, 1], [1, 2]],
        "type": ["int", "int"],
        "values": [[2, 2], [1, 1]],
    }


def test_run_a_selector_and_exact_numbers(tmp_path: Path) -> None:
    selector = tmp_path / "before.json"
    selector.write_text(us.dumps(us.select(us.indices, us.indices, "<")))
    assert (
        understudy("run", str(selector), "--input", '"ab"').stdout == "     a b\n a |    \n b | 1  \n"
    )
    found = json.loads(understudy("run", str(selector), "--input", '"ab"', "--json").stdout)
    assert found["matrix"] == [[0, 0], [1, 0]]
    mean = tmp_path / "mean.json"
    mean.write_text(us.dumps(us.aggregate(us.full, us.tokens)))
    done = understudy("run", str(mean), "--input", "[1, 2, 4]", "--domain", "exact", "--json")
    assert json.loads(done.stdout)["values"] == ["7/3", "7/3", "7/3"]


def test_analyse(tmp_path: Path) -> None:
    path = tmp_path / "matmul.json"
    path.write_text(us.dumps(matmul(4, 4, 4)))
    done = understudy("analyse", str(path), "--json")
    assert json.loads(done.stdout) == {"layers": 2, "heads": [8, 16], "width": 16}
    assert "2 layers, heads [8, 16], width 16" in understudy("analyse", str(path)).stdout


def test_operations() -> None:
    from understudy.graph import OPERATIONS

    rows = json.loads(understudy("operations", "--json").stdout)["operations"]
    assert [row["name"] for row in rows] == list(OPERATIONS)
    assert "key[k] ? query[q]" in understudy("operations").stdout


BAD: list[tuple[dict[str, Any], list[str], str]] = [
    ({}, ["--input", "hello"], "--input hello is not JSON"),
    ({}, ["--input", "[]"], "the input is empty"),
    ({}, ["--input", "[[1, 2], [3]]"], "the batch is ragged"),
    ({}, ["--input", "[null]"], "None at position 0"),
    ({}, ["--domain", "complex"], "there is no domain 'complex'"),
    ({"nodes": [["indices", [], {}], ["select", [0, 0], {"predicate": "=<"}]]}, [], "predicate '=<'"),
    (
        {"nodes": [["indices", [], {}], ["aggregate", [0, 0], {"default": 0}]]},
        [],
        "aggregate needs a selector as input 1, but got an s-op",
    ),
    (
        {"nodes": [["family", [], {"name": "l", "size": {"float": "inf"}}]]},
        [],
        "a whole number of heads",
    ),
    ({"nodes": [["family", [], {"name": "l", "size": 3}]]}, [], "is bound by no sum"),
]


@pytest.mark.parametrize(("change", "arguments", "words"), BAD)
def test_bad_input(
    change: dict[str, Any], arguments: list[str], words: str, program: str, tmp_path: Path
) -> None:
    path = tmp_path / "program.json"
    path.write_text(json.dumps({**json.loads(Path(program).read_text()), **change}))
    done = understudy("run", str(path), *arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("understudy: ")
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


def test_files_that_are_no_programs(tmp_path: Path) -> None:
    binary = tmp_path / "binary.json"
    binary.write_bytes(b"\xff\xfe\x00")
    for path, words in [
        ("missing.json", "No such file"),
        (str(tmp_path), "directory"),
        (str(binary), "not text"),
    ]:
        done = understudy("run", path)
        assert (done.returncode, done.stdout) == (2, "")
        assert words in done.stderr
        assert "Traceback" not in done.stderr


def test_unknown_command_and_version() -> None:
    done = understudy("juggle")
    assert done.returncode == 2
    assert "No such command 'juggle'" in done.stderr
    assert understudy("--version").stdout.startswith("understudy ")
