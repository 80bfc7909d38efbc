"""Determine the roles of s-ops in a network of hidden units.

Each function becomes one *gate* (``network/forms.py``), or a linear combination of other s-ops:

- An s-op with finitely many values usually becomes a table (``tables.py``). The table is indexed by its
  sources (position, token and attention results) if these have few combinations, otherwise by its
  inputs.
- Functions of real numbers are described in ``reals.py``.

A head counts by the *share*, the attention weight of a single key: 1/(1 + width) or 1/length. The share
is also an s-op. Tables look up the share instead of the count, which saves a feed-forward.
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

#: Maximum number of steps of a table over sources that is used in order to save layers.
MAX_STEPS = 512
#: Maximum number of steps of a table over inputs that is preferred to a bend. A bend needs fewer units,
#: but propagates errors.
_MAX_BEND = 8
_LOST = Precision.LOST
_ON_GRID = canonical_table({"a number on a grid": 0})


#: Operations that can be computed without a table (``reals.py``), in addition to comparisons.
_COMPUTED = (*CURVES, "multiply", "divide", "power", "absolute", "maximum", "minimum", "if_else")
#: Relative rounding error of one operation, for estimates.
_ROUNDING = 2.0**-53


def _is_short(by_sources: Lookup) -> bool:
    """Return whether a table over sources is small and precise enough to be used to save layers."""
    return by_sources.steps <= MAX_STEPS and by_sources.precision < _LOST


#: Maximum number of steps of the table of a square over several sources, unless they are position and
#: length. Other squares are looked up by the number that is squared.
_MAX_SQUARE = 256


def _shallowest(node: Node, by_sources: Lookup | None, by_inputs: Lookup | None) -> Lookup | None:
    """Return the table to use, preferably a table that saves layers; None if no table is to be used."""
    if by_sources is not None and _is_short(by_sources):
        return by_sources
    bends = node.op in ("maximum", "minimum", "absolute")
    if by_inputs is not None and bends and by_inputs.steps > _MAX_BEND:
        return None
    tables = [table for table in (by_inputs, by_sources) if table is not None]
    return min(tables, key=lambda t: (t.precision, t.steps), default=None)


@dataclass
class GateRoles(Roles):
    """The roles of s-ops in a network with ReLU, GELU or gated units."""

    fused = False
    #: Whether tables with small rounding errors are looked up directly, one layer earlier than by a
    #: code on a grid.
    early: bool = False
    _reals: RealFunctions = field(init=False)
    #: S-ops that are replaced by linear combinations, and s-ops that are gates.
    _instead: dict[Node, Linear] = field(default_factory=dict)
    _recipes: dict[Node, Recipe] = field(default_factory=dict)
    #: Codes on a grid, digits of factors and masked numbers, each with the text of the s-op for which
    #: it was made.
    _made_for: dict[Node, str] = field(default_factory=dict)
    #: Digits of factors and masked numbers, each with its name and the s-op for which it was made.
    _digits: dict[Node, tuple[str, Node]] = field(default_factory=dict)
    #: For each s-op, whether the network may compute it with an error.
    _off: dict[Node, bool] = field(default_factory=dict)
    #: Gates with integer results that a separate layer rounds.
    _whole: frozenset[Node] = frozenset()
    #: Linear combinations with integer results that a separate layer rounds.
    _rounded_sums: frozenset[Node] = frozenset()
    #: Estimated numbers of hidden units, for minimising them.
    _sizes: dict[Node, float] = field(default_factory=dict)
    #: S-ops that are computed in another way than by default, to use fewer hidden units.
    _departing: set[Node] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._reals = RealFunctions(self.known)

    def departs(self, node: Node) -> bool:
        """Return whether an s-op is computed in a different way in order to use fewer hidden units."""
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
        """Yield assignments of roles in order of increasing number of layers.

        Later assignments round more of the integers in scores, which needs a separate layer. Hard
        attention needs exact ties between keys, and a softmax that approximates hard attention
        amplifies errors of scores. If only one key is selected, the error only needs to be smaller than
        half of the gap.
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
        """Return a copy that rounds the inexact integers in the scores of these selectors."""
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
        """Return whether the network may compute an s-op with an error.

        Rounding errors of embeddings, of linear combinations and of most gates are ignored.
        """
        for below in postorder(node, into=lambda n: n not in self._off):
            if below not in self._off and sort_of(below) is Sort.SOP:
                # Roles are determined in postorder, so that a role depends only on existing roles.
                self._off[below] = True
                try:
                    aggregate = self.of(below) is Role.AGGREGATE
                except CompileError:  # units cannot compute it, but perhaps an s-op that uses it
                    continue
                reads = () if aggregate else self.reads(below)
                for new in reads:  # shares, codes and other s-ops that are not in the program
                    if new not in self._off:
                        self._is_off(new)
                self._off[below] = self._may_be_off(below, self._off)
        return self._off[node]

    def _may_be_off(self, node: Node, off: Mapping[Node, bool]) -> bool:
        """Return whether the network may compute an s-op with an error, as :meth:`_is_off` defines.

        ``off`` contains the result for each s-op that this s-op reads.
        """
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
        """Yield the gates among these s-ops, also in linear combinations and in values of heads.

        Linear combinations that are rounded sums of integers are also yielded.
        """
        stack, seen = list(scored), set[Node]()
        while stack:
            node = stack.pop()
            if node in seen:
                continue
            seen.add(node)
            match self.of(node):
                case Role.LINEAR if self.values.is_integer_sum(node):
                    yield node  # its parts are not integers
                case Role.LINEAR:
                    stack += self.reads(node)
                case Role.AGGREGATE:
                    stack.append(node.inputs[1])
                case Role.FUNCTION:
                    yield node

    def delay(self, node: Node) -> int:
        """Return the number of sublayers after which the result of an s-op can be read.

        The delay of a share of attention starts at its head and is 0. The delay of a gate starts at the
        attention sublayer before its feed-forward. This delay is 3 for a gate with a rounding layer and
        otherwise 1.
        """
        if self.of(node) is Role.COUNT:
            return 0
        return 3 if node in self._whole else 1

    def counted(self, node: Node) -> Node:
        """Return the width or length of which an s-op is the share, 1/(1 + width) or 1/length.

        Other s-ops are returned unchanged, as is 1/length if all inputs have the same length.
        """
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
        """Return a linear s-op as a list of pairs (s-op, coefficient)."""
        linear = self._instead[node]
        rest = [(constant(linear.constant), 1.0)] if linear.constant else []
        return [*linear.terms, *rest] or [(ZERO, 1.0)]

    def gate(self, node: Node, form: Callable[[Linear], Form]) -> Gate:
        """Return the gate of an s-op; ``form`` converts linear combinations to forms over signals."""
        recipe = self._recipes[node]
        return recipe.make(*map(form, (*recipe.arguments, *recipe.beside)))

    def made_for(self, node: Node) -> str | None:
        """Return the text of the s-op for which this class made ``node``; None for other s-ops."""
        text = self._made_for.get(node)
        factors = {abbreviate(digit): abbreviate(sop) for digit, (_, sop) in self._digits.items()}
        return text if text is None else factors.get(text, text)

    def names(self, label: Callable[[Node], str]) -> dict[Node, str]:
        """Return names for codes on a grid, digits of factors, and masked numbers."""
        made = self._made_for.items()
        codes = {
            node: f"code of {name}" for node, name in made if node.attributes.get("table") == _ON_GRID
        }
        return codes | {node: f"{name} of {label(sop)}" for node, (name, sop) in self._digits.items()}

    def _realised(self, node: Node, role: Role) -> Linear | Recipe:
        if node in self.known.kept:
            return self._kept(node)
        if role is Role.LINEAR or (node.op == "divide" and self._reals.number(node.inputs[1])):
            first, *rest = (term(below, factor) for below, factor in super().parts(node))
            return reduce(Linear.plus, rest, first)
        if node.op == "multiply" and self.known.target.feed_forward == "glu" and self._of_reals(node):
            return self._reals.recipe(node)  # exact, with two units
        small = self.known.target.prefer == "small"
        by_sources = self._by_sources(node)
        if by_sources is not None and _is_short(by_sources) and not small:
            return self._looked_up(by_sources)
        if (total := self._sum(node, by_sources)) is not None:
            return total
        by_inputs = self._by_inputs(node)
        # In float32, the input may have a rounding error that is too large for its table.
        compared = small and self.known.target.dtype == "float64"
        if by_sources is not None and not compared and self._is_early_square(node, by_sources):
            by_inputs = None  # the input is available one layer later than its sources
        usual = _shallowest(node, by_sources, by_inputs)
        if small:
            return self._smallest(node, usual, by_sources, by_inputs)
        if usual is not None and usual.merged and (computed := self._computed(node)) is not None:
            return computed
        return self._real(node) if usual is None else self._looked_up(usual)

    def _is_early_square(self, node: Node, by_sources: Lookup) -> bool:
        """Return whether an operation on equal inputs, such as a square, is looked up by its sources.

        This saves a layer.
        """
        if len({*node.inputs}) == len(node.inputs):
            return False
        positional = self.values.depends_on(node, "indices", "length")
        return positional or by_sources.steps <= _MAX_SQUARE

    def _smallest(self, node: Node, usual: Lookup | None, *tables: Lookup | None) -> Linear | Recipe:
        """Return the gate or linear combination with the fewest hidden units, including its inputs.

        The number of units is an estimate, since the tolerance of each gate is not known yet.
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
        """Return the gate or combination that computes an operation without a table, or None."""
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
        """Estimate the number of hidden units of an s-op and its inputs."""

        def inputs(below: Node) -> Sequence[Node]:
            new = below not in self._sizes and OPERATIONS[below.op].elementwise
            return below.inputs if new else ()

        for below in in_order(node, inputs):
            if below in self._sizes:
                continue
            self._sizes[below] = math.inf
            try:
                role = self.of(below)
            except CompileError:  # units cannot compute it, but perhaps an s-op that uses it
                continue
            recipe = self._recipes.get(below) or self._instead.get(below)
            known = role not in (Role.LINEAR, Role.FUNCTION) or recipe is None
            self._sizes[below] = 0.0 if known or recipe is None else self._units_of(recipe)
        return self._sizes[node]

    def _units_of(self, form: Linear | Recipe) -> float:
        """Estimate the number of hidden units of a gate or linear combination and its inputs."""
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
            return math.inf  # ``fit`` requires a tolerance for these units
        try:
            tolerance = target.tolerance or DEFAULT_TOLERANCE
            return realise(gate, target.feed_forward, arguments, tolerance, _ROUNDING).size
        except (UnitsError, ValueError, OverflowError):
            return math.inf

    def _ends(self, linear: Linear) -> tuple[float, float]:
        """Return a lower and an upper bound of a linear combination; infinities if none is known."""
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
        """Return the gate or combination that computes an operation on real numbers without a table."""
        recipe = self._reals.recipe(node)
        if node.op == "multiply" and isinstance(recipe, Linear):
            return self._masked(node, node, recipe)
        return recipe

    def _sum(self, node: Node, by_sources: Lookup | None) -> Linear | Recipe | None:
        """Return the product that computes a sum over keys, without a table of all products.

        Return None for other s-ops, and if a table with few steps is enough. If the s-op rounds the
        product, also return the product: the difference is within the bound on the rounding error of
        dense execution.
        """
        product = self.values.product_of_sum(node)
        if product is None:
            return None
        scaled = self._reals.scaled(*product.inputs)
        if by_sources is not None and _is_short(by_sources):
            masks = 0 if scaled is None else len(scaled.terms)
            if by_sources.steps <= 2**masks:
                return None
            self._departing.add(node)
        if scaled is not None:
            return self._masked(node, product, scaled)
        return self._reals.recipe(product) if product is node else term(product)

    def _masked(self, node: Node, product: Node, scaled: Linear) -> Linear:
        """Make a mask for each ``x if digit else 0`` in the scaled form of a product.

        Return the scaled form. In float32, the digit must be exact. If possible, the digit is therefore
        looked up by its sources.
        """
        single = self.known.target.dtype == "float32"
        for place, (masked, _) in enumerate(scaled.terms, 1):
            if masked.op != "if_else" or masked in product.inputs:  # x itself may be an ``if_else``
                continue
            digit, x, _ = masked.inputs
            self._made_for |= dict.fromkeys((masked, digit), abbreviate(node))
            self._digits |= {digit: (f"digit {place}", node), masked: (f"part {place}", node)}
            self._recipes[masked] = Recipe((term(digit), term(x)), Masked)
            table = self._by_sources(digit) if single else None
            new = digit not in self._roles and Role.FUNCTION is super()._role_of(digit)
            recipe = self._looked_up(table, exact=True) if table is not None and new else None
            if isinstance(recipe, Recipe):
                self._recipes[digit] = recipe
        return scaled

    def _kept(self, node: Node) -> Linear | Recipe:
        """Return the gate of a kept s-op, which hidden units compute even if the table is linear.

        A constant is returned as a linear combination.
        """
        table = self._by_sources(node)
        assert table is not None
        recipe = self._looked_up(table)
        if isinstance(recipe, Recipe) or not table.steps:
            return recipe
        return Recipe((table.code,), lambda x: Table(x, table.keys, table.values))

    def _of_reals(self, node: Node) -> bool:
        """Return whether the values of an s-op can be listed, and some value is not an integer."""
        values = self.values.finite(node)
        return values is not None and any(isinstance(v, float) and not v.is_integer() for v in values)

    def _looked_up(self, table: Lookup, *, exact: bool = False) -> Linear | Recipe:
        """Return the gate of a table, or a linear combination.

        If the rounding error of units would be too large, an additional gate first rounds the code to a
        grid. With ``exact``, the code is also rounded if this makes the result exact.
        """
        exact = exact and table.off and bool(table.steps) and not table.merged and table.fits_grid
        gridded = table.precision is Precision.ON_GRID
        if self.early and gridded:
            gridded = not table.is_slightly_rounded
        if not gridded and not exact:
            return table.recipe()
        scale = SNAP[self.known.target.dtype][1] * table.grid_steps
        code = table.code.times(scale)
        parts = (build("multiply", node, constant(factor)) for node, factor in code.terms)
        total = reduce(lambda one, other: build("add", one, other), parts)
        # A lookup with a table that no program contains represents the number on the grid.
        on_grid = build("lookup", total, table=_ON_GRID)
        self._recipes[on_grid] = Recipe((code,), lambda x: Snap(x, whole=False))
        self._made_for.setdefault(on_grid, table.where)
        return table.on_grid(on_grid, scale)

    def _by_sources(self, node: Node) -> Lookup | None:
        """Return the table over the sources of an s-op; None if there is none or if it is too large."""
        table = self.lookups.table(node)
        if table is None or len(table.values) - table.values.count(None) > MAX_ROWS:
            return None
        by, domains = self._by_shares(table.by, table.domains)
        off = any(map(self._is_off, by))
        return lookup(node, by, domains, table.values, self.known.codes, off=off)

    def _by_inputs(self, node: Node) -> Lookup | None:
        """Return the table over the inputs of an operation.

        Return None if the values of an input cannot be listed, or if the table would be too large.
        """
        finite = [self.values.finite(i) for i in dict.fromkeys(node.inputs)]
        known = [domain for domain in finite if domain is not None]
        if len(known) < len(finite) or math.prod(map(len, known)) > MAX_ROWS:
            return None
        off = any(map(self._is_off, node.inputs))
        return lookup_of_inputs(node, known, self.known.codes, off=off)

    def _by_shares(
        self, by: Sequence[Node], domains: Sequence[Sequence[Atom]]
    ) -> tuple[list[Node], list[Sequence[Atom]]]:
        """Replace counts by shares of attention, which heads compute directly.

        Return the new s-ops and their possible values.
        """
        nodes, values = list(by), list(domains)
        for place, (node, domain) in enumerate(zip(by, domains, strict=True)):
            if Role.COUNT is super()._role_of(node):
                more = int(node.op == "selector_width")
                below = build("add", node, ONE) if more else node
                nodes[place] = build("divide", ONE, below)
                values[place] = [1 / (m + more) for m in domain if isinstance(m, int)]
        return nodes, values
