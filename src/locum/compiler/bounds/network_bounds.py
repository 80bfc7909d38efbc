"""How wrong the network can be: a bound for every signal, computed from the embedding to the output.

Three things are off: gates whose units are not the function itself (``realise.py`` says by how much),
softmax attention that gives a little weight to keys that are not selected, and floating point. Each is
carried on: through sums (``intervals.py``), gates (``gate_bounds.py``) and heads (``head_bounds.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from locum.compiler.bounds.demand import Demand
from locum.compiler.bounds.gate_bounds import GateBounds
from locum.compiler.bounds.head_bounds import ChooseTemperature, HeadBounds, Temperature
from locum.compiler.bounds.intervals import ErrorInterval, ErrorIntervals
from locum.compiler.network.forms import Mask
from locum.compiler.network.network import Head, Network, Unit
from locum.compiler.scoring.known import Known
from locum.compiler.units.hidden import Hidden

#: Makes the units of a gate, given what is known of its arguments, and where it is read.
Maker = Callable[[Unit, list[ErrorInterval], Mask], Hidden]


@dataclass
class Bounds:
    """One pass over the network."""

    network: Network
    known: Known
    demand: Demand
    make: Maker
    #: The inverse temperature of a head; None: attention is hard.
    choose_temperature: ChooseTemperature | None = None
    hidden: dict[Unit, Hidden] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.intervals = ErrorIntervals(self.known.target)
        self._gates = GateBounds(self.intervals, self.demand)
        self._heads = HeadBounds(self.intervals, self.known, self.demand, self.choose_temperature)

    @property
    def temperatures(self) -> dict[Head, Temperature]:
        """Inverse temperatures, and how each was found."""
        return self._heads.temperatures

    def run(self) -> ErrorInterval:
        """The output, after everything before it."""
        for step in self.network.steps():
            if isinstance(step, Head):
                self._heads.carry(step)
            else:
                self.intervals.signals[step.into] = self._unit(step)
        return self.intervals.form(self.network.output)

    def _unit(self, unit: Unit) -> ErrorInterval:
        if unit.gate is None:  # any function, exactly: of the true values it gives true values
            everything = np.full(self.intervals.size, np.inf)
            return ErrorInterval(-everything, everything, np.zeros(self.intervals.size), True)
        arguments = [self.intervals.form(form) for form in unit.gate.arguments]
        hidden = self.make(unit, arguments, self.demand.of(unit.into))
        self.hidden[unit] = hidden
        return self._gates.spread(unit, unit.gate, arguments, hidden)
