"""Roles where a feed-forward has units of one kind instead of any function: every function is a gate.

An s-op becomes one *gate* (``gates.py``), or stands for a linear combination of other s-ops that are
gates:

- whatever is finite is a table (``tables.py``): of the positions, tokens and attention results that it
  depends on, if these combine in few ways, or else of its inputs;
- what is real has forms of its own (``reals.py``).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field
from functools import reduce

from locum.compiler.network.forms import Form
from locum.compiler.network.gates import Gate, Recipe, Table
from locum.compiler.network.roles import Role, Roles, in_order
from locum.compiler.program.codes import MAX_ROWS
from locum.compiler.scoring.linear import Linear, term
from locum.compiler.units.reals import ZERO, RealFunctions
from locum.compiler.units.tables import counting, table, table_of_inputs
from locum.graph import Node
from locum.graph.operations import constant


@dataclass
class GateRoles(Roles):
    """Roles for relu, gelu or glu units."""

    fused = False
    _reals: RealFunctions = field(init=False)
    #: S-ops that others stand for, and those that are gates.
    _instead: dict[Node, Linear] = field(default_factory=dict)
    _recipes: dict[Node, Recipe] = field(default_factory=dict)
    #: Counts, and comparisons of real numbers, that are made whole.
    _whole: frozenset[Node] = frozenset()

    def __post_init__(self) -> None:
        self._reals = RealFunctions(self.known)

    def _found(self, node: Node) -> Role:
        role = super()._found(node)
        if role not in (Role.LINEAR, Role.FUNCTION, Role.TABLE):
            return role
        found = self._realised(node, role)
        if isinstance(found, Linear):
            self._instead[node] = found
            return Role.LINEAR
        self._recipes[node] = found
        return Role.FUNCTION

    def keeping_whole(self, root: Node) -> GateRoles:
        """Copy that makes the integers that heads score by exact to the last bit.

        Hard attention needs exact ties, and a softmax that is to be as good as hard amplifies noise.
        """
        scored = [
            below
            for node in in_order(root, self.reads)
            if self.of(node) in (Role.AGGREGATE, Role.COUNT) and node.op != "length"
            for below in self.known.selectors.scores(node.inputs[0]).nodes
        ]
        seen: set[Node] = set()
        for node in scored:
            if node not in seen:
                seen.update(in_order(node, lambda n: [b for b in self.reads(n) if b not in seen]))
        whole = frozenset(
            node
            for node in seen
            if self.of(node) is Role.COUNT or (node in self._recipes and self._recipes[node].rounds)
        )
        new = copy(self)
        new._whole = whole
        return new

    def delay(self, node: Node) -> int:
        """How long after its attention a count can be read; a function, after what it reads."""
        return 3 if node in self._whole else 1

    def reads(self, node: Node) -> list[Node]:
        """The s-ops that have to be there before it."""
        role = self.of(node)
        if role is Role.LINEAR:
            return [below for below, _ in self.parts(node)]
        if role is Role.FUNCTION:
            return [below for linear in self._recipes[node].arguments for below, _ in linear.terms]
        return super().reads(node)

    def parts(self, node: Node) -> list[tuple[Node, float]]:
        """A linear s-op as a combination of others."""
        found = self._instead[node]
        rest = [(constant(found.constant), 1.0)] if found.constant else []
        return [*found.terms, *rest] or [(ZERO, 1.0)]

    def gate(self, node: Node, form: Callable[[Linear], Form]) -> Gate:
        """The gate of a function, given how the stream is read."""
        recipe = self._recipes[node]
        return recipe.make(*map(form, (*recipe.arguments, *recipe.beside)))

    def counting(self, node: Node, share: Form, sink: bool) -> Table:
        """The gate of a width or a length, given the share of attention that one key gets."""
        target = self.known.target
        fewest = target.shortest if node.op == "length" else 0 if sink else 1
        return counting(range(fewest, target.longest + 1), share, sink)

    def _realised(self, node: Node, role: Role) -> Linear | Recipe:
        if role is Role.LINEAR or (node.op == "divide" and self._reals.number(node.inputs[1])):
            first, *rest = (term(below, factor) for below, factor in super().parts(node))
            return reduce(Linear.plus, rest, first)
        values = self.values
        column = values.table(node)
        if column is not None and column.sources != (node,) and len(column.values) <= MAX_ROWS:
            domains = [values.domain(source) for source in column.sources]
            return table(node, self.sources(node), domains, column.values, self.known.codes)
        finite = [values.finite(i) for i in node.inputs]
        known = [domain for domain in finite if domain is not None]
        if len(known) == len(finite) and math.prod(map(len, known)) <= MAX_ROWS:
            return table_of_inputs(node, known, self.known.codes)
        return self._reals.recipe(node)
