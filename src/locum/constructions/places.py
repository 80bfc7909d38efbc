"""Where the entries of a matrix are, in numbers, and the arrays that its tokens come in."""

from __future__ import annotations

from typing import Any, NamedTuple

from locum.errors import InputError


class Places(NamedTuple):
    """Where the entries of a matrix are, in numbers."""

    rows: int
    columns: int
    offset: int
    row_stride: int
    column_stride: int

    @property
    def positions(self) -> range:
        """The positions from the first entry to the last."""
        last = (self.rows - 1) * self.row_stride + (self.columns - 1) * self.column_stride
        return range(self.offset, self.offset + last + 1)

    def take(self, values: Any) -> Any:
        """Return the entries, out of an array that has the values at its positions."""
        shape = (self.rows, self.columns)
        if self.row_stride == self.columns and self.column_stride == 1:
            return values if values.shape == shape else values.reshape(shape)
        rows = [i * self.row_stride for i in range(self.rows)]
        columns = [j * self.column_stride for j in range(self.columns)]
        return values.reshape(-1)[[r + c for r in rows for c in columns]].reshape(shape)


def entries_as_numbers(entries: Any, domain: str) -> Any:
    """Return the entries of a matrix as floats; as they are if exact, or tensors."""
    import numpy as np

    if domain == "exact" or not isinstance(entries, np.ndarray) or entries.dtype.kind == "f":
        return entries
    try:
        return entries.astype(np.float64)
    except (TypeError, ValueError):
        shape = "×".join(map(str, entries.shape))
        raise InputError(f"the entries of this {shape} matrix are not all numbers") from None


def token_arrays(tokens: Any) -> list[Any]:
    """Return tokens, numbers or arrays of them, as arrays: as they are, or of Python's numbers."""
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
