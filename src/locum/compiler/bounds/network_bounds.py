"""How wrong the network can be: a bound for every signal, computed from the embedding to the output.

Three things are off: gates whose units are not the function itself (``realise.py`` says by how much),
softmax attention that gives a little weight to keys that are not selected, and floating point. Each is
carried on: through sums (``intervals.py``), gates (``gate_bounds.py``), functions
(``function_bounds.py``) and heads (``head_bounds.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from locum.compiler.bounds.demand import Demand
from locum.compiler.bounds.function_bounds import FunctionBounds
from locum.compiler.bounds.gate_bounds import GateBounds, SlotSum
from locum.compiler.bounds.head_bounds import ChooseTemperature, HeadBounds, Temperature
from locum.compiler.bounds.intervals import ErrorInterval, ErrorIntervals
from locum.compiler.bounds.sink_bounds import SinkBounds
from locum.compiler.network.forms import Mask
from locum.compiler.network.gates import Gate
from locum.compiler.network.lowering import Lowered
from locum.compiler.network.network import Head, Unit
from locum.compiler.network.slots import Slots
from locum.compiler.units.hidden import Hidden

#: Makes the units of a gate, given what is known of its arguments, and where it is read.
Maker = Callable[[Unit, list[ErrorInterval], Mask], Hidden]


@dataclass
class Bounds:
    """One pass over the network."""

    lowered: Lowered
    slots: Slots
    demand: Demand
    make: Maker
    #: Chooses the inverse temperature of a head; None: attention is hard.
    choose_temperature: ChooseTemperature | None = None
    hidden: dict[Unit, Hidden] = field(default_factory=dict)

    def __post_init__(self) -> None:
        known = self.lowered.roles.known
        self.intervals = ErrorIntervals(known.target)
        self._gates = GateBounds(self.intervals, self.demand)
        self._functions = FunctionBounds(self.intervals, self.lowered)
        fed = known.target.feed_forward != "exact"
        self._sink = SinkBounds(self.slots, known.target.dtype, fed)
        self._heads = HeadBounds(
            self.intervals, known, self.demand, self._sink, self.choose_temperature
        )

    @property
    def temperatures(self) -> dict[Head, Temperature]:
        """Inverse temperatures, and how each was found."""
        return self._heads.temperatures

    def run(self) -> ErrorInterval:
        """Return the bound of the output, after that of everything before it."""
        for time, steps in groupby(self.lowered.network.steps(), key=lambda step: step.time):
            together = list(steps)
            self._sink.arrive(time)
            heads = [step for step in together if isinstance(step, Head)]
            for head in heads:
                self._heads.carry(head)
            self._units([unit for unit in together if isinstance(unit, Unit)])
            if self.lowered.network.sink:
                self._at_sink(heads, time)
        return self.intervals.form(self.lowered.network.output)

    def _at_sink(self, heads: Sequence[Head], time: int) -> None:
        self._sink.move(heads, self._heads.largest_keys)
        self._sink.feed({unit: hidden for unit, hidden in self.hidden.items() if unit.time == time})

    def _units(self, units: Sequence[Unit]) -> None:
        """Bound the units of one feed-forward: what they write into a slot is added in one sum."""
        arguments: dict[Unit, list[ErrorInterval]] = {}
        in_slot: dict[int, list[Unit]] = {}
        for unit in units:
            if unit.gate is None:
                self.intervals.signals[unit.into] = self._functions.interval(unit)
                continue
            arguments[unit] = [self.intervals.form(form) for form in unit.gate.arguments]
            self.hidden[unit] = self.make(unit, arguments[unit], self.demand.of(unit.into))
            in_slot.setdefault(self.slots.of(unit.into)[0], []).append(unit)
        for writers in in_slot.values():
            summands = {
                unit: self._gates.summands(
                    _gate(unit), arguments[unit], self.hidden[unit], self.slots.of(unit.into)[1]
                )
                for unit in writers
            }
            slot = SlotSum(list(summands.values()), self.intervals.target.dtype)
            for unit, parts in summands.items():
                self.intervals.signals[unit.into] = self._gates.interval(
                    unit, _gate(unit), arguments[unit], self.hidden[unit], parts, slot
                )


def _gate(unit: Unit) -> Gate:
    assert unit.gate is not None
    return unit.gate
