"""How wrong the network can be: a bound for every signal, computed from the embedding to the output.

Three things are off: gates whose units are not the function itself (``realise.py`` says by how much),
softmax attention that gives a little weight to keys that are not selected, and floating point. Each is
carried on:

- sums and means add up errors; products: |a|·δb + |b|·δa + δa·δb; curves by their steepest slope, at
  most;
- a head whose scores are off by up to δ and whose unselected keys get a share λ of the weight moves the
  mean by at most (λ + tanh(β·δ/2)) times the spread of the values: factors between e^−a and e^a on
  weights that add up to 1 shift at most tanh(a/2) of them (the worst case is two groups, of weights 1 :
  e^a).

Tables, ramps and whole numbers *stop* errors: inside a plateau the noise of the argument is gone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from understudy.compiler.curves import CURVES
from understudy.compiler.demand import Demand
from understudy.compiler.forms import Form, Mask, Signal, Vector
from understudy.compiler.gates import Bend, Curved, Masked, Product, Snap, Step, Table
from understudy.compiler.hidden import Hidden
from understudy.compiler.network import NO_SINK, Head, Network, Unit, Value
from understudy.compiler.selectors import Selectors
from understudy.compiler.spreads import UNIT, Spread, dyadic, of_form
from understudy.compiler.target import Target
from understudy.errors import CompileError

#: Makes the units of a gate, given what is known of its arguments.
Maker = Callable[[Unit, list[Spread], Mask], Hidden]
#: Chooses an inverse temperature: (head, spread of its values, fewest keys it may select).
Heat = Callable[[Head, float, float], float]

#: exp of minus this is 0.
UNDERFLOW = {"float64": 746.0, "float32": 104.0}


@dataclass(frozen=True)
class Temperature:
    """How a softmax head stands in for a hard one."""

    beta: float
    gap: float
    #: All keys, and the fewest that may be selected.
    keys: int
    selected: float
    #: Between the greatest and the least value that it may move.
    spread: float
    #: How far its scores may be off, and the share of the weight that goes astray, at most.
    noise: float
    leak: float


@dataclass
class Bounds:
    """One pass over the network."""

    network: Network
    target: Target
    selectors: Selectors
    demand: Demand
    make: Maker
    #: The inverse temperature of a head, given its spread of values and how few keys it may select;
    #: None: attention is hard.
    heat: Heat | None = None
    spreads: dict[Signal, Spread] = field(default_factory=dict)
    hidden: dict[Unit, Hidden] = field(default_factory=dict)
    #: Inverse temperatures, and how each was found.
    temperatures: dict[Head, Temperature] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.size = self.target.longest
        self.unit = UNIT[self.target.dtype]

    def form(self, form: Form) -> Spread:
        """What is known of a form."""
        for signal in form.terms:
            if signal not in self.spreads:
                self.spreads[signal] = self._embedded(signal)
        return of_form(form, self.spreads, self.size, self.target.dtype)

    def run(self) -> Spread:
        """The output."""
        for step in self.network.steps():
            if isinstance(step, Head):
                self._head(step)
            else:
                self.spreads[step.into] = self._unit(step)
        return self.form(self.network.output)

    def _embedded(self, signal: Signal) -> Spread:
        zero = np.zeros(self.size)
        if signal.positions is not None:
            return self._known(signal.positions, signal.positions, signal.positions)
        assert signal.tokens is not None, f"{signal.label} is read before it is written"
        if self.target.vocabulary is not None:
            return self._known(zero + signal.tokens.min(), zero + signal.tokens.max(), signal.tokens)
        low, high = (zero + np.array(ends) for ends in (self.target.low, self.target.high))
        rounding = self.unit * np.maximum(np.abs(low), np.abs(high))
        if self.target.dtype == "float64" or not np.isfinite(rounding).all():
            rounding = zero
        return Spread(low, high, rounding)

    def _known(self, low: Vector, high: Vector, among: Vector) -> Spread:
        exact = dyadic(among, self.target.dtype)
        rounding = 0.0 if exact else self.unit * np.abs(among).max()
        return Spread(low.copy(), high.copy(), np.full(self.size, rounding), exact)

    # Units --------------------------------------------------------------------------------------

    def _unit(self, unit: Unit) -> Spread:
        gate = unit.gate
        if gate is None:  # any function, exactly: of the true values it gives true values
            everything = np.full(self.size, np.inf)
            return Spread(-everything, everything, np.zeros(self.size), True)
        arguments = [self.form(form) for form in gate.arguments]
        where = self.demand.of(unit.into)
        hidden = self.make(unit, arguments, where)
        self.hidden[unit] = hidden
        # Every product and sum of a unit may round, in proportion to what is added up.
        amount = self.unit * (hidden.size + 8) * hidden.weight
        if not math.isfinite(amount):  # numbers without bounds: the error is in proportion to them
            amount = 0.0
        rounding = np.full(self.size, amount)
        with np.errstate(all="ignore"):
            match gate:
                case Product():
                    found = _product(arguments[0], arguments[1])
                case Masked():
                    found = self._masked(arguments[0], arguments[1], hidden)
                    # A closed gate is 0 to the last bit.
                    shut = (arguments[0].high == 0) & (arguments[0].error == 0)
                    rounding = np.where(shut, 0.0, rounding)
                case Curved():
                    found = self._curved(gate, arguments[0], hidden)
                case Bend():
                    found = _bend(gate, arguments[0])
                case Step():
                    found = Spread(np.zeros(self.size), np.ones(self.size), np.zeros(self.size))
                case Table():
                    found = self._table(gate, arguments[0], hidden)
                case Snap():
                    found = Spread(arguments[0].low, arguments[0].high, np.zeros(self.size), True)
        if found.exact:
            rounding = np.zeros(self.size)
        if isinstance(gate, Curved) and gate.relative:
            rounding = np.zeros(self.size)  # in proportion, too
        else:
            found.error = found.error + rounding + hidden.error
            if found.relative is not None:
                with np.errstate(all="ignore"):
                    more = np.where(rounding > 0, (rounding + hidden.error) / found.low, 0.0)
                found.relative = found.relative + more
                found.own = None if found.own is None else found.own + more
        found.error = np.where(np.isnan(found.error), np.inf, found.error)
        return self._outside(found, where, hidden, gate, rounding)

    def _outside(
        self, found: Spread, where: Mask, hidden: Hidden, gate: object, rounding: Vector
    ) -> Spread:
        """Where nobody asked, the network's own number is the truth."""
        if isinstance(gate, Masked):
            low, high = found.net_low, found.net_high
        elif hidden.limits is not None:
            low, high = (np.full(self.size, end) for end in hidden.limits)
            low, high = low - rounding, high + rounding
        else:
            low, high = found.net_low, found.net_high
        return Spread(
            np.where(where, found.low, low),
            np.where(where, found.high, high),
            np.where(where, found.error, 0.0),
            found.exact,
            None if found.relative is None else np.where(where, found.relative, 0.0),
            None if found.own is None else np.where(where, found.own, 0.0),
        )

    def _masked(self, mask: Spread, value: Spread, hidden: Hidden) -> Spread:
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
        return Spread(
            low, high, error, exact, relative if positive else None, own if positive else None
        )

    def _curved(self, gate: Curved, x: Spread, hidden: Hidden) -> Spread:
        high = np.minimum(x.high, gate.at_most)
        low, error = np.minimum(x.low, high), x.error
        function = CURVES[gate.name].function
        ends = function(low), function(high)
        found = Spread(np.minimum(*ends), np.maximum(*ends), error)
        match gate.name:
            case "exp":
                growth = np.expm1(error)
                if gate.softmax is not None:
                    found.error = self._softmax(*gate.softmax, gate.at_most)
                elif gate.relative:
                    largest = float(np.abs([low, high]).max())
                    rounding = self.unit * (hidden.size + 8) * (2 * largest + 4)
                    found.own = np.full(self.size, hidden.error + rounding)
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
        off = self.form(z)
        scores = float(off.error[where].max(initial=0.0))
        (signal,) = log.terms
        own = self.spreads[signal].own
        plain = np.expm1(off.error + self.form(log).error)
        if own is None:
            return math.exp(at_most) * plain
        rounding = 4 * self.unit * (off.largest + self.form(log).largest)
        shared = math.tanh(scores / 2) + np.expm1(own + rounding)
        return math.exp(at_most) * np.minimum(plain, shared)

    def _table(self, gate: Table, x: Spread, hidden: Hidden) -> Spread:
        slack = (gate.gap / 4 if len(gate.keys) > 1 else 0.0) + x.error
        inside = (gate.keys[None] >= (x.low - slack)[:, None]) & (
            gate.keys[None] <= (x.high + slack)[:, None]
        )
        inside |= ~inside.any(axis=1, keepdims=True)  # cannot be: then all
        low = np.where(inside, gate.values[None], np.inf).min(axis=1)
        high = np.where(inside, gate.values[None], -np.inf).max(axis=1)
        dtype = self.target.dtype
        exact = x.exact and dyadic(gate.keys, dtype) and dyadic(gate.values, dtype)
        # Lines rise over half of the way at least; gelu is not relu next to a knot, by as much as the
        # noise.
        steepness = 0.0 if hidden.flat else 6 * gate.steepest
        return Spread(low, high, steepness * x.error, exact)

    # Heads --------------------------------------------------------------------------------------

    def _head(self, head: Head) -> None:
        where = self.demand.rows(head)
        noise = self._noise(head, where)
        means = [self._mean(head, value) for value in head.values]
        shift = self._shift(head, noise, means, where)
        for value, mean in zip(head.values, means, strict=True):
            self.spreads[value.into] = self._moved(mean, shift, self.demand.of(value.into))

    def _noise(self, head: Head, where: Mask) -> Vector:
        """How far the scores of a query may be off, what is common to all keys left out."""
        off = np.zeros(self.size)
        if self.target.feed_forward == "exact":
            return off
        forms = list(zip(head.queries, head.keys, strict=True))
        for query, key in forms:
            q, k = self.form(query), self.form(key)
            if q.exact and k.exact:
                continue
            around = float(k.net_high.max() - k.net_low.min()) / 2
            off = off + _times(q.error, around) + _times(q.largest, float(k.error.max()))
            # Of numbers without a range nothing can be said, and rounding is left out, as elsewhere.
            rounding = self.unit * (len(forms) + 2) * _times(q.largest, float(k.largest.max()))
            off = off + np.where(np.isfinite(rounding), rounding, 0.0)
        if head.sink != NO_SINK:
            offset = self.form(head.offset)
            if not offset.exact:
                off = off + offset.error
        off = np.where(where, off, 0.0)
        if self.heat is None and head.kind == "hard" and off.any():
            raise CompileError(
                "hard attention needs scores to the last bit, but these are computed up to "
                f"{float(off.max()):.1g}: use attention='softmax', or feed_forward='exact'",
                head.label,
            )
        return off

    def _mean(self, head: Head, value: Value) -> _Mean:
        """What hard attention would give."""
        where = self.demand.of(value.into)
        allowed, known = self.demand.allowed(head)
        sink = head.sink != NO_SINK
        counts = allowed.sum(axis=1)
        zero = np.zeros(self.size)
        if value.share:
            fewest = counts if known else zero
            mean = Spread(1 / (1 + counts), 1 / (1 + fewest), zero)
            return _Mean(mean, 0.0, 1.0, 1 + fewest)
        v = self.form(value.form)
        least, most = float(v.net_low.min()), float(v.net_high.max())
        if sink:
            least, most = min(least, value.at_sink), max(most, value.at_sink)
        empty = counts == 0
        if known:
            low, high, error = (
                np.where(allowed, part, 0.0).sum(axis=1) / np.maximum(counts, 1)
                for part in (v.low, v.high, v.error)
            )
            chosen = np.maximum(counts, 1)
        else:
            low = np.where(allowed, v.low, np.inf).min(axis=1)
            high = np.where(allowed, v.high, -np.inf).max(axis=1)
            error = np.where(allowed, v.error, 0.0).max(axis=1)
            if sink and (head.selector is None or self.selectors.may_be_empty(head.selector)):
                low, high = np.minimum(low, value.at_sink), np.maximum(high, value.at_sink)
            chosen = np.ones(self.size)
        low, high = (np.where(empty, value.at_sink, part) for part in (low, high))
        share = np.where(allowed, v.proportion(), 0.0).max(axis=1)
        own = None if v.own is None else np.where(allowed, v.own, 0.0).max(axis=1)
        positive = bool((v.low >= 0).all()) and value.at_sink >= 0
        exact = (
            v.exact
            and dyadic(value.at_sink, self.target.dtype)
            and (
                bool((counts[where] <= 1).all())
                or (head.selector is not None and self.selectors.unique(head.selector))
            )
        )
        mean = Spread(low, high, error, exact, share if positive else None, own if positive else None)
        found = _Mean(mean, least, most, chosen)
        if head.kind == "softmax":  # what is not in play has no weight at all
            top = np.where(allowed, v.net_high, -np.inf).max(axis=1)
            bottom = np.where(allowed, v.net_low, np.inf).min(axis=1)
            found.spread = np.where(empty, 0.0, top - bottom)
        return found

    def _moved(self, found: _Mean, shift: Vector, where: Mask) -> Spread:
        mean = found.mean
        error, relative, own, exact = mean.error, mean.relative, mean.own, mean.exact
        spread = found.most - found.least if found.spread is None else found.spread
        if shift.any():
            exact, relative, own = False, None, None
            error = error + np.where(shift > 0, shift * spread, 0.0)
        if not exact:
            rounding = self.unit * (self.size + 4)
            largest = max(abs(found.least), abs(found.most))
            error = error + (rounding * largest if math.isfinite(largest) else 0.0)
            relative = None if relative is None else relative + rounding
            own = None if own is None else own + rounding
        return Spread(
            np.where(where, mean.low, found.least),
            np.where(where, mean.high, found.most),
            np.where(where, error, 0.0),
            exact,
            relative,
            own,
        )

    def _shift(self, head: Head, noise: Vector, means: list[_Mean], where: Mask) -> Vector:
        """The share of the weight that is not where it should be."""
        if head.kind == "softmax":
            return np.where(where, np.tanh(noise / 2), 0.0)
        if self.heat is None:
            return np.zeros(self.size)
        spread = max((m.most - m.least for m in means), default=0.0)
        chosen = np.min([m.chosen for m in means], axis=0)
        fewest = float(chosen[where].min(initial=self.size))
        beta = self.heat(head, spread, fewest)
        keys = self.size + (head.sink != NO_SINK)
        below = beta * (head.gap - 2 * noise)
        gone = below >= UNDERFLOW[self.target.dtype]
        with np.errstate(over="ignore"):
            leak = np.where(gone, 0.0, (keys - chosen) / chosen * np.exp(-below))
        worst = float(leak[where].max(initial=0.0))
        off = float(noise.max())
        self.temperatures[head] = Temperature(beta, head.gap, keys, fewest, spread, off, worst)
        return np.where(where, np.minimum(leak + np.tanh(beta * noise / 2), 1.0), 0.0)


