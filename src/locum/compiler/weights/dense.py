"""Stage *feed-forwards*, by units: the hidden units of a layer's gates as the matrices of its own.

The gates of a layer come in, each with its hidden units, and the slots that it erases; its weights come
out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from locum.compiler.network.forms import Form
from locum.compiler.network.network import Unit
from locum.compiler.target import Target
from locum.compiler.units.hidden import Hidden, erasing
from locum.compiler.weights.stream import Matrix, Stream
from locum.transformer.weights import FeedForwardWeights

#: No activation lets this much below 0 through: GELU(−64) is 0.
_CLOSED = 64.0


class UnitFeedForward:
    """Makes feed-forwards of one kind of unit: relu, gelu or glu."""

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
        """Return forms as columns [slot, argument] and constants; the sink may read 0."""
        columns = np.zeros((stream.width, len(forms)))
        biases = np.zeros(len(forms))
        for i, form in enumerate(forms):
            columns[:, i], biases[i] = stream.read(form, at_sink=0.0 if zero_at_sink else None)
        return columns, biases

    def _constant(self, stream: Stream, gate: Matrix, constants: Matrix) -> None:
        """Add constants to a gate, which has no bias, by a slot that is 1 everywhere."""
        assert stream.one_slot is not None
        gate[stream.one_slot] += constants
        if stream.sink_slot is not None:
            gate[stream.sink_slot] += constants


def _closing(stream: Stream, columns: Matrix, biases: Matrix) -> Matrix:
    """Return weights of the sink's mark that make all units 0 there, in any order of rounded sums.

    So what the sink holds is known to the last bit, but for the sums of constants.
    """
    sizes = np.abs(stream.at_sink) @ np.abs(columns) + np.abs(biases)
    weights: Matrix = -2 * sizes - _CLOSED * (1 + np.abs(columns).sum(axis=0))
    return weights
