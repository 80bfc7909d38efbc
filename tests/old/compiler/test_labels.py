"""Labels and layers of a compiled network: full in the data, and counted from 0."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import locum
from locum.errors import CompileError
from locum.graph import build
from locum.graph.labels import Labels
from tests.cli.commands import command_line

COUNTS = locum.selector_width(locum.select(locum.tokens, locum.tokens, "=="))


def test_layers_are_counted_from_0_with_transformer_lens_names() -> None:
    model = locum.compile(
        locum.aggregate(locum.select(COUNTS, locum.indices, "=="), locum.tokens, "?"),
        length=4,
        vocabulary="ab",
        attention="softmax",
        feed_forward="relu",
    )
    report = model.config.report
    blocks = {name.rpartition(".")[0] for name, _ in model.weights.named() if "blocks" in name}
    for kind, half in (("attention", "attn"), ("softmax", "attn"), ("realised", "mlp")):
        for entry in report[kind]:
            assert entry["block"] == f"blocks.{entry['layer']}.{half}"
            assert entry["block"] in blocks
    assert min(entry["layer"] for entry in report["attention"]) == 0
    for layer, labels in enumerate(model.config.heads):
        told = [entry["selector"] for entry in report["attention"] if entry["layer"] == layer]
        assert told == list(labels)


@pytest.mark.parametrize("recipe", ["fetch", "paper", "tiled"])
def test_slots_and_heads_have_labels_of_their_own(recipe: str) -> None:
    model = locum.UniversalSimulator(4, 3, 3).compile(recipe, feed_forward="exact")
    assert len(set(model.slots)) == len(model.slots)
    for heads in model.config.heads:
        assert not any(label.endswith("…") for label in heads)
    for label in (part for slot in model.slots for part in slot.split(" → ")):
        assert "…" not in label or re.search(r"#[0-9a-f]{8}", label)


def test_a_label_is_the_whole_expression() -> None:
    x = locum.indices
    for number in range(30):
        x = x * number + locum.tokens_int
    label = Labels()(x.node)
    assert "…" not in label
    assert label.count("tokens_int") == 30
    table = locum.lookup(locum.indices, {n: n * n for n in range(50)})
    assert "49: 2401" in Labels()(table.node)


def test_a_label_without_end_is_cut_and_still_its_own() -> None:
    """Sixty doublings are 2⁶⁰ characters: the hash tells such labels apart."""
    node, labels = build("indices"), Labels()
    seen = set()
    for _ in range(60):
        node = build("add", node, node)
        label = labels(node)
        assert len(label) <= 2_000
        seen.add(label)
    assert len(seen) == 60


BEFORE = locum.select(locum.indices, locum.indices - 1, "==")
PREVIOUS = locum.aggregate(BEFORE, locum.tokens, "?")


def _labels(names: Any) -> list[str]:
    model = locum.compile(PREVIOUS, length=3, vocabulary="ab", attention="softmax", names=names)
    return [node.label for node in model.circuit.nodes if node.kind in ("head", "o")]


def test_names_are_given_by_s_op_selector_or_node() -> None:
    assert _labels({BEFORE: "before", PREVIOUS: "previous"}) == ["before", "previous"]
    assert _labels({BEFORE.node: "before", PREVIOUS.node: "previous"}) == ["before", "previous"]
    # The same part by its handle and by its node.
    assert _labels({BEFORE: "before", BEFORE.node: "before", PREVIOUS: "p"}) == ["before", "p"]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({"previous": PREVIOUS}, r"as the key, got 'previous'; try names={s_op: 'previous'}"),
        ({3: "previous"}, r"as the key, got 3; try names={s_op: 'name'}"),
        ([PREVIOUS], "expected a dict from s-ops and selectors to their names, got list"),
        ({PREVIOUS: ""}, "expected a string that is not empty for aggregate"),
        ({PREVIOUS: 3}, "got 3; try names"),
        ({locum.indices + 7: "x"}, "expected parts of the program, got indices \\+ 7 for 'x'"),
        ({PREVIOUS: "x", BEFORE: "x"}, "one part for each name, got 'x' for select"),
        ({PREVIOUS: "x", PREVIOUS.node: "y"}, "one name for each part"),
    ],
)
def test_names_that_label_nothing_are_rejected(names: Any, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        _labels(names)


def test_the_command_labels_by_the_names_of_the_file(tmp_path: Path) -> None:
    """Names that the compiled s-op does not use are no mistake in a file."""
    (tmp_path / "p.rasp").write_text(
        "unused = indices + 7;\nbefore = select(indices, indices - 1, ==);\n"
        'previous = aggregate(before, tokens, "?");\n',
        encoding="utf-8",
    )
    done = command_line(
        "compile", str(tmp_path / "p.rasp"), "--name", "previous", "--length", "3", "--vocab", "ab",
        "-o", str(tmp_path / "model"),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert locum.load(tmp_path / "model").config.heads == (("before",),)
