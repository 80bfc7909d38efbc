"""Write a condition on several s-ops as a conjunction of conditions on one s-op per side.

A predicate such as ``k[0] == q[0] and k[1] <= q[1]`` compares keys and queries that are functions of
two s-ops. As a single condition, the predicate may have one class for every pair of values. As two
conditions, it has only the classes of each part. Each part can be used as soon as its s-ops are
available.

The conditions are the projections of the pattern to each pair of an s-op of the query and an s-op of
the key. A pattern is a conjunction of conditions on such pairs if and only if it is the conjunction of
its projections.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from locum.errors import CompileError
from locum.graph import COMPARISONS, Atom, Node, build
from locum.graph.operations import constant
from locum.networks.compiler.compile_limits import check_time
from locum.networks.compiler.program.sources import (
    Pattern,
    Source,
    ValueTable,
    evaluated,
    select,
    selectors_of,
    source_nodes,
)
from locum.networks.compiler.program.values import Values
from locum.networks.compiler.scoring.scored_selectors import Classes, class_numbers
from locum.networks.compiler.scoring.scores import looked_up

#: Maximum number of pairs of key and query for which a pattern is projected.
MAX_CELLS = 2**21
#: The size of the keys of an equality, which contain a number and its square.
_EQUALITY = 2


def factored(condition: Node, values: Values) -> list[Node] | None:
    """Return simpler conditions whose conjunction is equivalent to ``condition``.

    Return None if no such conditions are found. Also return None if they do not need smaller keys and
    some of them are not available before the first layer.

    >>> from locum import indices, select, tokens
    >>> from locum.networks.compiler.scoring.scored_selectors import Selectors
    >>> from locum.networks.compiler.target import Target
    >>> code, codes = 10 * tokens + indices, [10, 11, 12, 20, 21, 22]
    >>> earlier = lambda k, q: k // 10 == q // 10 and k % 10 < q % 10
    >>> values = Selectors(Target(length=3, vocabulary=[1, 2])).values
    >>> factored(select(code, code, earlier, over=[codes, codes]).node, values)
    [<select: select(tokens, tokens, ==)>, <select: select(indices, indices, <)>]
    """
    if condition.op == "select" and condition.predicate == "==":
        return None  # keys of an equality have the minimum size
    parts_of_it = selectors_of(condition)
    if any(node.op == "best" for node in parts_of_it):
        return None
    comparisons = [node for node in parts_of_it if node.op == "select"]
    keys = tuple(dict.fromkeys(node.inputs[0] for node in comparisons))
    queries = tuple(dict.fromkeys(node.inputs[1] for node in comparisons))
    tables = [table for nodes in (keys, queries) if (table := values.together(nodes)) is not None]
    if len(tables) < 2 or sum(len(table.sources) for table in tables) < 3:
        return None
    of_keys, of_queries = (_Side.of(table, values) for table in tables)
    if of_keys is None or of_queries is None:
        return None
    if len(of_keys.places) * len(of_queries.places) > MAX_CELLS:
        return None

    def compared(node: Node, _: Sequence[Pattern]) -> Pattern:
        k, q = keys.index(node.inputs[0]), queries.index(node.inputs[1])
        at_keys, at_queries = [row[k] for row in of_keys.tuples], [row[q] for row in of_queries.tuples]
        return select(at_keys, at_queries, node.predicate, node)

    try:
        pattern = evaluated(condition, compared)[of_queries.places][:, of_keys.places]
    except CompileError:
        return None
    parts = _projections(pattern, of_queries, of_keys)
    if parts is None:
        return None
    smaller = sum(part.cost for part in parts) < Classes.of(pattern).count
    if smaller or all(part.at_once for part in parts):
        return [part.selector() for part in parts]
    return None


@dataclass(frozen=True)
class _Side:
    """The possible keys, or the possible queries, of a condition as tuples of values."""

    sources: tuple[Source, ...]
    domains: list[tuple[Atom, ...]]
    tuples: list[tuple[Atom, ...]]
    #: For each possible combination of source values: the index of its tuple (``places``), and the
    #: index of the value of each source (``grid``).
    places: NDArray[np.int64]
    grid: tuple[NDArray[np.int64], ...]

    @classmethod
    def of(cls, table: ValueTable, values: Values) -> _Side | None:
        """Return the tuples of a table, or None if the table is not suitable.

        The table must not be constant or always undefined. No two values of a source may be equal, such
        as 1 and True.
        """
        domains = [values.domain(source) for source in table.sources]
        if any(len(set(domain)) < len(domain) for domain in domains):  # 1 and True are equal keys
            return None
        occurs = [place for place, value in enumerate(table.values) if value is not None]
        if table.constant or not occurs:
            return None
        numbers: dict[Any, int] = {}
        places = [numbers.setdefault(table.values[place], len(numbers)) for place in occurs]
        grid = np.unravel_index(occurs, [len(domain) for domain in domains])
        return cls(table.sources, domains, list(numbers), np.array(places), grid)


@dataclass(frozen=True, eq=False)
class _Part:
    """A condition on one s-op of the query and one s-op of the key."""

    query: Source
    queries: Sequence[Atom]
    key: Source
    keys: Sequence[Atom]
    pattern: Pattern

    @property
    def cost(self) -> int:
        """The size of the keys that this condition needs."""
        count = Classes.of(self.pattern).count
        return count if class_numbers(self.pattern) is None else min(_EQUALITY, count)

    @property
    def at_once(self) -> bool:
        """Whether both s-ops are available before the first layer."""
        return {self.query, self.key} <= {"indices", "tokens"}

    def selector(self) -> Node:
        """Return the condition as a comparison, an equality of class numbers, or a union of classes."""
        query, key = source_nodes([self.query, self.key])
        for predicate in COMPARISONS:
            try:
                holds = select(self.keys, self.queries, predicate, key)
            except CompileError:
                continue
            if (holds == self.pattern).all():
                return build("select", key, query, predicate=predicate)
        numbers = class_numbers(self.pattern)
        if numbers is not None:
            query = looked_up(query, dict(zip(self.queries, numbers[0], strict=True)))
            key = looked_up(key, dict(zip(self.keys, numbers[1], strict=True)))
            return build("select", key, query, predicate="==")
        classes = Classes.of(self.pattern)
        both = classes.members, classes.holds
        parts = zip(*(both if classes.of_queries else both[::-1]), strict=True)
        union = [
            build(
                "selector_and", _chosen(key, self.keys, k), _chosen(query, self.queries, q, query=True)
            )
            for q, k in parts
        ]
        return reduce(lambda one, other: build("selector_or", one, other), union)


def _chosen(node: Node, values: Sequence[Atom], chosen: Pattern, *, query: bool = False) -> Node:
    """Return a selector of the keys for which ``node`` has a chosen value.

    With ``query=True``, return a selector of all keys for queries at which ``node`` has a chosen value.
    """
    sides = [looked_up(node, dict(zip(values, chosen.tolist(), strict=True))), constant(True)]
    return build("select", *(sides[::-1] if query else sides), predicate="==")


def _projections(pattern: Pattern, queries: _Side, keys: _Side) -> list[_Part] | None:
    """Return conditions on pairs of s-ops whose conjunction is the pattern, or None.

    Conditions that the others imply are omitted.
    """
    parts: list[tuple[_Part, Pattern]] = []
    for query, queried, at_query in zip(queries.sources, queries.domains, queries.grid, strict=True):
        by_query = _any_of(pattern, at_query, len(queried))
        for key, keyed, at_key in zip(keys.sources, keys.domains, keys.grid, strict=True):
            check_time()
            shadow = _any_of(by_query.T, at_key, len(keyed)).T
            part = _Part(query, queried, key, keyed, shadow)
            parts.append((part, shadow[at_query][:, at_key]))
    if not (_conjunction([whole for _, whole in parts], pattern) == pattern).all():
        return None
    needed = sorted(parts, key=lambda part: -part[0].cost)
    for pair in list(needed):
        others = [other for other in needed if other is not pair]
        if (_conjunction([whole for _, whole in others], pattern) == pattern).all():
            needed = others
    kept = [part for part, _ in needed]
    return [part for part, _ in parts if part in kept] if kept else None


def _any_of(rows: Pattern, groups: NDArray[np.int64], count: int) -> Pattern:
    """Return the element-wise disjunction of the rows in each of ``count`` groups.

    ``groups`` contains the group of each row.
    """
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    result = np.zeros((count, rows.shape[1]), dtype=bool)
    result[groups[order[starts]]] = np.logical_or.reduceat(rows[order], starts, axis=0)
    return result


def _conjunction(patterns: Sequence[Pattern], like: Pattern) -> Pattern:
    return reduce(np.logical_and, patterns, np.ones_like(like))
