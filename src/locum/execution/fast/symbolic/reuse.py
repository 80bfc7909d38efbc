"""Keep lowered buffers: programs that share s-ops, such as the steps of a U, lower these once.

What a buffer is lowered to depends on the s-op, on the positions that are read, on the length of the
sequence, and on which of the nodes that lowering comes across are held in buffers of their own. All
but the last make up the key; what was asked of the last is kept beside the result, and the result is
used where the answers would be the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from locum.bounded_cache import BoundedCache
from locum.execution.fast.symbolic.affine import Affine, Box
from locum.execution.fast.symbolic.buffers import Buffers, is_input
from locum.execution.fast.symbolic.terms import Sum
from locum.graph import Node

#: A node, the first position that is read, the end of these, the length of the sequence, and whether
#: arithmetic is IEEE 754's.
Key: TypeAlias = tuple[Node, int, int, int, bool]

#: How many keys are kept (what was lowered first goes first), and results of each.
_KEPT, _KEPT_EACH = 1_024, 4


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


_lowered = BoundedCache[list[LoweredBuffer]](_KEPT)


def known(key: Key, buffers: Buffers) -> LoweredBuffer | None:
    """Return the buffer as some program lowered it, if this one would do the same; or None."""
    for entry in _lowered.get(key) or ():
        if entry.fits(buffers):
            buffers.designated |= entry.designated
            return entry
    return None


def keep(entry: LoweredBuffer) -> LoweredBuffer:
    """Keep a lowered buffer for other programs, and return it."""
    _lowered.put(entry.key, [entry, *(_lowered.get(entry.key) or ())][:_KEPT_EACH])
    return entry


def forget_lowered() -> None:
    """Drop every lowered buffer."""
    _lowered.clear()
