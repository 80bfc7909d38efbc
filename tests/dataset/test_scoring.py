"""Scores: the truth scores 1, unknown names are refused, baselines solve what they should."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from benchmarks import bench_public_methods
from click.testing import CliRunner

from locum.errors import InputError
from locum.experiments.dataset import Dataset, Item, load, score
from locum.experiments.dataset.baseline import by_patching, by_weights
from locum.experiments.dataset.making import make
from locum.interface.cli.main import cli


@pytest.fixture(scope="module")
def items(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Item]:
    """One circuit, plain, rotated and realistic."""
    place = tmp_path_factory.mktemp("scored")
    tiers = ["plain", "rotated", "realistic"]
    rows = make(str(place), "cookbook/induction", "softmax", tiers, length=4, tokens=2)["rows"]
    return {row["tier"]: load(place / row["folder"]) for row in rows}


@pytest.fixture(scope="module")
def patched(items: dict[str, Item]) -> dict[str, Any]:
    """What activation patching finds."""
    return {
        tier: by_patching(item.network, item.truth, item.pairs[:16]) for tier, item in items.items()
    }


def truth_of(item: Item) -> dict[str, Any]:
    """The true circuit, as a method would say it."""
    truth = item.truth
    return {
        "edges": [{"source": s, "target": t} for s, t in sorted(truth.edges)],
        "slots": [{"direction": item.directions[slot].tolist()} for slot in truth.true_slots],
    }


def test_the_truth_scores_one_in_every_tier(items: dict[str, Item]) -> None:
    for item in items.values():
        for row in score(item.truth, truth_of(item), item.directions)["levels"].values():
            assert (row["precision"], row["recall"], row["average_precision"]) == (1.0, 1.0, 1.0)
            assert row["roc_auc"] in (1.0, None)


def test_the_order_of_entries_says_nothing(items: dict[str, Item], patched: dict[str, Any]) -> None:
    item, result = items["realistic"], patched["realistic"]
    shuffled = copy.deepcopy(result)
    for entries in shuffled.values():
        random.Random(1).shuffle(entries)
    assert score(item.truth, shuffled, item.directions) == score(item.truth, result, item.directions)


def test_patching_solves_edges_everywhere_and_slots_only_where_they_are_axes(
    items: dict[str, Item], patched: dict[str, Any]
) -> None:
    levels = {
        tier: score(item.truth, patched[tier], item.directions)["levels"]
        for tier, item in items.items()
    }
    for tier in items:
        assert levels[tier]["edges"]["precision"] == 1.0
        assert levels[tier]["edges"]["roc_auc"] > 0.9
    assert levels["plain"]["slots"]["recall"] > 0.5
    for tier in ("rotated", "realistic"):
        assert levels[tier]["slots"]["average_precision"] == 0.0


def test_weights_give_plain_networks_away_and_realistic_ones_not(items: dict[str, Item]) -> None:
    areas = {
        tier: score(item.truth, by_weights(item.network, item.truth))["levels"]["edges"]["precision"]
        for tier, item in items.items()
    }
    assert areas["plain"] > 2 * areas["realistic"]


@pytest.mark.parametrize(
    ("result", "words"),
    [
        ([], "expected an object with some of edges"),
        ({"circuits": []}, "expected an object with some of edges"),
        ({"heads": {}}, "heads: expected a list"),
        ({"heads": [{"id": "blocks.0.attn.head.7"}]}, "heads.0.: the network has no 'blocks.0.attn.he"),
        ({"heads": [{"id": "blocks.0.attn.head.0"}] * 2}, "occurs twice"),
        ({"qkv": [{"id": "blocks.0.attn.head.0"}]}, "did you mean blocks.0.attn.head.0"),
        ({"edges": [{"source": "embed"}]}, "expected source, target and perhaps score"),
        ({"edges": [{"source": "output", "target": "output"}]}, "no 'output'"),
        (
            {"edges": [{"source": "blocks.1.attn.head.0", "target": "blocks.0.attn.head.0.q"}]},
            "expected an edge to a later component",
        ),
        (
            {"edges": [{"source": "embed", "target": "output", "score": float("nan")}]},
            "a finite number",
        ),
        ({"slots": [{"direction": [0, 0]}]}, "not all of them 0"),
        ({"slots": [{"direction": [1, 0]}]}, "as many as d_model"),
        ({"slots": [{"direction": "up"}]}, "expected a direction"),
    ],
)
def test_what_the_network_does_not_have_is_refused_by_name(
    items: dict[str, Item], result: Any, words: str
) -> None:
    with pytest.raises(InputError, match=words):
        score(items["plain"].truth, result, items["plain"].directions)


@pytest.mark.parametrize(
    "result",
    [
        {"slots": [{"direction": 3}]},
        {"slots": [{"direction": None}]},
        {"slots": [{"direction": [10**400]}]},
        {"heads": [{"id": "blocks.0.attn.head.0", "score": 10**400}]},
    ],
)
def test_no_direction_and_no_score_is_refused(items: dict[str, Item], result: dict[str, Any]) -> None:
    """These once were errors of Python's."""
    with pytest.raises(InputError, match="expected a"):
        score(items["plain"].truth, result)


