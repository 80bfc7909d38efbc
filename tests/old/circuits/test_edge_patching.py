"""Edges and components are patched and ablated as TransformerLens's own hooks do it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
import torch

import locum
from locum.errors import InputError
from locum.experiments.circuits import check_circuit
from locum.networks.transformer.circuit import Circuit, CircuitEdge
from locum.networks.transformer.interventions import read_place
from locum.rasp.programs import load_everyday

UNITS: dict[str, Any] = {"attention": "softmax", "feed_forward": "relu", "reuse_slots": False}
BATCH = [list("abba"), list("bbab"), list("aaab")]
OTHERS = [list("bbaa"), list("abab"), list("baba")]


def compiled(name: str = "induction", **options: Any) -> locum.CompiledTransformer:
    program = load_everyday(name).program
    return locum.compile(program, length=4, **({"vocabulary": "ab"} | UNITS | options))


class Lens:
    """Path patching by TransformerLens's hooks and weights alone."""

    def __init__(self, model: locum.CompiledTransformer) -> None:
        self.model, self.hooked = model, model.to_transformer_lens()
        self.runs = {
            key: self.hooked.run_with_cache(model.transformer_lens_inputs(rows))[1]
            for key, rows in (("clean", BATCH), ("other", OTHERS))
        }

    def answers(self, hooks: list[tuple[str, Callable[..., Any]]]) -> Any:
        ids = self.model.transformer_lens_inputs(BATCH)
        logits = self.hooked.run_with_hooks(ids, fwd_hooks=hooks)
        return self.model.decode(logits.detach().numpy(), BATCH)

    def written(self, edge: CircuitEdge, run: str) -> Any:
        node, cache = self.model.circuit.node(edge.source), self.runs[run]
        if node.layer is None:
            return cache[node.hook][..., edge.slot]
        block = self.hooked.blocks[node.layer]
        places = list(node.places)
        if node.kind == "o":
            return (
                cache[node.hook][:, :, node.head, places] @ block.attn.W_O[node.head, places, edge.slot]
            )
        return cache[node.hook][..., places] @ block.mlp.W_out[places, edge.slot]

    def patched(self, edge: CircuitEdge, rows: list[int] | None = None) -> Any:
        """Return the answers with one edge as on the other inputs, at some rows of the stream."""
        change = (self.written(edge, "other") - self.written(edge, "clean")).detach()
        if rows is not None:
            kept = torch.zeros_like(change)
            kept[:, rows] = change[:, rows]
            change = kept
        target = self.model.circuit.node(edge.target)

        def call(value: Any, hook: Any) -> Any:
            value = value.clone()
            if target.kind == "output":
                value[..., edge.slot] += change
            elif target.kind == "units":
                weights = self.hooked.blocks[target.layer].mlp.W_in
                places = list(target.places)
                value[..., places] += change[..., None] * weights[edge.slot, places]
            else:
                weights = getattr(self.hooked.blocks[target.layer].attn, f"W_{target.kind.upper()}")
                value[:, :, target.head] += change[..., None] * weights[target.head, edge.slot]
            return value

        hook = target.hook.replace("hook_post", "hook_pre")
        return self.answers([(hook, call)])


@pytest.mark.parametrize("name", ["induction", "palindrome", "most_frequent"])
def test_edges_are_patched_as_in_transformer_lens(name: str) -> None:
    model = compiled(name)
    lens, module = Lens(model), model.to_torch()
    ids, others = (torch.as_tensor(model.encode(rows)) for rows in (BATCH, OTHERS))
    changed = 0
    for edge in model.circuit.edges:
        expected = lens.patched(edge)
        assert model.patch_edge(BATCH, OTHERS, edge) == expected, edge.id
        assert model.patch(BATCH, OTHERS, edge.id) == expected, edge.id
        logits = module.patch_edge(ids, others, edge)
        assert model.decode(logits.detach().numpy(), BATCH) == expected, edge.id
        rows = [2 + model.config.sink]
        assert model.patch_edge(BATCH, OTHERS, edge, positions=[2]) == lens.patched(edge, rows)
        changed += expected != model(BATCH)
    assert changed > len(model.circuit.edges) / 4


@pytest.mark.parametrize("positions", [None, [1], [0, 3]])
def test_ablations_are_those_of_transformer_lens(positions: list[int] | None) -> None:
    model = compiled()
    lens = Lens(model)
    rows = slice(None) if positions is None else [p + model.config.sink for p in positions]
    hook = "blocks.0.attn.hook_z"
    clean, other = lens.runs["clean"][hook], lens.runs["other"][hook]

    def putting(source: Any) -> Any:
        def call(value: Any, hook: Any) -> Any:
            value = value.clone()
            value[:, rows] = torch.as_tensor(source).expand_as(value)[:, rows]
            return value

        return lens.answers([(hook, call)])

    def ablated(**options: Any) -> Any:
        return model.ablate(BATCH, "blocks.0.attn.head.0", positions=positions, **options)

    assert ablated() == putting(torch.zeros_like(clean))
    assert ablated(value=2) == putting(torch.full_like(clean, 2))
    assert ablated(value="mean") == putting(clean.mean(0))
    assert ablated(value="mean", over=OTHERS) == putting(other.mean(0))
    drawn = [ablated(value="resample", over=OTHERS, seed=seed) for seed in range(8)]
    rows_of = [[a, b, c] for a in range(3) for b in range(3) for c in range(3)]
    assert all(answer in [putting(other[list(row)]) for row in rows_of] for answer in drawn)


