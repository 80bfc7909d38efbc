"""Charge the costs of dense execution to a budget.

Cells of patterns, positions of s-ops, digits of large integers and characters of strings cost time and
memory, and entries of tables cost time. The steps of an operation and its temporary memory are charged
before the operation is computed, and the memory of its value afterwards. An operation that exceeds its
:class:`~locum.budget.Budget` raises :class:`~locum.errors.LimitError`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from locum.budget import Budget
from locum.errors import LimitError
from locum.graph import Node

#: Steps of any node, and number of values and cells that are computed in one step.
_NODE = 5
_VALUES = 40
_CELLS = {"select": 400, "best": 150, "aggregate": 300}
_OTHER_CELLS = 2_000
#: Number of cells summed in one step if the values are too large for NumPy.
_LARGE_CELLS = 40
#: Number of table entries compared with a value in one step.
_ENTRIES = 100
#: Bytes of one value of an s-op, and of the temporary arrays for one cell of a pattern.
_VALUE_BYTES, _CELL_BYTES = 40, 3
#: Smaller integers are added by NumPy, and shorter strings are compared in one step.
_SMALL_INTEGER, _SHORT_STRING = 2**36, 1_000


class Meter:
    """A meter that charges the operations of one run on ``size`` tokens to a budget."""

    def __init__(self, budget: Budget | None, size: int) -> None:
        self.budget = budget
        self.size = size

    def start(self, node: Node, inputs: Sequence[Any]) -> None:
        """Charge one operation on the values of its inputs, before the operation is computed."""
        if self.budget is None:
            return
        if node.op in ("select", "best", "aggregate") or any(map(_is_pattern, inputs)):
            self._attention(node.op, inputs)
            return
        steps = _NODE + self.size / _VALUES
        entries = sum(len(table) for table in node.attributes.values() if isinstance(table, tuple))
        self.budget.spend(steps + entries * self.size / _ENTRIES)
        if not all(_is_light(node.op, values) for values in inputs):
            for atoms in zip(*inputs, strict=True):
                self.budget.charge(node.op, atoms)

    def _attention(self, op: str, inputs: Sequence[Any]) -> None:
        assert self.budget is not None
        cells = self.size * self.size
        steps = _NODE + cells / _CELLS.get(op, _OTHER_CELLS)
        if op == "aggregate" and not _is_light(op, inputs[1]):
            steps += cells / _LARGE_CELLS
        try:
            self.budget.spend(steps)
            # Memory for temporary results.
            self.budget.reserve(_CELL_BYTES * cells)
            self.budget.release(_CELL_BYTES * cells)
        except LimitError as error:
            size = f"{self.size:,} × {self.size:,}"
            problem = f"a pattern of {size} cells is too large for dense execution here: {error}"
            raise LimitError(problem) from None

    def keep(self, value: Any) -> None:
        """Charge the memory of a value that is kept."""
        if self.budget is not None:
            self.budget.reserve(_size(value))

    def drop(self, value: Any) -> None:
        """Release the memory of a value that is deleted."""
        if self.budget is not None:
            self.budget.release(_size(value))


def _is_pattern(value: Any) -> bool:
    return isinstance(value, np.ndarray)


def _size(value: Any) -> int:
    return value.nbytes if isinstance(value, np.ndarray) else _VALUE_BYTES * len(value)


def _is_light(op: str, values: Sequence[Any]) -> bool:
    """Return whether an operation on these values costs only the basic number of steps."""
    kinds = set(map(type, values))
    if str in kinds:
        return op not in ("add", "multiply") and max(map(len, values)) < _SHORT_STRING
    if int not in kinds:
        return True
    return op != "power" and max(values) < _SMALL_INTEGER and min(values) > -_SMALL_INTEGER
