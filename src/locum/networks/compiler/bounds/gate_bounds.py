"""Bound the errors of gates, which are functions that hidden units compute.

The error of a gate consists of the error of its hidden units, of rounding errors, and of the propagated
errors of its arguments. The propagated error of a product is at most |a|·δb + |b|·δa + δa·δb. For a
smooth function, it is at most the largest slope times the error of the argument. Tables with plateaus,
ramps and rounded integers *stop* errors: on a plateau, an error of the argument has no effect. For
exponentials that are summed, relative errors are bounded. The errors of the exponentials of a softmax
are bounded together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from locum.networks.compiler.bounds.demand import Demand
from locum.networks.compiler.bounds.intervals import ErrorInterval, ErrorIntervals
from locum.networks.compiler.network.forms import (
    SMALLEST,
    SNAP,
    Bend,
    Curved,
    Form,
    Gate,
    Mask,
    Masked,
    Product,
    Ramp,
    Snap,
    Table,
    Vector,
    lowest_bit,
    lowest_bits,
    sums_exactly,
)
from locum.networks.compiler.network.network import Unit
from locum.networks.compiler.units.curves import CURVES
from locum.networks.compiler.units.hidden import Hidden

#: For arguments with a larger absolute value, GELU is exactly its argument or 0, in every type.
_SATURATED = 40.0


@dataclass(frozen=True)
class Summands:
    """Bounds on the numbers that the hidden units of a gate add to a slot."""

    #: The sum of the absolute values of these numbers, and the number of terms.
    size: float
    count: int
    #: A power of two that divides all these numbers; 0 if none is known.
    grid: float
    #: A power of two that divides the value of the gate, before multiplication by the scale of the
    #: slot; 0 if none is known.
    step: float


@dataclass(frozen=True)
class SlotSum:
    """The sum of the outputs of all gates that write to one slot in one sublayer.

    The order of addition depends on the machine. If the numbers of one gate are not added exactly, the
    outputs of all gates of the slot have rounding errors. The bound on these errors increases with the
    number of terms of the sum.
    """

    writers: Sequence[Summands]
    dtype: str

    @property
    def exact(self) -> bool:
        """Whether the sum is certainly computed without rounding."""
        size = sum(part.size for part in self.writers)
        return sums_exactly(size, min(part.grid for part in self.writers), self.dtype)

    @property
    def terms(self) -> int:
        """Maximum number of terms of the sum, including one constant for each gate."""
        return sum(part.count for part in self.writers) + len(self.writers)


@dataclass
class GateBounds:
    """The error intervals of the outputs of gates, given the intervals of earlier signals."""

    intervals: ErrorIntervals
    demand: Demand

    def interval(
        self,
        unit: Unit,
        gate: Gate,
        arguments: list[ErrorInterval],
        hidden: Hidden,
        summands: Summands,
        slot: SlotSum,
    ) -> ErrorInterval:
        """Return the error interval of the output of a unit, given the intervals of its arguments."""
        with np.errstate(all="ignore"):
            bound = self._carried(gate, arguments, hidden, slot)
            if isinstance(gate, Snap) and not gate.whole:
                bound.on_grid = summands.step if slot.exact else 0.0
                bound.error = arguments[0].error + summands.step / 2
            else:
                bound.step = summands.step if slot.exact else 0.0
        rounding = np.zeros(self.intervals.size)
        if not (isinstance(gate, Curved) and gate.relative):  # relative errors are already included
            if not bound.grid:
                rounding, unbounded = self._rounding(gate, arguments, hidden, slot)
                bound.unbounded = unbounded
            bound.error = bound.error + rounding + hidden.error
            if bound.relative is not None:
                with np.errstate(all="ignore"):
                    more = np.where(rounding > 0, (rounding + hidden.error) / bound.low, 0.0)
                bound.relative = bound.relative + more
                bound.own = None if bound.own is None else bound.own + more
        bound.error = np.where(np.isnan(bound.error), np.inf, bound.error)
        bound.unbounded = bound.unbounded or any(part.unbounded for part in arguments)
        return self._outside(bound, self.demand.of(unit.into), hidden, gate, rounding)

    def _carried(
        self, gate: Gate, arguments: list[ErrorInterval], hidden: Hidden, slot: SlotSum
    ) -> ErrorInterval:
        """Return the range of a gate, and the error that is propagated from its arguments."""
        x, zero = arguments[0], np.zeros(self.intervals.size)
        match gate:
            case Product():
                return _product(x, arguments[1])
            case Masked():
                return _masked(x, arguments[1], hidden)
            case Curved():
                return self._curved(gate, x, hidden, slot)
            case Bend():
                return _bend(gate, x)
            case Ramp():
                return ErrorInterval(zero, zero + 1, zero)
            case Table():
                return self._table(gate, x, hidden)
            case Snap():
                return ErrorInterval(x.low, x.high, zero)

    def summands(
        self, gate: Gate, arguments: list[ErrorInterval], hidden: Hidden, scale: float
    ) -> Summands:
        """Return bounds on the numbers that the units of a gate add to a slot with a scale."""
        size = abs(scale) * (hidden.weight + abs(hidden.constant))
        rounded = Summands(size, hidden.terms, 0.0, 0.0)
        dtype = self.intervals.target.dtype
        if isinstance(gate, Snap):  # next to C, only multiples of the grid are represented
            arguments = [replace(arguments[0], step=1.0 if gate.whole else SNAP[dtype][1])]
        elif hidden.error or isinstance(gate, (Curved, Ramp)):
            return rounded
        # On a plateau around each key, the error of the argument has no effect.
        level = isinstance(gate, Table) and hidden.flat
        if not all(part.grid if level else part.exact for part in arguments):
            return rounded
        largest = np.array([float(part.largest.max()) for part in arguments])
        steps = np.array([part.grid for part in arguments])
        with np.errstate(all="ignore"):
            pre, step = _affine(hidden.pre, hidden.bias, largest, steps)
        fits = _fit(pre, step, dtype)
        if hidden.gate is not None and hidden.gate_bias is not None:
            gates, gate_steps = _affine(hidden.gate, hidden.gate_bias, largest, steps)
            fits = fits and _fit(gates, gate_steps, dtype)
            pre, step = pre * gates, step * gate_steps
            fits = fits and _fit(pre, step, dtype)
        elif self.intervals.target.feed_forward == "gelu" and isinstance(gate, Masked):
            # Units of other gates are sharp enough. For a mask, this depends on the masked number.
            fits = fits and bool((np.abs(hidden.pre[:, 1]) * steps[1] >= _SATURATED).all())
        if not fits:
            return rounded
        total = float((np.abs(hidden.out) * pre).sum()) + abs(hidden.constant)
        if isinstance(gate, Snap):  # C is added and then subtracted, so no intermediate sum is larger
            total = float(pre.sum())
        elif hidden.active is not None:
            total = hidden.weight + abs(hidden.constant)
        bits = np.append(lowest_bits(hidden.out) * step, lowest_bit(hidden.constant))
        grid = float(bits.min())
        written = lowest_bit(scale) * grid
        return Summands(abs(scale) * total, hidden.terms, written, min(grid, 1.0))

    def _rounding(
        self, gate: Gate, arguments: list[ErrorInterval], hidden: Hidden, slot: SlotSum
    ) -> tuple[Vector, bool]:
        """Bound the rounding errors of the products and sums of a unit, including its constants.

        The second result is true if rounding errors are excluded, because numbers have no bounds.
        """
        weight = (slot.terms + 8) * (hidden.weight + abs(hidden.constant))
        if hidden.reading:
            read = max(len(form.terms) for form in gate.arguments) + 4
            weight += read * hidden.reading * self._cancelled(gate, arguments)
        smallest = SMALLEST[self.intervals.target.dtype]
        amount = self.intervals.unit * weight + (slot.terms + 8) * smallest
        unbounded = not math.isfinite(amount)
        rounding = np.full(self.intervals.size, 0.0 if unbounded else amount)
        if isinstance(gate, Masked):  # a closed gate is exactly 0
            rounding[(arguments[0].high == 0) & (arguments[0].error == 0)] = 0.0
        return rounding, unbounded

    def _cancelled(self, gate: Gate, arguments: list[ErrorInterval]) -> float:
        """Return the largest ratio of the sum of absolute terms of an argument to its absolute value.

        Both numbers are maxima over all positions. The result is at least 1.
        """
        most = 1.0
        for form, part in zip(gate.arguments, arguments, strict=True):
            gross = self.intervals.gross(form)
            largest = float(part.largest.max())
            if math.isfinite(gross) and largest > 0:
                most = max(most, gross / largest)
        return most

    def _outside(
        self, bound: ErrorInterval, where: Mask, hidden: Hidden, gate: Gate, rounding: Vector
    ) -> ErrorInterval:
        """Replace the interval by bounds of the number in the network where the output is not needed.

        The error at these positions is 0. ``where`` is a mask of the positions where the output is
        needed.
        """
        if hidden.limits is None or isinstance(gate, Masked):
            low, high = bound.net_low, bound.net_high
        else:
            low, high = (np.full(self.intervals.size, end) for end in hidden.limits)
            low, high = low - rounding, high + rounding
        return ErrorInterval(
            np.where(where, bound.low, low),
            np.where(where, bound.high, high),
            np.where(where, bound.error, 0.0),
            bound.step,
            None if bound.relative is None else np.where(where, bound.relative, 0.0),
            None if bound.own is None else np.where(where, bound.own, 0.0),
            bound.unbounded,
            bound.on_grid,
        )

    def _curved(self, gate: Curved, x: ErrorInterval, hidden: Hidden, slot: SlotSum) -> ErrorInterval:
        high = np.minimum(x.high, gate.at_most)
        low, error = np.minimum(x.low, high), x.error
        function = CURVES[gate.name].function
        ends = function(low), function(high)
        bound = ErrorInterval(np.minimum(*ends), np.maximum(*ends), error)
        match gate.name:
            case "exp":
                growth = np.expm1(error)
                if gate.softmax is not None:
                    bound.error = self._softmax(*gate.softmax, gate.at_most)
                elif gate.relative:
                    largest = float(np.abs([low, high]).max())
                    rounding = self.intervals.unit * (slot.terms + 8) * (2 * largest + 4)
                    bound.own = np.full(self.intervals.size, hidden.error + rounding)
                    bound.relative = (1 + hidden.error + rounding) * (1 + growth) - 1
                    bound.error = bound.relative * bound.high
                else:
                    bound.error = bound.high * growth
            case "log":
                absolute = np.where(error < low, -np.log1p(-error / low), np.inf)
                share = x.proportion()
                bound.error = np.minimum(absolute, np.where(share < 1, -np.log1p(-share), np.inf))
                if x.own is not None:
                    bound.own = np.where(x.own < 1, -np.log1p(-x.own), np.inf) + hidden.error
            case "sqrt":
                below = np.sqrt(low) + np.sqrt(np.maximum(low - error, 0))
                bound.error = np.minimum(np.sqrt(error), np.where(below > 0, error / below, np.inf))
            case "reciprocal":
                near = np.minimum(np.abs(low), np.abs(high))
                sound = (low > 0) | (high < 0)
                bound.error = np.where(sound & (error < near), error / (near * (near - error)), np.inf)
            case "square":
                furthest = np.maximum(np.abs(low), np.abs(high))
                crosses = (low < 0) & (high > 0)
                bound.low = np.where(crosses, 0.0, bound.low)
                bound.error = 2 * furthest * error + error**2
            case _:
                near = np.where(
                    (x.net_low < 0) & (x.net_high > 0),
                    0.0,
                    np.minimum(np.abs(x.net_low), np.abs(x.net_high)),
                )
                bound.error = CURVES[gate.name].slope(near) * error
        return bound

    def _softmax(self, z: Form, log: Form, at_most: float) -> Vector:
        """Bound the error of exp(z − log b), without the error of the units that compute it.

        If errors of scores are at most δ, each attention weight of a softmax changes by at most
        tanh(δ/2). The errors of the sum and of its logarithm are measured relative to the scores in the
        network.
        """
        where = self.demand.form(z)
        off = self.intervals.form(z)
        scores = float(off.error[where].max(initial=0.0))
        (signal,) = log.terms
        own = self.intervals.signals[signal].own
        plain = np.expm1(off.error + self.intervals.form(log).error)
        if own is None:
            return math.exp(at_most) * plain
        rounding = 4 * self.intervals.unit * (off.largest + self.intervals.form(log).largest)
        shared = math.tanh(scores / 2) + np.expm1(own + rounding)
        return math.exp(at_most) * np.minimum(plain, shared)

    def _table(self, gate: Table, x: ErrorInterval, hidden: Hidden) -> ErrorInterval:
        slack = (gate.gap / 4 if len(gate.keys) > 1 else 0.0) + x.error
        inside = (gate.keys[None] >= (x.low - slack)[:, None]) & (
            gate.keys[None] <= (x.high + slack)[:, None]
        )
        inside |= ~inside.any(axis=1, keepdims=True)  # without a possible key, use all keys
        low = np.where(inside, gate.values[None], np.inf).min(axis=1)
        high = np.where(inside, gate.values[None], -np.inf).max(axis=1)
        # A line rises over at least half of the distance between keys. Near a knot, GELU differs from
        # ReLU by at most the error of the argument.
        steepness = 0.0 if hidden.flat else 6 * gate.steepest
        return ErrorInterval(low, high, steepness * x.error)


def _product(a: ErrorInterval, b: ErrorInterval) -> ErrorInterval:
    corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
    corners = [np.where(np.isnan(c), 0.0, c) for c in corners]  # 0 · ∞: the 0 is exact
    error = np.zeros(len(a.low))
    for one, other in ((a, b), (b, a)):
        size = np.maximum(np.abs(one.low), np.abs(one.high))
        error = error + np.where(other.error > 0, size * other.error, 0.0)
    error = error + a.error * b.error
    return ErrorInterval(np.min(corners, axis=0), np.max(corners, axis=0), error)


def _masked(mask: ErrorInterval, value: ErrorInterval, hidden: Hidden) -> ErrorInterval:
    open_, closed = mask.low == 1, mask.high == 0
    low = np.where(open_, value.low, np.where(closed, 0.0, np.minimum(value.low, 0.0)))
    high = np.where(open_, value.high, np.where(closed, 0.0, np.maximum(value.high, 0.0)))
    reach = hidden.limits[1] if hidden.limits is not None else value.largest
    noise = np.where(mask.error > 0, reach * mask.error, 0.0)
    error = np.where(closed, 0.0, value.error) + noise
    relative = np.where(closed & (mask.error == 0), 0.0, value.proportion())
    positive = bool((low >= 0).all())
    own = None if value.own is None else np.where(closed & (mask.error == 0), 0.0, value.own)
    return ErrorInterval(
        low, high, error, 0.0, relative if positive else None, own if positive else None
    )


def _bend(gate: Bend, x: ErrorInterval) -> ErrorInterval:
    def at(points: Vector) -> Vector:
        return np.where(points < 0, gate.before * points, gate.after * points)

    ends = [at(x.low), at(x.high), np.where((x.low < 0) & (x.high > 0), 0.0, at(x.low))]
    error = max(abs(gate.before), abs(gate.after)) * x.error
    return ErrorInterval(np.min(ends, axis=0), np.max(ends, axis=0), error)


def _affine(weights: Vector, bias: Vector, largest: Vector, steps: Vector) -> tuple[Vector, Vector]:
    """Return the largest sum of absolute terms of each unit, and the grid of its sums.

    The grid is a power of two that divides every sum.
    """
    sizes = np.abs(weights) @ largest + np.abs(bias)
    grids = np.minimum((lowest_bits(weights) * steps).min(axis=1, initial=np.inf), lowest_bits(bias))
    return sizes, grids


def _fit(sizes: Vector, grids: Vector, dtype: str) -> bool:
    """Return whether sums with these magnitudes on these grids are computed without rounding."""
    return all(sums_exactly(s, g, dtype) for s, g in zip(sizes.tolist(), grids.tolist(), strict=True))
