"""How a compiled transformer looks in a notebook: a small table, no script, no style sheet.

Layers stand as in a drawing, the last on top; each with its heads and what its feed-forward is.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from locum.transformer.architecture import TransformerArchitecture
from locum.transformer.config import Config
from locum.transformer.weights import Weights

#: Heads of a layer and slots that are listed; the rest is counted.
SHOWN = 8
_FONT = "font-family:ui-monospace,Menlo,Consolas,monospace;font-size:13px"
_TABLE = f"border-collapse:collapse;{_FONT};color:#1f2933;background:#fff"
_CELL = "border:1px solid #d9e2ec;padding:3px 8px;text-align:left;vertical-align:top"
_NAME = f"{_CELL};background:#f0f4f8;color:#52606d;white-space:nowrap"


def model_html(config: Config, weights: Weights) -> str:
    """Return a transformer as a table in HTML."""
    rows = [(f"{len(config.slots)} slots", _lines("s", config.slots))]
    for number, (layer, heads) in enumerate(zip(weights.layers, config.heads, strict=True)):
        rows.append((f"layer {number}, attention", _lines(f"{number}.", heads) or "none"))
        if layer.feed_forward is not None:
            feed = layer.feed_forward
            rows.append((f"layer {number}, feed-forward", f"{feed.kind}, {feed.W_out.shape[0]} wide"))
    body = "".join(
        f'<tr><th style="{_NAME}">{name}</th><td style="{_CELL}">{text}</td></tr>'
        for name, text in reversed(rows)
    )
    title = escape(config.name or "a compiled transformer")
    return (
        f'<div style="{_FONT};margin:4px 0"><div style="margin-bottom:4px"><b>{title}</b>: '
        f"{escape(str(TransformerArchitecture.of(config, weights)))}</div>"
        f'<table style="{_TABLE}">{body}</table></div>'
    )


def _lines(prefix: str, labels: Sequence[str]) -> str:
    shown = [escape(f"{prefix}{number}: {label}") for number, label in enumerate(labels[:SHOWN])]
    if len(labels) > SHOWN:
        shown.append(f"… and {len(labels) - SHOWN} more")
    return "<br>".join(shown)
