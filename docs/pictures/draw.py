"""Draw every picture of the documents anew, by the code as it is: ``python docs/pictures/draw.py``.

The SVG files are compared with what this gives by a test. The screenshots of pages need Chromium.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

import locum
from locum.interface.display.network.page import network_page
from locum.rasp.drawing.flow import flow_svg

FOLDER = Path(__file__).parent
SANS = "ui-sans-serif, system-ui, 'Segoe UI', Helvetica, Arial, sans-serif"
MONO = "ui-monospace, SFMono-Regular, Menlo, Consolas, monospace"
#: Colours on light and on dark paper.
COLOURS = {
    "paper": ("#ffffff", "#0d1117"),
    "ink": ("#1c2530", "#e6edf3"),
    "soft": ("#57636f", "#9aa7b4"),
    "card": ("#f6f8fa", "#161c24"),
    "line": ("#cfd7df", "#34404d"),
    "X": ("#dbe9fb", "#1d3b63"),
    "A": ("#fbe6cf", "#5b3c17"),
    "V": ("#dcf0df", "#1f4a2b"),
    "Y": ("#e9dcf7", "#46306b"),
    "deep": ("#2563b8", "#6ea8fe"),
    "off": ("#eef2f6", "#232c37"),
}


# U: ⟨T, X⟩ → T(X) ---------------------------------------------------------------------------------


def matrices() -> tuple[Any, Any, Any]:
    """Return X, A and V of the picture: numbers of one digit behind the point."""
    chance = np.random.default_rng(17)
    X, A, V = (chance.uniform(-1.5, 1.5, shape).round(1) for shape in ((3, 2), (2, 2), (2, 2)))
    return X, A, V


def universal() -> str:
    """U(3, 2, 2) at work: its tokens, patterns of its heads and its answer are those of the weights."""
    X, A, V = matrices()
    U = locum.UniversalSimulator(3, 2, 2)
    T = locum.Attention(A, V)
    model = U.compile(feed_forward="exact")
    tokens = U.encode(T, X)
    answer, cache = model.run_with_cache(np.asarray(tokens, dtype=float).tolist())
    result = U.decode(answer)
    assert np.allclose(result, T(X), rtol=0, atol=1e-12)
    picture = Picture(1000, 420, "U, the universal simulator: ⟨T, X⟩ in, T(X) out")
    picture.card(20, 44, 150, 128)
    picture.text(32, 68, "X", size=19, weight=600)
    picture.text(52, 68, "the input")
    picture.matrix(52, 84, X, "X")
    picture.card(20, 190, 150, 206)
    picture.text(32, 214, "T", size=19, weight=600)
    picture.text(52, 214, "any attention")
    picture.matrix(52, 228, A, "A", "A")
    picture.matrix(52, 312, V, "V", "V")
    top, step = 66, 23.0
    picture.text(274, 44, "⟨T, X⟩ as tokens", anchor="middle")
    for (start, count, kind), (y, height) in zip(
        ((0, 6, "X"), (6, 4, "A"), (10, 4, "V")), ((84, 75), (228, 50), (312, 50)), strict=True
    ):
        picture.ribbon((142, y, height), (246, top + start * step, count * step), kind)
        for place in range(start, start + count):
            value = f"{float(tokens[place]):.1f}"
            picture.cell(246, top + place * step, 56, step, value, kind)
    picture.curve(308, top + 7 * step, 332, top + 7 * step)
    _inside(picture, cache, model.architecture.heads)
    picture.curve(806, top + 7 * step, 834, top + 7 * step)
    picture.text(846, 152, "T(X)", size=19, weight=600)
    picture.matrix(846, 168, np.asarray(result), "Y", width=64, digits=3)
    picture.text(846, 268, "= softmax(XAXᵀ) XV", size=13)
    picture.text(846, 290, "and so for every T", size=12, kind="soft")
    picture.text(846, 307, "and X of this size", size=12, kind="soft")
    return picture.svg()


def _inside(picture: Picture, cache: Any, heads: tuple[int, ...]) -> None:
    """U itself: two heads of each layer on this very input."""
    picture.card(338, 24, 462, 372, kind="deep")
    picture.text(356, 56, "U", size=26, weight=700)
    picture.text(388, 54, "one transformer for every T: nothing in it is learned,", size=13)
    picture.text(388, 71, "and no weight of it depends on T or X", size=13)
    steps = ("X A", "exponentials, X V", "their quotient")
    for layer, (count, what) in enumerate(zip(heads, steps, strict=True)):
        x = 362 + 148 * layer
        picture.text(x, 104, f"layer {layer}", size=13, weight=600)
        picture.text(x, 121, what, size=12, kind="soft")
        for row, head in enumerate((0, count - 1)):
            picture.pattern(x, 132 + 122 * row, cache["pattern", layer][0][head], 8.0)
        picture.text(x, 386, f"{count} heads, 2 shown", size=11, kind="soft")
        if layer < 2:
            picture.curve(x + 118, 249, x + 142, 249)


# The house ----------------------------------------------------------------------------------------


def dataflow() -> str:
    """How a program flows through the package."""
    picture = Picture(1000, 380, "How a program flows through Locum")
    boxes = {
        "text": (20, 40, "RASP text", "files, REPL, listings", "A"),
        "python": (20, 138, "Python", "s-ops as objects", "A"),
        "paper": (20, 236, "constructions, U", "the paper's matrices and lemmas", "A"),
        "dense": (640, 16, "execution", "dense (the meaning), fast, heads, exact", "V"),
        "compiler": (640, 106, "compiler → transformer", "weights, folders, torch, ONNX, lens", "V"),
        "prover": (640, 196, "verification", "proofs for all inputs, certificates", "V"),
        "display": (640, 286, "analysis, display", "layers and heads, pictures, pages", "V"),
    }
    for x, y, title, about, kind in boxes.values():
        width = 250 if x < 300 else 340
        picture.card(x, y, width, 72, kind=kind)
        picture.text(x + width / 2, y + 32, title, anchor="middle", size=15, weight=600)
        picture.text(x + width / 2, y + 53, about, anchor="middle", size=12, kind="soft")
    picture.card(370, 96, 190, 160, kind="X")
    picture.text(465, 130, "graph", anchor="middle", size=18, weight=600)
    about = "one interned node,|one table of operations,|families of heads;|JSON, hash, printing"
    for row, line in enumerate(about.split("|")):
        picture.text(465, 156 + 20 * row, line, anchor="middle", size=12, kind="soft")
    for name in ("text", "python", "paper"):
        picture.curve(270, boxes[name][1] + 36, 366, 176)
    for name in ("dense", "compiler", "prover", "display"):
        picture.curve(560, 176, 636, boxes[name][1] + 36)
    return picture.svg()


class Picture:
    """An SVG with cards, matrices and patterns, for light and dark pages."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self.size, self.title = (width, height), title
        self.parts: list[str] = []

    def text(self, x: float, y: float, words: str, *, kind: str = "ink", **style: Any) -> None:
        """Write words; ``style`` may say size, weight, anchor and family."""
        given = {"size": 14, "weight": 400} | style
        settings = "".join(
            f' {"text" if name == "anchor" else "font"}-{name}="{value}"'
            for name, value in given.items()
        )
        self.parts.append(f'<text x="{x:g}" y="{y:g}" class="{kind}"{settings}>{escape(words)}</text>')

    def box(self, x: float, y: float, width: float, height: float, kind: str, more: str = "") -> None:
        """Draw a rectangle."""
        self.parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" class="{kind}"{more}/>'
        )

    def card(self, x: float, y: float, width: float, height: float, *, kind: str = "card") -> None:
        """Draw a card; that of U has an edge of its own."""
        classes = "card edge" if kind == "deep" else f"{kind} line"
        self.box(x, y, width, height, classes, ' rx="10"')

    def cell(self, x: float, y: float, width: float, height: float, words: str, kind: str) -> None:
        """Draw a number in its cell."""
        self.box(x, y, width, height, f"{kind} gap")
        middle = (x + width / 2, y + height / 2 + 4.5)
        self.text(*middle, words.replace("-", "−"), size=13, anchor="middle", family=MONO)

    def matrix(self, x: float, y: float, numbers: Any, kind: str, name: str = "", **form: Any) -> None:
        """Draw a matrix with its name on the left; ``form`` may say width and digits."""
        width, digits = form.get("width", 45), form.get("digits", 1)
        if name:
            self.text(x - 8, y + 12.5 * len(numbers) + 5, name, anchor="end", weight=600)
        for i, row in enumerate(numbers):
            for j, number in enumerate(row):
                self.cell(x + width * j, y + 25 * i, width, 25, f"{number:.{digits}f}", kind)

    def pattern(self, x: float, y: float, weights: Any, cell: float) -> None:
        """Draw what a head attends to: a row for each query."""
        side = cell * len(weights)
        self.box(x, y, side, side, "off")
        for i, row in enumerate(weights):
            for j, weight in enumerate(row):
                if weight > 0.5:
                    self.box(x + cell * j, y + cell * i, cell, cell, "dot")
        places = [cell * n for n in range(1, len(weights))]
        lines = "".join(f"M{x + p:g},{y:g}v{side:g}M{x:g},{y + p:g}h{side:g}" for p in places)
        self.parts.append(f'<path d="{lines}" class="mesh"/>')

    def ribbon(self, left: tuple[float, ...], right: tuple[float, ...], kind: str) -> None:
        """Draw a band between two edges, each (x, y, height)."""
        (x0, y0, h0), (x1, y1, h1) = left, right
        bend = (x0 + x1) / 2
        above = f"M{x0:g},{y0:g} C{bend:g},{y0:g} {bend:g},{y1:g} {x1:g},{y1:g}"
        below = f"C{bend:g},{y1 + h1:g} {bend:g},{y0 + h0:g} {x0:g},{y0 + h0:g}"
        steps = f"{above} L{x1:g},{y1 + h1:g} {below} Z"
        self.parts.append(f'<path d="{steps}" class="{kind}" opacity="0.55"/>')

    def curve(self, x0: float, y0: float, x1: float, y1: float) -> None:
        """Draw an arrow."""
        bend = (x0 + x1) / 2
        steps = f"M{x0:g},{y0:g} C{bend:g},{y0:g} {bend:g},{y1:g} {x1:g},{y1:g}"
        self.parts.append(f'<path d="{steps}" class="stroke" marker-end="url(#tip)"/>')

    def svg(self) -> str:
        """Return the text of the file."""
        width, height = self.size
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" style="max-width:100%;height:auto" '
            f'font-family="{SANS}">'
        )
        tip = (
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="7" '
            'markerHeight="7" orient="auto"><path d="M0,0 L8,4 L0,8 z" class="soft"/></marker></defs>'
        )
        style = f"<style>{_rules(0)}@media (prefers-color-scheme: dark){{{_rules(1)}}}</style>"
        paper = '<rect width="100%" height="100%" class="paper"/>'
        title = f"<title>{escape(self.title)}</title>"
        return "\n".join([head, title, style, paper, tip, *self.parts, "</svg>\n"])


