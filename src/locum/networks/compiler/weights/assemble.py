"""Assemble the weights of a network.

Forms become columns of matrices, signals become slots, and constants become biases. The inputs are the
network with its slots and its hidden units. The result contains :class:`Weights` and the circuit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

import numpy as np

from locum.errors import CompileError
from locum.graph import Node
from locum.networks.compiler.bounds.fitting import Fitted
from locum.networks.compiler.compile_limits import check_time
from locum.networks.compiler.network.forms import Form
from locum.networks.compiler.network.network import (
    NO_SINK,
    TIED_SINK,
    Head,
    Network,
    Slots,
    Unit,
    Value,
)
from locum.networks.compiler.network.network_lowering import Lowered
from locum.networks.compiler.target import Target
from locum.networks.compiler.units.hidden import Hidden, erasing
from locum.networks.compiler.weights.compiled_circuit import circuit
from locum.networks.compiler.weights.exact_weights import exact_feed_forward
from locum.networks.compiler.weights.stream import Matrix, Stream, unembedded
from locum.networks.transformer.circuit import Circuit
from locum.networks.transformer.weights import (
    SOFTMAX,
    Array,
    AttentionWeights,
    FeedForwardWeights,
    LayerWeights,
    Weights,
)

#: If a pre-activation is below minus this number, every activation is 0, including GELU.
_CLOSED = 64.0


class UnitFeedForward:
    """The feed-forwards of a network with hidden units of type relu, gelu or glu."""

    def __init__(self, target: Target, hidden: Mapping[Unit, Hidden]) -> None:
        self.target = target
        self.kind = target.feed_forward
        self.hidden = hidden

    def weights(
        self, stream: Stream, units: Sequence[Unit], erased: Sequence[int]
    ) -> FeedForwardWeights:
        """Return the feed-forward that computes these units and erases these slots."""
        erasers = erasing(self.kind, self.target.dtype, self.target.attention)
        sizes = [self.hidden[unit].size for unit in units]
        total = sum(sizes) + len(erased) * len(erasers)
        w_in, b_in = np.zeros((stream.width, total)), np.zeros(total)
        w_gate = np.zeros((stream.width, total)) if self.kind == "glu" else None
        w_out, b_out = np.zeros((total, stream.width)), np.zeros(stream.width)
        start = 0
        for unit, size in zip(units, sizes, strict=True):
            check_time(unit.node)
            hidden = self.hidden[unit]
            here = slice(start, start + size)
            columns, biases = self._read(stream, unit.forms, hidden.open_at_sink)
            w_in[:, here] = columns @ hidden.pre.T
            b_in[here] = hidden.bias + hidden.pre @ biases
            if w_gate is not None:
                assert hidden.gate is not None
                assert hidden.gate_bias is not None
                w_gate[:, here] = columns @ hidden.gate.T
                self._constant(stream, w_gate[:, here], hidden.gate_bias + hidden.gate @ biases)
            if stream.sink_slot is not None and not hidden.open_at_sink:
                if w_gate is None:
                    w_in[stream.sink_slot, here] = _closing(stream, w_in[:, here], b_in[here])
                else:
                    w_gate[stream.sink_slot, here] = _closing(stream, w_gate[:, here], np.zeros(size))
            slot, scale = stream.slots.of(unit.into)
            w_out[here, slot] = scale * hidden.out
            b_out[slot] += scale * hidden.constant
            start += size
        for slot in erased:
            for factor, out in erasers:
                w_in[slot, start] = factor
                w_out[start, slot] = out
                if w_gate is not None:
                    self._constant(stream, w_gate[:, start : start + 1], np.ones(1))
                start += 1
        return FeedForwardWeights(self.kind, w_in, b_in, w_out, b_out, W_gate=w_gate)

    def _read(self, stream: Stream, forms: Sequence[Form], zero_at_sink: bool) -> tuple[Matrix, Matrix]:
        """Return forms as columns [slot, argument] and constants.

        With ``zero_at_sink``, all forms read 0 at the sink.
        """
        columns = np.zeros((stream.width, len(forms)))
        biases = np.zeros(len(forms))
        for i, form in enumerate(forms):
            columns[:, i], biases[i] = stream.read(form, at_sink=0.0 if zero_at_sink else None)
        return columns, biases

    def _constant(self, stream: Stream, gate: Matrix, constants: Matrix) -> None:
        """Add constants to gates, which have no biases.

        The weights read the slot that is 1 at every position, and the slot that is 1 at the sink.
        """
        assert stream.one_slot is not None
        gate[stream.one_slot] += constants
        if stream.sink_slot is not None:
            gate[stream.sink_slot] += constants


def _closing(stream: Stream, columns: Matrix, biases: Matrix) -> Matrix:
    """Return weights of the slot that marks the sink, such that all units are inactive at the sink.

    The margin is larger than any rounding error, so that the values at the sink are known exactly,
    except for sums of constants.
    """
    sizes = np.abs(stream.at_sink) @ np.abs(columns) + np.abs(biases)
    weights: Matrix = -2 * sizes - _CLOSED * (1 + np.abs(columns).sum(axis=0))
    return weights


#: A function that makes the feed-forward of a layer, given the units that it computes and the slots
#: that it erases.
FeedForward: TypeAlias = Callable[[Stream, Sequence[Unit], Sequence[int]], FeedForwardWeights]


@dataclass(frozen=True)
class Assembled:
    """The weights, the contents of each slot of the residual stream, and the circuit."""

    weights: Weights
    slots: tuple[str, ...]
    circuit: Circuit


def assemble(
    lowered: Lowered,
    slots: Slots,
    fitted: Fitted | None,
    outputs: Mapping[float, object] | None,
    made_for: Mapping[Node, tuple[str, ...]],
) -> Assembled:
    """Return the weights, slots and circuit of a network.

    ``outputs`` contains the possible outputs, by the numbers that encode them, or is None if the output
    is decoded as a number. ``made_for`` contains the s-ops for which nodes of the circuit were made
    (``tracing.py``).
    """
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
    structure = circuit(lowered, slots, hidden, assembly.places, made_for)
    return Assembled(cast(weights, target.dtype), tuple(stream.labels()), structure)


@dataclass(frozen=True)
class Assembly:
    """A network, with the functions that make its weights."""

    network: Network
    target: Target
    feed_forward: FeedForward
    #: Returns the inverse temperature of a softmax head that approximates a hard head, otherwise None.
    beta: Callable[[Head], float | None] = lambda head: None
    #: For each value, the dimensions of its head (columns of W_V) that contain the value. The method
    #: :meth:`weights` sets them.
    places: dict[Value, tuple[int, ...]] = field(default_factory=dict)

    def weights(self, stream: Stream) -> Weights:
        """Return all weights for a residual stream."""
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
            check_time()
            stream = stream.after(layer)
        column, constant = stream.read(self.network.output)
        return Weights(embedding, positions, tuple(layers), column[:, None], np.array([constant]))

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
        """Set the score of the sink.

        In a tie, this score equals the score of a selected key. Otherwise, it is 1/2, which is half a
        gap, below the lowest score of a selected key.
        """
        assert stream.sink_slot is not None
        place = len(head.keys)
        w_k[stream.sink_slot, place] = 1.0
        less = 0.0 if head.sink == TIED_SINK else 0.5
        column, bias = stream.read(head.offset, at_sink=0.0)
        w_q[:, place] = -column
        b_q[place] = -bias - less
        # The sink attends only to itself, for any temperature of the head.
        beta = self.beta(head)
        alone = 1.0 if beta is None else max(1.0, 2048 / beta)
        w_q[stream.sink_slot, place] += alone + less


def cast(weights: Weights, dtype: str) -> Weights:
    """Return the weights in another type; raise CompileError if a weight is out of its range."""

    def held(array: Array) -> Array:
        check_time()
        largest = float(max(array.max(initial=0.0), -array.min(initial=0.0)))
        if not largest <= float(np.finfo(dtype).max):  # also true for NaN
            raise CompileError(f"expected weights within the range of {dtype}, got {largest:.3g}")
        return array.astype(dtype)

    return weights.map(held)
