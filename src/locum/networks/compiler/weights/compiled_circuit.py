"""Describe a compiled network as a circuit of nodes and edges.

Nodes are embedding columns, heads and their parts, units, slots and the output. An edge connects a
node that writes a signal with a node that reads it. Operations that erase slots or mark the sink are
omitted, since they are not part of the computation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from locum.graph import Node
from locum.graph.fingerprints import fingerprints
from locum.networks.compiler.network.forms import Form, Signal, Snap
from locum.networks.compiler.network.network import NO_SINK, Group, Head, Slots, Unit, Value
from locum.networks.compiler.network.network_lowering import Lowered
from locum.networks.compiler.network.roles import Role
from locum.networks.compiler.units.hidden import Hidden
from locum.networks.transformer.circuit import Circuit, CircuitEdge, CircuitNode
from locum.networks.transformer.path_patching import UNEMBED

OUTPUT = "output"


def circuit(
    lowered: Lowered,
    slots: Slots,
    hidden: Mapping[Unit, Hidden],
    places: Mapping[Value, tuple[int, ...]],
    made_for: Mapping[Node, tuple[str, ...]],
) -> Circuit:
    """Return the circuit of a network.

    ``places`` maps each value to the dimensions of its head that contain the value. ``made_for``
    contains fingerprints of s-ops that the network represents only through parts made for them.
    """
    return _Drawing(lowered, slots, hidden, places, made_for).circuit()


@dataclass
class _Drawing:
    lowered: Lowered
    slots: Slots
    hidden: Mapping[Unit, Hidden]
    places: Mapping[Value, tuple[int, ...]]
    made_for: Mapping[Node, tuple[str, ...]]

    def __post_init__(self) -> None:
        self.network = self.lowered.network
        embedded = (node for nodes in self.lowered.embeds.values() for node in nodes)
        self.names = fingerprints(*self.lowered.holds.values(), *embedded)
        self.passed = passed_by(self.lowered)
        self.nodes: dict[str, CircuitNode] = {}
        self.writers: dict[Signal, str] = {}
        self.edges: dict[tuple[str, str, int], CircuitEdge] = {}

    def circuit(self) -> Circuit:
        for group in self.slots.groups:
            self._embedded(group)
        for layer in range(self.network.layers):
            heads = [head for head in self.network.heads if head.time == 2 * layer + 1]
            for number, head in enumerate(heads):
                self._head(head, layer, number)
            self._units([unit for unit in self.network.units if unit.time == 2 * layer + 2], layer)
        self._add(CircuitNode(OUTPUT, "output", UNEMBED, label="output", role="read off"))
        self._reads(self.network.output, OUTPUT)
        for group in self.slots.groups:
            self._slot(group)
        return Circuit(tuple(self.nodes.values()), tuple(self.edges.values()))

    def _add(self, node: CircuitNode) -> None:
        self.nodes[node.id] = node

    def _embedded(self, group: Group) -> None:
        """Add nodes for the tokens and the positions that are embedded in a slot."""
        for signal in group.signals:
            for kind, vector in (("embed", signal.tokens), ("pos_embed", signal.positions)):
                if vector is None or signal is self.network.one:
                    continue
                name = f"{kind}.{group.slot}"
                before = self.nodes[name].label + " + " if name in self.nodes else ""
                embeds = self.nodes[name].embeds if name in self.nodes else ()
                embedded = self.lowered.embeds.get(signal, ())
                embeds += tuple(self.names[node] for node in embedded)
                made_for = self.nodes[name].made_for if name in self.nodes else ()
                made_for += tuple(sop for node in embedded for sop in self._made_for(node))
                self._add(
                    CircuitNode(
                        name,
                        kind,
                        f"hook_{kind}",
                        slots=(group.slot,),
                        label=before + signal.label,
                        embeds=tuple(dict.fromkeys(embeds)),
                        made_for=tuple(dict.fromkeys(made_for)),
                        role="embed a token" if kind == "embed" else "embed a position",
                    )
                )
                self.writers[signal] = name

    def _head(self, head: Head, layer: int, number: int) -> None:
        name = f"blocks.{layer}.attn.head.{number}"
        hook = f"blocks.{layer}.attn.hook_"
        role = "count keys" if any(value.share for value in head.values) else "move values"
        self._add(CircuitNode(name, "head", f"{hook}z", layer, number, label=head.label, role=role))
        for letter, what in (("q", "queries"), ("k", "keys"), ("v", "values")):
            self._add(
                CircuitNode(
                    f"{name}.{letter}",
                    letter,
                    hook + letter,
                    layer,
                    number,
                    label=head.label,
                    role=what,
                )
            )
        for query, key in zip(head.queries, head.keys, strict=True):
            self._reads(query, f"{name}.q")
            self._reads(key, f"{name}.k")
        if head.sink != NO_SINK:
            self._reads(head.offset, f"{name}.q")
        for place, value in enumerate(head.values):
            self._reads(value.form, f"{name}.v")
            slot, _ = self.slots.of(value.into)
            writer = f"{name}.o.{place}"
            self._add(
                CircuitNode(
                    writer,
                    "o",
                    f"{hook}z",
                    layer,
                    number,
                    self.places[value],
                    (slot,),
                    value.into.label,
                    self._sop(value.into),
                    role,
                    self._passed(value.into, share=value.share),
                    made_for=self._made_for(self.lowered.holds.get(value.into)),
                )
            )
            self.writers[value.into] = writer

    def _units(self, units: list[Unit], layer: int) -> None:
        start = 0
        for number, unit in enumerate(units):
            size = self.hidden[unit].size if unit in self.hidden else 1
            name = f"blocks.{layer}.mlp.units.{number}"
            slot, _ = self.slots.of(unit.into)
            kind = type(unit.gate).__name__.lower() if unit.gate is not None else "function"
            rounds = isinstance(unit.gate, Snap) and unit.gate.whole
            self._add(
                CircuitNode(
                    name,
                    "units",
                    f"blocks.{layer}.mlp.hook_post",
                    layer,
                    places=tuple(range(start, start + size)),
                    slots=(slot,),
                    label=unit.into.label,
                    sop=self._sop(unit.into),
                    role="round" if rounds else f"compute ({kind})",
                    passed_by=self._passed(unit.into),
                    made_for=self._made_for(unit.node),
                )
            )
            start += size
            for form in unit.forms:
                self._reads(form, name)
            self.writers[unit.into] = name

    def _slot(self, group: Group) -> None:
        """Add a node for the signals that share a slot, from the first write to the last read."""
        written = (group.first + 1) // 2 - 1
        hook = "blocks.0.hook_resid_pre" if group.first == 0 else f"blocks.{written}.hook_resid_post"
        last = min((group.last + 1) // 2, self.network.layers) - 1
        self._add(
            CircuitNode(
                f"slot.{group.slot}.{group.first}",
                "slot",
                hook,
                max(written, 0),
                slots=(group.slot,),
                label=group.label,
                role=f"hold up to blocks.{max(last, 0)}",
            )
        )

    def _reads(self, form: Form, target: str) -> None:
        for signal in form.terms:
            source = self.writers.get(signal)
            if source is None:
                continue
            slot, _ = self.slots.of(signal)
            label = self.nodes[source].label if "embed" in source else signal.label
            self.edges[source, target, slot] = CircuitEdge(source, target, slot, label)

    def _passed(self, signal: Signal, *, share: bool = False) -> tuple[str, ...]:
        node = self.lowered.holds.get(signal)
        by = () if node is None else self.passed.get((node, share), ())
        return tuple(map(self.lowered.label, by))

    def _made_for(self, node: Node | None) -> tuple[str, ...]:
        return () if node is None else self.made_for.get(node, ())

    def _sop(self, signal: Signal) -> str:
        node = self.lowered.holds.get(signal)
        return "" if node is None else self.names[node]


def passed_by(lowered: Lowered) -> dict[tuple[Node, bool], list[Node]]:
    """Return the s-ops that bypass each s-op, and the s-ops that bypass its share of attention.

    An s-op bypasses the intermediate s-ops of its expression, between itself and the s-ops that the
    network reads to compute it. The network may then compute the s-op independently of the parts that
    compute the intermediate s-ops. The keys of the result are pairs of an s-op and a boolean, which is
    true for the share of attention.
    """
    roles, readers = lowered.roles, dict[tuple[Node, bool], list[Node]]()
    for node in lowered.schedule.order:
        if roles.of(node) in (Role.POSITION, Role.TOKEN, Role.NUMBER):
            continue
        reads = set(roles.reads(node))
        shares = {roles.counted(read) for read in reads if roles.counted(read) is not read}
        stack, seen = [node], {node}
        while stack:
            for below in stack.pop().inputs:
                if below in seen or below in reads:
                    continue
                seen.add(below)
                readers.setdefault((below, False), []).append(node)
                if below not in shares:
                    readers.setdefault((below, True), []).append(node)
                    stack.append(below)
    return readers