def _rules(place: int) -> str:
    colour = {name: pair[place] for name, pair in COLOURS.items()}
    strokes = {
        "line": f"stroke:{colour.pop('line')}",
        "gap": f"stroke:{colour['paper']};stroke-width:1.5",
        "mesh": f"stroke:{colour['card']};stroke-width:1",
        "edge": f"stroke:{colour['deep']};stroke-width:2.5",
        "dot": f"fill:{colour['deep']}",
        "stroke": f"stroke:{colour['soft']};stroke-width:1.8;fill:none",
    }
    fills = {name: f"fill:{value}" for name, value in colour.items()}
    return "".join(f".{name}{{{rule}}}" for name, rule in (fills | strokes).items())


# Programs and pages -------------------------------------------------------------------------------


def sort() -> str:
    """Make the picture that ``locum run --draw`` makes of sorting."""
    tokens, indices = locum.tokens, locum.indices
    earlier = locum.select(tokens, tokens, "==") & locum.select(indices, indices, "<")
    rank = locum.selector_width(locum.select(tokens, tokens, "<") | earlier)
    ordered = locum.aggregate(locum.select(rank, indices, "=="), tokens)
    return flow_svg(ordered.node, "hello", "sort", {rank.node: "rank"})


def pages() -> dict[str, str]:
    """List the pages of which there are screenshots."""
    flip = locum.select(locum.indices, locum.length - 1 - locum.indices, "==")
    reverse = locum.aggregate(flip, locum.tokens)
    names = {flip.node: "flip", reverse.node: "reverse"}
    model = locum.compile(reverse, length=8, vocabulary="abcd", name="reverse", names=names)
    chance = np.random.default_rng(3)
    X, A, V = chance.uniform(-1.5, 1.5, (3, 2, 2)).round(1)
    U = locum.UniversalSimulator(2, 2, 2)
    tokens = np.asarray(U.encode(locum.Attention(A, V), X), dtype=float).tolist()
    return {
        "network_reverse": network_page(model, ["abcd"]),
        "network_u222": network_page(U.compile("fetch", feed_forward="exact"), [tokens]),
    }


