"""Draw a circuit: parts of a network from left to right, and what flows between them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape

WIDTH, HEIGHT, ACROSS, DOWN, EDGE = 190.0, 40.0, 84.0, 16.0, 24.0
#: Characters of a label that fit into a box.
_FITS = 26
#: Characters that no XML file may contain.
_ILLEGAL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_STYLE = (
    "<style>.paper{fill:#fff}.ink{fill:#1f2933}.soft{fill:#5d6b7a}.box{fill:#f6f8fa;stroke:#b4c1cd}"
    ".flow{stroke:#2f6f9f}.idle{stroke:#b4c1cd;stroke-dasharray:4 4}"
    "@media (prefers-color-scheme: dark){.paper{fill:#0f141a}.ink{fill:#e4e9ef}.soft{fill:#95a3b3}"
    ".box{fill:#171e26;stroke:#4a5a6d}.flow{stroke:#5b9bd0}.idle{stroke:#4a5a6d}}</style>"
)


def circuit_svg(
    boxes: Sequence[tuple[str, int, str]],
    arrows: Iterable[tuple[str, str, str, bool]],
    title: str,
) -> str:
    """Return an SVG of boxes (name, column, label) and arrows (from, to, what flows, idle).

    >>> drawn = circuit_svg([("a", 0, "tokens"), ("b", 1, "copy")], [("a", "b", "tokens", False)], "c")
    >>> drawn.startswith("<svg"), drawn.count("<rect"), drawn.count("<path")
    (True, 3, 1)
    """
    columns: dict[int, list[tuple[str, str]]] = {}
    for name, column, label in boxes:
        columns.setdefault(column, []).append((name, label))
    places: dict[str, tuple[float, float]] = {}
    tallest = max((len(column) for column in columns.values()), default=0)
    for across, column in enumerate(sorted(columns)):
        top = (tallest - len(columns[column])) / 2
        for down, (name, _) in enumerate(columns[column]):
            places[name] = (EDGE + across * (WIDTH + ACROSS), EDGE + (top + down) * (HEIGHT + DOWN))
    width = 2 * EDGE + len(columns) * (WIDTH + ACROSS) - ACROSS
    height = 2 * EDGE + tallest * (HEIGHT + DOWN) - DOWN
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" style="max-width:100%;height:auto" '
        'font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="11">'
    )
    parts = [
        head,
        f"<title>{_text(title)}</title>{_STYLE}",
        '<rect width="100%" height="100%" class="paper"/>',
        *_curves(arrows, places),
    ]
    for name, _, label in boxes:
        x, y = places[name]
        parts.append(
            f"<g><title>{_text(name)}: {_text(label)}</title>"
            f'<rect x="{x:.0f}" y="{y:.0f}" width="{WIDTH:.0f}" height="{HEIGHT:.0f}" class="box"/>'
            f'<text x="{x + 8:.0f}" y="{y + 16:.0f}" class="soft">{_fitting(name)}</text>'
            f'<text x="{x + 8:.0f}" y="{y + 32:.0f}" class="ink">{_fitting(label)}</text>'
            "</g>"
        )
    return "\n".join([*parts, "</svg>\n"])


def _curves(
    arrows: Iterable[tuple[str, str, str, bool]], places: Mapping[str, tuple[float, float]]
) -> Iterable[str]:
    for source, target, flows, idle in arrows:
        if source not in places or target not in places:
            continue
        (a, b), (c, d) = places[source], places[target]
        a, b, d = a + WIDTH, b + HEIGHT / 2, d + HEIGHT / 2
        bend = max((c - a) / 2, 20.0)
        yield (
            f"<g><title>{_text(flows)}</title>"
            f'<path d="M{a:.0f} {b:.0f}C{a + bend:.0f} {b:.0f} {c - bend:.0f} {d:.0f} {c:.0f} {d:.0f}" '
            f'class="{"idle" if idle else "flow"}" fill="none" stroke-width="1.4"/></g>'
        )


def _fitting(words: str) -> str:
    return _text(words if len(words) <= _FITS else words[: _FITS - 1] + "…")


def _text(words: str) -> str:
    return escape(_ILLEGAL.sub("\ufffd", words))
