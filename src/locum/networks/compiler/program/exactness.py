"""Determine which values a network computes exactly, and which values have rounding errors.

A network adds in another order than dense execution, uses other implementations of functions, and may
use float32. Computed values may therefore differ in their last bits. This matters for discontinuous
functions: comparisons, remainders and tables. For each s-op, the module determines two properties:

- An s-op is *exact* if its values are small multiples of a power of two, which the type of the network
  represents exactly. Examples are small integers, booleans and halves.
- An s-op is *faithful* if the network contains the value of dense execution, rounded to the type of the
  network. Examples are exact s-ops, and embedded numbers that heads move unchanged.

With symbolic feed-forwards, a discontinuous function of an s-op with neither property is looked up by
its sources if possible (``roles.py``). In float32, the same applies to an s-op that is faithful but not
exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from locum.graph import OPERATIONS, Atom, Node, Sort, postorder, sort_of
from locum.networks.compiler.program.patterns import Patterns
from locum.networks.compiler.program.sources import table_of
from locum.networks.compiler.program.values import Values
from locum.networks.compiler.target import EXACT_WHOLE, Target


class Grid(NamedTuple):
    """The multiples of ``step`` (a power of two) with absolute value at most ``largest``."""

    step: float
    largest: float

    def join(self, other: Grid) -> Grid:
        """Return a grid that contains both grids."""
        return Grid(min(self.step, other.step), max(self.largest, other.largest))

    def plus(self, other: Grid) -> Grid:
        """Return a grid that contains the sums of members of two grids."""
        return Grid(min(self.step, other.step), self.largest + other.largest)

    def fits(self, dtype: str, count: int = 1) -> bool:
        """Return whether a type represents all sums of up to ``count`` members without rounding."""
        return self.step > 0 and self.largest * count <= EXACT_WHOLE[dtype] * self.step


#: The grid of booleans and indicators.
_UNIT = Grid(1.0, 1.0)

#: Maximum number of bits of a denominator, close to the smallest floats.
_FINEST = 1000
#: Discontinuous operations: a change in the last bit of an operand may change the result completely.
_LOGIC = ("and", "or", "not", "indicator", "member", "lookup")
_ROUNDING = ("floor", "round", "modulo", "floor_divide")


def grid_of(values: Iterable[Atom | None]) -> Grid | None:
    """Return the coarsest grid with a step of at most 1 that contains all numbers among ``values``.

    Return None if a number is infinite, NaN or beyond the range of floats, or if the step would be too
    small.
    """
    numbers = [value for value in set(values) if isinstance(value, (int, float))]
    fractions = [value for value in numbers if isinstance(value, float)]
    try:
        denominator = max((value.as_integer_ratio()[1] for value in fractions), default=1)
        largest = max(map(abs, map(float, numbers)), default=0.0)
    except (OverflowError, ValueError):  # for infinities and NaN
        return None
    if denominator.bit_length() > _FINEST:
        return None
    return Grid(1.0 / denominator, largest)


def jumps_on(node: Node) -> tuple[Node, ...]:
    """Return the inputs in which an operation is discontinuous."""
    if node.op == "if_else":
        return node.inputs[:1]
    jumps = OPERATIONS[node.op].group == "comparison" or node.op in (*_LOGIC, *_ROUNDING)
    return node.inputs if jumps else ()


class Exactness:
    """The exact and the faithful s-ops of a program, determined on demand."""

    def __init__(self, target: Target, values: Values, patterns: Patterns) -> None:
        self.target = target
        self.values = values
        self.patterns = patterns
        self._grids: dict[Node, Grid | None] = {}
        self._faithful: dict[Node, bool] = {}

    def exact(self, node: Node) -> bool:
        """Return whether the type of the network certainly represents all values of an s-op exactly."""
        grid = self.grid(node)
        return grid is not None and grid.fits(self.target.dtype)

    def reliable(self, node: Node) -> bool:
        """Return whether discontinuous functions of an s-op are known to agree with dense execution."""
        return self.exact(node) or (self.target.dtype == "float64" and self.faithful(node))

    def grid(self, node: Node) -> Grid | None:
        """Return a grid that contains the values of an s-op, or None if there is no known grid."""
        if node not in self._grids:
            for below in postorder(node, into=lambda n: n not in self._grids):
                self._grids[below] = self._grid(below) if sort_of(below) is Sort.SOP else None
        return self._grids[node]

    def faithful(self, node: Node) -> bool:
        """Return whether an s-op is known to be faithful."""
        if node not in self._faithful:
            for below in postorder(node, into=lambda n: n not in self._faithful):
                self._faithful[below] = sort_of(below) is Sort.SOP and self._is_faithful(below)
        return self._faithful[node]

    def embedded(self, node: Node) -> bool:
        """Return whether an embedding can contain an s-op.

        With ``fold=False``, the result is false for aggregates.
        """
        if node.op == "aggregate" and not self.target.fold:
            return False
        by_token = self.target.vocabulary is not None and self.values.depends_on(node, "tokens")
        return by_token or self.values.depends_on(node, "indices")

    def _grid(self, node: Node) -> Grid | None:
        table = self.values.table(node)
        if table is not None and (self.embedded(node) or table.sources == (node,)):
            return grid_of(table.values)
        if node.op in ("length", "selector_width"):
            return Grid(1.0, self.target.longest)
        if node.op == "aggregate":
            return self._moved_grid(node)
        if OPERATIONS[node.op].group == "comparison" or node.op in _LOGIC[:-1]:
            return _UNIT
        if node.op == "lookup":
            return grid_of(table_of(node).values())
        if node.op == "if_else":
            return _joined([self._grids[i] for i in node.inputs[1:]])
        parts = [self._grids[i] for i in node.inputs]
        known = [part for part in parts if part is not None]
        return _computed(node, known) if known and len(known) == len(parts) else None

    def _moved_grid(self, node: Node) -> Grid | None:
        selector, value = node.inputs
        if self.target.fold and self.values.depends_on(node, "indices", "length"):
            table = self.values.table(node)
            return None if table is None else grid_of(table.values)
        if not self.patterns.unique(selector):
            return None
        return _joined([self._grids[value], grid_of([node.default])])

    def _is_faithful(self, node: Node) -> bool:
        if self.embedded(node) or self.exact(node):
            return True
        match node.op:
            case "tokens" | "lookup":
                return True
            case "aggregate":
                return self._is_faithfully_moved(node)
            case "divide":  # a single operation, which rounds once
                return all(map(self.exact, node.inputs))
            case "negate" | "absolute" | "minimum" | "maximum" | "if_else":
                return all(self._faithful[i] for i in node.inputs)
            case _:
                return False

    def _is_faithfully_moved(self, node: Node) -> bool:
        selector, value = node.inputs
        if self.target.fold and self.values.depends_on(node, "indices", "length"):
            return True
        if self.patterns.unique(selector):
            return self._faithful[value]
        # A mean with an exact sum is rounded once. A softmax multiplies by 1/n, which is also rounded.
        grid = self._grids.get(value)
        summed = grid is not None and grid.fits(self.target.dtype, self.target.longest)
        return summed and self.target.attention == "hard"


def _joined(parts: Sequence[Grid | None]) -> Grid | None:
    first, second = parts
    return None if first is None or second is None else first.join(second)


def _computed(node: Node, inputs: Sequence[Grid]) -> Grid | None:
    """Return a grid of the results of an arithmetic operation, given the grids of its inputs.

    Return None if no grid is known, for example for ``divide``.
    """
    a, b = (*inputs, *inputs)[:2]
    match node.op:
        case "add" | "subtract":
            return a.plus(b)
        case "multiply":
            return Grid(a.step * b.step, a.largest * b.largest)
        case "negate" | "absolute":
            return a
        case "minimum" | "maximum":
            return a.join(b)
        case "floor" | "round":
            return Grid(max(a.step, 1.0), a.largest + 1)
        case "modulo":
            return Grid(min(a.step, b.step), b.largest)
        case "floor_divide":
            return Grid(1.0, a.largest / b.step + 1)
        case _:
            return None
