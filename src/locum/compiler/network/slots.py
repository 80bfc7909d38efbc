"""Stage *slots*: where in the residual stream each signal lives, and when a slot is free again.

Signals that are always read together, in the same proportion, share a slot and add up in it: the r·c
heads of a matrix product, say, which write disjoint parts of one sum. (But not such as are added up
exactly with such as are not.) A slot whose signals nobody
reads any more is *erased* by the next feed-forward (which subtracts it from itself: exactly 0 is
left) and then given to others, unless it leaves a number like 0.1 at the sink. It is erased only if
somebody wants it.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from locum.compiler.network.forms import Form, Signal
from locum.compiler.network.gates import SNAP, Snap, Table
from locum.compiler.network.grids import dyadic
from locum.compiler.network.network import Network
from locum.compiler.target import EXACT_WHOLE


@dataclass
class Group:
    """Signals that share a slot: ``scale`` is what each is multiplied by when it is written."""

    signals: dict[Signal, float]
    #: The first sublayer that writes, and the last that reads.
    first: int
    last: int
    slot: int = -1

    @property
    def label(self) -> str:
        """What it holds."""
        return " + ".join(dict.fromkeys(signal.label for signal in self.signals))


@dataclass
class Slots:
    """The plan of the residual stream."""

    groups: list[Group]
    size: int
    #: For each feed-forward sublayer, the slots it erases.
    erased: dict[int, list[int]] = field(default_factory=dict)
    _of: dict[Signal, Group] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._of = {signal: group for group in self.groups for signal in group.signals}

    def of(self, signal: Signal) -> tuple[int, float]:
        """Return the slot of a signal, and what it is multiplied by when it is written there."""
        group = self._of[signal]
        return group.slot, group.signals[signal]

    def read(self, form: Form) -> dict[int, float]:
        """Write a form as coefficients of slots."""
        coefficients: dict[int, float] = {}
        for signal, coefficient in form.terms.items():
            slot, scale = self.of(signal)
            # Signals of one group have one ratio of coefficient to scale: read the slot once, and by a
            # signal that is written as it is, since a quotient may be rounded.
            if scale == 1 or slot not in coefficients:
                coefficients[slot] = coefficient / scale
        return coefficients

    def labels(self) -> list[str]:
        """Return what each slot holds, in the order of time."""
        held: list[list[str]] = [[] for _ in range(self.size)]
        for group in sorted(self.groups, key=lambda g: g.first):
            held[group.slot].append(group.label)
        return [" → ".join(names) for names in held]


def lay_out(network: Network, dtype: str, *, reuse: bool = True) -> Slots:
    """Give a slot to every signal that is read; without ``reuse``, none to another after it."""
    groups = _groups(network, _room(network, dtype), _summed_exactly(network, dtype))
    every = {signal for group in groups for signal in group.signals}
    return _assigned(groups, _left_at_sink(network, dtype) if reuse else every)


def _room(network: Network, dtype: str) -> dict[Signal, float]:
    """Return how often a signal may be added to a slot, where its units add large constants to it.

    :class:`Snap` writes (x + C) − C: sums of as many C as that are still integers of their type.
    """
    large, _ = SNAP[dtype]
    times = EXACT_WHOLE[dtype] // (4 * large)
    return {unit.into: times for unit in network.units if isinstance(unit.gate, Snap)}


def _summed_exactly(network: Network, dtype: str) -> set[Signal]:
    """Return signals whose hidden units add numbers of one grid, perhaps large, without rounding.

    In one sum with a number like 0.1 they would be rounded, and that number with them in proportion
    to the largest: they have slots of their own.
    """
    return {
        unit.into
        for unit in network.units
        if isinstance(unit.gate, Snap)
        or (isinstance(unit.gate, Table) and _exact_table(unit.gate, dtype))
    }


def _exact_table(gate: Table, dtype: str) -> bool:
    """Return whether sums of its hidden units are not rounded."""
    return dyadic(gate.values, dtype) and (gate.gridded or dyadic(gate.keys, dtype))


def _left_at_sink(network: Network, dtype: str) -> set[Signal]:
    """List signals whose slots must not be reused: they leave a number at the sink that sums round.

    The sink is not erased. Whoever reads a slot there subtracts what it is known to hold, and scores
    have to be exact.
    """
    return {
        value.into
        for head in network.heads
        for value in head.values
        if network.sink and not value.share and not dyadic(value.at_sink, dtype)
    }


def _groups(network: Network, room: Mapping[Signal, float], exact: Collection[Signal]) -> list[Group]:
    uses: dict[Signal, dict[int, float]] = {}
    last: dict[Signal, int] = {}
    numbered: dict[object, int] = {}
    for form, time in network.reads():
        number = numbered.setdefault(form.key, len(numbered))
        for signal, coefficient in form.terms.items():
            uses.setdefault(signal, {})[number] = coefficient
            last[signal] = max(last.get(signal, 0), time)
    together: dict[object, dict[Signal, float]] = {}
    for signal, use in uses.items():
        scale = next(iter(use.values()))
        ratios = frozenset((number, c / scale) for number, c in use.items())
        together.setdefault((ratios, signal in exact), {})[signal] = scale
    groups = []
    for signals in together.values():
        for relative in _multiples(signals, room):
            first = min(signal.time for signal in relative)
            groups.append(Group(relative, first, max(last[signal] for signal in relative)))
    return groups


def _multiples(
    signals: Mapping[Signal, float], room: Mapping[Signal, float]
) -> Iterator[dict[Signal, float]]:
    """Return parts in which every scale is an integer multiple of the least, which becomes 1.

    Thirds of integers are rounded, and what is compared afterwards must not be. ``room`` says how large
    the scales of some signals may be, all of them in one slot together.
    """
    while signals:
        unit = min(signals.values(), key=abs)
        shared: dict[Signal, float] = {}
        used = 0.0
        for signal, scale in signals.items():
            times = scale / unit
            load = abs(times) / room[signal] if signal in room else 0.0
            if times.is_integer() and (used + load <= 1 or (abs(times) == 1 and not used)):
                shared[signal] = times
                used += load
        yield shared
        signals = {s: scale for s, scale in signals.items() if s not in shared}


def _assigned(groups: list[Group], never_again: set[Signal]) -> Slots:
    free: list[tuple[int, int]] = []  # (from when, slot)
    erased: dict[int, list[int]] = {}
    size = 0
    waiting: list[tuple[int, int]] = []
    for group in sorted(groups, key=lambda g: (g.first, g.last)):
        while waiting and waiting[0][0] < group.first:
            heapq.heappush(free, heapq.heappop(waiting))
        if free:
            when, slot = heapq.heappop(free)
            erased.setdefault(when, []).append(slot)
            group.slot = slot
        else:
            group.slot = size
            size += 1
        if not never_again.isdisjoint(group.signals):
            continue
        # The first feed-forward at or after the last read erases; what it erases is free behind it.
        erasing = group.last + group.last % 2
        heapq.heappush(waiting, (erasing, group.slot))
    return Slots(groups, max(size, 1), erased)
