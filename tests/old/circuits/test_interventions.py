"""Hooks, ablations and patches: the same by names on NumPy, on torch, and against the program."""

from __future__ import annotations

import json
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest
import torch

import locum
from locum.errors import InputError
from locum.experiments.circuits import alignment, check_circuit
from locum.experiments.circuits.patching import (
    CompiledNetwork,
    Pairs,
    PathPatching,
    more_pairs_of,
    pairs_of,
)
from locum.graph import Atom
from locum.networks.transformer.circuit import Circuit
from locum.rasp.programs import EVERYDAY, load_everyday
from tests.cases import dyck2
from tests.tracr_programs import LIBRARY

UNITS: dict[str, Any] = {"attention": "softmax", "feed_forward": "relu"}


def compiled(name: str, length: int = 4, **options: Any) -> Any:
    recipe = load_everyday(name)
    options = {"vocabulary": recipe.vocabulary, **UNITS, **options}
    return locum.compile(recipe.program, length=length, **options)


@pytest.mark.parametrize("kind", ["relu", "gelu", "glu", "exact"])
def test_torch_has_the_same_activations_by_the_same_names(kind: str) -> None:
    model = compiled("dyck2", feed_forward=kind)
    module = model.to_torch()
    inputs = ["(", "[", "]"]
    answer, cache = model.run_with_cache(inputs)
    logits, tensors = module.run_with_cache(torch.as_tensor(model.encode(inputs)))
    assert set(cache) == set(tensors)
    for name, value in cache.items():
        assert value.shape == tuple(tensors[name].shape), name
        np.testing.assert_allclose(value, tensors[name].detach().numpy(), atol=1e-9, err_msg=name)
    assert model.decode(logits.detach().numpy(), [inputs]) == [answer]


def test_hooks_of_torch_modules_fire() -> None:
    model = compiled("parity")
    module, seen = model.to_torch(), []
    module.blocks[0].attn.hook_z.register_forward_hook(lambda *parts: seen.append(parts[2].shape))
    module.blocks[0].attn.register_forward_hook(lambda *parts: seen.append(parts[2].shape))
    module(torch.as_tensor(model.encode("1011")))
    positions = 4 + model.config.sink
    d_head, d_model = model.architecture.d_head, model.architecture.d_model
    assert [tuple(shape) for shape in seen] == [(1, positions, 1, d_head), (1, positions, d_model)]


@pytest.mark.parametrize("name", ["parity", "induction", "most_frequent"])
def test_ablating_and_patching_heads_agree_with_torch(name: str) -> None:
    model = compiled(name)
    module = model.to_torch()
    first, *_, last = EVERYDAY[name]
    clean, other = [first, last, first, last], [last, last, first, last]
    ids, others = (torch.as_tensor(model.encode(x)) for x in (clean, other))
    changed = 0
    for layer, weights in enumerate(model.weights.layers):
        for head in range(0 if weights.attention is None else weights.attention.heads):
            block = f"blocks.{layer}.attn"
            for result, logits in (
                (model.ablate(clean, block, head=head), module.ablate(ids, block, head=head)),
                (model.patch(clean, other, block, head), module.patch(ids, others, block, head)),
            ):
                assert model.decode(logits.detach().numpy(), [clean]) == [result]
                changed += result != model(clean)
    assert changed
    everything = [f"blocks.{i}.hook_resid_post" for i in range(len(model.weights.layers))]
    assert model.patch(clean, other, everything[-1]) == model(other)


def test_scores_of_masked_keys_are_ablated() -> None:
    """Scores of −∞ are replaced as other scores are."""
    before = locum.select(locum.indices, locum.indices, "<=")
    share = locum.aggregate(before, locum.indicator(locum.tokens == "a"))
    model = locum.compile(share, length=4, vocabulary="ab", attention="softmax", causal=True)
    scores = "blocks.0.attn.hook_attn_scores"
    equal = model.run_with_hooks("abba", [(scores, lambda value, hook: np.zeros_like(value))])
    assert model.ablate("abba", scores) == equal
    ids = torch.as_tensor(model.encode("abba"))
    logits = model.to_torch().ablate(ids, scores).detach().numpy()
    np.testing.assert_allclose(model.decode(logits, "abba")[0], equal, rtol=1e-12)


