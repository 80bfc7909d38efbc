"""What tables of values range over: sources, the values of each, and which of these occur together."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from locum.compiler.program.conditions import Pattern
from locum.compiler.program.value_tables import Source, ValueTable, each
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

    def copy(self) -> Sources:
        """Copy, to which others can be added."""
        other = Sources.__new__(Sources)
        other._shortest = self._shortest
        other._domains, other._limits = dict(self._domains), dict(self._limits)
        return other

    def domain(self, source: Source) -> tuple[Atom, ...]:
        """Return the values of a source."""
        return self._domains[source]

    def add(
        self, node: Node, values: Sequence[Atom], limits: dict[str, Pattern] | None = None
    ) -> ValueTable:
        """Tabulate an s-op that others depend on as it is; ``limits`` tell where it has which value."""
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
        combinations = self._arguments(inputs, most)
        if combinations is None:
            return None
        sources, total, occurs, arguments = combinations
        values = each(function, arguments)
        first = values[0]
        # ``tokens * 0`` depends on nothing.
        if sources and all(v is not None and type(v) is type(first) and v == first for v in values):
            return ValueTable((), (first,))
        if len(values) < total:
            listed: list[Atom | None] = [None] * total
            for place, v in zip(occurs, values, strict=True):
                listed[place] = v
            values = listed
        return ValueTable(sources, tuple(values))

    def has_gap(
        self, function: Callable[..., Atom], inputs: Sequence[ValueTable], most: int
    ) -> bool | None:
        """Say whether a function of tables that have values has none; None: too many to be seen."""
        combinations = self._arguments(inputs, most)
        if combinations is None:
            return None
        rows = [row for row in zip(*combinations[3], strict=True) if None not in row]
        return bool(rows) and None in each(function, list(zip(*rows, strict=True)))

    def _arguments(
        self, inputs: Sequence[ValueTable], most: int
    ) -> tuple[tuple[Source, ...], int, Sequence[int], list[Sequence[Atom | None]]] | None:
        """Return sources of tables, how many combinations there are, which occur, and their values."""
        sources = tuple(dict.fromkeys(s for table in inputs for s in table.sources))
        sizes = [len(self.domain(source)) for source in sources]
        total = math.prod(sizes)
        if total > max(most, MAX_GRID):
            return None
        arguments: list[Sequence[Atom | None]]
        if len(sources) <= 1:  # then all of them occur, in the order of the tables
            if total > most:
                return None
            arguments = [table.values if table.sources else table.values * total for table in inputs]
            return sources, total, range(total), arguments
        grid = np.indices(sizes).reshape(len(sizes), -1)
        occurs = np.flatnonzero(self._occur(sources, grid))
        if len(occurs) > most:
            return None
        if len(occurs) < total:
            grid = grid[:, occurs]
        arguments = []
        for table in inputs:
            axes = [sources.index(source) for source in table.sources]
            if table.sources == sources and len(occurs) == total:
                arguments.append(table.values)
            elif axes:
                shape = [sizes[axis] for axis in axes]
                places = np.ravel_multi_index([grid[axis] for axis in axes], shape)
                arguments.append(list(map(table.values.__getitem__, places.tolist())))
            else:
                arguments.append(table.values * len(occurs))
        return sources, total, occurs.tolist(), arguments

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
