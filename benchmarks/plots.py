"""Draw the charts of benchmarks with Matplotlib: line charts and heat maps, as SVG."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

#: Numbers of the file that do not depend on the clock, and text that remains text.
_STYLE = {"svg.hashsalt": "locum", "svg.fonttype": "none", "font.size": 10}


def line_chart(
    title: str,
    x: Sequence[float],
    lines: Mapping[str, Sequence[float]],
    label: str,
    *,
    values: str,
    scales: str = "linear linear",
) -> str:
    """Return an SVG with one line for each name in ``lines``.

    ``label`` and ``values`` are the labels of the axes, with units. ``scales`` are the scales of the x
    axis and of the y axis.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 3.6), layout="constrained")
    axes = figure.subplots()
    for name, heights in lines.items():
        axes.plot(x, heights, marker="o", markersize=4, label=name)
    x_scale, y_scale = scales.split()
    axes.set(title=title, xlabel=label, ylabel=values, xscale=x_scale, yscale=y_scale)
    if y_scale == "linear":
        axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend()
    return _svg(figure)


def heat_maps(
    title: str,
    panels: Mapping[str, Sequence[Sequence[tuple[float, str]]]],
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    x: str,
    y: str,
) -> str:
    """Return an SVG with a heat map for each panel; all panels have the same rows and columns.

    A cell is a pair of a share between 0 and 1, which determines the shade, and a text.
    """
    from matplotlib.figure import Figure

    height = 0.3 * len(rows) + 0.5
    figure = Figure(figsize=(7, height * len(panels) + 0.6), layout="constrained")
    figure.suptitle(title)
    grid = figure.subplots(len(panels), squeeze=False, sharex=True)[:, 0]
    for axes, (name, cells) in zip(grid, panels.items(), strict=True):
        shares = [[share for share, _ in row] for row in cells]
        axes.imshow(shares, cmap="Blues", vmin=0, vmax=1.6, aspect="auto")
        axes.set(title=name, ylabel=y)
        axes.set_xticks(range(len(columns)), columns)
        axes.set_yticks(range(len(rows)), rows)
        for i, row in enumerate(cells):
            for j, (_, text) in enumerate(row):
                axes.text(j, i, text, ha="center", va="center", fontsize=9)
    grid[-1].set_xlabel(x)
    return _svg(figure)


def _svg(figure: Any) -> str:
    import matplotlib as mpl

    written = io.StringIO()
    with mpl.rc_context(_STYLE):
        figure.savefig(written, format="svg", metadata={"Date": None})
    return written.getvalue()
