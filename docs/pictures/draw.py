"""Draw the figures in the folder of this file: ``python docs/pictures/draw.py``.

A test compares the SVG files with this code. The screenshot of the playground requires Chromium.
``python docs/pictures/draw.py --svg`` draws only the SVG files. Scripts in ``benchmarks/`` draw the
figures in subfolders, except ``learning/``.
"""

from __future__ import annotations

import itertools
import json
import re
import shutil
import subprocess
import sys
import tempfile
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

import locum
from locum.experiments.circuits import check_circuit
from locum.rasp.drawing.svg import MONO, SANS
from locum.rasp.programs import EVERYDAY, load_everyday

FOLDER = Path(__file__).parent
#: Colours on light and on dark pages.
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
    """Return X, A and V of the figures of U: numbers with one decimal digit."""
    chance = np.random.default_rng(17)
    X, A, V = (chance.uniform(-1.5, 1.5, shape).round(1) for shape in ((3, 2), (2, 2), (2, 2)))
    return X, A, V


def universal() -> str:
    """Draw U(3, 2, 2): its tokens, and the attention patterns and output that its weights compute."""
    X, A, V = matrices()
    U = locum.UniversalSimulator(3, 2, 2)
    T = locum.Attention(A, V)
    model = U.compile(feed_forward="exact")
    tokens = U.encode(T, X)
    answer, cache = model.run_with_cache(np.asarray(tokens, dtype=float).tolist())
    result = U.decode(answer)
    assert np.allclose(result, T(X), rtol=0, atol=1e-12)
    picture = Picture(640, 560, "U, the universal simulator: the input is ⟨T, X⟩, the output is T(X)")
    picture.card(20, 14, 220, 132)
    picture.text(34, 40, "X", size=19, weight=600)
    picture.text(56, 40, "the input")
    picture.matrix(80, 56, X, "X", width=52)
    picture.card(260, 14, 360, 132)
    picture.text(274, 40, "T", size=19, weight=600)
    picture.text(296, 40, "any attention layer, given by A and V")
    picture.matrix(306, 72, A, "A", "A", width=52)
    picture.matrix(480, 72, V, "V", "V", width=52)
    top, step = 188, 41.0
    for (start, count, kind), (x, y) in zip(
        ((0, 6, "X"), (6, 4, "A"), (10, 4, "V")), ((80, 131), (306, 122), (480, 122)), strict=True
    ):
        picture.ribbon((x, y, 104), (33 + start * step, top, count * step), kind)
        for place in range(start, start + count):
            value = f"{float(tokens[place]):.1f}"
            picture.cell(33 + place * step, top, step, 28, value, kind)
    picture.text(33, 234, "⟨T, X⟩ as tokens", size=13, kind="soft")
    picture.drop(230, 222, 252)
    _inside(picture, cache, model.architecture.heads)
    picture.curve(464, 410, 492, 410)
    picture.text(498, 366, "T(X)", size=19, weight=600)
    picture.matrix(498, 378, np.asarray(result), "Y", width=62, digits=3)
    picture.text(498, 480, "softmax(XAXᵀ) XV")
    picture.text(498, 502, "for every T and X", size=13, kind="soft")
    picture.text(498, 520, "of this size", size=13, kind="soft")
    return picture.svg()


def _inside(picture: Picture, cache: Any, heads: tuple[int, ...]) -> None:
    """Draw U: two heads of each layer on the input of the figure."""
    picture.card(20, 258, 440, 288, kind="deep")
    picture.text(36, 292, "U", size=26, weight=700)
    picture.text(66, 282, "one transformer for every T: it is not trained,")
    picture.text(66, 300, "and no weight depends on T or X")
    steps = ("X A", "exponentials, X V", "divide, times X V")
    for layer, (count, what) in enumerate(zip(heads, steps, strict=True)):
        x = 36 + 144 * layer
        picture.text(x, 328, f"layer {layer}", weight=600)
        picture.text(x, 346, what, size=13, kind="soft")
        for row, head in enumerate((0, count - 1)):
            picture.pattern(x, 356 + 84 * row, cache["pattern", layer][0][head], 5.6)
        picture.text(x, 536, f"{count} heads, 2 shown", size=13, kind="soft")
        if layer < 2:
            picture.curve(x + 92, 438, x + 132, 438)


# Diagrams ------------------------------------------------------------------------------------------


