"""Compute the positions of matrix entries as numbers, and convert tokens to arrays for a run."""

from __future__ import annotations

from typing import Any, NamedTuple

from locum.errors import InputError


class Places(NamedTuple):
    """The sizes, offset and strides of a matrix as numbers, which determine the positions of its
    entries.
    """

    rows: int
    columns: int
    offset: int
    row_stride: int
    column_stride: int

    @property
    def positions(self) -> range:
        """The range of positions from the first entry to the last entry."""
        last = (self.rows - 1) * self.row_stride + (self.columns - 1) * self.column_stride
        return range(self.offset, self.offset + last + 1)

    def take(self, values: Any) -> Any:
        """Return the entries as a matrix, given an array of the values at :attr:`positions`."""
        shape = (self.rows, self.columns)
        if self.row_stride == self.columns and self.column_stride == 1:
            return values if values.shape == shape else values.reshape(shape)
        rows = [i * self.row_stride for i in range(self.rows)]
        columns = [j * self.column_stride for j in range(self.columns)]
        return values.reshape(-1)[[r + c for r in rows for c in columns]].reshape(shape)


def entries_as_numbers(entries: Any, domain: str) -> Any:
    """Return the entries of a matrix as floats; exact values and PyTorch tensors are returned
    unchanged.
    """
    import numpy as np

    if domain == "exact" or not isinstance(entries, np.ndarray) or entries.dtype.kind == "f":
        return entries
    try:
        return entries.astype(np.float64)
    except (TypeError, ValueError):
        shape = "×".join(map(str, entries.shape))
        raise InputError(
            f"expected numbers as the entries of a {shape} matrix, got other values"
        ) from None


def token_arrays(tokens: Any) -> list[Any]:
    """Return tokens, which are numbers, arrays or tensors, as a list of arrays or tensors."""
    import numpy as np

    from locum.execution.inputs import is_tensor

    if is_tensor(tokens) or isinstance(tokens, np.ndarray):
        tokens = [tokens]
    if any(is_tensor(part) for part in tokens):
        return list(tokens)
    if all(isinstance(part, np.ndarray) and part.dtype.kind in "fiu" for part in tokens):
        return list(tokens)
    entries = [x for part in tokens for x in np.asarray(part, dtype=object).ravel().tolist()]
    array = np.empty(len(entries), dtype=object)
    array[:] = entries
    return [array]
