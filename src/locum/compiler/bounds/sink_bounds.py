"""How far the sink may be from what the weights take it to hold.

The sink is a row of the residual stream like any other: heads and feed-forwards write into it, in the
network's own type of number. Whoever reads it subtracts what it is known to hold
(``weights/stream.py``), computed in float64; what the network really has there may be rounded
otherwise. That error is part of every default, and of the scores that the sink gets. Hidden units are
closed at the sink (but for :class:`Snap`), so that what it holds are constants and defaults.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from locum.compiler.bounds.intervals import UNIT, representation_error
from locum.compiler.network.forms import Form
from locum.compiler.network.gates import SNAP
from locum.compiler.network.grids import SMALLEST, lowest_bit, lowest_bits, sums_exactly
from locum.compiler.network.network import Head, Unit, Value
from locum.compiler.network.slots import Slots
from locum.compiler.units.hidden import Hidden

#: The sink attends to itself by a score that is higher by 1: half of it may be lost.
_ALONE = 0.5


@dataclass
class SinkBounds:
    """What each slot holds at the sink, and how far the network may be from it."""

    slots: Slots
    dtype: str
    #: Whether feed-forwards act on the sink, too: exact ones do not.
    fed: bool

    def __post_init__(self) -> None:
        self.held = np.zeros(self.slots.size)
        self.error = np.zeros(self.slots.size)
        self._erased = sorted(self.slots.erased) if self.fed else []
        self._unit = UNIT[self.dtype] + UNIT["float64"]

    def arrive(self, time: int) -> None:
        """Erase what feed-forwards before ``time`` do: a slot minus itself is exactly 0."""
        while self._erased and self._erased[0] < time:
            slots = self.slots.erased[self._erased.pop(0)]
            self.held[slots] = self.error[slots] = 0.0

    def read_error(self, form: Form) -> float:
        """Return how far from 0 a form may be read at the sink."""
        coefficients = self._coefficients(form)
        carried = self._carried(coefficients)
        single = len(coefficients) == 1 and set(map(abs, coefficients.values())) == {1.0}
        if not carried and ((single and not form.constant) or self._on_grid(coefficients, form)):
            return 0.0
        return carried + self._rounding(coefficients, form, 0.0)

    def default_error(self, value: Value) -> float:
        """Return how far from its default a head may read a value at the sink."""
        if value.share:
            return 0.0
        coefficients = self._coefficients(value.form)
        carried = self._carried(coefficients)
        if carried:
            return carried + self._rounding(coefficients, value.form, abs(value.at_sink))
        # Stream.moved reads slot by slot, and each is subtracted from itself.
        return representation_error(np.array([value.at_sink]), self.dtype)

    def move(self, heads: Iterable[Head], largest_keys: Mapping[Head, Sequence[float]]) -> None:
        """Let the heads of a layer write; ``largest_keys`` are those of the other positions."""
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
                    error = 0.0  # the rounded default is what is taken to be held
                written.setdefault(slot, []).append((value.at_sink, scale, error))
        for slot, parts in written.items():
            self._write(slot, parts)

    def feed(self, hidden: Mapping[Unit, Hidden]) -> None:
        """Let the hidden units of a feed-forward write: their constants, and what is open."""
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
        """Add numbers, each times a scale and with an error, to what a slot holds."""
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
        """Return the coefficients of the slots that hold something at the sink."""
        return {
            slot: c for slot, c in self.slots.read(form).items() if self.held[slot] or self.error[slot]
        }

    def _carried(self, coefficients: Mapping[int, float]) -> float:
        return sum(abs(c) * float(self.error[slot]) for slot, c in coefficients.items())

    def _weight(self, coefficients: Mapping[int, float], form: Form) -> float:
        held = sum(abs(c * float(self.held[slot])) for slot, c in coefficients.items())
        return 2 * (held + abs(form.constant))  # what is subtracted is as large again

    def _rounding(self, coefficients: Mapping[int, float], form: Form, expected: float) -> float:
        weight = self._weight(coefficients, form) + expected
        return (len(coefficients) + 4) * (self._unit * weight + SMALLEST[self.dtype])

    def _on_grid(self, coefficients: Mapping[int, float], form: Form) -> bool:
        steps = [lowest_bit(c) * lowest_bit(self.held[slot]) for slot, c in coefficients.items()]
        step = min([lowest_bit(form.constant), *steps])
        return sums_exactly(self._weight(coefficients, form), step, self.dtype)