def test_hooks_that_nobody_has_are_refused() -> None:
    model = compiled("parity")
    with pytest.raises(InputError, match=r"expected the name of a hook.*blocks\.0\.attn\.hook_z"):
        model.run_with_hooks("10", [("blocks.0.attn.hook_zz", lambda value, hook: None)])
    with pytest.raises(InputError, match="expected an array of shape"):
        model.run_with_hooks("10", [("hook_embed", lambda value, hook: value[..., :1])])
    with pytest.raises(InputError, match="expected a head and places within"):
        model.ablate("10", "blocks.0.attn", head=7)
    with pytest.raises(InputError, match="expected the name of a hook"):
        model.patch("10", "11", "blocks.7.attn")


@pytest.mark.parametrize("name", EVERYDAY)
def test_circuits_are_complete_and_every_necessary_edge_breaks_an_answer(name: str) -> None:
    """On all inputs of up to three tokens (of a smaller vocabulary where there are many)."""
    recipe = load_everyday(name)
    vocabulary = recipe.vocabulary[:4]
    model = locum.compile(recipe.program, length=3, vocabulary=vocabulary, **UNITS)
    circuit = check_circuit(model)
    assert circuit.checked["all inputs"]
    assert circuit.checked["complete"]
    assert circuit.necessary
    assert Circuit.read(circuit.data()) == circuit
    writers = {edge.source for edge in circuit.edges}
    for node in circuit.nodes:  # whatever computes something is read by somebody
        assert node.kind not in ("units", "o") or node.id in writers


def test_sufficient_edges_are_looked_for_on_all_pairs() -> None:
    """Two partners of each input are enough to find it necessary, and not that it is sufficient."""
    edges = check_circuit(compiled("induction", 3, vocabulary="ab")).edges
    labels = {(edge.source, edge.target): edge.sufficient for edge in edges}
    assert labels["blocks.0.attn.head.0.o.0", "blocks.0.mlp.units.0"]


def test_heads_are_numbers_and_hooks_give_real_ones() -> None:
    model = compiled("induction", 3)
    no_number = pytest.raises(InputError, match="expected the number of a head, counted from 0")
    with no_number:
        model.ablate("aba", "blocks.0.attn", head=True)
    with no_number:
        model.patch("aba", "bba", "blocks.0.attn", head=False)
    with no_number:
        model.what("blocks.0.attn", head=True)
    for other in (np.bool_(True), [0], -1, 1.0):
        with no_number:
            model.ablate("aba", "blocks.0.attn", head=other)
    assert model.ablate("aba", "blocks.0.attn", head=np.int64(0)) == model.ablate(
        "aba", "blocks.0.attn", head=0
    )
    with no_number:
        model.to_torch().ablate(torch.as_tensor(model.encode("aba")), "blocks.0.attn", head=True)
    with pytest.raises(InputError, match="expected real numbers, got complex128"):
        model.run_with_hooks("aba", fwd_hooks=[("blocks.0.attn.hook_z", lambda z, hook: z * 1j)])


def test_logits_with_gradients_are_decoded() -> None:
    model = compiled("induction", 3)
    logits = model.to_torch()(torch.as_tensor(model.encode("aba")))
    assert logits.requires_grad
    assert model.decode(logits, "aba") == [model("aba")]


@pytest.mark.parametrize(
    ("name", "length"), [("induction", 2), ("binary_addition", 3), ("palindrome", 2)]
)
def test_labels_do_not_hang_on_what_is_drawn(name: str, length: int) -> None:
    """With one order of positions, and two partners of each input, other seeds gave other labels."""
    model = compiled(name, length)
    labels = {
        tuple(
            (edge.source, edge.target, edge.necessary) for edge in check_circuit(model, seed=seed).edges
        )
        for seed in range(4)
    }
    assert len(labels) == 1


def test_what_every_pair_and_order_leaves_alone_is_not_necessary() -> None:
    """Changed on all pairs of inputs and in all orders of positions, idle edges change no answer."""
    model = compiled("second_largest", 3, vocabulary=(1, 2))
    circuit = check_circuit(model)
    inputs: list[list[Atom]] = [list(row) for row in product((1, 2), repeat=3)]
    words = [(clean, other) for clean in inputs for other in inputs]
    places = [list(order) for order in permutations(range(3)) for _ in words]
    cleans, others = [clean for clean, _ in words] * 6, [other for _, other in words] * 6
    network = CompiledNetwork(model)
    run = PathPatching(network, Pairs(cleans, others, places))
    for edge in circuit.edges:
        if not edge.necessary:
            assert run.equal(run.patch([network.path(edge)])).all(), edge
    assert len(circuit.necessary) > 25


