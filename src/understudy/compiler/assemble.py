"""Last stage: the numbers. Forms become columns of matrices, signals become slots, and biases carry
constants.

The sink is a token like any other: every matrix acts on it. What it holds in each slot is known here,
since it attends to itself alone; so whatever reads the stream can read 0, or a default, at the sink,
by subtracting what it would have read there from the mark ``is_sink``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy.compiler.exact import ExactFeedForward
from understudy.compiler.forms import Form
from understudy.compiler.lowering import Lowering
from understudy.compiler.network import NO_SINK, TIED_SINK, Head, Network, Unit
from understudy.compiler.slots import Slots
from understudy.compiler.target import Target
from understudy.compiler.units import UnitFeedForward
from understudy.errors import CompileError
from understudy.transformer.forward import attend, feed
from understudy.transformer.weights import (
    SOFTMAX,
    AttentionWeights,
    FeedForwardWeights,
    LayerWeights,
    Weights,
)

Matrix = NDArray[np.float64]

#: Weights that are worth writing down: 2 GB of them.
MAX_PARAMETERS = 2**28


@dataclass
class Assembly:
    """The network, its slots and what has been assembled so far."""

    network: Network
    slots: Slots
    lowering: Lowering
    target: Target
    depth: int
    #: What makes the feed-forwards where they are not exact, and how sharp soft heads are.
    by_units: UnitFeedForward | None = None
    beta: Callable[[Head], float | None] = lambda head: None

    def __post_init__(self) -> None:
        self.sink_slot = self.slots.size if self.network.sink else None
        self.width = self.slots.size + self.network.sink
        #: The residual stream at the sink.
        self.at_sink = np.zeros(self.width)
        if self.sink_slot is not None:
            self.at_sink[self.sink_slot] = 1.0

    def weights(self) -> Weights:
        """All of them."""
        self._require_moderate()
        embedding, positions = self._embeddings()
        if self.sink_slot is not None:
            positions = np.vstack([self.at_sink, positions])
        layers = []
        for number in range(1, self.depth + 1):
            attention = self._attention([h for h in self.network.heads if h.time == 2 * number - 1])
            units = [u for u in self.network.units if u.time == 2 * number]
            forward = self._feed_forward(units, self.slots.erased.get(2 * number, []))
            layers.append(LayerWeights(attention, forward))
            self._carry_sink(layers[-1])
        unembedding, bias = self._unembedding()
        return Weights(embedding, positions, tuple(layers), unembedding, bias)

    def _require_moderate(self) -> None:
        widest = max((len(h.keys) + 1 for h in self.network.heads), default=0)
        total = 4 * len(self.network.heads) * self.width * widest
        if total > MAX_PARAMETERS:
            raise CompileError(
                f"its heads alone would have {total:,} weights (residual stream {self.width}, keys of "
                f"{widest} numbers); the limit is {MAX_PARAMETERS:,}"
            )

    def _embeddings(self) -> tuple[Matrix, Matrix]:
        vocabulary = self.target.vocabulary
        embedding = np.zeros((1 if vocabulary is None else len(vocabulary), self.width))
        positions = np.zeros((self.target.longest, self.width))
        for group in self.slots.groups:
            for signal, scale in group.signals.items():
                if signal.tokens is not None:
                    embedding[:, group.slot] += scale * signal.tokens
                if signal.positions is not None:
                    positions[:, group.slot] += scale * signal.positions
        return embedding, positions

    # Attention ----------------------------------------------------------------------------------

    def _attention(self, heads: Sequence[Head]) -> AttentionWeights | None:
        if not heads:
            return None
        sizes = [max(len(h.keys) + (h.sink != NO_SINK), len(h.values), 1) for h in heads]
        size = max(sizes)
        shape = (len(heads), self.width, size)
        w_q, w_k, w_v = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        b_q, b_k, b_v = (np.zeros((len(heads), size)) for _ in range(3))
        w_o = np.zeros((len(heads), size, self.width))
        for h, head in enumerate(heads):
            for i, (query, key) in enumerate(zip(head.queries, head.keys, strict=True)):
                w_q[h, :, i], b_q[h, i] = self.read(query, at_sink=0.0)
                w_k[h, :, i], b_k[h, i] = self.read(key, at_sink=0.0)
            if head.sink != NO_SINK:
                self._compete(head, w_q[h], b_q[h], w_k[h], len(head.keys))
            beta = self.beta(head)
            if beta is not None:
                w_q[h] *= beta
                b_q[h] *= beta
            for i, value in enumerate(head.values):
                if value.share:
                    assert self.sink_slot is not None
                    w_v[h, self.sink_slot, i] = 1.0
                else:
                    w_v[h, :, i], b_v[h, i] = self.read(value.form, at_sink=value.at_sink)
                slot, scale = self.slots.of(value.into)
                w_o[h, i, slot] = scale
        kinds = tuple(head.kind if self.beta(head) is None else SOFTMAX for head in heads)
        return AttentionWeights(w_q, b_q, w_k, b_k, w_v, b_v, w_o, np.zeros(self.width), kinds)

    def _compete(self, head: Head, w_q: Matrix, b_q: Matrix, w_k: Matrix, place: int) -> None:
        """The sink's own score: that of a selected key (where it ties), or half a gap below."""
        assert self.sink_slot is not None
        w_k[self.sink_slot, place] = 1.0
        less = 0.0 if head.sink == TIED_SINK else 0.5
        column, bias = self.read(head.offset, at_sink=0.0)
        w_q[:, place] = -column
        b_q[place] = -bias - less
        # The sink attends to itself alone, however soft the head is.
        beta = self.beta(head)
        alone = 1.0 if beta is None else max(1.0, 2048 / beta)
        w_q[self.sink_slot, place] += alone + less

    def read(self, form: Form, at_sink: float | None = None) -> tuple[Matrix, float]:
        """A form as a column and a bias; at the sink it is to read ``at_sink``."""
        column = np.zeros(self.width)
        for slot, coefficient in self.slots.read(form).items():
            column[slot] = coefficient
        if self.sink_slot is not None and at_sink is not None:
            column[self.sink_slot] += at_sink - (float(self.at_sink @ column) + form.constant)
        return column, form.constant

    # Feed-forward -------------------------------------------------------------------------------

    def _feed_forward(self, units: list[Unit], erased: Sequence[int]) -> FeedForwardWeights | None:
        if not units and not erased:
            return None
        if self.by_units is not None:
            return self.by_units.weights(self, units, erased)
        layer = ExactFeedForward(self.lowering, units)
        functions = layer.functions(len(erased))
        w_in = np.zeros((self.width, functions.arguments))
        b_in = np.zeros(functions.arguments)
        for i, form in enumerate(layer.forms):
            w_in[:, i], b_in[i] = self.read(form)
        for i, slot in enumerate(erased, start=len(layer.forms)):
            w_in[slot, i] = 1.0
        w_out = np.zeros((len(functions.outputs), self.width))
        for i, unit in enumerate(units):
            slot, scale = self.slots.of(unit.into)
            w_out[i, slot] = scale
        for i, slot in enumerate(erased, start=len(units)):
            w_out[i, slot] = -1.0
        return FeedForwardWeights("exact", w_in, b_in, w_out, np.zeros(self.width), functions=functions)

    def _carry_sink(self, layer: LayerWeights) -> None:
        """What the layer does to the sink, which sees nothing but itself."""
        if self.sink_slot is None:
            return
        stream = self.at_sink[None, None]
        if layer.attention is not None:
            stream = stream + attend(layer.attention, stream, "", _ignore)
        if layer.feed_forward is not None and layer.feed_forward.functions is None:
            stream = stream + feed(layer.feed_forward, stream, "", _ignore, sink=False)
        self.at_sink = stream[0, 0]

    def _unembedding(self) -> tuple[Matrix, Matrix]:
        column, constant = self.read(self.network.output)
        return column[:, None], np.array([constant])


def _ignore(name: str, value: object) -> None:
    pass


def categories(weights: Weights, outputs: Mapping[float, object]) -> tuple[Matrix, Matrix]:
    """An unembedding whose greatest logit is at the nearest of the codes: 2x·v − v² = x² − (x − v)²."""
    column, constant = weights.W_U[:, 0], float(weights.b_U[0])
    codes = np.array(list(outputs))
    return 2 * column[:, None] * codes, 2 * constant * codes - codes**2
