"""Find the possible values of an aggregate: moved values, or means of selected values."""

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

#: Maximum number of grid steps between the smallest and the largest sum for which means are listed.
MAX_SUMS = 2**16
#: Maximum number of pairs of a sum and an addend that are added in one step.
MAX_PAIRS = 2**22


class Unlisted(Exception):  # noqa: N818  (a signal to the caller, not an error)
    """Raised if the possible sums or means of some values cannot be listed."""


def denominator(values: Sequence[Atom], count: int) -> int:
    """Return the smallest power of two, at least 1, whose products with all values are integers.

    Raise :class:`Unlisted` if values are not finite numbers, if sums of ``count`` values may be
    rounded, or if there are too many sums to list.
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
    """Return the possible means over the positions ``keys``.

    ``values`` lists the possible values at each position.
    """
    check_time()
    if len(keys) == 1:
        return list(values[keys[0]])
    together = [value for key in keys for value in values[key]]
    if not all(values[key] for key in keys):  # the program is undefined at one of the keys
        raise Unlisted
    scale = denominator(together, len(keys))
    return _divided(reduce(_plus, (_bits(values[key], scale) for key in keys)), scale, len(keys))


def means_of_subsets(values: Sequence[Atom], most: int) -> list[Atom]:
    """Return the possible means of one to ``most`` of the values; a value may occur repeatedly."""
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
    """Return the possible sums of one to ``most`` of the integers; an integer may occur repeatedly.

    Raise :class:`Unlisted` if some value is not an integer, or if the sums are too many or too large.

    >>> sums_of_subsets([0, 5], 3), sums_of_subsets([-1, 1], 2)
    ([0, 5, 10, 15], [-2, -1, 0, 1, 2])
    """
    if any(isinstance(value, str) for value in values):
        raise Unlisted
    if any(isinstance(value, float) and not value.is_integer() for value in values):
        raise Unlisted
    integers = {int(value) for value in values if not isinstance(value, str)}
    if max(map(abs, integers)) * most > LARGEST_EXACT:
        raise Unlisted
    found = sums = one = np.array(sorted(integers), dtype=np.int64)
    for _ in range(most - 1):
        check_time()
        if len(sums) * len(one) > MAX_PAIRS:
            raise Unlisted
        sums = np.unique(np.add.outer(sums, one))
        found = np.union1d(found, sums)
        if len(found) > MAX_VALUES:
            raise Unlisted
    listed: list[int] = found.tolist()
    return listed


#: A set of integers: its minimum, and a bit mask in which bit i represents minimum + i.
_Bits = tuple[int, int]


def _bits(values: Sequence[Atom], scale: int) -> _Bits:
    integers = {int(value * scale) for value in values if not isinstance(value, str)}
    least = min(integers)
    return least, sum(1 << (integer - least) for integer in integers)


def _members(sums: _Bits) -> list[int]:
    """List the integers of a set in increasing order."""
    least, bits = sums
    packed = np.frombuffer(bits.to_bytes(bits.bit_length() // 8 + 1, "little"), dtype=np.uint8)
    places: list[int] = np.flatnonzero(np.unpackbits(packed, bitorder="little")).tolist()
    return [least + place for place in places]


def _plus(sums: _Bits, more: _Bits) -> _Bits:
    """Return the set of all sums of one integer from each of two sets."""
    (least, bits), (start, steps) = sums, more
    total = 0
    for step in _members((0, steps)):
        total |= bits << step
    return least + start, total


def _divided(sums: _Bits, scale: int, count: int) -> list[Atom]:
    """Divide the members of a set by ``scale`` and ``count``, rounding as dense execution does."""
    return [total / scale / count for total in _members(sums)]


class SelectorFacts(Protocol):
    """Facts about selectors that determine the values of aggregates (``patterns.py``)."""

    def unique(self, selector: Node) -> bool:
        """Return whether each query is known to select at most one key on every input."""
        ...

    def may_be_empty(self, selector: Node) -> bool:
        """Return whether some query may select no key."""
        ...

    def widths(self, selector: Node) -> tuple[int, int]:
        """Return a lower and an upper bound on the number of keys that a query selects."""
        ...

    def at_length(self, selector: Node, length: int) -> Pattern | None:
        """Return the pattern [query, key] on inputs of one length, or None if it is not known."""
        ...


class ValuesOfInputs(Protocol):
    """Facts about the s-ops that an aggregate reads (``values.py``)."""

    def table(self, node: Node) -> ValueTable | None:
        """Return the table of an s-op's values over its sources, or None if there is no table."""
        ...

    def finite(self, node: Node) -> tuple[Atom, ...] | None:
        """Return all possible values of an s-op in order, or None if they cannot be listed."""
        ...

    def depends_on(self, node: Node, *sources: str) -> bool:
        """Return whether an s-op has a table with no sources other than ``sources``."""
        ...

    def at_length(self, node: Node, length: int) -> list[Atom]:
        """Return the value at each position of an input with ``length`` tokens.

        The s-op must depend only on position and length. Raise CompileError if the s-op is undefined at
        some position.
        """
        ...

    def at_each_position(self, node: Node) -> list[tuple[Atom, ...]]:
        """Return the possible values of an s-op at each position; empty tuples if they are unknown."""
        ...


