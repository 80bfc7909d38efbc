"""Draw charts as SVG: lines in the colours of the page, and bars as a file of their own; no script."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

from locum.rasp.drawing.svg import Drawing

_WIDTH, _HEIGHT = 460, 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 96, 16, 34
#: Colours that differ in lightness as well as in hue, on white and on black.
_COLOURS = ("#2f6fb3", "#c2571a", "#2c8a57", "#8a56b0")
_DASHES = ("", "6 3", "2 3", "8 3 2 3")
#: The height of a line's name, and of a title with the label of an axis.
_LABEL, _TITLE = 13, 34


def line_chart(
    title: str,
    x: Sequence[int],
    lines: Mapping[str, Sequence[float]],
    label: str = "n",
    *,
    ticks: Sequence[str] | None = None,
    logarithmic: bool = False,
    values: str | None = None,
) -> str:
    """Return an SVG with a line for each name, its name at its end.

    ``ticks`` are written at the places ``x`` instead of their numbers; ``logarithmic`` is the axis of
    values, which are then positive. ``values`` is the label of that axis, with its unit: the chart
    then has a title and markers.

    >>> line_chart("heads", [1, 2], {"paper": [3, 8]}).count("<polyline")
    1
    >>> ">10⁻²<" in line_chart("error", [1, 2], {"all": [0.01, 1.0]}, logarithmic=True)
    True
    """
    every = [height for heights in lines.values() for height in heights]
    low, high = x[0], x[-1]
    if logarithmic:
        least, top = (
            math.floor(_log(min(every))),
            max(math.ceil(_log(max(every))), _log(min(every)) + 1),
        )
        step = max(1, math.ceil((top - least) / 6))
        levels = {_power(k): 10.0**k for k in range(least, math.ceil(top) + 1, step)}
    else:
        least, top = 0, max(every) or 1
        levels = {f"{tick:,}": tick for tick in sorted({round(top * part / 4) for part in range(5)})}

    def across(value: float) -> float:
        return _LEFT + (value - low) / ((high - low) or 1) * (_WIDTH - _LEFT - _RIGHT)

    above = _TOP if values is None else _TOP + _TITLE

    def up(value: float) -> float:
        height = (_log(value) if logarithmic else value) - least
        return _HEIGHT - _BOTTOM - height / (top - least) * (_HEIGHT - above - _BOTTOM)

    parts = [
        (
            f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(title)}" '
            'font-family="system-ui, sans-serif" font-size="12" fill="currentColor">'
        )
    ]
    if values is not None:
        parts.append(
            f'<text x="10" y="18" font-size="13">{escape(title)}</text>'
            f'<text x="10" y="36" fill-opacity=".75">{escape(values)}</text>'
        )
    for name, level in levels.items():
        y = up(level)
        parts.append(
            f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}" '
            'stroke="currentColor" stroke-opacity=".15"/>'
            f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{name}</text>'
        )
    for value, written in zip(x, ticks or x, strict=True):
        place = f'x="{across(value):.1f}" y="{_HEIGHT - 19}"'
        parts.append(f'<text {place} text-anchor="middle">{escape(str(written))}</text>')
    parts.append(
        f'<text x="{(_LEFT + _WIDTH - _RIGHT) / 2}" y="{_HEIGHT - 5}" text-anchor="middle">'
        f"{escape(label)}</text>"
    )
    numbers = {name: number for number, name in enumerate(lines)}
    ordered = sorted(lines.items(), key=lambda line: line[1][-1])
    # Names of lines that end close to each other are moved apart, and down if the top one is cut off.
    ends: list[float] = []
    for _, heights in ordered:
        ends.append(min(up(heights[-1]) + 4, ends[-1] - _LABEL if ends else math.inf))
    down = max(0.0, _LABEL - min(ends))
    for (name, heights), end in zip(ordered, ends, strict=True):
        number, y = numbers[name], end + down
        colour = _COLOURS[number % len(_COLOURS)]
        dash = _DASHES[(number + number // len(_COLOURS)) % len(_DASHES)]
        places = [(across(a), up(b)) for a, b in zip(x, heights, strict=True)]
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in places)
        if values is not None:
            parts += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3" fill="{colour}"/>' for a, b in places]
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2" '
            f'stroke-dasharray="{dash}"/><text x="{_WIDTH - _RIGHT + 6}" y="{y:.1f}" fill="{colour}">'
            f"{escape(name)}</text>"
        )
    return "".join([*parts, "</svg>"])


def bar_chart(title: str, shares: Mapping[str, float]) -> str:
    """Return an SVG file with a bar for each name, from 0 to 1, and its percentage at its end.

    >>> picture = bar_chart("wrong without", {"head 0.0": 0.25, "head 1.0": 1.0})
    >>> picture.count("<rect"), "25 %" in picture
    (5, True)
    """
    drawing = Drawing()
    left = 16 + 8.0 * max(map(len, shares), default=0)
    full, row = 340.0, 28
    drawing.text(16, 28, title, size=14)
    for number, (name, share) in enumerate(shares.items()):
        y = 46.0 + number * row
        drawing.text(left - 8, y + 15, name, size=13, at="end")
        drawing.box(left, y, full, 20, "off")
        drawing.box(left, y, full * min(max(share, 0.0), 1.0), 20, "on", line=False)
        drawing.text(left + full + 8, y + 15, f"{100 * share:.0f} %", "soft", size=13)
    width = max(left + full + 60, 32 + 8.6 * len(title))
    return drawing.svg(width, 56.0 + row * len(shares), title)


def as_file(chart: str) -> str:
    """Return a chart as a picture of its own, with paper and ink of light and dark pages.

    >>> as_file(line_chart("heads", [1, 2], {"paper": [3, 8]})).startswith("<svg xmlns=")
    True
    """
    head, _, rest = chart.partition(">")
    style = (
        "<style>svg{color:#1c2530;background:#ffffff}"
        "@media (prefers-color-scheme: dark){svg{color:#e6edf3;background:#0d1117}}</style>"
    )
    sized = head.replace("<svg", f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}"', 1)
    return f"{sized}>{style}{rest}\n"


def _log(value: float) -> float:
    return math.log10(max(value, 1e-300))


def _power(exponent: int) -> str:
    digits = str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return "1" if exponent == 0 else f"10{digits}"
