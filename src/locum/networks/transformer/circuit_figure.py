"""Draw a circuit as SVG, with sublayers as columns or, in a narrow figure, one below the other.

All edges from one row are drawn as one line with branches. In a figure with columns, the line leaves
the box on the right. The line runs in the space between two columns, or below all boxes if the line
skips a column. In the figure of a circuit, edges end at queries, keys, values, groups of hidden units
or the output. An edge is omitted if one of its ends has no box.

>>> parts = [Part("tokens", 0, "tokens", ins=(), outs=("tokens",))]
>>> parts.append(Part("output", 1, "output", ins=("output",), outs=()))
>>> drawn = draw_parts(parts, [Line("tokens", "output", "tokens", "alone")], {}, "a circuit")
>>> drawn.startswith("<svg"), drawn.count("class='box'")
(True, 2)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

#: Sizes in pixels: width of a character, height of a line of text, padding of a box, distance between
#: parallel lines.
_CHARACTER, _LINE, _PAD, _TRACK = 6.05, 15.0, 6.0, 6.0
#: Maximum distance in pixels between neighbouring lines that end at the same row.
_ENTRY = 5.0
#: Widths in pixels: a page, a narrow page, boxes of the first and the last column, other boxes
#: (smallest and largest), and the margin.
_PAGE, _NARROW, _ENDS, _WIDTHS, _MARGIN = 880.0, 400.0, 68.0, (92.0, 140.0), 12.0
#: Maximum number of text lines in a label.
_LINES = 3
#: Colours of lines, legible on light and dark backgrounds.
_COLOURS = ("#3b82c4", "#c2703d", "#4d9a5b", "#a35bb5", "#b8912f", "#c4506b", "#3a9a9a", "#7d7f8c")
#: Legend texts of the line styles.
_KINDS = {
    "length": "carries only the length",
    "jointly": "necessary only together with others",
    "idle": "not necessary",
}
#: Characters that are illegal in XML.
_ILLEGAL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_STYLE = (
    "<style>.paper{fill:#fff}.ink{fill:#1f2933}.soft{fill:#5d6b7a}.box{fill:#f6f8fa;stroke:#b4c1cd}"
    ".port{font-weight:bold}path{fill:none;stroke-width:1.5}.idle{stroke-dasharray:2 4;opacity:.55}"
    ".dashed{stroke-dasharray:4 3}.length{stroke-dasharray:7 3}.jointly{stroke-dasharray:1 3}"
    "@media (prefers-color-scheme: dark){.paper{fill:#0f141a}.ink{fill:#e4e9ef}.soft{fill:#95a3b3}"
    ".box{fill:#171e26;stroke:#4a5a6d}}</style>"
)


@dataclass(frozen=True)
class Part:
    """A box of the figure: its column, title and label, and the rows at which lines start and end."""

    id: str
    column: int
    title: str
    label: str = ""
    #: Ids of the rows on the left, where lines end, and of the rows on the right, where lines start.
    ins: tuple[str, ...] = ()
    outs: tuple[str, ...] = ()
    #: Names of the rows. A row without a name is at the vertical centre of the title and the label.
    names: Mapping[str, str] = field(default_factory=dict)
    #: Indices of colours, by the id of a row or of the whole box. A line has the last colour of its
    #: row, or otherwise of its box.
    marks: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    #: Whether the outline is dashed, for boxes that are not part of the network.
    dashed: bool = False


@dataclass(frozen=True)
class Line:
    """An edge between two rows; ``kind`` is "alone", "jointly", "length" or "idle" and sets the line
    style.
    """

    source: str
    target: str
    flows: str
    kind: str


@dataclass
class _Box:
    part: Part
    width: float
    x: float = 0.0
    y: float = 0.0

    def __post_init__(self) -> None:
        fit = int((self.width - 2 * _PAD) / _CHARACTER)
        self.head = [*_wrap(self.part.title, fit, 1), *_wrap(self.part.label, fit, _LINES)]
        shared = bool(self.part.ins) and bool(self.part.outs) and self.part.ins != self.part.outs
        room = fit - 3 if shared else fit - 2
        self.rows: dict[str, tuple[float, list[str]]] = {}
        top = _PAD + len(self.head) * _LINE
        downs = {True: top, False: top}
        for row in dict.fromkeys((*self.part.ins, *self.part.outs)):
            left = row in self.part.ins
            lines = _wrap(self.part.names.get(row, ""), room, 2)
            at = downs[left] if lines else (_PAD + len(self.head) * _LINE / 2) - _LINE / 2
            self.rows[row] = (at, lines)
            if lines:
                downs[left] = at + len(lines) * _LINE + 2
                if not shared:
                    downs = dict.fromkeys(downs, downs[left])
        self.height = max(downs.values()) + _PAD

    def port(self, row: str) -> float:
        """Return the vertical position in pixels at which lines meet a row."""
        at, lines = self.rows[row]
        return self.y + at + max(len(lines), 1) * _LINE / 2 + 1

    def svg(self) -> Iterable[str]:
        part = self.part
        kind = "box dashed" if part.dashed else "box"
        yield (
            f"<g data-part='{_text(part.id)}'>"
            f"<title>{_text(part.id)}: {_text(part.label or part.title)}</title>"
            f"<rect x='{self.x:.1f}' y='{self.y:.1f}' width='{self.width:.1f}' "
            f"height='{self.height:.1f}' rx='4' class='{kind}'/>"
        )
        yield from _bars(self.x, self.y, self.height, part.marks.get(part.id, ()))
        for number, line in enumerate(self.head):
            kind = "soft" if number == 0 and part.label else "ink"
            yield _words(self.x + _PAD, self.y + _PAD + 11 + number * _LINE, line, kind)
        for row, (at, lines) in self.rows.items():
            right = row not in part.ins
            x = self.x + self.width - _PAD if right else self.x + _PAD
            if not right and row in part.marks:
                height = len(lines) * _LINE - 2
                yield from _bars(self.x, self.y + at + 2, height, part.marks[row])
            for number, line in enumerate(lines):
                kind = "ink" if right or row in part.outs else "port ink"
                y = self.y + at + 11 + number * _LINE
                yield _words(x, y, line, kind, "end" if right else "start")
        yield "</g>"


def _bars(x: float, y: float, height: float, marks: Sequence[int]) -> Iterable[str]:
    """Yield SVG bars at the left edge of a box, one below the other, in the colours with indices
    ``marks``.
    """
    for place, mark in enumerate(marks):
        part = height / len(marks)
        yield (
            f"<rect x='{x:.1f}' y='{y + place * part:.1f}' width='4' height='{part:.1f}' "
            f"fill='{_COLOURS[mark % len(_COLOURS)]}'/>"
        )


def _words(x: float, y: float, words: str, kind: str, anchor: str = "start") -> str:
    return f"<text x='{x:.1f}' y='{y:.1f}' class='{kind}' text-anchor='{anchor}'>{_text(words)}</text>"


def _wrap(words: str, fit: int, most: int) -> list[str]:
    """Break ``words`` into at most ``most`` lines of at most ``fit`` characters; omit the middle of a
    longer text.

    >>> _wrap("aggregate(before, tokens)", 16, 2), _wrap("a long expression", 5, 2)
    (['aggregate(', 'before, tokens)'], ['a lon', '…sion'])
    """
    if len(words) > fit * most:
        half = (fit * most - 1) // 2
        words = words[: fit * most - 1 - half] + "…" + words[len(words) - half :]
    lines: list[str] = []
    while words:
        cut = len(words) if len(words) <= fit else fit
        if cut < len(words) and len(lines) < most - 1:
            # Break at a space or an operator, if the remaining text still fits.
            breaks = [place for place in range(fit // 2, fit + 1) if words[place - 1] in " ,([+-*"]
            room = (most - len(lines) - 1) * fit
            cut = next((place for place in reversed(breaks) if len(words) - place <= room), cut)
        lines.append(words[:cut].strip())
        words = words[cut:].strip()
    return [line for line in lines if line]


def _text(words: str) -> str:
    return escape(_ILLEGAL.sub("\ufffd", words))


def draw_parts(
    parts: Sequence[Part],
    lines: Iterable[Line],
    headings: Mapping[int, str],
    title: str,
    *,
    narrow: bool = False,
    styled: bool = True,
    page: float = _PAGE,
) -> str:
    """Return an SVG of parts in columns or, with ``narrow``, in one column and 400 pixels wide.

    Columns become narrower to fit the width ``page`` in pixels, down to a minimum width.
    Without ``styled``, the SVG contains no style sheet, and the page must provide one.
    """
    lines = list(dict.fromkeys(lines))
    figure = _Narrow(parts, lines) if narrow else _Wide(parts, lines, headings, page)
    figure.is_styled = styled
    return figure.svg(title)


class _Figure:
    """The boxes of a figure and the lines between them."""

    def __init__(self, boxes: Sequence[_Box], lines: Sequence[Line]) -> None:
        self.boxes, self.lines = list(boxes), lines
        self.outs = {row: box for box in self.boxes for row in box.part.outs}
        self.ins = {row: box for box in self.boxes for row in box.part.ins}
        self.lines = [line for line in lines if line.source in self.outs and line.target in self.ins]
        sources = dict.fromkeys(line.source for line in self.lines)
        ordered = [row for row in self.outs if row in sources]
        self.sources = {row: place for place, row in enumerate(ordered)}
        self.entering: dict[str, list[str]] = {row: [] for row in self.ins}
        for line in self.lines:
            if line.source not in self.entering[line.target]:
                self.entering[line.target].append(line.source)
        self.words: list[str] = []
        self.is_styled = True
        self.is_marked = any(box.part.marks for box in self.boxes)

    def entry(self, line: Line) -> tuple[float, float]:
        """Return the point at which a line ends. Lines from different sources end at different points
        of a row.
        """
        box, sources = self.ins[line.target], self.entering[line.target]
        place = sources.index(line.source) - (len(sources) - 1) / 2
        return box.x, box.port(line.target) + place * min(_ENTRY, _LINE / len(sources))

    def draw(self, line: Line, *points: tuple[float, float]) -> str:
        """Return the SVG of a line through ``points`` that ends in an arrowhead."""
        (x, y), path = points[-1], "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        part = self.outs[line.source].part
        marks = part.marks.get(line.source) or part.marks.get(part.id)
        number = marks[-1] if marks else -1 if self.is_marked else self.sources[line.source]
        colour = _COLOURS[number % len(_COLOURS)]
        return (
            f"<g stroke='{colour}'><title>{_text(line.flows)}</title>"
            f"<path d='{path}' class='{line.kind}'/>"
            f"<path d='M{x - 5:.1f} {y - 3.2:.1f}L{x:.1f} {y:.1f}L{x - 5:.1f} {y + 3.2:.1f}'/></g>"
        )

    def page(self, title: str, width: float, height: float, curves: Iterable[str]) -> str:
        kinds = [kind for kind in _KINDS if any(line.kind == kind for line in self.lines)]
        legend = []
        for number, kind in enumerate(kinds):
            y = height + number * _LINE
            legend.append(
                f"<g stroke='{_COLOURS[-1]}'><path d='M{_MARGIN:.1f} {y:.1f}h34' class='{kind}'/></g>"
            )
            legend.append(_words(_MARGIN + 42, y + 3.5, _KINDS[kind], "soft"))
        height += len(kinds) * _LINE
        font = "ui-monospace, SFMono-Regular, Menlo, Consolas, DejaVu Sans Mono, monospace"
        style = " style='max-width:100%;height:auto'" if self.is_styled else ""
        start = (
            f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width:.0f} {height:.0f}' "
            f"width='{width:.0f}' height='{height:.0f}'{style} "
            f"font-family='{font}' font-size='10'>"
        )
        return "\n".join(
            [
                start,
                f"<title>{_text(title)}</title>{_STYLE if self.is_styled else ''}",
                "<rect width='100%' height='100%' class='paper'/>",
                *curves,
                *(words for box in self.boxes for words in box.svg()),
                *self.words,
                *legend,
                "</svg>\n",
            ]
        )


class _Wide(_Figure):
    """A figure with the boxes in columns."""

    def __init__(
        self, parts: Sequence[Part], lines: Sequence[Line], headings: Mapping[int, str], page: float
    ) -> None:
        columns = sorted({part.column for part in parts})
        self.place = {column: place for place, column in enumerate(columns)}
        ends = {columns[0], columns[-1]} if len(columns) > 1 else set()
        super().__init__([_Box(part, _ENDS) for part in parts], lines)
        self._find_tracks()
        between = sum(map(self._space, range(len(columns) - 1)))
        free = page - 2 * _MARGIN - between - len(ends) * _ENDS
        width = min(max(free / max(len(columns) - len(ends), 1), _WIDTHS[0]), _WIDTHS[1])
        boxes = [_Box(part, _ENDS if part.column in ends else width) for part in parts]
        super().__init__(boxes, lines)
        self.headings = {self.place[c]: words for c, words in headings.items() if c in self.place}
        self._lay_out()

    def _column(self, box: _Box) -> int:
        return self.place[box.part.column]

    def _find_tracks(self) -> None:
        """Assign tracks to the lines that turn in the spaces between columns.

        In each space, lines with the same source share a track if they all enter or all leave a box.
        """
        #: For each space between columns, its tracks: the source of the line, and whether it enters or
        #: leaves a box there.
        self.turning: dict[int, dict[tuple[str, str], None]] = {}
        below: dict[str, None] = {}
        for line in self.lines:
            start, end = self._column(self.outs[line.source]), self._column(self.ins[line.target])
            self.turning.setdefault(end - 1, {})[line.source, "in"] = None
            if end > start + 1:
                below[line.source] = None
                self.turning.setdefault(start, {})[line.source, "out"] = None
        #: Lines that skip a column run below all boxes.
        self.lanes = {row: place for place, row in enumerate(below)}

    def _space(self, column: int) -> float:
        """Return the width in pixels between a column and the next column."""
        return 15 + len(self.turning.get(column, ())) * _TRACK

    def _lay_out(self) -> None:
        self.tracks: dict[tuple[int, str, str], float] = {}
        left = _MARGIN
        for column in range(len(self.place)):
            here = [box for box in self.boxes if self._column(box) == column]
            for box in here:
                box.x = left
            left += max(box.width for box in here)
            for place, (source, way) in enumerate(self.turning.get(column, {})):
                self.tracks[column, source, way] = left + 7 + place * _TRACK
            left += self._space(column) if column < len(self.place) - 1 else 0
        self.width = left + _MARGIN
        top = _MARGIN + (2 * _LINE if self.headings else 0)
        tallest = 0.0
        for column in range(len(self.place)):
            down = top
            for box in (b for b in self.boxes if self._column(b) == column):
                box.y, down = down, down + box.height + 12
            tallest = max(tallest, down)
            if column in self.headings:
                x = next(b.x for b in self.boxes if self._column(b) == column)
                for number, words in enumerate(self.headings[column].split("\n")):
                    y = _MARGIN + 10 + number * _LINE
                    self.words.append(_words(x, y, words, "ink" if number == 0 else "soft"))
        self.bottom = tallest
        self.height = tallest + len(self.lanes) * _TRACK + _MARGIN

    def svg(self, title: str) -> str:
        """Return the complete figure as SVG."""
        return self.page(title, self.width, self.height, map(self._curve, self.lines))

    def _curve(self, line: Line) -> str:
        start, end = self.outs[line.source], self.ins[line.target]
        begin = (start.x + start.width, start.port(line.source))
        stop = self.entry(line)
        last = self.tracks[self._column(end) - 1, line.source, "in"]
        if self._column(end) == self._column(start) + 1:
            return self.draw(line, begin, (last, begin[1]), (last, stop[1]), stop)
        first = self.tracks[self._column(start), line.source, "out"]
        lane = self.bottom + self.lanes[line.source] * _TRACK
        turns = [(first, begin[1]), (first, lane), (last, lane), (last, stop[1])]
        return self.draw(line, begin, *turns, stop)


class _Narrow(_Figure):
    """A figure with all boxes in one column and a vertical line for each output at the left."""

    def __init__(self, parts: Sequence[Part], lines: Sequence[Line]) -> None:
        super().__init__([_Box(part, _NARROW) for part in parts], lines)
        # A track becomes free after the last box that reads its line.
        order = {id(box): place for place, box in enumerate(self.boxes)}
        until: dict[str, int] = {}
        for line in self.lines:
            until[line.source] = max(until.get(line.source, 0), order[id(self.ins[line.target])])
        busy: list[int] = []
        self.track: dict[str, int] = {}
        for row in self.sources:
            first = order[id(self.outs[row])]
            free = next((track for track, end in enumerate(busy) if end <= first), len(busy))
            busy[free:] = [until[row], *busy[free + 1 :]]
            self.track[row] = free
        self.left = _MARGIN + len(busy) * _TRACK + 8
        self.boxes[:] = [_Box(box.part, _NARROW - self.left - _MARGIN) for box in self.boxes]
        super().__init__(self.boxes, lines)
        down = _MARGIN
        for box in self.boxes:
            leaving = sum(row in self.sources for row in box.part.outs)
            box.x, box.y = self.left, down
            down += box.height + 10 + 4 * leaving
        self.height = down

    def svg(self, title: str) -> str:
        """Return the complete figure as SVG."""
        curves = []
        for line in self.lines:
            start = self.outs[line.source]
            place = [row for row in start.part.outs if row in self.sources].index(line.source)
            track = self.left - 10 - self.track[line.source] * _TRACK
            # A line leaves a box at the lower edge, so that it does not cross the lines that end at the
            # left edge.
            begin = (start.x + 14 + place * _TRACK, start.y + start.height)
            below = begin[1] + 5 + 4 * place
            stop = self.entry(line)
            turns = [(begin[0], below), (track, below), (track, stop[1])]
            curves.append(self.draw(line, begin, *turns, stop))
        return self.page(title, _NARROW, self.height, curves)