def test_ablating_an_edge_removes_what_its_source_writes() -> None:
    """The only reader of the last head is the output: an edge is ablated like the head."""
    model = compiled()
    edge = next(e for e in model.circuit.edges if e.target == "output")
    for options in ({}, {"value": "mean"}, {"value": "mean", "over": OTHERS}, {"positions": [3]}):
        expected = model.ablate(BATCH, edge.source, **options)
        assert model.ablate(BATCH, edge, **options) == expected
        assert model.ablate(BATCH, [edge.id], **options) == expected


def test_all_edges_of_a_head_together_are_the_head() -> None:
    model = compiled("most_frequent")
    for head in (node for node in model.circuit.nodes if node.kind == "head"):
        edges = [e for e in model.circuit.edges if e.source.startswith(f"{head.id}.o.")]
        assert model.patch_edge(BATCH, OTHERS, edges) == model.patch(BATCH, OTHERS, head.id)
        targets = dict.fromkeys(e.target for e in edges)
        wide = [f"{head.id}->{target}" for target in targets]
        assert model.patch_edge(BATCH, OTHERS, wide) == model.patch(BATCH, OTHERS, head)


@pytest.mark.parametrize("feed_forward", ["exact", "glu", "gelu"])
def test_nodes_and_edges_have_ids_in_every_kind_of_network(feed_forward: str) -> None:
    model = compiled("most_frequent", feed_forward=feed_forward)
    module = model.to_torch()
    ids, others = (torch.as_tensor(model.encode(rows)) for rows in (BATCH, OTHERS))
    for node in model.circuit.nodes:
        assert model.patch(BATCH, OTHERS, node.id) == model.patch(BATCH, OTHERS, node)
        assert model.ablate(BATCH, node.id, value="mean") is not None
    for edge in model.circuit.edges:
        assert model.circuit.edge(edge.id) == edge
        answer = model.patch_edge(BATCH, OTHERS, edge.id)
        logits = module.patch_edge(ids, others, edge.id)
        assert model.decode(logits.detach().numpy(), BATCH) == answer


@pytest.mark.parametrize("feed_forward", ["relu", "glu", "exact"])
def test_overlapping_signals_are_changed_once(feed_forward: str) -> None:
    model = compiled("most_frequent", feed_forward=feed_forward)
    module = model.to_torch()
    ids, others = (torch.as_tensor(model.encode(rows)) for rows in (BATCH, OTHERS))
    for edge in model.circuit.edges:
        once = module.patch_edge(ids, others, edge)
        assert torch.equal(module.patch_edge(ids, others, [edge, edge.id]), once)
        node = model.circuit.node(edge.source)
        if node.kind == "units":
            continue
        whole = node.kind if node.layer is None else f"blocks.{node.layer}.attn.head.{node.head}"
        wide = f"{whole}->{edge.target}"
        expected = module.patch_edge(ids, others, wide)
        assert torch.equal(module.patch_edge(ids, others, [edge, wide]), expected)
        assert torch.equal(module.patch_edge(ids, others, [wide, edge]), expected)


def test_units_read_the_signals_of_their_feed_forward() -> None:
    model = compiled("sort")
    module = model.to_torch()
    ids, others = (torch.as_tensor(model.encode(rows)) for rows in (BATCH, OTHERS))
    groups = [node for node in model.circuit.nodes if node.id.startswith("blocks.0.mlp.units.")]
    every = [f"embed->{node.id}" for node in groups]
    for node in groups:
        edge = model.circuit.edge(f"pos_embed.0->{node.id}")
        expected = module.patch_edge(ids, others, [*every, edge])
        for both in (["embed->blocks.0.mlp", edge], [edge, "embed->blocks.0.mlp"]):
            changed = module.patch_edge(ids, others, both)
            assert torch.allclose(changed, expected, atol=1e-12)


def test_parts_of_another_circuit_are_rejected() -> None:
    model, other = compiled(), compiled("most_frequent")
    edges = {edge.id: edge for edge in model.circuit.edges}
    found = [e for e in other.circuit.edges if e.id in edges and e.flows != edges[e.id].flows]
    nodes = {node.id: node for node in model.circuit.nodes}
    parts = [n for n in other.circuit.nodes if n.id in nodes and n.label != nodes[n.id].label]
    assert found
    assert any(read_place(node) == read_place(nodes[node.id]) for node in parts)
    for edge in found:
        with pytest.raises(InputError, match=f"of another circuit; try '{edge.id}'"):
            model.patch_edge(BATCH, OTHERS, edge)
    for node in parts:
        with pytest.raises(InputError, match="of another circuit"):
            model.ablate(BATCH, node)
    checked = check_circuit(model, most=4)
    assert model.patch_edge(BATCH, OTHERS, checked.edges) is not None


