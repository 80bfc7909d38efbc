"""Map tokens to entries of matrices: the sequence prop(X) ∥ prop(A⁰) ∥ … of U (Proposition 1D).

A :class:`Block` is one matrix, or a sequence of matrices of the same shape (one per head). A
:class:`Layout` is a sequence of blocks from position 0. The H matrices of a block are one view, whose
offset contains the family h (Lemma multi-head).

>>> layout = Layout([Block("X", 2, 3), Block("A", 3, 3, copies=2)])
>>> layout.size, layout.position("A", 0, 1, head=1), layout.entry(16)
(24, 16, 'A[1][0, 1]')
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from locum.constructions import Matrix
from locum.constructions.sizes import plus, times
from locum.errors import GraphError, InputError
from locum.execution.arrays import Array, numpy_of
from locum.rasp.handles import SOp


@dataclass(frozen=True)
class Block:
    """One or more matrices of the same shape that are consecutive in the token sequence."""

    name: str
    rows: int
    columns: int
    #: Number of matrices, one per head (or per X of a batch).
    copies: int = 1
    #: Whether the last row, or the last column, multiplies the constant 1 and contains biases.
    ones_row: bool = False
    ones_column: bool = False
    #: How one matrix is divided among heads: into ranges of "columns" or of "rows".
    split: str = ""
    heads: int = 1
    offset: int = 0

    @property
    def size(self) -> int:
        """Number of tokens in the block."""
        return self.copies * self.rows * self.columns

    @property
    def shape(self) -> str:
        """Number and shape of the matrices as text, such as ``2 × 3×3``."""
        each = f"{self.rows}×{self.columns}"
        return each if self.copies == 1 else f"{self.copies} × {each}"

    def require(self, matrix: Array, joined: bool = False) -> None:
        """Raise an error if ``matrix`` does not have the shape of one matrix of the block.

        If ``joined`` is true, ``matrix`` must contain all matrices of the block, stacked.
        """
        rows = self.copies * self.rows if joined else self.rows
        if matrix.shape != (rows, self.columns):
            shape = "×".join(map(str, matrix.shape)) or "a single number"
            name = "the memory" if self.name == "M" else self.name
            raise InputError(f"{name}: expected {self.shape}, got {shape}")


def numbered(blocks: Iterable[Block], number: int) -> list[Block]:
    """Return the blocks of layer ``number`` in a stack of layers, with this number prepended to their
    names.

    The block X is omitted, since the X of each later layer is the result of the layer before.
    """
    return [replace(block, name=f"{number}: {block.name}") for block in blocks if block.name != "X"]


class Layout:
    """The token sequence of a simulator: blocks at consecutive positions from 0."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self.blocks: dict[str, Block] = {}
        self.size = 0
        for block in blocks:
            self.blocks[block.name] = replace(block, offset=self.size)
            self.size += block.size
        self._shapes = {name: (block.rows, block.columns) for name, block in self.blocks.items()}

    def block(self, name: str) -> Block:
        """Return the block with this name, including its offset."""
        if name not in self.blocks:
            raise GraphError(f"expected one of the blocks {', '.join(self.blocks)}, got {name}")
        return self.blocks[name]

    def view(self, sop: SOp, name: str, head: SOp | int = 0) -> Matrix:
        """Return the matrix of one head in a block as a view of the sequence; ``head`` may be a
        family.
        """
        block = self.block(name)
        rows, columns = block.rows, block.columns
        step = rows * columns if block.copies > 1 else 0
        if block.split == "columns":
            columns = step = columns // block.heads
        elif block.split == "rows":
            rows //= block.heads
            step = rows * columns
        offset = (
            plus(block.offset, times(head, step)) if block.copies * block.heads > 1 else block.offset
        )
        return Matrix(sop, rows, columns, offset, row_stride=block.columns)

    def joined(self, sop: SOp, name: str) -> Matrix:
        """Return all matrices of a block, stacked vertically, as a view of the sequence."""
        block = self.block(name)
        return Matrix(sop, block.copies * block.rows, block.columns, block.offset)

    def position(self, name: str, i: int, j: int, head: int = 0) -> int:
        """Return the position of entry (i, j) of a matrix in a block; ``head`` is the number of the
        matrix.
        """
        block = self.block(name)
        if not (0 <= i < block.rows and 0 <= j < block.columns and 0 <= head < block.copies):
            raise GraphError(f"{name} is {block.shape}: it has no entry ({i}, {j}) of head {head}")
        return block.offset + (head * block.rows + i) * block.columns + j

    def entry(self, position: int) -> str:
        """Return the name of the token at a position, such as ``A[1][0, 2]``; positions after the last
        block are ``blank``.
        """
        if position < 0:
            raise GraphError(f"position: expected 0 or more, got {position}")
        for block in self.blocks.values():
            if position < block.offset + block.size:
                head, within = divmod(position - block.offset, block.rows * block.columns)
                i, j = divmod(within, block.columns)
                which = f"[{head}]" if block.copies > 1 else ""
                return f"{block.name}{which}[{i}, {j}]"
        return "blank"

    def fits(self, parts: Sequence[Array]) -> bool:
        """Return whether arrays, one per block, have the shapes of the blocks, the same type and the
        same device.
        """
        dtype, device = parts[0].dtype, device_of(parts[0])
        for part, shape in zip(parts, self._shapes.values(), strict=True):
            if part.shape != shape or part.dtype is not dtype or device_of(part) != device:
                return False
        return True

    def parts(self, matrices: Mapping[str, Sequence[Array]]) -> list[Array]:
        """Return the matrices in the order of the sequence, after checking each against its block."""
        parts: list[Array] = []
        for name, block in self.blocks.items():
            copies = matrices[name]
            joined = len(copies) == 1
            if len(copies) != block.copies and not joined:
                raise InputError(f"{name}: expected {block.shape}, got {len(copies)}")
            for copy in copies:
                # A single array must contain all matrices of the block, stacked.
                if (joined and block.copies > 1) or copy.shape != self._shapes[name]:
                    block.require(copy, joined)  # which raises an error with the reason
            parts += copies
        return parts

    def enlarged(self, matrices: Mapping[str, Sequence[Array]]) -> dict[str, list[Array]]:
        """Pad smaller matrices with zeros to the shapes of their blocks, and add zero matrices for
        missing heads.

        A row or column for the constant 1 remains the last row or column.
        """
        return {
            block.name: [
                *(_set_into(block, copy) for copy in matrices[block.name]),
                *(
                    np.zeros((block.rows, block.columns))
                    for _ in range(block.copies - len(matrices[block.name]))
                ),
            ]
            for block in self.blocks.values()
        }

    def __str__(self) -> str:
        lines = [
            f"{block.offset:6d} … {block.offset + block.size - 1:<6d} {block.name} ({block.shape})"
            for block in self.blocks.values()
        ]
        return "\n".join(lines)


def device_of(array: Array) -> Any:
    """Return the device of a PyTorch tensor or a NumPy array (None for arrays before NumPy 2)."""
    return getattr(array, "device", None)


def _set_into(block: Block, small: Array) -> Array:
    entries = numpy_of(small)
    rows, columns = entries.shape
    if rows > block.rows or columns > block.columns:
        raise InputError(f"{block.name}: expected at most {block.shape}, got {rows}×{columns}")
    i, j = list(range(rows)), list(range(columns))
    if block.ones_row:
        i[-1] = block.rows - 1
    if block.ones_column:
        j[-1] = block.columns - 1
    large = np.zeros((block.rows, block.columns))
    large[np.ix_(i, j)] = entries
    return large
