"""One network per tier in torch and TransformerLens: answers, gradients, path patching, attribution."""

from __future__ import annotations

import functools
import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from locum.errors import InputError
from locum.experiments.dataset import Item, load, score
from locum.experiments.dataset.baseline import at_random, by_acdc
from locum.experiments.dataset.making import make
from locum.experiments.dataset.parts import runs_of
from locum.experiments.dataset.scoring import OUTPUT, part_of, reader_of
from locum.experiments.dataset.tiers import SOFT, TIERS
from locum.networks.transformer.path_patching import Path as EdgePath

torch = pytest.importorskip("torch")
INSTALLED = importlib.util.find_spec("transformer_lens") is not None


@pytest.fixture(scope="module")
def items(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Item]:
    """One circuit in all tiers."""
    place = tmp_path_factory.mktemp("tiers")
    rows = make(str(place), "cookbook/induction", "softmax", list(TIERS), length=4, tokens=2)["rows"]
    return {row["tier"]: load(place / row["folder"]) for row in rows}


def attributed(item: Item, steps: int = 1) -> dict[str, Any]:
    from locum.experiments.dataset.attribution import by_attribution

    return by_attribution(item.model, item.network, item.truth, item.pairs[:8], steps)


@pytest.mark.parametrize("tier", TIERS)
def test_answers_in_torch(items: dict[str, Item], tier: str) -> None:
    item = items[tier]
    module = item.to_torch()
    for size in (2, 4):
        rows = [row for row in item.inputs if len(row) == size]
        answers = module(torch.as_tensor(item.model.encode(rows)))
        expected = [out for row, out in zip(item.inputs, item.outputs, strict=True) if len(row) == size]
        assert item.model.decode(answers, rows) == expected


@pytest.mark.skipif(not INSTALLED, reason="transformer_lens is not installed")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("tier", TIERS)
def test_answers_and_path_patching_in_transformer_lens(items: dict[str, Item], tier: str) -> None:
    """Every edge, patched with TransformerLens's hooks, gives the answers of Locum's path patching."""
    item = items[tier]
    pairs = [pair | {"elsewhere": None} for pair in item.pairs if len(pair["clean"]) == 4][:6]
    (run,) = runs_of(item.network, pairs)
    hooked = item.to_transformer_lens()
    hooked.set_use_split_qkv_input(True)
    hooked.set_use_hook_mlp_in(True)
    tokens = item.model.transformer_lens_inputs([pair["clean"] for pair in pairs])
    sink, width = item.network.sink, item.model.weights.W_E.shape[1]
    with torch.no_grad():
        clean = hooked(tokens, return_type="logits").numpy()[:, sink:]
        np.testing.assert_array_equal(item.network.answers(clean), run.answers)
        for writer, reader in item.truth.candidates:
            change = torch.as_tensor(run.difference(EdgePath.read(writer, reader)))

            def add(value: Any, hook: Any, head: int | None, change: Any = change) -> Any:
                target = value if head is None else value[:, :, head]
                target[..., :width] += change
                return value

            name, head = _hook(reader, len(item.network.layers))
            patched = hooked.run_with_hooks(
                tokens, fwd_hooks=[(name, functools.partial(add, head=head))]
            )
            answers = item.network.answers(patched.numpy()[:, sink:])
            own = run.patch([EdgePath.read(writer, reader)])
            np.testing.assert_array_equal(answers, own, err_msg=f"{writer} {reader}")


def _hook(reader: str, layers: int) -> tuple[str, int | None]:
    """Return the hook of TransformerLens at which a part reads, and its head."""
    if reader == OUTPUT:
        return f"blocks.{layers - 1}.hook_resid_post", None
    parts = reader.split(".")
    block = ".".join(parts[:2])
    return (
        (f"{block}.hook_mlp_in", None)
        if len(parts) == 3
        else (f"{block}.hook_{parts[5]}_input", int(parts[4]))
    )


@pytest.mark.parametrize("tier", TIERS)
def test_edges_of_an_item_are_patched_between_components(items: dict[str, Item], tier: str) -> None:
    """In a rotated basis, an edge through a slot was patched along one axis of the stream."""
    item, plain = items[tier], items["plain"]
    pairs = [pair for pair in item.pairs if len(pair["clean"]) == 4][:6]
    clean, other = ([pair[name] for pair in pairs] for name in ("clean", "other"))
    by_slots = tier in ("plain", "decoys")
    changed = 0
    for edge in item.model.circuit.edges:
        answers = item.model.patch_edge(clean, other, edge)
        if by_slots:
            ends = (edge.source, edge.target)
        else:
            ends = (part_of(edge.source), reader_of(edge.target))
            assert ends == (edge.source, edge.target)
        whole = f"{part_of(ends[0])}->{reader_of(ends[1])}"
        if not by_slots and tier in ("rotated", "superposed"):
            assert answers == plain.model.patch_edge(clean, other, whole), edge.id
        changed += answers != item.model(clean)
    assert changed
    for node in item.model.circuit.nodes:
        assert item.model.patch(clean, other, node.id) == item.model.patch(clean, other, node)
    if not by_slots:
        assert all(name.startswith("axis") for name in item.model.config.slots)
        assert "all slots" in str(item.model.circuit)
        assert item.model.circuit.draw().startswith("<svg")
        slot = next(e for e in item.circuit.edges if e.source.startswith("embed."))
        with pytest.raises(InputError, match="try embed, pos_embed"):
            item.model.patch_edge(clean, other, slot)
        # Slots of the label are not axes of this stream.
        for node in item.circuit.nodes:
            if node.kind in ("embed", "pos_embed", "slot"):
                with pytest.raises(InputError, match=r"expected a node of model\.circuit"):
                    item.model.patch(clean, other, node)