SVG = {"universal": universal, "dataflow": dataflow, "sort": sort}
#: The size of each screenshot.
SIZES = {"network_reverse": "1280,1610", "network_u222": "1400,2400"}
#: Screenshots of what ``locum playground`` serves, each with its size.
SERVED = {"playground": "1400,620"}


def main() -> None:
    """Write all pictures."""
    for name, draw in SVG.items():
        (FOLDER / f"{name}.svg").write_text(draw(), encoding="utf-8")
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        raise SystemExit("no chromium: the screenshots of pages are left as they are")
    for name, text in pages().items():
        with tempfile.TemporaryDirectory() as folder:
            page = Path(folder, "page.html")
            page.write_text(text, encoding="utf-8")
            shoot(browser, name, SIZES[name], f"file://{page}")
    for name, size in SERVED.items():
        server = subprocess.Popen(
            [sys.executable, "-m", "locum", "playground", "--port", "8017", "--json"],
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert server.stdout is not None
            shoot(browser, name, size, json.loads(server.stdout.readline())["address"])
        finally:
            server.terminate()


def shoot(browser: str, name: str, size: str, address: str) -> None:
    """Take a screenshot of a page when it has settled."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [
                *(browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
                *(f"--user-data-dir={folder}/profile", f"--window-size={size}"),
                *("--virtual-time-budget=8000", f"--screenshot={FOLDER / f'{name}.png'}", address),
            ],
            check=True,
            capture_output=True,
        )


if __name__ == "__main__":
    main()
