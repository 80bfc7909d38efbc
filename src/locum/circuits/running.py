"""Run a network on pairs of inputs, with what flows along some edges taken from the other input.

An edge carries what one node writes into a slot to one reader. To change what flows, the reader is
given what it would read if the slot held the other number: its queries, keys, values or hidden units
move by the difference times their weights for that slot. Nobody else sees the change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from locum.circuits.pairs import Pairs, orders_of
from locum.errors import ExecutionError
from locum.transformer import CompiledTransformer
from locum.transformer.circuit import Circuit, CircuitEdge, CircuitNode
from locum.transformer.forward import Tap, forward
from locum.transformer.weights import Array, LayerWeights

#: Numbers that come out are called equal up to this share of the largest of them.
_EQUAL = 1e-4


class PairRun:
    """A network on pairs of inputs."""

    def __init__(
        self, model: CompiledTransformer, circuit: Circuit, pairs: Pairs, seed: int = 0
    ) -> None:
        self.model = model
        self.sink = int(model.config.sink)
        self.nodes = {node.id: node for node in circuit.nodes}
        self.words, self.places = model.embeddings(pairs.clean)
        other_words, other_places = model.embeddings(pairs.other)
        # Positions are the same in both inputs: what they embed is interchanged between positions.
        count, size, _ = other_places.shape
        orders = np.array(orders_of(size - self.sink, count, seed)) + self.sink
        shuffled = other_places.copy()
        shuffled[:, self.sink :] = np.take_along_axis(other_places, orders[..., None], axis=1)
        #: What every layer reads on the clean inputs, and the unembedding at last.
        self.streams: list[Array] = []
        others: list[Array] = []
        self.clean = self._cache(self.words, self.places, self.streams)
        self.other = self._cache(other_words, other_places, others)
        self.other["hook_pos_embed"] = shuffled
        #: Activations on inputs of another length, for what is the same on all inputs of this one.
        self.elsewhere: dict[str, Array] = {}
        self.answers = self._read_off(self.streams[-1])
        self.other_answers = self._read_off(others[-1])

    def borrow(self, runs: Sequence[PairRun]) -> None:
        """Take activations of inputs of other lengths in turn, for what the length alone decides."""
        batch, positions = self.words.shape[:2]
        if runs:
            self.elsewhere = {name: value.copy() for name, value in self.clean.items()}
        for turn, run in enumerate(runs):
            rows = np.arange(turn, batch, len(runs))
            at = np.minimum(np.arange(positions), run.words.shape[1] - 1)
            for name, value in self.elsewhere.items():
                value[rows] = run.clean[name][rows % len(run.words)][:, at]

    def _cache(self, words: Array, places: Array, streams: list[Array]) -> dict[str, Array]:
        cache: dict[str, Array] = {"hook_embed": words, "hook_pos_embed": places}

        def keep(name: str, value: Array) -> None:
            if name.endswith((".hook_z", ".hook_post")):
                cache[name] = value
            elif name.endswith(".hook_resid_pre"):
                streams.append(value)

        streams.append(self._forward(words + places, keep))
        return cache

    def _forward(self, stream: Array, tap: Tap | None, first: int = 0) -> Array:
        how = {"sink": self.model.config.sink, "causal": self.model.config.causal}
        return forward(self.model.weights, stream, **how, tap=tap, first=first)

    def _read_off(self, stream: Array) -> NDArray[Any]:
        """Return the answer at every position: the place of the greatest logit, or a number."""
        logits = stream[:, self.sink :] @ self.model.weights.W_U + self.model.weights.b_U
        return logits.argmax(axis=-1) if self.model.config.outputs is not None else logits[..., 0]

    def _written(self, node: CircuitNode, slot: int, cache: Mapping[str, Array]) -> Array:
        """Return what a node writes into a slot, [batch, position]."""
        activation = cache[node.hook]
        if node.kind in ("embed", "pos_embed"):
            return activation[..., slot]
        layer = self._layer(node)
        places = list(node.places)
        if node.kind == "o":
            assert layer.attention is not None
            assert node.head is not None
            out = layer.attention.W_O[node.head, places, slot]
            return activation[:, :, node.head, places] @ out
        assert layer.feed_forward is not None
        return activation[..., places] @ layer.feed_forward.W_out[places, slot]

    def _layer(self, node: CircuitNode) -> LayerWeights:
        assert node.layer is not None
        return self.model.weights.layers[node.layer]

    def patched(self, edges: Iterable[CircuitEdge]) -> NDArray[Any] | None:
        """Return the answers with these edges as on the other inputs; None where there is no answer."""
        readers: dict[str, list[CircuitEdge]] = {}
        first = len(self.streams) - 1
        for edge in edges:
            target = self.nodes[edge.target]
            first = first if target.layer is None else min(first, target.layer)
            for hook in self._hooks(target):
                readers.setdefault(hook, []).append(edge)
        now = dict(self.clean)  # as it is before the first layer that reads something else

        def tap(name: str, value: Array) -> Array | None:
            if name.endswith((".hook_z", ".hook_post")):
                now[name] = value
            if name not in readers:
                return None
            changed = value.copy()
            for edge in readers[name]:
                self._move(changed, name, edge, self._difference(edge, now))
            return changed

        try:
            stream = self._forward(self.streams[first], tap, first)
        except ExecutionError:
            return None
        for edge in readers.get("unembed", ()):
            stream = stream.copy()
            stream[..., edge.slot] += self._difference(edge, now)
        return self._read_off(stream)

    def _difference(self, edge: CircuitEdge, now: Mapping[str, Array]) -> Array:
        source = self.nodes[edge.source]
        before = self._written(source, edge.slot, now)
        after = self._written(source, edge.slot, self.other)
        if self.elsewhere and (after == before).all():
            after = self._written(source, edge.slot, self.elsewhere)
            after[:, : self.sink] = before[:, : self.sink]
        return after - before

    def _hooks(self, node: CircuitNode) -> list[str]:
        """Return where a node reads."""
        if node.kind != "units":
            return [node.hook]
        block = f"blocks.{node.layer}.mlp"
        gated = self.model.config.feed_forward == "glu"
        return [f"{block}.hook_pre", *([f"{block}.hook_gate"] if gated else [])]

    def _move(self, activation: Array, hook: str, edge: CircuitEdge, difference: Array) -> None:
        node = self.nodes[edge.target]
        layer = self._layer(node)
        if node.kind in ("q", "k", "v"):
            assert layer.attention is not None
            weights = getattr(layer.attention, f"W_{node.kind.upper()}")[node.head, edge.slot]
            activation[:, :, node.head] += difference[..., None] * weights
            return
        feed = layer.feed_forward
        assert feed is not None
        places = list(node.places)
        if feed.functions is not None:  # units of one layer share what they read; erased slots apart
            places = [i for i in range(feed.functions.arguments) if i not in feed.functions.outputs]
        weights = feed.W_gate if hook.endswith("hook_gate") else feed.W_in
        assert weights is not None
        activation[..., places] += difference[..., None] * weights[edge.slot, places]

    def same(self, one: NDArray[Any], other: NDArray[Any]) -> NDArray[np.bool_]:
        """Return for each pair, whether two answers are equal at every position."""
        if self.model.config.outputs is not None:
            return np.asarray((one == other).all(axis=1))
        scale = max(1.0, float(np.abs(self.answers).max(initial=0.0)))
        return np.asarray((np.abs(one - other) <= _EQUAL * scale).all(axis=1))