def test_places_of_a_pattern_are_keys() -> None:
    model = compiled()
    heads = model.run_with_cache(BATCH)[1]["blocks.0.attn.hook_pattern"].copy()
    heads[:, 0, :, 1] = 0.0
    expected = model.run_with_hooks(BATCH, [("blocks.0.attn.hook_pattern", lambda value, hook: heads)])
    assert model.ablate(BATCH, "blocks.0.attn.hook_pattern", head=0, places=[1]) == expected
    assert model.ablate(BATCH, "blocks.0.attn.hook_pattern", head=0) != expected


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: m.ablate("aba", "blocks.0.attn", head=0, value="median"), "finite number, 'mean'"),
        (lambda m: m.ablate("aba", "embed", value=None), "finite number, 'mean' or 'resample'"),
        (lambda m: m.ablate("aba", "embed", value="mean"), "several inputs, or over"),
        (lambda m: m.ablate("aba", "embed", over=["aba"]), "value='mean' or value='resample'"),
        (lambda m: m.ablate("aba", "embed", positions=[3]), "positions of the input"),
        (lambda m: m.ablate("aba", "embed", positions=[-1]), "positions of the input"),
        (lambda m: m.patch_edge("aba", "bbb", "embed->output", positions=[7]), "positions of the"),
        (lambda m: m.ablate("aba", "blocks.0.mlp", places=[-1]), r"places=\[0\]"),
        (lambda m: m.ablate("aba", "blocks.0.mlp", places=[True]), r"places=\[0\]"),
        (lambda m: m.to_torch().patch("aba", "bbb", "embed"), "try torch.as_tensor"),
        (lambda m: m.ablate("aba", 3), "expected the name of a component or a hook"),
        (lambda m: m.ablate("aba", []), "expected a component, or several"),
        (lambda m: m.ablate("aba", "output", head=0), "try without head and places"),
        (lambda m: m.patch_edge("aba", "bbb", "embed"), "expected an edge of the circuit"),
        (lambda m: m.patch_edge("aba", "bbb", "embed->embed"), "that reads the residual stream"),
        (lambda m: m.patch_edge("aba", "bbb", "output->output"), "that writes to the residual stream"),
        (lambda m: m.patch_edge("aba", "bbb", "blocks.1.mlp->blocks.0.mlp"), "to a later one"),
        (lambda m: m.patch_edge("aba", "bbb", "blocks.7.mlp->output"), "of this network"),
        (lambda m: m.patch_edge("aba", "bb", "embed->output"), "try a source of that length"),
        (lambda m: m.circuit.node("embed"), "try embed"),
        (lambda m: m.circuit.edge("embed"), "expected the id of an edge"),
    ],
)
def test_what_cannot_be_changed_is_rejected(call: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        call(compiled())


def majority() -> locum.SOp:
    """Return whether "a" is before, by the majority of three heads that say the same."""
    indices, tokens = locum.indices, locum.tokens
    pairs = [(indices, indices - 1), (indices + 1, indices), (2 * indices, 2 * indices - 2)]
    before = [locum.aggregate(locum.select(*pair, "=="), tokens, "?") for pair in pairs]
    votes = [locum.indicator(each == "a") for each in before]
    return (votes[0] + votes[1] + votes[2]) >= 2


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (majority(), {"alone", "jointly", ""}),
        (load_everyday("reverse").program, {"alone", "length", ""}),
    ],
)
def test_labels_say_how_an_edge_is_necessary(program: locum.SOp, expected: set[str]) -> None:
    """Each edge is changed by the public call, on all pairs of one length, to compare its label."""
    model = locum.compile(program, length=3, vocabulary="abc", **UNITS)
    circuit = check_circuit(model)
    assert Circuit.read(circuit.data()) == circuit
    assert {edge.necessity for edge in circuit.edges} == expected
    rows = [list(row) for row in product("abc", repeat=3)]
    clean, other = [row for row in rows for _ in rows], [row for _ in rows for row in rows]
    answers = model(clean)
    idle = [edge for edge in circuit.edges if not edge.necessary]
    assert model.patch_edge(clean, other, idle) == answers
    for edge in circuit.edges:
        assert edge.necessary == bool(edge.necessity)
        if edge.source.startswith("pos_embed"):
            continue  # positions are the same in all inputs of one length
        breaks = model.patch_edge(clean, other, edge) != answers
        assert breaks == (edge.necessity == "alone"), edge
        if edge.necessity == "jointly":
            assert model.patch_edge(clean, other, [edge, *idle]) != answers