@dataclass
class _Mean:
    """The mean over selected keys, and what a shift of weights may do to it."""

    mean: Spread
    #: The least and the greatest of all values, and how many keys are selected at least.
    least: float
    most: float
    chosen: Vector
    #: How far the values that may have weight lie apart, for each query, if not by all of that.
    spread: Vector | None = None


def _product(a: Spread, b: Spread) -> Spread:
    corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
    corners = [np.where(np.isnan(c), 0.0, c) for c in corners]  # 0 · ∞: the 0 is exact
    error = np.zeros(len(a.low))
    for one, other in ((a, b), (b, a)):
        size = np.maximum(np.abs(one.low), np.abs(one.high))
        error = error + np.where(other.error > 0, size * other.error, 0.0)
    error = error + a.error * b.error
    return Spread(np.min(corners, axis=0), np.max(corners, axis=0), error, a.exact and b.exact)


def _bend(gate: Bend, x: Spread) -> Spread:
    def at(points: Vector) -> Vector:
        return np.where(points < 0, gate.before * points, gate.after * points)

    ends = [at(x.low), at(x.high), np.where((x.low < 0) & (x.high > 0), 0.0, at(x.low))]
    error = max(abs(gate.before), abs(gate.after)) * x.error
    return Spread(np.min(ends, axis=0), np.max(ends, axis=0), error, x.exact)


def _times(vector: Vector, factor: float) -> Vector:
    """Where one of the two is 0 nothing is off, however large the other may be."""
    if factor == 0:
        return np.zeros_like(vector)
    found: Vector = np.where(vector == 0, 0.0, np.where(vector == 0, 1.0, vector) * factor)
    return found
