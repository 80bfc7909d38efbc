"""Stage *schedule*: when everything happens.

S-ops with their roles come in; out comes the sublayer of each head, and from when on each s-op can be
read: in the fewest layers, and then with as even a number of heads as may be.

Heads go into the earliest layer they can be in, which gives the least depth; those that have time to
spare then move to where the fewest heads are, or to a head that they can be one with.
"""

from __future__ import annotations

from dataclasses import dataclass

from locum.compiler.network.roles import Role, Roles, in_order
from locum.graph import Node
from locum.graph.definitions import everywhere

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
