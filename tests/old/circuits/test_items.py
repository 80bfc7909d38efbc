"""Items: networks say what programs say, and labels are checked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import locum
from locum.experiments.circuits.patching import CompiledNetwork
from locum.experiments.dataset import Item, load
from locum.experiments.dataset.making import make, shape_of, split_of
from locum.experiments.dataset.parts import faithfulness, runs_of
from locum.experiments.dataset.program_families import SOURCES, count_inputs

SIZE: dict[str, Any] = {"length": 4, "tokens": 2}


@pytest.fixture(scope="module")
def items(tmp_path_factory: pytest.TempPathFactory) -> list[Item]:
    """One named and one random circuit."""
    place = str(tmp_path_factory.mktemp("dataset"))
    made = [
        make(place, "cookbook/induction", **SIZE),
        make(place, "random", layers=4, seed=3),
    ]
    return [load(Path(place, result["row"]["folder"])) for result in made]


def test_items_are_right_on_all_inputs(items: list[Item]) -> None:
    for item in items:
        assert item.model(item.inputs) == item.outputs
        assert len(item.inputs) > 29
        assert item.certificate["all_inputs"]
        assert item.certificate["inputs"] == item.certificate["inputs_there_are"]
        assert "select" in item.program
        for pair in item.pairs:
            assert item.model(pair["clean"]) == pair["answer"]
            assert item.model(pair["other"]) == pair["other_answer"]


def test_labels_are_computed_and_complete(items: list[Item]) -> None:
    for item in items:
        circuit = item.circuit
        assert item.model.circuit == circuit
        assert circuit.checked["complete"]
        assert circuit.checked["all inputs"]
        assert circuit.necessary
        names = {node.id for node in circuit.nodes}
        assert all({edge.source, edge.target} <= names for edge in circuit.edges)


def test_necessary_edges_alone_keep_every_answer(items: list[Item]) -> None:
    """All edges that no label calls necessary are changed at once; then some that are, one by one."""
    for item in items:
        truth, runs = item.truth, runs_of(CompiledNetwork(item.model), item.pairs)
        assert faithfulness(runs, truth, truth.edges) == 1.0
        assert faithfulness(runs, truth, truth.candidates) == 1.0
        assert faithfulness(runs, truth, ()) < 1.0
        into_output = next(edge for edge in sorted(truth.edges) if edge[1] == "output")
        assert faithfulness(runs, truth, set(truth.candidates) - {into_output}) < 1.0


def test_the_same_settings_give_the_same_bytes(items: list[Item], tmp_path: Path) -> None:
    made = make(str(tmp_path), "cookbook/induction", **SIZE)
    for file in items[0].folder.iterdir():
        assert file.read_bytes() == (tmp_path / made["row"]["folder"] / file.name).read_bytes(), file


def test_what_is_not_worth_an_item_is_turned_down(tmp_path: Path) -> None:
    result = make(str(tmp_path), "task/next_letter", **SIZE)
    assert result["row"] is None
    assert result["reason"] == "the network has no head"
    result = make(str(tmp_path), "c-rasp/(a+b)*", "hard", **SIZE)
    assert result["reason"] == "the network has 0 layers"
    assert not (tmp_path / "items").exists()


def test_hard_heads_come_as_they_are(tmp_path: Path) -> None:
    row = make(str(tmp_path), "task/has_duplicate", "hard", **SIZE)["row"]
    item = load(tmp_path / row["folder"])
    assert row["attention"] == item.model.config.attention == "hard"
    assert item.model(item.inputs) == item.outputs


def test_sizes_are_run_on_all_inputs_or_are_large() -> None:
    for name, source in SOURCES.items():
        assert source.sizes, name
        for size in source.sizes:
            count = count_inputs(size.tokens, size.length, source.fixed)
            assert count <= 1_500 or count > 100_000, name


def test_programs_that_differ_in_constants_are_on_one_side() -> None:
    one, other = (
        locum.aggregate(locum.select(locum.indices, locum.indices - k, "=="), locum.tokens, default)
        for k, default in ((1, "a"), (2, "b"))
    )
    assert shape_of(one.node) == shape_of(other.node)
    assert split_of(shape_of(one.node)) in ("train", "test")


@pytest.mark.parametrize("recipe", ["fetch", "width-1"])
def test_items_of_u_are_made_and_right(recipe: str, tmp_path: Path) -> None:
    """Of the programs of U that were listed, most were turned down at every size."""
    name = f"simulator/U(2,1,1){recipe}"
    size = SOURCES[name].sizes[0]
    row = make(str(tmp_path), name, length=size.length, tokens=size.tokens)["row"]
    assert row["family"] == "U"
    item = load(tmp_path / row["folder"])
    assert item.certificate["inputs"] >= size.tokens**size.length
    bound = item.model.error_bound
    assert item.certificate["largest_error"] <= item.certificate["certified_error_bound"] == bound
    for inputs, outputs in zip(item.inputs, item.outputs, strict=True):
        assert item.model(inputs) == pytest.approx(outputs, rel=bound, abs=bound)
