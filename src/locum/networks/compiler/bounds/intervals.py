"""What is known of a signal: between which numbers it lies, and how wrong the network's number may be.

All of it position by position. Where nobody reads a signal (the positions outside a matrix, say) the
network computes something all the same: there ``low`` and ``high`` bound that, and the error is 0,
since nothing was asked for. :class:`ErrorIntervals` has what is known so far, and reads forms of it.

The error is that against dense execution, which rounds, too: every operation counts as two roundings,
one of the network's type and one of float64.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from locum.networks.compiler.network.forms import (
    SMALLEST,
    Form,
    Mask,
    Signal,
    Vector,
    lowest_bit,
    lowest_bits,
    sums_exactly,
)
from locum.networks.compiler.target import Target
from locum.networks.compiler.units.hidden import Argument

#: The rounding of one operation by the network.
UNIT = {"float64": 2.0**-53, "float32": 2.0**-24}


@dataclass
class ErrorInterval:
    """Bounds of the true value, and of |network − dense execution|, at each position."""

    low: Vector
    high: Vector
    error: Vector
    #: A power of two: the network has the true value to the last bit, and it is a multiple of this.
    #: 0: it may be any number, or off.
    step: float = 0.0
    #: The error as a share of the (positive) true value; inf where none is known.
    relative: Vector | None = None
    #: The same for exponentials (and what is made of them), but measured against exponentials of what
    #: the network has instead of the true argument; for their logarithm, the absolute error so
    #: measured.
    own: Vector | None = None
    #: Whether rounding is left out of the error, since it is in proportion to numbers without bounds.
    unbounded: bool = False
    #: A power of two that the network's number is a multiple of, however wrong it is; 0: not known.
    on_grid: float = 0.0

    @property
    def exact(self) -> bool:
        """Whether the network has the true value to the last bit."""
        return self.step > 0

    @property
    def grid(self) -> float:
        """A power of two that the network's number is a multiple of; 0: not known."""
        return self.step or self.on_grid

    @property
    def largest(self) -> Vector:
        """The greatest absolute value that the network may have."""
        return np.maximum(np.abs(self.net_low), np.abs(self.net_high))

    @property
    def net_low(self) -> Vector:
        """The least that the network may have."""
        below = self.low - self.error
        if self.relative is None:
            return below
        with np.errstate(invalid="ignore"):
            share = np.where(self.low > 0, self.low * (1 - self.relative), below)
        return np.fmax(below, share)

    @property
    def net_high(self) -> Vector:
        """The greatest that the network may have."""
        return self.high + self.error

    def argument(self, where: Mask) -> Argument:
        """Return the range that units have to serve at these positions (all, if none are named)."""
        if not where.any():
            where = np.ones(len(self.low), dtype=bool)
        return Argument(
            float(self.net_low[where].min()),
            float(self.net_high[where].max()),
            float(self.error[where].max()),
            self.grid,
        )

    def proportion(self) -> Vector:
        """Return the relative error."""
        with np.errstate(all="ignore"):
            ratio = np.where(self.low > 0, self.error / self.low, np.inf)
        ratio = np.where((self.low >= 0) & (self.error == 0), 0.0, ratio)
        return ratio if self.relative is None else np.minimum(ratio, self.relative)


def representation_error(numbers: Vector, dtype: str) -> float:
    """Return the greatest error of holding these numbers in the type of number."""
    with np.errstate(over="ignore"):
        return float(np.abs(numbers.astype(dtype).astype(np.float64) - numbers).max())


def of_form(form: Form, intervals: ErrorIntervals, weight: Vector, unbounded: bool) -> ErrorInterval:
    """Read a combination of signals; ``weight`` is the sum of the absolute values of its terms."""
    positions, dtype = intervals.size, intervals.target.dtype
    fixed = np.full(positions, form.constant)  # what depends on positions alone is one known number
    error, step = np.zeros(positions), min(lowest_bit(form.constant), form.finest)
    others, grid = [], step
    for signal, c in form.terms.items():
        part = intervals.signals[signal]
        bit = lowest_bit(c)
        grid = min(grid, bit * part.grid)
        error = error + abs(c) * part.error
        step = min(step, bit * part.step)
        if signal.positions is not None:
            fixed = fixed + c * signal.positions
        else:
            others.append((part, c))
    low, high = fixed, fixed
    for part, c in others:
        ends = (c * part.low, c * part.high)
        low, high = low + np.minimum(*ends), high + np.maximum(*ends)
    largest = float(np.max(weight, initial=0.0))
    if sums_exactly(largest, step, dtype):
        return ErrorInterval(low, high, error, step if math.isfinite(step) else 1.0)
    if sums_exactly(largest, grid, dtype):
        return ErrorInterval(low, high, error, on_grid=grid)
    positive = bool((fixed >= 0).all())
    relative, own = np.zeros(positions), np.zeros(positions)
    for part, c in others:
        positive = positive and c > 0 and bool((part.low >= 0).all())
        if not positive:
            break  # then nothing is said of shares
        relative = np.maximum(relative, part.proportion())
        own = np.maximum(own, np.inf if part.own is None else part.own)
    terms = 0 if _reads_as_it_is(form, dtype) else len(form.terms) + 2
    rounding = (UNIT[dtype] + UNIT["float64"]) * terms
    unbounded = unbounded or bool(rounding and not np.isfinite(weight).all())
    return ErrorInterval(
        low,
        high,
        error + rounding * np.where(np.isfinite(weight), weight, 0.0) + terms * SMALLEST[dtype],
        0.0,
        relative + 2 * rounding if positive else None,
        own + 2 * rounding if positive else None,
        unbounded=unbounded,
    )


