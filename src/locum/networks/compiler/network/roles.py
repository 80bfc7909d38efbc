"""Determine the role of each s-op in the network.

An s-op can be a function of the position or of the token, a real-valued token, or a linear combination.
Otherwise, it is the output of a head, or a feed-forward computes it. Symbolic feed-forwards compute
functions as instructions (:class:`Roles`). In networks of hidden units, every function is a gate
(``gate_roles.py``). Roles also determine which other s-ops an s-op reads, for scheduling and lowering.
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
    """How the network computes an s-op."""

    POSITION = "known from the position: a column of W_pos"
    TOKEN = "known from the token: a column of W_E"
    NUMBER = "the real-valued token itself"
    LINEAR = "a linear combination of other s-ops, which needs no layer"
    AGGREGATE = "moved or averaged by a head"
    COUNT = "counted by a head: a width, or the length; for units, the share of attention of one key"
    FUNCTION = "computed by a feed-forward"
    TABLE = "looked up by a feed-forward, by its sources"


@dataclass
class Roles:
    """The role of each s-op in a network with symbolic feed-forwards."""

    known: Known
    #: S-ops that are looked up by their sources, since they or their inputs may have errors in the
    #: network.
    tabled: frozenset[Node] = frozenset()
    #: Discontinuous s-ops that cannot be looked up, so that their value may depend on rounding.
    rounded: tuple[Node, ...] = ()
    _roles: dict[Node, Role] = field(default_factory=dict)
    _reads: dict[Node, list[Node]] = field(default_factory=dict)
    #: Whether one feed-forward computes whole expressions, so that nested functions need no more
    #: layers.
    fused: ClassVar[bool] = True

    @cached_property
    def lookups(self) -> KeptSops:
        """The embedded s-ops, and the arguments of tables."""
        return KeptSops(self.known)

    @property
    def values(self) -> Values:
        """The possible values of each s-op."""
        return self.known.values

    def departs(self, node: Node) -> bool:
        """Return whether an s-op is computed in a different way in order to use fewer hidden units.

        With symbolic feed-forwards, the result is false.
        """
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
                    "expected few combinations of values for an operation on strings or integers "
                    "beyond "
                    f"2^{bits}, got too many to list; try a smaller vocabulary or length",
                    abbreviate(node),
                )
            return Role.TABLE
        return Role.LINEAR if self._linear(node) else Role.FUNCTION

    def _needs_table(self, node: Node) -> bool:
        """Return whether an operation is looked up by its sources, not computed from its inputs."""
        if node.op == "lookup":
            column = self.values.table(node)
            return column is not None and column.sources != (node,)
        columns = [self.values.table(n) for n in (node, *node.inputs)]
        limit = EXACT_WHOLE[self.known.target.dtype]
        if any(column is not None and column.largest_whole > limit for column in columns):
            return True
        # Large integers are inexact, which is relevant only if they are compared or divided.
        jumps = ("member", "modulo", "floor_divide")
        compares = OPERATIONS[node.op].group == "comparison" or node.op in jumps
        return compares and any(self._beyond(i, limit) for i in node.inputs)

    def _beyond(self, node: Node, limit: int) -> bool:
        """Return whether the absolute value of an integer s-op may exceed ``limit``."""
        integers = self.values.integers(node)
        return integers is not None and integers.largest > limit

    def _linear(self, node: Node) -> bool:
        match node.op:
            case "add" | "subtract" | "negate":
                return True
            case "multiply":
                return any(self.values.constant(i) is not None for i in node.inputs)
            case "divide":
                # Only division by a power of two is linear: x/3 and x·(1/3) differ in the last bit.
                divisor = self.values.constant(node.inputs[1])
                return isinstance(divisor, (int, float)) and math.frexp(abs(float(divisor)))[0] == 0.5
            case _:
                return False

    def delay(self, node: Node) -> int:
        """Return the number of sublayers after which the result of an s-op can be read.

        The delay of a count starts at its head. The delay of a function starts at the attention
        sublayer before its feed-forward.
        """
        return 1

    def counted(self, node: Node) -> Node:
        """Return the width or length that a head counts for an s-op with the role COUNT."""
        return node

    def parts(self, node: Node) -> list[tuple[Node, float]]:
        """Return a linear s-op as a list of pairs (s-op, coefficient)."""
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
        """Return the gate of a function; None for symbolic feed-forwards.

        ``form`` converts linear combinations of s-ops to forms over signals.
        """
        return None

    def made_for(self, node: Node) -> str | None:
        """Return the text of the s-op for which this class created ``node``; otherwise return None."""
        return None

    def names(self, label: Callable[[Node], str]) -> dict[Node, str]:
        """Return names for the s-ops that this class created, given the labels of the other s-ops."""
        return {}

    def sources(self, node: Node) -> list[Node]:
        """Return the s-ops that index the table of an s-op."""
        return self.table(node).by

    def table(self, node: Node) -> LookupTable:
        """Return the table of an s-op that is looked up."""
        table = self.lookups.table(node)
        assert table is not None
        return table

    def reads(self, node: Node) -> list[Node]:
        """Return the s-ops that must be available before an s-op is computed."""
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
    """Return the roles of a program's s-ops with symbolic feed-forwards.

    A discontinuous s-op that reads a number with a possible error (``exactness.py``) becomes a table
    over its sources, if there is such a table. S-ops with possible errors whose values heads move to
    such a source also become tables if possible. ``round`` of a sum of integers needs no table.
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
    """Return the elementwise s-op whose values heads move to a source, or None."""
    if isinstance(source, str):
        return None
    while source.op == "aggregate":
        source = source.inputs[1]
    return source if OPERATIONS[source.op].elementwise else None


def _has_sources(node: Node, known: Known) -> bool:
    """Return whether there is a table of an s-op over other s-ops."""
    table = known.values.table(node)
    return table is not None and table.sources not in ((), (node,))


def _reachable(root: Node, known: Known) -> Iterator[Node]:
    """Yield the s-ops of the program and of the scores of its selectors.

    Unless ``fold=False``, scores of aggregates and widths that depend only on position and length are
    omitted.
    """
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
    """Yield every s-op after the s-ops that it reads, without recursion."""
    seen: set[Node] = set()
    #: S-ops to visit. None means that all inputs of the s-op below it have been visited.
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
