"""Show s-ops and selectors in a notebook.

An s-op is a table with the input above and the output below; a selector is a grid with queries as
rows and keys as columns, as everywhere in Locum.
"""

from __future__ import annotations

from collections.abc import Sequence

from locum.html_table import CELL, HEAD, ON, row, table
from locum.language import echo


def sop_html(title: str, tokens: Sequence[object], values: Sequence[object], kind: str) -> str:
    """Return the input and the output of an s-op, one column per position."""
    return table(
        f"s-op {title}",
        [
            row("input", [(echo.scalar(token), HEAD) for token in tokens]),
            row(f"output ({kind}s)", [(echo.scalar(value), CELL) for value in values]),
        ],
    )


def selector_html(title: str, tokens: Sequence[object], pattern: Sequence[Sequence[bool]]) -> str:
    """Return the grid of a selector."""
    labels = [echo.scalar(token) for token in tokens]
    rows = [row("query \\ key", [(label, HEAD) for label in labels])]
    for label, selected in zip(labels, pattern, strict=True):
        rows.append(row(label, [("1", ON) if here else ("", CELL) for here in selected]))
    return table(f"selector {title}", rows)


def message_html(title: str, message: str) -> str:
    """Return what is shown of a program that has no example."""
    return table(title, [row("", [(message, CELL)])])
