"""Map array entries to positions in a sequence, and concatenate matrices (Proposition 1D).

``prop`` supports arrays with any number of dimensions. The paper's base case, m₀i₀ + i₁, is correct
only for m₀ = m₁ or m₀ = 1 (erratum E9). A row contains m₁ entries, so row-major order is m₁i₀ + i₁.

>>> prop((2, 3), (1, 2)), prop((2, 3), (1, 2), order="column")
(5, 5)
>>> prop((2, 3), (1, 0)), prop((2, 3), (1, 0), order="column")
(3, 1)
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from locum.constructions.matrix import Matrix
from locum.errors import GraphError
from locum.rasp.handles import SOp


def prop(shape: Sequence[int], index: Sequence[int], order: str = "row") -> int:
    """Return the position in the sequence of one entry of an n-dimensional array.

    ``order`` is "row" (row-major) or "column" (column-major).
    """
    if len(shape) != len(index) or any(not 0 <= i < m for i, m in zip(index, shape, strict=False)):
        raise GraphError(f"expected an index into an array of shape {tuple(shape)}, got {tuple(index)}")
    pairs = list(zip(shape, index, strict=True))
    position = 0
    for size, i in pairs if _is_row_major(order) else reversed(pairs):
        position = position * size + i
    return position


def unprop(shape: Sequence[int], position: int, order: str = "row") -> tuple[int, ...]:
    """Return the index of the array entry at a position of the sequence; this is the inverse of
    :func:`prop`.
    """
    if not 0 <= position < math.prod(shape):
        raise GraphError(f"expected a position within an array of shape {tuple(shape)}, got {position}")
    index = []
    for size in reversed(shape) if _is_row_major(order) else shape:
        position, i = divmod(position, size)
        index.append(i)
    return tuple(reversed(index)) if _is_row_major(order) else tuple(index)


def matrix(sop: SOp, rows: int, columns: int, offset: int = 0, order: str = "row") -> Matrix:
    """Return a matrix whose entries begin at position ``offset``, in row-major or column-major
    order.
    """
    if _is_row_major(order):
        return Matrix(sop, rows, columns, offset)
    return Matrix(sop, rows, columns, offset, row_stride=1, column_stride=rows)


def concatenate(sop: SOp, *shapes: tuple[int, int]) -> tuple[Matrix, ...]:
    """Return views of matrices that follow one another in one sequence: prop(A) ∥ prop(B) ∥ …

    >>> from locum import tokens
    >>> [m.offset for m in concatenate(tokens, (2, 3), (3, 4), (4, 1))]
    [0, 6, 18]
    """
    matrices, offset = [], 0
    for rows, columns in shapes:
        matrices.append(Matrix(sop, rows, columns, offset))
        offset += rows * columns
    return tuple(matrices)


def _is_row_major(order: str) -> bool:
    if order not in ("row", "column"):
        raise GraphError(f"expected the order row (row-major) or column, got {order!r}")
    return order == "row"
