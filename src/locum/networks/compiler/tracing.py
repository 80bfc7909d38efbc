"""Say which node of a program each slot and each head of its network is there for.

By the identity of nodes, not by labels: a name that is set again, or that occurs in an expression, says
nothing about what a slot holds.

>>> from locum import select, selector_width, tokens
>>> alike = selector_width(select(tokens, tokens, "=="))
>>> model, trace = compile_traced(alike, length=4, vocabulary="ab")
>>> [node.op for head in trace.heads[0] for node in head]
['select', 'selector_width']
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from locum.graph import Node, abbreviate
from locum.graph.node import HasNode, node_of
from locum.networks.compiler.compiling import Made, make
from locum.networks.compiler.network.network import Head
from locum.networks.compiler.network.roles import Role
from locum.networks.compiler.program.normalise import Origins
from locum.networks.compiler.target import Target
from locum.networks.transformer import CompiledTransformer


@dataclass(frozen=True)
class Held:
    """What a slot holds from a sublayer on, and the nodes of the program that it is there for."""

    first: int
    nodes: tuple[Node, ...]


@dataclass(frozen=True)
class Trace:
    """Slots and heads of a network, each with nodes of its program."""

    #: For each slot (but for the mark of the sink) what it holds, one after the other.
    slots: tuple[tuple[Held, ...], ...]
    #: For each layer and head its selectors, and what it gives by them.
    heads: tuple[tuple[tuple[Node, ...], ...], ...]

    def held(self, slot: int, first: int, until: int) -> tuple[Node, ...]:
        """Return the nodes of what a slot holds from when it is written until it is erased."""
        if slot >= len(self.slots):
            return ()
        earlier = [held for held in self.slots[slot] if held.first <= first]
        later = [held for held in self.slots[slot] if first < held.first < until]
        return tuple(dict.fromkeys(node for held in (*earlier[-1:], *later) for node in held.nodes))


def compile_traced(
    source: Node | HasNode,
    *,
    name: str | None = None,
    names: Mapping[Node, str] | None = None,
    **options: Any,
) -> tuple[CompiledTransformer, Trace]:
    """Compile as ``locum.compile`` does; return the network, and what its parts are there for."""
    root = node_of(source)
    origins = Origins(root)
    made = make(Target.read(**options), root, name or abbreviate(root), names=names, origins=origins)
    return made.model, _Tracing(made, origins).trace()


class _Tracing:
    """The origins of all that the network was made of."""

    def __init__(self, made: Made, origins: Origins) -> None:
        self.lowered, self.slots = made.lowered, made.slots
        self.origins = origins
        #: Helpers that stages made by themselves, with the origins of those for whom they were made.
        self._helpers: dict[Node, dict[Node, None]] = {}
        roles = self.lowered.roles
        for node in reversed(self.lowered.schedule.order):
            selector = self._selector(node)
            scored = set()
            if selector is not None:
                scored = set(roles.known.selectors.scores(selector).nodes)
                self._help(scored, self._of(selector) or self._of(node))
            self._help(set(roles.reads(node)) - scored, self._of(node))
            if roles.of(node) is Role.COUNT:  # of 1/length, say, a head computes what is counted
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

    def trace(self) -> Trace:
        network = self.lowered.network
        held = {unit.into: unit.node for unit in network.units} | dict(self.lowered.holds)
        slots: list[list[Held]] = [[] for _ in range(self.slots.size)]
        for group in sorted(self.slots.groups, key=lambda group: group.first):
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
