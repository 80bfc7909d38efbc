"""Draw a program on an input: layers as columns, heads as grids, values as arrows.

Each head is drawn as RASPy draws it: queries on the left, keys on top, the values it reads at the
bottom, what comes out on the right; a head that carries several values has a row and a column for each.
``length`` and ``selector_width`` appear as the heads they are made of, so the picture has exactly the
layers and heads that ``analyse`` counts. Long inputs lose their labels, large families show their first
heads.
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
from locum.graph.labels import Labels
from locum.graph.traversal import replace_families
from locum.rasp import echo
from locum.rasp.drawing.svg import Drawing
from locum.text import shortened, shortened_apart

#: Heads of one family, and values of one head, that are shown; the rest are counted in words.
MAX_MEMBERS, MAX_VALUES = 6, 24


@dataclass(frozen=True)
class ShownValue:
    """One sequence that a head carries: its expression, what stands at the keys, what comes out."""

    label: str
    reads: Sequence[Any]
    gives: Sequence[Any]


@dataclass(frozen=True)
class ShownHead:
    """A head on one input, with all values that it carries."""

    label: str
    pattern: Sequence[Sequence[bool]]
    values: tuple[ShownValue, ...]
    #: The aggregates that it computes, with its place in the family filled in, and as the program has
    #: them.
    closed: tuple[Node, ...]
    open: tuple[Node, ...]
    #: What is not shown: further values, and, in the last head of a family, further heads.
    note: str


def shown_heads(head: Head, tokens: Sequence[Any], names: Mapping[Node, str]) -> Iterator[ShownHead]:
    """Yield a head, or the first members of a family of heads."""
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
    """Yield what one head computes for an aggregate: a value for each member of its other families.

    Equal selectors may have families of their own; they correspond in the order of occurrence.
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


#: Longer inputs would give a picture nobody can look at.
MAX_LENGTH = 64

_COLUMN_GAP, _ROW_GAP, _MARGIN, _LANE = 80, 30, 24, 9
_TITLE, _GAP = 18, 6
#: The size of small letters, and how wide one is.
_SMALL, _LETTER = 10, 6.05
#: Letters of a token beside a grid.
_LABEL = 7


@dataclass
class _Panel:
    """A head, and where it is drawn."""

    head: ShownHead
    column: int
    title: str = ""
    x: float = 0.0
    y: float = 0.0


@dataclass
class _Sheet:
    """Sizes of everything that depends on the input."""

    tokens: list[Any]
    cell: float
    label: float
    drawing: Drawing = field(default_factory=Drawing)

    @property
    def side(self) -> float:
        return self.cell * len(self.tokens)

    @property
    def named(self) -> bool:
        """Whether there is room for letters in a cell."""
        return self.cell >= 10

    def width(self, head: ShownHead) -> float:
        return self.label + self.side + _GAP + self.label * max(1, len(head.values))

    def height(self, head: ShownHead) -> float:
        lines = len(head.values) + bool(head.note)
        return _TITLE + self.cell + self.side + _GAP + self.cell * len(head.values) + 13 * lines + 4

    def value(self, x: float, y: float, width: float, value: Any, kind: str) -> None:
        """Draw a value in its box; the letters shrink so that it fits."""
        self.drawing.box(x, y, width, self.cell, kind)
        if self.named:
            words = echo.scalar(value)
            size = min(self.cell * 0.62, 1.4 * width / max(1, len(words)))
            baseline = y + self.cell * 0.5 + size * 0.36
            self.drawing.text(x + width / 2, baseline, words, size=size, at="middle")

    def label_of(self, token: Any, room: float) -> tuple[str, float]:
        """Return a token as a label, and the size of letters at which it fits, with a gap beside it.

        What is cut short says so: the first digits of a number would be another number.
        """
        word = shortened(echo.scalar(token), _LABEL)
        return word, min(self.cell * 0.5, 1.3 * room / max(1, len(word)))


