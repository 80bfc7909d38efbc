"""How wrong a gate can be: that of its units, and what becomes of the errors of its arguments.

Products: |a|·δb + |b|·δa + δa·δb; curves by their steepest slope, at most. Tables, ramps and whole
numbers *stop* errors: inside a plateau the noise of the argument is gone. Exponentials that are summed
have relative errors, and those of a softmax are measured together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from locum.compiler.bounds.demand import Demand
from locum.compiler.bounds.intervals import ErrorInterval, ErrorIntervals, dyadic
from locum.compiler.network.forms import Form, Mask, Vector
from locum.compiler.network.gates import Bend, Curved, Gate, Masked, Product, Ramp, Snap, Table
from locum.compiler.network.network import Unit
from locum.compiler.units.curves import CURVES
from locum.compiler.units.hidden import Hidden


@dataclass
class GateBounds:
    """The spreads of gates, by those of the signals before them."""

    intervals: ErrorIntervals
    demand: Demand

    def spread(
        self, unit: Unit, gate: Gate, arguments: list[ErrorInterval], hidden: Hidden
    ) -> ErrorInterval:
        """The spread of what a unit writes, given those of what it reads."""
        with np.errstate(all="ignore"):
            found = self._carried(gate, arguments, hidden)
        rounding = np.zeros(self.intervals.size)
        if not (isinstance(gate, Curved) and gate.relative):  # there it is in proportion, too
            if not found.exact:
                rounding = self._rounding(gate, arguments, hidden)
            found.error = found.error + rounding + hidden.error
            if found.relative is not None:
                with np.errstate(all="ignore"):
                    more = np.where(rounding > 0, (rounding + hidden.error) / found.low, 0.0)
                found.relative = found.relative + more
                found.own = None if found.own is None else found.own + more
        found.error = np.where(np.isnan(found.error), np.inf, found.error)
        return self._outside(found, self.demand.of(unit.into), hidden, gate, rounding)

    def _carried(self, gate: Gate, arguments: list[ErrorInterval], hidden: Hidden) -> ErrorInterval:
        """What becomes of the errors of the arguments."""
        x, zero = arguments[0], np.zeros(self.intervals.size)
        match gate:
            case Product():
                return _product(x, arguments[1])
            case Masked():
                return _masked(x, arguments[1], hidden)
            case Curved():
                return self._curved(gate, x, hidden)
            case Bend():
                return _bend(gate, x)
            case Ramp():
                return ErrorInterval(zero, zero + 1, zero)
            case Table():
                return self._table(gate, x, hidden)
            case Snap():
                return ErrorInterval(x.low, x.high, zero, True)

    def _rounding(self, gate: Gate, arguments: list[ErrorInterval], hidden: Hidden) -> Vector:
        """Every product and sum of a unit may round, in proportion to what is added up.

        So may the constant, when it is written down and when it is added.
        """
        amount = self.intervals.unit * ((hidden.size + 8) * hidden.weight + 2 * abs(hidden.constant))
        if not math.isfinite(amount):  # numbers without bounds: the error is in proportion to them
            amount = 0.0
        rounding = np.full(self.intervals.size, amount)
        if isinstance(gate, Masked):  # a closed gate is 0 to the last bit
            rounding[(arguments[0].high == 0) & (arguments[0].error == 0)] = 0.0
        return rounding

    def _outside(
        self, found: ErrorInterval, where: Mask, hidden: Hidden, gate: Gate, rounding: Vector
    ) -> ErrorInterval:
        """Where nobody asked, the network's own number is the truth."""
        if hidden.limits is None or isinstance(gate, Masked):
            low, high = found.net_low, found.net_high
        else:
            low, high = (np.full(self.intervals.size, end) for end in hidden.limits)
            low, high = low - rounding, high + rounding
        return ErrorInterval(
            np.where(where, found.low, low),
            np.where(where, found.high, high),
            np.where(where, found.error, 0.0),
            found.exact,
            None if found.relative is None else np.where(where, found.relative, 0.0),
            None if found.own is None else np.where(where, found.own, 0.0),
        )

    def _curved(self, gate: Curved, x: ErrorInterval, hidden: Hidden) -> ErrorInterval:
        high = np.minimum(x.high, gate.at_most)
        low, error = np.minimum(x.low, high), x.error
        function = CURVES[gate.name].function
        ends = function(low), function(high)
        found = ErrorInterval(np.minimum(*ends), np.maximum(*ends), error)
        match gate.name:
            case "exp":
                growth = np.expm1(error)
                if gate.softmax is not None:
                    found.error = self._softmax(*gate.softmax, gate.at_most)
                elif gate.relative:
                    largest = float(np.abs([low, high]).max())
                    rounding = self.intervals.unit * (hidden.size + 8) * (2 * largest + 4)
                    found.own = np.full(self.intervals.size, hidden.error + rounding)
                    found.relative = (1 + hidden.error + rounding) * (1 + growth) - 1
                    found.error = found.relative * found.high
                else:
                    found.error = found.high * growth
            case "log":
                absolute = np.where(error < low, -np.log1p(-error / low), np.inf)
                share = x.proportion()
                found.error = np.minimum(absolute, np.where(share < 1, -np.log1p(-share), np.inf))
                if x.own is not None:
                    found.own = np.where(x.own < 1, -np.log1p(-x.own), np.inf) + hidden.error
            case "sqrt":
                below = np.sqrt(low) + np.sqrt(np.maximum(low - error, 0))
                found.error = np.minimum(np.sqrt(error), np.where(below > 0, error / below, np.inf))
            case "reciprocal":
                near = np.minimum(np.abs(low), np.abs(high))
                sound = (low > 0) | (high < 0)
                found.error = np.where(sound & (error < near), error / (near * (near - error)), np.inf)
            case "square":
                furthest = np.maximum(np.abs(low), np.abs(high))
                crosses = (low < 0) & (high > 0)
                found.low = np.where(crosses, 0.0, found.low)
                found.error = 2 * furthest * error + error**2
            case _:
                near = np.where(
                    (x.net_low < 0) & (x.net_high > 0),
                    0.0,
                    np.minimum(np.abs(x.net_low), np.abs(x.net_high)),
                )
                found.error = CURVES[gate.name].slope(near) * error
        return found

    def _softmax(self, z: Form, log: Form, at_most: float) -> Vector:
        """The error of exp(z − log b) but for that of its own units.

        Scores off by δ at most move each share of a softmax by tanh(δ/2) at most; what the sum and its
        logarithm add is measured against the scores that the network has.
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
        inside |= ~inside.any(axis=1, keepdims=True)  # cannot be: then all
        low = np.where(inside, gate.values[None], np.inf).min(axis=1)
        high = np.where(inside, gate.values[None], -np.inf).max(axis=1)
        dtype = self.intervals.target.dtype
        exact = x.exact and dyadic(gate.keys, dtype) and dyadic(gate.values, dtype)
        # Lines rise over half of the way at least; gelu is not relu next to a knot, by as much as the
        # noise.
        steepness = 0.0 if hidden.flat else 6 * gate.steepest
        return ErrorInterval(low, high, steepness * x.error, exact)


def _product(a: ErrorInterval, b: ErrorInterval) -> ErrorInterval:
    corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
    corners = [np.where(np.isnan(c), 0.0, c) for c in corners]  # 0 · ∞: the 0 is exact
    error = np.zeros(len(a.low))
    for one, other in ((a, b), (b, a)):
        size = np.maximum(np.abs(one.low), np.abs(one.high))
        error = error + np.where(other.error > 0, size * other.error, 0.0)
    error = error + a.error * b.error
    return ErrorInterval(np.min(corners, axis=0), np.max(corners, axis=0), error, a.exact and b.exact)


def _masked(mask: ErrorInterval, value: ErrorInterval, hidden: Hidden) -> ErrorInterval:
    open_, closed = mask.low == 1, mask.high == 0
    low = np.where(open_, value.low, np.where(closed, 0.0, np.minimum(value.low, 0.0)))
    high = np.where(open_, value.high, np.where(closed, 0.0, np.maximum(value.high, 0.0)))
    reach = hidden.limits[1] if hidden.limits is not None else value.largest
    noise = np.where(mask.error > 0, reach * mask.error, 0.0)
    error = np.where(closed, 0.0, value.error) + noise
    relative = np.where(closed & (mask.error == 0), 0.0, value.proportion())
    exact = mask.exact and value.exact
    positive = bool((low >= 0).all())
    own = None if value.own is None else np.where(closed & (mask.error == 0), 0.0, value.own)
    return ErrorInterval(
        low, high, error, exact, relative if positive else None, own if positive else None
    )


def _bend(gate: Bend, x: ErrorInterval) -> ErrorInterval:
    def at(points: Vector) -> Vector:
        return np.where(points < 0, gate.before * points, gate.after * points)

    ends = [at(x.low), at(x.high), np.where((x.low < 0) & (x.high > 0), 0.0, at(x.low))]
    error = max(abs(gate.before), abs(gate.after)) * x.error
    return ErrorInterval(np.min(ends, axis=0), np.max(ends, axis=0), error, x.exact)