class Aggregates:
    """The tables of aggregates, each computed by the first rule that applies."""

    def __init__(
        self, target: Target, values: ValuesOfInputs, selectors: SelectorFacts, sources: Sources
    ) -> None:
        self._target = target
        self._values = values
        self._selectors = selectors
        self._sources = sources

    def table(self, node: Node) -> ValueTable | None:
        """Return the table of an aggregate over its sources, or None if its values cannot be listed."""
        table = self._moved(node) or self._mean_of_positions(node)
        return table or self._mean_of_equals(node) or self._mean(node)

    def _moved(self, node: Node) -> ValueTable | None:
        """Return the table of an aggregate if each mean is known to be one of the values, or None."""
        values = self._values.finite(node.inputs[1])
        if values is None:
            return None
        moved = all(isinstance(value, (str, bool)) for value in values)  # their mean is an error
        if not moved and not self._selectors.unique(node.inputs[0]):
            # The mean n·v / n is v if n·v is not rounded. Strings are always moved, even if the s-op is
            # a number on other inputs, since the sequence for one input never contains both.
            numbers = [value for value in values if not isinstance(value, str)]
            exact = all(_sums_exactly(value, self._target.longest) for value in numbers)
            if not exact or (len(numbers) > 1 and not _of_equals(node)):
                return None
        return self._sources.add(node, distinct((*values, *self._default(node))))

    def _default(self, node: Node) -> list[Atom]:
        """Return the default of an aggregate in a list, or an empty list if it is certainly unused."""
        selector, value = node.inputs
        moves = self._values.finite(value) and not self._selectors.may_be_empty(selector)
        return [] if moves else [node.default]

    def _mean_of_equals(self, node: Node) -> ValueTable | None:
        """Return the table of a mean of equal numbers whose sum is rounded.

        The table contains the mean of each number for each possible number of keys. These means may
        differ in their last bits. Tables of hidden units reject such values if the difference matters.
        Symbolic feed-forwards do not check this, so the result for symbolic feed-forwards is None. The
        result is also None for other means, or if there are too many values.
        """
        values = self._values.finite(node.inputs[1])
        counts = range(2, self._target.longest + 1)
        if values is None or not _of_equals(node) or self._target.feed_forward == "exact":
            return None
        strings = any(isinstance(value, str) for value in values)
        if strings or len(values) * len(counts) > MAX_COMBINATIONS:
            return None
        means = [DOMAIN.mean([value] * count) for value in values for count in counts]
        return self._sources.add(node, distinct((*values, *means, *self._default(node))))

    def _mean_of_positions(self, node: Node) -> ValueTable | None:
        """Return the table of a mean that is determined by position and length.

        Return None for other means, or if the inputs are too long.
        """
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
        """Return the table of a mean of finitely many numbers with exact sums, otherwise None."""
        values = self._values.finite(node.inputs[1])
        if values is None:
            return None
        try:
            table = self._mean_of_rows(node)
            if table is not None:
                return table
            _, most = self._selectors.widths(node.inputs[0])
            means = distinct((*means_of_subsets(values, most), *self._default(node)))
        except Unlisted:
            return None
        return self._sources.add(node, means) if len(means) <= MAX_VALUES else None

    def _mean_of_rows(self, node: Node) -> ValueTable | None:
        """Return the table of a mean whose selected keys are determined by position and length.

        Return None for other means, or if the inputs are too long. Raise :class:`Unlisted` if the means
        cannot be listed.
        """
        selector, value = node.inputs
        if self._target.longest**2 > MAX_COMBINATIONS:
            return None
        at = self._values.at_each_position(value)
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


def _sums_exactly(value: bool | int | float, count: int) -> bool:
    """Return whether the sum of up to ``count`` copies of a number is certainly not rounded."""
    if isinstance(value, float) and not math.isfinite(value):
        return False
    numerator, _ = value.as_integer_ratio()
    return abs(numerator) * count <= LARGEST_EXACT


def _of_equals(node: Node) -> bool:
    """Return whether the selector is ``best`` and its score is the value or the negated value.

    All keys that a query selects then have the same value.
    """
    selector, value = node.inputs
    return selector.op == "best" and selector.inputs[1] in (value, build("negate", value))