def _reads_as_it_is(form: Form, dtype: str) -> bool:
    """Return whether a form is one signal (times a power of two), or a constant the type holds."""
    if form.gross is not None:
        return False
    if not form.terms:
        return representation_error(np.array([form.constant]), dtype) == 0
    (coefficient, *rest) = form.terms.values()
    return not rest and not form.constant and abs(math.frexp(coefficient)[0]) == 0.5


@dataclass
class ErrorIntervals:
    """What is known of every signal that has been written so far."""

    target: Target
    signals: dict[Signal, ErrorInterval] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.size = self.target.longest
        #: The greatest absolute value of each signal: many forms read the same.
        self._largest: dict[Signal, Vector] = {}
        #: What was read before, by the identity of the form: heads of one layer read the same keys.
        self._read: dict[int, tuple[Form, ErrorInterval]] = {}
        #: The rounding of one operation, by the network and by dense execution.
        self.unit = UNIT[self.target.dtype] + UNIT["float64"]

    def form(self, form: Form) -> ErrorInterval:
        """Return what is known of a form, whose signals have all been written."""
        if id(form) not in self._read:
            for signal in (*form.terms, *form.uncancelled[0]):
                embedded = signal.positions is not None or signal.tokens is not None
                if embedded and signal not in self.signals:
                    self.signals[signal] = self._embedded(signal)
            self._read[id(form)] = form, of_form(form, self, *self._weight(form))
        return self._read[id(form)][1]

    def gross(self, form: Form) -> float:
        """Return the greatest sum of absolute values that a form adds up."""
        return float(self._weight(form)[0].max(initial=0.0))

    def _weight(self, form: Form) -> tuple[Vector, bool]:
        """Sum the absolute values of all that is added up; say whether rounding of it is left out."""
        sizes, constant = form.uncancelled
        weight, unbounded = np.full(self.size, constant), False
        for signal, c in sizes.items():
            if not c:  # multiplied by 0: nothing is added, however large the signal (0·∞ would be NaN)
                continue
            part = self.signals.get(signal)
            if part is None:  # it cancelled, so that nobody reads it, and nothing is known of it
                return np.full(self.size, np.inf), True
            if signal not in self._largest:
                self._largest[signal] = part.largest
            weight = weight + c * self._largest[signal]
            unbounded = unbounded or part.unbounded
        return weight, unbounded

    def _embedded(self, signal: Signal) -> ErrorInterval:
        zero = np.zeros(self.size)
        if signal.positions is not None:
            return self._known(signal.positions, signal.positions, signal.positions)
        assert signal.tokens is not None
        if self.target.vocabulary is not None:
            return self._known(zero + signal.tokens.min(), zero + signal.tokens.max(), signal.tokens)
        low, high = (zero + np.array(ends) for ends in (self.target.low, self.target.high))
        rounding = UNIT[self.target.dtype] * np.maximum(np.abs(low), np.abs(high))
        rounding = rounding + SMALLEST[self.target.dtype]
        if self.target.dtype == "float64":  # dense execution has the same number
            return ErrorInterval(low, high, zero)
        unbounded = not np.isfinite(rounding).all()
        return ErrorInterval(low, high, zero if unbounded else rounding, unbounded=unbounded)

    def _known(self, low: Vector, high: Vector, among: Vector) -> ErrorInterval:
        largest = float(np.abs(among).max())
        step = float(lowest_bits(among).min())
        if math.isinf(step):
            step = 1.0
        error = representation_error(among, self.target.dtype)
        exact = sums_exactly(largest, step, self.target.dtype)
        error_everywhere = np.full(self.size, error)
        return ErrorInterval(low.copy(), high.copy(), error_everywhere, step if exact else 0.0)