def test_the_command_scores_beside_an_item_and_alone(items: dict[str, Item], tmp_path: Path) -> None:
    item = items["rotated"]
    (tmp_path / "found.json").write_text(json.dumps(truth_of(item)))
    arguments = ["dataset", "score", str(item.folder / "circuit.json"), str(tmp_path / "found.json")]
    result = CliRunner().invoke(cli, [*arguments, "--json"], catch_exceptions=False)
    data = json.loads(result.output)
    assert data["levels"]["edges"]["f1"] == data["faithfulness"]["of_the_circuit"] == 1.0
    curve = [share for _, share in data["faithfulness"]["curve"]]
    assert curve[-1] == 1.0 > curve[0]
    assert "average precision" in CliRunner().invoke(cli, arguments).output
    (tmp_path / "circuit.json").write_bytes((item.folder / "circuit.json").read_bytes())
    arguments[2] = str(tmp_path / "circuit.json")
    (tmp_path / "found.json").write_text('{"heads": []}')
    alone = json.loads(CliRunner().invoke(cli, [*arguments, "--json"]).output)
    assert alone["levels"]["heads"]["recall"] == 0.0
    assert "faithfulness" not in alone
    arguments[3] = arguments[2]  # the true circuit, as the one that was found
    same = json.loads(CliRunner().invoke(cli, [*arguments, "--json"]).output)
    assert {row["f1"] for row in same["levels"].values()} == {1.0}


def test_items_are_loaded_in_python_and_torch(items: dict[str, Item]) -> None:
    item = items["plain"]
    assert item.model(item.inputs[5]) == item.outputs[5] == item.network([item.inputs[5]])[0]
    assert item.model.circuit == item.circuit
    tensors, label = Dataset(item.folder, [{"folder": ".", "id": "plain/one"}]).to_torch()[0]
    assert tuple(tensors["embed.W_E"].shape) == item.network.tensors["embed.W_E"].shape
    assert label["heads"] == sorted(item.truth.true_heads)
    assert item.certificate["agrees"]
    assert "select" in item.program


def test_scores_below_a_millionth_of_the_largest_count_as_zero(items: dict[str, Item]) -> None:
    truth = items["plain"].truth
    first, *others = sorted(truth.edges)

    def average_precision(noise: float) -> float:
        scores = {first: 1.0} | dict.fromkeys(others, noise)
        edges = [{"source": s, "target": t, "score": v} for (s, t), v in scores.items()]
        result: float = score(truth, {"edges": edges})["levels"]["edges"]["average_precision"]
        return result

    assert len(others) > 1
    assert average_precision(1e-7) == average_precision(0.0) < average_precision(1e-5)


def test_heads_and_qkv_do_not_follow_from_noise(items: dict[str, Item]) -> None:
    truth = items["plain"].truth
    inside = [edge for edge in truth.candidates if edge[1] in truth.inside]
    outer = next(edge for edge in truth.candidates if edge[1] == "output" and edge[0] == "embed")

    def levels(noise: float) -> Any:
        edges = dict.fromkeys(inside, noise) | {outer: 1.0}
        entries = [{"source": s, "target": t, "score": v} for (s, t), v in edges.items()]
        entries[0]["score"] = noise / 2  # unequal scores of rounding errors
        found = score(truth, {"edges": entries})
        return found["levels"]["heads"], found["levels"]["qkv"]

    assert levels(1e-7) == levels(0.0)
    assert levels(1e-3) != levels(0.0)


@pytest.mark.parametrize("scale", [1e-310, 1e-160, 1e160, 1e300])
def test_directions_of_any_length_are_directions(items: dict[str, Item], scale: float) -> None:
    item = items["plain"]
    slot = next(iter(item.truth.true_slots))
    result = {"slots": [{"direction": (scale * item.directions[slot]).tolist()}]}
    assert score(item.truth, result, item.directions)["levels"]["slots"]["precision"] == 1


def test_a_threshold_is_a_number(items: dict[str, Item]) -> None:
    with pytest.raises(InputError, match="threshold that scores are compared with, got nan"):
        score(items["plain"].truth, {"edges": []}, threshold=float("nan"))


def test_items_whose_pairs_agree_at_the_last_position_have_no_pairs_for_public_methods() -> None:
    item: Any = SimpleNamespace(
        network=SimpleNamespace(config={"outputs": [0, 1]}),
        pairs=[{"clean": "ab", "other": "bb", "answer": [0, 1], "other_answer": [1, 1]}],
    )
    assert bench_public_methods.pairs_of(item, None) == [[], [], [], []]