def test_all_orders_of_three_positions_are_tried() -> None:
    """Random orders left out the one in which an embedding of positions changes an answer."""
    last = locum.select(locum.indices, locum.length - 1, "==")
    program = locum.aggregate(last, locum.where(locum.tokens == "a", 1, 0))
    program = program + locum.where(locum.indices == 0, 1, 0)
    options: dict[str, Any] = {"reuse_slots": False, "fold": False}
    options |= {"attention": "softmax", "feed_forward": "relu"}
    circuit = check_circuit(locum.compile(program, length=3, vocabulary="ab", **options))
    assert [edge.id for edge in circuit.edges if not edge.necessary] == [
        "pos_embed.0->blocks.0.attn.head.0.v"
    ]


def test_of_edges_that_stand_in_for_each_other_one_is_necessary() -> None:
    """Whether "abc" ends here: with three tokens, a shift by two tells little that others do not."""
    back = [
        locum.aggregate(locum.select(locum.indices, locum.indices - k, "=="), locum.tokens, "-")
        for k in (1, 2)
    ]
    program = (locum.tokens == "c") & (back[0] == "b") & (back[1] == "a")
    model = locum.compile(program, length=3, vocabulary="abc", **UNITS)
    circuit = check_circuit(model)
    assert circuit.checked["complete"]
    assert check_circuit(model, most=20, seed=3).checked["complete"]


def test_sampled_inputs_have_no_length_that_the_network_rejects() -> None:
    model = locum.compile(locum.tokens + 1, length=1, vocabulary=range(5), **UNITS)
    for pairs in (*pairs_of(model, 3), *more_pairs_of(model, 3)):
        assert {len(row) for row in (*pairs.clean, *pairs.other)} == {1}


@pytest.mark.parametrize("name", ["most_frequent", "induction", "palindrome", "run_length", "reverse"])
def test_interventions_on_the_network_are_those_on_the_program(name: str) -> None:
    model = compiled(name, reuse_slots=False)
    parts = alignment(model, most=16)
    assert parts
    assert all(part.mismatches == 0 for part in parts)


def test_a_bypassed_sop_is_found_out() -> None:
    """A table that looks up the depth's sources does not see a change of the depth itself."""
    parts = alignment(compiled("dyck2", length=5, prefer="exact"), most=24)
    assert any(part.mismatches for part in parts)
    assert any(not part.mismatches for part in parts)
    # The circuit says so itself, as data.
    assert all(part.passed_by for part in parts if part.mismatches)
    assert any(not part.passed_by for part in parts)


def test_what_is_not_passed_by_is_aligned() -> None:
    """Squares of counts are looked up by shares of attention; all others agree."""
    model = locum.compile(LIBRARY["sort_unique"](3), length=3, vocabulary=[0, 1, 2], **UNITS)
    parts = alignment(model, most=20)
    assert any(part.mismatches for part in parts)
    assert all(part.passed_by for part in parts if part.mismatches)
    again = Circuit.read(json.loads(json.dumps(model.circuit.data())))
    assert [node.passed_by for node in again.nodes] == [node.passed_by for node in model.circuit.nodes]


def test_sops_and_parts_are_found_both_ways() -> None:
    model = compiled("modsum")
    (node,) = model.where(load_everyday("modsum").program)
    assert (node.kind, node.hook) == ("units", "blocks.0.mlp.hook_post")
    assert model.what("blocks.0.mlp") == (node,)
    assert {part.kind for part in model.what("blocks.0.attn", head=0)} == {"head", "q", "k", "v", "o"}
    assert [part.kind for part in model.where(locum.tokens)] == ["embed"]
    with pytest.raises(InputError, match="expected a block of the circuit"):
        model.what("blocks.9.attn")


