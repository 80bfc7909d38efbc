"""Draw a program on an input: layers as columns, heads as grids, the flow of values as lines.

Each head is drawn as in RASPy. Queries are on the left, and keys are at the top. The values that the
head reads are at the bottom, and the output of the head is on the right. A head with several values is
drawn with a row and a column for each value.

``length`` and ``selector_width`` are drawn as the heads that define them, and counted as in ``locum run
--count``. For long inputs, token labels and values are omitted. Only the first heads of large families,
and only the first values of a head with many values, are drawn.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from locum.errors import InputError
from locum.execution import run
from locum.graph import Node, build, members, postorder
from locum.graph.architecture import Head, architecture
from locum.graph.definitions import expand_definitions, names_of_definitions
from locum.graph.labels import Labels, names_given
from locum.graph.traversal import replace_families
from locum.rasp import echo
from locum.rasp.drawing.svg import Drawing
from locum.text import shortened, shortened_apart

#: Maximum number of heads drawn per family, and of values drawn per head.
MAX_MEMBERS, MAX_VALUES = 6, 24


@dataclass(frozen=True)
class ShownValue:
    """A sequence that a head averages: its expression, its values at the keys, and the output of the
    head.
    """

    label: str
    reads: Sequence[Any]
    gives: Sequence[Any]


@dataclass(frozen=True)
class ShownHead:
    """A head evaluated on one input: its label, its attention pattern and the sequences that it
    averages.
    """

    label: str
    pattern: Sequence[Sequence[bool]]
    values: tuple[ShownValue, ...]
    #: The aggregates that the head computes. In ``closed``, the index of a family is replaced by its
    #: value in this head. ``open`` contains the aggregates of the program.
    closed: tuple[Node, ...]
    open: tuple[Node, ...]
    #: A note on omitted values of the head, or on omitted heads of its family.
    note: str


def shown_heads(head: Head, tokens: Sequence[Any], names: Mapping[Node, str]) -> Iterator[ShownHead]:
    """Yield a single head, or the first ``MAX_MEMBERS`` heads of a family, evaluated on ``tokens``."""
    label = Labels(names, longest=400)
    places = members(_families(head.selector))
    for count, member in enumerate(itertools.islice(places, MAX_MEMBERS)):
        selector = _filled(head.selector, member)
        aggregates = [a for node in head.serves for a in _aggregates(node, list(member.values()))]
        drawn = aggregates[:MAX_VALUES]
        notes = []
        if len(aggregates) > len(drawn):
            notes.append(f"… and {len(aggregates) - len(drawn)} more values of this head")
        if count == MAX_MEMBERS - 1 and head.members > MAX_MEMBERS:
            notes.append(f"… and {head.members - MAX_MEMBERS} more heads of this family")
        yield ShownHead(
            label(selector),
            run(selector, tokens),
            tuple(
                ShownValue(label(node.inputs[1]), run(node.inputs[1], tokens), run(node, tokens))
                for node in drawn
            ),
            closed=tuple(aggregates),
            open=head.serves,
            note="; ".join(notes),
        )


def _aggregates(node: Node, member: Sequence[int]) -> Iterator[Node]:
    """Yield the aggregates that one head of a family computes.

    ``member`` contains the indices of the head in the families of its selector. An aggregate that
    depends on other families is yielded once for each of their members. Selectors that differ only in
    names of families are one head: their first families correspond, then the second, and so on.
    """
    own = dict(zip(_families(node.inputs[0]), member, strict=True))
    others = sorted(node.free - own.keys(), key=lambda family: str(family.attributes["name"]))
    for rest in members(others):
        yield _filled(node, {**own, **rest})


def _families(selector: Node) -> list[Node]:
    return [node for node in postorder(selector) if node in selector.free]


def _filled(node: Node, places: Mapping[Node, int]) -> Node:
    return replace_families(
        node, {family: build("constant", value=value) for family, value in places.items()}
    )


#: Maximum number of tokens; a picture of a longer input would be too large to read.
MAX_LENGTH = 64

_COLUMN_GAP, _ROW_GAP, _MARGIN, _LANE = 80, 30, 24, 9
_TITLE, _GAP = 18, 6
#: Font size of small letters, the width of one small letter, and the ratio of width to font size.
_SMALL, _LETTER, _RATIO = 10, 6.05, 0.605
#: Columns become wider so that values of up to ``_LETTERS`` letters fit at the font size ``_SMALLEST``.
_SMALLEST, _LETTERS = 10.0, 8
#: Maximum number of letters of a token label next to a grid.
_LABEL = 7


@dataclass
class _Panel:
    """A head and its position in the drawing."""

    head: ShownHead
    column: int
    title: str = ""
    x: float = 0.0
    y: float = 0.0


@dataclass
class _Sheet:
    """The drawing of a program on one input, with all sizes that depend on the length of the input."""

    tokens: list[Any]
    cell: float
    label: float
    #: The width of a column of the grid, chosen so that values are readable.
    wide: float
    drawing: Drawing = field(default_factory=Drawing)

    @property
    def side(self) -> float:
        return self.cell * len(self.tokens)

    @property
    def across(self) -> float:
        return self.wide * len(self.tokens)

    @property
    def named(self) -> bool:
        """Whether the cells are large enough for letters."""
        return self.cell >= 15

    def width(self, head: ShownHead) -> float:
        return self.label + self.across + _GAP + self.label * max(1, len(head.values))

    def height(self, head: ShownHead) -> float:
        lines = len(head.values) + bool(head.note)
        return _TITLE + self.cell + self.side + _GAP + self.cell * len(head.values) + 13 * lines + 4

    def value(self, x: float, y: float, width: float, value: Any, kind: str) -> None:
        """Draw a box and, if the cells are large enough, a value with a font size at which it fits."""
        self.drawing.box(x, y, width, self.cell, kind)
        if self.named:
            words = echo.scalar(value)
            size = min(self.cell * 0.54, (width - 4) / (_RATIO * max(1, len(words))))
            baseline = y + self.cell * 0.5 + size * 0.36
            self.drawing.text(x + width / 2, baseline, words, size=size, at="middle")

    def label_of(self, token: Any, room: float) -> tuple[str, float]:
        """Return the label of a token, and a font size at which the label fits into a width of
        ``room``.

        A shortened label ends with an ellipsis, because the first digits of a number are a different
        number.
        """
        word = shortened(echo.scalar(token), _LABEL)
        most = max(_SMALLEST, self.cell * 0.5)
        return word, min(most, (room - 3) / (_RATIO * max(1, len(word))))

    def begin(self, panel: _Panel) -> tuple[float, float]:
        """Return the point at which lines to a head end."""
        return panel.x - 2, panel.y + self.height(panel.head) / 2

    def end(self, panel: _Panel) -> tuple[float, float]:
        """Return the point at which lines from a head begin."""
        return panel.x + self.width(panel.head), panel.y + self.height(panel.head) / 2


def flow_svg(
    program: Node, tokens: Any, name: str = "out", names: Mapping[Node, str] | None = None
) -> str:
    """Draw the heads and the data flow of an s-op on an input, and return the picture as SVG text.

    ``names`` maps nodes to their names in the titles and captions of heads.

    >>> from locum.rasp.python import aggregate, full, indices
    >>> flow_svg(aggregate(full, indices).node, "abc").count("<rect") > 9
    True
    """
    tokens = list(tokens)
    if tokens and all(isinstance(token, (list, tuple)) for token in tokens):
        raise InputError("expected one sequence to draw, got a batch")
    if len(tokens) > MAX_LENGTH:
        raise InputError(f"expected at most {MAX_LENGTH} tokens to draw, got {len(tokens)}")
    root = expand_definitions(program)
    own = {expand_definitions(node): words for node, words in (names or {}).items()}
    names = {**names_of_definitions(program), **names_given(program), **own}
    structure = architecture(root)
    columns = [
        [_Panel(shown, number) for head in layer for shown in shown_heads(head, tokens, names)]
        for number, layer in enumerate(structure.structure)
    ]
    result = run(root, tokens)
    sheet = _sheet(tokens, columns)
    width, height = _place(columns, sheet)
    # Lines are drawn first, so that panels cover them.
    height += _draw_flow(sheet, root, columns, width, height)
    for heads, column in zip(structure.heads, columns, strict=True):
        title = f"layer {column[0].column}: {heads} head{'s' if heads > 1 else ''}"
        sheet.drawing.text(column[0].x, _MARGIN + 4, title, size=13)
        for panel in column:
            _draw_panel(sheet, panel)
    middle = _middle(columns, sheet)
    _draw_column(sheet, _MARGIN, middle, "input", tokens, "in", numbered=True)
    _draw_column(sheet, width - _MARGIN - 3 * sheet.cell, middle, name, result, "out")
    title = f"{name}({echo.quoted(tokens)}) = {echo.sequence(result)}"
    return sheet.drawing.svg(width, height, title)


def _sheet(tokens: list[Any], columns: list[list[_Panel]]) -> _Sheet:
    """Return an empty drawing with sizes for the number of tokens and the lengths of the values."""
    cell = float(max(7, min(24, 640 // len(tokens))))
    reads = [read for column in columns for p in column for v in p.head.values for read in v.reads]
    words = [echo.scalar(value) for value in reads]
    labels = [shortened(echo.scalar(token), _LABEL) for token in tokens]
    letters = min(_LETTERS, max(map(len, [*words, *labels])))
    wide = max(cell, 4 + _RATIO * _SMALLEST * letters) if cell >= 15 else cell
    return _Sheet(tokens, cell, label=max(26.0, 2.2 * cell), wide=wide)


# Layout -------------------------------------------------------------------------------------------


def _place(columns: list[list[_Panel]], sheet: _Sheet) -> tuple[float, float]:
    """Set the position and title of every panel, and return the size of the drawing."""
    x = _MARGIN + 0.6 * sheet.label + 2.2 * sheet.cell + _COLUMN_GAP
    bottom = _MARGIN + 48 + sheet.side
    tallest = max((_stacked(column, sheet) for column in columns), default=0.0)
    for column in columns:
        y = _MARGIN + 24 + (tallest - _stacked(column, sheet)) / 2
        widest = max(sheet.width(panel.head) for panel in column)
        titles = shortened_apart([p.head.label for p in column], int(widest / _LETTER))
        for panel, title in zip(column, titles, strict=True):
            panel.x, panel.y, panel.title = x, y, title
            y += sheet.height(panel.head) + _ROW_GAP
        bottom = max(bottom, y - _ROW_GAP)
        x += widest + _COLUMN_GAP
    return x + 3.2 * sheet.cell + _MARGIN, bottom + _MARGIN


def _stacked(column: list[_Panel], sheet: _Sheet) -> float:
    return sum(sheet.height(panel.head) + _ROW_GAP for panel in column) - _ROW_GAP


def _middle(columns: list[list[_Panel]], sheet: _Sheet) -> float:
    """Return the vertical centre of the input and output columns, which is the centre of the tallest
    layer unless these columns are taller.
    """
    tallest = max((_stacked(column, sheet) for column in columns), default=0.0)
    return _MARGIN + 24 + max(tallest, sheet.side) / 2


# Drawing ------------------------------------------------------------------------------------------


def _draw_column(
    sheet: _Sheet,
    x: float,
    middle: float,
    name: str,
    values: Sequence[Any],
    kind: str,
    *,
    numbered: bool = False,
) -> None:
    """Draw the input or the output of the program as a column of boxes."""
    top, cell = middle - sheet.side / 2, sheet.cell
    sheet.drawing.text(x, top - 8, name, size=13)
    for row, value in enumerate(values):
        y = top + row * cell
        if numbered and sheet.named:
            sheet.drawing.text(x, y + cell * 0.66, str(row), "soft", size=cell * 0.5)
        left = x + (0.6 * sheet.label if numbered else 0)
        sheet.value(left, y, 2.2 * cell if numbered else 3 * cell, value, kind)


def _draw_panel(sheet: _Sheet, panel: _Panel) -> None:
    drawing, head, cell = sheet.drawing, panel.head, sheet.cell
    left, top = panel.x + sheet.label, panel.y + _TITLE + cell
    drawing.begin(head.label)
    drawing.box(
        panel.x - 2, panel.y - 4, sheet.width(head) + 4, sheet.height(head) + 6, "paper", line=False
    )
    drawing.text(panel.x, panel.y + 10, panel.title, "soft", size=_SMALL)
    if sheet.named:
        for place, token in enumerate(sheet.tokens):
            middle, baseline = left + (place + 0.5) * sheet.wide, top + place * cell + cell * 0.66
            word, size = sheet.label_of(token, sheet.wide)
            drawing.text(middle, top - 4, word, "soft", size=size, at="middle")
            word, size = sheet.label_of(token, sheet.label)
            drawing.text(left - 5, baseline, word, "soft", size=size, at="end")
    for q, row in enumerate(head.pattern):
        for k, selected in enumerate(row):
            place_of = (left + k * sheet.wide, top + q * cell, sheet.wide, cell)
            drawing.box(*place_of, "on" if selected else "off")
    drawing.end()
    below, right = top + sheet.side + _GAP, left + sheet.across + _GAP
    for number, value in enumerate(head.values):
        drawing.begin(f"{value.label}: {echo.sequence(value.reads)} → {echo.sequence(value.gives)}")
        x, y = right + number * sheet.label, below + number * cell
        for place in range(len(sheet.tokens)):
            sheet.value(left + place * sheet.wide, y, sheet.wide, value.reads[place], "in")
            sheet.value(x, top + place * cell, sheet.label, value.gives[place], "out")
        if len(head.values) > 1 and sheet.named:
            # The index of the value is written where the row and the column of the value meet.
            centre, baseline = x + sheet.label / 2, y + cell * 0.66
            size = max(_SMALLEST, cell * 0.5)
            drawing.text(centre, baseline, str(number), "soft", size=size, at="middle")
        drawing.end()
    _draw_captions(sheet, head, left, below + len(head.values) * cell + 12)


def _draw_captions(sheet: _Sheet, head: ShownHead, x: float, y: float) -> None:
    """Write the labels of the values that a head reads, and its note; several labels are numbered."""
    room = int((sheet.width(head) - sheet.label) / _LETTER)
    marks = [f"{n}: " if len(head.values) > 1 else "" for n in range(len(head.values))]
    room -= max(map(len, marks), default=0)
    labels = shortened_apart([value.label for value in head.values], room)
    lines = [mark + label for mark, label in zip(marks, labels, strict=True)]
    for number, line in enumerate([*lines, *([head.note] if head.note else [])]):
        sheet.drawing.text(x, y + 13 * number, line, "soft", size=_SMALL)


def _draw_flow(
    sheet: _Sheet, root: Node, columns: list[list[_Panel]], width: float, height: float
) -> float:
    """Draw lines from the input and from each head to the heads that read them, and to the output.

    Lines that skip a layer are drawn below all panels. Return the height that these lines need.
    """
    panels = [panel for column in columns for panel in column]
    by_head: dict[Node, list[_Panel]] = {node: [p] for p in panels for node in p.head.closed}
    by_family: dict[Node, list[_Panel]] = {}
    for panel in panels:
        for node in panel.head.open:
            by_family.setdefault(node, []).append(panel)
    middle = _middle(columns, sheet)
    begin = (_MARGIN + 0.6 * sheet.label + 2.2 * sheet.cell + 2, middle)
    end = (width - _MARGIN - 3 * sheet.cell - 2, middle)
    below = height - _MARGIN / 2
    lanes: dict[int, float] = {}

    def connect(source: _Panel | None, target: tuple[float, float], column: int) -> None:
        start, place = (begin, -1) if source is None else (sheet.end(source), source.column)
        lane = None
        if column - place > 1:
            lane = lanes.setdefault(id(source), below + _LANE * len(lanes))
        sheet.drawing.path(_curve(start, target, lane))

    for panel in panels:
        inputs = [node for aggregate in panel.head.closed for node in aggregate.inputs]
        for source in _sources(inputs, by_head):
            connect(source, sheet.begin(panel), panel.column)
    for source in _sources((root,), by_family):
        connect(source, end, len(columns))
    return _LANE * len(lanes)


def _curve(start: tuple[float, float], end: tuple[float, float], lane: float | None) -> str:
    """Return the SVG path data of a line.

    A line that skips a layer follows the y coordinate ``lane``.
    """
    (x0, y0), (x1, y1) = start, end
    if lane is None:
        bend = max(30.0, min(60.0, (x1 - x0) / 2))
        return (
            f"M{x0:.1f},{y0:.1f} C{x0 + bend:.1f},{y0:.1f} {x1 - bend:.1f},{y1:.1f} {x1:.1f},{y1:.1f}"
        )
    left, right = x0 + _COLUMN_GAP * 0.6, x1 - _COLUMN_GAP * 0.6
    return (
        f"M{x0:.1f},{y0:.1f} C{left:.1f},{y0:.1f} {x0:.1f},{lane:.1f} {left:.1f},{lane:.1f} "
        f"L{right:.1f},{lane:.1f} C{x1:.1f},{lane:.1f} {right:.1f},{y1:.1f} {x1:.1f},{y1:.1f}"
    )


def _sources(roots: Sequence[Node], owners: dict[Node, list[_Panel]]) -> Iterator[_Panel | None]:
    """Yield the heads whose outputs ``roots`` use, and None if ``roots`` use the tokens directly.

    No line is drawn for ``indices``, because positions are available in every layer.
    """
    reached = [*roots]
    for node in postorder(*roots, into=lambda n: n not in owners):
        reached.extend(node.inputs)
    if any(node.op == "tokens" for node in reached):
        yield None
    yield from {id(panel): panel for node in reached for panel in owners.get(node, ())}.values()
