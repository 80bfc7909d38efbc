"""Which numbers a network holds as dense execution has them, and which it only comes close to.

Sums are added up in another order, functions are those of another library, float32 has fewer bits: a
number that was computed may be off in its last bits. That matters where a function *jumps*: a
comparison, a remainder, a table. So of each s-op it is known here

- whether it is *exact*: a multiple of some power of two, and not too large, so that no sum of it is
  rounded (integers, booleans, halves);
- whether it is *faithful*: exact, or put into the stream as it is and moved, so that the network has
  the very number, rounded to its type.

What jumps and is neither is looked up by what it depends on (``roles.py``), if that is finite.
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
    """Multiples of ``step`` (a power of two) no larger than ``largest``."""

    step: float
    largest: float

    def join(self, other: Grid) -> Grid:
        """Return both kinds of number."""
        return Grid(min(self.step, other.step), max(self.largest, other.largest))

    def plus(self, other: Grid) -> Grid:
        """Return the sums of both."""
        return Grid(min(self.step, other.step), self.largest + other.largest)

    def fits(self, dtype: str, count: int = 1) -> bool:
        """Return whether the type of number holds sums of ``count`` of them, and partial sums."""
        return self.step > 0 and self.largest * count <= EXACT_WHOLE[dtype] * self.step


#: What every string (its code is a small integer), boolean and indicator is.
_UNIT = Grid(1.0, 1.0)

#: Bits of the finest grid: floats have no steps that are much smaller.
_FINEST = 1000
#: Operations that jump: a number off in its last bit may give another answer altogether.
_LOGIC = ("and", "or", "not", "indicator", "member", "lookup")
_ROUNDING = ("floor", "round", "modulo", "floor_divide")


def grid_of(values: Iterable[Atom | None]) -> Grid | None:
    """Return the coarsest grid that holds all these numbers; None for infinite and tiny ones."""
    numbers = [value for value in set(values) if isinstance(value, (int, float))]
    fractions = [value for value in numbers if isinstance(value, float)]
    try:
        denominator = max((value.as_integer_ratio()[1] for value in fractions), default=1)
        largest = max(map(abs, map(float, numbers)), default=0.0)
    except (OverflowError, ValueError):  # of infinities, and of NaN
        return None
    if denominator.bit_length() > _FINEST:
        return None
    return Grid(1.0 / denominator, largest)


def jumps_on(node: Node) -> tuple[Node, ...]:
    """Return the inputs at which an operation is discontinuous."""
    if node.op == "if_else":
        return node.inputs[:1]
    jumps = OPERATIONS[node.op].group == "comparison" or node.op in (*_LOGIC, *_ROUNDING)
    return node.inputs if jumps else ()


class Exactness:
    """Which s-ops of a program are exact, and which are faithful."""

    def __init__(self, target: Target, values: Values, patterns: Patterns) -> None:
        self.target = target
        self.values = values
        self.patterns = patterns
        self._grids: dict[Node, Grid | None] = {}
        self._faithful: dict[Node, bool] = {}

    def exact(self, node: Node) -> bool:
        """Return whether neither its values nor sums of them are rounded."""
        grid = self.grid(node)
        return grid is not None and grid.fits(self.target.dtype)

    def reliable(self, node: Node) -> bool:
        """Return whether what jumps at this s-op jumps where dense execution does."""
        return self.exact(node) or (self.target.dtype == "float64" and self.faithful(node))

    def grid(self, node: Node) -> Grid | None:
        """Return the grid on which its values lie; None where they may lie anywhere."""
        if node not in self._grids:
            for below in postorder(node, into=lambda n: n not in self._grids):
                self._grids[below] = self._grid(below) if sort_of(below) is Sort.SOP else None
        return self._grids[node]

    def faithful(self, node: Node) -> bool:
        """Return whether the network has its very value, rounded to the network's type of number."""
        if node not in self._faithful:
            for below in postorder(node, into=lambda n: n not in self._faithful):
                self._faithful[below] = sort_of(below) is Sort.SOP and self._is_faithful(below)
        return self._faithful[node]

    def embedded(self, node: Node) -> bool:
        """Return whether it stands in the stream from the start."""
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
            case "divide":  # one operation, rounded once
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
        # A mean of what sums without rounding is rounded once; a softmax multiplies by 1/n first.
        grid = self._grids.get(value)
        summed = grid is not None and grid.fits(self.target.dtype, self.target.longest)
        return summed and self.target.attention == "hard"


def _joined(parts: Sequence[Grid | None]) -> Grid | None:
    first, second = parts
    return None if first is None or second is None else first.join(second)


def _computed(node: Node, inputs: Sequence[Grid]) -> Grid | None:
    """Return the grid of what arithmetic makes of numbers on grids."""
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
