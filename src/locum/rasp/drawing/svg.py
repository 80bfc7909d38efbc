"""Draw self-contained SVG pictures of boxes, text and curves, for light and dark pages."""

from __future__ import annotations

import re
from html import escape as html_escape

#: Characters that no XML file may contain.
_ILLEGAL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

#: What each kind of thing looks like on light and on dark paper.
_COLOURS = {
    "ink": ("#1f2933", "#e4e9ef"),
    "soft": ("#5d6b7a", "#95a3b3"),
    "paper": ("#ffffff", "#0f141a"),
    "off": ("#ffffff", "#171e26"),
    "on": ("#2f6f9f", "#5b9bd0"),
    "in": ("#f6efe0", "#3b3424"),
    "out": ("#e2f0e6", "#1f3a2a"),
}
_LINES = {"line": ("#d5dde5", "#2d3742"), "flow": ("#b4c1cd", "#4a5a6d")}


def _style() -> str:
    def rules(place: int) -> str:
        fills = "".join(f".{name}{{fill:{pair[place]}}}" for name, pair in _COLOURS.items())
        return fills + "".join(f".{name}{{stroke:{pair[place]}}}" for name, pair in _LINES.items())

    return f"<style>{rules(0)}@media (prefers-color-scheme: dark){{{rules(1)}}}</style>"


def escape(text: str) -> str:
    """Return text for an SVG: escaped, and without what XML forbids."""
    return html_escape(_ILLEGAL.sub("\ufffd", text))


class Drawing:
    """A picture, element by element; what is drawn later lies on top."""

    def __init__(self) -> None:
        self._parts: list[str] = []

    def text(
        self,
        x: float,
        y: float,
        words: str,
        kind: str = "ink",
        *,
        size: float,
        at: str = "start",
    ) -> None:
        """Write ``words`` with their baseline at ``y``; ``at`` is start, middle or end."""
        self._parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size:.1f}" class="{kind}" '
            f'text-anchor="{at}">{escape(words)}</text>'
        )

    def box(
        self, x: float, y: float, width: float, height: float, kind: str, *, line: bool = True
    ) -> None:
        """Draw a rectangle."""
        style = f'class="{kind} line"' if line else f'class="{kind}"'
        self._parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" {style}/>'
        )

    def path(self, steps: str) -> None:
        """Draw a line without an inside."""
        self._parts.append(f'<path d="{steps}" class="flow" fill="none" stroke-width="1.4"/>')

    def begin(self, title: str) -> None:
        """Begin a group that shows ``title`` to whoever points at it."""
        self._parts.append(f"<g><title>{escape(title)}</title>")

    def end(self) -> None:
        """End the group."""
        self._parts.append("</g>")

    def svg(self, width: float, height: float, title: str) -> str:
        """Return the text of the file."""
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
            f'width="{width:.0f}" height="{height:.0f}" style="max-width:100%;height:auto" '
            'font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace">'
        )
        paper = '<rect width="100%" height="100%" class="paper"/>'
        return "\n".join(
            [head, f"<title>{escape(title)}</title>", _style(), paper, *self._parts, "</svg>\n"]
        )
