"""Represent bounds of signals: their range, and the error of the number in the network.

Ranges and errors are vectors with one entry per position. If a signal is not needed at a position (for
example outside of a matrix), the network nevertheless computes a number there. At these positions, the
outputs of heads and gates have bounds ``low`` and ``high`` of this number, and the error 0.
:class:`ErrorIntervals` contains the bounds of all signals so far, and computes bounds of forms.

The error is the difference from dense execution, which also rounds. An operation whose results may
differ therefore counts as two roundings: one in the type of the network and one in float64.
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

#: The relative rounding error of one operation in each type.
UNIT = {"float64": 2.0**-53, "float32": 2.0**-24}


@dataclass
class ErrorInterval:
    """Bounds of the true value and of the error |network − dense execution|, at each position."""

    low: Vector
    high: Vector
    error: Vector
    #: If the network computes the exact value: a power of two that divides the value. 0 if the value is
    #: not exact, or if no such power is known.
    step: float = 0.0
    #: A bound on the error relative to the positive true value; infinity or None if unknown.
    relative: Vector | None = None
    #: For exponentials and results computed from them: the relative error, compared with exponentials
    #: of the argument in the network instead of the true argument. For logarithms of such results: the
    #: corresponding absolute error.
    own: Vector | None = None
    #: Whether the error does not include rounding errors, since they are proportional to numbers
    #: without bounds.
    unbounded: bool = False
    #: A power of two that divides the number in the network, even if it has an error; 0 if unknown.
    on_grid: float = 0.0

    @property
    def exact(self) -> bool:
        """Whether the value is exact and a multiple of a known power of two."""
        return self.step > 0

    @property
    def grid(self) -> float:
        """A power of two that divides the number in the network; 0 if unknown."""
        return self.step or self.on_grid

    @property
    def largest(self) -> Vector:
        """An upper bound on the absolute value of the number in the network."""
        return np.maximum(np.abs(self.net_low), np.abs(self.net_high))

    @property
    def net_low(self) -> Vector:
        """A lower bound on the number in the network."""
        below = self.low - self.error
        if self.relative is None:
            return below
        with np.errstate(invalid="ignore"):
            share = np.where(self.low > 0, self.low * (1 - self.relative), below)
        return np.fmax(below, share)

    @property
    def net_high(self) -> Vector:
        """An upper bound on the number in the network."""
        return self.high + self.error

    def argument(self, where: Mask) -> Argument:
        """Return the range and the error at the positions ``where``, as the argument of a gate.

        If ``where`` is empty, all positions are used.
        """
        if not where.any():
            where = np.ones(len(self.low), dtype=bool)
        return Argument(
            float(self.net_low[where].min()),
            float(self.net_high[where].max()),
            float(self.error[where].max()),
            self.grid,
        )

    def proportion(self) -> Vector:
        """Return a bound on the relative error."""
        with np.errstate(all="ignore"):
            ratio = np.where(self.low > 0, self.error / self.low, np.inf)
        ratio = np.where((self.low >= 0) & (self.error == 0), 0.0, ratio)
        return ratio if self.relative is None else np.minimum(ratio, self.relative)


def representation_error(numbers: Vector, dtype: str) -> float:
    """Return the largest absolute error of representing the numbers in a floating-point type."""
    with np.errstate(over="ignore"):
        return float(np.abs(numbers.astype(dtype).astype(np.float64) - numbers).max())


def of_form(form: Form, intervals: ErrorIntervals, weight: Vector, unbounded: bool) -> ErrorInterval:
    """Return the error interval of a form.

    ``weight`` is the sum of the absolute terms of the form. ``unbounded`` means that rounding errors
    are excluded.
    """
    positions, dtype = intervals.size, intervals.target.dtype
    fixed = np.full(positions, form.constant)  # includes every part that depends only on the position
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
        step = step if math.isfinite(step) else 1.0
        return ErrorInterval(low, high, error, step, unbounded=unbounded)
    if sums_exactly(largest, grid, dtype):
        return ErrorInterval(low, high, error, on_grid=grid, unbounded=unbounded)
    positive = bool((fixed >= 0).all())
    relative, own = np.zeros(positions), np.zeros(positions)
    for part, c in others:
        positive = positive and c > 0 and bool((part.low >= 0).all())
        if not positive:
            break  # there is no relative bound
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
    """Return whether reading a form needs no rounding.

    This is true for one signal times a power of two, and for an exact constant, if no terms cancelled.
    """
    if form.gross is not None:
        return False
    if not form.terms:
        return representation_error(np.array([form.constant]), dtype) == 0
    (coefficient, *rest) = form.terms.values()
    return not rest and not form.constant and abs(math.frexp(coefficient)[0]) == 0.5


@dataclass
class ErrorIntervals:
    """The error intervals of all signals that have been written so far."""

    target: Target
    signals: dict[Signal, ErrorInterval] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.size = self.target.longest
        #: Cache of the largest absolute value of each signal, since many forms read the same signal.
        self._largest: dict[Signal, Vector] = {}
        #: Cache of the results by the identity of the form, since heads of one layer read the same
        #: keys.
        self._read: dict[int, tuple[Form, ErrorInterval]] = {}
        #: The relative rounding error of one operation in the network and in dense execution together.
        self.unit = UNIT[self.target.dtype] + UNIT["float64"]

    def form(self, form: Form) -> ErrorInterval:
        """Return the error interval of a form, whose signals have all been written."""
        if id(form) not in self._read:
            for signal in (*form.terms, *form.uncancelled[0]):
                embedded = signal.positions is not None or signal.tokens is not None
                if embedded and signal not in self.signals:
                    self.signals[signal] = self._embedded(signal)
            self._read[id(form)] = form, of_form(form, self, *self._weight(form))
        return self._read[id(form)][1]

    def gross(self, form: Form) -> float:
        """Return the maximum, over all positions, of the sum of the absolute terms of a form."""
        return float(self._weight(form)[0].max(initial=0.0))

    def _weight(self, form: Form) -> tuple[Vector, bool]:
        """Return the sum of the absolute terms of a form, and whether its rounding is excluded."""
        sizes, constant = form.uncancelled
        weight, unbounded = np.full(self.size, constant), False
        for signal, c in sizes.items():
            if not c:  # a product with 0 adds nothing, even if the signal is infinite
                continue
            part = self.signals.get(signal)
            if part is None:  # a signal that cancels is not computed and has no bounds
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
        if self.target.dtype == "float64":  # dense execution uses the same number
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
