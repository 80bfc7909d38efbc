"""The network before it has weights: heads and units that read forms and write signals.

``network_lowering.py`` makes it, ``schedule`` assigns sublayers and ``lay_out`` slots of the residual
stream, ``fitting.py`` chooses units and temperatures, and ``assemble.py`` makes weights. Sublayer 0 is
the embedding, 2l−1 the attention of layer l, 2l its feed-forward.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

from locum.graph import Node
from locum.graph.definitions import everywhere
from locum.networks.compiler.compile_limits import check_time
from locum.networks.compiler.network.forms import SNAP, Form, Gate, Signal, Snap, Table, dyadic
from locum.networks.compiler.network.roles import Role, Roles, in_order
from locum.networks.compiler.target import EXACT_WHOLE

#: What a head does where its selector holds nowhere: cannot happen, take the sink, or count it in.
NO_SINK, LOSING_SINK, TIED_SINK = "none", "losing", "tied"


@dataclass(frozen=True, eq=False)
class Head:
    """One head: what it attends by, and what it moves."""

    label: str
    time: int
    queries: tuple[Form, ...]
    keys: tuple[Form, ...]
    #: Of the query alone: the sum of query·key over a selected key is minus this.
    offset: Form
    sink: str
    #: By how much a selected key beats any other, the sink included.
    gap: float
    #: "hard", or "softmax" for a head that is meant to weigh by its scores.
    kind: str = "hard"
    values: tuple[Value, ...] = ()
    #: The selector it stands for, and how it was realised.
    selector: Node | None = None
    how: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Value:
    """What a head moves: a form into a signal; at the sink it reads ``at_sink`` instead."""

    form: Form
    into: Signal
    at_sink: float
    #: Reads the mark of the sink itself: the share of attention that the sink gets.
    share: bool = False


@dataclass(frozen=True, eq=False)
class Unit:
    """An s-op that the feed-forward at ``time`` computes into a signal."""

    node: Node
    into: Signal
    time: int
    #: What it reads: the parts of ``node`` that are there already.
    reads: Mapping[Node, Form] = field(default_factory=dict)
    #: What it is where feed-forwards have units of one kind (``forms.py``); None: any function.
    gate: Gate | None = None

    @property
    def forms(self) -> tuple[Form, ...]:
        """What it reads, as forms."""
        return tuple(self.reads.values()) if self.gate is None else self.gate.arguments


@dataclass(frozen=True)
class Network:
    """Everything but the slots."""

    heads: tuple[Head, ...]
    units: tuple[Unit, ...]
    output: Form
    #: Whether a sink stands before the input.
    sink: bool
    #: A signal that is 1 at every position, where gates without biases need one.
    one: Signal | None = None

    def reads(self) -> Iterator[tuple[Form, int]]:
        """List every form that is read, and when; the output is read at the end of time."""
        for head in self.heads:
            forms = [*head.queries, *head.keys, *(value.form for value in head.values)]
            if head.sink != NO_SINK:
                forms.append(head.offset)
            for form in forms:
                yield form, head.time
        for unit in self.units:
            for form in unit.forms:
                yield form, unit.time
        if self.one is not None:
            yield Form({self.one: 1.0}), 2 * self.layers
        yield self.output, 2 * self.layers + 1

    def steps(self) -> list[Head | Unit]:
        """Return the heads and units in the order of time."""
        return sorted([*self.heads, *self.units], key=lambda step: step.time)

    def without_unread(self) -> Network:
        """Drop what nobody reads (x·0, say), and what only that had read."""
        read = {signal for form, _ in self.reads() for signal in form.terms}
        units = tuple(unit for unit in self.units if unit.into in read)
        heads = tuple(
            head
            if all(value.into in read for value in head.values)
            else replace(head, values=tuple(value for value in head.values if value.into in read))
            for head in self.heads
        )
        heads = tuple(head for head in heads if head.values)
        if units == self.units and heads == self.heads:
            return self
        return replace(self, heads=heads, units=units).without_unread()

    @property
    def layers(self) -> int:
        """How many: the last one that anything is done in."""
        return (max((step.time for step in self.steps()), default=0) + 1) // 2

    def head_labels(self) -> tuple[tuple[str, ...], ...]:
        """Return the labels of the heads of each layer."""
        return tuple(
            tuple(head.label for head in self.heads if head.time == 2 * layer - 1)
            for layer in range(1, self.layers + 1)
        )


_ATTENTION = (Role.AGGREGATE, Role.COUNT)
_COMPUTED = (Role.COUNT, Role.FUNCTION, Role.TABLE)

EVERYWHERE = everywhere()


@dataclass(frozen=True)
class Schedule:
    """When each s-op can be read, and in which sublayer each head runs."""

    order: list[Node]
    #: When it is in the residual stream.
    ready: dict[Node, int]
    #: The attention sublayer of each aggregate, width and length.
    heads: dict[Node, int]


def schedule(root: Node, roles: Roles) -> Schedule:
    """Schedule a program: the time of every s-op."""
    order = list(in_order(root, roles.reads))
    earliest = _Times(roles)
    for node in order:
        earliest.place(node, earliest.attention(node))
    depth = earliest.ready[root] + earliest.ready[root] % 2
    latest = _deadlines(order, roles, root, depth)
    windows = {node: (earliest.heads[node], late) for node, late in latest.items()}
    level = _Levelling(windows, roles)
    final = _Times(roles)
    for node in order:
        check_time(node)
        time = final.attention(node)
        if node in windows:
            time = level.place(node, time)
        final.place(node, time)
    return Schedule(order, final.ready, final.heads)


class _Levelling:
    """Heads into the sublayers with the fewest, but equal ones together where their times allow."""

    def __init__(self, windows: dict[Node, tuple[int, int]], roles: Roles) -> None:
        self.windows = windows
        self.roles = roles
        self.waiting: dict[Node, list[Node]] = {}
        self.crowd: dict[int, set[Node]] = {}
        for node in windows:
            self.waiting.setdefault(self._selector(node), []).append(node)

    def place(self, node: Node, earliest: int) -> int:
        """Return the sublayer for one head."""
        selector = self._selector(node)
        first, last = earliest, max(earliest, self.windows[node][1])
        for time in range(first, last + 1, 2):
            if selector in self.crowd.get(time, ()):
                return time
        # Where those that are still to come could join it.
        self.waiting[selector].remove(node)
        for begin, end in sorted((self.windows[n] for n in self.waiting[selector]), key=lambda w: w[1]):
            if max(first, begin) <= min(last, end):
                first, last = max(first, begin), min(last, end)
        time = min(range(first, last + 1, 2), key=lambda time: (len(self.crowd.get(time, ())), time))
        self.crowd.setdefault(time, set()).add(selector)
        return time

    def _selector(self, node: Node) -> Node:
        """Return what a head attends to; the length is counted by one that attends everywhere."""
        attending = self.roles.counted(node)
        return attending.inputs[0] if attending.inputs else EVERYWHERE


class _Times:
    """Times, given those of all that is read."""

    def __init__(self, roles: Roles) -> None:
        self.roles = roles
        #: When everything is there that it is computed from, functions in between left out.
        self.base: dict[Node, int] = {}
        self.ready: dict[Node, int] = {}
        self.heads: dict[Node, int] = {}

    def attention(self, node: Node) -> int:
        """Return the first attention sublayer that a head could run in."""
        below = max((self.ready[n] for n in self.roles.reads(node)), default=0)
        return below + 1 if below % 2 == 0 else below + 2

    def place(self, node: Node, attention: int) -> None:
        reads = self.roles.reads(node)
        match self.roles.of(node):
            case Role.POSITION | Role.TOKEN | Role.NUMBER:
                self.base[node] = self.ready[node] = 0
            case Role.LINEAR:
                self.base[node] = max(self.base[n] for n in reads)
                self.ready[node] = max(self.ready[n] for n in reads)
            case Role.AGGREGATE:
                self.base[node] = self.ready[node] = self.heads[node] = attention
            case Role.COUNT:
                self.base[node] = self.heads[node] = attention
                self.ready[node] = attention + self.roles.delay(node)
            case _:
                times = self.base if self.roles.fused else self.ready
                base = max((times[n] for n in reads), default=0)
                more = self.roles.delay(node) - 1
                self.base[node] = base if self.roles.fused else _feed_forward_after(base) + more
                self.ready[node] = _feed_forward_after(base) + more


def _feed_forward_after(time: int) -> int:
    return time + 1 if time % 2 else time + 2


def _deadlines(order: list[Node], roles: Roles, root: Node, depth: int) -> dict[Node, int]:
    """Return for each head the last sublayer that does not make the network deeper."""
    by: dict[Node, int] = {root: depth}
    heads: dict[Node, int] = {}
    for node in reversed(order):
        deadline = by.get(node, depth)
        role = roles.of(node)
        if role in _ATTENTION:
            late = deadline - roles.delay(node) if role is Role.COUNT else deadline
            heads[node] = late if late % 2 else late - 1
            allowed = heads[node] - 1
        elif role is Role.LINEAR:
            allowed = deadline
        else:
            deadline -= deadline % 2
            allowed = deadline - roles.delay(node)
        for below in roles.reads(node):
            limit = allowed
            if (
                roles.fused
                and role in (Role.FUNCTION, Role.TABLE)
                and roles.of(below) in (*_COMPUTED, Role.LINEAR)
            ):
                limit = deadline  # computed in the same feed-forward
            by[below] = min(by.get(below, depth), limit)
    return heads


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