def test_embedded_sops_and_selectors_are_found_and_others_refused() -> None:
    """Tokens, selectors and s-ops of other programs were nowhere, without a word."""
    model = compiled("induction")
    tokens, indices = locum.tokens_str, locum.indices
    assert {part.hook for part in model.where(tokens)} == {"hook_embed"}
    assert {part.hook for part in model.where(indices)} == {"hook_pos_embed"}
    previous = locum.select(indices, indices - 1, "==")
    assert [part.id for part in model.where(previous)] == ["blocks.0.attn.head.0"]
    with pytest.raises(InputError, match=r"expected an s-op of the program .*, got tokens_str == "):
        model.where(tokens == "a")
    marked = locum.compile(
        locum.aggregate(previous, locum.indicator(tokens == "a")), length=3, vocabulary="ab"
    )
    (column,) = marked.where(locum.indicator(tokens == "a"))
    assert column.kind == "embed"
    assert locum.CompiledTransformer(marked.config, marked.weights).where(tokens) == (column,)


@pytest.mark.parametrize("batch", [[["a", "b"]], [["a", "b", "a"], ["b", "b", "a"]]])
def test_patches_from_another_length_are_refused(batch: Any) -> None:
    """Another length, or another number of inputs, was an error of NumPy's, or of torch's."""
    model = compiled("induction")
    with pytest.raises(InputError, match="expected a source with as many inputs, of the same length"):
        model.patch([["a", "b", "b"]], batch, "blocks.0.attn", head=0)
    inputs, source = (torch.as_tensor(model.encode(x)) for x in ([["a", "b", "b"]], batch))
    with pytest.raises(InputError, match="expected a source with as many inputs, of the same length"):
        model.to_torch().patch(inputs, source, "blocks.0.attn", head=0)
    assert model.ablate("abb", "embed", value=np.float64(0)) == model.ablate("abb", "embed")


def test_a_circuit_survives_saving(tmp_path: Any) -> None:
    model = compiled("parity")
    model.save(tmp_path / "model")
    assert locum.load(tmp_path / "model").circuit == model.circuit
    model.circuit.save(tmp_path / "circuit.json")
    assert Circuit.load(tmp_path / "circuit.json") == model.circuit
    (tmp_path / "circuit.json").write_text('{"nodes": [{"id": 3}], "edges": []}')
    with pytest.raises(InputError, match="expected a CircuitNode"):
        Circuit.load(tmp_path / "circuit.json")
    with pytest.raises(InputError, match=r"cannot read .*nowhere: No such file"):
        Circuit.load(tmp_path / "nowhere")


def test_slots_that_are_not_used_again_keep_their_meaning() -> None:
    plain, kept = compiled("dyck2"), compiled("dyck2", reuse_slots=False)
    assert any(" → " in label for label in plain.slots)
    assert not any(" → " in label for label in kept.slots)
    assert kept.architecture.d_model > plain.architecture.d_model
    assert kept(["(", "[", "]"]) == plain(["(", "[", "]"])


@pytest.mark.always
@pytest.mark.xfail(
    strict=True,
    raises=AssertionError,
    reason="signals that depend only on positions do not change between inputs of one length",
)
def test_signals_of_positions_between_feed_forwards_are_necessary() -> None:
    """Such an edge of dyck2 carries a signal whose value at permuted positions changes answers."""
    options: dict[str, Any] = {"attention": "softmax", "feed_forward": "relu", "reuse_slots": False}
    options |= {"fold": False, "fixed": True}
    model = locum.compile(dyck2, length=4, vocabulary="([)", **options)
    reader = model.weights.layers[2].feed_forward
    writer = model.weights.layers[1].feed_forward
    assert reader is not None
    assert writer is not None
    row, changed = list("(())"), 0
    answer, cache = model.run_with_cache(row)
    for order in permutations(range(1, 5)):
        kept: dict[str, Any] = {}

        def permute(value: Any, hook: Any, order: Any = order) -> Any:
            return value[:, [0, *order]]

        def keep(value: Any, hook: Any, kept: dict[str, Any] = kept) -> None:
            kept["post"] = value

        model.run_with_hooks(row, [("hook_pos_embed", permute), ("blocks.1.mlp.hook_post", keep)])
        change = (kept["post"] - cache["blocks.1.mlp.hook_post"]) @ writer.W_out @ reader.W_in

        def add(value: Any, hook: Any, change: Any = change) -> Any:
            return value + change

        changed += model.run_with_hooks(row, [("blocks.2.mlp.hook_pre", add)]) != answer
    if not changed:
        raise RuntimeError("expected a patch that changes an answer, got none")
    edges = [
        edge
        for edge in check_circuit(model).edges
        if edge.source.startswith("blocks.1.mlp") and edge.target.startswith("blocks.2.mlp")
    ]
    assert any(edge.necessary for edge in edges)
