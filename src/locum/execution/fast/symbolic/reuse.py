"""Cache lowered buffers, so that programs with common s-ops lower these s-ops only once.

The result of lowering a buffer depends on the s-op, the needed positions, the length of the sequence,
and whether arithmetic is IEEE. These form the key of the cache. The result also depends on which nodes
have separate buffers. Lowering therefore records the nodes for which this was checked. A cached result
is reused if all these checks would have the same answers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from locum.execution.fast.symbolic.affine import Affine, Box
from locum.execution.fast.symbolic.terms import Sum
from locum.graph import Node
from locum.shared_state import BoundedCache

#: Operations that may be a view of other values, or a product of views, without a separate array.
_VIEWS = ("tokens", "aggregate", "if_else", "multiply", "negate", "divide")


@dataclass
class Buffers:
    """The nodes that have separate arrays; lowering determines them, and later passes reuse them."""

    length: int
    #: The nodes that depend on tokens, on positions, and on attention, respectively.
    data: frozenset[Node]
    positional: frozenset[Node]
    attentive: frozenset[Node]
    #: Boolean nodes. The mean of several booleans is an error in RASP.
    boolean: frozenset[Node]
    #: Whether arithmetic on data follows IEEE 754, operation by operation.
    ieee: bool = False
    #: Nodes that are computed once and loaded wherever they are used.
    designated: set[Node] = field(default_factory=set)
    #: Nodes that cannot be lowered, with the reasons. The structured tier runs them.
    opaque: dict[Node, str] = field(default_factory=dict)
    #: Records of lowering the current buffer: for each checked node, whether it had an array at its
    #: first check, or None if lowering designated it before; and the nodes that lowering designated.
    asked: dict[Node, bool | None] = field(default_factory=dict)
    added: set[Node] = field(default_factory=set)

    def holds(self, node: Node) -> bool:
        """Return whether a node has a separate array or is the unchanged input.

        The answer is recorded in ``asked``.
        """
        held = node in self.designated or node in self.opaque or is_input(node)
        self.asked.setdefault(node, held)
        return held

    def designate(self, node: Node) -> None:
        """Record that a node has a separate array."""
        self.asked.setdefault(node, None)
        self.added.add(node)
        self.designated.add(node)


def is_input(node: Node) -> bool:
    """Return whether a node is the unchanged tokens.

    For numbers, the cast ``float`` changes nothing.
    """
    return node.op == "tokens" and node.cast in ("asis", "float")


def ordered(node: Node) -> list[Node]:
    """Return the free families of a node, sorted by name."""
    free = node.free
    return sorted(free, key=lambda f: f.name) if len(free) > 1 else list(free)


def may_be_looked_up(node: Node) -> bool:
    """Return whether a node may be a view of other values, so that lowering it is useful."""
    return node.op in _VIEWS and not any(i.op == "sum_over" for i in node.inputs)


#: A node, start and stop of the needed positions, the sequence length, and whether arithmetic is IEEE.
Key: TypeAlias = tuple[Node, int, int, int, bool]

#: Maximum number of results cached for each key.
_KEPT_EACH = 4


@dataclass(frozen=True)
class Piece:
    """A box of positions of a buffer, with the lowered value at these positions."""

    box: Box
    heads: tuple[Affine, ...]
    position: Affine
    terms: Sum


@dataclass(frozen=True)
class LoweredBuffer:
    """A lowered buffer, with the checks of other nodes that the result depends on."""

    key: Key
    pieces: list[Piece]
    #: The nodes that were lowered as parts of the buffer.
    inlined: frozenset[Node]
    #: The nodes that had separate arrays when they were checked, and the nodes that had none.
    held: frozenset[Node]
    not_held: frozenset[Node]
    #: The nodes that lowering the buffer designated as separate buffers.
    designated: frozenset[Node]

    @classmethod
    def of(
        cls, key: Key, pieces: list[Piece], inlined: frozenset[Node], buffers: Buffers
    ) -> LoweredBuffer:
        """Return the buffer that has just been lowered, with the checks recorded in ``buffers``."""
        asked = buffers.asked.items()
        held = frozenset(node for node, answer in asked if answer and not is_input(node))
        not_held = frozenset(node for node, answer in asked if answer is False)
        return cls(key, pieces, inlined, held, not_held, frozenset(buffers.added))

    def still_holds(self, key: Key, buffers: Buffers) -> bool:
        """Return whether the result of an earlier pass is valid for ``key`` and the present buffers."""
        taken = self.inlined.isdisjoint(buffers.designated) and self.inlined.isdisjoint(buffers.opaque)
        return self.key == key and taken

    def fits(self, buffers: Buffers) -> bool:
        """Return whether lowering again would give the same result."""
        buffered = buffers.designated.union(buffers.opaque)
        return self.held <= buffered and self.not_held.isdisjoint(buffered)


_lowered = BoundedCache[list[LoweredBuffer]](1_024)


def find_or_lower(key: Key, buffers: Buffers, lower: Callable[[], LoweredBuffer]) -> LoweredBuffer:
    """Return the lowered buffer from the cache if it is still valid, else lower it and cache it.

    The nodes that lowering the buffer designates are added to ``buffers`` in both cases.
    """
    for entry in _lowered.get(key) or ():
        if entry.fits(buffers):
            buffers.designated |= entry.designated
            return entry
    lowered = lower()
    _lowered.put(key, [lowered, *(_lowered.get(key) or ())][:_KEPT_EACH])
    return lowered


def clear_lowered() -> None:
    """Drop all cached lowered buffers."""
    _lowered.clear()
