"""How s-ops and selectors look in a notebook: self-contained HTML, no script, no style sheet.

An s-op is a table with the input above and the output below; a selector is a grid with queries as
rows and keys as columns, as everywhere in Locum.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from locum.language import echo

_FONT = "font-family:ui-monospace,Menlo,Consolas,monospace;font-size:13px"
_TABLE = f"border-collapse:collapse;{_FONT};color:#1f2933;background:#fff"
_CELL = "border:1px solid #d9e2ec;padding:2px 8px;text-align:center"
_HEAD = f"{_CELL};background:#f0f4f8;font-weight:600"
_ON = f"{_CELL};background:#2f6f9f;color:#fff;min-width:14px"
_LABEL = f"{_CELL};background:#f0f4f8;color:#52606d;text-align:right"


def sop_html(title: str, tokens: Sequence[object], values: Sequence[object], kind: str) -> str:
    """Input and output of an s-op, one column per position."""
    return _page(
        f"s-op {title}",
        [
            _row("input", [echo.scalar(token) for token in tokens], _HEAD),
            _row(f"output ({kind}s)", [echo.scalar(value) for value in values], _CELL),
        ],
    )


def selector_html(title: str, tokens: Sequence[object], pattern: Sequence[Sequence[bool]]) -> str:
    """The grid of a selector."""
    labels = [echo.scalar(token) for token in tokens]
    rows = [_row("query \\ key", labels, _HEAD)]
    for label, selected in zip(labels, pattern, strict=True):
        cells = "".join(
            f'<td style="{_ON if here else _CELL}">{"1" if here else ""}</td>' for here in selected
        )
        rows.append(f'<tr><th style="{_LABEL}">{escape(label)}</th>{cells}</tr>')
    return _page(f"selector {title}", rows)


def message_html(title: str, message: str) -> str:
    """A program that has no example to show."""
    return _page(title, [f'<tr><td style="{_CELL}">{escape(message)}</td></tr>'])


def _row(label: str, cells: Sequence[str], style: str) -> str:
    shown = "".join(f'<td style="{style}">{escape(cell)}</td>' for cell in cells)
    return f'<tr><th style="{_LABEL}">{escape(label)}</th>{shown}</tr>'


def _page(title: str, rows: Sequence[str]) -> str:
    return (
        f'<div style="{_FONT};margin:4px 0"><div style="margin-bottom:4px">{escape(title)}</div>'
        f'<table style="{_TABLE}">{"".join(rows)}</table></div>'
    )
