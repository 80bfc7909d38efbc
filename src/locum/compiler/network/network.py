"""The network before it has weights: heads and units that read forms and write signals.

``lowering.py`` makes it; ``slots.py`` gives its signals places, ``fitting.py`` its gates units and its
heads temperatures, ``assemble.py`` all of it weights. Time runs in sublayers: 0 is the embedding, 2l−1
the attention of layer l, 2l its feed-forward.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from locum.compiler.network.forms import Form, Signal
from locum.compiler.network.gates import Gate
from locum.graph import Node

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
    #: What it is where feed-forwards have units of one kind (``gates.py``); None: any function.
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
