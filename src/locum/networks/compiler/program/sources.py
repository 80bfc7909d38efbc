"""Tabulate the values of s-ops over their sources.

The sources of an s-op are the position, the length, the token and the results of other s-ops, mostly of
attention, that determine its value. The module also defines helpers for values and for the conditions
of selectors.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from locum.errors import CompileError
from locum.graph import COMPARISONS, Atom, Node, Sort, abbreviate, build, postorder, sort_of
from locum.graph.atoms import short
from locum.networks.compiler.compile_limits import check_time
from locum.networks.compiler.program.integer_ranges import Range
from locum.networks.compiler.target import DOMAIN, Target

#: A source of a value: "indices", "length", "tokens", or another s-op, mostly an attention operation.
Source: TypeAlias = "str | Node"

_TOKENS = build("tokens", cast="asis")
_WRONG = (ArithmeticError, LookupError, TypeError, ValueError)


@dataclass(frozen=True)
class ValueTable:
    """The values of an s-op for all combinations of the values of its sources.

    The values of the last source vary fastest. A value of None means that the s-op is undefined for a
    combination, or that the combination cannot occur.
    """

    sources: tuple[Source, ...]
    values: tuple[Atom | None, ...]

    @property
    def constant(self) -> bool:
        """Whether the table has no sources, so that the s-op is constant or always undefined."""
        return not self.sources

    @cached_property
    def _types(self) -> set[type]:
        """The set of types of the values, so that long tables are checked quickly."""
        return set(map(type, self.values))

    @cached_property
    def _whole(self) -> Range:
        """The range of the integers and booleans among the values; 0 to 0 if there are none."""
        if self._types.isdisjoint((int, bool)):
            return Range(0, 0)
        whole: Any = self.values
        if not self._types <= {int, bool}:
            whole = [value for value in self.values if isinstance(value, int)]
        return Range(min(whole), max(whole))

    @property
    def integers(self) -> Range | None:
        """The range of the defined values if all are integers or booleans, otherwise None."""
        return self._whole if self._types.isdisjoint((float, str)) else None

    @property
    def largest_whole(self) -> float:
        """The largest absolute value of the integers in the table; infinity if there are strings."""
        return math.inf if str in self._types else self._whole.largest


def source_nodes(sources: Iterable[Source]) -> list[Node]:
    """Return the s-ops whose values are the values of the sources."""
    named = {"indices": build("indices"), "length": build("length"), "tokens": _TOKENS}
    return [named[source] if isinstance(source, str) else source for source in sources]


def meaning(node: Node) -> Callable[..., Atom]:
    """Return the Python function of scalars that defines an elementwise operation."""
    if node.op == "lookup":  # a dictionary is faster than the linear search of the definition
        return table_of(node).__getitem__
    return partial(DOMAIN.meanings[node.op], **node.attributes)


def table_of(node: Node) -> dict[Atom, Atom]:
    """Return the table of a ``lookup`` as a dictionary; for equal keys, the first entry is used."""
    table: dict[Atom, Atom] = {}
    for key, value in node.table:
        table.setdefault(key, value)
    return table


def each(
    function: Callable[..., Atom], arguments: Sequence[Sequence[Atom | None]]
) -> list[Atom | None]:
    """Apply a function elementwise to several sequences of arguments, as ``map`` does.

    An element of the result is None if the function is undefined, or if one of its arguments is None.
    """
    if not any(None in argument for argument in arguments):
        try:
            return list(map(function, *arguments))
        except _WRONG:
            pass
    results: list[Atom | None] = []
    for scalars in zip(*arguments, strict=True):
        try:
            results.append(None if None in scalars else function(*scalars))
        except _WRONG:
            results.append(None)
    return results


def is_constant(values: Sequence[Atom | None]) -> bool:
    """Return whether all values are equal, have the same type and are not None."""
    first = values[0]
    return first is not None and all(type(v) is type(first) and v == first for v in values)


def distinct(values: Iterable[Atom]) -> tuple[Atom, ...]:
    """Return the different values in order: numbers first, then strings.

    If a boolean and a number are equal, return only the number.

    >>> distinct([3, True, 1, 1.0, "b", "a"]), distinct([True, False])
    ((1, 3, 'a', 'b'), (False, True))
    """
    # A mean of booleans is an error. If all values are booleans, an aggregate therefore moves them
    # unchanged. If there are also numbers, the aggregate may compute a mean.
    listed = list(values)
    if set(map(type, listed)) <= {int, float}:  # a fast path for long columns
        return tuple(sorted(dict.fromkeys(listed)))
    once = dict.fromkeys(listed)
    if any(isinstance(v, bool) for v in once):
        once = dict.fromkeys(v for v in listed if not isinstance(v, bool)) | once
    return tuple(sorted(once, key=lambda v: (isinstance(v, str), v)))


def require_finite(value: Atom, where: Node | str) -> float:
    """Return a value as a float; raise CompileError if it is NaN or beyond the range of floats.

    ``where`` is the s-op that the error names.
    """
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        place = where if isinstance(where, str) else abbreviate(where)
        raise CompileError(f"expected numbers within the range of floats, got {short(value)}", place)
    return number


#: The selected pairs of a selector, with shape [query, key].
Pattern: TypeAlias = NDArray[np.bool_]


def conditions(selector: Node) -> list[Node]:
    """Write a selector as a list of conditions that must all hold.

    Negations of disjunctions and comparisons are moved inwards. Repeated conditions are omitted.

    >>> from locum import indices, select, tokens
    >>> s = ~(select(tokens, 1, "==") | select(indices, indices, "<"))
    >>> conditions(s.node)
    [<select: select(tokens, 1, !=)>, <select: select(indices, indices, >=)>]
    """
    conjuncts: list[Node] = []
    stack = [(selector, False)]
    while stack:
        node, negated = stack.pop()
        if node.op == "selector_not":
            stack.append((node.inputs[0], not negated))
        elif node.op == ("selector_or" if negated else "selector_and"):
            stack.extend((i, negated) for i in reversed(node.inputs))
        elif node.op == "select" and negated:
            negation = COMPARISONS[node.predicate].negation
            conjuncts.append(build("select", *node.inputs, predicate=negation))
        else:
            conjuncts.append(build("selector_not", node) if negated else node)
    return list(dict.fromkeys(conjuncts))


def selectors_of(condition: Node) -> list[Node]:
    """Return the selectors that a formula combines, in postorder.

    Selectors inside the s-ops that are compared are not included.

    >>> from locum import select, selector_width, tokens
    >>> alike = selector_width(select(tokens, tokens, "=="))
    >>> [node.op for node in selectors_of((~select(alike, 1, "==")).node)]
    ['select', 'selector_not']
    """
    return list(postorder(condition, into=lambda node: sort_of(node) is Sort.SELECTOR))


def select(keys: Sequence[Atom], queries: Sequence[Atom], predicate: str, where: Node) -> Pattern:
    """Return the pattern of the comparison ``where`` between keys and queries, by the rules of RASP.

    Raise CompileError if a key cannot be compared with a query.
    """
    try:
        return DOMAIN.select(keys, queries, predicate)
    except TypeError as error:
        raise CompileError(
            f"the keys and queries cannot be compared: {error}", abbreviate(where)
        ) from None


def evaluated(condition: Node, leaf: Callable[[Node, Sequence[Pattern]], Pattern]) -> Pattern:
    """Return the pattern of a formula of selectors.

    ``leaf`` returns the pattern of a ``select`` or ``best``, given the patterns of its inputs.
    """
    patterns: dict[Node, Pattern] = {}
    for node in selectors_of(condition):
        parts = [patterns[i] for i in node.inputs if i in patterns]
        match node.op:
            case "selector_and":
                patterns[node] = parts[0] & parts[1]
            case "selector_or":
                patterns[node] = parts[0] | parts[1]
            case "selector_not":
                patterns[node] = ~parts[0]
            case _:
                patterns[node] = leaf(node, parts)
    return patterns[condition]


def reflexive(condition: Node) -> bool:
    """Return whether a condition compares an s-op with itself, such that a query selects itself."""
    if condition.op != "select":
        return False
    key, query = condition.inputs
    return key is query and condition.predicate in ("==", "<=", ">=")


#: Maximum number of combinations of sources that are enumerated. The second number applies if the
#: sources are only position and length, as in ``length - 1 - indices`` on 512 tokens. The third number
#: applies to comparisons and logical operations that depend on attention, since long conditions have a
#: large number of combinations, but only two values.
MAX_COMBINATIONS = 2**15
MAX_POSITIONS = 2**18
MAX_BOOLEANS = 2**13
#: Maximum number of combinations for which the compiler determines which of them can occur, unless a
#: larger number may be enumerated.
MAX_GRID = 2**18
#: Maximum number of possible values for which the set of values counts as finite.
MAX_VALUES = 2**14


@dataclass(frozen=True)
class _Combinations:
    """The combinations of source values that can occur, among ``total`` combinations."""

    sources: tuple[Source, ...]
    sizes: list[int]
    total: int
    #: The indices of the possible combinations among all combinations.
    occurs: Sequence[int]
    #: Index of the value of each source in each possible combination, with shape [source, combination].
    #: None for at most one source.
    grid: NDArray[np.int64] | None = None
    #: Cache for ``places``.
    _places: dict[tuple[Source, ...], list[int]] = field(default_factory=dict)

    def read(self, table: ValueTable) -> Sequence[Atom | None]:
        """Return the values of a table over some of the sources, one for each possible combination."""
        if not table.sources:
            return table.values * len(self.occurs)
        if self.grid is None or (table.sources == self.sources and len(self.occurs) == self.total):
            return table.values
        return list(map(table.values.__getitem__, self.places(table.sources)))

    def places(self, sources: tuple[Source, ...]) -> list[int]:
        """Return the index into a table over some of the sources, for each possible combination."""
        if sources not in self._places:
            assert self.grid is not None
            axes = [self.sources.index(source) for source in sources]
            shape = [self.sizes[axis] for axis in axes]
            places = np.ravel_multi_index([self.grid[axis] for axis in axes], shape)
            self._places[sources] = places.tolist()
        return self._places[sources]


class Sources:
    """The possible values of each source: position, length, token, and s-ops used as sources."""

    def __init__(self, target: Target, possible: Pattern | None = None) -> None:
        self._shortest = target.shortest
        #: Whether a token can occur at a position, with shape [token, position, length − shortest];
        #: None if no restriction is known.
        self._possible = possible
        self._domains: dict[Source, tuple[Atom, ...]] = {
            "indices": tuple(range(target.longest)),
            "length": tuple(range(target.shortest, target.longest + 1)),
            "tokens": target.vocabulary or (),
        }
        #: For some sources, the values that can occur at each position and at each length, with shape
        #: [value of "indices" or "length", value of the source].
        self._limits: dict[Node, dict[str, Pattern]] = {}
        #: The most recent combinations, since all operations of a long expression use the same ones.
        self._latest: _Combinations | None = None

    def copy(self) -> Sources:
        """Return a copy to which sources can be added."""
        other = copy.copy(self)
        other._domains, other._limits = dict(self._domains), dict(self._limits)
        return other

    def domain(self, source: Source) -> tuple[Atom, ...]:
        """Return the possible values of a source."""
        return self._domains[source]

    def add(
        self, node: Node, values: Sequence[Atom], limits: dict[str, Pattern] | None = None
    ) -> ValueTable:
        """Use an s-op with these possible values as a source, and return its table.

        ``limits`` restricts the values that can occur at each position and at each length. An s-op with
        a single value becomes a constant instead.
        """
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
        """Return the table of a function of several tabulated s-ops.

        Return None if more than ``most`` combinations of source values can occur, or if too many
        combinations would have to be examined.
        """
        check_time()
        combinations = self._combinations(inputs, most)
        if combinations is None:
            return None
        values = each(function, list(map(combinations.read, inputs)))
        if combinations.sources and is_constant(values):  # for example ``tokens * 0``
            return ValueTable((), (values[0],))
        if len(values) < combinations.total:
            listed: list[Atom | None] = [None] * combinations.total
            for place, v in zip(combinations.occurs, values, strict=True):
                listed[place] = v
            values = listed
        return self.over_needed(ValueTable(combinations.sources, tuple(values)))

    def over_needed(self, table: ValueTable) -> ValueTable:
        """Return an equal table without the sources on which no value depends.

        Tables with one source are returned unchanged. Tables with another s-op as a source are also
        returned unchanged, since position and length may restrict the values of this s-op.

        >>> from locum.networks.compiler.target import Target
        >>> sources = Sources(Target(length=2, vocabulary="ab"))
        >>> sources.over_needed(ValueTable(("tokens", "indices"), (3, 3, 4, 4)))
        ValueTable(sources=('tokens',), values=(3, 4))
        """
        known = all(isinstance(source, str) for source in table.sources)
        for source in table.sources if known and len(table.sources) > 1 else ():
            shorter = self._without(table, source)
            if shorter is not None:
                return self.over_needed(shorter)
        return table

    def _without(self, table: ValueTable, source: Source) -> ValueTable | None:
        """Return the table without one of its sources, or None if some value depends on this source."""
        combinations = self._combinations([table], len(table.values))
        assert combinations is not None
        axis = table.sources.index(source)
        others = table.sources[:axis] + table.sources[axis + 1 :]
        found: dict[int, Atom | None] = {}
        for place, value in zip(combinations.places(others), combinations.read(table), strict=True):
            known = found.setdefault(place, value)
            if known is not value and (type(known) is not type(value) or known != value):
                return None
        total = math.prod(len(self.domain(other)) for other in others)
        return ValueTable(others, tuple(map(found.get, range(total))))

    def has_gap(
        self, function: Callable[..., Atom], inputs: Sequence[ValueTable], most: int
    ) -> bool | None:
        """Return whether a function is undefined for some possible values of the tables.

        Combinations for which one of the tables is undefined are ignored. Return None if there are too
        many combinations, as for :meth:`joint`.
        """
        combinations = self._combinations(inputs, most)
        if combinations is None:
            return None
        rows = [row for row in zip(*map(combinations.read, inputs), strict=True) if None not in row]
        return bool(rows) and None in each(function, list(zip(*rows, strict=True)))

    def _combinations(self, inputs: Sequence[ValueTable], most: int) -> _Combinations | None:
        """Return the possible combinations of the sources of several tables.

        Return None if there are more than ``most`` combinations, or too many to examine. Raise
        CompileError if no combination of several sources can occur.
        """
        sources = tuple(dict.fromkeys(s for table in inputs for s in table.sources))
        if self._latest is None or self._latest.sources != sources:
            sizes = [len(self.domain(source)) for source in sources]
            total = math.prod(sizes)
            if total > max(most, MAX_GRID):
                return None
            if len(sources) <= 1:  # all values of a single source occur, in the order of the tables
                return _Combinations(sources, sizes, total, range(total)) if total <= most else None
            grid = np.indices(sizes).reshape(len(sizes), -1)
            occurs = np.flatnonzero(self._occur(sources, grid))
            if not len(occurs):
                raise CompileError(
                    "inputs: expected a condition that some input satisfies, got one that no input "
                    "satisfies"
                )
            if len(occurs) < total:
                grid = grid[:, occurs]
            self._latest = _Combinations(sources, sizes, total, occurs.tolist(), grid)
        return self._latest if len(self._latest.occurs) <= most else None

    def _occur(self, sources: Sequence[Source], grid: NDArray[np.int64]) -> Pattern:
        """Return whether each combination in ``grid`` may occur.

        For example, a position past the end of the input cannot occur.
        """
        occurs = np.ones(grid.shape[1], dtype=bool)
        axes = {source: axis for axis, source in enumerate(sources)}
        if "indices" in axes and "length" in axes:
            occurs &= grid[axes["indices"]] < grid[axes["length"]] + self._shortest
        if "tokens" in axes and self._possible is not None:
            named = ("tokens", "indices", "length")
            others = tuple(axis for axis, name in enumerate(named) if name not in axes)
            chosen = tuple(grid[axes[name]] for name in named if name in axes)
            possible: Pattern = np.any(self._possible, axis=others)
            occurs &= possible[chosen]
        for source, axis in axes.items():
            for other, limit in {} if isinstance(source, str) else self._limits.get(source, {}).items():
                if other in axes:
                    occurs &= limit[grid[axes[other]], grid[axis]]
        return occurs
