"""Collect the data of a compiled transformer that the playground draws.

The data contain the heads with their patterns, the residual stream and the weights. Zeros of patterns
and weights are not stored. If there are too many heads, the data contain the first ones.

Positions are named by tokens. Positions of U are named by the entries of matrices instead. The report
of a compiled U contains the position of each matrix and of T(X). Invalid reports, which may come from
files, are ignored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from locum.interface.display.network.in_words import NetworkInWords
from locum.interface.display.network.network_report import details, facts
from locum.networks.transformer import CompiledTransformer
from locum.rasp.echo import scalar

#: Maximum number of heads of a layer, and of characters of the report.
MAX_HEADS, MAX_TEXT = 24, 20_000


def network_data(model: CompiledTransformer, inputs: Sequence[Any]) -> dict[str, Any]:
    """Return slots, heads, feed-forwards, and the patterns and residual stream on each input."""
    words = NetworkInWords(model)
    return {
        "facts": facts(model),
        "report": _cut(details(model)),
        "depth": words.depth,
        "slots": [[vars(stay) for stay in stays] for stays in words.slots],
        "written": [words.written(time) for time in range(2 * words.depth + 1)],
        "feeds": [words.says(layer) for layer in range(words.depth)],
        "heads": [_heads(words, layer) for layer in range(words.depth)],
        "leftOut": [max(0, len(heads) - MAX_HEADS) for heads in words.heads],
        "inputs": [_input(words, tokens) for tokens in inputs],
    }


def _cut(text: str) -> str:
    return text if len(text) <= MAX_TEXT else text[:MAX_TEXT] + "\n… (cut)"


def _heads(words: NetworkInWords, layer: int) -> list[dict[str, Any]]:
    part = words.model.weights.layers[layer].attention
    heads = []
    for number, head in enumerate(words.heads[layer][:MAX_HEADS]):
        assert part is not None
        matrices = {"W_Q": part.W_Q, "W_K": part.W_K, "W_V": part.W_V, "W_O": part.W_O}
        weights = {name: _sparse(matrix[number]) for name, matrix in matrices.items()}
        heads.append({**vars(head), "weights": weights})
    return heads


def _input(words: NetworkInWords, tokens: Any) -> dict[str, Any]:
    """Return the output, patterns, scores and residual stream on an input.

    The scores of masked keys are None.
    """
    model, sequence = words.model, list(tokens)
    answer, cache = model.run_with_cache(tokens)
    patterns, scores = (
        [
            [store(matrix) for matrix in cache[name, layer][0][:MAX_HEADS]]
            if (name, layer) in cache
            else []
            for layer in range(words.depth)
        ]
        for name, store in (("pattern", _sparse), ("attn_scores", _scores))
    )
    return {
        "positions": position_names(model, sequence),
        "tokens": [scalar(token) for token in sequence],
        "answer": [scalar(value) for value in answer],
        "patterns": patterns,
        "scores": scores,
        # [moment][slot][position]
        "stream": [[_rounded(row) for row in moment.T] for moment in model.residual(tokens).values],
    }


def _scores(matrix: Any) -> list[list[float | None]]:
    rows = np.asarray(matrix, dtype=np.float64).tolist()
    return [[float(f"{s:.12g}") if np.isfinite(s) else None for s in row] for row in rows]


def _sparse(matrix: Any) -> dict[str, Any]:
    """Return the shape of a matrix, and the indices and values of its entries above 10⁻¹² in absolute
    value.
    """
    flat = np.asarray(matrix, dtype=np.float64).ravel()
    at = np.flatnonzero(np.abs(flat) > 1e-12)
    return {"shape": list(np.shape(matrix)), "at": at.tolist(), "values": _rounded(flat[at])}


def _rounded(values: Any) -> list[float]:
    """Round numbers to six significant digits."""
    return [float(f"{float(value):.6g}") for value in values]


# Positions ------------------------------------------------------------------------------------------


def position_names(model: CompiledTransformer, tokens: Sequence[Any]) -> list[str]:
    """Return a name for each position, including the sink.

    Positions of U are named by entries of matrices, and positions of other networks by their tokens.
    """
    names = entry_names(model.config.report.get("layout"), len(tokens))
    return [*(["sink"] if model.config.sink else []), *(names or map(scalar, tokens))]


def entry_names(layout: Any, count: int) -> list[str]:
    """Return names of tokens as entries of matrices, or an empty list for an invalid layout.

    ``layout`` maps each block to [first, copies, rows, columns], and ``count`` is the number of tokens.

    >>> entry_names({"x": [0, 1, 1, 2], "A": [2, 2, 1, 1]}, 4)
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


def answer_positions(model: CompiledTransformer, count: int) -> list[list[int]] | None:
    """Return the positions of the entries of T(X) in the outputs of U, row by row.

    For invalid reports, and for other networks, whose outputs are valid at every position, return None.
    """
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
