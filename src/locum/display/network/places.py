"""Name the positions of a compiled transformer: by tokens, or for U by the entries of matrices.

A compiled U says in its report which tokens are which matrix, and where T(X) stands. Reports come from
files, which may say anything: what makes no sense is ignored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from locum.language.echo import scalar
from locum.transformer import CompiledTransformer


def positions(model: CompiledTransformer, tokens: Sequence[Any]) -> list[str]:
    """Return a name for each position, the sink included: entries of matrices for U, else tokens."""
    names = entries(model.config.report.get("layout"), len(tokens))
    return [*(["sink"] if model.config.sink else []), *(names or map(scalar, tokens))]


def entries(layout: Any, count: int) -> list[str]:
    """Return names of tokens by a layout, block → [first, copies, rows, columns], if it fits.

    >>> entries({"x": [0, 1, 1, 2], "A": [2, 2, 1, 1]}, 4)
    ['x[0,0]', 'x[0,1]', 'A0[0,0]', 'A1[0,0]']
    """
    blocks = layout if isinstance(layout, Mapping) else {}
    if not all(_is_sizes(block, 4) for block in blocks.values()):
        return []
    if sum(copies * rows * columns for _, copies, rows, columns in blocks.values()) != count:
        return []
    names = []
    for name, (_, copies, rows, columns) in blocks.items():
        for copy in range(copies):
            head = str(copy) if copies > 1 else ""
            names += [f"{name}{head}[{i},{j}]" for i in range(rows) for j in range(columns)]
    return names


def answer_places(model: CompiledTransformer, count: int) -> list[list[int]] | None:
    """Return, for U, the positions of the entries of T(X); None if every position has an answer."""
    answer = model.config.report.get("answer")
    names = ("rows", "columns", "offset", "row_stride", "column_stride")
    numbers: Any = [answer.get(name) for name in names] if isinstance(answer, Mapping) else []
    if not _is_sizes(numbers, 5):
        return None
    rows, columns, offset, row, column = numbers
    if not 0 < rows * columns <= count or offset + (rows - 1) * row + (columns - 1) * column >= count:
        return None
    return [[offset + i * row + j * column for j in range(columns)] for i in range(rows)]


def _is_sizes(numbers: Any, count: int) -> bool:
    return (
        isinstance(numbers, (list, tuple))
        and len(numbers) == count
        and all(type(number) is int and number >= 0 for number in numbers)
    )
