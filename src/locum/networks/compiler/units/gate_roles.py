"""Roles where a feed-forward has units of one kind instead of any function: every function is a gate.

An s-op becomes one *gate* (``network/forms.py``), or a linear combination of other s-ops that are
gates:

- whatever is finite is a table (``tables.py``): of the positions, tokens and attention results that it
  depends on, if these combine in few ways, or else of its inputs;
- what is real has forms of its own (``reals.py``).

A head counts by the *share* of attention that one key gets, 1/(1 + width) or 1/length, which is an
s-op, too. Tables look up the share instead of the count: that is one feed-forward less.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import reduce

import numpy as np

from locum.errors import CompileError
from locum.graph import OPERATIONS, Atom, Node, Sort, abbreviate, build, postorder, sort_of
from locum.graph.atoms import canonical_table
from locum.graph.operations import constant
from locum.networks.compiler.network.forms import SNAP, Curved, Form, Gate, Masked, Recipe, Snap, Table
from locum.networks.compiler.network.roles import Role, Roles, in_order
from locum.networks.compiler.program.values import MAX_ROWS
from locum.networks.compiler.scoring.scores import Linear, term
from locum.networks.compiler.target import DEFAULT_TOLERANCE
from locum.networks.compiler.units.curves import CURVES, UnitsError
from locum.networks.compiler.units.hidden import Argument
from locum.networks.compiler.units.realise import realise
from locum.networks.compiler.units.reals import ONE, ZERO, RealFunctions
from locum.networks.compiler.units.tables import Lookup, Precision, lookup, lookup_of_inputs

#: Steps of a table by what an s-op depends on, up to which depth matters more than hidden units.
MAX_STEPS = 512
#: Steps of a table by inputs, up to which it is better than a bend, which passes noise on.
_MAX_BEND = 8
_LOST = Precision.LOST
_ON_GRID = canonical_table({"a number on a grid": 0})


#: Operations with a form that is not a table (``reals.py``), besides comparisons.
_COMPUTED = (*CURVES, "multiply", "divide", "power", "absolute", "maximum", "minimum", "if_else")
#: Rounding of one operation, for estimates.
_ROUNDING = 2.0**-53


def _is_short(by_sources: Lookup) -> bool:
    """Return whether a table by what an s-op depends on is worth the layers that it saves."""
    return by_sources.steps <= MAX_STEPS and by_sources.precision < _LOST


#: Steps of the table of a square over several sources; beyond that it is looked up by its root.
_MAX_SQUARE = 256


def _shallowest(node: Node, by_sources: Lookup | None, by_inputs: Lookup | None) -> Lookup | None:
    """Return the table to take where depth matters more than hidden units; None: no table."""
    if by_sources is not None and _is_short(by_sources):
        return by_sources
    bends = node.op in ("maximum", "minimum", "absolute")
    if by_inputs is not None and bends and by_inputs.steps > _MAX_BEND:
        return None
    tables = [table for table in (by_inputs, by_sources) if table is not None]
    return min(tables, key=lambda t: (t.precision, t.steps), default=None)


@dataclass
class GateRoles(Roles):
    """Roles for relu, gelu or glu units."""

    fused = False
    _reals: RealFunctions = field(init=False)
    #: S-ops that others stand for, and those that are gates.
    _instead: dict[Node, Linear] = field(default_factory=dict)
    _recipes: dict[Node, Recipe] = field(default_factory=dict)
    #: Numbers on a grid and digits of factors, and the s-ops that are computed by them.
    _made_for: dict[Node, str] = field(default_factory=dict)
    #: Which s-ops may be off.
    _off: dict[Node, bool] = field(default_factory=dict)
    #: Gates whose integers are rounded in a layer of their own.
    _whole: frozenset[Node] = frozenset()
    #: Sums of integers that are rounded, in the same way.
    _rounded_sums: frozenset[Node] = frozenset()
    #: Estimates of hidden units, where the fewest are wanted.
    _sizes: dict[Node, float] = field(default_factory=dict)
    #: S-ops whose form with the fewest units is another than the usual one.
    _departing: set[Node] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._reals = RealFunctions(self.known)

    def departs(self, node: Node) -> bool:
        """Return whether an s-op has another form for the sake of fewer hidden units."""
        return node in self._departing

    def _role_of(self, node: Node) -> Role:
        if self.counted(node) is not node:
            return Role.COUNT
        if node in self._recipes:
            return Role.FUNCTION
        role = super()._role_of(node)
        if role is Role.COUNT:
            values = self.values.domain("length" if node.op == "length" else node)
            by = self._by_shares([node], [values])
            recipe = self._looked_up(lookup(node, *by, values, self.known.codes, off=True))
        elif role in (Role.LINEAR, Role.FUNCTION, Role.TABLE):
            recipe = self._realised(node, role)
        else:
            return role
        if isinstance(recipe, Linear):
            self._instead[node] = recipe
            return Role.LINEAR
        self._recipes[node] = recipe
        return Role.FUNCTION

    def attempts(self, root: Node) -> Iterator[GateRoles]:
        """Yield roles, the fewest layers first: ever more integers that heads score by are whole.

        Rounding takes a layer of its own. Ties between keys have to be exact for hard attention, and a
        softmax that is to be as good as hard amplifies noise; where one key is selected, it is enough
        that noise is smaller than the gap.
        """
        selectors = [
            self.counted(node).inputs[0]
            for node in in_order(root, self.reads)
            if self.of(node) in (Role.AGGREGATE, Role.COUNT) and self.counted(node).op != "length"
        ]
        tied = [s for s in selectors if not self.known.selectors.unique(s)]
        seen = set()
        first: list[list[Node]] = [[]] if self.known.target.attention == "softmax" else []
        for scored in (*first, tied, selectors):
            roles = self._keeping_whole(root, scored)
            made = roles._whole | roles._rounded_sums
            if made not in seen:
                seen.add(made)
                yield roles

    def _keeping_whole(self, root: Node, selectors: Iterable[Node]) -> GateRoles:
        """Copy that rounds the gates that these selectors score by, if they read what is off."""
        order = list(in_order(root, self.reads))
        scored = [
            below for selector in selectors for below in self.known.selectors.scores(selector).nodes
        ]
        gates = set(self._gates(scored))
        off: dict[Node, bool] = {}
        whole: set[Node] = set()
        for node in order:
            off[node] = self._may_be_off(node, off)
            if node in gates and off[node] and self.values.integers(node) is not None:
                off[node] = False
                whole.add(node)
        new = copy(self)
        sums = {node for node in whole if self.of(node) is Role.LINEAR}
        new._whole = frozenset(whole - sums)
        new._rounded_sums = frozenset(sums)
        if sums:
            new._instead = {node: linear for node, linear in self._instead.items() if node not in sums}
            new._recipes = self._recipes | {
                node: Recipe((self._instead[node],), Snap, exact=True) for node in sums
            }
            new._roles = self._roles | dict.fromkeys(sums, Role.FUNCTION)
            new._reads = {node: reads for node, reads in self._reads.items() if node not in sums}
        return new

    def _is_off(self, node: Node) -> bool:
        """Return whether the network may differ from the program even if nothing is rounded."""
        for below in postorder(node, into=lambda n: n not in self._off):
            if below not in self._off and sort_of(below) is Sort.SOP:
                # Roles from below, so that none asks for another that is not there yet.
                self._off[below] = True
                try:
                    aggregate = self.of(below) is Role.AGGREGATE
                except CompileError:  # it cannot be had by itself, but perhaps what is made of it
                    continue
                reads = () if aggregate else self.reads(below)
                for new in reads:  # shares, codes, and s-ops that others stand for
                    if new not in self._off:
                        self._is_off(new)
                self._off[below] = self._may_be_off(below, self._off)
        return self._off[node]

    def _may_be_off(self, node: Node, off: Mapping[Node, bool]) -> bool:
        """Return whether the network may differ from the program; ``off`` says so of its inputs."""
        match self.of(node):
            case Role.POSITION | Role.TOKEN | Role.NUMBER:
                return False
            case Role.COUNT:
                return True
            case Role.AGGREGATE:
                selector, value = node.inputs
                return off[value] or not self.known.selectors.unique(selector)
            case _:
                recipe = self._recipes.get(node)
                if recipe is not None and recipe.exact:
                    return False
                approximates = recipe is not None and recipe.approximates
                return approximates or any(off[below] for below in self.reads(node))

    def _gates(self, scored: Iterable[Node]) -> Iterator[Node]:
        """Return the gates that these s-ops are linear combinations of, before any move."""
        stack, seen = list(scored), set[Node]()
        while stack:
            node = stack.pop()
            if node in seen:
                continue
            seen.add(node)
            match self.of(node):
                case Role.LINEAR if self.values.is_integer_sum(node):
                    yield node  # its parts are fractions
                case Role.LINEAR:
                    stack += self.reads(node)
                case Role.AGGREGATE:
                    stack.append(node.inputs[1])
                case Role.FUNCTION:
                    yield node

    def delay(self, node: Node) -> int:
        """Return how long after its attention a share can be read; a gate, after what it reads."""
        if self.of(node) is Role.COUNT:
            return 0
        return 3 if node in self._whole else 1

    def counted(self, node: Node) -> Node:
        """Return the width or length of which this s-op is the share: 1/(1 + width), 1/length."""
        if node.op != "divide" or node.inputs[0] is not ONE:
            return node
        below = node.inputs[1]
        if below.op == "length":
            return node if self.known.target.fixed else below
        width = below.op == "add" and below.inputs[0].op == "selector_width"
        return below.inputs[0] if width and below.inputs[1] is ONE else node

    def _reads_of(self, node: Node) -> list[Node]:
        role = self.of(node)
        if role is Role.LINEAR:
            return [below for below, _ in self.parts(node)]
        if role is Role.FUNCTION:
            return [below for linear in self._recipes[node].arguments for below, _ in linear.terms]
        return super()._reads_of(node)

    def parts(self, node: Node) -> list[tuple[Node, float]]:
        """Write a linear s-op as a combination of others."""
        linear = self._instead[node]
        rest = [(constant(linear.constant), 1.0)] if linear.constant else []
        return [*linear.terms, *rest] or [(ZERO, 1.0)]

    def gate(self, node: Node, form: Callable[[Linear], Form]) -> Gate:
        """Return the gate of a function that reads the stream in this way."""
        recipe = self._recipes[node]
        return recipe.make(*map(form, (*recipe.arguments, *recipe.beside)))

    def made_for(self, node: Node) -> str | None:
        """Return the s-op that a number on a grid, or a digit of a factor, was made for."""
        return self._made_for.get(node)

    def names(self) -> dict[Node, str]:
        """Name the numbers on a grid."""
        made = self._made_for.items()
        return {
            node: f"code of {name}" for node, name in made if node.attributes.get("table") == _ON_GRID
        }

    def _realised(self, node: Node, role: Role) -> Linear | Recipe:
        if node in self.known.kept:
            return self._kept(node)
        if role is Role.LINEAR or (node.op == "divide" and self._reals.number(node.inputs[1])):
            first, *rest = (term(below, factor) for below, factor in super().parts(node))
            return reduce(Linear.plus, rest, first)
        if node.op == "multiply" and self.known.target.feed_forward == "glu" and self._of_reals(node):
            return self._reals.recipe(node)  # exact, in two units
        small = self.known.target.prefer == "small"
        by_sources = self._by_sources(node)
        if by_sources is not None and _is_short(by_sources) and not small:
            return self._looked_up(by_sources)
        if node.op in ("multiply", "round") and (total := self._sum(node, by_sources)) is not None:
            return total
        by_inputs = self._by_inputs(node)
        if by_sources is not None and self._is_early_square(node, by_sources):
            by_inputs = None  # the input takes a layer more than its sources
        usual = _shallowest(node, by_sources, by_inputs)
        if small:
            return self._smallest(node, usual, by_sources, by_inputs)
        return self._real(node) if usual is None else self._looked_up(usual)

    def _is_early_square(self, node: Node, by_sources: Lookup) -> bool:
        """Return whether a product of equal factors is looked up by its sources, a layer earlier."""
        if len({*node.inputs}) == len(node.inputs):
            return False
        positional = self.values.depends_on(node, "indices", "length")
        return positional or by_sources.steps <= _MAX_SQUARE

    def _smallest(self, node: Node, usual: Lookup | None, *tables: Lookup | None) -> Linear | Recipe:
        """Return the form with the fewest hidden units, those of what it reads included.

        The number of units is an estimate, since the error that each gate may have is not known yet.
        """
        forms: list[tuple[Lookup | None, Linear | Recipe]] = [
            (table, self._looked_up(table))
            for table in tables
            if table is not None and table.precision < _LOST
        ]
        computed = self._computed(node)
        if computed is not None:
            forms.append((None, computed))
        units = [self._units_of(recipe) for _, recipe in forms]
        if min(units, default=math.inf) == math.inf:
            return self._real(node) if usual is None else self._looked_up(usual)
        table, recipe = forms[units.index(min(units))]
        if table is not usual:
            self._departing.add(node)
        return recipe

    def _computed(self, node: Node) -> Linear | Recipe | None:
        """Return the form of an operation on numbers, if it has one that is not a table."""
        comparison = OPERATIONS[node.op].group == "comparison"
        if not comparison and node.op not in _COMPUTED:
            return None
        finite = [self.values.finite(part) for part in (node, *node.inputs)]
        if any(isinstance(value, str) for values in finite for value in values or ()):
            return None
        try:
            return self._real(node)
        except CompileError:
            return None

    def _units(self, node: Node) -> float:
        """Estimate the number of hidden units of an s-op, and of what it reads in turn."""

        def inputs(below: Node) -> Sequence[Node]:
            new = below not in self._sizes and OPERATIONS[below.op].elementwise
            return below.inputs if new else ()

        for below in in_order(node, inputs):
            if below in self._sizes:
                continue
            self._sizes[below] = math.inf
            try:
                role = self.of(below)
            except CompileError:  # it cannot be had by itself, but perhaps what is made of it
                continue
            recipe = self._recipes.get(below) or self._instead.get(below)
            known = role not in (Role.LINEAR, Role.FUNCTION) or recipe is None
            self._sizes[below] = 0.0 if known or recipe is None else self._units_of(recipe)
        return self._sizes[node]

    def _units_of(self, form: Linear | Recipe) -> float:
        """Estimate the number of hidden units of a form, and of what it reads."""
        if isinstance(form, Linear):
            return sum(self._units(below) for below, _ in form.terms)
        read = {below for linear in form.arguments for below, _ in linear.terms}
        return self._own_units(form) + sum(map(self._units, read))

    def _own_units(self, recipe: Recipe) -> float:
        target = self.known.target
        gate = recipe.make(*(Form() for _ in (*recipe.arguments, *recipe.beside)))
        if isinstance(gate, Table):
            return 2 * int(np.count_nonzero(np.diff(gate.values)))
        ends = [self._ends(linear) for linear in recipe.arguments]
        arguments = tuple(Argument(low, high) for low, high in ends)
        curve = isinstance(gate, Curved) and gate.name != "square"
        if curve and target.feed_forward == "glu" and target.tolerance is None:
            return math.inf  # rejected by the fit
        try:
            tolerance = target.tolerance or DEFAULT_TOLERANCE
            return realise(gate, target.feed_forward, arguments, tolerance, _ROUNDING).size
        except (UnitsError, ValueError, OverflowError):
            return math.inf

    def _ends(self, linear: Linear) -> tuple[float, float]:
        """Return the least and the greatest value of a linear combination."""
        low = high = linear.constant
        for node, factor in linear.terms:
            finite, integers = self.values.finite(node), self.values.integers(node)
            if finite:
                numbers = self.known.codes.numbers(finite, node)
                ends = factor * min(numbers), factor * max(numbers)
            elif integers is not None:
                ends = factor * integers.low, factor * integers.high
            else:
                return -math.inf, math.inf
            low, high = low + min(ends), high + max(ends)
        return low, high

    def _real(self, node: Node) -> Linear | Recipe:
        """Return the form of an operation on real numbers; masks of a number are no tables."""
        recipe = self._reals.recipe(node)
        if node.op == "multiply" and isinstance(recipe, Linear):
            return self._masked(node, node, recipe)
        return recipe

    def _sum(self, node: Node, by_sources: Lookup | None) -> Linear | Recipe | None:
        """Return the product that a sum is, without the table of all products; None for other s-ops.

        The rounded sum of integers is the product, too: what they differ by is less than what the
        bound of the product allows for the rounding of dense execution.
        """
        whole = self.values.is_integer_sum(node)
        if not whole and (node.op == "round" or self.values.sum_of_keys(node) is None):
            return None
        product = node.inputs[0] if whole else node
        scaled = self._reals.scaled(*product.inputs)
        if by_sources is not None and _is_short(by_sources):
            masks = 0 if scaled is None else len(scaled.terms)
            if by_sources.steps <= 2**masks:
                return None
            self._departing.add(node)
        if scaled is not None:
            return self._masked(node, product, scaled)
        return term(product) if whole else self._reals.recipe(product)

    def _masked(self, node: Node, product: Node, scaled: Linear) -> Linear:
        """Make each ``x if digit else 0`` a mask of x, never a table; float32 needs the digit exact."""
        single = self.known.target.dtype == "float32"
        for masked, _ in scaled.terms:
            if masked.op != "if_else" or masked in product.inputs:  # x itself may be an if_else
                continue
            digit, x, _ = masked.inputs
            self._made_for |= dict.fromkeys((masked, digit), abbreviate(node))
            self._recipes[masked] = Recipe((term(digit), term(x)), Masked)
            table = self._by_sources(digit) if single else None
            new = digit not in self._roles and Role.FUNCTION is super()._role_of(digit)
            recipe = self._looked_up(table, exact=True) if table is not None and new else None
            if isinstance(recipe, Recipe):
                self._recipes[digit] = recipe
        return scaled

    def _kept(self, node: Node) -> Linear | Recipe:
        """Return the gate of an s-op that is kept, also where its values lie on a line."""
        table = self._by_sources(node)
        assert table is not None
        recipe = self._looked_up(table)
        if isinstance(recipe, Recipe) or not table.steps:
            return recipe
        return Recipe((table.code,), lambda x: Table(x, table.keys, table.values))

    def _of_reals(self, node: Node) -> bool:
        """Return whether some value of it is not an integer."""
        values = self.values.finite(node)
        return values is not None and any(isinstance(v, float) and v != int(v) for v in values)

    def _looked_up(self, table: Lookup, *, exact: bool = False) -> Linear | Recipe:
        """Return the gate of a table; put its code on a grid first where units would round too much.

        ``exact``: that is so wherever they round at all.
        """
        exact = exact and table.off and bool(table.steps) and not table.merged and table.fits_grid
        if table.precision is not Precision.ON_GRID and not exact:
            return table.recipe()
        scale = SNAP[self.known.target.dtype][1] * table.grid_steps
        code = table.code.times(scale)
        parts = (build("multiply", node, constant(factor)) for node, factor in code.terms)
        total = reduce(lambda one, other: build("add", one, other), parts)
        # A lookup that never has a value stands for the number on the grid, which no program can have.
        on_grid = build("lookup", total, table=_ON_GRID)
        self._recipes[on_grid] = Recipe((code,), lambda x: Snap(x, whole=False))
        self._made_for.setdefault(on_grid, table.where)
        return table.on_grid(on_grid, scale)

    def _by_sources(self, node: Node) -> Lookup | None:
        """Return a table over what an s-op depends on, if that has few combinations."""
        table = self.lookups.table(node)
        if table is None or sum(value is not None for value in table.values) > MAX_ROWS:
            return None
        by, domains = self._by_shares(table.by, table.domains)
        off = any(map(self._is_off, by))
        return lookup(node, by, domains, table.values, self.known.codes, off=off)

    def _by_inputs(self, node: Node) -> Lookup | None:
        """Return a table over the values of an operation's inputs, if they are few."""
        finite = [self.values.finite(i) for i in dict.fromkeys(node.inputs)]
        known = [domain for domain in finite if domain is not None]
        if len(known) < len(finite) or math.prod(map(len, known)) > MAX_ROWS:
            return None
        off = any(map(self._is_off, node.inputs))
        return lookup_of_inputs(node, known, self.known.codes, off=off)

    def _by_shares(
        self, by: Sequence[Node], domains: Sequence[Sequence[Atom]]
    ) -> tuple[list[Node], list[Sequence[Atom]]]:
        """Take shares instead of counts, which a head gives as they are."""
        nodes, values = list(by), list(domains)
        for place, (node, domain) in enumerate(zip(by, domains, strict=True)):
            if Role.COUNT is super()._role_of(node):
                more = int(node.op == "selector_width")
                below = build("add", node, ONE) if more else node
                nodes[place] = build("divide", ONE, below)
                values[place] = [1 / (m + more) for m in domain if isinstance(m, int)]
        return nodes, values
