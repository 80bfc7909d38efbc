"""What is known of a signal: between which numbers it lies, and how wrong the network's number may be.

All of it position by position. Where nobody reads a signal (the positions outside a matrix, say) the
network computes something all the same: there ``low`` and ``high`` bound that, and the error is 0,
since nothing was asked for. :class:`ErrorIntervals` has what is known so far, and reads forms of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from locum.compiler.network.forms import Form, Mask, Signal, Vector
from locum.compiler.target import Target
from locum.compiler.units.hidden import Argument

#: The rounding of one operation.
UNIT = {"float64": 2.0**-53, "float32": 2.0**-24}
#: Multiples of 2⁻¹⁰ below these are added and multiplied without rounding.
_SAFE = {"float64": 2.0**40, "float32": 2.0**13}


@dataclass
class ErrorInterval:
    """Bounds of the true value, and of |network − true value|, at each position."""

    low: Vector
    high: Vector
    error: Vector
    #: The network has the true value to the last bit, and it is a multiple of 2⁻¹⁰.
    exact: bool = False
    #: The error as a share of the (positive) true value; inf where none is known.
    relative: Vector | None = None
    #: The same for exponentials (and what is made of them), but measured against exponentials of what
    #: the network has instead of the true argument; for their logarithm, the absolute error so
    #: measured.
    own: Vector | None = None

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
        """The range that units have to serve at these positions (at all, if there are none)."""
        if not where.any():
            where = np.ones(len(self.low), dtype=bool)
        return Argument(
            float(self.net_low[where].min()),
            float(self.net_high[where].max()),
            float(self.error[where].max()),
        )

    def proportion(self) -> Vector:
        """The relative error."""
        with np.errstate(all="ignore"):
            found = np.where(self.low > 0, self.error / self.low, np.inf)
        found = np.where((self.low >= 0) & (self.error == 0), 0.0, found)
        return found if self.relative is None else np.minimum(found, self.relative)


def dyadic(numbers: Vector | float, dtype: str) -> bool:
    """Whether arithmetic with these rounds nothing: multiples of 2⁻¹⁰, and not too large."""
    array = np.asarray(numbers, dtype=np.float64)
    if not np.isfinite(array).all():
        return False
    return bool(
        (array * 1024 == np.round(array * 1024)).all() and (np.abs(array) <= _SAFE[dtype]).all()
    )


def of_form(
    form: Form, intervals: Mapping[Signal, ErrorInterval], positions: int, dtype: str
) -> ErrorInterval:
    """A combination of signals."""
    fixed = np.full(positions, form.constant)  # what depends on positions alone is one known number
    weight, exact = np.abs(fixed), dyadic(form.constant, dtype)
    error = np.zeros(positions)
    others = []
    for signal, c in form.terms.items():
        part = intervals[signal]
        error = error + abs(c) * part.error
        weight = weight + abs(c) * part.largest
        exact = exact and part.exact and dyadic(c, dtype)
        if signal.positions is not None:
            fixed = fixed + c * signal.positions
        else:
            others.append((part, c))
    low, high = fixed, fixed
    positive = bool((fixed >= 0).all())
    relative, own = np.zeros(positions), np.zeros(positions)
    for part, c in others:
        ends = (c * part.low, c * part.high)
        low, high = low + np.minimum(*ends), high + np.maximum(*ends)
        positive = positive and c > 0 and bool((part.low >= 0).all())
        relative = np.maximum(relative, part.proportion())
        own = np.maximum(own, np.inf if part.own is None else part.own)
    if exact and dyadic(np.max(weight, initial=0.0), "float32"):
        return ErrorInterval(low, high, error, True)
    rounding = UNIT[dtype] * (len(form.terms) + 2)
    # A signal as it is, and nothing else, is read without rounding; so is a constant that a float is.
    plain = len(form.terms) == 1 and set(form.terms.values()) == {1.0} and not form.constant
    if plain or (not form.terms and float(np.dtype(dtype).type(form.constant)) == form.constant):
        rounding = 0.0
    return ErrorInterval(
        low,
        high,
        error + rounding * np.where(np.isfinite(weight), weight, 0.0),
        exact,
        relative + 2 * rounding if positive else None,
        own + 2 * rounding if positive else None,
    )


@dataclass
class ErrorIntervals:
    """What is known of every signal that has been written so far."""

    target: Target
    signals: dict[Signal, ErrorInterval] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.size = self.target.longest
        #: The rounding of one operation.
        self.unit = UNIT[self.target.dtype]

    def form(self, form: Form) -> ErrorInterval:
        """What is known of a form."""
        for signal in form.terms:
            if signal not in self.signals:
                self.signals[signal] = self._embedded(signal)
        return of_form(form, self.signals, self.size, self.target.dtype)

    def _embedded(self, signal: Signal) -> ErrorInterval:
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
        return ErrorInterval(low, high, rounding)

    def _known(self, low: Vector, high: Vector, among: Vector) -> ErrorInterval:
        exact = dyadic(among, self.target.dtype)
        rounding = 0.0 if exact else self.unit * np.abs(among).max()
        return ErrorInterval(low.copy(), high.copy(), np.full(self.size, rounding), exact)
