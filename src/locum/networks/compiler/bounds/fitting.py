"""Bound the error of a network, and choose hidden units and temperatures that meet the tolerance.

A *gate* is a function that the hidden units of a feed-forward compute. :class:`Bounds` propagates
errors through the whole network for one tolerance, which determines the tolerances of gates and heads.
The compiler tries several tolerances to meet the goal. The report contains the bound of the final
network, with the errors of its parts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

import numpy as np

from locum.errors import CompileError
from locum.graph import Atom, abbreviate
from locum.networks.compiler.bounds.demand import Demand
from locum.networks.compiler.bounds.function_bounds import FunctionBounds
from locum.networks.compiler.bounds.gate_bounds import GateBounds, SlotSum
from locum.networks.compiler.bounds.head_bounds import (
    UNDERFLOW,
    ChooseTemperature,
    HeadBounds,
    SinkBounds,
    Temperature,
)
from locum.networks.compiler.bounds.intervals import UNIT, ErrorInterval, ErrorIntervals
from locum.networks.compiler.compile_limits import LimitExceededError, check_time, require_size
from locum.networks.compiler.network.forms import Curved, Gate, Mask, Masked, Product
from locum.networks.compiler.network.network import Head, Slots, Unit
from locum.networks.compiler.network.network_lowering import Lowered
from locum.networks.compiler.target import DEFAULT_TOLERANCE
from locum.networks.compiler.units.curves import UnitsError
from locum.networks.compiler.units.hidden import Hidden
from locum.networks.compiler.units.realise import depends_on_tolerance, realise
from locum.text import at_most

#: A function that returns the hidden units of a gate, given the error intervals of its arguments and
#: the positions where its output is needed.
Maker = Callable[[Unit, list[ErrorInterval], Mask], Hidden]


@dataclass
class Bounds:
    """The bounds of all signals of a network, computed in one pass for one tolerance."""

    lowered: Lowered
    slots: Slots
    demand: Demand
    make: Maker
    #: Returns the inverse temperature of a head and the error for which it was chosen; None for hard
    #: attention.
    choose_temperature: ChooseTemperature | None = None
    hidden: dict[Unit, Hidden] = field(default_factory=dict)

    def __post_init__(self) -> None:
        known = self.lowered.roles.known
        self.intervals = ErrorIntervals(known.target)
        #: Number of hidden units of the gates so far.
        self._size = 0
        self._gates = GateBounds(self.intervals, self.demand)
        self._functions = FunctionBounds(self.intervals, self.lowered)
        fed = known.target.feed_forward != "exact"
        self._sink = SinkBounds(self.slots, known.target.dtype, fed)
        self._heads = HeadBounds(
            self.intervals, known, self.demand, self._sink, self.choose_temperature
        )

    @property
    def temperatures(self) -> dict[Head, Temperature]:
        """The inverse temperatures of the softmax heads that approximate hard heads."""
        return self._heads.temperatures

    def run(self) -> ErrorInterval:
        """Bound all signals in the order of sublayers, and return the error interval of the output."""
        for time, steps in groupby(self.lowered.network.steps(), key=lambda step: step.time):
            together = list(steps)
            self._sink.arrive(time)
            heads = [step for step in together if isinstance(step, Head)]
            for head in heads:
                self._heads.carry(head)
                check_time(head.selector)
            self._units([unit for unit in together if isinstance(unit, Unit)])
            if self.lowered.network.sink:
                self._at_sink(heads, time)
        return self.intervals.form(self.lowered.network.output)

    def _at_sink(self, heads: Sequence[Head], time: int) -> None:
        self._sink.move(heads, self._heads.largest_keys)
        self._sink.feed({unit: hidden for unit, hidden in self.hidden.items() if unit.time == time})

    def _units(self, units: Sequence[Unit]) -> None:
        """Bound the outputs of the units of one feed-forward.

        All outputs that are written to one slot are added in one sum.
        """
        arguments: dict[Unit, list[ErrorInterval]] = {}
        in_slot: dict[int, list[Unit]] = {}
        for unit in units:
            if unit.gate is None:
                self.intervals.signals[unit.into] = self._functions.interval(unit)
                continue
            arguments[unit] = [self.intervals.form(form) for form in unit.gate.arguments]
            self.hidden[unit] = self.make(unit, arguments[unit], self.demand.of(unit.into))
            self._count(unit)
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

    def _count(self, unit: Unit) -> None:
        """Raise an error if the gates so far need more hidden units than the limit."""
        check_time(unit.node)
        self._size += self.hidden[unit].size
        require_size(
            "units", self._size, lambda: {each.node: made.size for each, made in self.hidden.items()}
        )


def _gate(unit: Unit) -> Gate:
    assert unit.gate is not None
    return unit.gate


#: Ratio of the tolerance of heads to the tolerance of gates. Precise heads need no more weights.
_FOR_HEADS = 2.0**-8
#: Maximum number of tolerances that one search tries.
_ROUNDS = 14
#: Number of equal errors at successive tolerances, each an eighth of the previous one, after which no
#: smaller tolerance is tried.
_SAME_REFUSALS = 3
#: Maximum number of scores for which the rounding errors of a network with hard heads and symbolic
#: feed-forwards are bounded.
_MAX_CELLS = 2**24


@dataclass
class Fitted:
    """The hidden units and temperatures of a network, with a bound on its error."""

    bounds: Bounds
    output: ErrorInterval
    tolerance: float
    #: The possible outputs, by the numbers that represent them, if the output is decoded as one of
    #: them. The network then returns the output whose number is nearest.
    outputs: Mapping[float, Atom] = field(default_factory=dict)
    #: The largest error at any position. Rounding errors are excluded if numbers have no bounds.
    error: float = field(init=False)

    def __post_init__(self) -> None:
        self.error = float(self.output.error.max())

    @property
    def bound(self) -> float | None:
        """A bound on |network − program|, or None if there is no bound."""
        if self.output.unbounded or not math.isfinite(self.error):
            return None
        if self.error < nearest(self.outputs) / 4:
            return self.error
        # If another output is the nearest, its distance is at most that of the correct output.
        if any(isinstance(value, str) for value in self.outputs.values()):
            return None
        return max(self.error, min(2 * self.error, max(self.outputs) - min(self.outputs)))

    @property
    def hidden(self) -> dict[Unit, Hidden]:
        """The hidden units of every gate."""
        return self.bounds.hidden

    def beta(self, head: Head) -> float | None:
        """Return the inverse temperature of a softmax head that approximates a hard head.

        Return None for other heads.
        """
        temperature = self.bounds.temperatures.get(head)
        return None if temperature is None else temperature.beta


def nearest(codes: Iterable[float]) -> float:
    """Return the smallest distance between two of the numbers; infinity for fewer than two numbers.

    >>> nearest([1.5, 0.0, 1.0]), nearest([2.0])
    (0.5, inf)
    """
    return float(np.diff(sorted(codes)).min(initial=math.inf))


def fit(lowered: Lowered, slots: Slots, outputs: Mapping[float, Atom] | None = None) -> Fitted | None:
    """Find hidden units for every gate and the temperatures of softmax heads, and bound the error.

    ``outputs`` contains the possible outputs, by the numbers that represent them, if the output is
    decoded as one of them. Return None for hard heads with symbolic feed-forwards if the network is too
    large to bound its rounding errors. Raise CompileError if the error cannot be made small enough.
    """
    target = lowered.roles.known.target
    cells = len(lowered.network.heads) * target.longest**2
    if target.feed_forward == "exact" and target.attention == "hard" and cells > _MAX_CELLS:
        return None
    return _Fitting(lowered, slots, outputs or {}).fit()


class _Fitting:
    def __init__(self, lowered: Lowered, slots: Slots, outputs: Mapping[float, Atom]) -> None:
        self.outputs = outputs
        self.lowered = lowered
        self.slots = slots
        known = lowered.roles.known
        self.target = target = known.target
        self.demand = Demand(lowered.network, known)
        kind = target.feed_forward
        self.asked = target.tolerance
        if self.asked is None and kind != "exact":
            self.asked = DEFAULT_TOLERANCE
        # If the possible outputs are given, the nearest is decoded. Otherwise, the output is a number
        # with an error.
        few, apart = len(outputs) > 1, nearest(outputs)
        near = apart / 4 if target.tolerance is None and few else min(self.asked or math.inf, apart / 4)
        self.limit = math.inf if kind == "exact" else near
        #: Whether softmax heads may have small weights on other keys, as the tolerance allows.
        soft = target.attention == "softmax" and kind != "exact"
        self.soft = soft and target.tolerance is not None
        gates = [unit.gate for unit in lowered.network.units if unit.gate is not None]
        #: Whether the network depends on the tolerance. Tables, ramps and rounded values do not.
        self.can_bend = self.soft or any(depends_on_tolerance(gate, kind) for gate in gates)

    def fit(self) -> Fitted:
        """Return the fitted network.

        With hidden units and a given tolerance, softmax heads may have small weights on unselected
        keys. If no such network meets the tolerance, heads without such weights are tried.
        """
        try:
            return self._fit()
        except CompileError:
            if not self.soft:
                raise
        self.soft = False
        return self._fit()

    def _fit(self) -> Fitted:
        tolerance = self.asked if self.asked is not None else DEFAULT_TOLERANCE
        best: Fitted | None = None
        problem: CompileError | None = None
        last: Fitted | None = None
        before: tuple[float, float] | None = None
        refusals: list[_Unfit] = []
        for _ in range(_ROUNDS):
            try:
                last = self._attempt(tolerance)
            except LimitExceededError:
                if best is None and (problem is None or last is not None):
                    raise
                break
            except _Unfit as unfit:
                problem = problem or CompileError(str(unfit), unfit.where)
                refusals.append(unfit)
                if not self.can_bend or _is_hopeless(refusals):
                    break
                tolerance /= 8
                continue
            refusals.clear()
            if last.error <= self.limit and (best is None or last.tolerance > best.tolerance):
                best = last
            if not last.error or self.limit == math.inf or (best and best.error > 0.85 * self.limit):
                break
            if not self.can_bend:
                break
            if before is not None and last.tolerance < before[0] / 2 and last.error > 0.9 * before[1]:
                break  # units cannot reduce the remaining error
            before = last.tolerance, last.error
            ratio = self.limit / last.error
            tolerance *= min(max(0.97 * ratio, 1e-6), 8.0)
            if tolerance < 1e-15:
                break
        if best is not None:
            return best
        if last is None and problem is not None:
            raise problem
        assert last is not None
        raise CompileError(
            f"tolerance {self.limit:.2g} cannot be reached: the error bound is "
            f"{at_most(last.error, '.2g')} for any number of hidden units",
            self._where(last),
            bound=last.error if self.limit == self.asked else None,
        )

    def _attempt(self, tolerance: float) -> Fitted:
        def make(unit: Unit, arguments: list[ErrorInterval], where: Mask) -> Hidden:
            return self._make(unit, arguments, where, tolerance)

        choose_temperature: ChooseTemperature | None = None
        if self.target.attention == "softmax":

            def choose_temperature(head: Head, spread: float, fewest: float) -> tuple[float, float]:
                return self._choose_temperature(head, spread, fewest, tolerance)

        bounds = Bounds(self.lowered, self.slots, self.demand, make, choose_temperature)
        output = bounds.run()
        return Fitted(bounds, output, tolerance, self.outputs)

    # Gates --------------------------------------------------------------------------------------

    def _make(
        self, unit: Unit, intervals: list[ErrorInterval], where: Mask, tolerance: float
    ) -> Hidden:
        gate, kind = unit.gate, self.target.feed_forward
        assert gate is not None
        everywhere = np.ones(self.target.longest, dtype=bool)
        # The output of these gates has no known bounds for arguments outside of their range. The range
        # must therefore include every position.
        square = isinstance(gate, Curved) and gate.name == "square" and kind == "glu"
        if isinstance(gate, Masked) or square or (isinstance(gate, Product) and kind != "relu"):
            where = everywhere
        arguments = tuple(interval.argument(where) for interval in intervals)
        ends = [end for argument in arguments for end in (argument.low, argument.high)]
        if kind != "glu" and not self.target.bounded and not all(map(math.isfinite, ends)):
            raise CompileError(
                f"expected bounded numbers for {kind} units, got unbounded ones; try ranges=(low, "
                "high)",
                self._abbreviate(unit),
            )
        if isinstance(gate, Curved):
            if kind == "glu" and self.target.tolerance is None and gate.name != "square":
                raise CompileError(
                    f"expected a piecewise-linear function for glu units, got {gate.name}, which "
                    "requires "
                    "an approximation; try tolerance=1e-3",
                    abbreviate(unit.node),
                )
            high = min(arguments[0].high, gate.at_most + arguments[0].error)
            low = min(arguments[0].low, high)
            if gate.name == "sqrt" and low < 0 <= float(intervals[0].low[where].min(initial=0.0)):
                low = 0.0
            arguments = (replace(arguments[0], low=low, high=high),)
        try:
            return realise(gate, kind, arguments, tolerance, UNIT[self.target.dtype])
        except OverflowError:
            raise _Unfit(
                f"{kind} units cannot represent such large numbers", self._abbreviate(unit), 0
            ) from None
        except UnitsError as error:
            raise _Unfit(
                f"{kind} units cannot compute this s-op: {error}",
                self._abbreviate(unit),
                error.needed,
            ) from None

    # Heads --------------------------------------------------------------------------------------

    def _choose_temperature(
        self, head: Head, spread: float, fewest: float, tolerance: float
    ) -> tuple[float, float]:
        """Return a power of two as the inverse temperature β, and the error for which it was chosen.

        If this error is 0 and the errors of scores are at most a quarter of the gap, all keys that are
        not selected have weight 0.
        """
        full = 2 * UNDERFLOW[self.target.dtype] / head.gap
        least, error = full, 0.0
        if self.soft and math.isfinite(spread):
            # (n − m)·D/m·e^(−β·gap) ≤ ε
            odds = self.target.longest * spread / (fewest * tolerance * _FOR_HEADS)
            enough = math.log(max(odds, 2.0)) / head.gap
            if enough < full:
                least, error = enough, tolerance * _FOR_HEADS
        return float(2.0 ** math.ceil(math.log2(least))), error

    # Reports ------------------------------------------------------------------------------------

    def _where(self, fitted: Fitted) -> str:
        """Return the text of the first s-op whose error bound exceeds the limit, or "the output"."""
        for unit in sorted(self.lowered.network.units, key=lambda u: u.time):
            if float(fitted.bounds.intervals.signals[unit.into].error.max()) > self.limit:
                return self._abbreviate(unit)
        return "the output"

    def _abbreviate(self, unit: Unit) -> str:
        """Return the text of a unit's s-op, or of the s-op for which the compiler created this s-op."""
        return self.lowered.roles.made_for(unit.node) or abbreviate(unit.node)


class _Unfit(Exception):  # noqa: N818  (a signal to try again, not an error)
    """Raised if hidden units cannot meet a tolerance; a smaller tolerance may be possible."""

    def __init__(self, problem: str, where: str, needed: float) -> None:
        super().__init__(problem)
        self.where = where
        self.needed = needed


def _is_hopeless(refusals: Sequence[_Unfit]) -> bool:
    """Return whether the search for a tolerance ends, given the previous failures.

    This is the case if the same error repeats, or if the number of segments increases. A smaller
    tolerance reduces the error of an argument, and therefore its range. If the gate nevertheless needs
    more segments, the square root of the tolerance decreases faster than the range, also for smaller
    tolerances.
    """
    if len(refusals) > 1:
        before, now = refusals[-2:]
        if before.where == now.where and now.needed > before.needed > 0:
            return True
    last = [(str(refusal), refusal.where) for refusal in refusals[-_SAME_REFUSALS:]]
    return len(last) == _SAME_REFUSALS and len(set(last)) == 1
