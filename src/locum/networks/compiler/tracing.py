"""Find the nodes of the program that each slot and each head of a network implements.

Nodes are compared by identity, not by label, since several nodes may have the same label.

>>> from locum import select, selector_width, tokens
>>> from locum.networks.compiler.compiling import compile_traced
>>> alike = selector_width(select(tokens, tokens, "=="))
>>> model, trace = compile_traced(alike, length=4, vocabulary="ab")
>>> [node.op for head in trace.heads[0] for node in head]
['select', 'selector_width']
"""

from __future__ import annotations

from dataclasses import dataclass

from locum.graph import Node
from locum.graph.fingerprints import fingerprints
from locum.networks.compiler.network.network import Head, Slots
from locum.networks.compiler.network.network_lowering import Lowered
from locum.networks.compiler.network.roles import Role
from locum.networks.compiler.program.normalise import Origins


@dataclass(frozen=True)
class Held:
    """The contents of a slot from sublayer ``first`` on, as nodes of the program."""

    first: int
    nodes: tuple[Node, ...]


@dataclass(frozen=True)
class Trace:
    """The nodes of the program that the slots and heads of a network implement."""

    #: The successive contents of each slot, except the slot that marks the sink.
    slots: tuple[tuple[Held, ...], ...]
    #: For each layer and each head: its selectors, and the s-ops that it computes with them.
    heads: tuple[tuple[tuple[Node, ...], ...], ...]

    def held(self, slot: int, first: int, until: int) -> tuple[Node, ...]:
        """Return the latest nodes written to a slot up to sublayer ``first``, and later ones before
        sublayer ``until``.
        """
        if slot >= len(self.slots):
            return ()
        earlier = [held for held in self.slots[slot] if held.first <= first]
        later = [held for held in self.slots[slot] if first < held.first < until]
        return tuple(dict.fromkeys(node for held in (*earlier[-1:], *later) for node in held.nodes))


class Tracing:
    """The nodes of the program for which each part of a network was made."""

    def __init__(self, lowered: Lowered, origins: Origins) -> None:
        self.lowered, self.origins = lowered, origins
        #: S-ops that a stage added, each with the nodes of the program for which it was added.
        self._helpers: dict[Node, dict[Node, None]] = {}
        roles = self.lowered.roles
        for node in reversed(self.lowered.schedule.order):
            selector = self._selector(node)
            scored = set()
            if selector is not None:
                scored = set(roles.known.selectors.scores(selector).nodes)
                self._help(scored, self._of(selector) or self._of(node))
            self._help(set(roles.reads(node)) - scored, self._of(node))
            if roles.of(node) is Role.COUNT:  # a head computes the count, for example for 1/length
                self._help({roles.counted(node)}, self._of(node))

    def _selector(self, node: Node) -> Node | None:
        roles = self.lowered.roles
        if roles.of(node) not in (Role.AGGREGATE, Role.COUNT):
            return None
        attending = roles.counted(node)
        return None if attending.op == "length" else attending.inputs[0]

    def _help(self, nodes: set[Node], origins: tuple[Node, ...]) -> None:
        for node in nodes:
            if self.origins.of(node) is None:
                self._helpers.setdefault(node, {}).update(dict.fromkeys(origins))

    def _of(self, node: Node) -> tuple[Node, ...]:
        origin = self.origins.of(node)
        return tuple(self._helpers.get(node, ())) if origin is None else (origin,)

    def made_for(self, root: Node) -> dict[Node, tuple[str, ...]]:
        """Return a mapping from parts of the network to the s-ops of the program for which they were
        made.

        S-ops are given by their fingerprints, and ``root`` is the program. Only s-ops without a
        separate part of the network are listed. The compiler rewrote these s-ops, or they are linear
        combinations of parts.
        """
        lowered, names = self.lowered, fingerprints(root)
        held = {unit.node for unit in lowered.network.units} | set(lowered.holds.values())
        held.update(node for nodes in lowered.embeds.values() for node in nodes)
        found: dict[Node, dict[str, None]] = {}
        for node in lowered.schedule.order:
            origins = self.origins.of_all(node) or self._of(node)
            missing = [names[n] for n in origins if n not in held and n in names]
            for part in self._combined(node, held) if missing else ():
                found.setdefault(part, {}).update(dict.fromkeys(missing))
        return {part: tuple(missing) for part, missing in found.items()}

    def _combined(self, node: Node, held: set[Node]) -> list[Node]:
        """Return the parts of the network, ``held``, that an s-op combines linearly.

        An s-op that is itself a part is returned alone.
        """
        stack, seen, parts = [node], {node}, []
        while stack:
            each = stack.pop()
            if each in held:
                parts.append(each)
            elif self.lowered.roles.of(each) is Role.LINEAR:
                below = [n for n in self.lowered.roles.reads(each) if n not in seen]
                seen.update(below)
                stack += below
        return parts

    def trace(self, of_slots: Slots) -> Trace:
        """Return the nodes of the program that the slots and heads of the network implement."""
        network = self.lowered.network
        held = {unit.into: unit.node for unit in network.units} | dict(self.lowered.holds)
        slots: list[list[Held]] = [[] for _ in range(of_slots.size)]
        for group in sorted(of_slots.groups, key=lambda group: group.first):
            nodes: dict[Node, None] = {}
            for signal in group.signals:
                for node in (*self.lowered.embeds.get(signal, ()), *filter(None, [held.get(signal)])):
                    nodes.update(dict.fromkeys(self._of(node)))
            slots[group.slot].append(Held(group.first, tuple(nodes)))
        heads = tuple(
            tuple(self._head(head) for head in network.heads if head.time == 2 * layer - 1)
            for layer in range(1, network.layers + 1)
        )
        return Trace(tuple(map(tuple, slots)), heads)

    def _head(self, head: Head) -> tuple[Node, ...]:
        moved = [self.lowered.holds[value.into] for value in head.values]
        selectors = [node.inputs[0] for node in moved if node.op in ("aggregate", "selector_width")]
        return tuple(dict.fromkeys(node for each in (*selectors, *moved) for node in self._of(each)))
