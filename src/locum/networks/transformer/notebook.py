"""Display a compiled transformer in a notebook as a small table.

The last layer is at the top, as in most figures of transformers. The table lists the slots of the
residual stream, and the heads and the kind of feed-forward of each layer.
"""

from __future__ import annotations

from collections.abc import Sequence

from locum.networks.transformer.config import Config
from locum.networks.transformer.transformer_architecture import TransformerArchitecture
from locum.networks.transformer.weights import Weights
from locum.text import TEXT, row, shortened, table

#: Maximum number of listed heads of a layer or slots, and of characters of each line.
MAX_LINES, MAX_LETTERS = 8, 90


def model_html(config: Config, weights: Weights) -> str:
    """Return an HTML table of the slots and the layers of a transformer."""
    rows = [(f"{len(config.slots)} slots", _lines("s", config.slots))]
    for number, (layer, heads) in enumerate(zip(weights.layers, config.heads, strict=True)):
        rows.append((f"layer {number}, attention", _lines(f"{number}.", heads) or "none"))
        if layer.feed_forward is not None:
            feed = layer.feed_forward
            rows.append((f"layer {number}, feed-forward", f"{feed.kind}, {feed.W_out.shape[0]} wide"))
    title = f"{config.name or 'a compiled transformer'}: {TransformerArchitecture.of(config, weights)}"
    return table(title, [row(name, [(text, TEXT)]) for name, text in reversed(rows)])


def _lines(prefix: str, labels: Sequence[str]) -> str:
    lines = [
        shortened(f"{prefix}{number}: {label}", MAX_LETTERS)
        for number, label in enumerate(labels[:MAX_LINES])
    ]
    if len(labels) > MAX_LINES:
        lines.append(f"… and {len(labels) - MAX_LINES} more")
    return "\n".join(lines)
