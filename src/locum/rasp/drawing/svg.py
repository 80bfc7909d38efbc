"""Draw self-contained SVG pictures of boxes, text and curves, for light and dark pages."""

from __future__ import annotations

import re
from html import escape as html_escape

#: Characters that XML 1.0 does not allow.
_ILLEGAL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

#: Colours of each kind of element on light and dark backgrounds.
_COLOURS = {
    "ink": ("#1f2933", "#e4e9ef"),
    "soft": ("#5d6b7a", "#95a3b3"),
    "paper": ("#ffffff", "#0f141a"),
    "off": ("#ffffff", "#171e26"),
    "on": ("#2f6f9f", "#5b9bd0"),
    "in": ("#f6efe0", "#3b3424"),
    "out": ("#e2f0e6", "#1f3a2a"),
}
#: Font of code.
MONO = "ui-monospace, SFMono-Regular, Menlo, Consolas, monospace"
_LINES = {
    "line": ("#d5dde5", "#2d3742"),
    "flow": ("#9aa9b8", "#66778b"),
    "arrow": ("#5d6b7a", "#95a3b3"),
}


def style_rules() -> str:
    """Return the CSS rules that every :class:`Drawing` uses."""

    def rules(place: int) -> str:
        fills = "".join(f".{name}{{fill:{pair[place]}}}" for name, pair in _COLOURS.items())
        return fills + "".join(f".{name}{{stroke:{pair[place]}}}" for name, pair in _LINES.items())

    return f"{rules(0)}@media (prefers-color-scheme: dark){{{rules(1)}}}"


def escape(text: str) -> str:
    """Escape text for SVG, and replace characters that XML does not allow by U+FFFD."""
    return html_escape(_ILLEGAL.sub("\ufffd", text))


class Drawing:
    """An SVG picture to which elements are added; later elements cover earlier elements."""

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
        bold: bool = False,
    ) -> None:
        """Add ``words`` with their baseline at ``y``; ``at`` ("start", "middle" or "end") is the text
        anchor.
        """
        weight = ' font-weight="600"' if bold else ""
        self._parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size:.1f}" class="{kind}" '
            f'text-anchor="{at}"{weight}>{escape(words)}</text>'
        )

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        kind: str,
        *,
        line: bool = True,
        opacity: float = 1.0,
    ) -> None:
        """Add a rectangle; ``opacity`` is the opacity of its fill."""
        style = f'class="{kind} line"' if line else f'class="{kind}"'
        style += f' fill-opacity="{opacity:.2f}"' if opacity < 1 else ""
        self._parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" {style}/>'
        )

    def path(self, steps: str, kind: str = "flow") -> None:
        """Add a curve without a fill; ``steps`` is the SVG path data."""
        self._parts.append(f'<path d="{steps}" class="{kind}" fill="none" stroke-width="1.4"/>')

    def begin(self, title: str) -> None:
        """Begin a group of elements that shows ``title`` as a tooltip."""
        self._parts.append(f"<g><title>{escape(title)}</title>")

    def end(self) -> None:
        """End the current group of elements."""
        self._parts.append("</g>")

    def svg(self, width: float, height: float, title: str, *, family: str = MONO) -> str:
        """Return the complete picture as SVG text, with the given size, title and font."""
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
            f'width="{width:.0f}" height="{height:.0f}" style="max-width:100%;height:auto" '
            f'font-family="{family}">'
        )
        style = f"<style>{style_rules()}</style>"
        paper = '<rect width="100%" height="100%" class="paper"/>'
        return "\n".join(
            [head, f"<title>{escape(title)}</title>", style, paper, *self._parts, "</svg>\n"]
        )
