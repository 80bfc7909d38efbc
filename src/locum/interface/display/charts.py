"""Draw line charts, bar charts and heat maps as SVG without scripts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

from locum.rasp.drawing.svg import SANS, Drawing

_WIDTH, _HEIGHT = 480, 290
_LEFT, _TOP, _BOTTOM = 52, 54, 42
#: Colours for light pages, which differ in lightness and hue.
_COLOURS = ("#2f6fb3", "#c2571a", "#2c8a57", "#8a56b0")
#: The corresponding colours for dark pages.
_DARK = ("#6ea8fe", "#f0924f", "#5fc88f", "#c69aea")
_DASHES = ("", "6 3", "2 3", "8 3 2 3")
#: Height and width of a letter in the name of a line, and distance of the name from the line.
_LABEL, _LETTER, _AWAY = 14, 6.8, 14


def line_chart(
    title: str,
    x: Sequence[int],
    lines: Mapping[str, Sequence[float]],
    label: str = "n",
    *,
    values: str,
    ticks: Sequence[str] | None = None,
    logarithmic: bool = False,
) -> str:
    """Return an SVG with one line for each name in ``lines``, and the name at the end of the line.

    ``label`` is the label of the x axis, and ``ticks`` are the labels of the values ``x``. ``values``
    is the label of the y axis with its unit. With ``logarithmic``, the y axis is logarithmic, so all
    values must be positive.

    >>> line_chart("heads", [1, 2], {"paper": [3, 8]}, values="heads").count("<polyline")
    1
    >>> chart = line_chart("error", [1, 2], {"all": [0.01, 1.0]}, values="error", logarithmic=True)
    >>> ">10⁻²<" in chart
    True
    """
    every = [height for heights in lines.values() for height in heights]
    low, high = x[0], x[-1]
    right = _WIDTH - _AWAY - 6 - _LETTER * max(map(len, lines))
    least, top, levels = _logarithmic_axis(every) if logarithmic else _axis(max(every))

    def across(value: float) -> float:
        return _LEFT + (value - low) / ((high - low) or 1) * (right - _LEFT)

    def up(value: float) -> float:
        height = (_log(value) if logarithmic else value) - least
        return _HEIGHT - _BOTTOM - height / (top - least) * (_HEIGHT - _TOP - _BOTTOM)

    parts = [
        (
            f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(title)}" '
            f'font-family="{SANS}" font-size="12" fill="currentColor">'
            f'<text x="10" y="20" font-size="13" font-weight="600">{escape(title)}</text>'
            f'<text x="10" y="40" fill-opacity=".75">{escape(values)}</text>'
        )
    ]
    for name, level in levels.items():
        y = up(level)
        parts.append(
            f'<line x1="{_LEFT}" x2="{right:.1f}" y1="{y:.1f}" y2="{y:.1f}" '
            'stroke="currentColor" stroke-opacity=".15"/>'
            f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{name}</text>'
        )
    for value, written in zip(x, ticks or x, strict=True):
        place = f'x="{across(value):.1f}" y="{_HEIGHT - _BOTTOM + 18}"'
        parts.append(f'<text {place} text-anchor="middle">{escape(str(written))}</text>')
    parts.append(
        f'<text x="{(_LEFT + right) / 2:.1f}" y="{_HEIGHT - 6}" text-anchor="middle" '
        f'fill-opacity=".75">{escape(label)}</text>'
    )
    ends = _spread([up(heights[-1]) for heights in lines.values()])
    for number, ((name, heights), end) in enumerate(zip(lines.items(), ends, strict=True)):
        colour = _COLOURS[number % len(_COLOURS)]
        dash = _DASHES[(number + number // len(_COLOURS)) % len(_DASHES)]
        places = [(across(a), up(b)) for a, b in zip(x, heights, strict=True)]
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in places)
        parts += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3" fill="{colour}"/>' for a, b in places]
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2" '
            f'stroke-dasharray="{dash}"/><line x1="{right + 4:.1f}" y1="{places[-1][1]:.1f}" '
            f'x2="{right + _AWAY - 2:.1f}" y2="{end:.1f}" stroke="{colour}"/>'
            f'<text x="{right + _AWAY:.1f}" y="{end + 4:.1f}" fill="{colour}">{escape(name)}</text>'
        )
    return "".join([*parts, "</svg>"])


def _axis(largest: float) -> tuple[float, float, dict[str, float]]:
    """Return the ends of a linear axis from 0, and its labelled levels at round numbers."""
    rough = (largest or 1) / 4
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(unit * factor for factor in (1, 2, 2.5, 5, 10) if unit * factor >= rough * 0.999)
    count = math.ceil(largest / step - 1e-9) or 1
    return 0.0, step * count, {f"{step * n:,.10g}": step * n for n in range(count + 1)}


def _logarithmic_axis(values: Sequence[float]) -> tuple[float, float, dict[str, float]]:
    """Return the logarithms of the ends of an axis, and its labelled levels at powers of ten."""
    least = math.floor(_log(min(values)))
    top = max(math.ceil(_log(max(values))), _log(min(values)) + 1)
    step = max(1, math.ceil((top - least) / 6))
    return least, top, {_power(k): 10.0**k for k in range(least, math.ceil(top) + 1, step)}


def _spread(heights: Sequence[float]) -> list[float]:
    """Move heights of names apart, as little as possible, so that names do not overlap.

    >>> [round(y) for y in _spread([100, 100, 60])]
    [93, 107, 60]
    """
    order = sorted(range(len(heights)), key=lambda number: heights[number])
    # Names that touch form a block, whose centre is the mean of the wanted centres.
    blocks: list[tuple[float, int]] = []
    for place, number in enumerate(order):
        mean, count = heights[number] - place * _LABEL, 1
        while blocks and blocks[-1][0] > mean:
            other, size = blocks.pop()
            mean, count = (mean * count + other * size) / (count + size), count + size
        blocks.append((mean, count))
    starts = [mean for mean, count in blocks for _ in range(count)]
    moved = [start + place * _LABEL for place, start in enumerate(starts)]
    # No name is lower than the x axis or higher than the picture.
    shift = max(min(0.0, _HEIGHT - _BOTTOM - moved[-1]), _LABEL - moved[0])
    result = [0.0] * len(moved)
    for number, height in zip(order, moved, strict=True):
        result[number] = height + shift
    return result


def bar_chart(title: str, shares: Mapping[str, float]) -> str:
    """Return an SVG file with one horizontal bar for each share between 0 and 1, labelled in percent.

    >>> picture = bar_chart("wrong without", {"head 0.0": 0.25, "head 1.0": 1.0})
    >>> picture.count("<rect"), "25 %" in picture
    (5, True)
    """
    drawing = Drawing()
    left = 16 + 8.0 * max(map(len, shares), default=0)
    full, row = 320.0, 28
    drawing.text(16, 28, title, size=14, bold=True)
    for number, (name, share) in enumerate(shares.items()):
        y = 46.0 + number * row
        drawing.text(left - 8, y + 15, name, size=13, at="end")
        drawing.box(left, y, full, 20, "off")
        drawing.box(left, y, full * min(max(share, 0.0), 1.0), 20, "on", line=False)
        drawing.text(left + full + 8, y + 15, f"{100 * share:.0f} %", "soft", size=13)
    width = max(left + full + 60, 32 + 8.2 * len(title))
    return drawing.svg(width, 56.0 + row * len(shares), title, family=SANS)


def heat_map(
    title: str,
    shares: Sequence[Sequence[float]],
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    x: str = "",
    y: str = "",
) -> str:
    """Return an SVG file with one shaded cell for each share between 0 and 1.

    ``rows`` and ``columns`` are the labels of rows and columns; ``x`` and ``y`` are the labels of the
    axes.

    >>> heat_map("weights", [[0.0, 1.0]], ["q"], ["a", "b"], x="key", y="query").count("<rect")
    5
    """
    cells = [[(share, f"{share:.2f}") for share in values] for values in shares]
    return heat_maps(title, {"": cells}, rows, columns, x=x, y=y)


def heat_maps(
    title: str,
    panels: Mapping[str, Sequence[Sequence[tuple[float, str]]]],
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    x: str = "",
    y: str = "",
) -> str:
    """Return an SVG file with a heat map for each panel; all panels have the same rows and columns.

    A cell is a pair of a share between 0 and 1, which determines the shade, and a text.

    >>> cells = [[(0.1, "1"), (1.0, "10")]]
    >>> heat_maps("sizes", {"layers": cells, "units": cells}, ["sort"], ["5", "50"]).count(">10<")
    2
    """
    drawing, high, letter = Drawing(), 24.0, 6.4
    texts = [text for panel in panels.values() for cells in panel for _, text in cells]
    wide = max(36.0, 8 + letter * max(map(len, [*columns, *texts])))
    left, top = 28 + letter * max(map(len, [*rows, y])), 34.0
    drawing.text(16, 26, title, size=14, bold=True)
    for name, cells in panels.items():
        if name:
            top += 24
            drawing.text(16, top - 4, name, size=13)
        drawing.text(left - 8, top + 16, y, "soft", size=12, at="end")
        for place, column in enumerate(columns):
            drawing.text(left + wide * (place + 0.5), top + 16, column, "soft", size=12, at="middle")
        top += 24
        for row, shares in zip(rows, cells, strict=True):
            drawing.text(left - 8, top + 16, row, size=12, at="end")
            for place, (share, text) in enumerate(shares):
                box = (left + wide * place, top, wide, high)
                drawing.box(*box, "off")
                # Text is readable on the darkest shade, in light and in dark mode.
                drawing.box(*box, "on", line=False, opacity=0.62 * min(max(share, 0.0), 1.0))
                drawing.text(left + wide * (place + 0.5), top + 16, text, size=12, at="middle")
            top += high
    if x:
        top += 18
        drawing.text(left + wide * len(columns) / 2, top, x, "soft", size=12, at="middle")
    width = max(left + wide * len(columns) + 16, 32 + 8.2 * len(title))
    return drawing.svg(width, top + 14, title, family=SANS)


def dark_rules() -> str:
    """Return the CSS rules that change the colours of lines on dark pages."""
    rules = "".join(
        f'[{name}="{light}"]{{{name}:{colour}}}'
        for light, colour in zip(_COLOURS, _DARK, strict=True)
        for name in ("stroke", "fill")
    )
    return f"@media (prefers-color-scheme: dark){{{rules}}}"


def as_file(chart: str) -> str:
    """Return a chart as a separate SVG file, with colours for light and dark pages.

    >>> chart = line_chart("heads", [1, 2], {"paper": [3, 8]}, values="heads")
    >>> as_file(chart).startswith("<svg xmlns=")
    True
    """
    head, _, rest = chart.partition(">")
    style = (
        "<style>svg{color:#1c2530;background:#ffffff}@media (prefers-color-scheme: dark)"
        f"{{svg{{color:#e6edf3;background:#0d1117}}}}{dark_rules()}</style>"
    )
    sized = head.replace(
        "<svg", f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}"', 1
    )
    return f"{sized}>{style}{rest}\n"


def _log(value: float) -> float:
    return math.log10(max(value, 1e-300))


def _power(exponent: int) -> str:
    digits = str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return "1" if exponent == 0 else f"10{digits}"
