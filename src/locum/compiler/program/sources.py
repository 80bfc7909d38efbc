"""What tables of values range over: sources, the values of each, and which of these occur together."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from locum.compiler.program.conditions import Pattern
from locum.compiler.program.value_tables import Source, ValueTable, each, is_constant
from locum.compiler.target import Target
from locum.graph import Atom, Node

#: Combinations of sources that are looked at one by one: in general; of positions and lengths alone
#: (``length - 1 - indices`` on 512 tokens); of booleans that depend on attention (of which long
#: conditions have very many, and two values at the end).
MAX_COMBINATIONS = 2**15
MAX_POSITIONS = 2**18
MAX_BOOLEANS = 2**13
#: Combinations of which those are found that can occur.
MAX_GRID = 2**18
#: Values that an s-op may have and still be called finite.
MAX_VALUES = 2**14


@dataclass(frozen=True)
class _Combinations:
    """Combinations of sources that can occur, out of ``total``."""

    sources: tuple[Source, ...]
    sizes: list[int]
    total: int
    #: Which of all they are, in their order.
    occurs: Sequence[int]
    #: [source, combination]: the number of its value; of one source alone it is not asked.
    grid: NDArray[np.int64] | None = None
    #: Where tables over some of the sources have their values for these, once it has been asked.
    _places: dict[tuple[Source, ...], list[int]] = field(default_factory=dict)

    def read(self, table: ValueTable) -> Sequence[Atom | None]:
        """Return the value that a table over some of the sources has for each combination."""
        if not table.sources:
            return table.values * len(self.occurs)
        if self.grid is None or (table.sources == self.sources and len(self.occurs) == self.total):
            return table.values
        if table.sources not in self._places:
            axes = [self.sources.index(source) for source in table.sources]
            shape = [self.sizes[axis] for axis in axes]
            places = np.ravel_multi_index([self.grid[axis] for axis in axes], shape)
            self._places[table.sources] = places.tolist()
        return list(map(table.values.__getitem__, self._places[table.sources]))


class Sources:
    """The values of each source: of position, length and token, and of s-ops that others depend on."""

    def __init__(self, target: Target) -> None:
        self._shortest = target.shortest
        self._domains: dict[Source, tuple[Atom, ...]] = {
            "indices": tuple(range(target.longest)),
            "length": tuple(range(target.shortest, target.longest + 1)),
            "tokens": target.vocabulary or (),
        }
        #: [value of "indices" or "length", own value]: which values can occur where, at which length.
        self._limits: dict[Node, dict[str, Pattern]] = {}
        #: Those asked for last: a long expression asks for the same ones at each operation.
        self._latest: _Combinations | None = None

    def copy(self) -> Sources:
        """Copy, to which others can be added."""
        other = copy.copy(self)
        other._domains, other._limits = dict(self._domains), dict(self._limits)
        return other

    def domain(self, source: Source) -> tuple[Atom, ...]:
        """Return the values of a source."""
        return self._domains[source]

    def add(
        self, node: Node, values: Sequence[Atom], limits: dict[str, Pattern] | None = None
    ) -> ValueTable:
        """Tabulate an s-op that others depend on as it is; ``limits`` tell where it has which value."""
        if self._latest is not None and node in self._latest.sources:
            self._latest = None
        if limits is not None:
            self._limits[node] = limits
        if len(values) == 1:
            return ValueTable((), tuple(values))
        self._domains[node] = tuple(values)
        return ValueTable((node,), tuple(values))

    def joint(
        self, function: Callable[..., Atom], inputs: Sequence[ValueTable], most: int
    ) -> ValueTable | None:
        """Tabulate a function of tables; None where more than ``most`` combinations can occur."""
        combinations = self._combinations(inputs, most)
        if combinations is None:
            return None
        values = each(function, list(map(combinations.read, inputs)))
        if combinations.sources and is_constant(values):  # ``tokens * 0`` depends on nothing
            return ValueTable((), (values[0],))
        if len(values) < combinations.total:
            listed: list[Atom | None] = [None] * combinations.total
            for place, v in zip(combinations.occurs, values, strict=True):
                listed[place] = v
            values = listed
        return ValueTable(combinations.sources, tuple(values))

    def has_gap(
        self, function: Callable[..., Atom], inputs: Sequence[ValueTable], most: int
    ) -> bool | None:
        """Say whether a function of tables that have values has none; None: too many to be seen."""
        combinations = self._combinations(inputs, most)
        if combinations is None:
            return None
        rows = [row for row in zip(*map(combinations.read, inputs), strict=True) if None not in row]
        return bool(rows) and None in each(function, list(zip(*rows, strict=True)))

    def _combinations(self, inputs: Sequence[ValueTable], most: int) -> _Combinations | None:
        """Return which combinations of the sources of tables occur; None if more than ``most`` do."""
        sources = tuple(dict.fromkeys(s for table in inputs for s in table.sources))
        if self._latest is None or self._latest.sources != sources:
            sizes = [len(self.domain(source)) for source in sources]
            total = math.prod(sizes)
            if total > max(most, MAX_GRID):
                return None
            if len(sources) <= 1:  # then all of them occur, in the order of the tables
                return _Combinations(sources, sizes, total, range(total)) if total <= most else None
            grid = np.indices(sizes).reshape(len(sizes), -1)
            occurs = np.flatnonzero(self._occur(sources, grid))
            if len(occurs) < total:
                grid = grid[:, occurs]
            self._latest = _Combinations(sources, sizes, total, occurs.tolist(), grid)
        return self._latest if len(self._latest.occurs) <= most else None

    def _occur(self, sources: Sequence[Source], grid: NDArray[np.int64]) -> Pattern:
        """Return which combinations of sources can occur: no position is past the end, say."""
        occurs = np.ones(grid.shape[1], dtype=bool)
        axes = {source: axis for axis, source in enumerate(sources)}
        if "indices" in axes and "length" in axes:
            occurs &= grid[axes["indices"]] < grid[axes["length"]] + self._shortest
        for source, axis in axes.items():
            for other, limit in {} if isinstance(source, str) else self._limits.get(source, {}).items():
                if other in axes:
                    occurs &= limit[grid[axes[other]], grid[axis]]
        return occurs
