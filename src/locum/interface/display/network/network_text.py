"""Draw a compiled transformer in the terminal: layers from bottom to top, heads, patterns, slots.

An attention pattern on one input has a row for each query and a column for each key. Denser characters
mean more attention.

Positions are named by tokens. Positions of U are named by the entries of matrices instead. The report
of a compiled U contains the position of each matrix and of T(X). Invalid reports, which may come from
files, are ignored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from locum.interface.display.network.in_words import IDLE, LIVE, NetworkInWords
from locum.networks.transformer import CompiledTransformer
from locum.rasp.echo import scalar
from locum.text import shortened, shortened_apart

#: Maximum number of positions of an input, and of heads of a layer, for drawing patterns.
MAX_POSITIONS, MAX_HEADS = 26, 12
#: Maximum number of characters for the values that a head moves.
MAX_MOVES = 34
#: Maximum number of slots of a feed-forward whose formulas are shown.
MAX_FORMULAS = 16
#: Preferred maximum length of a line; patterns and slots of large networks may need longer lines.
WIDTH = 100
_MARGIN = 14
_GAP = 3
_STATES = {LIVE: "█", IDLE: "░"}
#: Minimum number of characters for names if the column of a sublayer has three characters.
_NAMES = 30


def network_text(model: CompiledTransformer, tokens: Any = None) -> str:
    """Return a drawing of the network, with attention patterns if a short input ``tokens`` is given."""
    words = NetworkInWords(model)
    patterns: list[Any] = [None] * words.depth
    labels: list[str] = []
    if tokens is not None:
        labels = positions(model, list(tokens))
        if len(labels) <= MAX_POSITIONS:
            _, cache = model.run_with_cache(tokens)
            patterns = [
                cache["pattern", n][0] if ("pattern", n) in cache else None for n in range(words.depth)
            ]
    lines = [_entry("output", f"read from {_answer(words)}")]
    for number in reversed(range(words.depth)):
        layer = [*_feed(words, number), *_attention(words, number, patterns[number], labels)]
        lines += ["", *layer] if layer else []
    lines += ["", *_embedding(words), "", *_slots(words)]
    return "\n".join(line.rstrip() for line in lines)


def attention_text(model: CompiledTransformer, tokens: Any) -> str:
    """Return the attention patterns of every head on the input ``tokens``, layer by layer."""
    labels = positions(model, list(tokens))
    _, cache = model.run_with_cache(tokens)
    lines = []
    for number, heads in enumerate(NetworkInWords(model).heads):
        for head, pattern in zip(heads, cache["pattern", number][0] if heads else (), strict=True):
            lines += [f"head {head.name}: {head.label}", *_pattern(pattern, labels, labels), ""]
    return "\n".join(lines[:-1])


def residual_text(model: CompiledTransformer, tokens: Any) -> str:
    """Return the residual stream on the input ``tokens``, for each slot that holds a value.

    The stream is shown after the embedding and after every sublayer.
    """
    words = NetworkInWords(model)
    labels = positions(model, list(tokens))
    parts = []
    for time, values in enumerate(model.residual(tokens).values):
        rows = [["", *labels]]
        for slot in range(len(words.slots)):
            stay = words.held(slot, time)
            if stay is not None:
                numbers = (f"{number:.4g}" for number in values[:, slot])
                rows.append([f"s{slot} {stay.short}", *numbers])
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip()
            for row in rows
        ]
        parts.append("\n".join([words.moments[time], *lines]))
    return "\n\n".join(parts)


def _entry(title: str, text: str) -> str:
    return f"{title:<{_MARGIN}}{text}"


def _answer(words: NetworkInWords) -> str:
    read = [
        f"s{slot} {stay.short}"
        for slot, stays in enumerate(words.slots)
        for stay in stays
        if stay.last == 2 * words.depth + 1
    ]
    return ", ".join(read) or "a constant"


def _feed(words: NetworkInWords, layer: int) -> list[str]:
    erased = words.erased(2 * layer + 2)
    if not words.feeds[layer] and not erased:
        return []
    formulas = words.says(layer)
    texts = [shortened(text, WIDTH - _MARGIN) for _, text in formulas[:MAX_FORMULAS]]
    if len(formulas) > MAX_FORMULAS:
        texts.append(f"… and {len(formulas) - MAX_FORMULAS} more slots")
    if erased:
        texts.append(shortened(f"erases {', '.join(f's{slot}' for slot in erased)}", WIDTH - _MARGIN))
    return [_entry(f"{layer} feed-fwd" if not i else "", text) for i, text in enumerate(texts)]


def _attention(words: NetworkInWords, layer: int, pattern: Any, labels: list[str]) -> list[str]:
    heads = words.heads[layer]
    shown = heads[:MAX_HEADS]
    moves = [shortened(", ".join(head.moves), MAX_MOVES) for head in shown]
    taken = max(
        (len(head.name) + len(text) for head, text in zip(shown, moves, strict=True)), default=0
    )
    titles = shortened_apart([head.label for head in shown], WIDTH - _MARGIN - 6 - taken)
    lines = [
        _entry("" if row else f"{layer} attention", f"{head.name}  {title}: {text}")
        for row, (head, title, text) in enumerate(zip(shown, titles, moves, strict=True))
    ]
    if len(heads) > len(shown):
        lines.append(_entry("", f"… and {len(heads) - len(shown)} more heads"))
    if pattern is not None:
        lines += _side_by_side([head.name for head in shown], pattern, labels)
    return lines


def _side_by_side(names: Sequence[str], patterns: Any, labels: list[str]) -> list[str]:
    """Return the lines of several patterns, as many next to each other as the width permits."""
    column = max(map(len, labels))
    each = max(len(labels), max(map(len, names))) + _GAP
    in_line = max(1, (WIDTH - _MARGIN - column - 2) // each)
    lines: list[str] = []
    for start in range(0, len(names), in_line):
        grids = [_pattern(pattern, labels) for pattern in patterns[start : start + in_line]]
        titles = [name.ljust(each) for name in names[start : start + in_line]]
        lines += ["", " " * (_MARGIN + column + 1) + "".join(titles)]
        for row, cells in enumerate(zip(*grids, strict=True)):
            label = labels[row - 1] if row else ""
            lines.append(
                f"{'':{_MARGIN}}{label:>{column}} " + "".join(cell.ljust(each) for cell in cells)
            )
    return lines


def _pattern(pattern: Any, keys: Sequence[str], queries: Sequence[str] | None = None) -> list[str]:
    """Draw one attention pattern, with the first letters of the keys above the columns."""
    rows = ["".join("⊥" if key == "sink" else key[:1] or " " for key in keys)]
    rows += ["".join(_shade(float(weight)) for weight in row) for row in pattern]
    if queries is None:
        return rows
    width = max(map(len, queries))
    return [f"  {label:>{width}} {row}" for label, row in zip(["", *queries], rows, strict=True)]


def _shade(weight: float) -> str:
    """Return a block character for an attention weight between 0 and 1, or a dot below 0.001."""
    for limit, block in ((0.001, "·"), (0.3, "░"), (0.6, "▒"), (0.95, "▓")):
        if weight < limit:
            return block
    return "█"


def _embedding(words: NetworkInWords) -> list[str]:
    tokens = [s for s in words.written(0) if words.model.weights.W_E[:, s].any()]
    places = [s for s in words.written(0) if words.model.weights.W_pos[:, s].any()]
    texts = [
        f"{what}: {', '.join(f's{slot}' for slot in slots)}"
        for what, slots in (("tokens", tokens), ("positions", places))
        if slots
    ]
    return [_entry("embedding", "; ".join(texts))]


def _slots(words: NetworkInWords) -> list[str]:
    """Draw the slots over time: a bar for each slot, and a column for each sublayer."""
    times = ["emb", *(f"{n}{half}" for n in range(words.depth) for half in ("at", "ff"))]
    width, between = 3, " "
    if _MARGIN + 4 * len(times) + _NAMES > WIDTH:  # in a deep network, a column has one character
        width, between = 1, ""
        times = ["e", *(mark for n in range(words.depth) for mark in (str(n % 10), " "))]
    lines = [_entry("slots", between.join(f"{time:<{width}}" for time in times))]
    for slot, stays in enumerate(words.slots):
        bars = []
        for time in range(len(times)):
            stay = words.held(slot, time)
            bars.append((" " if stay is None else _STATES[stay.state(time)]) * width)
        drawn = between.join(bars)
        names = shortened(" → ".join(stay.short for stay in stays), WIDTH - _MARGIN - len(drawn) - 2)
        lines.append(_entry(f"  s{slot}", f"{drawn}  {names}"))
    return lines


def positions(model: CompiledTransformer, tokens: Sequence[Any]) -> list[str]:
    """Return a name for each position, including the sink.

    Positions of U are named by entries of matrices, and positions of other networks by their tokens.
    """
    names = entries(model.config.report.get("layout"), len(tokens))
    return [*(["sink"] if model.config.sink else []), *(names or map(scalar, tokens))]


def entries(layout: Any, count: int) -> list[str]:
    """Return names of tokens as entries of matrices, or an empty list for an invalid layout.

    ``layout`` maps each block to [first, copies, rows, columns], and ``count`` is the number of tokens.

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
