"""JSON: round trips to the same object, a stable hash, and clear refusals of what is no graph."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

import locum
from locum import graph
from locum.budget import MAX_BITS
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
        assert graph.loads(graph.dumps(case.program.node)) is case.program.node


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan"), -0.0, 1e-320, 10**400])
def test_numbers_that_json_finds_hard(value: float) -> None:
    assert graph.loads(graph.dumps(locum.constant(value).node)) is locum.constant(value).node


def test_the_largest_integers_of_programs_are_read() -> None:
    largest = 2**MAX_BITS - 1
    for value in (largest, -largest):
        node = locum.constant(value).node
        assert graph.loads(graph.dumps(node)) is node


def test_the_hash_is_the_same_in_another_process() -> None:
    code = "import tests.cases as c, locum; print(locum.rasp.stable_hash(c.matmul(3, 2, 4)))"
    tested = str(Path(locum.__file__).parents[1])  # not another one that is installed
    for seed in ("1", "2"):
        other = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed, "PATH": "", "PYTHONPATH": tested},
        )
        assert other.stdout.strip() == locum.rasp.stable_hash(matmul(3, 2, 4))


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
        ({**GOOD, "version": 2}, "of version 1, got one of version 2"),
        ({**GOOD, "nodes": []}, 'expected a list of nodes as "nodes", got a list of 0'),
        ({**GOOD, "nodes": "abc"}, "got 'abc'"),
        ({**GOOD, "nodes": [["indices", []]]}, "node 0 of the graph: expected [operation"),
        ({**GOOD, "nodes": [["sinh", [], {}]]}, "no operation 'sinh'"),
        ({**GOOD, "nodes": [["negate", [0], {}]]}, "its input 0 is not the number of an earlier node"),
        ({**GOOD, "nodes": [["indices", [], {}], ["negate", [-1], {}]]}, "its input -1"),
        ({**GOOD, "nodes": [["indices", [], {}], ["negate", [True], {}]]}, "its input True"),
        (
            {**GOOD, "nodes": [["constant", [], {"value": None}]]},
            "expected a valid attribute, got None",
        ),
        (
            {**GOOD, "nodes": [["constant", [], {"value": {"float": "1"}}]]},
            "expected a valid attribute",
        ),
        ({**GOOD, "nodes": [["tokens", [], {"cast": "eval"}]]}, "tokens: cast: expected one of"),
        (
            {**GOOD, "nodes": [["family", [], {"name": "#x", "size": 2}]]},
            "expected two integers after #",
        ),
        (
            {**GOOD, "nodes": [["family", [], {"name": "#1.99999999999999", "size": 2}]]},
            "expected two integers after #",
        ),
        ({**GOOD, "version": True}, "of version 1, got one of version True"),
        ({**GOOD, "version": 1.0}, "of version 1, got one of version 1.0"),
        ({**GOOD, "nodes": [["constant", [], {"op": "x"}]]}, "expected the attributes ['value'], got"),
        ({**GOOD, "nodes": [["constant", [], {"self": 1, "value": 1}]]}, "got ['self', 'value']"),
        ({**GOOD, "nodes": [["negate", [10**4000], {}]]}, "an integer of 13288 bits is not"),
        ({**GOOD, "nodes": [["negate", [[[0]]], {}]]}, "its input a list of 1 is not the number"),
        ({**GOOD, "nodes": [["constant", [], {"value": {"a": 1}}]]}, "got a JSON object of 1"),
        (
            {**GOOD, "nodes": [["constant", [], {"value": {"int": "0x1g"}}]]},
            "expected a hexadecimal integer",
        ),
        (
            {**GOOD, "nodes": [["tokens", [], {"cast": 10**4000}]]},
            "got an integer of",
        ),
        ({**GOOD, "nodes": [["member", [0], {"values": [2, 1]}]]}, "its input 0 is not the number"),
        ({**GOOD, "nodes": [*GOOD["nodes"], ["member", [0], {"values": [2, 1]}]]}, "canonical order"),
        ({**GOOD, "nodes": [*GOOD["nodes"], ["member", [0], {"values": [1, 1]}]]}, "canonical order"),
        ({**GOOD, "nodes": [*GOOD["nodes"], ["member", [0], {"values": [1.0, 1]}]]}, "canonical order"),
        ({**GOOD, "nodes": [*GOOD["nodes"], ["lookup", [0], {"table": [[1]]}]]}, "canonical order"),
        (
            {**GOOD, "nodes": [*GOOD["nodes"], ["lookup", [0], {"table": [[2, 1], [1, 1]]}]]},
            "canonical",
        ),
        (
            {
                **GOOD,
                "nodes": [*GOOD["nodes"], ["member", [0], {"values": [{"int": hex(2**20_000)}, 1]}]],
            },
            "got a tuple that is too long to print",
        ),
    ],
)
def test_what_is_no_graph(change: object, words: str) -> None:
    text = change if isinstance(change, str) else json.dumps(change)
    with pytest.raises(locum.GraphError) as caught:
        graph.loads(text)
    assert words in str(caught.value)


def graph_of(*rows: list[Any]) -> str:
    return json.dumps({**GOOD, "nodes": rows})


@pytest.mark.parametrize("depth", [3, 600, 100_000])
def test_deeply_nested_json_is_refused(depth: int) -> None:
    with pytest.raises(locum.GraphError):
        graph.loads("[" * depth)
    # Under the limit of the JSON reader itself, which is about Python's limit of recursion.
    nested = "[" * min(depth, 900) + "]" * min(depth, 900)
    with pytest.raises(locum.GraphError):
        graph.loads(json.dumps(GOOD).replace('{"value": 1}', f'{{"value": {nested}}}'))


def test_sums_carry_no_attributes() -> None:
    family: list[object] = ["family", [], {"name": "l", "size": 2}]
    assert graph.loads(graph_of(family, ["sum_over", [0, 0], {}])).op == "sum_over"
    with pytest.raises(locum.GraphError, match="expected the attributes"):
        graph.loads(graph_of(family, ["sum_over", [0, 0], {"junk": 1}]))


def test_sums_that_share_a_large_body_are_refused() -> None:
    """Each sum rebuilds its body: a thousand sums over the parts of one chain would be quadratic."""
    rows: list[list[object]] = [["family", [], {"name": "l", "size": 2}]]
    rows += [["negate", [k], {}] for k in range(1_000)]
    rows += [["sum_over", [k, 0], {}] for k in range(1, 1_000)]
    with pytest.raises(locum.GraphError, match="too large to read"):
        graph.loads(graph_of(*rows))
    honest = locum.family(3, "l") * locum.indices
    for _ in range(3):
        honest = locum.sum_over(m := locum.family(2), honest + m)
    honest = locum.sum_over(locum.family(3, "l"), honest)
    assert graph.loads(graph.dumps(honest.node)) is honest.node


def test_graphs_beyond_the_limit_are_refused() -> None:
    with pytest.raises(locum.GraphError, match="at most 500,000 nodes, got 500,001"):
        graph.loads(json.dumps({**GOOD, "nodes": [0] * 500_001}))
    with pytest.raises(locum.GraphError, match="expected a valid attribute"):
        graph.loads(graph_of(["constant", [], {"value": {"int": "0x" + "f" * 300_000}}]))


def test_nodes_are_read_and_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """300,000 nodes took ten seconds, half of them for checking again what was just built."""
    from locum.graph import operations, wellformed

    checked = []
    original = operations.problem_with

    def counting(*arguments: Any) -> str | None:
        checked.append(arguments)
        return original(*arguments)

    monkeypatch.setattr(operations, "problem_with", counting)
    monkeypatch.setattr(wellformed, "problem_with", counting)
    graph.loads(graph_of(["indices", [], {}], *(["negate", [k], {}] for k in range(500))))
    assert len(checked) == 501
