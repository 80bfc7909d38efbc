"""Find the values of an aggregate: values that it moves, or means of values that it may select."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import Protocol

import numpy as np

from locum.errors import CompileError
from locum.graph import Atom, Node, build
from locum.graph.atoms import LARGEST_EXACT
from locum.networks.compiler.compile_limits import check_time
from locum.networks.compiler.program.sources import (
    MAX_COMBINATIONS,
    MAX_VALUES,
    Pattern,
    Source,
    Sources,
    ValueTable,
    distinct,
    is_constant,
)
from locum.networks.compiler.target import DOMAIN, Target

#: Steps of the grid between the least and the greatest sum: beyond that a mean is not called finite.
MAX_SUMS = 2**16


class Unlisted(Exception):  # noqa: N818  (a signal to the caller, not an error)
    """Sums that are rounded, or too many."""


def denominator(values: Sequence[Atom], count: int) -> int:
    """Return the power of two that makes these numbers integers whose sums of ``count`` are exact.

    Raises :class:`Unlisted` where sums are rounded, too many to be listed, or not sums of numbers.
    """
    if any(isinstance(value, str) for value in values):
        raise Unlisted
    try:
        scale = max(value.as_integer_ratio()[1] for value in values if not isinstance(value, str))
        integers = [int(value * scale) for value in values if not isinstance(value, str)]
    except (OverflowError, ValueError):
        raise Unlisted from None
    span = max(integers) - min(integers)
    if max(map(abs, integers)) * count > LARGEST_EXACT or span * count > MAX_SUMS:
        raise Unlisted
    return scale


def means_of_positions(values: Sequence[Sequence[Atom]], keys: Sequence[int]) -> list[Atom]:
    """List the means over ``keys``, where ``values`` lists what each position may have."""
    check_time()
    if len(keys) == 1:
        return list(values[keys[0]])
    together = [value for key in keys for value in values[key]]
    if not all(values[key] for key in keys):  # the program has no value there
        raise Unlisted
    scale = denominator(together, len(keys))
    return _divided(reduce(_plus, (_bits(values[key], scale) for key in keys)), scale, len(keys))


def means_of_subsets(values: Sequence[Atom], most: int) -> list[Atom]:
    """List the means of one to ``most`` values, any of which may occur any number of times."""
    scale = denominator(values, most)
    means, one = dict.fromkeys(values), _bits(values, scale)
    sums = one
    for count in range(2, most + 1):
        check_time()
        sums = _plus(sums, one)
        means |= dict.fromkeys(_divided(sums, scale, count))
        if len(means) > MAX_VALUES:
            raise Unlisted
    return list(means)


def sums_of_subsets(values: Sequence[Atom], most: int) -> list[int]:
    """List the sums of one to ``most`` integers, any of which may occur any number of times.

    >>> sums_of_subsets([0, 5], 3), sums_of_subsets([-1, 1], 2)
    ([0, 5, 10, 15], [-2, -1, 0, 1, 2])
    """
    if denominator(values, most) != 1:
        raise Unlisted
    sums = one = _bits(values, 1)
    found = set(_members(one))
    for _ in range(most - 1):
        check_time()
        sums = _plus(sums, one)
        found.update(_members(sums))
        if len(found) > MAX_VALUES:
            raise Unlisted
    return sorted(found)


#: Which integers occur: the least of them, and a bit for each from there on.
_Bits = tuple[int, int]


def _bits(values: Sequence[Atom], scale: int) -> _Bits:
    integers = {int(value * scale) for value in values if not isinstance(value, str)}
    least = min(integers)
    return least, sum(1 << (integer - least) for integer in integers)


def _members(sums: _Bits) -> list[int]:
    """List the integers in order."""
    least, bits = sums
    packed = np.frombuffer(bits.to_bytes(bits.bit_length() // 8 + 1, "little"), dtype=np.uint8)
    places: list[int] = np.flatnonzero(np.unpackbits(packed, bitorder="little")).tolist()
    return [least + place for place in places]


def _plus(sums: _Bits, more: _Bits) -> _Bits:
    """List all sums of one number of each."""
    (least, bits), (start, steps) = sums, more
    total = 0
    for step in _members((0, steps)):
        total |= bits << step
    return least + start, total


def _divided(sums: _Bits, scale: int, count: int) -> list[Atom]:
    """Divide, rounding each mean once, as dense execution rounds it."""
    return [total / scale / count for total in _members(sums)]


class SelectorFacts(Protocol):
    """What values depend on of selectors (``patterns.py``)."""

    def unique(self, selector: Node) -> bool:
        """Return whether each query selects at most one key, whatever the input."""
        ...

    def widths(self, selector: Node) -> tuple[int, int]:
        """Return the least and the greatest number of keys that a query selects."""
        ...

    def at_length(self, selector: Node, length: int) -> Pattern | None:
        """Return [query, key] on inputs of one length, where positions and length tell; else None."""
        ...


class ValuesOfInputs(Protocol):
    """What is known of the s-op that an aggregate reads (``values.py``)."""

    def table(self, node: Node) -> ValueTable | None:
        """Tabulate its values over its sources; None where there are too many."""
        ...

    def finite(self, node: Node) -> tuple[Atom, ...] | None:
        """List all values it may take, in order; None where they are infinitely (or too) many."""
        ...

    def depends_on(self, node: Node, *sources: str) -> bool:
        """Return whether a value is known from these sources alone."""
        ...

    def at_length(self, node: Node, length: int) -> list[Atom]:
        """Return the value at each position of an input of that length, if nothing else matters."""
        ...


class Aggregates:
    """The tables of aggregates, each by the first rule that says something."""

    def __init__(
        self, target: Target, values: ValuesOfInputs, selectors: SelectorFacts, sources: Sources
    ) -> None:
        self._target = target
        self._values = values
        self._selectors = selectors
        self._sources = sources

    def table(self, node: Node) -> ValueTable | None:
        """Tabulate its values over its sources; None where they cannot be listed."""
        table = self._moved(node) or self._mean_of_positions(node)
        return table or self._mean_of_equals(node) or self._mean(node)

    def _moved(self, node: Node) -> ValueTable | None:
        """Tabulate an aggregate that takes no mean, or means of equal values alone."""
        values = self._values.finite(node.inputs[1])
        if values is None:
            return None
        moved = all(isinstance(value, (str, bool)) for value in values)  # their mean is an error
        if not moved and not self._selectors.unique(node.inputs[0]):
            # n·v / n is v where n·v is not rounded. Strings beside numbers are moved: no sequence of an
            # input mixes the two.
            numbers = [value for value in values if not isinstance(value, str)]
            exact = all(_sums_exactly(value, self._target.longest) for value in numbers)
            if not exact or (len(numbers) > 1 and not _of_equals(node)):
                return None
        return self._sources.add(node, distinct((*values, node.default)))

    def _mean_of_equals(self, node: Node) -> ValueTable | None:
        """Tabulate a mean of equal numbers whose sum is rounded, as it comes out for so many of them.

        They differ in their last bits: tables of hidden units refuse to tell them apart where that
        matters. Exact functions do not look, so there nothing is said.
        """
        values = self._values.finite(node.inputs[1])
        counts = range(2, self._target.longest + 1)
        if values is None or not _of_equals(node) or self._target.feed_forward == "exact":
            return None
        strings = any(isinstance(value, str) for value in values)
        if strings or len(values) * len(counts) > MAX_COMBINATIONS:
            return None
        means = [DOMAIN.mean([value] * count) for value in values for count in counts]
        return self._sources.add(node, distinct((*values, *means, node.default)))

    def _mean_of_positions(self, node: Node) -> ValueTable | None:
        """Tabulate a mean that positions and length tell, as dense execution rounds it."""
        selector, value = node.inputs
        if self._target.longest**2 > MAX_COMBINATIONS or not self._values.depends_on(
            value, "indices", "length"
        ):
            return None
        values: list[Atom | None] = []
        for length in range(self._target.shortest, self._target.longest + 1):
            pattern = self._selectors.at_length(selector, length)
            if pattern is None:
                return None
            row: list[Atom | None]
            try:
                row = [*DOMAIN.aggregate(pattern, self._values.at_length(value, length), node.default)]
            except (ArithmeticError, CompileError, TypeError, ValueError):
                row = [None] * length
            values += [*row, *[None] * (self._target.longest - length)]
        sources: tuple[Source, ...] = ("indices",) if self._target.fixed else ("length", "indices")
        if is_constant(values):
            return ValueTable((), (values[0],))
        return self._sources.over_needed(ValueTable(sources, tuple(values)))

    def _mean(self, node: Node) -> ValueTable | None:
        """Tabulate a mean of finitely many numbers, whose sums are exact."""
        values = self._values.finite(node.inputs[1])
        if values is None:
            return None
        try:
            table = self._mean_of_rows(node)
            if table is not None:
                return table
            _, most = self._selectors.widths(node.inputs[0])
            means = distinct((*means_of_subsets(values, most), node.default))
        except Unlisted:
            return None
        return self._sources.add(node, means) if len(means) <= MAX_VALUES else None

    def _mean_of_rows(self, node: Node) -> ValueTable | None:
        """Tabulate a mean over keys that positions and length tell, and so which can be where."""
        selector, value = node.inputs
        if self._target.longest**2 > MAX_COMBINATIONS:
            return None
        at = self._by_position(value)
        by_row: dict[bytes, Sequence[Atom]] = {}
        listed: set[Atom] = set()
        at_query: dict[tuple[int, int], bytes] = {}
        for length in range(self._target.shortest, self._target.longest + 1):
            pattern = self._selectors.at_length(selector, length)
            if pattern is None:
                return None
            for position, row in enumerate(pattern):
                keys = np.flatnonzero(row).tolist()
                name = np.packbits(row).tobytes()
                if name not in by_row:
                    by_row[name] = means_of_positions(at, keys) if keys else [node.default]
                    listed.update(by_row[name])
                    if len(listed) > MAX_VALUES:
                        raise Unlisted
                at_query[position, length] = name
        values = distinct(v for means in by_row.values() for v in means)
        if len(values) > MAX_VALUES:
            raise Unlisted
        place = {v: i for i, v in enumerate(values)}
        limits = {
            "indices": np.zeros((self._target.longest, len(values)), dtype=bool),
            "length": np.zeros((len(self._sources.domain("length")), len(values)), dtype=bool),
        }
        places = {name: [place[v] for v in means] for name, means in by_row.items()}
        for (position, length), name in at_query.items():
            limits["indices"][position, places[name]] = True
            limits["length"][length - self._target.shortest, places[name]] = True
        return self._sources.add(node, values, limits)

    def _by_position(self, node: Node) -> list[tuple[Atom, ...]]:
        """Return the values that an s-op may have at each position."""
        table, values = self._values.table(node), self._values.finite(node) or ()
        if table is None or "indices" not in table.sources:
            return [values] * self._target.longest
        sizes = [len(self._sources.domain(source)) for source in table.sources]
        grid = np.empty(len(table.values), dtype=object)
        grid[:] = table.values
        rows = np.moveaxis(grid.reshape(sizes), table.sources.index("indices"), 0)
        by_position = rows.reshape(len(rows), -1).tolist()
        return [distinct(v for v in row if v is not None) for row in by_position]


def _sums_exactly(value: bool | int | float, count: int) -> bool:
    """Return whether up to ``count`` equal numbers add up without rounding."""
    if isinstance(value, float) and not math.isfinite(value):
        return False
    numerator, _ = value.as_integer_ratio()
    return abs(numerator) * count <= LARGEST_EXACT


def _of_equals(node: Node) -> bool:
    """Return whether all keys an aggregate may select have one value: what they are best by."""
    selector, value = node.inputs
    return selector.op == "best" and selector.inputs[1] in (value, build("negate", value))
