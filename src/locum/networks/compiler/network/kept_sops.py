"""Decide which s-ops are columns of the embeddings, and which s-ops index a table.

An s-op that depends only on the token, or only on the position, needs no layer: it can be a column of
W_E or W_pos. With ``fold=False``, such operations of a program are *kept*, except operations with large
tables. Aggregates that depend only on position and length are also kept. Heads and feed-forwards
compute kept s-ops, one operation at a time. If possible, tables are then indexed by kept s-ops instead
of tokens and positions. S-ops that the compiler adds, such as the square of a position, are still
embedded, unless they are computed from a kept s-op.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from locum.graph import OPERATIONS, Atom, Node, postorder
from locum.networks.compiler.program.sources import MAX_GRID, ValueTable, source_nodes
from locum.networks.compiler.program.values import Values
from locum.networks.compiler.scoring.broadcasting import Known


@dataclass(frozen=True)
class LookupTable:
    """The value of an s-op for every combination of values of the s-ops ``by``.

    ``domains`` contains the possible values of each s-op in ``by``. A value of None means that the
    combination does not occur, or that the s-op is undefined for it.
    """

    by: list[Node]
    domains: Sequence[Sequence[Atom]]
    values: tuple[Atom | None, ...]


@dataclass
class KeptSops:
    """The embedded s-ops, and the arguments of tables, for a given set of kept s-ops."""

    known: Known
    #: For each s-op, the s-ops from which it is computed: kept s-ops, and operations that are not
    #: elementwise.
    _read: dict[Node, tuple[Node, ...]] = field(default_factory=dict)

    @property
    def _values(self) -> Values:
        return self.known.values

    def embeds(self, node: Node) -> bool:
        """Return whether an s-op is a column of the embeddings.

        Such an s-op is not kept, and depends only on the position or only on the token. Unless the s-op
        is constant, it is not computed from a kept s-op.
        """
        if node in self.known.kept or not self.known.is_foldable(node):
            return False
        constant = self._values.constant(node) is not None
        return constant or self.known.kept.isdisjoint(self._reads(node))

    def _reads(self, node: Node) -> tuple[Node, ...]:
        for below in postorder(node, into=lambda n: n not in self._read):
            if below not in self._read:
                inputs = below.inputs if OPERATIONS[below.op].elementwise else ()
                read = (part for i in inputs for part in self._parts(i))
                self._read[below] = tuple(dict.fromkeys(read))
        return self._read[node]

    def _parts(self, node: Node) -> tuple[Node, ...]:
        """Return the s-ops that are read for an input of an operation.

        These are the input itself, or the s-ops that the input reads if it is elementwise and not kept.
        """
        computed = OPERATIONS[node.op].elementwise and node not in self.known.kept
        return self._read[node] if computed else (node,)

    def table(self, node: Node) -> LookupTable | None:
        """Return the table of an s-op over other s-ops, or None if there is no such table."""
        column = self._values.over_sources(node)
        if column is None:
            return None
        if not self.known.kept.isdisjoint(self._reads(node)):
            by_kept = self._by_reads(node, column)
            if by_kept is not None:
                return by_kept
        by = source_nodes(column.sources)
        return LookupTable(
            by, [self._values.domain(source) for source in column.sources], column.values
        )

    def _by_reads(self, node: Node, column: ValueTable) -> LookupTable | None:
        """Convert a table over sources to a table over the s-ops that are read, or return None."""
        by = [read for read in self._reads(node) if self._values.constant(read) is None]
        sizes = [len(self._values.domain(source)) for source in column.sources]
        occurs = [place for place, value in enumerate(column.values) if value is not None]
        if not by or not occurs or not sizes:
            return None
        digits = dict(zip(column.sources, np.unravel_index(occurs, sizes), strict=True))
        domains, ranks = [], []
        for read in by:
            table, domain = self._values.table(read), self._values.finite(read)
            if table is None or domain is None or not set(table.sources) <= set(digits):
                return None
            own = [len(self._values.domain(source)) for source in table.sources]
            at = np.ravel_multi_index([digits[source] for source in table.sources], own)
            rank = {value: place for place, value in enumerate(domain)}
            values = [table.values[place] for place in at.tolist()]
            if None in values:
                return None
            domains.append(domain)
            ranks.append([rank[value] for value in values if value is not None])
        total = math.prod(map(len, domains))
        if total > MAX_GRID:
            return None
        listed: list[Atom | None] = [None] * total
        combinations = np.ravel_multi_index(ranks, [len(domain) for domain in domains])
        for place, occurring in zip(combinations.tolist(), occurs, strict=True):
            value = column.values[occurring]
            if listed[place] is not None and listed[place] != value:
                return None
            listed[place] = value
        return LookupTable(by, domains, tuple(listed))
