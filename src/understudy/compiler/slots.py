"""Fifth stage: which slot of the residual stream each signal lives in, and when a slot is free again.

Signals that are always read together, in the same proportion, share a slot and add up in it: the r·c heads of
a matrix product, say, which write disjoint parts of one sum. A slot whose signals nobody reads any more is
*erased* by the next feed-forward (which subtracts it from itself: exactly 0 is left) and then given to others.
It is erased only if somebody wants it.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field

from understudy.compiler.network import Form, Network, Signal


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
        names = list(dict.fromkeys(signal.label for signal in self.signals))
        return " + ".join(names[:3]) + (f" + {len(names) - 3} more" if len(names) > 3 else "")


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
        """Its slot, and what it is multiplied by when it is written there."""
        group = self._of[signal]
        return group.slot, group.signals[signal]

    def read(self, form: Form) -> dict[int, float]:
        """A form as coefficients of slots."""
        found: dict[int, float] = {}
        for signal, coefficient in form.terms.items():
            slot, scale = self.of(signal)
            # Signals of one group have one ratio of coefficient to scale: read the slot once.
            found[slot] = coefficient / scale
        return found

    def labels(self) -> list[str]:
        """What each slot holds, in the order of time."""
        held: list[list[str]] = [[] for _ in range(self.size)]
        for group in sorted(self.groups, key=lambda g: g.first):
            held[group.slot].append(group.label)
        return [" → ".join(names) for names in held]


def slots(network: Network, depth: int) -> Slots:
    """A slot for every signal that is read."""
    groups = _groups(network, depth)
    return _assigned(groups)


def _reads(network: Network, depth: int) -> Iterator[tuple[Form, int]]:
    """Every form that is read, and when."""
    for head in network.heads:
        forms = [*head.queries, *head.keys, *(v.form for v in head.values)]
        if head.sink != "none":
            forms.append(head.offset)
        for form in forms:
            yield form, head.time
    for unit in network.units:
        for form in unit.forms:
            yield form, unit.time
    if network.one is not None:
        yield Form({network.one: 1.0}), 2 * depth
    yield network.output, 2 * depth + 1


def _groups(network: Network, depth: int) -> list[Group]:
    uses: dict[Signal, dict[int, float]] = {}
    last: dict[Signal, int] = {}
    numbered: dict[object, int] = {}
    for form, time in _reads(network, depth):
        number = numbered.setdefault(form.key, len(numbered))
        for signal, coefficient in form.terms.items():
            uses.setdefault(signal, {})[number] = coefficient
            last[signal] = max(last.get(signal, 0), time)
    together: dict[object, dict[Signal, float]] = {}
    for signal, use in uses.items():
        scale = next(iter(use.values()))
        ratios = frozenset((number, c / scale) for number, c in use.items())
        together.setdefault(ratios, {})[signal] = scale
    groups = []
    for signals in together.values():
        # Scales are relative: a signal alone is written as it is.
        unit = next(iter(signals.values()))
        relative = {signal: scale / unit for signal, scale in signals.items()}
        first = min(signal.time for signal in signals)
        groups.append(Group(relative, first, max(last[signal] for signal in signals)))
    return groups


def _assigned(groups: list[Group]) -> Slots:
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
        # The first feed-forward at or after the last read erases; what it erases is free behind it.
        erasing = group.last + group.last % 2
        heapq.heappush(waiting, (erasing, group.slot))
    return Slots(groups, max(size, 1), erased)
