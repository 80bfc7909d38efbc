"""Shorten text for a screen; what is stored is never cut."""

from __future__ import annotations

from collections.abc import Sequence


def shortened(text: str, longest: int) -> str:
    """Return a text with … for what is too long of it."""
    return text if len(text) <= longest else text[: longest - 1].rstrip() + "…"


def shortened_apart(titles: Sequence[str], room: int) -> list[str]:
    """Shorten titles to at most ``room`` characters so that different ones stay different.

    >>> shortened_apart(["select(indices, 1, ==)", "select(indices, 2, ==)"], 14)
    ['…ndices, 1, =…', '…ndices, 2, =…']
    """
    short = [_window(title, 0, room) for title in titles]
    for title in dict.fromkeys(short):
        alike = list(dict.fromkeys(t for t, s in zip(titles, short, strict=True) if s == title))
        if len(alike) > 1:
            # Show them from a little before the place where they begin to differ.
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
