"""Record which nodes have arrays of their own while a program is lowered."""

from __future__ import annotations

from dataclasses import dataclass, field

from locum.graph import Node

#: What may turn out to be a view of something else or a product of views, with no array of its own.
_VIEWS = ("tokens", "aggregate", "if_else", "multiply", "negate", "divide")


@dataclass
class Buffers:
    """Nodes with arrays of their own: determined while lowering, kept from pass to pass."""

    length: int
    #: Nodes made of tokens, of positions, of attention.
    data: frozenset[Node]
    positional: frozenset[Node]
    attentive: frozenset[Node]
    #: Nodes of booleans, whose mean RASP refuses.
    boolean: frozenset[Node]
    #: Whether arithmetic on data is IEEE 754's, operation by operation.
    ieee: bool = False
    #: Computed once, loaded wherever they are used.
    designated: set[Node] = field(default_factory=set)
    #: Those of them that lowering cannot express, and why.
    opaque: dict[Node, str] = field(default_factory=dict)
    #: What lowering the buffer at hand has asked: whether nodes were held when it met them first (None:
    #: it had designated them before), and which it has designated.
    asked: dict[Node, bool | None] = field(default_factory=dict)
    added: set[Node] = field(default_factory=set)

    def holds(self, node: Node) -> bool:
        """Return whether a node has an array of its own, or is the input as it is."""
        held = node in self.designated or node in self.opaque or is_input(node)
        self.asked.setdefault(node, held)
        return held

    def designate(self, node: Node) -> None:
        """Give a node an array of its own."""
        self.asked.setdefault(node, None)
        self.added.add(node)
        self.designated.add(node)


def is_input(node: Node) -> bool:
    """Return whether a node is the tokens themselves (numbers: ``float`` changes nothing)."""
    return node.op == "tokens" and node.cast in ("asis", "float")


def ordered(node: Node) -> list[Node]:
    """List the free families of a node in a fixed order."""
    free = node.free
    return sorted(free, key=lambda f: f.name) if len(free) > 1 else list(free)


def may_be_looked_up(node: Node) -> bool:
    """Return whether a value may be a view, and is worth lowering: not if it is plainly computed."""
    return node.op in _VIEWS and not any(i.op == "sum_over" for i in node.inputs)
