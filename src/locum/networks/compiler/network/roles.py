"""What each s-op is to the network.

Known from the position or from the token, a linear combination (free), the output of a head, or a
function that a feed-forward computes: that is its *role*. Feed-forwards that are exact compute any
function (:class:`Roles`); where they have units of one kind, every function is a gate
(``gate_roles.py``). Schedule and lowering ask here what an s-op reads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import ClassVar

from locum.errors import CompileError
from locum.graph import OPERATIONS, Node, abbreviate
from locum.networks.compiler.compile_limits import check_time
from locum.networks.compiler.network.forms import Form, Gate
from locum.networks.compiler.network.kept_sops import KeptSops, LookupTable
from locum.networks.compiler.program.exactness import Exactness, jumps_on
from locum.networks.compiler.program.sources import Source
from locum.networks.compiler.program.values import Values
from locum.networks.compiler.scoring.broadcasting import Known
from locum.networks.compiler.scoring.scores import Linear
from locum.networks.compiler.target import EXACT_WHOLE


class Role(Enum):
    """How an s-op comes about in the network."""

    POSITION = "known from the position: a column of W_pos"
    TOKEN = "known from the token: a column of W_E"
    NUMBER = "the real-valued token itself"
    LINEAR = "a linear combination of others: free"
    AGGREGATE = "moved by a head"
    COUNT = "counted by a head: a width, or the length; for units, the share of attention of one key"
    FUNCTION = "computed by a feed-forward"
    TABLE = "looked up by a feed-forward, by its sources"


@dataclass
class Roles:
    """What each s-op is to the network."""

    known: Known
    #: S-ops that are looked up by their sources, since what the network computes may be off.
    tabled: frozenset[Node] = frozenset()
    #: S-ops that jump, and cannot be looked up: where they do hangs on the last bits of a number.
    rounded: tuple[Node, ...] = ()
    _roles: dict[Node, Role] = field(default_factory=dict)
    _reads: dict[Node, list[Node]] = field(default_factory=dict)
    #: Whether a feed-forward computes whole expressions, so that a function of functions takes no
    #: longer than one.
    fused: ClassVar[bool] = True

    @cached_property
    def lookups(self) -> KeptSops:
        """What is embedded, and what tables are looked up by."""
        return KeptSops(self.known)

    @property
    def values(self) -> Values:
        """Which values each s-op can take."""
        return self.known.values

    def departs(self, node: Node) -> bool:
        """Return whether an s-op has another form for the sake of fewer hidden units."""
        return False

    def of(self, node: Node) -> Role:
        """Return the role of an s-op."""
        if node not in self._roles:
            self._roles[node] = self._role_of(node)
            check_time(node)
        return self._roles[node]

    def _role_of(self, node: Node) -> Role:
        if self.lookups.embeds(node):
            return Role.POSITION if self.values.depends_on(node, "indices") else Role.TOKEN
        match node.op:
            case "tokens":
                return Role.NUMBER
            case "aggregate" if self.known.target.fold and self.values.depends_on(
                node, "indices", "length"
            ):
                return Role.TABLE
            case "aggregate":
                return Role.AGGREGATE
            case "selector_width" | "length":
                return Role.COUNT
        if node in self.tabled or node in self.known.kept:
            return Role.TABLE
        if self._needs_table(node):
            column = self.values.table(node)
            if column is None or column.sources == (node,):
                bits = EXACT_WHOLE[self.known.target.dtype].bit_length() - 1
                raise CompileError(
                    f"strings (or integers beyond 2^{bits}) meet too many other values here to be "
                    "told apart: try a smaller vocabulary or length",
                    abbreviate(node),
                )
            return Role.TABLE
        return Role.LINEAR if self._linear(node) else Role.FUNCTION

    def _needs_table(self, node: Node) -> bool:
        """Return whether floats cannot do what the operation does to its inputs."""
        if node.op == "lookup":
            column = self.values.table(node)
            return column is not None and column.sources != (node,)
        columns = [self.values.table(n) for n in (node, *node.inputs)]
        limit = EXACT_WHOLE[self.known.target.dtype]
        if any(column is not None and column.largest_whole > limit for column in columns):
            return True
        # Products of counts are as good as the floats are, until they are compared or divided.
        jumps = ("member", "modulo", "floor_divide")
        compares = OPERATIONS[node.op].group == "comparison" or node.op in jumps
        return compares and any(self._beyond(i, limit) for i in node.inputs)

    def _beyond(self, node: Node, limit: int) -> bool:
        """Return whether it may be an integer so large that floats skip its neighbours."""
        integers = self.values.integers(node)
        return integers is not None and integers.largest > limit

    def _linear(self, node: Node) -> bool:
        match node.op:
            case "add" | "subtract" | "negate":
                return True
            case "multiply":
                return any(self.values.constant(i) is not None for i in node.inputs)
            case "divide":
                # Only by powers of two: x/3 is not x·(1/3) to the last bit.
                divisor = self.values.constant(node.inputs[1])
                return isinstance(divisor, (int, float)) and math.frexp(abs(float(divisor)))[0] == 0.5
            case _:
                return False

    def delay(self, node: Node) -> int:
        """Return how long after its attention a count can be read; a function, after what it reads."""
        return 1

    def counted(self, node: Node) -> Node:
        """Return the width or the length that a COUNT stands for."""
        return node

    def parts(self, node: Node) -> list[tuple[Node, float]]:
        """Write a linear s-op as Σ coefficient · s-op."""
        match node.op:
            case "add":
                return [(node.inputs[0], 1.0), (node.inputs[1], 1.0)]
            case "subtract":
                return [(node.inputs[0], 1.0), (node.inputs[1], -1.0)]
            case "negate":
                return [(node.inputs[0], -1.0)]
            case _:
                a, b = node.inputs
                factor = self.values.constant(b)
                if factor is None:
                    a, b = b, a
                    factor = self.values.constant(b)
                assert factor is not None
                number = self.known.codes.number(factor, node)
                return [(a, 1 / number if node.op == "divide" else number)]

    def gate(self, node: Node, form: Callable[[Linear], Form]) -> Gate | None:
        """Return the gate of a function that reads the stream so; None for an exact function."""
        return None

    def made_for(self, node: Node) -> str | None:
        """Return the s-op of the program that another s-op was made for; None for those of stages."""
        return None

    def names(self) -> dict[Node, str]:
        """Return the names of numbers that no expression describes."""
        return {}

    def sources(self, node: Node) -> list[Node]:
        """Return what a table is looked up by."""
        return self.table(node).by

    def table(self, node: Node) -> LookupTable:
        """Return the table of an s-op that is looked up."""
        table = self.lookups.table(node)
        assert table is not None
        return table

    def reads(self, node: Node) -> list[Node]:
        """Return the s-ops that have to be there before it."""
        if node not in self._reads:
            self._reads[node] = self._reads_of(node)
        return self._reads[node]

    def _reads_of(self, node: Node) -> list[Node]:
        match self.of(node):
            case Role.POSITION | Role.TOKEN | Role.NUMBER:
                return []
            case Role.AGGREGATE:
                return [*self.known.selectors.scores(node.inputs[0]).nodes, node.inputs[1]]
            case Role.COUNT:
                counted = self.counted(node)
                if counted.op == "length":
                    return []
                return list(self.known.selectors.scores(counted.inputs[0]).nodes)
            case Role.TABLE:
                return self.sources(node)
            case _:
                return list(node.inputs)


def exact_roles(root: Node, known: Known) -> Roles:
    """Assign the roles of a program whose feed-forwards compute any function.

    What jumps at a number that is not reliable (``exactness.py``) becomes a table over its sources; and
    so does what is moved to where it is such a source.
    """
    exactness = Exactness(known.target, known.values, known.selectors)
    tabled: set[Node] = set()
    rounded: list[Node] = []
    pending: list[Node] = []
    for node in _reachable(root, known):
        if not OPERATIONS[node.op].elementwise or exactness.embedded(node):
            continue
        if known.values.is_integer_sum(node) or all(map(exactness.reliable, jumps_on(node))):
            continue
        if _has_sources(node, known):
            pending.append(node)
        elif known.values.constant(node) is None:
            rounded.append(node)
    while pending:
        node = pending.pop()
        if node in tabled:
            continue
        tabled.add(node)
        table = known.values.table(node)
        for source in () if table is None else table.sources:
            origin = _origin(source)
            if origin is not None and not exactness.reliable(origin) and _has_sources(origin, known):
                pending.append(origin)
    return Roles(known, frozenset(tabled), tuple(rounded))


def _origin(source: Source) -> Node | None:
    """Return the s-op that computes what a source has, wherever it was moved from."""
    if isinstance(source, str):
        return None
    while source.op == "aggregate":
        source = source.inputs[1]
    return source if OPERATIONS[source.op].elementwise else None


def _has_sources(node: Node, known: Known) -> bool:
    """Return whether its values are listed over other s-ops than itself."""
    table = known.values.table(node)
    return table is not None and table.sources not in ((), (node,))


def _reachable(root: Node, known: Known) -> Iterator[Node]:
    """List every s-op of the program, and of the scores of its selectors."""
    seen, stack = {root}, [root]
    while stack:
        node = stack.pop()
        yield node
        below = list(node.inputs)
        if node.op in ("aggregate", "selector_width"):
            below = [*node.inputs[1:]]
            folded = known.target.fold and known.values.depends_on(node, "indices", "length")
            if not folded:
                below += known.selectors.scores(node.inputs[0]).nodes
        for other in below:
            if other not in seen:
                seen.add(other)
                stack.append(other)


def in_order(root: Node, reads: Callable[[Node], Iterable[Node]]) -> Iterator[Node]:
    """Order s-ops, each after what it reads; without recursion."""
    seen: set[Node] = set()
    #: S-ops to visit; None says that all has been listed that the one below it reads.
    stack: list[Node | None] = [root]
    while stack:
        node = stack.pop()
        if node is None:
            done = stack.pop()
            assert done is not None
            yield done
        elif node not in seen:
            seen.add(node)
            stack += (node, None)
            stack += [below for below in reads(node) if below not in seen]
