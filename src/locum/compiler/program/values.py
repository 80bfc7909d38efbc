"""Which values an s-op can take: what tells the compiler a table, a code or a category will do.

The *sources* of an s-op are what its value depends on, position by position: the position
(``indices``), the ``length`` of the input, the token, and the results of attention. Where all sources
are finite and few, its :class:`ValueTable` lists the value for every combination of them, computed as
RASP computes: strings, whole numbers of any size. So anything that depends on the position alone
becomes a positional encoding, anything that depends on the token alone an embedding, and whatever is
finite can be told apart exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from locum.compiler.program.value_tables import Source, ValueTable, distinct, each, meaning, table_of
from locum.compiler.target import DOMAIN, EXACT_WHOLE, Target
from locum.errors import CompileError
from locum.graph import OPERATIONS, Atom, Node, abbreviate, postorder

#: Combinations of sources that are looked at one by one: in general; of positions and lengths alone
#: (``length - 1 - indices`` on 512 tokens); of truth values that depend on attention (of which long
#: conditions have very many, and two values at the end).
MAX_COMBINATIONS = 2**15
MAX_POSITIONS = 2**18
MAX_TRUTHS = 2**11
#: Values that an s-op may have and still be called finite.
MAX_VALUES = 2**14

#: Whole numbers larger than all that any type of float holds with its neighbours.
_ENDLESS = 2**64


class Values:
    """The columns of all s-ops of a program, found when asked for."""

    def __init__(self, target: Target, unique: Callable[[Node], bool]) -> None:
        """``unique`` tells whether a selector selects at most one key for each query."""
        self.target = target
        self._unique = unique
        self._tables: dict[Node, ValueTable | None] = {}
        self._finite: dict[Node, tuple[Atom, ...] | None] = {}
        self._wholes: dict[Node, int | None] = {}
        self._domains: dict[Source, tuple[Atom, ...]] = {
            "indices": tuple(range(target.longest)),
            "length": tuple(range(target.shortest, target.longest + 1)),
            "tokens": target.vocabulary or (),
        }

    def knowing(self, values: Mapping[Node, Sequence[Atom]], unique: Callable[[Node], bool]) -> Values:
        """Copy that also knows which values these s-ops, new to the program, take."""
        copy = Values(self.target, unique)
        copy._tables, copy._finite = dict(self._tables), dict(self._finite)
        copy._wholes, copy._domains = dict(self._wholes), dict(self._domains)
        for node, atoms in values.items():
            copy._domains[node] = tuple(atoms)
            copy._tables[node] = ValueTable((node,), tuple(atoms))
        return copy

    def table(self, node: Node) -> ValueTable | None:
        """Its values over its sources, or None where there are too many."""
        if node not in self._tables:
            for below in postorder(node, into=lambda n: n not in self._tables):
                self._tables[below] = self._found(below)
        return self._tables[node]

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

    def largest_whole(self, node: Node) -> int | None:
        """A bound for an s-op that is always a whole number, or None where it may be another."""
        if node not in self._wholes:
            for below in postorder(node, into=lambda n: n not in self._wholes):
                self._wholes[below] = self._bounded(below)
        return self._wholes[node]

    def _bounded(self, node: Node) -> int | None:
        column = self.table(node)
        if column is not None:
            values = [value for value in column.values if value is not None]
            whole = [abs(value) for value in values if isinstance(value, int)]
            return max(whole, default=0) if len(whole) == len(values) else None
        parts = [self._wholes[i] for i in node.inputs]
        known = [part for part in parts if part is not None]
        match node.op:
            case "add" | "subtract" if len(known) == 2:
                return min(sum(known), _ENDLESS)
            case "multiply" if len(known) == 2:
                return min(math.prod(known), _ENDLESS)
            case "negate" | "absolute" | "round" | "floor" if known:
                return known[0]
            case "minimum" | "maximum" if len(known) == 2:
                return max(known)
            case "if_else" if None not in parts[1:]:
                return max(part for part in parts[1:] if part is not None)
            case "modulo":
                return parts[1]
            case "aggregate":  # a mean is no whole number, but no more of one than what it is of
                return parts[1]
            case _:
                return None

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
            case "aggregate" | "selector_width":
                domain = self._attended(node)
                if domain is None:
                    return None
                self._domains[node] = domain
                return ValueTable((node,), domain) if len(domain) > 1 else ValueTable((), domain)
            case op if OPERATIONS[op].elementwise:
                inputs = [self._tables[i] for i in node.inputs]
                known = [column for column in inputs if column is not None]
                found = None
                if len(known) == len(inputs):
                    found = self._joint(meaning(node), known, self._most(node, known))
                return found or self._by_kind(node)
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

    def _by_kind(self, node: Node) -> ValueTable | None:
        """What an operation gives whatever it is given: truth has two values."""
        if OPERATIONS[node.op].group == "comparison" or node.op in ("and", "or", "not", "member"):
            self._domains[node] = (False, True)
        elif node.op == "indicator":
            self._domains[node] = (0, 1)
        elif node.op == "lookup":
            self._domains[node] = distinct(table_of(node).values())
        else:
            return None
        return ValueTable((node,), self._domains[node])

    def _attended(self, node: Node) -> tuple[Atom, ...] | None:
        """What attention may find, or None where means of several values may come out."""
        if node.op == "selector_width":
            return tuple(range(self.target.longest + 1))
        values = self.finite(node.inputs[1])
        if values is None:
            return None
        default = node.attributes["default"]
        assert not isinstance(default, tuple)
        moved_only = all(isinstance(value, (str, bool)) for value in values) or len(values) == 1
        if not moved_only and not self._unique(node.inputs[0]):
            return None
        return distinct((*values, default))

    def _joint(
        self, function: Callable[..., Atom], inputs: Sequence[ValueTable], most: int
    ) -> ValueTable | None:
        sources = tuple(dict.fromkeys(s for column in inputs for s in column.sources))
        sizes = [len(self.domain(source)) for source in sources]
        if math.prod(sizes) > most:
            return None
        grid = np.indices(sizes).reshape(len(sizes), -1) if sources else np.zeros((0, 1), dtype=int)
        arguments: list[Sequence[Atom | None]] = []
        for column in inputs:
            axes = [sources.index(source) for source in column.sources]
            if axes:
                shape = [sizes[axis] for axis in axes]
                places = np.ravel_multi_index([grid[axis] for axis in axes], shape)
                arguments.append([column.values[place] for place in places.tolist()])
            else:
                arguments.append(column.values * grid.shape[1])
        values = each(function, arguments)
        if "indices" in sources and "length" in sources:  # no position lies behind the end
            position = grid[sources.index("indices")]
            length = grid[sources.index("length")] + self.target.shortest
            values = [
                v if here else None
                for v, here in zip(values, (position < length).tolist(), strict=True)
            ]
        return self._simplified(sources, sizes, values)

    def _simplified(
        self, sources: tuple[Source, ...], sizes: list[int], values: list[Atom | None]
    ) -> ValueTable:
        """Without sources that make no difference: ``tokens * 0`` depends on nothing."""
        first = values[0]
        if sources and all(v is not None and type(v) is type(first) and v == first for v in values):
            return ValueTable((), (first,))
        return ValueTable(sources, tuple(values))
