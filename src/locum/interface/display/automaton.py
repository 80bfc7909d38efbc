"""Draw a finite automaton as SVG, with states in columns by their distance from the start state."""

from __future__ import annotations

from locum.languages.automata import DFA
from locum.rasp.drawing.svg import Drawing

_RADIUS, _ACROSS, _DOWN, _MARGIN = 18.0, 120.0, 90.0, 22.0
#: Maximum number of states of a drawing.
MAX_DRAWN = 200


def automaton_svg(automaton: DFA, title: str) -> str:
    """Return a drawing of ``automaton`` as SVG.

    Unreachable states, and states from which no accepting state can be reached, are omitted, except the
    start state.
    """
    useful = automaton.useful() | {0}
    columns: list[list[int]] = [[0]]
    seen = {0}
    while columns[-1]:
        following = []
        for state in columns[-1]:
            for target in automaton.transitions[state]:
                if target in useful and target not in seen:
                    seen.add(target)
                    following.append(target)
        columns.append(following)
    columns.pop()
    tallest = max(map(len, columns))
    place = {
        state: (
            _MARGIN + _ACROSS * (column + 0.5),
            _MARGIN + _DOWN * (row + 0.5 + (tallest - len(states)) / 2),
        )
        for column, states in enumerate(columns)
        for row, state in enumerate(states)
    }
    drawing = Drawing()
    for state in place:
        arrows: dict[int, list[str]] = {}
        for letter, target in zip(automaton.alphabet, automaton.transitions[state], strict=True):
            if target in place:
                arrows.setdefault(target, []).append(letter)
        for target, letters in arrows.items():
            _arrow(drawing, place[state], place[target], ", ".join(letters))
    x, y = place[0]
    steps = f"M {x - 50:.1f} {y:.1f} L {x - _RADIUS:.1f} {y:.1f}" + _head(x - _RADIUS, y, 1, 0)
    drawing.path(steps, "arrow")
    for state, (x, y) in place.items():
        _circle(drawing, x, y, _RADIUS)
        if state in automaton.accepting:
            _circle(drawing, x, y, _RADIUS - 4)
        drawing.text(x, y + 4, str(state), size=13, at="middle")
    width = 2 * _MARGIN + _ACROSS * len(columns)
    return drawing.svg(width, 2 * _MARGIN + _DOWN * tallest, title)


def _circle(drawing: Drawing, x: float, y: float, radius: float) -> None:
    arc = f"a {radius} {radius} 0 1 0"
    drawing.path(f"M {x - radius:.1f} {y:.1f} {arc} {2 * radius} 0 {arc} {-2 * radius} 0", "arrow")


def _head(x: float, y: float, dx: float, dy: float) -> str:
    """Return the SVG path of an arrowhead that ends at (x, y).

    (dx, dy) is the direction of the arrow, a vector of length 1.
    """
    strokes = ""
    for side in (1, -1):
        bx, by = x - 8 * dx + side * 4 * -dy, y - 8 * dy + side * 4 * dx
        strokes += f" M {bx:.1f} {by:.1f} L {x:.1f} {y:.1f}"
    return strokes


def _arrow(
    drawing: Drawing, start: tuple[float, float], end: tuple[float, float], letters: str
) -> None:
    (x0, y0), (x1, y1) = start, end
    if start == end:
        top = y0 - _RADIUS
        drawing.path(
            f"M {x0 - 8:.1f} {top + 2:.1f} C {x0 - 22:.1f} {top - 30:.1f} {x0 + 22:.1f} {top - 30:.1f} "
            f"{x0 + 8:.1f} {top + 2:.1f}" + _head(x0 + 8, top + 2, -0.4, 0.92),
            "arrow",
        )
        drawing.text(x0, top - 26, letters, size=13, at="middle")
        return
    dx, dy = x1 - x0, y1 - y0
    size = (dx * dx + dy * dy) ** 0.5
    dx, dy = dx / size, dy / size
    bend = 26.0
    cx, cy = (x0 + x1) / 2 + bend * dy, (y0 + y1) / 2 - bend * dx
    ax, ay = x0 + _RADIUS * dx, y0 + _RADIUS * dy
    bx, by = x1 - _RADIUS * dx, y1 - _RADIUS * dy
    tx, ty = bx - cx, by - cy
    length = (tx * tx + ty * ty) ** 0.5
    drawing.path(
        f"M {ax:.1f} {ay:.1f} Q {cx:.1f} {cy:.1f} {bx:.1f} {by:.1f}"
        + _head(bx, by, tx / length, ty / length),
        "arrow",
    )
    drawing.text(
        (x0 + x1) / 2 + bend * 0.75 * dy,
        (y0 + y1) / 2 - bend * 0.75 * dx + 4,
        letters,
        size=13,
        at="middle",
    )
