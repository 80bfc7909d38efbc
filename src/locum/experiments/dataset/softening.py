"""Soften a compiled network, so that rounding errors do not determine its gradients.

- *Heads.* Queries are scaled down until the smallest gap between the largest score and the next score
  is at most ``sharpness``. The compiler creates heads with very large gaps, which multiply rounding
  errors of gradients. At a gap of ``sharpness``, a key with the next score receives e^−sharpness times
  the weight of a key with the largest score.
- *Units that round.* In float64, x + 1.5·2⁴⁰ − 1.5·2⁴⁰ is x rounded to a multiple of 2⁻¹². All inputs
  are known, so the values that such a unit reads are known. If there are few values and no two are
  close, a staircase of ReLU units through the values replaces the unit. Between two values, treads
  cover half of the distance and the riser covers the other half.
- *Units at their kinks.* If the argument of ReLU in another unit is close to 0 on some input, the bias
  of the unit is lowered slightly, if possible.

Layers are changed in order, since each change affects the inputs of later layers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from locum.experiments.circuits.patching import CompiledNetwork
from locum.graph import Atom
from locum.networks.transformer import CompiledTransformer
from locum.networks.transformer.circuit import Circuit
from locum.networks.transformer.weights import (
    Array,
    AttentionWeights,
    FeedForwardWeights,
    LayerWeights,
    Weights,
)

#: Biases above this size belong to units that round.
_LARGE = 2.0**30
#: Maximum number of values of a unit that is replaced, and minimum distance between two values.
_MOST, _CLOSEST = 120, 1e-3
#: Scores that differ by at most this are equal.
_TIE = 1e-3
#: Minimum distance of the input of a unit from its kink, relative to the norms of stream and weights.
_KINK = 1e-12
#: Maximum number of biases of a unit that are tried, each lower than the previous one by this distance.
_LOWERINGS = 20
#: Maximum number of inputs per forward pass.
_TOGETHER = 4000

#: All inputs of a network by length.
Rows = Mapping[int, Sequence[Sequence[Atom]]]


def soften(
    model: CompiledTransformer, circuit: Circuit, rows: Rows, sharpness: float
) -> tuple[CompiledTransformer, Circuit]:
    """Return a softer network, and its circuit with the new indices of hidden units."""
    gaps = _attention_gaps(model, rows)
    layers = [
        replace(layer, attention=_scaled(layer.attention, gaps[number], sharpness))
        if layer.attention is not None
        else layer
        for number, layer in enumerate(model.weights.layers)
    ]
    seen = _activations(model, rows)
    moved: dict[int, dict[int, tuple[int, ...]]] = {}
    for number, layer in enumerate(layers):
        if layer.feed_forward is None:
            continue
        if moved:
            seen = _activations(_with_layers(model, layers), rows)
        feed, moved[number] = _Units(layer.feed_forward, seen[number]).replaced()
        layers[number] = replace(layer, feed_forward=feed)
    nodes = tuple(
        replace(node, places=tuple(sorted({p for old in node.places for p in moved[node.layer][old]})))
        if node.kind == "units" and node.layer in moved
        else node
        for node in circuit.nodes
    )
    return _with_layers(model, layers), replace(circuit, nodes=nodes)


def _with_layers(model: CompiledTransformer, layers: Sequence[LayerWeights]) -> CompiledTransformer:
    weights: Weights = replace(model.weights, layers=tuple(layers))
    return CompiledTransformer(model.config, weights)


def _scaled(heads: AttentionWeights, gap: Array, sharpness: float) -> AttentionWeights:
    """Return heads whose smallest gaps are at most ``sharpness``."""
    factor = np.where(np.isfinite(gap), np.minimum(1.0, sharpness / gap), 1.0)
    return replace(heads, W_Q=heads.W_Q * factor[:, None, None], b_Q=heads.b_Q * factor[:, None])


def _parts(rows: Rows) -> Iterator[Sequence[Sequence[Atom]]]:
    """Yield batches of inputs of one length that are small enough for their activations to fit in
    memory.
    """
    for inputs in rows.values():
        for start in range(0, len(inputs), _TOGETHER):
            yield inputs[start : start + _TOGETHER]


def _activations(model: CompiledTransformer, rows: Rows) -> dict[int, Array]:
    """Return the distinct residual streams before the hidden units of each layer, [stream, d_model].

    All inputs and positions are included.
    """
    seen: dict[int, list[Any]] = {}
    network, width = CompiledNetwork(model), model.weights.W_E.shape[1]

    def tap(name: str, value: Any) -> None:
        if name.endswith("hook_resid_mid"):
            streams = np.unique(value.reshape(-1, width), axis=0)
            seen.setdefault(int(name.split(".")[1]), []).append(streams)

    for inputs in _parts(rows):
        network.stream(inputs, tap)
    return {layer: np.unique(np.concatenate(values), axis=0) for layer, values in seen.items()}


def _attention_gaps(model: CompiledTransformer, rows: Rows) -> dict[int, Array]:
    """Return, for each layer with heads, the smallest gap between the largest and the next score of
    each head.

    The minimum is over all queries and inputs. The gap is infinite for a head whose scores are always
    equal.
    """
    gaps: dict[int, Array] = {}
    read: dict[str, Any] = {}

    def tap(name: str, value: Any) -> None:
        part, _, letter = name.rpartition(".hook_")
        if letter == "q":
            read[part] = value
        elif letter == "k":
            scores = np.einsum("bqhe,bkhe->bhqk", read.pop(part), value)
            if model.config.causal:
                ahead = np.triu(np.ones(scores.shape[-2:], bool), 1)
                scores = np.where(ahead, -np.inf, scores)
            below = scores.max(axis=-1, keepdims=True) - scores
            below = np.where(below > _TIE, below, np.inf).min(axis=(0, 2, 3))
            layer = int(part.split(".")[1])
            gaps[layer] = np.minimum(gaps.get(layer, np.inf), below)

    network = CompiledNetwork(model)
    for inputs in _parts(rows):
        network.stream(inputs, tap)
    return gaps


class _Units:
    """The hidden units of one layer, and the residual streams that they read on all inputs."""

    def __init__(self, old: FeedForwardWeights, read: Array) -> None:
        self.old, self.read = old, read
        self.before = read @ old.W_in
        self.columns: list[Array] = []
        self.biases: list[float] = []
        self.rows: list[Array] = []
        self.bias_out: Array = old.b_out.copy()

    def replaced(self) -> tuple[FeedForwardWeights, dict[int, tuple[int, ...]]]:
        """Return the new hidden units of the layer, and the new indices of each old hidden unit."""
        moved: dict[int, tuple[int, ...]] = {}
        for unit in range(len(self.old.b_in)):
            start = len(self.biases)
            table = self._table(unit)
            if table is None:
                self._add(self.old.W_in[:, unit], self._bias(unit), self.old.W_out[unit])
            else:
                self._add_stairs(unit, *table)
            moved[unit] = tuple(range(start, len(self.biases)))
        new = replace(
            self.old,
            W_in=np.stack(self.columns, axis=1),
            b_in=np.array(self.biases),
            W_out=np.stack(self.rows),
            b_out=self.bias_out,
        )
        return new, moved

    def _bias(self, unit: int) -> float:
        """Return the bias of a unit.

        If the unit is close to its kink on some input, the bias is lowered, if possible.
        """
        bias = float(self.old.b_in[unit])
        longest = float(np.linalg.norm(self.read, axis=1).max())
        scale = longest * float(np.linalg.norm(self.old.W_in[:, unit])) + abs(bias)
        step = _KINK * scale
        for lowered in bias - step * np.arange(_LOWERINGS):
            if not (np.abs(self.before[:, unit] + lowered) < step).any():
                return float(lowered)
        return bias

    def _add(self, column: Array, bias: float, row: Array) -> None:
        self.columns.append(column)
        self.biases.append(bias)
        self.rows.append(row)

    def _table(self, unit: int) -> tuple[Array, Array] | None:
        """Return the distinct values that a unit reads on all inputs, and its outputs minus its bias.

        The result is None if the unit is not replaced.
        """
        bias, first = self.old.b_in[unit], self.before[:, unit]
        if not abs(bias) > _LARGE or not self.old.W_in[:, unit].any():
            return None
        after = np.maximum(first + bias, 0) - bias
        order = np.argsort(first)
        values, after = first[order], after[order]
        close = 1e-9 * max(1.0, float(np.abs(values).max()))
        same = np.abs(np.diff(after)) <= 1e-9 * max(1.0, float(np.abs(after).max()))
        steps = np.diff(values)
        ends = np.flatnonzero((steps > close) & ~(same & (steps < _CLOSEST)))
        starts = np.concatenate([[0], ends + 1])
        stops = np.concatenate([ends, [len(values) - 1]])
        gaps = values[starts[1:]] - values[stops[:-1]]
        if len(starts) > _MOST or (len(gaps) and gaps.min() < _CLOSEST):
            return None
        return (values[starts] + values[stops]) / 2, after[starts]

    def _add_stairs(self, unit: int, values: Array, after: Array) -> None:
        """Add hidden units that compute a staircase through the values of a unit."""
        row, column = self.old.W_out[unit], self.old.W_in[:, unit]
        self.bias_out = (self.bias_out + self.old.b_in[unit] * row) + after[0] * row
        heights = (after - after[0])[:, None] * row
        for k, gap in enumerate(np.diff(values)):
            riser = (heights[k + 1] - heights[k]) / (gap / 2)
            for kink, turn in ((values[k] + gap / 4, riser), (values[k + 1] - gap / 4, -riser)):
                if turn.any():
                    self._add(column, -float(kink), turn)
