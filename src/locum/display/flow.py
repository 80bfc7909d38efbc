"""A program on an input as a picture: layers as columns, heads as grids, values flowing through.

Each head is drawn as RASPy draws it: queries on the left, keys on top, the values it reads at the
bottom, what comes out on the right. ``length`` and ``selector_width`` appear as the heads they are
made of, so the picture has exactly the layers and heads that ``analyse`` counts. One self-contained
SVG, no script; long inputs lose their labels, large families show their first heads.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape as html_escape
from typing import Any

from locum.analysis import Head, architecture
from locum.errors import InputError
from locum.execution import run
from locum.graph import Node, abbreviate, build, members, postorder
from locum.graph.definitions import expand_definitions, names_of_definitions
from locum.graph.traversal import replace_families
from locum.language import echo

#: Heads of one family that are drawn; the rest are counted in words.
MAX_MEMBERS = 6
#: Longer inputs would give a picture nobody can look at.
MAX_LENGTH = 64

_COLUMN_GAP, _ROW_GAP, _MARGIN = 90, 34, 24
_INK, _SOFT, _LINE, _ON, _PAPER = "#1f2933", "#66788a", "#d5dde5", "#2f6f9f", "#ffffff"
_FLOW, _IN, _OUT = "#b9c5d0", "#f6efe0", "#e2f0e6"


#: Characters that no XML file may contain.
_ILLEGAL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def escape(text: str) -> str:
    """Text for an SVG: escaped, and with nothing in it that XML forbids."""
    return html_escape(_ILLEGAL.sub("\ufffd", text))


@dataclass
class _Panel:
    """A head on one input: its pattern, what it reads, what it gives, and where it is drawn."""

    title: str
    pattern: Sequence[Sequence[bool]]
    reads: list[Any]
    gives: list[Any]
    #: The aggregates it computes, with its place in the family filled in, and as the program has them.
    closed: tuple[Node, ...]
    open: tuple[Node, ...]
    x: float = 0.0
    y: float = 0.0
    note: str = ""


@dataclass
class _Drawing:
    tokens: list[Any]
    cell: float
    label: float
    parts: list[str] = field(default_factory=list)

    @property
    def side(self) -> float:
        return self.cell * len(self.tokens)

    @property
    def panel_width(self) -> float:
        return self.label + self.side + 6 + self.label

    @property
    def panel_height(self) -> float:
        return 18 + self.cell + self.side + 6 + self.cell

    def text(self, x: float, y: float, words: str, **style: Any) -> None:
        settings = {"size": 11.0, "fill": _INK, "anchor": "start", **style}
        self.parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" font-size="{settings["size"]:.1f}" '
            f'fill="{settings["fill"]}" text-anchor="{settings["anchor"]}">{escape(words)}</text>'
        )

    def box(
        self, x: float, y: float, width: float, height: float, fill: str, line: str = _LINE
    ) -> None:
        self.parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" '
            f'fill="{fill}" stroke="{line}" stroke-width="1"/>'
        )

    def cell_with(self, x: float, y: float, width: float, words: str, fill: str) -> None:
        """A value in its box; the letters shrink so that it fits."""
        self.box(x, y, width, self.cell, fill)
        if self.cell >= 10:
            size = min(self.cell * 0.62, 1.6 * width / max(1, len(words)))
            self.text(
                x + width / 2, y + self.cell * 0.5 + size * 0.36, words, size=size, anchor="middle"
            )

    def curve(self, x0: float, y0: float, x1: float, y1: float) -> None:
        bend = max(30.0, (x1 - x0) / 2)
        self.parts.append(
            f'<path d="M{x0:.1f},{y0:.1f} C{x0 + bend:.1f},{y0:.1f} {x1 - bend:.1f},{y1:.1f} '
            f'{x1:.1f},{y1:.1f}" fill="none" stroke="{_FLOW}" stroke-width="1.4"/>'
        )


def flow_svg(
    program: Node, tokens: Any, name: str = "out", names: Mapping[Node, str] | None = None
) -> str:
    """The picture of an s-op on an input, as the text of an SVG file.

    ``names`` are the program's own names for nodes, used in the titles of heads.

    >>> from locum.language.python import aggregate, full, indices
    >>> flow_svg(aggregate(full, indices).node, "abc").count("<rect") > 9
    True
    """
    tokens = list(tokens)
    if tokens and all(isinstance(token, (list, tuple)) for token in tokens):
        raise InputError("a picture shows one sequence, but the input is a batch of them")
    if len(tokens) > MAX_LENGTH:
        raise InputError(
            f"a picture shows at most {MAX_LENGTH} tokens, but the input has {len(tokens)}"
        )
    root = expand_definitions(program)
    names = {**(names or {}), **names_of_definitions(program)}
    size = architecture(root)
    columns = [
        [panel for head in layer for panel in _panels(head, tokens, names)] for layer in size.structure
    ]
    result = run(root, tokens)
    cell = float(max(7, min(24, 420 // len(tokens))))
    drawing = _Drawing(tokens, cell, label=max(26.0, 2.2 * cell))
    width, height = _place(columns, drawing)
    _draw_flow(drawing, root, columns, width, height)  # first: panels lie on top of the lines
    _draw_input(drawing, height)
    for number, (heads, column) in enumerate(zip(size.heads, columns, strict=True), start=1):
        title = f"layer {number}: {heads} head{'s' if heads > 1 else ''}"
        drawing.text(column[0].x, _MARGIN + 4, title, size=13)
        for panel in column:
            _draw_panel(drawing, panel)
    _draw_output(drawing, width, height, name, result)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" '
        'font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace">'
    )
    title = (
        f"<title>{escape(name)}({escape(echo.given(tokens))}) = {escape(echo.sequence(result))}</title>"
    )
    background = f'<rect width="100%" height="100%" fill="{_PAPER}"/>'
    return "\n".join([head, title, background, *drawing.parts, "</svg>\n"])


def _panels(head: Head, tokens: list[Any], names: Mapping[Node, str] | None) -> Iterator[_Panel]:
    """A head, or the first members of a family of them, run on the input."""
    # The families of the selector make the heads; values may depend on more of them, and then one
    # head reads several sequences, of which the first is shown.
    selector_families = sorted(head.selector.free, key=lambda f: str(f.attributes["name"]))
    others = {f for node in head.serves for f in node.free}.difference(selector_families)
    for count, member in enumerate(members(selector_families)):
        if count == MAX_MEMBERS:
            return
        chosen = {**member, **dict.fromkeys(others, 0)}
        fixed = {family: build("constant", value=value) for family, value in chosen.items()}
        pattern = run(replace_families(head.selector, fixed), tokens)
        serves = [replace_families(node, fixed) for node in head.serves]
        note = ""
        if count == MAX_MEMBERS - 1 and head.members > MAX_MEMBERS:
            note = f"… and {head.members - MAX_MEMBERS} more heads of this family"
        yield _Panel(
            abbreviate(replace_families(head.selector, fixed), names),
            pattern,
            [run(node.inputs[1], tokens) for node in serves][:1],
            [run(node, tokens) for node in serves][:1],
            closed=tuple(serves),
            open=head.serves,
            note=note,
        )


def _place(columns: list[list[_Panel]], drawing: _Drawing) -> tuple[float, float]:
    """Give every panel its place; the size of the whole picture."""
    step = drawing.panel_height + _ROW_GAP
    tallest = max((len(column) for column in columns), default=1)
    height = 2 * _MARGIN + 20 + tallest * step
    x = _MARGIN + drawing.label + 2.2 * drawing.cell + _COLUMN_GAP
    for column in columns:
        free = (tallest - len(column)) * step / 2
        for row, panel in enumerate(column):
            panel.x, panel.y = x, _MARGIN + 24 + free + row * step
        x += drawing.panel_width + _COLUMN_GAP
    height = max(height, 2 * _MARGIN + 40 + drawing.side)
    return x + 3.2 * drawing.cell + _MARGIN, height


def _draw_input(drawing: _Drawing, height: float) -> None:
    top = (height - drawing.side) / 2
    drawing.text(_MARGIN, top - 8, "input", size=13)
    for row, token in enumerate(drawing.tokens):
        y = top + row * drawing.cell
        if drawing.cell >= 10:
            size = drawing.cell * 0.5
            drawing.text(_MARGIN, y + drawing.cell * 0.66, str(row), fill=_SOFT, size=size)
        drawing.cell_with(_MARGIN + drawing.label * 0.5, y, 2.2 * drawing.cell, echo.scalar(token), _IN)


def _draw_output(drawing: _Drawing, width: float, height: float, name: str, values: list[Any]) -> None:
    top, left = (height - drawing.side) / 2, width - _MARGIN - 3.2 * drawing.cell
    drawing.text(left, top - 8, name, size=13)
    for row, value in enumerate(values):
        drawing.cell_with(left, top + row * drawing.cell, 3.0 * drawing.cell, echo.scalar(value), _OUT)


def _draw_panel(drawing: _Drawing, panel: _Panel) -> None:
    cell, label = drawing.cell, drawing.label
    left, top = panel.x + label, panel.y + 18 + cell
    room = int(drawing.panel_width / 6.0)
    title = panel.title if len(panel.title) <= room else panel.title[: room - 1] + "…"
    around = drawing.panel_width + 4
    drawing.box(panel.x - 2, panel.y - 4, around, drawing.panel_height + 8, _PAPER, line=_PAPER)
    drawing.text(panel.x, panel.y + 10, title, size=10, fill=_SOFT)
    drawing.parts.append(f"<g><title>{escape(panel.title)}</title>")
    for k, token in enumerate(drawing.tokens):
        if cell >= 10:
            words, size = echo.scalar(token)[:4], cell * 0.5
            middle = left + (k + 0.5) * cell
            drawing.text(middle, top - 4, words, size=size, fill=_SOFT, anchor="middle")
    for q, row in enumerate(panel.pattern):
        y = top + q * cell
        if cell >= 10:
            words = echo.scalar(drawing.tokens[q])[:5]
            drawing.text(left - 5, y + cell * 0.66, words, size=cell * 0.5, fill=_SOFT, anchor="end")
        for k, selected in enumerate(row):
            drawing.box(left + k * cell, y, cell, cell, _ON if selected else _PAPER)
    drawing.parts.append("</g>")
    for reads, gives in zip(panel.reads, panel.gives, strict=True):
        for k, value in enumerate(reads):
            y = top + drawing.side + 6
            drawing.cell_with(left + k * cell, y, cell, echo.scalar(value), _IN)
        for q, value in enumerate(gives):
            x = left + drawing.side + 6
            drawing.cell_with(x, top + q * cell, label, echo.scalar(value), _OUT)
    if panel.note:
        drawing.text(left, top + drawing.side + 6 + 2 * cell, panel.note, size=10, fill=_SOFT)


def _draw_flow(
    drawing: _Drawing, root: Node, columns: list[list[_Panel]], width: float, height: float
) -> None:
    """Lines from each head, and the input, to whatever reads it."""
    panels = [panel for column in columns for panel in column]
    by_head: dict[Node, list[_Panel]] = {node: [panel] for panel in panels for node in panel.closed}
    by_family = {node: [p for p in panels if node in p.open] for panel in panels for node in panel.open}
    middle = drawing.panel_height / 2 + 9
    begin = (_MARGIN + drawing.label * 0.5 + 2.2 * drawing.cell + 2, height / 2)
    end = (width - _MARGIN - 3.2 * drawing.cell - 2, height / 2)

    def connect(reader: Sequence[Node], owners: dict[Node, list[_Panel]], x: float, y: float) -> None:
        for source in _sources(reader, owners):
            start = begin if source is None else (source.x + drawing.panel_width, source.y + middle)
            drawing.curve(*start, x, y)

    for panel in panels:
        inputs = [i for node in panel.closed for i in node.inputs]
        connect(inputs, by_head, panel.x - 2, panel.y + middle)
    connect((root,), by_family, *end)


def _sources(roots: Sequence[Node], owners: dict[Node, list[_Panel]]) -> list[_Panel | None]:
    """The heads whose output is read below ``roots``, and None if the tokens themselves are.

    Positions are known in every layer, so reading ``indices`` draws no line.
    """
    found: dict[int, _Panel | None] = {}
    reached = [*roots]
    for node in postorder(*roots, into=lambda n: n not in owners):
        reached.extend(node.inputs)
    for node in reached:
        if node.op == "tokens":
            found[0] = None
        for panel in owners.get(node, ()):
            found[id(panel)] = panel
    return list(found.values())
