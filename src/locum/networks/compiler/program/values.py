"""Find the possible values of each s-op, and the codes of strings.

The *sources* of an s-op determine its value at a position. Sources are the position (``indices``), the
``length`` of the input, the token, and other s-ops with finitely many values. Most of these s-ops are
results of attention: moved values, counts and means (``aggregates.py``).

If the sources have few combinations of values, a :class:`ValueTable` lists the value of the s-op for
every possible combination. Values are computed as in RASP, with strings and integers of any size.
By default, functions of only the position become columns of the position embeddings, and functions of
only the token become columns of the token embeddings.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from locum.errors import CompileError
from locum.execution.types import has_strings, possible_types, types_of
from locum.graph import OPERATIONS, Atom, Node, Sort, abbreviate, postorder, sort_of
from locum.graph.atoms import short
from locum.networks.compiler.compile_limits import check_time
from locum.networks.compiler.program.aggregates import Aggregates
from locum.networks.compiler.program.integer_ranges import Affine, Range, affine, combined
from locum.networks.compiler.program.integer_sums import SelectedKeys, SumOfKeys, find_sum, list_sums
from locum.networks.compiler.program.sources import (
    MAX_BOOLEANS,
    MAX_COMBINATIONS,
    MAX_POSITIONS,
    MAX_VALUES,
    Pattern,
    Source,
    Sources,
    ValueTable,
    distinct,
    each,
    meaning,
    require_finite,
    table_of,
)
from locum.networks.compiler.target import DOMAIN, EXACT_WHOLE, Target


class Values:
    """The possible values of each s-op of a program, or a superset, computed on demand."""

    def __init__(
        self, target: Target, selectors: SelectedKeys, possible: Pattern | None = None
    ) -> None:
        self.target = target
        self._selectors = selectors
        self._tables: dict[Node, ValueTable | None] = {}
        self._finite: dict[Node, tuple[Atom, ...] | None] = {}
        self._ranges: dict[Node, Range | None] = {}
        self._affine: dict[Node, Affine | None] = {}
        #: S-ops that round a sum of integers, whose argument is an integer up to rounding errors.
        self._sums: set[Node] = set()
        #: For each ``locum.sum`` of integers and other numbers, the product that it may round.
        self._products: dict[Node, Node] = {}
        self._sources = Sources(target, possible)

    def knowing(self, values: Mapping[Node, Sequence[Atom]], selectors: SelectedKeys) -> Values:
        """Return a copy that also contains the possible values of new s-ops."""
        copy = Values(self.target, selectors)
        copy._tables, copy._finite = dict(self._tables), dict(self._finite)
        copy._ranges, copy._affine = dict(self._ranges), dict(self._affine)
        copy._sources, copy._sums = self._sources.copy(), set(self._sums)
        copy._products = dict(self._products)
        for node, atoms in values.items():
            copy._tables[node] = copy._sources.add(node, atoms)
            copy._ranges[node] = copy._range(node)
            copy._affine[node] = None
        return copy

    def table(self, node: Node) -> ValueTable | None:
        """Return the table of an s-op's values over its sources.

        An s-op with finitely many values may be its own source. Return None if there is no table, for
        example for real-valued tokens.
        """
        if node not in self._tables:
            for below in postorder(node, into=lambda n: n not in self._tables):
                self._affine[below] = affine(below, [self._affine.get(i) for i in below.inputs])
                self._tables[below] = self._tabulated(below)
                self._ranges[below] = self._range(below)
                check_time(below)
        return self._tables[node]

    def over_sources(self, node: Node) -> ValueTable | None:
        """Return the table of an s-op over other sources, or None if there is no such table.

        If an elementwise s-op is itself used as a source, return its table over the sources of its
        inputs.
        """
        table = self.table(node)
        if table is None or table.sources != (node,) or not OPERATIONS[node.op].elementwise:
            return None if table is None or table.sources == (node,) else table
        inputs = [below for i in node.inputs if (below := self._tables[i]) is not None]
        if len(inputs) < len(node.inputs):
            return None
        return self._sources.joint(meaning(node), inputs, MAX_COMBINATIONS)

    def finite(self, node: Node) -> tuple[Atom, ...] | None:
        """Return all possible values of an s-op in order, or None if they cannot be listed."""
        if node not in self._finite:
            column = self.table(node)
            atoms = None if column is None else distinct(v for v in column.values if v is not None)
            self._finite[node] = atoms if atoms is not None and len(atoms) <= MAX_VALUES else None
        return self._finite[node]

    def together(self, nodes: Sequence[Node]) -> ValueTable | None:
        """Return one table with the values of several s-ops as tuples.

        Return None if one of the s-ops has no table, or if the table would be too large.
        """
        tables = [table for node in nodes if (table := self.table(node)) is not None]
        if len(tables) < len(nodes):
            return None
        return self._sources.joint(_tuple, tables, MAX_COMBINATIONS)

    def has_gap(self, node: Node) -> bool | None:
        """Return whether an operation may be undefined although its inputs are defined.

        Return None if an input has no table, or if there are too many combinations of values to decide.
        """
        own = self.table(node)
        if own is not None and own.sources not in ((), (node,)) and None not in own.values:
            return False  # the table contains a value for every combination
        inputs = [self.table(i) for i in node.inputs]
        known = [table for table in inputs if table is not None]
        if len(known) < len(inputs):
            return None
        return self._sources.has_gap(meaning(node), known, MAX_COMBINATIONS)

    def domain(self, source: Source) -> tuple[Atom, ...]:
        """Return the possible values of a source."""
        return self._sources.domain(source)

    def depends_on(self, node: Node, *sources: str) -> bool:
        """Return whether an s-op has a table with no sources other than ``sources``."""
        column = self.table(node)
        return column is not None and all(source in sources for source in column.sources)

    def constant(self, node: Node) -> Atom | None:
        """Return the value of an s-op if it is constant, otherwise None."""
        column = self.table(node)
        return column.values[0] if column is not None and column.constant else None

    def integers(self, node: Node) -> Range | None:
        """Return bounds on an s-op whose values are integers or booleans.

        Return None if other values are possible, or if no range is known.
        """
        if node not in self._ranges:
            self.table(node)
        return self._ranges[node]

    def _range(self, node: Node) -> Range | None:
        table = self._tables[node]
        if table is not None:
            return table.integers
        inputs = [self._ranges.get(i) for i in node.inputs]
        if OPERATIONS[node.op].elementwise:
            return self._combined(node)
        if node.op == "aggregate" and self._selectors.unique(node.inputs[0]):
            default = node.default
            if inputs[1] is not None and isinstance(default, int):
                return inputs[1].join(Range(default, default))
        return None

    def _combined(self, node: Node) -> Range | None:
        linear = self._affine[node]
        if linear is not None:
            return linear.over(self.target.shortest, self.target.longest)
        return combined(node, [self._ranges[i] for i in node.inputs])

    def sum_of_keys(self, node: Node) -> SumOfKeys | None:
        """Return the sum over selected keys that a product or a rounded product represents, or None."""
        return find_sum(node, self.target, self, self._selectors)

    def list_sums(self, found: SumOfKeys) -> tuple[Atom, ...] | None:
        """Return the possible values of a sum of integers, or None if they cannot be listed."""
        return list_sums(found, self.target, self, self._selectors)

    def add_integer_sum(self, node: Node, sums: Sequence[Atom]) -> ValueTable:
        """Record that an s-op rounds a sum of integers with the possible values ``sums``.

        Return the table of the s-op.
        """
        self._sums.add(node)
        self._tables[node] = table = self._sources.add(node, sums)
        return table

    def is_integer_sum(self, node: Node) -> bool:
        """Return whether an s-op rounds a sum that is an integer up to rounding errors."""
        self.table(node)
        return node in self._sums

    def add_sum(self, node: Node, product: Node) -> None:
        """Record that an s-op equals a product up to rounding errors."""
        self._products[node] = product

    def product_of_sum(self, node: Node) -> Node | None:
        """Return the product that equals a sum over keys up to rounding, or None for other s-ops."""
        if node.op == "round":
            return node.inputs[0] if self.is_integer_sum(node) else None
        if node.op == "multiply" and self.sum_of_keys(node) is not None:
            return node
        return self._products.get(node)

    def affine(self, node: Node) -> Affine | None:
        """Return an s-op as an integer combination of position and length, or None."""
        self.table(node)
        return self._affine[node]

    def is_position(self, node: Node) -> bool:
        """Return whether an s-op is known to be a valid position at every position of every input."""
        linear = self.affine(node)
        if linear is not None:
            return linear.is_position(self.target.shortest, self.target.longest)
        if node.op == "modulo":
            return node.inputs[1].op == "length" and self.integers(node.inputs[0]) is not None
        choice = node.op in ("minimum", "maximum", "if_else")
        return choice and all(self.is_position(i) for i in node.inputs[-2:])

    def at_positions(self, node: Node) -> tuple[Atom, ...]:
        """Return the value at each position, for an s-op that depends only on the position.

        Raise CompileError if the s-op is undefined at some position.
        """
        column = self.table(node)
        assert column is not None
        values = column.values * self.target.longest if column.constant else column.values
        for position, value in enumerate(values):
            if value is None:
                which = f"inputs longer than {position} tokens" if position else "any input"
                raise CompileError(
                    f"the s-op is undefined at position {position}, so the program is undefined on "
                    f"{which}",
                    abbreviate(node),
                )
        return tuple(v for v in values if v is not None)

    def at_each_position(self, node: Node) -> list[tuple[Atom, ...]]:
        """Return the possible values of an s-op at each position; empty tuples if they are unknown."""
        table, values = self.table(node), self.finite(node) or ()
        if table is None or "indices" not in table.sources:
            return [values] * self.target.longest
        sizes = [len(self.domain(source)) for source in table.sources]
        grid = np.empty(len(table.values), dtype=object)
        grid[:] = table.values
        rows = np.moveaxis(grid.reshape(sizes), table.sources.index("indices"), 0)
        by_position = rows.reshape(len(rows), -1).tolist()
        return [distinct(v for v in row if v is not None) for row in by_position]

    def at_length(self, node: Node, length: int) -> list[Atom]:
        """Return the value at each position of an input with ``length`` tokens.

        The s-op must depend only on position and length. Raise CompileError if the s-op is undefined at
        some position.
        """
        column = self.table(node)
        assert column is not None
        sizes = [len(self.domain(source)) for source in column.sources]
        values = []
        for position in range(length):
            at = {"indices": position, "length": length - self.target.shortest}
            place = 0
            for source, size in zip(column.sources, sizes, strict=True):
                assert isinstance(source, str)
                place = place * size + at[source]
            value = column.values[place]
            if value is None:
                raise CompileError(
                    f"the s-op is undefined at position {position} of inputs of {length} tokens",
                    abbreviate(node),
                )
            values.append(value)
        return values

    # How tables are computed --------------------------------------------------------------------

    def _tabulated(self, node: Node) -> ValueTable | None:
        match node.op:
            case "constant":
                return ValueTable((), (node.value,))
            case "indices":
                return ValueTable(("indices",), self.domain("indices"))
            case "length":
                if self.target.fixed:
                    return ValueTable((), (self.target.longest,))
                return ValueTable(("length",), self.domain("length"))
            case "tokens":
                if self.target.vocabulary is None:
                    return None
                cast = partial(DOMAIN.token, cast=node.cast)
                return ValueTable(("tokens",), tuple(each(cast, [self.target.vocabulary])))
            case "aggregate":
                return Aggregates(self.target, self, self._selectors, self._sources).table(node)
            case "selector_width":
                least, most = self._selectors.widths(node.inputs[0])
                return self._sources.add(node, range(least, most + 1))
            case "round" if (sums := self._integer_sums(node)) is not None:
                return self.add_integer_sum(node, sums)
            case op if OPERATIONS[op].elementwise:
                inputs = [self._tables[i] for i in node.inputs]
                known = [table for table in inputs if table is not None]
                table = None
                if len(known) == len(inputs):
                    table = self._sources.joint(meaning(node), known, self._most(node, known))
                return table or self._by_kind(node) or self._by_inputs(node) or self._by_range(node)
            case _:
                return None

    def _integer_sums(self, node: Node) -> tuple[Atom, ...] | None:
        """Return the possible sums of integers that ``round`` rounds.

        Return None if the s-op does not round such a sum, if the sums cannot be listed, or if another
        table represents the s-op. If the product that is rounded has few values, the s-op is still
        recorded as a sum of integers.
        """
        found = self.sum_of_keys(node)
        if found is None or self._selectors.unique(found.selector):
            return None
        if self.depends_on(found.mean, "indices", "length"):
            return None
        sums, product = self.list_sums(found), self._tables[node.inputs[0]]
        if sums is not None:
            self._sums.add(node)
        if product is not None and sum(v is not None for v in product.values) <= MAX_PRODUCTS:
            return None
        return sums

    def _most(self, node: Node, inputs: Sequence[ValueTable]) -> int:
        """Return the maximum number of combinations of sources to enumerate for an s-op."""
        sources = {source for column in inputs for source in column.sources}
        if sources <= {"indices", "length"}:
            return MAX_POSITIONS
        attended = any(not isinstance(source, str) for source in sources)
        # A table cannot be indexed by strings or inexact integers, only by the sources of the s-op.
        by_sources = node.op == "lookup" and inputs[0].largest_whole > EXACT_WHOLE[self.target.dtype]
        boolean = OPERATIONS[node.op].group in ("comparison", "logic") and not by_sources
        return MAX_BOOLEANS if attended and boolean else MAX_COMBINATIONS

    def _by_kind(self, node: Node) -> ValueTable | None:
        """Return the table of an operation that has finitely many results for any inputs.

        These operations are comparisons, ``and``, ``or``, ``not``, ``member``, ``indicator`` and
        ``lookup``. Return None for others.
        """
        if OPERATIONS[node.op].group == "comparison" or node.op in ("and", "or", "not", "member"):
            return self._sources.add(node, (False, True))
        if node.op == "indicator":
            return self._sources.add(node, (0, 1))
        if node.op == "lookup":
            return self._sources.add(node, distinct(table_of(node).values()))
        return None

    def _by_inputs(self, node: Node) -> ValueTable | None:
        """Return the table of an s-op over the values of its inputs, instead of the sources.

        Inputs with at most one source keep this source, unless there are then too many combinations.
        Return None if the values of an input cannot be listed, or if there are too many combinations of
        values.
        """
        tables: list[ValueTable] = []
        for i in node.inputs:
            table, values = self._tables[i], self.finite(i)
            if table is None or values is None:
                return None
            tables.append(table if len(table.sources) <= 1 else self._sources.add(i, values))
        joint = self._sources.joint(meaning(node), tables, MAX_COMBINATIONS)
        if joint is not None:
            return joint
        for place, i in enumerate(node.inputs):  # a boolean of a mean has fewer values than the mean
            values = self.finite(i)
            assert values is not None
            if tables[place].sources != (i,) and len(values) < len(tables[place].values):
                tables[place] = self._sources.add(i, values)
        return self._sources.joint(meaning(node), tables, MAX_COMBINATIONS)

    def _by_range(self, node: Node) -> ValueTable | None:
        """Return the table whose possible values are all integers in the range of an s-op.

        Return None if the range is unknown or too large.
        """
        integers = self._combined(node)
        if integers is None or integers.high - integers.low >= MAX_VALUES:
            return None
        return self._sources.add(node, range(int(integers.low), int(integers.high) + 1))


def _tuple(*values: Any) -> Any:
    return values


#: Maximum number of pairs of a count and a mean for which their product is looked up directly.
MAX_PRODUCTS = 384
#: Maximum number of rows of a table that hidden units look up, by the sources or the inputs of an s-op.
MAX_ROWS = 2**13


class Codes:
    """The numbers that encode the values of a program in the residual stream.

    Numbers and booleans encode themselves. Strings are encoded by consecutive integers in sorted order.
    These integers differ from all numbers that occur in the same s-ops as strings.
    """

    def __init__(self, values: Values, root: Node) -> None:
        self.target = values.target
        self._codes: dict[str, int] = {}
        vocabulary = values.target.vocabulary
        strings: set[str] = {t for t in vocabulary or () if isinstance(t, str)}
        if not strings and not has_strings(root):
            values.table(root)  # raises an error for some s-ops that are undefined
            return
        beside: set[float] = set()
        tokens = frozenset([float]) if vocabulary is None else types_of(vocabulary)
        types = possible_types(root, tokens)
        for node in postorder(root):
            if sort_of(node) is not Sort.SOP:
                continue
            listed = values.finite(node) if node is root else values.table(node)
            if str in types[node] and listed is None:
                raise CompileError(
                    "expected strings whose possible values can be listed, got strings mixed with "
                    "means of numbers, or too many values; "
                    "try separate s-ops for strings and numbers, or a smaller vocabulary or length",
                    abbreviate(node),
                )
            atoms = list(_values(node, values))
            if any(isinstance(value, str) for value in atoms):
                strings.update(value for value in atoms if isinstance(value, str))
                beside.update(_rounded(value) for value in atoms if not isinstance(value, str))
        start = 0
        for number in sorted(beside):
            if start <= number < start + len(strings):
                start = int(number) + 1
        self._codes = {text: start + rank for rank, text in enumerate(sorted(strings))}

    def number(self, atom: Atom, where: Node | str) -> float:
        """Return the number that encodes an atom in the residual stream.

        Raise CompileError, naming ``where``, for a string without a code, and for NaN and numbers
        beyond the range of floats.
        """
        if not isinstance(atom, str):
            return require_finite(atom, where)
        if atom not in self._codes:
            raise CompileError(
                f"expected strings whose possible values can be listed, got {short(atom)} together "
                "with "
                "too many other values; try a smaller vocabulary or length",
                where if isinstance(where, str) else abbreviate(where),
            )
        return float(self._codes[atom])

    def numbers(self, atoms: Iterable[Atom], where: Node | str) -> list[float]:
        """Return the numbers that encode several atoms in the residual stream."""
        return [self.number(atom, where) for atom in atoms]


def _values(node: Node, values: Values) -> Iterator[Atom]:
    """Yield the possible values of an s-op.

    For operations on strings with few combinations of input values, also yield the values for
    impossible combinations. Hidden units look up strings by all combinations, so these values need
    codes.
    """
    table = values.table(node)
    if table is not None:
        yield from (value for value in dict.fromkeys(table.values) if value is not None)
    if not OPERATIONS[node.op].elementwise:
        return
    domains = [values.finite(i) for i in node.inputs]
    known = [domain for domain in domains if domain is not None]
    texts = any(isinstance(value, str) for domain in known for value in domain)
    made = texts or (node.op == "lookup" and table is None)
    if made and len(known) == len(domains) and math.prod(map(len, known)) <= MAX_ROWS:
        rows = each(meaning(node), list(zip(*product(*known), strict=True)))
        yield from (value for value in rows if value is not None)


def _rounded(number: float) -> float:
    try:
        return float(number)
    except OverflowError:  # an integer beyond all codes
        return math.inf
