"""Represent a network without weights: heads and units that read forms and write signals.

``network_lowering.py`` makes the network. ``schedule`` assigns sublayers, and ``lay_out`` assigns slots
of the residual stream. ``fitting.py`` chooses hidden units and temperatures, and ``assemble.py``
creates the weights. Sublayer 0 is the embedding, 2l−1 is the attention of layer l, and 2l is its
feed-forward.
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

#: The role of the sink in a head: the sink is not used, is selected if no key is selected, or is
#: selected together with the keys, in a tie.
NO_SINK, LOSING_SINK, TIED_SINK = "none", "losing", "tied"


@dataclass(frozen=True, eq=False)
class Head:
    """One head: its scores, and the values that it moves."""

    label: str
    time: int
    queries: tuple[Form, ...]
    keys: tuple[Form, ...]
    #: The part of the score that depends only on the query. For a selected key of a hard head without
    #: ``best``, Σ query·key is minus this part.
    offset: Form
    sink: str
    #: A lower bound on the difference between the scores of selected keys and other keys, including the
    #: sink if it is not selected.
    gap: float
    #: "hard", or "softmax" for a head whose attention weights are the softmax of its scores.
    kind: str = "hard"
    values: tuple[Value, ...] = ()
    #: The selector of the head, and descriptions of the scores that express it.
    selector: Node | None = None
    how: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Value:
    """A value that a head moves: a form that is written to the signal ``into``.

    At the sink, the head reads ``at_sink`` instead of the form.
    """

    form: Form
    into: Signal
    at_sink: float
    #: Whether the value is 1 at the sink and 0 elsewhere, so that the head writes the attention weight
    #: of the sink.
    share: bool = False


@dataclass(frozen=True, eq=False)
class Unit:
    """An s-op that the feed-forward at ``time`` computes and writes to the signal ``into``."""

    node: Node
    into: Signal
    time: int
    #: For symbolic feed-forwards: the s-ops that are read to compute ``node``, as forms.
    reads: Mapping[Node, Form] = field(default_factory=dict)
    #: The gate that hidden units compute (``forms.py``); None for symbolic feed-forwards.
    gate: Gate | None = None

    @property
    def forms(self) -> tuple[Form, ...]:
        """The forms that the unit reads."""
        return tuple(self.reads.values()) if self.gate is None else self.gate.arguments


@dataclass(frozen=True)
class Network:
    """The heads and units of a network, before slots are assigned."""

    heads: tuple[Head, ...]
    units: tuple[Unit, ...]
    output: Form
    #: Whether a sink precedes the input.
    sink: bool
    #: A signal that is 1 at every position, for gated units, whose gates have no biases.
    one: Signal | None = None

    def reads(self) -> Iterator[tuple[Form, int]]:
        """Yield every form that is read, with the sublayer that reads it.

        The output is read one sublayer after the last layer.
        """
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
        """Return the heads and units in the order of their sublayers."""
        return sorted([*self.heads, *self.units], key=lambda step: step.time)

    def without_unread(self) -> Network:
        """Return the network without parts that nothing reads, such as x·0."""
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
        """Number of layers, up to the last layer with a head or unit."""
        return (max((step.time for step in self.steps()), default=0) + 1) // 2

    def head_labels(self) -> tuple[tuple[str, ...], ...]:
        """Return the labels of the heads in each layer."""
        return tuple(
            tuple(head.label for head in self.heads if head.time == 2 * layer - 1)
            for layer in range(1, self.layers + 1)
        )


_ATTENTION = (Role.AGGREGATE, Role.COUNT)
_COMPUTED = (Role.COUNT, Role.FUNCTION, Role.TABLE)

EVERYWHERE = everywhere()


@dataclass(frozen=True)
class Schedule:
    """The sublayer that completes each s-op, and the sublayer of each head."""

    order: list[Node]
    #: For each s-op, the sublayer that completes it in the residual stream.
    ready: dict[Node, int]
    #: The attention sublayer of each s-op that a head computes.
    heads: dict[Node, int]

    @property
    def layers(self) -> int:
        """Number of layers until all s-ops are in the residual stream."""
        return (max(self.ready.values()) + 1) // 2


def schedule(root: Node, roles: Roles) -> Schedule:
    """Return a schedule of a program such that the number of layers is as small as possible."""
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
    """The assignment of heads to sublayers.

    Heads are distributed about evenly, but heads of one selector usually share a sublayer if their
    times allow this.
    """

    def __init__(self, windows: dict[Node, tuple[int, int]], roles: Roles) -> None:
        self.windows = windows
        self.roles = roles
        self.waiting: dict[Node, list[Node]] = {}
        self.crowd: dict[int, set[Node]] = {}
        for node in windows:
            self.waiting.setdefault(self._selector(node), []).append(node)

    def place(self, node: Node, earliest: int) -> int:
        """Return the sublayer of a head, at or after ``earliest``."""
        selector = self._selector(node)
        first, last = earliest, max(earliest, self.windows[node][1])
        for time in range(first, last + 1, 2):
            if selector in self.crowd.get(time, ()):
                return time
        # If possible, restrict the sublayer to the windows of other heads of the selector that are not
        # placed yet.
        self.waiting[selector].remove(node)
        for begin, end in sorted((self.windows[n] for n in self.waiting[selector]), key=lambda w: w[1]):
            if max(first, begin) <= min(last, end):
                first, last = max(first, begin), min(last, end)
        time = min(range(first, last + 1, 2), key=lambda time: (len(self.crowd.get(time, ())), time))
        self.crowd.setdefault(time, set()).add(selector)
        return time

    def _selector(self, node: Node) -> Node:
        """Return the selector of the head that computes a node.

        The length is counted by a head that attends everywhere.
        """
        attending = self.roles.counted(node)
        return attending.inputs[0] if attending.inputs else EVERYWHERE


class _Times:
    """The sublayers of s-ops, computed from the sublayers of their inputs."""

    def __init__(self, roles: Roles) -> None:
        self.roles = roles
        #: For each s-op, the sublayer at which all operands of its expression are available, if one
        #: feed-forward computes nested functions.
        self.base: dict[Node, int] = {}
        self.ready: dict[Node, int] = {}
        self.heads: dict[Node, int] = {}

    def attention(self, node: Node) -> int:
        """Return the first attention sublayer in which the head of a node can run."""
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
    """Return, for each head, the last sublayer that does not increase the depth of the network."""
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
                limit = deadline  # the same feed-forward computes it
            by[below] = min(by.get(below, depth), limit)
    return heads


@dataclass
class Group:
    """Signals that share a slot; each signal is multiplied by a scale when it is written."""

    signals: dict[Signal, float]
    #: The first sublayer that writes one of the signals, and the last sublayer that reads one of them.
    first: int
    last: int
    slot: int = -1

    @property
    def label(self) -> str:
        """The different labels of the signals, joined by " + "."""
        return " + ".join(dict.fromkeys(signal.label for signal in self.signals))


@dataclass
class Slots:
    """The assignment of signals to slots of the residual stream."""

    groups: list[Group]
    size: int
    #: For each feed-forward sublayer, the slots that it erases.
    erased: dict[int, list[int]] = field(default_factory=dict)
    _of: dict[Signal, Group] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._of = {signal: group for group in self.groups for signal in group.signals}

    def of(self, signal: Signal) -> tuple[int, float]:
        """Return the slot of a signal, and the factor that multiplies the signal when it is written."""
        group = self._of[signal]
        return group.slot, group.signals[signal]

    def read(self, form: Form) -> dict[int, float]:
        """Return a form as coefficients of slots."""
        coefficients: dict[int, float] = {}
        for signal, coefficient in form.terms.items():
            slot, scale = self.of(signal)
            # All signals of a group have the same ratio of coefficient to scale, so the slot is read
            # only once. A signal with scale 1 is preferred, since other quotients may be rounded.
            if scale == 1 or slot not in coefficients:
                coefficients[slot] = coefficient / scale
        return coefficients

    def labels(self) -> list[str]:
        """Return the successive contents of each slot, as one label per slot."""
        held: list[list[str]] = [[] for _ in range(self.size)]
        for group in sorted(self.groups, key=lambda g: g.first):
            held[group.slot].append(group.label)
        return [" → ".join(names) for names in held]


def lay_out(network: Network, dtype: str, *, reuse: bool = True) -> Slots:
    """Assign a slot to every signal that is read; without ``reuse``, no slot is used again later."""
    groups = _groups(network, _room(network, dtype), _summed_exactly(network, dtype))
    every = {signal for group in groups for signal in group.signals}
    return _assigned(groups, _left_at_sink(network, dtype) if reuse else every)


def _room(network: Network, dtype: str) -> dict[Signal, float]:
    """Return how often signals with large constants may be added to one slot.

    :class:`Snap` writes (x + C) − C, so the sum of the constants C must remain an integer that the type
    represents exactly.
    """
    large, _ = SNAP[dtype]
    times = EXACT_WHOLE[dtype] // (4 * large)
    return {unit.into: times for unit in network.units if isinstance(unit.gate, Snap)}


def _summed_exactly(network: Network, dtype: str) -> set[Signal]:
    """Return the signals whose hidden units add short binary numbers, possibly large.

    The numbers are multiples of one power of two. A sum with another number, such as 0.1, would be
    rounded, so these signals share no slots with other signals.
    """
    return {
        unit.into
        for unit in network.units
        if isinstance(unit.gate, Snap)
        or (isinstance(unit.gate, Table) and _exact_table(unit.gate, dtype))
    }


def _exact_table(gate: Table, dtype: str) -> bool:
    """Return whether the keys and values of a table are short binary numbers.

    The keys are not restricted if the argument is rounded to a grid.
    """
    return dyadic(gate.values, dtype) and (gate.gridded or dyadic(gate.keys, dtype))


def _left_at_sink(network: Network, dtype: str) -> set[Signal]:
    """Return the signals whose slots must not be reused, since the sink keeps a rounded number.

    Symbolic feed-forwards do not erase slots at the sink. Heads and units that read a slot subtract its
    known value at the sink, and scores must be exact.
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
    """Yield groups of signals in which every scale is an integer multiple of the smallest scale.

    Scales are divided by the smallest one. Other ratios, such as 1/3, would round numbers that are
    compared and must be exact. ``room`` limits the scales of some signals in one slot.
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
    free: list[tuple[int, int]] = []  # (time, slot)
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
        # If the slot is reused, the first feed-forward at or after the last read erases the slot.
        erasing = group.last + group.last % 2
        heapq.heappush(waiting, (erasing, group.slot))
    return Slots(groups, max(size, 1), erased)
