"""Bound the errors of heads and of the sink.

Suppose that the scores of a head have errors up to δ, and that unselected keys have a share λ of the
attention weight. The mean then changes by at most (λ + tanh(β·δ/2)) times the difference between the
largest and the smallest value. The reason is that factors between e^−a and e^a move at most tanh(a/2)
of weights that sum to 1. The worst case is two groups with weights in the ratio 1 : e^a.

The inputs are the error intervals of the signals that a head reads. The outputs are the intervals of
the signals that it writes, and the inverse temperature of a softmax head that approximates a hard head.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from locum.errors import CompileError
from locum.graph import abbreviate
from locum.networks.compiler.bounds.demand import Demand
from locum.networks.compiler.bounds.intervals import (
    UNIT,
    ErrorInterval,
    ErrorIntervals,
    representation_error,
)
from locum.networks.compiler.network.forms import (
    SMALLEST,
    SNAP,
    Form,
    Mask,
    Vector,
    lowest_bit,
    lowest_bits,
    sums_exactly,
)
from locum.networks.compiler.network.network import NO_SINK, TIED_SINK, Head, Slots, Unit, Value
from locum.networks.compiler.scoring.broadcasting import Known
from locum.networks.compiler.units.hidden import Hidden

#: Maximum error of the sink's scores. The score of the sink for itself is higher by at least 1 than
#: other scores.
_ALONE = 0.5


@dataclass
class SinkBounds:
    """The value of each slot at the sink, and a bound on its error."""

    slots: Slots
    dtype: str
    #: Whether feed-forwards also act on the sink. Symbolic feed-forwards do not.
    fed: bool

    def __post_init__(self) -> None:
        self.held = np.zeros(self.slots.size)
        self.error = np.zeros(self.slots.size)
        self._erased = sorted(self.slots.erased) if self.fed else []
        self._unit = UNIT[self.dtype] + UNIT["float64"]

    def arrive(self, time: int) -> None:
        """Set slots to exactly 0 if a feed-forward before sublayer ``time`` erases them."""
        while self._erased and self._erased[0] < time:
            slots = self.slots.erased[self._erased.pop(0)]
            self.held[slots] = self.error[slots] = 0.0

    def read_error(self, form: Form) -> float:
        """Return a bound on the absolute value at the sink of a form that should be 0 there."""
        coefficients = self._coefficients(form)
        carried = self._carried(coefficients)
        single = len(coefficients) == 1 and set(map(abs, coefficients.values())) == {1.0}
        if not carried and ((single and not form.constant) or self._on_grid(coefficients, form)):
            return 0.0
        return carried + self._rounding(coefficients, form, 0.0)

    def default_error(self, value: Value) -> float:
        """Return a bound on the error of the default that a head reads at the sink."""
        if value.share:
            return 0.0
        coefficients = self._coefficients(value.form)
        carried = self._carried(coefficients)
        if carried:
            return carried + self._rounding(coefficients, value.form, abs(value.at_sink))
        # If necessary, ``Stream.moved`` reads each slot separately, and subtracts it from itself.
        return representation_error(np.array([value.at_sink]), self.dtype)

    def move(self, heads: Iterable[Head], largest_keys: Mapping[Head, Sequence[float]]) -> None:
        """Add the outputs of the heads of a layer at the sink.

        ``largest_keys`` contains the largest absolute values of the keys at other positions.
        """
        written: dict[int, list[tuple[float, float, float]]] = {}
        for head in heads:
            off = self.read_error(head.offset)
            for query, largest in zip(head.queries, largest_keys[head], strict=True):
                query_error = self.read_error(query)
                off += query_error * largest if query_error else 0.0
            alone = off <= _ALONE
            for value in head.values:
                slot, scale = self.slots.of(value.into)
                error = self.default_error(value) if alone else np.inf
                if not self._carried(self._coefficients(value.form)) and alone:
                    error = 0.0  # the rounded default is the assumed value
                written.setdefault(slot, []).append((value.at_sink, scale, error))
        for slot, parts in written.items():
            self._write(slot, parts)

    def feed(self, hidden: Mapping[Unit, Hidden]) -> None:
        """Add the output of a feed-forward at the sink.

        The output consists of the constants of hidden units, and of the output of units that are active
        at the sink.
        """
        constants: dict[int, float] = {}
        written: dict[int, list[tuple[float, float, float]]] = {}
        for unit, units in hidden.items():
            slot, scale = self.slots.of(unit.into)
            constants[slot] = constants.get(slot, 0.0) + scale * units.constant
            if units.open_at_sink:
                (form,) = unit.forms
                large, grid = SNAP[self.dtype]
                noise = self.read_error(form)
                error = 0.0 if noise <= grid / 4 else noise + grid
                written.setdefault(slot, []).append((large, scale, error))
        for slot, constant in constants.items():
            self._write(slot, [*written.get(slot, ()), (constant, 1.0, 0.0)])

    def _write(self, slot: int, parts: Sequence[tuple[float, float, float]]) -> None:
        """Add numbers, each given with a scale and an error, to the value of a slot."""
        numbers, scales, errors = (np.array(column) for column in zip(*parts, strict=True))
        before = float(self.held[slot])
        self.error[slot] += float((np.abs(scales) * errors).sum())
        self.held[slot] = before + float((numbers * scales).sum())
        present = numbers != 0
        if not present.any() or (present.sum() == 1 and not before and np.abs(scales[present]) == 1):
            return
        weight = abs(before) + float(np.abs(numbers * scales).sum())
        step = min(lowest_bit(before), float((lowest_bits(numbers) * lowest_bits(scales)).min()))
        if not sums_exactly(weight, step, self.dtype):
            self.error[slot] += (len(parts) + 4) * (self._unit * weight + SMALLEST[self.dtype])

    def _coefficients(self, form: Form) -> dict[int, float]:
        """Return the coefficients of the slots that may be non-zero at the sink."""
        return {
            slot: c for slot, c in self.slots.read(form).items() if self.held[slot] or self.error[slot]
        }

    def _carried(self, coefficients: Mapping[int, float]) -> float:
        return sum(abs(c) * float(self.error[slot]) for slot, c in coefficients.items())

    def _weight(self, coefficients: Mapping[int, float], form: Form) -> float:
        held = sum(abs(c * float(self.held[slot])) for slot, c in coefficients.items())
        return 2 * (held + abs(form.constant))  # an equal number is subtracted

    def _rounding(self, coefficients: Mapping[int, float], form: Form, expected: float) -> float:
        weight = self._weight(coefficients, form) + expected
        return (len(coefficients) + 4) * (self._unit * weight + SMALLEST[self.dtype])

    def _on_grid(self, coefficients: Mapping[int, float], form: Form) -> bool:
        steps = [lowest_bit(c) * lowest_bit(self.held[slot]) for slot, c in coefficients.items()]
        step = min([lowest_bit(form.constant), *steps])
        return sums_exactly(self._weight(coefficients, form), step, self.dtype)


#: A function that returns an inverse temperature, and the error for which it was chosen. The arguments
#: are the head, the difference between its largest and smallest value, and the minimum number of
#: selected keys.
ChooseTemperature = Callable[[Head, float, float], tuple[float, float]]

#: For each type, a number z for which exp(−z) is 0.
UNDERFLOW = {"float64": 746.0, "float32": 104.0}


@dataclass(frozen=True)
class Temperature:
    """The inverse temperature of a softmax head that approximates a hard head."""

    beta: float
    gap: float
    #: Number of keys, and minimum number of selected keys.
    keys: int
    selected: float
    #: Difference between the largest and the smallest value that the head may move.
    spread: float
    #: Bounds on the error of the scores, and on the attention weight of keys that are not selected.
    noise: float
    leak: float
    #: The error for which β was chosen; 0 if all other keys must have weight 0.
    error: float


@dataclass
class _Mean:
    """The mean over the selected keys, and data to bound the effect of errors in attention weights."""

    mean: ErrorInterval
    #: The minimum and maximum of all values, and the minimum number of selected keys for each query.
    least: float
    most: float
    chosen: Vector
    #: For each query, a bound on the difference between two values with attention weight. None: the
    #: difference between ``most`` and ``least``.
    spread: Vector | None = None
    #: Whether at most one key is selected, so that the head moves its value unchanged.
    single: bool = False


@dataclass
class HeadBounds:
    """The error intervals of the outputs of heads, given the intervals of earlier signals."""

    intervals: ErrorIntervals
    known: Known
    demand: Demand
    sink: SinkBounds
    #: Returns the inverse temperature of a head and the error for which it was chosen; None for hard
    #: attention.
    choose_temperature: ChooseTemperature | None
    #: The inverse temperature of each softmax head that approximates a hard head, with the data for
    #: which it was chosen.
    temperatures: dict[Head, Temperature] = field(default_factory=dict)
    #: The largest absolute values of the keys of each head.
    largest_keys: dict[Head, list[float]] = field(default_factory=dict)

    def carry(self, head: Head) -> None:
        """Add the error intervals of the signals that a head writes."""
        where = self.demand.rows(head)
        noise, unbounded = self._noise(head, where)
        means = [self._mean(head, value) for value in head.values]
        shift = self._shift(head, noise, means, where)
        for value, mean in zip(head.values, means, strict=True):
            moved = self._moved(mean, shift, self.demand.of(value.into))
            self.intervals.signals[value.into] = replace(
                moved, unbounded=moved.unbounded or unbounded or mean.mean.unbounded
            )

    def _noise(self, head: Head, where: Mask) -> tuple[Vector, bool]:
        """Bound the error of the scores of each query, without the part that is equal for all keys.

        The second result is true if rounding errors are excluded, because numbers have no bounds.
        """
        forms = [
            (self.intervals.form(q), self.intervals.form(k))
            for q, k in zip(head.queries, head.keys, strict=True)
        ]
        off, unbounded = np.zeros(self.intervals.size), False
        self.largest_keys[head] = [float(k.largest.max()) for _, k in forms]
        pairs = zip(forms, self.largest_keys[head], strict=True)
        sizes = [_times(q.largest, key) for (q, _), key in pairs]
        weight = np.sum(sizes, axis=0) if sizes else off
        exact = [q.exact and k.exact for q, k in forms]
        step = min((q.step * k.step for q, k in forms), default=1.0)
        if head.sink != NO_SINK:
            offset = self.intervals.form(head.offset)
            off, weight = off + offset.error, weight + offset.largest
            for (q, _), key in zip(forms, head.keys, strict=True):  # the key of the sink should be 0
                off = off + _times(q.largest, self.sink.read_error(key))
            exact.append(offset.exact)
            step = min(step, offset.step)
        for q, k in forms:
            around = float(k.net_high.max() - k.net_low.min()) / 2
            off = off + _times(q.error, around) + _times(q.largest, float(k.error.max()))
            unbounded = unbounded or q.unbounded or k.unbounded
        if not all(exact) or not sums_exactly(float(weight.max(initial=0.0)), step, self._dtype):
            rounding = (len(forms) + 3) * (self.intervals.unit * weight + SMALLEST[self._dtype])
            unbounded = unbounded or not np.isfinite(rounding).all()
            off = off + np.where(np.isfinite(rounding), rounding, 0.0)
        return np.where(where, off, 0.0), unbounded

    @property
    def _dtype(self) -> str:
        return self.known.target.dtype

    def _mean(self, head: Head, value: Value) -> _Mean:
        """Return bounds on the mean that hard attention computes for a value."""
        where = self.demand.of(value.into)
        allowed, known = self.demand.allowed(head)
        sink = head.sink != NO_SINK
        counts = allowed.sum(axis=1)
        zero = np.zeros(self.intervals.size)
        if value.share:
            fewest = counts if known else zero
            mean = ErrorInterval(1 / (1 + counts), 1 / (1 + fewest), zero)
            return _Mean(mean, 0.0, 1.0, 1 + fewest)
        v = self.intervals.form(value.form)
        least, most = float(v.net_low.min()), float(v.net_high.max())
        if sink:
            least, most = min(least, value.at_sink), max(most, value.at_sink)
        empty = counts == 0
        may_default = head.selector is None or self.known.selectors.may_be_empty(head.selector)
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
            if sink and may_default:
                low, high = np.minimum(low, value.at_sink), np.maximum(high, value.at_sink)
            chosen = np.ones(self.intervals.size)
        low, high = (np.where(empty, value.at_sink, part) for part in (low, high))
        share = np.where(allowed, v.proportion(), 0.0).max(axis=1)
        own = None if v.own is None else np.where(allowed, v.own, 0.0).max(axis=1)
        default_error = self.sink.default_error(value) if sink and may_default else 0.0
        error = np.maximum(error, default_error)
        positive = bool((v.low >= 0).all()) and value.at_sink >= 0 and not default_error
        single = bool((counts[where] <= 1).all()) or (
            head.selector is not None and self.known.selectors.unique(head.selector)
        )
        step = min(v.step, lowest_bit(value.at_sink)) if single else 0.0
        if default_error or not sums_exactly(max(abs(least), abs(most)), step, self._dtype):
            step = 0.0
        mean = ErrorInterval(
            low,
            high,
            error,
            step,
            share if positive else None,
            own if positive else None,
            v.unbounded,
        )
        hard = _Mean(mean, least, most, chosen, single=single)
        if head.kind == "softmax":  # keys that cannot be selected have no weight
            top = np.where(allowed, v.net_high, -np.inf).max(axis=1)
            bottom = np.where(allowed, v.net_low, np.inf).min(axis=1)
            hard.spread = np.where(empty, 0.0, top - bottom)
        return hard

    def _moved(self, hard: _Mean, shift: Vector, where: Mask) -> ErrorInterval:
        mean = hard.mean
        error, relative, own, step = mean.error, mean.relative, mean.own, mean.step
        spread = hard.most - hard.least if hard.spread is None else hard.spread
        if shift.any():
            step, relative, own = 0.0, None, None
            with np.errstate(
                invalid="ignore"
            ):  # if no weight is on wrong keys, values without bounds cause no error
                error = error + np.where(shift > 0, shift * spread, 0.0)
        unbounded = False
        if not step and (shift.any() or not hard.single):
            rounding = self.intervals.unit * (self.intervals.size + 4)
            largest = max(abs(hard.least), abs(hard.most))
            unbounded = not math.isfinite(largest)
            smallest = (self.intervals.size + 4) * SMALLEST[self._dtype]
            error = error + (0.0 if unbounded else rounding * largest + smallest)
            relative = None if relative is None else relative + rounding
            own = None if own is None else own + rounding
        return ErrorInterval(
            np.where(where, mean.low, hard.least),
            np.where(where, mean.high, hard.most),
            np.where(where, error, 0.0),
            step,
            relative,
            own,
            unbounded,
        )

    def _shift(self, head: Head, noise: Vector, means: list[_Mean], where: Mask) -> Vector:
        """Bound the share of misplaced attention weight, for each query."""
        if head.kind == "softmax":
            return np.where(where, np.tanh(noise / 2), 0.0)
        # If only one key is selected, there are no ties, and errors below half of the gap are harmless.
        tied = head.sink == TIED_SINK or not all(mean.single for mean in means)
        if self.choose_temperature is None:
            lost = (noise > 0) if tied else (2 * noise >= head.gap)
            return self._astray(head, np.where(where & lost, noise, 0.0))
        spread = max((m.most - m.least for m in means), default=0.0)
        chosen = np.min([m.chosen for m in means], axis=0)
        keys = self.intervals.size + (head.sink != NO_SINK)
        fewest = float(chosen[where].min(initial=keys))
        beta, error = self.choose_temperature(head, spread, fewest)
        below = beta * (head.gap - 2 * noise)
        gone = below >= UNDERFLOW[self.known.target.dtype]
        with np.errstate(over="ignore"):
            leak = np.where(gone, 0.0, (keys - chosen) / chosen * np.exp(-below))
        worst = float(leak[where].max(initial=0.0))
        off = float(noise.max())
        self.temperatures[head] = Temperature(beta, head.gap, keys, fewest, spread, off, worst, error)
        moved = np.tanh(beta * noise / 2) if tied else 0.0
        return np.where(where, np.minimum(leak + moved, 1.0), 0.0)

    def _astray(self, head: Head, noise: Vector) -> Vector:
        """Return 1 for queries whose scores have errors, so that hard attention may select any key.

        Return 0 for other queries. Raise CompileError if there are such queries and the network has
        hidden units.
        """
        if noise.any() and self.known.target.feed_forward != "exact":
            raise CompileError(
                "expected exact scores for hard attention, got scores with an error of up to "
                f"{float(noise.max()):.1g}",
                head.label if head.selector is None else abbreviate(head.selector),
            )
        return np.where(noise > 0, 1.0, 0.0)


def _times(vector: Vector, factor: float) -> Vector:
    """Multiply a vector by a factor; the product of 0 and infinity is 0."""
    if factor == 0:
        return np.zeros_like(vector)
    product: Vector = np.where(vector == 0, 0.0, np.where(vector == 0, 1.0, vector) * factor)
    return product
