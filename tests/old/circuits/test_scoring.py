"""Scores: the truth scores 1, unknown names are refused, patching finds edges."""

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
from locum.experiments.dataset import Item, load, score
from locum.experiments.dataset.baseline import by_patching
from locum.experiments.dataset.making import make
from locum.interface.cli.main import cli


@pytest.fixture(scope="module")
def item(tmp_path_factory: pytest.TempPathFactory) -> Item:
    place = tmp_path_factory.mktemp("scored")
    row = make(str(place), "cookbook/induction", length=4, tokens=2)["row"]
    loaded: Item = load(place / row["folder"])
    return loaded


@pytest.fixture(scope="module")
def patched(item: Item) -> dict[str, Any]:
    """What activation patching finds."""
    return by_patching(item.model, item.truth, item.pairs[:16])


def truth_of(item: Item) -> dict[str, Any]:
    """The true circuit, as a method would say it."""
    return {"edges": [{"source": s, "target": t} for s, t in sorted(item.truth.edges)]}


def test_the_truth_scores_one(item: Item) -> None:
    for row in score(item.truth, truth_of(item))["levels"].values():
        assert (row["precision"], row["recall"], row["average_precision"]) == (1.0, 1.0, 1.0)
        assert row["roc_auc"] in (1.0, None)


def test_the_order_of_entries_says_nothing(item: Item, patched: dict[str, Any]) -> None:
    shuffled = copy.deepcopy(patched)
    for entries in shuffled.values():
        random.Random(1).shuffle(entries)
    assert score(item.truth, shuffled) == score(item.truth, patched)


def test_patching_finds_edges(item: Item, patched: dict[str, Any]) -> None:
    levels = score(item.truth, patched)["levels"]
    assert levels["edges"]["precision"] == 1.0
    assert levels["edges"]["roc_auc"] > 0.9
    assert levels["heads"]["recall"] == 1.0


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
        ({"heads": [{"id": "blocks.0.attn.head.0", "score": 10**400}]}, "a finite number"),
    ],
)
def test_what_the_network_does_not_have_is_refused_by_name(item: Item, result: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        score(item.truth, result)


def test_the_command_scores_beside_an_item_and_alone(item: Item, tmp_path: Path) -> None:
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


def test_scores_below_a_millionth_of_the_largest_count_as_zero(item: Item) -> None:
    truth = item.truth
    first, *others = sorted(truth.edges)

    def average_precision(noise: float) -> float:
        scores = {first: 1.0} | dict.fromkeys(others, noise)
        edges = [{"source": s, "target": t, "score": v} for (s, t), v in scores.items()]
        result: float = score(truth, {"edges": edges})["levels"]["edges"]["average_precision"]
        return result

    assert len(others) > 1
    assert average_precision(1e-7) == average_precision(0.0) < average_precision(1e-5)


def test_heads_and_qkv_do_not_follow_from_noise(item: Item) -> None:
    truth = item.truth
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


def test_a_threshold_is_a_number(item: Item) -> None:
    with pytest.raises(InputError, match="threshold that scores are compared with, got nan"):
        score(item.truth, {"edges": []}, threshold=float("nan"))


def test_items_whose_pairs_agree_at_the_last_position_have_no_pairs_for_public_methods() -> None:
    item: Any = SimpleNamespace(
        model=SimpleNamespace(config=SimpleNamespace(outputs=(0, 1))),
        pairs=[{"clean": "ab", "other": "bb", "answer": [0, 1], "other_answer": [1, 1]}],
    )
    assert bench_public_methods.pairs_of(item, None) == [[], [], [], []]
