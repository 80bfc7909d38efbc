"""Interning: the same program is the same object, and nothing else is."""

from __future__ import annotations

import copy
import gc
import pickle
import threading

import pytest
from hypothesis import given

import locum
from locum import graph
from locum.graph import Node, build
from locum.graph.node import pool_size
from tests.old.graph.strategies import programs


def test_the_same_program_is_the_same_object() -> None:
    def make() -> locum.SOp:
        return locum.aggregate(
            locum.select(locum.indices, locum.tokens, "<"), locum.exp(locum.indices) + 1, 2
        )

    assert make() is make()
    assert make().node is make().node


@pytest.mark.parametrize(
    ("one", "other"), [(1, 1.0), (1, True), (0, False), (0.0, -0.0), (1.0, True), (1, "1")]
)
def test_atoms_that_python_confuses_stay_apart(one: object, other: object) -> None:
    assert locum.constant(one) is not locum.constant(other)  # type: ignore[arg-type]
    assert locum.member(locum.tokens, [one]) is not locum.member(locum.tokens, [other])  # type: ignore[list-item]
    assert locum.aggregate(locum.full, 1, one) is not locum.aggregate(locum.full, 1, other)  # type: ignore[arg-type]


def test_not_a_number_is_itself() -> None:
    assert locum.constant(float("nan")) is locum.constant(float("inf") - float("inf"))


def test_nodes_and_handles_are_immutable() -> None:
    with pytest.raises(AttributeError, match="immutable"):
        locum.indices.node.op = "tokens"
    with pytest.raises(AttributeError, match="immutable"):
        del locum.indices.node.op
    with pytest.raises(AttributeError, match="immutable"):
        locum.indices.node = locum.tokens.node
    with pytest.raises(TypeError):
        locum.constant(1).node.attributes["value"] = 2  # type: ignore[index]


def test_the_pool_forgets_what_nobody_holds() -> None:
    gc.collect()
    before = pool_size()
    chain = locum.indices
    for step in range(1000):
        chain = chain + f"only here {step}"
    assert pool_size() > before + 1000
    del chain
    gc.collect()
    assert pool_size() <= before + 1


@given(programs())
def test_copies_and_pickles_are_the_same_object(program: Node) -> None:
    assert copy.copy(program) is program
    assert copy.deepcopy(program) is program
    assert pickle.loads(pickle.dumps(program)) is program


def test_handles_pickle_to_themselves() -> None:
    program = locum.tokens + 1
    assert pickle.loads(pickle.dumps(program)) is program


def test_threads_agree_on_one_object() -> None:
    result: list[Node] = []
    start = threading.Barrier(8)

    def make() -> None:
        start.wait()
        node = build("indices")
        for step in range(500):
            node = build("add", node, build("constant", value=f"thread {step}"))
        result.append(node)

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(result)) == 1


def test_a_long_chain() -> None:
    """Far deeper than Python recurses, and long enough for work that is not linear to be felt."""
    chain = locum.indices
    for _ in range(30_000):
        chain = chain + 1
    assert chain.depth == 30_000
    assert chain("abc") == [30_000, 30_001, 30_002]
    assert locum.rasp.architecture(chain).layers == 0
    assert graph.loads(graph.dumps(chain.node)) is chain.node
    assert "depth 30000" in repr(chain)
    assert locum.rasp.to_rasp(chain).count("+ 1") == 30_000


def test_threads_agree_on_one_handle() -> None:
    nodes = [build("constant", value=f"handle {number}") for number in range(300)]
    result: list[list[locum.SOp]] = []
    start = threading.Barrier(8)

    def make() -> None:
        start.wait()
        result.append([locum.SOp(node) for node in nodes])

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(len({id(handles[i]) for handles in result}) == 1 for i in range(len(nodes)))
