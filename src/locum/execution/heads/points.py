"""Represent the heads and positions at which values are needed, and compute static values.

:class:`Points` has an axis for each family and a last axis for positions. There are two cases:

- If every head needs the same positions, the family axes have length 1. The *product* of heads and
  positions is then not expanded. An example is the heads of a matrix product that fetch entries.
- If the heads need different positions, an axis has the size of its family if the positions depend on
  the member, and length 1 otherwise. If the heads need different numbers of positions, rows are padded
  to the same length, and the mask ``valid`` marks the real entries. An example is the heads of a matrix
  product that add up terms, each of which has one row.

Arrays of values have the same layout, so elementwise operations use broadcasting. Static values depend
on no token.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from locum.errors import ExecutionError
from locum.execution.arrays import Arrays
from locum.execution.heads import head_numbers
from locum.execution.heads.head_numbers import ElementError
from locum.execution.heads.head_strings import array_of
from locum.graph import OPERATIONS, Node, abbreviate, postorder, size_of

Positions = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Points:
    """The positions at which each head needs a value, as an array [family…, position].

    Entries that are not ``valid`` are padding.
    """

    families: tuple[Node, ...]
    positions: Positions
    valid: NDArray[np.bool_] | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of broadcast value arrays: the sizes of the families, then the positions."""
        return (*map(size_of, self.families), self.positions.shape[-1])

    @property
    def rows(self) -> int:
        """Number of heads multiplied by the number of positions of each head."""
        return math.prod(self.shape)

    @property
    def is_product(self) -> bool:
        """Whether the points are stored as a product, so that all heads need the same positions."""
        return self.positions.size == self.positions.shape[-1] and self.valid is None

    @cached_property
    def together(self) -> Positions:
        """All positions that any head needs, ascending."""
        if self.is_product:
            return self.positions.reshape(-1)
        kept = self.positions if self.valid is None else self.positions[self.valid]
        return ascending(kept)

    def same(self, other: Points) -> bool:
        """Return whether values at both sets of points have the same layout."""
        return self is other or (
            self.families == other.families
            and np.array_equal(self.positions, other.positions)
            and (self.valid is None) == (other.valid is None)
            and (self.valid is None or np.array_equal(self.valid, other.valid))  # type: ignore[arg-type]
        )

    def onto(self, families: Iterable[Node]) -> Points:
        """Return the points at which a node that depends only on these ``families`` is needed."""
        axes = in_order(families)
        if axes == self.families:
            return self
        if self.is_product or set(axes) - set(self.families):
            return product(axes, self.together)
        dropped = [axis for axis, family in enumerate(self.families) if family not in axes]
        if any(self.positions.shape[axis] > 1 for axis in dropped):
            return product(axes, self.together)
        valid = None if self.valid is None else np.squeeze(self.valid, tuple(dropped))
        return Points(axes, np.squeeze(self.positions, tuple(dropped)), valid)

    def joined(self, other: Points) -> Points:
        """Return points that include both these points and ``other``."""
        if self.same(other):
            return self
        return product(self.families, ascending(self.together, other.together))

    def member_index(self, families: tuple[Node, ...]) -> NDArray[np.int64] | None:
        """Return, for each row, the index of its member in ``families``, or None if there are none."""
        if not families:
            return None
        index = np.zeros((1,) * len(self.shape), dtype=np.int64)
        for family in families:
            index = index * size_of(family) + axis_values(self.families, family)
        return np.broadcast_to(index, self.shape).reshape(-1)


def in_order(families: Iterable[Node]) -> tuple[Node, ...]:
    """Return families in the order of the axes of value arrays."""
    return tuple(sorted(families, key=lambda f: (f.name, size_of(f))))


def product(families: Iterable[Node], positions: Positions) -> Points:
    """Return points at which all heads of the families have the given positions, which must ascend."""
    ordered = in_order(families)
    return Points(ordered, positions.reshape((1,) * len(ordered) + (-1,)))


def ascending(*sets: Positions) -> Positions:
    """Return the union of sets of positions, ascending, in linear time."""
    marks = np.zeros(1 + max((int(s.max()) for s in sets if s.size), default=-1), dtype=np.bool_)
    for positions in sets:
        marks[positions] = True
    return np.flatnonzero(marks)


def axis_values(families: tuple[Node, ...], family: Node) -> NDArray[np.int64]:
    """Return the values 0 … size − 1 of a family, as an array along the axis of this family."""
    shape = [1] * (len(families) + 1)
    shape[families.index(family)] = size_of(family)
    return np.arange(size_of(family), dtype=np.int64).reshape(shape)


def spread(array: Any, own: tuple[Node, ...], families: tuple[Node, ...]) -> Any:
    """Return an array with axes of length 1 inserted for the families outside ``own``."""
    if own == families:
        return array
    sizes = iter(array.shape)
    shape = [next(sizes) if family in own else 1 for family in families]
    return array.reshape((*shape, array.shape[-1]))


#: Maximum number of elements of the arrays by which positions and rows are narrowed on the host. If an
#: array would be larger, nothing is narrowed. Eight times this number limits the keys of one
#: comparison.
MAX_CELLS = 2**27


class Statics:
    """The static s-ops of a program, for inputs of one length.

    They are elementwise functions of positions, the length, constants and head indices, and depend on
    no token.
    """

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
        #: For each static s-op, whether it does not depend on the position.
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
        """Return whether an s-op is static and does not depend on the position.

        Its values may differ between heads.
        """
        return self.position_free.get(node, False)

    def at(self, node: Node, points: Points) -> NDArray[Any]:
        """Return the values of a static node, broadcastable to the shape of ``points``.

        The families of ``points`` must include all families on which the node depends.
        """
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
        """Return whether ``left ? right``, or its negation, holds at ``points``, using float64."""
        sides = self.at(left, points), self.at(right, points)
        return np.asarray(head_numbers.compare(self.arrays, predicate, *sides, negated=negated))

    def _apply(self, node: Node, inputs: list[NDArray[Any]], axes: int, points: Points) -> NDArray[Any]:
        try:
            if node.op == "length":
                return np.full((1,) * axes, self.length, dtype=np.int64)
            if node.op == "constant":
                return np.asarray(array_of([node.value])).reshape((1,) * axes)
            result = head_numbers.apply(self.arrays, node.op, inputs, node.attributes)
        except ElementError as error:
            raise self.described(error, node, points) from None
        return result  # type: ignore[no-any-return]

    def described(self, error: ElementError, node: Node, points: Points) -> ExecutionError:
        """Return an :class:`ExecutionError` with the s-op and the position of an element error."""
        position = None
        if error.bad is not None:
            bad = np.asarray(error.bad.cpu() if hasattr(error.bad, "cpu") else error.bad)
            places = np.argwhere(np.broadcast_to(bad, points.shape))
            if len(places):  # an invalid constant is an error even if no position needs it
                position = int(np.broadcast_to(points.positions, points.shape)[tuple(places[0])])
        return ExecutionError(str(error), abbreviate(node, self.names()), position, kind=error.kind)
