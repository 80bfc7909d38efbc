"""Replace hard steps of a compiled network by soft steps that compute almost the same values.

The compiler creates heads with very large differences between scores, so that the attention weights of
keys that are not selected vanish. It can also create tables that are constant near every value. In such
a network, the gradient is 0 at most edges. :func:`soften` makes two changes:

- *Heads.* Queries are scaled down until the smallest gap between the largest score and the next score
  is at most ``sharpness``. At a gap of ``sharpness``, a key with the next score receives e^−sharpness
  times the weight of a key with the largest score.
- *Tables.* The hidden units of a circuit node that read one direction of the residual stream compute a
  function of one number. All inputs are known, so the values of this number are known. If there are few
  values and no two are close, a staircase through them replaces the function. Each value has a tread
  whose slope is ``tread`` times the mean slope to the other values. Between two values, treads
  cover half of the distance and the riser covers the other half.

With ``tread=None``, only units that round by adding and subtracting a large number are replaced. In
float64, x + 1.5·2⁴⁰ − 1.5·2⁴⁰ is x rounded to a multiple of 2⁻¹². Such units are exact only in the
basis of the compiled network. Layers are then changed in order, since lower biases change the inputs of
later layers.

If the argument of ReLU in a unit that is not replaced is close to 0 on some input, the bias of the unit
is lowered slightly, if possible. Otherwise, rounding errors would determine the gradient at the kink of
ReLU.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from locum.experiments.dataset.labelled import Labelled
from locum.networks.transformer.weights import Array

#: Biases above this size belong to units that round.
_LARGE = 2.0**30
#: Maximum number of values of a replaced table, and minimum distance between two values.
_MOST, _CLOSEST = 120, 1e-3
#: Scores that differ by at most this are equal.
TIE = 1e-3
#: Minimum distance of the input of a unit from its kink, relative to the norms of stream and weights.
_KINK = 1e-12
#: Maximum number of biases of a unit that are tried, each lower than the previous one by this distance.
_LOWERINGS = 20
#: Maximum number of inputs per forward pass.
_TOGETHER = 4000


def soften(
    labelled: Labelled,
    batches: Sequence[Array],
    *,
    sharpness: float | None = None,
    tread: float | None = None,
) -> Labelled:
    """Return a network with softer heads and tables; ``batches`` are all inputs, one batch per length.

    If ``sharpness`` is None, heads do not change. If ``tread`` is None, only units that round are
    replaced.
    """
    tensors, layers = dict(labelled.tensors), [dict(layer) for layer in labelled.config["layers"]]
    if sharpness is not None:
        for name, gap in attention_gaps(labelled, batches).items():
            factor = np.where(np.isfinite(gap), np.minimum(1.0, sharpness / gap), 1.0)
            tensors[f"{name}.W_Q"] = tensors[f"{name}.W_Q"] * factor[:, None, None]
            tensors[f"{name}.b_Q"] = tensors[f"{name}.b_Q"] * factor[:, None]
    moved: dict[int, dict[int, tuple[int, ...]]] = {}
    seen = _activations(labelled, batches)
    for layer in range(len(layers)):
        mlp = f"blocks.{layer}.mlp"
        if f"{mlp}.W_in" not in tensors:
            continue
        if tread is None and moved:
            changed = labelled.changed(tensors, labelled.directions, layers=layers)
            seen = _activations(changed, batches)
        groups = [node.places for node in labelled.circuit.nodes if node.hook == f"{mlp}.hook_post"]
        tables = _Tables({n: tensors[f"{mlp}.{n}"] for n in _NAMES}, seen[layer], tread)
        parts, moved[layer] = tables.replaced(groups)
        tensors |= {f"{mlp}.{name}": part for name, part in parts.items()}
        size = len(parts["b_in"])
        layers[layer]["feed_forward"] = {"kind": "relu", "d_in": size, "d_mlp": size}
    softer = labelled.changed(tensors, labelled.directions, layers=layers)
    nodes = tuple(
        replace(node, places=tuple(sorted({p for old in node.places for p in moved[node.layer][old]})))
        if node.kind == "units" and node.layer in moved
        else node
        for node in labelled.circuit.nodes
    )
    return replace(softer, circuit=replace(labelled.circuit, nodes=nodes))


_NAMES = ("W_in", "b_in", "W_out", "b_out")


def _activations(labelled: Labelled, batches: Sequence[Array]) -> dict[int, Array]:
    """Return the distinct residual streams before the hidden units of each layer, [stream, d_model].

    All inputs and positions are included.
    """
    seen: dict[int, list[Any]] = defaultdict(list)
    network = labelled.network

    def tap(name: str, value: Any) -> None:
        if name.endswith("hook_resid_mid"):
            seen[int(name.split(".")[1])].append(np.unique(value.reshape(-1, labelled.width), axis=0))

    for ids in _parts(batches):
        network.stream(ids, tap)
    return {layer: np.unique(np.concatenate(values), axis=0) for layer, values in seen.items()}


def _parts(batches: Sequence[Array]) -> Iterator[Array]:
    """Yield batches of inputs of one length that are small enough for their activations to fit in
    memory.
    """
    for ids in batches:
        yield from np.array_split(ids, len(ids) // _TOGETHER + 1)


def attention_gaps(labelled: Labelled, batches: Sequence[Array], tie: float = TIE) -> dict[str, Array]:
    """Return, for each attention layer, the smallest gap between the largest and the next score of each
    head.

    The minimum is over all queries and inputs. Scores that differ by at most ``tie`` are equal. The gap
    is infinite for a head whose scores are always equal.
    """
    gaps: dict[str, Array] = {}
    network, read = labelled.network, {}

    def tap(name: str, value: Any) -> None:
        part, _, letter = name.rpartition(".hook_")
        if letter == "q":
            read[part] = value
        elif letter == "k":
            scores = np.einsum("bqhe,bkhe->bhqk", read.pop(part), value)
            if network.config.get("causal"):
                ahead = np.triu(np.ones(scores.shape[-2:], bool), 1)
                scores = np.where(ahead, -np.inf, scores)
            below = scores.max(axis=-1, keepdims=True) - scores
            below = np.where(below > tie, below, np.inf).min(axis=(0, 2, 3))
            gaps[part] = np.minimum(gaps.get(part, np.inf), below)

    for ids in _parts(batches):
        network.stream(ids, tap)
    return gaps


class _Tables:
    """The hidden units of one layer, and the residual streams that they read on all inputs."""

    def __init__(self, old: dict[str, Array], read: Array, tread: float | None) -> None:
        self.old, self.tread, self.read = old, tread, read
        self.before = read @ old["W_in"]
        self.columns: list[Array] = []
        self.biases: list[float] = []
        self.rows: list[Array] = []
        self.bias_out: Array = old["b_out"].copy()

    def replaced(
        self, groups: Sequence[tuple[int, ...]]
    ) -> tuple[dict[str, Array], dict[int, tuple[int, ...]]]:
        """Return the new tensors of the layer, and the new indices of each old hidden unit."""
        moved: dict[int, tuple[int, ...]] = {}
        for units in self._directions(groups):
            start = len(self.biases)
            table = self._table(units)
            if table is None:
                for unit in units:
                    moved[unit] = (len(self.biases),)
                    self._add(
                        self.old["W_in"][:, unit],
                        self._bias(unit),
                        self.old["W_out"][unit],
                    )
                continue
            self._stairs(units, *table)
            moved |= dict.fromkeys(units, tuple(range(start, len(self.biases))))
        parts = {
            "W_in": np.stack(self.columns, axis=1),
            "b_in": np.array(self.biases),
            "W_out": np.stack(self.rows),
            "b_out": self.bias_out,
        }
        return parts, moved

    def _bias(self, unit: int) -> float:
        """Return the bias of a unit.

        If the unit is close to its kink on some input, the bias is lowered, if possible.
        """
        bias = float(self.old["b_in"][unit])
        # In another basis, rounding errors are proportional to the norm of the stream.
        longest = float(np.linalg.norm(self.read, axis=1).max())
        scale = longest * float(np.linalg.norm(self.old["W_in"][:, unit])) + abs(bias)
        step = _KINK * scale
        for lowered in bias - step * np.arange(_LOWERINGS):
            if not (np.abs(self.before[:, unit] + lowered) < step).any():
                return float(lowered)
        return bias

    def _add(self, column: Array, bias: float, row: Array) -> None:
        self.columns.append(column)
        self.biases.append(bias)
        self.rows.append(row)

    def _directions(self, groups: Sequence[tuple[int, ...]]) -> list[list[int]]:
        """Return the hidden units grouped by circuit node and by the direction that they read.

        With ``tread=None``, each unit is a separate group.
        """
        group_of = {unit: number for number, places in enumerate(groups) for unit in places}
        found: dict[tuple[Any, ...], list[int]] = defaultdict(list)
        for unit, column in enumerate(self.old["W_in"].T):
            largest = column[np.abs(column).argmax()]
            direction = tuple(np.round(column / largest, 9)) if largest else ()
            alone = unit if self.tread is None else None
            found[group_of.get(unit, -1), direction, alone].append(unit)
        return list(found.values())

    def _table(self, units: Sequence[int]) -> tuple[Array, Array] | None:
        """Return the distinct values that units read on all inputs, and the outputs of the units.

        The values are in the scale of the first unit. Large biases are subtracted from the outputs. The
        result is None if the units are not replaced.
        """
        biases, first = self.old["b_in"][units], self.before[:, units[0]]
        if self.tread is None and not (np.abs(biases) > _LARGE).any():
            return None
        if not self.old["W_in"][:, units[0]].any():
            return None
        large = np.where(np.abs(biases) > _LARGE, biases, 0.0)
        after = np.maximum(self.before[:, units] + biases, 0) - large
        order = np.argsort(first)
        values, after = first[order], after[order]
        close = 1e-9 * max(1.0, float(np.abs(values).max()))
        same = np.abs(np.diff(after, axis=0)).max(axis=1) <= 1e-9 * max(1.0, float(np.abs(after).max()))
        steps = np.diff(values)
        ends = np.flatnonzero((steps > close) & ~(same & (steps < _CLOSEST)))
        starts = np.concatenate([[0], ends + 1])
        stops = np.concatenate([ends, [len(values) - 1]])
        gaps = values[starts[1:]] - values[stops[:-1]]
        if len(starts) > _MOST or (len(gaps) and gaps.min() < _CLOSEST):
            return None
        return (values[starts] + values[stops]) / 2, after[starts]

    def _stairs(self, units: Sequence[int], values: Array, after: Array) -> None:
        """Add hidden units that compute a staircase through the values of a table."""
        biases, rows = self.old["b_in"][units], self.old["W_out"][units]
        large = np.where(np.abs(biases) > _LARGE, biases, 0.0)
        self.bias_out = (self.bias_out + large @ rows) + after[0] @ rows
        column, heights = self.old["W_in"][:, units[0]], (after - after[0]) @ rows
        if len(values) == 1:
            return
        slopes = (self.tread or 0.0) * _mean_slopes(values, heights)
        gaps = np.diff(values)
        # The first tread starts at a value below all other values, where the new units are 0.
        kinks, turns = [values[0] - gaps[0]], [slopes[0]]
        self.bias_out = self.bias_out - slopes[0] * gaps[0]
        for k, gap in enumerate(gaps):
            rise = heights[k + 1] - heights[k] - (slopes[k] + slopes[k + 1]) * gap / 4
            riser = rise / (gap / 2)
            kinks += [values[k] + gap / 4, values[k + 1] - gap / 4]
            turns += [riser - slopes[k], slopes[k + 1] - riser]
        for kink, turn in zip(kinks, turns, strict=True):
            if turn.any():
                self._add(column, -float(kink), turn)


def _mean_slopes(values: Array, heights: Array) -> Array:
    """Return the mean slope from each value to the other values, weighted by proximity, [value,
    axis].
    """
    distances = values[None] - values[:, None]
    np.fill_diagonal(distances, np.inf)
    # Values on the right have a larger weight, because the slopes on both sides of a peak would
    # otherwise cancel.
    weights = np.where(distances > 0, 1.5, 1.0) / distances**2
    weights /= weights.sum(axis=1, keepdims=True)
    rises = heights[None] - heights[:, None]
    slopes: Array = (weights[..., None] * rises / distances[..., None]).sum(axis=1)
    return slopes
