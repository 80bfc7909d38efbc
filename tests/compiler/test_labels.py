"""Labels and layers of a compiled network: full in the data, and counted from 0."""

from __future__ import annotations

import re

import pytest

import locum
from locum.graph import build
from locum.graph.labels import Labels

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
