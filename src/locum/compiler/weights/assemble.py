"""Stage *assemble*: the numbers. Forms become columns of matrices, signals become slots, and biases
carry constants.

The network comes in, with its slots and with what makes its feed-forwards; :class:`Weights` come out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

import numpy as np

from locum.compiler.bounds.fitting import Fitted
from locum.compiler.network.lowering import Lowered
from locum.compiler.network.network import NO_SINK, TIED_SINK, Head, Network, Unit, Value
from locum.compiler.network.slots import Slots
from locum.compiler.target import Target
from locum.compiler.weights.circuit import circuit
from locum.compiler.weights.dense import UnitFeedForward
from locum.compiler.weights.exact import exact_feed_forward
from locum.compiler.weights.outputs import unembedded
from locum.compiler.weights.stream import Matrix, Stream
from locum.errors import CompileError
from locum.transformer.circuit import Circuit
from locum.transformer.weights import (
    SOFTMAX,
    Array,
    AttentionWeights,
    FeedForwardWeights,
    LayerWeights,
    Weights,
)

#: Weights that are worth writing down: 2 GB of them.
MAX_PARAMETERS = 2**28


#: What makes the feed-forward of a layer that computes these units and erases these slots.
FeedForward: TypeAlias = Callable[[Stream, Sequence[Unit], Sequence[int]], FeedForwardWeights]


@dataclass(frozen=True)
class Assembled:
    """All tensors, and what each slot of the residual stream holds."""

    weights: Weights
    slots: tuple[str, ...]
    circuit: Circuit


def assemble(
    lowered: Lowered,
    slots: Slots,
    fitted: Fitted | None,
    outputs: Mapping[float, object] | None,
) -> Assembled:
    """Make the tensors; ``outputs`` has the codes of what may come out, where that is one of few."""
    target = lowered.roles.known.target
    feed_forward: FeedForward = partial(exact_feed_forward, lowered)
    if fitted is not None and target.feed_forward != "exact":
        feed_forward = UnitFeedForward(target, fitted.hidden).weights
    network, stream = lowered.network, Stream.of(lowered.network, slots)
    beta = (lambda head: None) if fitted is None else fitted.beta
    assembly = Assembly(network, target, feed_forward, beta)
    weights = assembly.weights(stream)
    if outputs is not None:
        weights = unembedded(weights, outputs)
    hidden = {} if fitted is None else fitted.hidden
    structure = circuit(lowered, slots, hidden, assembly.places)
    return Assembled(cast(weights, target.dtype), tuple(stream.labels()), structure)


@dataclass(frozen=True)
class Assembly:
    """A network, and what its tensors are made with."""

    network: Network
    target: Target
    feed_forward: FeedForward
    #: The inverse temperature of a head that stands in for a hard one; None: it is what it is.
    beta: Callable[[Head], float | None] = lambda head: None
    #: Filled in by :meth:`weights`: which numbers of its head each value is, in the end.
    places: dict[Value, tuple[int, ...]] = field(default_factory=dict)

    def weights(self, stream: Stream) -> Weights:
        """Make all tensors over a residual stream."""
        self._require_moderate(stream)
        embedding, positions = self._embeddings(stream)
        if stream.sink_slot is not None:
            positions = np.vstack([stream.at_sink, positions])
        layers = []
        for number in range(1, self.network.layers + 1):
            heads = [h for h in self.network.heads if h.time == 2 * number - 1]
            units = [u for u in self.network.units if u.time == 2 * number]
            erased = stream.slots.erased.get(2 * number, [])
            layer = LayerWeights(
                self._attention(heads, stream) if heads else None,
                self.feed_forward(stream, units, erased) if units or erased else None,
            )
            layers.append(layer)
            stream = stream.after(layer)
        column, constant = stream.read(self.network.output)
        return Weights(embedding, positions, tuple(layers), column[:, None], np.array([constant]))

    def _require_moderate(self, stream: Stream) -> None:
        widest = max((len(h.keys) + 1 for h in self.network.heads), default=0)
        total = 4 * len(self.network.heads) * stream.width * widest
        if total > MAX_PARAMETERS:
            raise CompileError(
                f"expected heads of at most {MAX_PARAMETERS:,} weights in all, got {total:,} (residual "
                f"stream {stream.width}, keys of {widest} numbers); try a smaller length or vocabulary"
            )

    def _embeddings(self, stream: Stream) -> tuple[Matrix, Matrix]:
        vocabulary = self.target.vocabulary
        embedding = np.zeros((1 if vocabulary is None else len(vocabulary), stream.width))
        positions = np.zeros((self.target.longest, stream.width))
        for group in stream.slots.groups:
            for signal, scale in group.signals.items():
                if signal.tokens is not None:
                    embedding[:, group.slot] += scale * signal.tokens
                if signal.positions is not None:
                    positions[:, group.slot] += scale * signal.positions
        return embedding, positions

    def _attention(self, heads: Sequence[Head], stream: Stream) -> AttentionWeights:
        moved = [
            [(v, part) for v in head.values for part in stream.moved(v, self.target.dtype)]
            for head in heads
        ]
        sizes = [
            max(len(h.keys) + (h.sink != NO_SINK), len(parts), 1)
            for h, parts in zip(heads, moved, strict=True)
        ]
        size = max(sizes)
        shape = (len(heads), stream.width, size)
        w_q, w_k, w_v = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        b_q, b_k, b_v = (np.zeros((len(heads), size)) for _ in range(3))
        w_o = np.zeros((len(heads), size, stream.width))
        for h, head in enumerate(heads):
            for i, (query, key) in enumerate(zip(head.queries, head.keys, strict=True)):
                w_q[h, :, i], b_q[h, i] = stream.read(query, at_sink=0.0)
                w_k[h, :, i], b_k[h, i] = stream.read(key, at_sink=0.0)
            if head.sink != NO_SINK:
                self._compete(head, stream, w_q[h], b_q[h], w_k[h])
            beta = self.beta(head)
            if beta is not None:
                w_q[h] *= beta
                b_q[h] *= beta
            for i, (value, (column, bias, factor)) in enumerate(moved[h]):
                self.places[value] = (*self.places.get(value, ()), i)
                w_v[h, :, i], b_v[h, i] = column, bias
                slot, scale = stream.slots.of(value.into)
                w_o[h, i, slot] = factor * scale
        kinds = tuple(head.kind if self.beta(head) is None else SOFTMAX for head in heads)
        return AttentionWeights(w_q, b_q, w_k, b_k, w_v, b_v, w_o, np.zeros(stream.width), kinds)

    def _compete(self, head: Head, stream: Stream, w_q: Matrix, b_q: Matrix, w_k: Matrix) -> None:
        """Return the sink's own score: that of a selected key (where it ties), or half a gap below."""
        assert stream.sink_slot is not None
        place = len(head.keys)
        w_k[stream.sink_slot, place] = 1.0
        less = 0.0 if head.sink == TIED_SINK else 0.5
        column, bias = stream.read(head.offset, at_sink=0.0)
        w_q[:, place] = -column
        b_q[place] = -bias - less
        # The sink attends to itself alone, however soft the head is.
        beta = self.beta(head)
        alone = 1.0 if beta is None else max(1.0, 2048 / beta)
        w_q[stream.sink_slot, place] += alone + less


def cast(weights: Weights, dtype: str) -> Weights:
    """Return the same weights in another type of number, if it holds them."""

    def held(array: Array) -> Array:
        largest = float(np.abs(array).max(initial=0.0))
        if not largest <= float(np.finfo(dtype).max):  # nor is NaN a weight
            raise CompileError(f"a weight would be {largest:.3g}, which {dtype} does not hold")
        return array.astype(dtype)

    return weights.map(held)
