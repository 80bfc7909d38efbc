"""Format text and numbers for terminals, and small HTML tables for notebooks."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from decimal import Decimal
from html import escape
from typing import Any


def shortened(text: str, longest: int) -> str:
    """Return ``text`` cut to at most ``longest`` characters, with "…" in place of the omitted end."""
    return text if len(text) <= longest else text[: longest - 1].rstrip() + "…"


def at_most(number: float, form: str = ".3g") -> str:
    """Format an upper bound such that the printed number is never less than ``number``.

    ``form`` is a format specification of type g or e, such as ``.3g`` or ``.1e``.

    >>> at_most(0.2500086), at_most(0.25), at_most(9.996), at_most(1.04e-3, ".1e"), at_most(0.0)
    ('0.251', '0.25', '10', '1.1e-03', '0')
    """
    text = format(number, form)
    if not math.isfinite(number) or Decimal(text) >= Decimal(number):
        return text
    digits = int(form[1:-1]) + (form[-1] == "e")
    last = Decimal(1).scaleb(Decimal(number).adjusted() - digits + 1)
    # The rounded number is too small by less than one unit of its last digit.
    return format(float(Decimal(text) + last), form)


def shortened_apart(titles: Sequence[str], room: int) -> list[str]:
    """Shorten titles to at most ``room`` characters; of titles that would become equal, show the part
    around their first difference.

    >>> shortened_apart(["select(indices, 1, ==)", "select(indices, 2, ==)"], 14)
    ['…ndices, 1, =…', '…ndices, 2, =…']
    """
    short = [_window(title, 0, room) for title in titles]
    for title in dict.fromkeys(short):
        alike = list(dict.fromkeys(t for t, s in zip(titles, short, strict=True) if s == title))
        if len(alike) > 1:
            # Start shortly before the first position at which these titles differ.
            letters = enumerate(zip(*alike, strict=False))
            differ = next((n for n, some in letters if len(set(some)) > 1), min(map(len, alike)))
            start = max(0, differ - room // 2 - 1)
            moved = {t: _window(t, start, room) for t in alike}
            short = [moved.get(t, s) for t, s in zip(titles, short, strict=True)]
    return short


def _window(title: str, start: int, room: int) -> str:
    begin = "…" if start else ""
    part = title[start:]
    fits = len(begin) + len(part) <= room
    return begin + (part if fits else part[: room - 1 - len(begin)] + "…")


_FONT = "font-family:ui-monospace,Menlo,Consolas,monospace;font-size:13px"
_TABLE = f"border-collapse:collapse;{_FONT};color:#1f2933;background:#fff"
CELL = "border:1px solid #d9e2ec;padding:2px 8px;text-align:center"
HEAD = f"{CELL};background:#f0f4f8;font-weight:600"
ON = f"{CELL};background:#2f6f9f;color:#fff;min-width:14px"
TEXT = f"{CELL};text-align:left;vertical-align:top"
#: Maximum number of rows and columns of a matrix, or of lines of a list, that are shown.
MOST = 12
_LABEL = f"{CELL};background:#f0f4f8;color:#52606d;text-align:right;vertical-align:top"


def table(title: str, rows: Sequence[str]) -> str:
    """Return an HTML table of rows from :func:`row`, below a title."""
    return (
        f'<div style="{_FONT};margin:4px 0"><div style="margin-bottom:4px">{escape(title)}</div>'
        f'<table style="{_TABLE}">{"".join(rows)}</table></div>'
    )


def row(label: str, cells: Sequence[tuple[str, str]]) -> str:
    """Return an HTML table row: a label unless it is empty, then cells as pairs of text and CSS style.

    Line breaks in the texts are kept.
    """
    shown = "".join(f'<td style="{style}">{_lines(text)}</td>' for text, style in cells)
    return f"<tr>{_heading(label)}{shown}</tr>" if label else f"<tr>{shown}</tr>"


def text_rows(title: str, rows: Sequence[tuple[str, str]]) -> str:
    """Return an HTML table with one row for each pair of label and text.

    >>> "T(X)" in text_rows("a run", [("result", "T(X)")])
    True
    """
    return table(title, [row(label, [(text, TEXT)]) for label, text in rows])


def matrix(title: str, numbers: Any, labels: Sequence[str] | None = None) -> str:
    """Return an HTML table of a matrix of numbers, with four significant digits.

    Only the first 12 rows and columns are shown. ``labels`` are the names of the rows.

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


#: Control characters (C0, DEL, C1), line and paragraph separators, bidirectional and other invisible
#: formatting, tags, unpaired surrogates. The joiners U+200C and U+200D are kept, since words and emoji
#: need them.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)


def printable(text: str, keep: str = "") -> str:
    r"""Replace control and formatting characters in ``text`` by escapes such as ``\x1b``, except the
    characters in ``keep``.
    """
    return _UNSAFE.sub(lambda match: match[0] if match[0] in keep else _escaped(match[0]), text)


def printable_json(text: str) -> str:
    r"""Replace control and formatting characters in a line from ``json.dumps`` by JSON escapes such as
    ``\u009b``; the result is still JSON.
    """
    return _UNSAFE.sub(lambda match: json.dumps(match[0])[1:-1], text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
