"""Values that depend on positions, lengths and head indices alone, never on tokens.

Which rows of which heads can matter is a question about these only, so they are computed wherever they
are asked for, on the host, in int64 and float64, before any head is run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from locum.errors import ExecutionError
from locum.execution.arrays import Arrays
from locum.execution.heads import numbers
from locum.execution.heads.numbers import ElementError
from locum.execution.heads.points import Points, axis_values
from locum.graph import OPERATIONS, Node, abbreviate, postorder

#: Arrays of the host larger than this are not made: the answer is "not known".
MAX_CELLS = 2**27


class Statics:
    """The static s-ops of one program on inputs of one length."""

    def __init__(
        self,
        roots: Iterable[Node],
        length: int,
        names: Callable[[], Mapping[Node, str]],
        ieee: bool = False,
    ) -> None:
        self.length = length
        self.names = names
        self.arrays = Arrays(np.zeros(0), ieee=ieee)
        #: Of each s-op that is static: whether it is the same at all positions.
        self.position_free: dict[Node, bool] = {}
        for node in postorder(*roots):
            row = OPERATIONS[node.op]
            if node.op in ("indices", "length", "constant", "family"):
                self.position_free[node] = node.op != "indices"
            elif row.elementwise and all(i in self.position_free for i in node.inputs):
                self.position_free[node] = all(self.position_free[i] for i in node.inputs)

    def __contains__(self, node: Node) -> bool:
        return node in self.position_free

    def is_position_free(self, node: Node) -> bool:
        """Return whether it is static and the same at all positions (its heads may differ)."""
        return self.position_free.get(node, False)

    def at(self, node: Node, points: Points) -> NDArray[Any]:
        """Return its values at points whose families include its own; broadcasts to their shape."""
        axes = len(points.families) + 1
        values: dict[Node, NDArray[Any]] = {}
        for part in postorder(node):
            if part.op == "indices":
                values[part] = points.positions
            elif part.op == "family":
                values[part] = axis_values(points.families, part)
            else:
                values[part] = self._apply(part, [values[i] for i in part.inputs], axes, points)
        return values[node]

    def compare(
        self, left: Node, predicate: str, right: Node, points: Points, *, negated: bool = False
    ) -> NDArray[np.bool_]:
        """Return ``left ? right`` (or, negated, that this is not so) at points, in float64."""
        sides = self.at(left, points), self.at(right, points)
        return np.asarray(numbers.compare(self.arrays, predicate, *sides, negated=negated))

    def _apply(self, node: Node, inputs: list[NDArray[Any]], axes: int, points: Points) -> NDArray[Any]:
        try:
            if node.op == "length":
                return np.full((1,) * axes, self.length, dtype=np.int64)
            if node.op == "constant":
                return np.asarray(numbers.number(node.value)).reshape((1,) * axes)
            result = numbers.apply(self.arrays, node.op, inputs, node.attributes)
        except ElementError as error:
            raise self.described(error, node, points) from None
        return result  # type: ignore[no-any-return]

    def described(self, error: ElementError, node: Node, points: Points) -> ExecutionError:
        """Return the error as the one that users see: which s-op, at which position."""
        position = None
        if error.bad is not None:
            bad = np.asarray(error.bad.cpu() if hasattr(error.bad, "cpu") else error.bad)
            places = np.argwhere(np.broadcast_to(bad, points.shape))
            if len(places):  # a constant is wrong even where no position asks for it
                position = int(np.broadcast_to(points.positions, points.shape)[tuple(places[0])])
        return ExecutionError(str(error), abbreviate(node, self.names()), position, kind=error.kind)
