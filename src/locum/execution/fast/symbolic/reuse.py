"""Keep lowered buffers, so that programs that share s-ops lower these once.

What a buffer is lowered to depends on the s-op, on the positions that are read, on the length of the
sequence, and on which of the nodes that lowering comes across are held in buffers of their own. All
but the last make up the key; what was asked of the last is kept beside the result, and the result is
used where the answers would be the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from locum.execution.fast.symbolic.affine import Affine, Box
from locum.execution.fast.symbolic.terms import Sum
from locum.graph import Node
from locum.shared_state import BoundedCache

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


#: A node, the first position that is read, the end of these, the length of the sequence, and whether
#: arithmetic is IEEE 754's.
Key: TypeAlias = tuple[Node, int, int, int, bool]

#: How many results are kept for each key.
_KEPT_EACH = 4


@dataclass(frozen=True)
class Piece:
    """A box of positions of a buffer, and its value there."""

    box: Box
    heads: tuple[Affine, ...]
    position: Affine
    terms: Sum


@dataclass(frozen=True)
class LoweredBuffer:
    """A lowered buffer, and what that depends on."""

    key: Key
    pieces: list[Piece]
    #: The nodes that were lowered on the way.
    inlined: frozenset[Node]
    #: Nodes that had to be held, or not, for lowering to go this way.
    held: frozenset[Node]
    not_held: frozenset[Node]
    #: Nodes that it designated: they are buffers of their own from then on.
    designated: frozenset[Node]

    @classmethod
    def of(
        cls, key: Key, pieces: list[Piece], inlined: frozenset[Node], buffers: Buffers
    ) -> LoweredBuffer:
        """Return the buffer that was just lowered."""
        asked = buffers.asked.items()
        held = frozenset(node for node, answer in asked if answer and not is_input(node))
        not_held = frozenset(node for node, answer in asked if answer is False)
        return cls(key, pieces, inlined, held, not_held, frozenset(buffers.added))

    def still_holds(self, key: Key, buffers: Buffers) -> bool:
        """Return whether nothing that it depends on has changed since an earlier pass."""
        taken = self.inlined.isdisjoint(buffers.designated) and self.inlined.isdisjoint(buffers.opaque)
        return self.key == key and taken

    def fits(self, buffers: Buffers) -> bool:
        """Return whether lowering anew would go the same way."""
        buffered = buffers.designated.union(buffers.opaque)
        return self.held <= buffered and self.not_held.isdisjoint(buffered)


_lowered = BoundedCache[list[LoweredBuffer]](1_024)


def find_or_lower(key: Key, buffers: Buffers, lower: Callable[[], LoweredBuffer]) -> LoweredBuffer:
    """Return the buffer as some program lowered it, if this one would do the same; or lower it."""
    for entry in _lowered.get(key) or ():
        if entry.fits(buffers):
            buffers.designated |= entry.designated
            return entry
    lowered = lower()
    _lowered.put(key, [lowered, *(_lowered.get(key) or ())][:_KEPT_EACH])
    return lowered


def clear_lowered() -> None:
    """Drop all lowered buffers."""
    _lowered.clear()