def dataflow() -> str:
    """Draw how a program becomes results, weights and proofs."""
    picture = Picture(640, 420, "From a program to results, weights and proofs")
    boxes = (
        (20, 16, 190, "RASP text", "files, REPL, listings", "A"),
        (225, 16, 190, "Python", "s-ops as objects", "A"),
        (430, 16, 190, "constructions, U", "lemmas of the paper", "A"),
        (20, 240, 266, "execution", "fast, dense or head by head", "V"),
        (354, 240, 266, "compiler", "PyTorch, TransformerLens", "V"),
        (20, 332, 266, "verification", "proofs for all inputs", "V"),
        (354, 332, 266, "analysis", "layers, heads, figures", "V"),
    )
    for x, y, width, title, about, kind in boxes:
        picture.card(x, y, width, 72, kind=kind)
        picture.text(x + width / 2, y + 32, title, anchor="middle", size=16, weight=600)
        picture.text(x + width / 2, y + 54, about, anchor="middle", kind="soft")
    picture.card(170, 122, 300, 84, kind="X")
    picture.text(320, 154, "graph", anchor="middle", size=18, weight=600)
    picture.text(320, 180, "equal programs are one object", anchor="middle", kind="soft")
    for x in (115, 320, 525):
        picture.bend(x, 88, 320 + (x - 320) / 2, 120)
    for y in (276, 368):
        picture.turn(320, 206, 290, y)
        picture.turn(320, 206, 350, y)
    return picture.svg()


def host_and_u() -> str:
    """Draw which parts of a PyTorch model run on U and which on the host."""
    picture = Picture(640, 440, "Where the parts of a PyTorch model run")
    boxes = (
        (20, 24, 190, "PyTorch model", "your code, unchanged", "card"),
        (20, 140, 190, "torch.compile", "captures one graph", "card"),
        (20, 256, 190, "Locum", "graph to RASP program", "card"),
    )
    for x, y, width, title, about, kind in boxes:
        picture.card(x, y, width, 72, kind=kind)
        picture.text(x + width / 2, y + 32, title, anchor="middle", size=16, weight=600)
        picture.text(x + width / 2, y + 54, about, anchor="middle", size=13, kind="soft")
    picture.drop(115, 96, 138)
    picture.drop(115, 212, 254)
    for y, title, lines, kind in (
        (
            24,
            "on U",
            (
                "matrix products, attention",
                "norms, activations, losses",
                "backward passes",
                "weights and inputs: tokens",
            ),
            "A",
        ),
        (
            236,
            "on the host (PyTorch)",
            ("masks and position ids", "random numbers", "optimisers", "code outside of the model"),
            "V",
        ),
    ):
        picture.card(310, y, 310, 180, kind=kind)
        picture.text(330, y + 34, title, size=17, weight=600)
        for row, line in enumerate(lines):
            picture.text(330, y + 66 + 28 * row, line, size=15)
    picture.curve(210, 292, 306, 130)
    picture.curve(210, 292, 306, 326)
    picture.text(20, 380, "locum.torch.report(model) lists", size=14, kind="soft")
    picture.text(20, 402, "what ran on U.", size=14, kind="soft")
    return picture.svg()


def trust() -> str:
    """Draw what each level of verification assures."""
    rows = (
        ("tests", "sampled inputs", "floats", "make test"),
        ("certified error", "given numbers", "floats, with a bound", "locum simulate --certify"),
        ("proof", "all inputs of one shape", "real numbers", "locum prove claim"),
        ("theorem in Coq", "all shapes, all inputs", "real numbers", "make coq"),
    )
    picture = Picture(640, 400, "What each level of verification assures")
    for row, (title, scope, numbers, command) in enumerate(rows):
        width, y = 330 + 90 * row, 24 + 92 * row
        picture.card(20, y, width, 78, kind="AXVY"[row])
        picture.text(36, y + 30, title, size=17, weight=600)
        picture.text(36, y + 56, f"{scope}; {numbers}", size=14)
        picture.text(width + 6, y + 30, command, anchor="end", size=13, family=MONO)
    return picture.svg()


