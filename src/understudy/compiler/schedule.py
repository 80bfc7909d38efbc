"""Third stage: when everything happens. The fewest layers, and then as even a number of heads as may
be.

Every s-op has a *role* in the network: known from the position or from the token, a linear combination
(free), the output of a head, or a function that a feed-forward computes. Exact feed-forwards compute
whole expressions at once, so a function of functions takes no longer than one.

Heads go into the earliest layer they can be in, which gives the least depth; those that have time to
spare then move to where the fewest heads are, or to a head that they can be one with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from understudy.compiler.selectors import Selectors
from understudy.compiler.values import Values
from understudy.errors import CompileError
from understudy.graph import Node, abbreviate, build
from understudy.graph.definitions import everywhere

#: Roles.
POSITION, TOKEN, NUMBER, LINEAR, AGGREGATE, COUNT, FUNCTION, TABLE = (
    "position",
    "token",
    "number",
    "linear",
    "aggregate",
    "count",
    "function",
    "table",
)
_ATTENTION = (AGGREGATE, COUNT)
_COMPUTED = (COUNT, FUNCTION, TABLE)

EVERYWHERE = everywhere()
INDICES, LENGTH, TOKENS = build("indices"), build("length"), build("tokens", cast="asis")


@dataclass
class Roles:
    """What each s-op is to the network."""

    values: Values
    selectors: Selectors
    _roles: dict[Node, str] = field(default_factory=dict)

    def of(self, node: Node) -> str:
        """Its role."""
        if node not in self._roles:
            self._roles[node] = self._found(node)
        return self._roles[node]

    def _found(self, node: Node) -> str:
        if self.values.depends_on(node, "indices"):
            return POSITION
        if self.values.target.vocabulary is not None and self.values.depends_on(node, "tokens"):
            return TOKEN
        match node.op:
            case "tokens":
                return NUMBER
            case "aggregate":
                return AGGREGATE
            case "selector_width" | "length":
                return COUNT
        if self._needs_table(node):
            column = self.values.column(node)
            if column is None or column.sources == (node,):
                raise CompileError(
                    "strings (or whole numbers beyond 2^53) meet too many other values here to be told "
                    "apart",
                    abbreviate(node),
                )
            return TABLE
        return LINEAR if self._linear(node) else FUNCTION

    def _needs_table(self, node: Node) -> bool:
        """Whether floats cannot do what the operation does to its inputs."""
        if node.op == "lookup":
            column = self.values.column(node)
            return column is not None and column.sources != (node,)
        columns = [self.values.column(n) for n in (node, *node.inputs)]
        return any(column is not None and column.beyond_floats for column in columns)

    def _linear(self, node: Node) -> bool:
        match node.op:
            case "add" | "subtract" | "negate":
                return True
            case "multiply":
                return any(self.values.constant(i) is not None for i in node.inputs)
            case "divide":
                # Only by powers of two: x/3 is not x·(1/3) to the last bit.
                divisor = self.values.constant(node.inputs[1])
                return (
                    isinstance(divisor, (int, float))
                    and divisor != 0
                    and abs(float(divisor)).hex().split("p")[0] in ("0x1.0", "0x1.0000000000000")
                )
            case _:
                return False

    def delay(self, node: Node) -> int:
        """How long after its attention a count can be read; a function, after what it reads."""
        return 1

    def sources(self, node: Node) -> list[Node]:
        """What a table is looked up by."""
        column = self.values.column(node)
        assert column is not None
        named = {"indices": INDICES, "length": LENGTH, "tokens": TOKENS}
        return [named[s] if isinstance(s, str) else s for s in column.sources]

    def reads(self, node: Node) -> list[Node]:
        """The s-ops that have to be there before it."""
        match self.of(node):
            case "position" | "token" | "number":
                return []
            case "aggregate":
                return [*self.selectors.scores(node.inputs[0]).nodes, node.inputs[1]]
            case "count":
                if node.op == "length":
                    return []
                return list(self.selectors.scores(node.inputs[0]).nodes)
            case "table":
                return self.sources(node)
            case _:
                return list(node.inputs)


def in_order(root: Node, reads: Callable[[Node], Iterable[Node]]) -> Iterator[Node]:
    """Every s-op after what it reads; without recursion."""
    seen: set[Node] = set()
    stack: list[tuple[Node, bool]] = [(root, False)]
    while stack:
        node, done = stack.pop()
        if done:
            yield node
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack.extend((below, False) for below in reads(node) if below not in seen)


@dataclass
class Schedule:
    """When each s-op can be read, and in which sublayer each head runs."""

    order: list[Node]
    #: When it is in the residual stream.
    ready: dict[Node, int]
    #: The attention sublayer of each aggregate, width and length.
    heads: dict[Node, int]
    depth: int


def schedule(root: Node, roles: Roles, *, fused: bool) -> Schedule:
    """The times of a program; ``fused`` feed-forwards compute whole expressions in one sublayer."""
    order = list(in_order(root, roles.reads))
    earliest = _Times(roles, fused)
    for node in order:
        earliest.place(node, earliest.attention(node))
    depth = earliest.ready[root] + earliest.ready[root] % 2
    latest = _deadlines(order, roles, root, depth, fused)
    windows = {node: (earliest.heads[node], late) for node, late in latest.items()}
    level = _Levelling(windows)
    final = _Times(roles, fused)
    for node in order:
        time = final.attention(node)
        if node in windows:
            time = level.place(node, time)
        final.place(node, time)
    return Schedule(order, final.ready, final.heads, depth)


class _Levelling:
    """Heads into the sublayers with the fewest, but equal ones together where their times allow."""

    def __init__(self, windows: dict[Node, tuple[int, int]]) -> None:
        self.windows = windows
        self.waiting: dict[Node, list[Node]] = {}
        self.crowd: dict[int, set[Node]] = {}
        for node in windows:
            self.waiting.setdefault(_selector(node), []).append(node)

    def place(self, node: Node, earliest: int) -> int:
        """The sublayer for one head."""
        selector = _selector(node)
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


def _selector(node: Node) -> Node:
    """What a head attends to; the length is counted by one that attends everywhere."""
    return node.inputs[0] if node.inputs else EVERYWHERE


class _Times:
    """Times, given those of all that is read."""

    def __init__(self, roles: Roles, fused: bool) -> None:
        self.roles = roles
        self.fused = fused
        #: When everything is there that it is computed from, functions in between left out.
        self.base: dict[Node, int] = {}
        self.ready: dict[Node, int] = {}
        self.heads: dict[Node, int] = {}

    def attention(self, node: Node) -> int:
        """The first attention sublayer that a head could run in."""
        below = max((self.ready[n] for n in self.roles.reads(node)), default=0)
        return below + 1 if below % 2 == 0 else below + 2

    def place(self, node: Node, attention: int) -> None:
        reads = self.roles.reads(node)
        match self.roles.of(node):
            case "position" | "token" | "number":
                self.base[node] = self.ready[node] = 0
            case "linear":
                self.base[node] = max(self.base[n] for n in reads)
                self.ready[node] = max(self.ready[n] for n in reads)
            case "aggregate":
                self.base[node] = self.ready[node] = self.heads[node] = attention
            case "count":
                self.base[node] = self.heads[node] = attention
                self.ready[node] = attention + self.roles.delay(node)
            case _:
                times = self.base if self.fused else self.ready
                base = max((times[n] for n in reads), default=0)
                more = self.roles.delay(node) - 1
                self.base[node] = base if self.fused else _feed_forward_after(base) + more
                self.ready[node] = _feed_forward_after(base) + more


def _feed_forward_after(time: int) -> int:
    return time + 1 if time % 2 else time + 2


def _deadlines(order: list[Node], roles: Roles, root: Node, depth: int, fused: bool) -> dict[Node, int]:
    """For each head the last sublayer that does not make the network deeper."""
    by: dict[Node, int] = {root: depth}
    heads: dict[Node, int] = {}
    for node in reversed(order):
        deadline = by.get(node, depth)
        role = roles.of(node)
        if role in _ATTENTION:
            late = deadline - roles.delay(node) if role == COUNT else deadline
            heads[node] = late if late % 2 else late - 1
            allowed = heads[node] - 1
        elif role == LINEAR:
            allowed = deadline
        else:
            deadline -= deadline % 2
            allowed = deadline - roles.delay(node)
        for below in roles.reads(node):
            limit = allowed
            if fused and role in (FUNCTION, TABLE) and roles.of(below) in (*_COMPUTED, LINEAR):
                limit = deadline  # computed in the same feed-forward
            by[below] = min(by.get(below, depth), limit)
    return heads
