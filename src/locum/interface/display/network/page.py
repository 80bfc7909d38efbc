"""Write a page about a compiled transformer: heads with their patterns, residual stream, weights.

The page is a single file without external resources. The script in ``page.html`` draws numbers that are
stored as JSON. Zeros of patterns and weights are not stored. If there are too many heads or inputs, the
page shows the first ones with a note.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from locum.errors import LocumError
from locum.graph import Sort, sort_of, to_rasp
from locum.interface.display.html import filled
from locum.interface.display.network.in_words import NetworkInWords
from locum.interface.display.network.network_report import details, facts
from locum.interface.display.network.network_text import answer_places, positions
from locum.networks.transformer import CompiledTransformer
from locum.rasp.echo import scalar

#: Maximum number of entries of patterns and residual streams in a page. One input is always included.
NUMBERS = 400_000
#: Maximum number of drawn heads of a layer, of characters of the program and of the report, and of
#: inputs.
MAX_HEADS, MAX_TEXT, MAX_INPUTS = 24, 20_000, 12
#: Maximum number of output codes. If there are more codes, none are listed.
MAX_CODES = 12
TEMPLATE = Path(__file__).with_name("page.html")


def network_page(model: CompiledTransformer, inputs: Sequence[Any]) -> str:
    """Return the page as HTML; the user can choose one of ``inputs``."""
    return filled(TEMPLATE, network_data(model, inputs))


def network_data(
    model: CompiledTransformer, inputs: Sequence[Any], *, scores: bool = False
) -> dict[str, Any]:
    """Return the data of the page: slots, heads, feed-forwards, and the residual stream on ``inputs``.

    With ``scores``, the data also contain the scores q·k of the heads, which are None for masked keys.
    """
    words = NetworkInWords(model)
    drawn: list[dict[str, Any]] = []
    left = NUMBERS
    for tokens in inputs[:MAX_INPUTS]:
        entry, count = _input(words, tokens, scores)
        if drawn and count > left:
            break
        drawn.append(entry)
        left -= count
    return {
        "title": model.config.name or "a compiled transformer",
        "facts": facts(model),
        "program": _program(model),
        "report": _cut(details(model)),
        "depth": words.depth,
        "slots": [[vars(stay) for stay in stays] for stays in words.slots],
        "written": [words.written(time) for time in range(2 * words.depth + 1)],
        "erased": [words.erased(time) for time in range(2 * words.depth + 1)],
        "feeds": [words.says(layer) for layer in range(words.depth)],
        "heads": [_heads(words, layer) for layer in range(words.depth)],
        "leftOut": [max(0, len(heads) - MAX_HEADS) for heads in words.heads],
        "inputsLeftOut": len(inputs) - len(drawn),
        "answer": np.flatnonzero(np.any(model.weights.W_U, axis=1)).tolist(),
        "codes": _codes(model),
        "inputs": drawn,
    }


def _program(model: CompiledTransformer) -> str:
    if not model.config.program:
        return ""
    try:
        root = model.program
        text = to_rasp(root) if sort_of(root) is Sort.SOP else ""
    except (LocumError, RecursionError):
        return ""
    return _cut(text)


def _cut(text: str) -> str:
    return text if len(text) <= MAX_TEXT else text[:MAX_TEXT] + "\n… (cut)"


def _codes(model: CompiledTransformer) -> list[tuple[str, float]]:
    """Return the codes of the outputs if one slot encodes all outputs and there are at most
    ``MAX_CODES``, otherwise an empty list.

    The logit of a code c is 2xc − c², where x is the value of the slot. The logit is largest for the
    code closest to x.
    """
    weights, outputs = model.weights, model.config.outputs
    slots = np.flatnonzero(np.any(weights.W_U, axis=1))
    if outputs is None or len(slots) != 1 or len(outputs) > MAX_CODES:
        return []
    codes = weights.W_U[slots[0]] / 2
    if not np.array_equal(weights.b_U, -(codes**2)):
        return []
    return [(scalar(output), float(code)) for output, code in zip(outputs, codes, strict=True)]


def _heads(words: NetworkInWords, layer: int) -> list[dict[str, Any]]:
    part = words.model.weights.layers[layer].attention
    heads = []
    for number, head in enumerate(words.heads[layer][:MAX_HEADS]):
        assert part is not None
        matrices = {"W_Q": part.W_Q, "W_K": part.W_K, "W_V": part.W_V, "W_O": part.W_O}
        weights = {name: _sparse(matrix[number]) for name, matrix in matrices.items()}
        heads.append({**vars(head), "weights": weights})
    return heads


def _input(words: NetworkInWords, tokens: Any, scores: bool) -> tuple[dict[str, Any], int]:
    """Return the output, patterns and residual stream on an input, and the number of stored entries of
    the patterns and the stream.
    """
    model, sequence = words.model, list(tokens)
    answer, cache = model.run_with_cache(tokens)
    stream = model.residual(tokens).values
    patterns = [
        [_sparse(p) for p in cache["pattern", n][0][:MAX_HEADS]] if ("pattern", n) in cache else []
        for n in range(words.depth)
    ]
    entry = {
        "title": tokens if isinstance(tokens, str) else ", ".join(map(scalar, sequence)),
        "positions": positions(model, sequence),
        "sink": model.config.sink,
        "tokens": [scalar(token) for token in sequence],
        "answer": [scalar(value) for value in answer],
        "answered": _answered(model, len(sequence)),
        "patterns": patterns,
        # [moment][slot][position]
        "stream": [[_rounded(row) for row in moment.T] for moment in stream],
    }
    count = stream.size + sum(len(p["at"]) for layer in patterns for p in layer)
    if scores:
        entry["scores"] = [
            [_scores(s) for s in cache["attn_scores", n][0][:MAX_HEADS]]
            if ("attn_scores", n) in cache
            else []
            for n in range(words.depth)
        ]
    return entry, count


def _scores(matrix: Any) -> list[list[float | None]]:
    rows = np.asarray(matrix, dtype=np.float64).tolist()
    return [[float(f"{s:.12g}") if np.isfinite(s) else None for s in row] for row in rows]


def _answered(model: CompiledTransformer, count: int) -> list[int] | None:
    places = answer_places(model, count)
    return None if places is None else [place for row in places for place in row]


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