def steps_of_u() -> str:
    """Draw five steps that U(3, 2, 2) computes, on the numbers of the first figure."""
    X, A, V = matrices()
    T = locum.Attention(A, V)
    explained = locum.UniversalSimulator(3, 2, 2).explain(T, X)
    names = {
        "XA": "X A",
        "scores": "scores X A Xᵀ",
        "softmax": "softmax of rows",
        "XV": "X V",
        "output": "output T(X)",
    }
    found = {step.name: np.asarray(step.matrix) for step in explained.steps if step.name in names}
    assert found.keys() == names.keys()
    assert np.allclose(found["output"], T(X))
    picture = Picture(640, 400, "The steps of U on one input")
    for x, name, numbers in ((52, "X", X), (242, "A", A), (432, "V", V)):
        picture.text(x, 36, name, size=17, weight=600)
        picture.matrix(x, 48, numbers, name, width=58)
    places = {
        "XA": (52, 180),
        "scores": (242, 180),
        "XV": (452, 180),
        "softmax": (52, 308),
        "output": (452, 308),
    }
    for name, (x, y) in places.items():
        picture.text(x, y - 12, names[name], size=15, weight=600)
        picture.matrix(x, y, found[name], "Y" if name == "output" else "off", width=58, digits=2)
    picture.text(340, 334, "times X V", size=15, anchor="middle")
    picture.curve(236, 346, 444, 346)
    return picture.svg()


# Programs ------------------------------------------------------------------------------------------


def reverse() -> str:
    """Draw the compiled network of reverse on "abcd": heads, feed-forward and output."""
    model = _reverse()
    answer, cache = model.run_with_cache("abcd")
    assert answer == list("dcba")
    picture = Picture(640, 250, "The compiled network of reverse, on abcd")
    heads = [cache["pattern", layer][0][0] for layer in range(2)]
    for place, token in enumerate("abcd"):
        picture.cell(20, 78 + 30 * place, 36, 30, token, "X")
    picture.text(20, 64, "input", size=15, weight=600)
    about = ("head 0.0: uniform", "head 1.0: key 3 − i")
    for layer, (x, weights) in enumerate(zip((92, 396), heads, strict=True)):
        picture.text(x, 32, f"layer {layer}", size=16, weight=600)
        picture.text(x, 228, about[layer])
        picture.grid(x + 28, 78, weights, list("abcd"), list("abcd"), 30)
    picture.card(274, 84, 88, 108, kind="A")
    picture.text(318, 116, "MLP", size=16, weight=600, anchor="middle")
    picture.text(318, 142, "1/length", anchor="middle")
    picture.text(318, 164, "→ length", anchor="middle")
    picture.text(578, 64, "output", size=15, weight=600)
    for place, token in enumerate(answer):
        picture.cell(582, 78 + 30 * place, 36, 30, token, "Y")
    for left, right in ((60, 92), (244, 270), (366, 396), (548, 578)):
        picture.curve(left, 138, right, 138)
    return picture.svg()


