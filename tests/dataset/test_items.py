"""Items: networks of every tier say what programs say, and labels are kept."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import locum
from locum.experiments.circuits.patching import CompiledNetwork
from locum.experiments.dataset.making import make, shape_of, split_of
from locum.experiments.dataset.parts import faithfulness, runs_of
from locum.experiments.dataset.program_families import SOURCES, count_inputs
from locum.experiments.dataset.scoring import Truth, score_files
from locum.experiments.dataset.tiers import TIERS
from locum.experiments.dataset.verify import check_item, load_network
from locum.graph import loads
from locum.networks.transformer.circuit import Circuit
from locum.networks.transformer.path_patching import Path as EdgePath

SIZE: dict[str, Any] = {"length": 4, "tokens": 2}


@pytest.fixture(scope="module")
def items(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, Any]]]:
    """One named and one random circuit in all tiers."""
    place = tmp_path_factory.mktemp("dataset")
    rows = make(str(place), "cookbook/induction", "softmax", list(TIERS), **SIZE)["rows"]
    rows += make(str(place), "random", "softmax", list(TIERS), layers=4, seed=3)["rows"]
    return place, rows


def test_every_tier_is_there_and_right(items: tuple[Path, list[dict[str, Any]]]) -> None:
    place, rows = items
    assert [row["tier"] for row in rows] == [*TIERS, *TIERS]
    for row in rows:
        inputs, wrong = check_item(place / row["folder"])
        assert inputs > 30
        assert wrong == [], row["id"]
        certificate = json.loads((place / row["folder"] / "certificate.json").read_text())
        assert certificate["all_inputs"]
        assert certificate["inputs"] == certificate["inputs_there_are"]


def test_the_script_runs_networks_as_the_package_does(
    items: tuple[Path, list[dict[str, Any]]],
) -> None:
    place, rows = items
    for row in rows:
        folder = place / row["folder"]
        model, network = locum.load(folder), load_network(folder)
        examples = json.loads((folder / "examples.json").read_text())
        for inputs in examples["inputs"][:8]:
            assert network([inputs]) == [model(inputs)]
        assert loads(model.config.program)


def test_tiers_hide_what_they_say(items: tuple[Path, list[dict[str, Any]]]) -> None:
    place, rows = items
    for row in rows:
        network = load_network(place / row["folder"])
        embedded = network.tensors["embed.W_E"]
        if row["tier"] in ("rotated", "superposed"):
            assert (embedded[embedded.any(axis=1)] != 0).all()
        if row["tier"] == "superposed":
            assert row["d_model"] <= row["slots"]
        if row["tier"] in ("decoys", "realistic"):
            assert row["heads"] > row["true_heads"]
        assert (network.config.get("norm") is not None) == (row["tier"] in ("normed", "realistic"))
    superposed = next(row for row in rows if row["tier"] == "superposed" and row["name"] == "random")
    assert superposed["d_model"] < superposed["slots"]


def test_labels_are_computed_and_complete(items: tuple[Path, list[dict[str, Any]]]) -> None:
    place, rows = items
    for row in rows:
        circuit = Circuit.load(place / row["folder"] / "circuit.json")
        assert circuit.checked["complete"]
        assert circuit.checked["all inputs"]
        assert len(circuit.necessary) == row["necessary_edges"] > 0
        names = {node.id for node in circuit.nodes}
        assert all({edge.source, edge.target} <= names for edge in circuit.edges)


def test_necessary_edges_alone_keep_every_answer_in_every_tier(
    items: tuple[Path, list[dict[str, Any]]],
) -> None:
    """All edges that no label calls necessary are changed at once; then some that are, one by one."""
    place, rows = items
    for row in rows:
        folder = place / row["folder"]
        truth = Truth(Circuit.load(folder / "circuit.json").data())
        pairs = json.loads((folder / "examples.json").read_text())["pairs"]
        runs = runs_of(load_network(folder), pairs)
        assert faithfulness(runs, truth, truth.edges) == 1.0, row["id"]
        assert faithfulness(runs, truth, truth.candidates) == 1.0
        assert faithfulness(runs, truth, ()) < 1.0
        into_output = next(edge for edge in sorted(truth.edges) if edge[1] == "output")
        assert faithfulness(runs, truth, set(truth.candidates) - {into_output}) < 1.0


def test_every_path_is_patched_alike_in_all_tiers(
    items: tuple[Path, list[dict[str, Any]]],
) -> None:
    """A compiled network and the networks of the dataset, in any basis and with norms, agree."""
    place, rows = items
    folders = {row["tier"]: place / row["folder"] for row in rows[: len(TIERS)]}
    plain = folders["plain"]
    model = locum.load(plain)
    truth = Truth(Circuit.load(plain / "circuit.json").data())
    pairs = json.loads((plain / "examples.json").read_text())["pairs"]
    compiled = runs_of(CompiledNetwork(model), pairs)
    others = {
        tier: runs_of(load_network(folders[tier]), pairs) for tier in ("plain", "rotated", "normed")
    }
    changed = 0
    for edge in truth.candidates:
        path = EdgePath.read(*edge)
        for number, run in enumerate(compiled):
            answers = run.patch([path])
            changed += not run.equal(answers).all()
            for tier, runs in others.items():
                assert runs[number].equal(runs[number].patch([path]), answers).all(), (tier, edge)
    assert changed > 10


def test_the_same_settings_give_the_same_bytes(
    items: tuple[Path, list[dict[str, Any]]], tmp_path: Path
) -> None:
    place, rows = items
    make(str(tmp_path), "cookbook/induction", "softmax", list(TIERS), **SIZE)
    for row in rows[: len(TIERS)]:
        for file in (place / row["folder"]).iterdir():
            assert file.read_bytes() == (tmp_path / row["folder"] / file.name).read_bytes(), file


def test_what_is_not_worth_an_item_is_turned_down(tmp_path: Path) -> None:
    result = make(str(tmp_path), "task/next_letter", "softmax", ["plain"], **SIZE)
    assert result["rows"] == []
    assert result["reason"] == "the network has no head"
    result = make(str(tmp_path), "c-rasp/(a+b)*", "hard", ["plain"], **SIZE)
    assert result["reason"] == "the network has 0 layers"
    assert not (tmp_path / "items").exists()


def test_hard_heads_come_as_they_are(tmp_path: Path) -> None:
    rows = make(str(tmp_path), "task/has_duplicate", "hard", list(TIERS), **SIZE)["rows"]
    assert [row["tier"] for row in rows] == ["plain"]
    assert check_item(tmp_path / rows[0]["folder"])[1] == []


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


@pytest.mark.parametrize("function", [load_network, score_files])
def test_the_scripts_need_numpy_and_safetensors_alone(function: Any) -> None:
    script = Path(function.__code__.co_filename)
    code = (
        "import sys, runpy\n"
        f"runpy.run_path({str(script)!r}, run_name='checked')\n"
        "assert not any(name.split('.')[0] in ('locum', 'torch', 'pyarrow') for name in sys.modules)"
    )
    subprocess.run([sys.executable, "-I", "-c", code], check=True)


@pytest.mark.parametrize("recipe", ["fetch", "width-1"])
def test_items_of_u_are_made_and_right(recipe: str, tmp_path: Path) -> None:
    """Of the programs of U that were listed, most were turned down at every size."""
    source = SOURCES[f"simulator/U(2,1,1){recipe}"]
    size = source.sizes[0]
    made = make(
        str(tmp_path),
        f"simulator/U(2,1,1){recipe}",
        "softmax",
        ["plain", "rotated"],
        length=size.length,
        tokens=size.tokens,
    )
    assert [row["tier"] for row in made["rows"]] == ["plain", "rotated"]
    for row in made["rows"]:
        assert row["family"] == "U"
        inputs, wrong = check_item(tmp_path / row["folder"])
        assert inputs >= size.tokens**size.length
        assert wrong == []