def flow_svg(
    program: Node, tokens: Any, name: str = "out", names: Mapping[Node, str] | None = None
) -> str:
    """Return the picture of an s-op on an input, as the text of an SVG file.

    ``names`` are the program's own names for nodes, used in the titles of heads.

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
    names = {**names_of_definitions(program), **own}
    structure = architecture(root)
    columns = [
        [_Panel(shown, number) for head in layer for shown in shown_heads(head, tokens, names)]
        for number, layer in enumerate(structure.structure)
    ]
    result = run(root, tokens)
    cell = float(max(7, min(24, 420 // len(tokens))))
    sheet = _Sheet(tokens, cell, label=max(26.0, 2.2 * cell))
    width, height = _place(columns, sheet)
    height = _draw_flow(sheet, root, columns, width, height)  # first: panels lie on top of the lines
    middle = _middle(columns, sheet)
    _draw_column(sheet, _MARGIN, middle, "input", tokens, "in", numbered=True)
    for heads, column in zip(structure.heads, columns, strict=True):
        title = f"layer {column[0].column}: {heads} head{'s' if heads > 1 else ''}"
        sheet.drawing.text(column[0].x, _MARGIN + 4, title, size=13)
        for panel in column:
            _draw_panel(sheet, panel)
    _draw_column(sheet, width - _MARGIN - 3 * cell, middle, name, result, "out")
    title = f"{name}({echo.quoted(tokens)}) = {echo.sequence(result)}"
    return sheet.drawing.svg(width, height, title)


# Places -------------------------------------------------------------------------------------------


def _place(columns: list[list[_Panel]], sheet: _Sheet) -> tuple[float, float]:
    """Give every panel its place and its title; return the size of the whole picture."""
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
    """Return the height at which input and output stand: the middle of the tallest column."""
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
    """Draw the input or the output of the whole program."""
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
            middle, beside = left + (place + 0.5) * cell, top + place * cell + cell * 0.66
            word, size = sheet.label_of(token, cell)
            drawing.text(middle, top - 4, word, "soft", size=size, at="middle")
            word, size = sheet.label_of(token, sheet.label)
            drawing.text(left - 5, beside, word, "soft", size=size, at="end")
    for q, row in enumerate(head.pattern):
        for k, selected in enumerate(row):
            drawing.box(left + k * cell, top + q * cell, cell, cell, "on" if selected else "off")
    drawing.end()
    below, right = top + sheet.side + _GAP, left + sheet.side + _GAP
    for number, value in enumerate(head.values):
        drawing.begin(f"{value.label}: {echo.sequence(value.reads)} → {echo.sequence(value.gives)}")
        x, y = right + number * sheet.label, below + number * cell
        for place in range(len(sheet.tokens)):
            sheet.value(left + place * cell, y, cell, value.reads[place], "in")
            sheet.value(x, top + place * cell, sheet.label, value.gives[place], "out")
        if len(head.values) > 1 and sheet.named:
            # The row and the column of one value meet in its number.
            centre, baseline = x + sheet.label / 2, y + cell * 0.66
            drawing.text(centre, baseline, str(number), "soft", size=cell * 0.5, at="middle")
        drawing.end()
    _draw_captions(sheet, head, left, below + len(head.values) * cell + 12)


def _draw_captions(sheet: _Sheet, head: ShownHead, x: float, y: float) -> None:
    """Name the values that are read, by their numbers where there are several."""
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
    """Draw lines from each head, and the input, to whatever reads it; return the height with them."""
    panels = [panel for column in columns for panel in column]
    by_head: dict[Node, list[_Panel]] = {node: [p] for p in panels for node in p.head.closed}
    by_family: dict[Node, list[_Panel]] = {}
    for panel in panels:
        for node in panel.head.open:
            by_family.setdefault(node, []).append(panel)
    middle = _middle(columns, sheet)
    begin = (_MARGIN + 0.6 * sheet.label + 2.2 * sheet.cell + 2, middle)
    end = (width - _MARGIN - 3 * sheet.cell - 2, middle)
    lanes: dict[int, float] = {}

    def connect(source: _Panel | None, target: tuple[float, float], column: int) -> None:
        start, place = begin, -1
        if source is not None:
            place = source.column
            start = (source.x + sheet.width(source.head), source.y + sheet.height(source.head) / 2)
        lane = None
        if column - place > 1:
            # A line that passes a column goes below it, not behind its panels.
            lane = lanes.setdefault(id(source), height - _MARGIN / 2 + _LANE * len(lanes))
        sheet.drawing.path(_curve(*start, *target, lane))

    for panel in panels:
        inputs = [node for aggregate in panel.head.closed for node in aggregate.inputs]
        target = (panel.x - 2, panel.y + sheet.height(panel.head) / 2)
        for source in _sources(inputs, by_head):
            connect(source, target, panel.column)
    for source in _sources((root,), by_family):
        connect(source, end, len(columns))
    return height + _LANE * len(lanes)


def _curve(x0: float, y0: float, x1: float, y1: float, lane: float | None) -> str:
    bend = max(30.0, min(60.0, (x1 - x0) / 2))
    if lane is None:
        return (
            f"M{x0:.1f},{y0:.1f} C{x0 + bend:.1f},{y0:.1f} {x1 - bend:.1f},{y1:.1f} {x1:.1f},{y1:.1f}"
        )
    turn = _COLUMN_GAP * 0.6
    return (
        f"M{x0:.1f},{y0:.1f} C{x0 + turn:.1f},{y0:.1f} {x0:.1f},{lane:.1f} {x0 + turn:.1f},{lane:.1f} "
        f"L{x1 - turn:.1f},{lane:.1f} C{x1:.1f},{lane:.1f} {x1 - turn:.1f},{y1:.1f} {x1:.1f},{y1:.1f}"
    )


def _sources(roots: Sequence[Node], owners: dict[Node, list[_Panel]]) -> Iterator[_Panel | None]:
    """Yield the heads whose output is read below ``roots``, and None if the tokens themselves are.

    Positions are known in every layer, so reading ``indices`` draws no line.
    """
    reached = [*roots]
    for node in postorder(*roots, into=lambda n: n not in owners):
        reached.extend(node.inputs)
    if any(node.op == "tokens" for node in reached):
        yield None
    yield from {id(panel): panel for node in reached for panel in owners.get(node, ())}.values()
