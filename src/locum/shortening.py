"""Shorten text and numbers for a screen; what is stored is never cut."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal


def shortened(text: str, longest: int) -> str:
    """Return a text with … for what is too long of it."""
    return text if len(text) <= longest else text[: longest - 1].rstrip() + "…"


def at_most(number: float, form: str = ".3g") -> str:
    """Write a bound as a format of numbers (``.3g``, ``.1e``) does, but never below it.

    >>> at_most(0.2500086), at_most(0.25), at_most(9.996), at_most(1.04e-3, ".1e"), at_most(0.0)
    ('0.251', '0.25', '10', '1.1e-03', '0')
    """
    text = format(number, form)
    if not math.isfinite(number) or Decimal(text) >= Decimal(number):
        return text
    digits = int(form[1:-1]) + (form[-1] == "e")
    last = Decimal(1).scaleb(Decimal(number).adjusted() - digits + 1)
    # What was rounded down lies below the number by less than one unit of the last digit.
    return format(float(Decimal(text) + last), form)


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