def tutorial() -> str:
    """Draw the selectors of the tutorial on "hello": rows are queries, columns are keys."""
    tokens, indices, length = locum.tokens, locum.indices, locum.length
    selectors = {
        "previous": locum.select(indices, indices - 1, "=="),
        "up_to_here": locum.select(indices, indices, "<="),
        "flip": locum.select(indices, length - 1 - indices, "=="),
        "smaller": locum.select(tokens, tokens, "<"),
    }
    picture = Picture(560, 590, "Four selectors on hello: rows are queries, columns are keys")
    for number, (name, selector) in enumerate(selectors.items()):
        x, y = 76 + 274 * (number % 2), 84 + 286 * (number // 2)
        picture.text(x, y - 52, name, size=17, weight=600)
        picture.text(x + 90, y - 28, "key", anchor="middle", kind="soft")
        picture.text(x - 26, y - 8, "query", anchor="middle", kind="soft")
        weights = np.asarray(selector("hello"), dtype=float)
        picture.grid(x, y, weights, list("hello"), list("hello"), 36)
    return picture.svg()


def ablation() -> str:
    """Draw the circuit of the induction program, and its wrong answers without each part."""
    tokens, indices = locum.tokens, locum.indices
    previous = locum.select(indices, indices - 1, "==").named("previous")
    before = locum.aggregate(previous, tokens, "?").named("before")
    matches = locum.select(before, tokens, "==") & locum.select(indices, indices, "<")
    last = locum.best(matches, indices).named("last match")
    induction = locum.aggregate(last, tokens, "?")
    options: dict[str, Any] = {
        "length": 5,
        "vocabulary": "abc",
        "attention": "softmax",
        "reuse_slots": False,
    }
    model = locum.compile(induction, names={induction: "induction"}, **options)
    words = [list(word) for word in itertools.product("abc", repeat=4)]
    right = [induction(word) for word in words]
    parts = {
        "head 0.0": "blocks.0.attn",
        "MLP 0": "blocks.0.mlp",
        "head 1.0": "blocks.1.attn",
        "nothing": None,
    }
    broken = {}
    for name, part in parts.items():
        answers = model(words) if part is None else model.ablate(words, part)
        pairs = [
            pair for one, two in zip(answers, right, strict=True) for pair in zip(one, two, strict=True)
        ]
        asked = [(found, wanted) for found, wanted in pairs if wanted != "?"]
        broken[name] = sum(found != wanted for found, wanted in asked) / len(asked)
    assert broken["nothing"] == 0
    assert broken["head 0.0"] > 0.9
    circuit = check_circuit(model).draw(narrow=True)
    # The label of the MLP is the product of a table with itself, which is long.
    label = r"<text([^>]*)>\(\{[^<]*</text>\n<text[^>]*>[^<]*</text>"
    circuit, found = re.subn(label, r"<text\1>square of the code of before</text>", circuit)
    assert found == 1
    width, height = (float(number) for number in re.findall(r"viewBox='0 0 (\S+) (\S+)'", circuit)[0])
    picture = Picture(
        480, int(height) + 250, "The circuit of the induction program, and ablations of its parts"
    )
    picture.text(20, 30, "Circuit of the induction program", size=16, weight=600)
    picture.parts.append(_nested(circuit, (480 - width) / 2, 44))
    top = height + 82
    picture.text(20, top, "Wrong answers without one part (%)", size=16, weight=600)
    for row, (name, share) in enumerate(broken.items()):
        y = top + 18 + 32 * row
        picture.text(96, y + 18, name, size=14, anchor="end")
        picture.box(104, y, 300, 24, "off")
        picture.box(104, y, 300 * share, 24, "dot")
        picture.text(412, y + 18, f"{100 * share:.0f} %", size=14)
    return picture.svg()


def _nested(svg: str, x: float, y: float) -> str:
    """Return a figure for use inside of another one; its classes get a prefix."""
    head, _, rest = svg.partition(">")
    rest = re.sub(
        r"class=(['\"])(.*?)\1",
        lambda m: 'class="' + " ".join(f"c-{c}" for c in m[2].split()) + '"',
        rest,
    )
    style = re.search(r"<style>(.*?)</style>", rest, re.DOTALL)
    assert style is not None
    rest = rest.replace(style[1], re.sub(r"\.([a-z][\w-]*)(?=[^}]*\{)", r".c-\1", style[1]))
    rest = re.sub(r"<title>.*?</title>", "", rest, count=1)
    placed = head.replace("<svg", f'<svg x="{x:g}" y="{y:g}"', 1)
    return f"{placed}>{rest}"


def architectures() -> str:
    """Draw the sizes of compiled networks: a row for each program, a column for each layer."""
    rows = {}
    for name, vocabulary in EVERYDAY.items():
        program = load_everyday(name).program
        model = locum.compile(program, length=6, vocabulary=vocabulary, attention="softmax")
        rows[name.replace("_", " ")] = [
            (
                len(layer.attention.kinds) if layer.attention else 0,
                layer.feed_forward.W_out.shape[0] if layer.feed_forward else 0,
            )
            for layer in model.weights.layers
        ]
    deepest = max(map(len, rows.values()))
    title = "Heads and hidden units by layer, for inputs of length 6"
    picture = Picture(152 + 78 * deepest + 12, 104 + 36 * len(rows), title)
    picture.text(20, 30, title, size=16, weight=600)
    picture.box(20, 44, 10, 10, "dot")
    picture.text(36, 54, "attention head", kind="soft")
    picture.text(160, 54, "13", kind="soft", family=MONO)
    picture.text(184, 54, "hidden units of the MLP", kind="soft")
    for layer in range(deepest):
        picture.text(152 + 78 * layer, 84, f"layer {layer}", kind="soft")
    for number, (name, layers) in enumerate(rows.items()):
        y = 94 + 36 * number
        picture.text(138, y + 20, name, anchor="end")
        for layer, (heads, units) in enumerate(layers):
            x = 152 + 78 * layer
            picture.box(x - 4, y, 72, 30, "card line")
            for head in range(heads):
                picture.box(x + 4 + 13 * (head % 2), y + 4 + 12 * (head // 2), 10, 10, "dot")
            if units:
                picture.text(x + 62, y + 20, str(units), anchor="end", family=MONO)
    return picture.svg()


class Picture:
    """An SVG with cards, matrices and patterns, for light and dark pages."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self.size, self.title = (width, height), title
        self.parts: list[str] = []

    def text(self, x: float, y: float, words: str, *, kind: str = "ink", **style: Any) -> None:
        """Write words; ``style`` may have size, weight, anchor and family."""
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
        """Draw a card; the card of U has a thick edge."""
        classes = "card edge" if kind == "deep" else f"{kind} line"
        self.box(x, y, width, height, classes, ' rx="10"')

    def cell(self, x: float, y: float, width: float, height: float, words: str, kind: str) -> None:
        """Draw a cell with a number or a word."""
        self.box(x, y, width, height, f"{kind} gap")
        middle = (x + width / 2, y + height / 2 + 4.5)
        self.text(*middle, words.replace("-", "−"), size=13, anchor="middle", family=MONO)

    def matrix(self, x: float, y: float, numbers: Any, kind: str, name: str = "", **form: Any) -> None:
        """Draw a matrix with its name on the left; ``form`` may have width and digits."""
        width, digits = form.get("width", 45), form.get("digits", 1)
        if name:
            self.text(x - 8, y + 12.5 * len(numbers) + 5, name, anchor="end", weight=600)
        for i, row in enumerate(numbers):
            for j, number in enumerate(row):
                self.cell(x + width * j, y + 25 * i, width, 25, f"{number:.{digits}f}", kind)

    def pattern(self, x: float, y: float, weights: Any, cell: float) -> None:
        """Draw an attention pattern: a row for each query."""
        side = cell * len(weights)
        self.box(x, y, side, side, "off")
        for i, row in enumerate(weights):
            for j, weight in enumerate(row):
                if weight > 0.5:
                    self.box(x + cell * j, y + cell * i, cell, cell, "dot")
        places = [cell * n for n in range(1, len(weights))]
        lines = "".join(f"M{x + p:g},{y:g}v{side:g}M{x:g},{y + p:g}h{side:g}" for p in places)
        self.parts.append(f'<path d="{lines}" class="mesh"/>')

    def grid(
        self, x: float, y: float, weights: Any, queries: list[str], keys: list[str], cell: float
    ) -> None:
        """Draw an attention pattern with the tokens at its axes."""
        for place, key in enumerate(keys):
            size = 11 if len(key) > 1 else 15
            self.text(
                x + cell * (place + 0.5),
                y - 8,
                key,
                size=size,
                anchor="middle",
                kind="soft",
                family=MONO,
            )
        for row, query in enumerate(queries):
            self.text(
                x - 14,
                y + cell * (row + 0.65),
                query,
                size=15,
                anchor="middle",
                kind="soft",
                family=MONO,
            )
            for column, weight in enumerate(weights[row]):
                left, top = x + cell * column, y + cell * row
                self.box(left, top, cell, cell, "off gap")
                if weight > 0.005:
                    self.box(left, top, cell, cell, "dot gap", f' fill-opacity="{float(weight):.2f}"')

    def bend(self, x0: float, y0: float, x1: float, y1: float) -> None:
        """Draw an arrow that starts and ends downwards."""
        middle = (y0 + y1) / 2
        steps = f"M{x0:g},{y0:g} C{x0:g},{middle:g} {x1:g},{middle:g} {x1:g},{y1:g}"
        self.parts.append(f'<path d="{steps}" class="stroke" marker-end="url(#tip)"/>')

    def turn(self, x0: float, y0: float, x1: float, y1: float) -> None:
        """Draw an arrow that starts downwards and ends horizontally."""
        steps = f"M{x0:g},{y0:g} V{y1 - 12:g} Q{x0:g},{y1:g} {x1:g},{y1:g}"
        self.parts.append(f'<path d="{steps}" class="stroke" marker-end="url(#tip)"/>')

    def drop(self, x: float, y0: float, y1: float) -> None:
        """Draw an arrow downwards."""
        self.parts.append(f'<path d="M{x:g},{y0:g} V{y1:g}" class="stroke" marker-end="url(#tip)"/>')

    def ribbon(self, above: tuple[float, ...], below: tuple[float, ...], kind: str) -> None:
        """Draw a band between two horizontal edges, each (x, y, width)."""
        (x0, y0, w0), (x1, y1, w1) = above, below
        bend = (y0 + y1) / 2
        left = f"M{x0:g},{y0:g} C{x0:g},{bend:g} {x1:g},{bend:g} {x1:g},{y1:g}"
        right = f"C{x1 + w1:g},{bend:g} {x0 + w0:g},{bend:g} {x0 + w0:g},{y0:g}"
        steps = f"{left} L{x1 + w1:g},{y1:g} {right} Z"
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
    """Draw how sort moves the tokens of "hello": by rank, the number of tokens that come before."""
    tokens, indices = locum.tokens, locum.indices
    earlier = locum.select(tokens, tokens, "==") & locum.select(indices, indices, "<")
    before = locum.select(tokens, tokens, "<") | earlier
    rank = locum.selector_width(before)
    move = locum.select(rank, indices, "==")
    ordered = locum.aggregate(move, tokens)
    word = list("hello")
    ranks, answer = [str(value) for value in rank(word)], ordered(word)
    assert answer == list("ehllo")
    picture = Picture(
        640, 300, "Sort on hello: count the tokens that come before, then move each token"
    )
    columns = ((20, "tokens", word, "X"), (294, "rank", ranks, "A"), (584, "sorted", answer, "Y"))
    for x, name, values, kind in columns:
        picture.text(x + 18, 78, name, size=15, weight=600, anchor="middle")
        for place, value in enumerate(values):
            picture.cell(x, 90 + 30 * place, 36, 30, value, kind)
    patterns = (
        (92, "layer 0: comes before", before, word),
        (372, "layer 1: rank = position", move, list("01234")),
    )
    for x, name, selector, queries in patterns:
        picture.text(x, 32, name, size=15, weight=600)
        picture.grid(x + 20, 90, np.asarray(selector(word), dtype=float), queries, word, 30)
    for left, right in ((60, 84), (266, 290), (334, 366), (546, 580)):
        picture.curve(left, 165, right, 165)
    picture.text(92, 284, "rank: the number of selected keys of a query", kind="soft")
    return picture.svg()


def circuit_longest_run() -> str:
    """Draw the circuit of a program that computes the length of the longest run of equal tokens."""
    tokens, indices = locum.tokens, locum.indices
    before = locum.select(indices, indices - 1, "==")
    previous = locum.aggregate(before, tokens, "?")
    starts = tokens != previous
    last = locum.best(locum.select(starts, True, "==") & locum.select(indices, indices, "<="), indices)
    begin = locum.aggregate(last, indices)
    run = indices - begin + 1
    longest = locum.aggregate(locum.best(locum.full, run), run)
    names = {before: "before", previous: "previous", starts: "starts", last: "last start"}
    names |= {begin: "begin", run: "run", longest: "longest run"}
    options: dict[str, Any] = {
        "length": 4,
        "vocabulary": "abc",
        "attention": "softmax",
        "reuse_slots": False,
    }
    return check_circuit(locum.compile(longest, names=names, **options)).draw(narrow=True)


def _reverse() -> Any:
    flip = locum.select(locum.indices, locum.length - 1 - locum.indices, "==")
    reverse = locum.aggregate(flip, locum.tokens)
    names = {flip.node: "flip", reverse.node: "reverse"}
    return locum.compile(reverse, length=8, vocabulary="abcd", name="reverse", names=names)


SVG = {
    "universal": universal,
    "dataflow": dataflow,
    "sort": sort,
    "circuit_longest_run": circuit_longest_run,
    "host_and_u": host_and_u,
    "trust": trust,
    "steps_of_u": steps_of_u,
    "reverse": reverse,
    "tutorial": tutorial,
    "ablation": ablation,
    "architectures": architectures,
}
#: Screenshots of the playground, each with its size.
SERVED = {"playground": "1160,780"}


def main() -> None:
    """Write all figures."""
    for name, draw in SVG.items():
        (FOLDER / f"{name}.svg").write_text(draw(), encoding="utf-8")
    if sys.argv[1:] == ["--svg"]:
        return
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        raise SystemExit("expected chromium for the screenshot of the playground; try --svg without it")
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
    """Take a screenshot of a page after it is rendered."""
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
