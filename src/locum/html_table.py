"""Write small HTML tables for notebooks: inline styles alone, no script, no style sheet."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

_FONT = "font-family:ui-monospace,Menlo,Consolas,monospace;font-size:13px"
_TABLE = f"border-collapse:collapse;{_FONT};color:#1f2933;background:#fff"
CELL = "border:1px solid #d9e2ec;padding:2px 8px;text-align:center"
HEAD = f"{CELL};background:#f0f4f8;font-weight:600"
ON = f"{CELL};background:#2f6f9f;color:#fff;min-width:14px"
TEXT = f"{CELL};text-align:left;vertical-align:top"
_LABEL = f"{CELL};background:#f0f4f8;color:#52606d;text-align:right;vertical-align:top"


def table(title: str, rows: Sequence[str]) -> str:
    """Return rows, as :func:`row` writes them, as a table below a title."""
    return (
        f'<div style="{_FONT};margin:4px 0"><div style="margin-bottom:4px">{escape(title)}</div>'
        f'<table style="{_TABLE}">{"".join(rows)}</table></div>'
    )


def row(label: str, cells: Sequence[tuple[str, str]]) -> str:
    """Return a row: its label, then cells of text and style; a line break in a text stays one."""
    shown = "".join(f'<td style="{style}">{_lines(text)}</td>' for text, style in cells)
    return f"<tr>{_heading(label)}{shown}</tr>" if label else f"<tr>{shown}</tr>"


def _heading(label: str) -> str:
    return f'<th style="{_LABEL}">{escape(label)}</th>'


def _lines(text: str) -> str:
    return escape(text).replace("\n", "<br>")
