"""Graphs: interned nodes, files, sums over families, and nodes that are not valid."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import locum
from locum import GraphError, graph
from locum.graph import (
    CASTS,
    COMPARISONS,
    OPERATIONS,
    PREDICATES,
    Atom,
    Attribute,
    Node,
    Operation,
    Sort,
    abbreviate,
    build,
    dumps,
    is_atom,
    loads,
    members,
    postorder,
    problems,
    sequence_type,
    size_of,
    sort_of,
    stable_hash,
    substitute,
)
from locum.rasp import Architecture, architecture
from tests.cases import CASES, matmul

INDICES, FULL = build("indices"), locum.full.node


def test_cases() -> None:
    """Each program of the table is valid, and equal to its file; no two programs share a hash."""
    for case in CASES:
        node = case.program.node
        assert loads(dumps(node)) is node
        assert problems(node) == []
        assert locum.rasp.stable_hash(case.program) == stable_hash(node)
        assert sort_of(node) is (
            Sort.SELECTOR if isinstance(case.program, locum.Selector) else Sort.SOP
        )
    hashes = {stable_hash(case.program.node) for case in CASES}
    assert len(hashes) == len({case.program for case in CASES})


@pytest.mark.parametrize(
    "value", [float("inf"), float("nan"), -0.0, 1e-320, 10**400, True, 1, 1.0, "é"]
)
def test_atoms(value: Atom) -> None:
    """Atoms of different types or signs are different nodes."""
    node = build("constant", value=value)
    assert is_atom(value)
    assert loads(dumps(node)) is node
    assert [node is build("constant", value=other) for other in (0.0, False, "1")] == [False] * 3


def test_files(tmp_path: Path) -> None:
    """A program in a file of either suffix is the same program."""
    program = locum.aggregate(locum.select(locum.indices, 1, "<="), locum.tokens) + 1
    for name in ("program.json", "program.rasp"):
        locum.save_program(program, tmp_path / name)
        assert locum.load_program(tmp_path / name) is program


def test_equal_programs_are_one_object() -> None:
    """The names of the families of a sum, and the order of its terms, do not matter."""
    l, m = locum.family(3, "l"), locum.family(3, "m")
    nested = locum.sum_over(l, locum.sum_over(m, l - m))
    assert nested is locum.sum_over(m, locum.sum_over(l, m - l))
    assert nested is not locum.sum_over(m, locum.sum_over(l, l - m))
    assert locum.sum_over(l, m, 10 * l + m)("a") == [99]
    assert locum.sum_over(l, l * locum.sum_over(l, l + locum.indices))("ab") == [9, 18]
    assert matmul(4, 4, 4) is matmul(4, 4, 4)


def test_parts_of_graphs() -> None:
    """Nodes in order, sizes and members of families, types, and short texts."""
    l = graph.family(3, "l")
    m = graph.family(2, "m")
    total = graph.sum_over([l], build("add", INDICES, l))
    assert locum.SOp(total)("ab") == [3, 6]
    assert size_of(l) == 3
    assert [(each[m], each[l]) for each in members([m, l])] == [
        (0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)
    ]  # fmt: skip
    order = list(postorder(total))
    assert order[-1] is total
    assert all(order.index(part) < order.index(node) for node in order for part in node.inputs)
    assert substitute(build("negate", INDICES), {INDICES: build("length")}) is build(
        "negate", build("length")
    )
    assert [sequence_type(values) for values in ([1, 2], [1.0, 2], ["a"], [True])] == [
        "int", "float", "string", "bool",
    ]  # fmt: skip
    assert graph.to_rasp(INDICES) == "indices;"
    assert len(abbreviate(matmul(9, 9, 9).node)) < 100
    assert architecture(total) == Architecture(())


def test_the_tables_of_the_graph() -> None:
    assert all(isinstance(operation, Operation) for operation in OPERATIONS.values())
    assert {*PREDICATES} == {"==", "!=", "<", "<=", ">", ">="}
    assert {*CASTS} == {"asis", "str", "int", "float", "bool"}
    assert {each.operation for each in COMPARISONS.values()} <= {*OPERATIONS}


#: Operation, inputs, attributes, and words of the error.
INVALID: list[tuple[str, tuple[Node, ...], dict[str, Attribute], str]] = [
    ("sinh", (INDICES,), {}, "no operation 'sinh'"),
    ("add", (INDICES,), {}, "expected 2 input(s), got 1"),
    ("add", (INDICES, FULL), {}, "expected an s-op as input 2"),
    ("aggregate", (INDICES, INDICES), {"default": 0}, "expected a selector as input 1"),
    ("select", (INDICES, INDICES), {}, "expected the attributes ['predicate']"),
    ("select", (INDICES, INDICES), {"predicate": "=<"}, "one of ==, !=, <, <=, >, >="),
    ("tokens", (), {"cast": "complex"}, "one of asis, str, int, float, bool"),
    ("constant", (), {"value": (1, 2)}, "expected a bool, an int, a float or a string"),
    ("member", (INDICES,), {"values": (2, 1)}, "canonical order"),
    ("lookup", (INDICES,), {"table": ()}, "one or more (atom, atom) pairs"),
    ("family", (), {"name": "l", "size": 0}, "expected an integer from 1"),
    ("sum_over", (INDICES, INDICES), {}, "expected a family parameter as input 2"),
]


@pytest.mark.parametrize("row", INVALID, ids=lambda row: f"{row[0]}, {row[3]}")
def test_invalid_nodes(row: tuple[str, tuple[Node, ...], dict[str, Attribute], str]) -> None:
    """The same rules apply to nodes that were created without them."""
    operation, inputs, attributes, words = row
    with pytest.raises(GraphError) as caught:
        build(operation, *inputs, **attributes)
    assert words in str(caught.value)
    if operation != "sinh":
        assert any(words in problem for problem in problems(Node(operation, inputs, attributes)))


GOOD = json.loads(dumps((locum.indices + 1).node))
#: Files that are not graphs: text or changed parts, and words of the error.
REJECTED: list[tuple[Any, str]] = [
    ("not json", "not JSON"), ("[1]", "format"), ({"version": 2}, "version 1, got one of version 2"),
    ({"version": True}, "version True"), ({"nodes": []}, "expected a list of nodes"),
    ({"nodes": [["indices", []]]}, "node 0 of the graph"),
    ({"nodes": [["sinh", [], {}]]}, "no operation 'sinh'"),
    ({"nodes": [["negate", [0], {}]]}, "not the number of an earlier node"),
    ({"nodes": [["indices", [], {}], ["negate", [-1], {}]]}, "its input -1"),
    ({"nodes": [["indices", [], {}], ["negate", [True], {}]]}, "its input True"),
    ({"nodes": [["constant", [], {"value": None}]]}, "expected a valid attribute"),
    ({"nodes": [["constant", [], {"value": {"int": "0x1g"}}]]}, "hexadecimal integer"),
    ({"nodes": [["tokens", [], {"cast": "eval"}]]}, "cast: expected one of"),
    ({"nodes": [["negate", [10**4000], {}]]}, "an integer of 13288 bits"),
    ({"nodes": [["indices", [], {}], ["member", [0], {"values": [1, 1]}]]}, "canonical order"),
    ({"nodes": [0] * 500_001}, "at most 500,000 nodes"), ("[" * 100_000, ""),
]  # fmt: skip


@pytest.mark.parametrize("row", REJECTED, ids=lambda row: str(row)[:40])
def test_rejected_files(row: tuple[Any, str]) -> None:
    change, words = row
    with pytest.raises(GraphError) as caught:
        loads(change if isinstance(change, str) else json.dumps({**GOOD, **change}))
    assert words in str(caught.value)


def test_sums_over_large_bodies_are_rejected() -> None:
    """A thousand sums over the parts of one chain would take quadratic time."""
    rows: list[list[Any]] = [["family", [], {"name": "l", "size": 2}]]
    rows += [["negate", [k], {}] for k in range(1_000)]
    rows += [["sum_over", [k, 0], {}] for k in range(1, 1_000)]
    with pytest.raises(GraphError, match="too large to read"):
        loads(json.dumps({**GOOD, "nodes": rows}))
