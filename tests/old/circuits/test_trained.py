"""Trained networks: the alignment of a program, and the figures by which a network is accepted."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import locum
from locum import aggregate, indices, select, selector_width, tokens
from locum.execution import run
from locum.experiments.circuits.patching import CompiledNetwork
from locum.experiments.circuits.program_interchange import interchange
from locum.experiments.dataset import load
from locum.experiments.dataset.agreement import RejectedProgramError
from locum.experiments.dataset.generating import trained_candidates
from locum.experiments.dataset.interchange_training import _Trainer
from locum.experiments.dataset.making import make
from locum.experiments.dataset.scoring import Truth
from locum.experiments.dataset.trained_alignment import align, targets_of
from locum.networks.transformer.circuit import Circuit
from locum.rasp.programs import load_everyday

torch = pytest.importorskip("torch")

PREVIOUS = aggregate(select(indices, indices - 1, "=="), tokens, "?")


@pytest.fixture(scope="module")
def item(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a network that was trained to compare each token with the previous one."""
    place = tmp_path_factory.mktemp("trained")
    made = make(str(place), "task/equals_the_previous", tier="trained", length=4, tokens=2)
    folder: str = made["row"]["folder"]
    return place / folder


def test_components_are_heads_and_feed_forwards_of_their_layers() -> None:
    two = align(load_everyday("induction").program.node)
    assert [(part.layer, part.head is None) for part in two.components] == [(0, False), (1, False)]
    counted = align(((selector_width(select(tokens, tokens, "==")) + 1) % 2).node)
    assert [(part.layer, part.head is None) for part in counted.components] == [(0, False), (0, True)]
    count = align(selector_width(select(tokens, tokens, "==")).node)
    assert [part.head is None for part in count.components] == [False, True]
    with pytest.raises(RejectedProgramError, match="no head that reads tokens"):
        align((indices + 1).node)


def test_targets_are_the_answers_of_the_changed_program() -> None:
    program = (PREVIOUS == tokens).node
    targets = targets_of(align(program), "ab", 3)
    (place,) = (i for i, part in enumerate(targets.alignment.components) if part.head is not None)
    for clean, other in ((0, 5), (3, 6), (7, 2)):
        pair = (targets.rows[clean], targets.rows[other])
        found = targets.interchanged[place][clean][other]
        assert found is not None
        assert [[targets.outputs[number] for number in found]] == interchange(
            program, [PREVIOUS.node], [pair]
        )


def test_a_trained_item_is_right_on_all_inputs(item: Path) -> None:
    model, program = locum.load(item), (item / "program.rasp").read_text()
    assert "aggregate" in program
    for row in itertools.product("ab", repeat=4):
        assert model(list(row)) == run(model.program, list(row))


def _patched(
    network: CompiledNetwork, rows: Any, given: dict[str, Any], change: Callable[..., Any]
) -> Any:
    def tap(name: str, value: Any) -> Any:
        return change(name, value, given.get(name))

    return network.answers(network.read_off(network.stream(rows, tap)))


def test_interventions_agree_and_other_parts_have_no_effect(item: Path) -> None:
    """Repeat the interventions with the NumPy network, on all pairs."""
    model = locum.load(item)
    network = CompiledNetwork(model)
    certificate = json.loads((item / "certificate.json").read_text())["training"]
    components = certificate["interventions"]
    assert min(components.values()) >= 0.99
    alignment = align(model.program, seed=0)
    rows = [list(row) for row in itertools.product("ab", repeat=4)]
    outputs = model.config.outputs
    assert outputs is not None
    seen: dict[str, Any] = {}
    before = network.answers(network.read_off(network.stream(rows, lambda n, v: seen.update({n: v}))))
    clean, other = (part.ravel() for part in np.meshgrid(range(16), range(16), indexing="ij"))
    given = {name: value[other] for name, value in seen.items()}
    heads = [int(name.rpartition(".")[2]) for name in components if ".head." in name]
    (sop,) = (part.sops for part in alignment.components if part.head is not None)

    def head_only(name: str, value: Any, new: Any) -> Any:
        if name != "blocks.0.attn.hook_z":
            return None
        mixed = value.copy()
        mixed[:, :, heads] = new[:, :, heads]
        return mixed

    def all_others(name: str, value: Any, new: Any) -> Any:
        if name != "blocks.0.attn.hook_z":
            return None
        mixed = new.copy()
        mixed[:, :, heads] = value[:, :, heads]
        return mixed

    pairs = [(rows[a], rows[b]) for a, b in zip(clean, other, strict=True)]
    wanted = interchange(model.program, sop, pairs)
    cleans = [rows[place] for place in clean]
    found = _patched(network, cleans, given, head_only)
    agree = [[outputs[n] for n in row] == right for row, right in zip(found, wanted, strict=True)]
    assert np.mean(agree) >= 0.99
    assert (_patched(network, cleans, given, all_others) == before[clean]).all()


def test_labels_are_complete_and_name_the_head(item: Path) -> None:
    circuit = Circuit.load(item / "circuit.json")
    assert circuit.checked["complete"]
    truth = Truth(circuit.data())
    held = {node.id for node in circuit.nodes if node.kind == "head" and node.role != "decoy"}
    assert truth.true_heads >= held
    assert len(truth.heads) == 4


def test_edges_of_a_trained_item_are_patched_and_say_how_they_are_necessary(item: Path) -> None:
    loaded = load(item)
    clean, other = ([pair[name] for pair in loaded.pairs[:6]] for name in ("clean", "other"))
    breaks = 0
    for edge in loaded.model.circuit.edges:
        assert edge.necessity in (("alone", "jointly") if edge.necessary else ("",))
        breaks += loaded.model.patch_edge(clean, other, edge) != loaded.model(clean)
    assert breaks >= 3
    assert loaded.model.patch(clean, other, "output") == loaded.model(other)
    assert loaded.truth.edges == {e for e, kind in loaded.truth.necessity.items() if kind}


def test_parts_that_cancel_each_other_are_measured_alone() -> None:
    """Two heads outside of the circuit had an effect of 0.99 alone, and of 0.003 together."""
    targets = targets_of(align((PREVIOUS == tokens).node), "ab", 3)
    trainer = _Trainer(targets, 2, 0)
    masks = trainer._masks()
    assert torch.equal(masks[0], trainer.outside)
    assert [int(mask.sum()) for mask in masks[1:]] == [1] * int(trainer.outside.sum())
    trained = trainer.run(200)
    assert trained.figures.answers == 1
    one, other = (int(mask.nonzero()[0, 1]) for mask in masks[1:3])
    with torch.no_grad():
        for letter in "QKV":
            for part in ("W", "b"):
                heads = trainer.weights[f"blocks.0.attn.{part}_{letter}"]
                heads[other] = heads[one]
        heads = trainer.weights["blocks.0.attn.W_O"]
        heads[one] = torch.randn(heads[one].shape, generator=trainer.draw) * 5
        heads[other] = -heads[one]
    figures = trainer.measure()
    assert figures.outside > 0.2
    assert not figures.is_accepted


def test_many_programs_can_be_aligned() -> None:
    assert len(list(trained_candidates())) >= 100
