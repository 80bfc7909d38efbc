"""Draw Figures 1 and 3 of the paper from the programs that they show.

The arrows of Figure 1 are derived from the program of U and its values. An arrow connects two steps if
the program of the second step contains the node of the first step. An arrow connects a matrix and a
step if changing the matrix changes the value of the step. Only direct connections are drawn.

>>> find_arrows()["scores"]
('XA', 'Xᵀ')
"""

from __future__ import annotations

from typing import Any

import numpy as np

from locum.graph import postorder
from locum.paper import listings
from locum.paper.checks import SQUARE
from locum.paper.figure2 import T, X
from locum.rasp.drawing.flow import flow_svg
from locum.rasp.drawing.svg import Drawing
from locum.simulators.layer_simulator import explain
from locum.simulators.modules.attention import Attention
from locum.simulators.universal import UniversalSimulator

#: The symbol of each step of U in the paper's figure, and the lemma about this step.
LEMMAS = {
    "XA": "⊗ Lemma matmul",
    "Xᵀ": "⊤ Lemma transposition",
    "scores": "⊗ Lemma matmul",
    "softmax": "σ Lemma softmax",
    "XV": "⊗ Lemma matmul",
    "output": "⊗ Lemma matmul",
}
#: Width and height of a box, and the horizontal and vertical distances between boxes, in pixels.
_WIDTH, _HEIGHT, _GAP, _RISE = 190.0, 104.0, 62.0, 26.0


def find_arrows() -> dict[str, tuple[str, ...]]:
    """Return the steps and matrices that each step of U reads directly."""
    simulator = UniversalSimulator(3, 3, 3, recipe="paper")
    nodes = {name: matrix.sop.node for name, matrix in simulator.each_step()}
    below = {
        name: {other for other in nodes if other != name and nodes[other] in set(postorder(node))}
        for name, node in nodes.items()
    }
    arrows = {}
    inputs = _find_inputs(simulator)
    for name, steps in below.items():
        direct = {step for step in steps if not any(step in below[other] for other in steps)}
        through = {matrix for step in steps for matrix in inputs[step]}
        own = [matrix for matrix in inputs[name] if matrix not in through]
        arrows[name] = (*own, *(step for step in nodes if step in direct))
    return arrows


def _find_inputs(simulator: UniversalSimulator) -> dict[str, list[str]]:
    """Return which of X, A and V change the value of each step of U."""
    changed = {
        "X": (T, X + 0.1),
        "A": (Attention(T.A + np.eye(3), T.V), X),
        "V": (Attention(T.A, T.V + np.eye(3)), X),
    }
    before = {step.name: step.matrix for step in explain(simulator, T, X)}
    found: dict[str, list[str]] = {name: [] for name in before}
    for matrix, (attention, rows) in changed.items():
        for step in explain(simulator, attention, rows):
            if not np.array_equal(step.matrix, before[step.name]):
                found[step.name].append(matrix)
    return found


def figure_1() -> str:
    """Draw Figure 1 as SVG: the steps of U on the matrices of Figure 2, connected as in the program."""
    simulator = UniversalSimulator(3, 3, 3, recipe="paper")
    arrows = find_arrows()
    values: dict[str, Any] = {"X": X, "A": T.A, "V": T.V}
    values |= {step.name: step.matrix for step in explain(simulator, T, X)}
    depth = dict.fromkeys("XAV", 0)
    for name, sources in arrows.items():
        depth[name] = 1 + max(depth[source] for source in sources)
    columns = [[name for name in values if depth[name] == d] for d in range(max(depth.values()) + 1)]
    tallest = max(map(len, columns))
    height = 54 + tallest * (_HEIGHT + _RISE)
    places = {}
    for number, column in enumerate(columns):
        top = 40 + (tallest - len(column)) * (_HEIGHT + _RISE) / 2
        for row, name in enumerate(column):
            places[name] = (16 + number * (_WIDTH + _GAP), top + row * (_HEIGHT + _RISE))
    drawing = Drawing()
    drawing.text(16, 22, "⟨T, X⟩", size=14)
    drawing.text(16 + _WIDTH + _GAP, 22, "U", size=16)
    for name, sources in arrows.items():
        x, y = places[name]
        for source in sources:
            left, top = places[source]
            y0, y1 = top + _HEIGHT / 2, y + _HEIGHT / 2
            turn = f"{x - 30:.0f} {y0:.0f} {x - 30:.0f} {y1:.0f} {x:.0f} {y1:.0f}"
            drawing.path(f"M{left + _WIDTH:.0f} {y0:.0f} H{x - _GAP:.0f} C{turn}")
    for name, (x, y) in places.items():
        kind = "in" if depth[name] == 0 else "out" if name == "output" else "off"
        drawing.box(x, y, _WIDTH, _HEIGHT, kind)
        title = "output T(X)" if name == "output" else f"{name} of T" if name in "AV" else name
        drawing.text(x + 10, y + 20, title, size=14)
        drawing.text(x + 10, y + 37, LEMMAS.get(name, "input"), "soft", size=11)
        for row, line in enumerate(values[name]):
            text = "  ".join(f"{value:6.3f}" for value in line)
            drawing.text(x + 10, y + 58 + 17 * row, text, size=12)
    width = 32 + len(columns) * _WIDTH + (len(columns) - 1) * _GAP
    return drawing.svg(width, height, "Figure 1: U(⟨T, X⟩) = T(X), on the matrices of Figure 2")


def figure_3() -> str:
    """Draw Figure 3 as SVG: the execution of T₋₁ on the matrix of its caption, layer by layer."""
    example = SQUARE.ravel().tolist()
    program = listings.program("inverse_corrected", example)
    return flow_svg(program.node, example, "A⁻¹")
