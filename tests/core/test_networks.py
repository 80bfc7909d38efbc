"""Networks, hooks, ablations, patches and exports agree with a transformer of a few lines of NumPy."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import locum
from locum.rasp.programs import load_everyday

BATCH = [list("abba"), list("bbab"), list("aaab")]
OTHERS = [list("bbaa"), list("abab"), list("baba")]
KINDS: dict[str, dict[str, Any]] = {
    "default": {},
    "softmax": {"attention": "softmax", "reuse_slots": False},
    "gelu": {"feed_forward": "gelu"},
    "glu": {"feed_forward": "glu"},
    "float32": {"dtype": "float32"},
    "causal": {"causal": True},
}
#: A program that compiles to a decoder, and programs with a sink, with tables and with ties.
PROGRAMS = ("induction", "palindrome", "most_frequent")
CASES = [(name, kind) for name in PROGRAMS for kind in KINDS if kind != "causal" or name == "induction"]
Change = Callable[[Any], Any]


def replace(new: Any, value: Any) -> Any:
    return new


@functools.cache
def network(name: str, kind: str) -> locum.CompiledTransformer:
    return locum.compile(load_everyday(name).program, length=4, vocabulary="ab", **KINDS[kind])


def activate(kind: str, before: Any, gate: Any) -> Any:
    if kind == "glu":
        return np.maximum(gate, 0) * before
    if kind == "gelu":
        return before * (1 + np.vectorize(math.erf)(before / math.sqrt(2))) / 2
    return np.maximum(before, 0)


def attend(scores: Any, kinds: tuple[str, ...]) -> Any:
    """Attention weights: the mean of the keys with the largest score, or the softmax."""
    top = scores.max(-1, keepdims=True)
    hard = np.array([kind == "hard" for kind in kinds])[:, None, None]
    weights = np.where(hard, scores == top, np.exp(scores - top))
    return weights / weights.sum(-1, keepdims=True)


class Plain:
    """A transformer in NumPy that reads only the tensors and the configuration of a network."""

    def __init__(self, model: locum.CompiledTransformer) -> None:
        self.model, self.config = model, model.config
        self.tensors = dict(model.weights.named())

    def run(self, batch: Any, changes: dict[str, Change] | None = None) -> tuple[Any, dict[str, Any]]:
        """The outputs and the activations; changes replace activations by the names of hooks."""
        cache: dict[str, Any] = {}
        get = self.tensors.__getitem__

        def show(name: str, value: Any) -> Any:
            cache[name] = value = (changes or {}).get(name, lambda same: same)(value)
            return value

        vocabulary: Any = self.config.vocabulary
        ids = [[vocabulary.index(token) for token in row] for row in batch]
        words = np.pad(get("embed.W_E")[ids], ((0, 0), (self.config.sink, 0), (0, 0)))
        positions = np.broadcast_to(get("pos_embed.W_pos")[: words.shape[1]], words.shape)
        stream = show("hook_embed", words) + show("hook_pos_embed", positions)
        for number, layer in enumerate(self.model.weights.layers):
            block = f"blocks.{number}"
            part = functools.partial(lambda prefix, name: get(prefix + name), f"{block}.attn.")
            if layer.attention is not None:
                heads = [
                    show(
                        f"{block}.attn.hook_{x}",
                        np.einsum("bps,hsd->bphd", stream, part(f"W_{x.upper()}"))
                        + part(f"b_{x.upper()}"),
                    )
                    for x in "qkv"
                ]
                scores = np.einsum("bqhd,bkhd->bhqk", heads[0], heads[1])
                if self.config.causal:
                    scores = np.where(np.tri(words.shape[1], dtype=bool), scores, -np.inf)
                pattern = attend(show(f"{block}.attn.hook_attn_scores", scores), layer.attention.kinds)
                pattern = show(f"{block}.attn.hook_pattern", pattern)
                z = np.einsum("bhqk,bkhd->bqhd", pattern, heads[2])
                z = show(f"{block}.attn.hook_z", z)
                stream = stream + np.einsum("bqhd,hds->bqs", z, part("W_O")) + part("b_O")
            if layer.feed_forward is not None:
                mlp = f"{block}.mlp."
                before = show(f"{mlp}hook_pre", stream @ get(f"{mlp}W_in") + get(f"{mlp}b_in"))
                gate = stream @ self.tensors.get(f"{mlp}W_gate", 0 * get(f"{mlp}W_in"))
                after = show(f"{mlp}hook_post", activate(layer.feed_forward.kind, before, gate))
                stream = stream + after @ get(f"{mlp}W_out") + get(f"{mlp}b_out")
        stream = show(self.model.circuit.node("output").hook, stream)
        logits = (stream @ get("unembed.W_U") + get("unembed.b_U"))[:, self.config.sink :]
        if self.config.outputs is None:
            return logits[..., 0].tolist(), cache
        chosen = logits.argmax(-1)
        return [[self.config.outputs[index] for index in row] for row in chosen], cache

    def patched(self, edge: Any) -> Any:
        """The outputs with the signal of one edge as on the other inputs."""
        source, target = map(self.model.circuit.node, (edge.source, edge.target))
        clean, other = (self.signal(source, edge.slot, rows) for rows in (BATCH, OTHERS))
        change = (other - clean)[..., None]

        def add(value: Any) -> Any:
            value = value.copy()
            if target.kind == "output":
                value[..., [edge.slot]] += change
            elif target.kind == "units":
                weights = self.tensors[f"blocks.{target.layer}.mlp.W_in"]
                value[..., target.places] += change * weights[edge.slot, list(target.places)]
            else:
                weights = self.tensors[f"blocks.{target.layer}.attn.W_{target.kind.upper()}"]
                value[:, :, target.head] += change * weights[target.head, edge.slot]
            return value

        return self.run(BATCH, {target.hook.replace("hook_post", "hook_pre"): add})[0]

    def signal(self, node: Any, slot: int, batch: Any) -> Any:
        """What a node writes to a slot of the residual stream."""
        value = self.run(batch)[1][node.hook]
        if node.layer is None:
            return value[..., slot]
        places = list(node.places)
        if node.kind == "o":
            weights = self.tensors[f"blocks.{node.layer}.attn.W_O"][node.head, places, slot]
            return value[:, :, node.head, places] @ weights
        return value[..., places] @ self.tensors[f"blocks.{node.layer}.mlp.W_out"][places, slot]


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_forward_pass(name: str, kind: str) -> None:
    """Outputs and activations are those of the plain transformer, and outputs those of the program."""
    model, program = network(name, kind), load_everyday(name).program
    outputs, cache = Plain(model).run(BATCH)
    found, activations = model.run_with_cache(BATCH)
    assert outputs == found == model(BATCH) == program(BATCH)
    tolerance = 1e-4 if kind == "float32" else 1e-12
    for hook, value in cache.items():
        np.testing.assert_allclose(activations[hook], value, tolerance, tolerance, err_msg=hook)


@pytest.mark.parametrize("name", PROGRAMS)
def test_ablations_and_patches(name: str) -> None:
    """A hook, an ablated part and a patched part change the same activations."""
    model = network(name, "softmax")
    plain, (_, other) = Plain(model), Plain(model).run(OTHERS)
    changed = 0
    for hook in (h for h in other if h.endswith(("hook_z", "hook_post", "hook_embed", "hook_pattern"))):
        zero, _ = plain.run(BATCH, {hook: np.zeros_like})
        mean, _ = plain.run(BATCH, {hook: lambda value: np.broadcast_to(value.mean(0), value.shape)})
        patched, _ = plain.run(BATCH, {hook: functools.partial(replace, other[hook])})
        assert model.ablate(BATCH, hook) == zero
        assert model.ablate(BATCH, hook, value="mean") == mean
        assert model.patch(BATCH, OTHERS, hook) == patched
        replaced = model.run_with_hooks(BATCH, [(hook, lambda value, hook: other[hook.name])])
        assert replaced == patched
        changed += patched != model(BATCH)
    assert changed


@pytest.mark.parametrize("name", PROGRAMS)
def test_edges(name: str) -> None:
    """A patched edge changes only what its target reads; PyTorch modules do the same."""
    torch = pytest.importorskip("torch")
    model = network(name, "softmax")
    module, plain = model.to_torch(), Plain(model)
    ids, others = (torch.as_tensor(model.encode(rows)) for rows in (BATCH, OTHERS))
    changed = 0
    for edge in model.circuit.edges:
        wanted = plain.patched(edge)
        assert model.patch_edge(BATCH, OTHERS, edge) == wanted, edge.id
        logits = module.patch_edge(ids, others, edge.id)
        assert model.decode(logits, BATCH) == wanted, edge.id
        changed += wanted != model(BATCH)
    assert changed > len(model.circuit.edges) / 4


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_torch_modules(name: str, kind: str) -> None:
    torch = pytest.importorskip("torch")
    model = network(name, kind)
    logits = model.to_torch()(torch.as_tensor(model.encode(BATCH)))
    assert model.decode(logits, BATCH) == model(BATCH)


@pytest.mark.parametrize("name", ["induction", "most_frequent"])
def test_transformer_lens(name: str) -> None:
    """The network of TransformerLens has the same outputs and activations."""
    pytest.importorskip("transformer_lens")
    model = network(name, "softmax")
    logits, cache = model.to_transformer_lens().run_with_cache(model.transformer_lens_inputs(BATCH))
    assert model.decode(logits, BATCH) == model(BATCH)
    _, activations = model.run_with_cache(BATCH)
    for hook in (h for h in activations if h.endswith(("hook_post", "hook_pattern"))):
        np.testing.assert_allclose(cache[hook].detach(), activations[hook], 1e-6, 1e-6, err_msg=hook)
