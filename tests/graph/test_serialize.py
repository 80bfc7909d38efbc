"""JSON: round trips to the same object, a stable hash, and clear refusals of what is no graph."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given

import locum
from locum.graph import Node, dumps, loads, stable_hash
from tests.cases import CASES, matmul
from tests.strategies import programs


@given(programs())
def test_round_trip_is_the_same_object(program: Node) -> None:
    text = dumps(program)
    assert loads(text) is program
    assert dumps(loads(text)) == text


def test_all_cases_round_trip() -> None:
    for case in CASES:
        assert locum.loads(locum.dumps(case.program)) is case.program


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan"), -0.0, 1e-320, 10**400])
def test_numbers_that_json_finds_hard(value: float) -> None:
    assert locum.loads(locum.dumps(locum.constant(value))) is locum.constant(value)


def test_the_hash_is_the_same_in_another_process() -> None:
    code = "import tests.cases as c, locum; print(locum.stable_hash(c.matmul(3, 2, 4)))"
    tested = str(Path(locum.__file__).parents[1])  # not another one that is installed
    for seed in ("1", "2"):
        other = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed, "PATH": "", "PYTHONPATH": tested},
        )
        assert other.stdout.strip() == locum.stable_hash(matmul(3, 2, 4))


def test_hashes_differ_where_programs_differ() -> None:
    hashes = {stable_hash(case.program.node) for case in CASES}
    assert len(hashes) == len({case.program for case in CASES})


GOOD = json.loads(dumps((locum.indices + 1).node))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("not json", "it is not JSON"),
        ([1], 'lacks "format"'),
        ({**GOOD, "format": "other"}, 'lacks "format"'),
        ({**GOOD, "version": 2}, "of version 2; version 1"),
        ({**GOOD, "nodes": []}, "is empty"),
        ({**GOOD, "nodes": "abc"}, "is empty"),
        ({**GOOD, "nodes": [["indices", []]]}, "node 0 of the graph: it must be"),
        ({**GOOD, "nodes": [["sinh", [], {}]]}, "no operation 'sinh'"),
        ({**GOOD, "nodes": [["negate", [0], {}]]}, "its input 0 is not the number of an earlier node"),
        ({**GOOD, "nodes": [["indices", [], {}], ["negate", [-1], {}]]}, "its input -1"),
        ({**GOOD, "nodes": [["indices", [], {}], ["negate", [True], {}]]}, "its input True"),
        ({**GOOD, "nodes": [["constant", [], {"value": None}]]}, "None cannot be an attribute"),
        ({**GOOD, "nodes": [["constant", [], {"value": {"float": "1"}}]]}, "cannot be an attribute"),
        ({**GOOD, "nodes": [["tokens", [], {"cast": "eval"}]]}, "does not know the cast 'eval'"),
    ],
)
def test_what_is_no_graph(change: object, words: str) -> None:
    text = change if isinstance(change, str) else json.dumps(change)
    with pytest.raises(locum.GraphError) as caught:
        locum.loads(text)
    assert words in str(caught.value)


def test_deeply_nested_json_is_refused() -> None:
    with pytest.raises(locum.GraphError):
        locum.loads("[" * 100_000)
