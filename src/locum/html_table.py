"""Write small HTML tables for notebooks: inline styles alone, no script, no style sheet."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

_FONT = "font-family:ui-monospace,Menlo,Consolas,monospace;font-size:13px"
_TABLE = f"border-collapse:collapse;{_FONT};color:#1f2933;background:#fff"
CELL = "border:1px solid #d9e2ec;padding:2px 8px;text-align:center"
HEAD = f"{CELL};background:#f0f4f8;font-weight:600"
ON = f"{CELL};background:#2f6f9f;color:#fff;min-width:14px"
TEXT = f"{CELL};text-align:left;vertical-align:top"
#: Rows and columns of a matrix that are shown.
MOST = 12
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


def text_rows(title: str, rows: Sequence[tuple[str, str]]) -> str:
    """Return a table of labels and texts.

    >>> "T(X)" in text_rows("a run", [("result", "T(X)")])
    True
    """
    return table(title, [row(label, [(text, TEXT)]) for label, text in rows])


def matrix(title: str, numbers: Any, labels: Sequence[str] | None = None) -> str:
    """Return a matrix of numbers as a table: four digits, the first rows and columns of a large one.

    ``labels`` names the rows.

    >>> "0.3333" in matrix("a third", [[1 / 3]])
    True
    """
    height, width = len(numbers), max((len(one) for one in numbers), default=0)
    rows = []
    for number, values in enumerate(numbers[:MOST]):
        cells = [(f"{float(value):.4g}", CELL) for value in values[:MOST]]
        cells += [("…", CELL)] if width > MOST else []
        rows.append(row(labels[number] if labels else str(number), cells))
    if height > MOST:
        rows.append(row("…", [("…", CELL)] * min(width, MOST + 1)))
    return table(f"{title} ({height}×{width})", rows)


def _heading(label: str) -> str:
    return f'<th style="{_LABEL}">{escape(label)}</th>'


def _lines(text: str) -> str:
    return escape(text).replace("\n", "<br>")