def test_the_certified_bound_is_that_of_the_network_of_the_tier(tmp_path: Path) -> None:
    """The bound of the compiler is not one of networks with softer heads and tables."""
    made = make(
        str(tmp_path), "construction/row sums", "softmax", ["plain", "realistic"], length=6, tokens=2
    )
    for row in made["rows"]:
        item = load(tmp_path / row["folder"])
        error = item.certificate["largest_error"]
        assert error <= item.certificate["certified_error_bound"] == item.model.error_bound
        away = np.abs(np.array(item.model(item.inputs)) - np.array(item.outputs)).max()
        assert away <= item.model.error_bound * np.abs(item.outputs).max()
    assert row["tier"] == "realistic"
    assert error > 1e-7


def test_soft_tiers_have_a_gradient_at_every_true_edge(items: dict[str, Item]) -> None:
    def zeros(tier: str) -> int:
        found = {(e["source"], e["target"]): e["score"] for e in attributed(items[tier])["edges"]}
        return sum(found[edge] < 1e-9 for edge in items[tier].truth.edges)

    assert zeros("plain") > 3
    assert [zeros(tier) for tier in SOFT] == [0, 0]


@pytest.mark.parametrize("steps", [1, 4])
@pytest.mark.parametrize("name", ["cookbook/induction", "c-rasp/dyck", "task/mean_so_far"])
def test_attribution_is_the_same_in_any_basis(tmp_path: Path, name: str, steps: int) -> None:
    """Answers that differ only by rounding, and units at their kinks, have no gradient of their own."""
    rows = make(str(tmp_path), name, "softmax", ["plain", "rotated"], length=6, tokens=2)["rows"]
    both = [load(tmp_path / row["folder"]) for row in rows]
    plain, rotated = (
        score(item.truth, attributed(item, steps))["levels"]["edges"]["average_precision"]
        for item in both
    )
    assert abs(plain - rotated) <= 0.01


def test_alternatives_and_kinks_are_the_same_in_any_basis(tmp_path: Path) -> None:
    """Units of this network are at their kinks, and two logits tie for the second place."""
    from locum.experiments.dataset.attribution import by_attribution

    made = make(str(tmp_path), "task/second_half", "softmax", ["plain", "rotated"], length=4, tokens=2)
    plain, rotated = (load(tmp_path / row["folder"]) for row in made["rows"])
    scores = [
        [
            edge["score"]
            for edge in by_attribution(item.model, item.network, item.truth, item.pairs[:8])["edges"]
        ]
        for item in (plain, rotated)
    ]
    np.testing.assert_allclose(scores[0], scores[1], rtol=1e-6, atol=1e-9)
    assert max(scores[0]) > 1


def test_norms_are_computed_with_and_the_certificate_has_their_size(items: dict[str, Item]) -> None:
    for tier in SOFT:
        certificate = json.loads((items[tier].folder / "certificate.json").read_text())
        weights = certificate["weights"]
        assert certificate["all_inputs"]
        low, high = weights["norm_weights"]
        assert 0.8 < low <= high < 1.25
        assert weights["norm_variation"] > 1e-3
        assert weights["largest_weight"] < 1e5
        gaps = [gap for layer in weights["attention_gaps"].values() for gap in layer if gap is not None]
        assert min(gaps) < 30
        # The default sharpness is 10. Equal scores, which differ slightly, are no gaps.
        assert min(gaps) > 1


def test_acdc_finds_more_than_chance(items: dict[str, Item]) -> None:
    item = items["realistic"]
    found, chance = (
        score(item.truth, entries, item.directions)["levels"]["edges"]["average_precision"]
        for entries in (
            by_acdc(item.network, item.truth, item.pairs[:8]),
            at_random(item.network, item.truth),
        )
    )
    assert found > chance + 0.2


def test_a_width_that_is_too_small_is_left_out(tmp_path: Path) -> None:
    size: dict[str, Any] = {"length": 4, "tokens": 2}
    made = [
        make(str(tmp_path), "cookbook/induction", "softmax", ["realistic"], **size, d_model=width)
        for width in (4, 40)
    ]
    assert "axes or more, got 4" in made[0]["reason"]
    assert made[1]["rows"][0]["d_model"] == 40
