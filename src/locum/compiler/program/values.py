"""Which values an s-op can take: what tells the compiler a table, a code or a category will do.

The *sources* of an s-op are what its value depends on, position by position: the position
(``indices``), the ``length`` of the input, the token, and the results of attention: what is moved,
counts, and means, which are fractions of finitely many sums (``means.py``). Where all sources are
finite and few, its :class:`ValueTable` lists the value for every combination of them that can occur,
computed as RASP computes: strings, integers of any size. So anything that depends on the position alone
becomes a positional encoding, anything that depends on the token alone an embedding, and whatever is
finite can be told apart exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from locum.compiler.program.conditions import Pattern
from locum.compiler.program.means import Unlisted, means_of_positions, means_of_subsets
from locum.compiler.program.ranges import Affine, Range, affine, combined
from locum.compiler.program.value_tables import Source, ValueTable, distinct, each, meaning, table_of
from locum.compiler.target import DOMAIN, EXACT_WHOLE, Target
from locum.errors import CompileError
from locum.graph import OPERATIONS, Atom, Node, abbreviate, build, postorder
from locum.graph.atoms import LARGEST_EXACT

#: Combinations of sources that are looked at one by one: in general; of positions and lengths alone
#: (``length - 1 - indices`` on 512 tokens); of booleans that depend on attention (of which long
#: conditions have very many, and two values at the end).
MAX_COMBINATIONS = 2**15
MAX_POSITIONS = 2**18
MAX_TRUTHS = 2**13
#: Combinations of which those are found that can occur.
MAX_GRID = 2**18
#: Values that an s-op may have and still be called finite.
MAX_VALUES = 2**14


class SelectorFacts(Protocol):
    """What values depend on of selectors (``patterns.py``)."""

    def unique(self, selector: Node) -> bool:
        """Whether each query selects at most one key, whatever the input."""
        ...

    def at_length(self, selector: Node, length: int) -> Pattern | None:
        """[query, key] on inputs of one length, where positions and length tell; else None."""
        ...


class Values:
    """Which values each s-op of a program takes, found when asked for."""

    def __init__(self, target: Target, selectors: SelectorFacts) -> None:
        self.target = target
        self._selectors = selectors
        self._tables: dict[Node, ValueTable | None] = {}
        self._finite: dict[Node, tuple[Atom, ...] | None] = {}
        self._ranges: dict[Node, Range | None] = {}
        self._affine: dict[Node, Affine | None] = {}
        #: [value of "indices" or "length", own value]: which means can occur where, at which length.
        self._limits: dict[Node, dict[str, Pattern]] = {}
        self._domains: dict[Source, tuple[Atom, ...]] = {
            "indices": tuple(range(target.longest)),
            "length": tuple(range(target.shortest, target.longest + 1)),
            "tokens": target.vocabulary or (),
        }

    def knowing(self, values: Mapping[Node, Sequence[Atom]], selectors: SelectorFacts) -> Values:
        """Copy that also knows which values these s-ops, new to the program, take."""
        copy = Values(self.target, selectors)
        copy._tables, copy._finite = dict(self._tables), dict(self._finite)
        copy._ranges, copy._domains = dict(self._ranges), dict(self._domains)
        copy._affine, copy._limits = dict(self._affine), dict(self._limits)
        for node, atoms in values.items():
            copy._tables[node] = copy._source(node, atoms)
            copy._ranges[node] = copy._range(node)
            copy._affine[node] = None
        return copy

    def table(self, node: Node) -> ValueTable | None:
        """Its values over its sources, or None where there are too many."""
        if node not in self._tables:
            for below in postorder(node, into=lambda n: n not in self._tables):
                self._affine[below] = affine(below, [self._affine.get(i) for i in below.inputs])
                self._tables[below] = self._found(below)
                self._ranges[below] = self._range(below)
        return self._tables[node]

    def over_sources(self, node: Node) -> ValueTable | None:
        """Its table over other s-ops, if it has one: also where others take it as it is."""
        table = self.table(node)
        if table is None or table.sources != (node,) or not OPERATIONS[node.op].elementwise:
            return None if table is None or table.sources == (node,) else table
        inputs = [below for i in node.inputs if (below := self._tables[i]) is not None]
        if len(inputs) < len(node.inputs):
            return None
        return self._joint(meaning(node), inputs, MAX_COMBINATIONS)

    def finite(self, node: Node) -> tuple[Atom, ...] | None:
        """All values it may take, in order, or None where they are not finitely many (or too many)."""
        if node not in self._finite:
            column = self.table(node)
            found = None if column is None else distinct(v for v in column.values if v is not None)
            self._finite[node] = found if found is not None and len(found) <= MAX_VALUES else None
        return self._finite[node]

    def domain(self, source: Source) -> tuple[Atom, ...]:
        """The values of a source."""
        return self._domains[source]

    def depends_on(self, node: Node, *sources: str) -> bool:
        """Whether a value is known from these sources alone."""
        column = self.table(node)
        return column is not None and set(column.sources) <= set(sources)

    def constant(self, node: Node) -> Atom | None:
        """Its value, if it is the same everywhere."""
        column = self.table(node)
        return column.values[0] if column is not None and column.constant else None

    def integers(self, node: Node) -> Range | None:
        """Between which integers an s-op lies, or None where it may be another number (or a string)."""
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
            default = node.attributes["default"]
            if inputs[1] is not None and isinstance(default, int):
                return inputs[1].join(Range(default, default))
        return None

    def _combined(self, node: Node) -> Range | None:
        linear = self._affine[node]
        if linear is not None:
            return linear.over(self.target.shortest, self.target.longest)
        return combined(node, [self._ranges[i] for i in node.inputs])

    def affine(self, node: Node) -> Affine | None:
        """The s-op as an integer combination of position and length, if it is written as one."""
        self.table(node)
        return self._affine[node]

    def is_position(self, node: Node) -> bool:
        """Whether it is the position of a token of the input, at every position of every input."""
        linear = self.affine(node)
        if linear is not None:
            return linear.is_position(self.target.shortest, self.target.longest)
        if node.op == "modulo":
            return node.inputs[1].op == "length" and self.integers(node.inputs[0]) is not None
        choice = node.op in ("minimum", "maximum", "if_else")
        return choice and all(self.is_position(i) for i in node.inputs[-2:])

    def at_positions(self, node: Node) -> tuple[Atom, ...]:
        """The value at each position of an s-op that depends on the position alone."""
        column = self.table(node)
        assert column is not None
        values = column.values * self.target.longest if column.constant else column.values
        for position, value in enumerate(values):
            if value is None:
                which = f"inputs longer than {position} tokens" if position else "any input"
                raise CompileError(
                    f"it has no value at position {position}, so the program has none on {which}",
                    abbreviate(node),
                )
        return tuple(v for v in values if v is not None)

    def at_length(self, node: Node, length: int) -> list[Atom]:
        """The value at each position of an input of that length, if nothing else matters."""
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
                    f"it has no value at position {position} of inputs of {length} tokens",
                    abbreviate(node),
                )
            values.append(value)
        return values

    # How they are found -------------------------------------------------------------------------

    def _found(self, node: Node) -> ValueTable | None:
        match node.op:
            case "constant":
                value = node.attributes["value"]
                assert not isinstance(value, tuple)
                return ValueTable((), (value,))
            case "indices":
                return ValueTable(("indices",), self.domain("indices"))
            case "length":
                if self.target.fixed:
                    return ValueTable((), (self.target.longest,))
                return ValueTable(("length",), self.domain("length"))
            case "tokens":
                if self.target.vocabulary is None:
                    return None
                cast = partial(DOMAIN.token, cast=str(node.attributes["cast"]))
                return ValueTable(("tokens",), tuple(each(cast, [self.target.vocabulary])))
            case "aggregate":
                found = self._moved(node) or self._mean_of_positions(node)
                return found or self._mean_of_equals(node) or self._mean(node)
            case "selector_width":
                return self._source(node, range(self.target.longest + 1))
            case op if OPERATIONS[op].elementwise:
                inputs = [self._tables[i] for i in node.inputs]
                known = [table for table in inputs if table is not None]
                found = None
                if len(known) == len(inputs):
                    found = self._joint(meaning(node), known, self._most(node, known))
                return found or self._by_kind(node) or self._by_inputs(node) or self._by_range(node)
            case _:
                return None

    def _most(self, node: Node, inputs: Sequence[ValueTable]) -> int:
        """How many combinations of sources are worth looking at."""
        sources = {source for column in inputs for source in column.sources}
        if sources <= {"indices", "length"}:
            return MAX_POSITIONS
        attended = any(not isinstance(source, str) for source in sources)
        # What numbers cannot be looked up by (strings) is looked up by its sources, or not at all.
        by_sources = node.op == "lookup" and inputs[0].largest_whole > EXACT_WHOLE[self.target.dtype]
        truth = OPERATIONS[node.op].group in ("comparison", "logic") and not by_sources
        return MAX_TRUTHS if attended and truth else MAX_COMBINATIONS

    def _source(self, node: Node, values: Sequence[Atom]) -> ValueTable:
        """The table of an s-op that others depend on as it is."""
        if len(values) == 1:
            return ValueTable((), tuple(values))
        self._domains[node] = tuple(values)
        return ValueTable((node,), tuple(values))

    def _by_kind(self, node: Node) -> ValueTable | None:
        """What an operation gives whatever its inputs are: a boolean, or a value of its table."""
        if OPERATIONS[node.op].group == "comparison" or node.op in ("and", "or", "not", "member"):
            return self._source(node, (False, True))
        if node.op == "indicator":
            return self._source(node, (0, 1))
        if node.op == "lookup":
            return self._source(node, distinct(table_of(node).values()))
        return None

    def _by_inputs(self, node: Node) -> ValueTable | None:
        """By the values of its inputs, where what these depend on combines in too many ways."""
        inputs: list[ValueTable] = []
        for i in node.inputs:
            table, values = self._tables[i], self.finite(i)
            if table is None or values is None:
                return None
            inputs.append(table if len(table.sources) <= 1 else self._source(i, values))
        return self._joint(meaning(node), inputs, MAX_COMBINATIONS)

    def _by_range(self, node: Node) -> ValueTable | None:
        """Every integer of its range."""
        found = self._combined(node)
        if found is None or found.high - found.low >= MAX_VALUES:
            return None
        return self._source(node, range(int(found.low), int(found.high) + 1))

    def _moved(self, node: Node) -> ValueTable | None:
        """What an aggregate finds where it takes no mean, or means of equal values alone."""
        values = self.finite(node.inputs[1])
        if values is None:
            return None
        default = node.attributes["default"]
        assert not isinstance(default, tuple)
        moved = all(isinstance(value, (str, bool)) for value in values)  # their mean is an error
        if not moved and not self._selectors.unique(node.inputs[0]):
            # n·v / n is v where n·v is not rounded. Strings beside numbers are moved: no sequence of an
            # input mixes the two.
            numbers = [value for value in values if not isinstance(value, str)]
            exact = all(_sums_exactly(value, self.target.longest) for value in numbers)
            if not exact or (len(numbers) > 1 and not _of_equals(node)):
                return None
        return self._source(node, distinct((*values, default)))

    def _mean_of_equals(self, node: Node) -> ValueTable | None:
        """A mean of equal numbers whose sum is rounded: each as it comes out for so many of them.

        They differ in their last bits: tables of hidden units refuse to tell them apart where that
        matters. Exact functions do not look, so there nothing is said.
        """
        values = self.finite(node.inputs[1])
        default = node.attributes["default"]
        assert not isinstance(default, tuple)
        counts = range(2, self.target.longest + 1)
        if values is None or not _of_equals(node) or self.target.feed_forward == "exact":
            return None
        strings = any(isinstance(value, str) for value in values)
        if strings or len(values) * len(counts) > MAX_COMBINATIONS:
            return None
        means = [DOMAIN.mean([value] * count) for value in values for count in counts]
        return self._source(node, distinct((*values, *means, default)))

    def _mean_of_positions(self, node: Node) -> ValueTable | None:
        """A mean that positions and length tell, as dense execution rounds it."""
        selector, value = node.inputs
        if self.target.longest**2 > MAX_COMBINATIONS or not self.depends_on(value, "indices", "length"):
            return None
        default = node.attributes["default"]
        assert not isinstance(default, tuple)
        values: list[Atom | None] = []
        for length in range(self.target.shortest, self.target.longest + 1):
            pattern = self._selectors.at_length(selector, length)
            if pattern is None:
                return None
            row: list[Atom | None]
            try:
                row = [*DOMAIN.aggregate(pattern, self.at_length(value, length), default)]
            except (ArithmeticError, CompileError, TypeError, ValueError):
                row = [None] * length
            values += [*row, *[None] * (self.target.longest - length)]
        sources: tuple[Source, ...] = ("indices",) if self.target.fixed else ("length", "indices")
        first = values[0]
        if all(v is not None and type(v) is type(first) and v == first for v in values):
            return ValueTable((), (first,))
        return ValueTable(sources, tuple(values))

    def _mean(self, node: Node) -> ValueTable | None:
        """A mean of finitely many numbers, whose sums are exact."""
        values = self.finite(node.inputs[1])
        if values is None:
            return None
        default = node.attributes["default"]
        assert not isinstance(default, tuple)
        try:
            found = self._mean_of_rows(node, default)
            if found is not None:
                return found
            means = distinct((*means_of_subsets(values, self.target.longest), default))
        except Unlisted:
            return None
        return self._source(node, means) if len(means) <= MAX_VALUES else None

    def _mean_of_rows(self, node: Node, default: Atom) -> ValueTable | None:
        """A mean over keys that positions and length tell: which one can be where is known, too."""
        selector, value = node.inputs
        if self.target.longest**2 > MAX_COMBINATIONS:
            return None
        at = self._by_position(value)
        by_row: dict[bytes, Sequence[Atom]] = {}
        found: dict[tuple[int, int], Sequence[Atom]] = {}
        for length in range(self.target.shortest, self.target.longest + 1):
            pattern = self._selectors.at_length(selector, length)
            if pattern is None:
                return None
            for position, row in enumerate(pattern):
                keys = np.flatnonzero(row).tolist()
                name = np.packbits(row).tobytes()
                if name not in by_row:
                    by_row[name] = means_of_positions(at, keys) if keys else [default]
                found[position, length] = by_row[name]
        values = distinct(v for means in by_row.values() for v in means)
        if len(values) > MAX_VALUES:
            raise Unlisted
        place = {v: i for i, v in enumerate(values)}
        limits = {
            "indices": np.zeros((self.target.longest, len(values)), dtype=bool),
            "length": np.zeros((len(self.domain("length")), len(values)), dtype=bool),
        }
        for (position, length), means in found.items():
            here = [place[v] for v in means]
            limits["indices"][position, here] = True
            limits["length"][length - self.target.shortest, here] = True
        self._limits[node] = limits
        return self._source(node, values)

    def _by_position(self, node: Node) -> list[tuple[Atom, ...]]:
        """The values that an s-op may have at each position."""
        column, values = self._tables[node], self.finite(node) or ()
        if column is None or "indices" not in column.sources:
            return [values] * self.target.longest
        sizes = [len(self.domain(source)) for source in column.sources]
        grid = np.empty(len(column.values), dtype=object)
        grid[:] = column.values
        rows = np.moveaxis(grid.reshape(sizes), column.sources.index("indices"), 0)
        by_position = rows.reshape(len(rows), -1).tolist()
        return [distinct(v for v in row if v is not None) for row in by_position]

    def _joint(
        self, function: Callable[..., Atom], inputs: Sequence[ValueTable], most: int
    ) -> ValueTable | None:
        sources = tuple(dict.fromkeys(s for column in inputs for s in column.sources))
        sizes = [len(self.domain(source)) for source in sources]
        total = math.prod(sizes)
        if total > max(most, MAX_GRID):
            return None
        grid = np.indices(sizes).reshape(len(sizes), -1) if sources else np.zeros((0, 1), dtype=int)
        occurs = np.flatnonzero(self._occur(sources, grid))
        if len(occurs) > most:
            return None
        grid = grid[:, occurs]
        arguments: list[Sequence[Atom | None]] = []
        for column in inputs:
            axes = [sources.index(source) for source in column.sources]
            if axes:
                shape = [sizes[axis] for axis in axes]
                places = np.ravel_multi_index([grid[axis] for axis in axes], shape)
                arguments.append([column.values[place] for place in places.tolist()])
            else:
                arguments.append(column.values * len(occurs))
        values = each(function, arguments)
        first = values[0]
        # ``tokens * 0`` depends on nothing.
        if sources and all(v is not None and type(v) is type(first) and v == first for v in values):
            return ValueTable((), (first,))
        if len(values) < total:
            listed: list[Atom | None] = [None] * total
            for place, v in zip(occurs.tolist(), values, strict=True):
                listed[place] = v
            values = listed
        return ValueTable(sources, tuple(values))

    def _occur(self, sources: Sequence[Source], grid: NDArray[np.int64]) -> Pattern:
        """Which combinations of sources can occur: no position lies behind the end, say."""
        occurs = np.ones(grid.shape[1], dtype=bool)
        axes = {source: axis for axis, source in enumerate(sources)}
        if "indices" in axes and "length" in axes:
            occurs &= grid[axes["indices"]] < grid[axes["length"]] + self.target.shortest
        for source, axis in axes.items():
            for other, limit in {} if isinstance(source, str) else self._limits.get(source, {}).items():
                if other in axes:
                    occurs &= limit[grid[axes[other]], grid[axis]]
        return occurs


def _sums_exactly(value: bool | int | float, count: int) -> bool:
    """Whether up to ``count`` equal numbers are added up without rounding."""
    if isinstance(value, float) and not math.isfinite(value):
        return False
    numerator, _ = value.as_integer_ratio()
    return abs(numerator) * count <= LARGEST_EXACT


def _of_equals(node: Node) -> bool:
    """Whether all keys that an aggregate may select have one value: it takes what they are best by."""
    selector, value = node.inputs
    return selector.op == "best" and selector.inputs[1] in (value, build("negate", value))
