"""Write a page about a hypothesis check: verdict, counterexamples, heads, probes and interventions.

The page is one file without scripts and without network access. The page is readable at a width of
400 px and in dark mode.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from locum import __version__
from locum.experiments.circuits.hypothesis import HeadMatch, HypothesisReport
from locum.interface.display.html import document, today

_STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #57606a; --line: #d0d7de; --page: #fff;
  --good: #dafbe1; --bad: #ffd8d3; --mark: #2f6fb3; --cell: #f6f8fa; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e9ef; --soft: #95a3b3; --line: #2d3742; --page: #0f141a; --good: #17422a;
    --bad: #55201d; --mark: #6fb1f2; --cell: #171e26; }
}
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem;
  color: var(--ink); background: var(--page); overflow-wrap: break-word; }
h1 { line-height: 1.2; } h2 { margin-top: 2.2rem; }
.verdict { border-radius: .5em; padding: .5rem .8rem; font-size: 1.1rem; }
.holds { background: var(--good); } .fails { background: var(--bad); }
.small { color: var(--soft); font-size: .9em; } code { font-size: .92em; }
table { border-collapse: collapse; width: 100%; font-size: .94em; }
th, td { border-bottom: 1px solid var(--line); padding: .4rem .5rem; text-align: left;
  vertical-align: top; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
th.number { text-align: right; }
.patterns { display: flex; flex-wrap: wrap; gap: .6rem 1.6rem; margin: .6rem 0 1.4rem; }
figure { margin: 0; } figcaption { font-size: .85em; color: var(--soft); }
svg { max-width: 100%; height: auto; display: block; }
svg text { fill: var(--soft); font: 11px ui-monospace, monospace; }
.cell { fill: var(--cell); stroke: var(--line); stroke-width: 1; } .weight { fill: var(--mark); }
.bar { fill: var(--mark); } .base { fill: var(--line); }
@media screen and (max-width: 40rem) {
  table, tbody, tr, td { display: block; } tr.heads { display: none; }
  td, td.number { border: 0; padding: .1rem 0; text-align: left; }
  td::before { content: attr(data-name) ": "; color: var(--soft); font-size: .85em; }
  tr { border-bottom: 1px solid var(--line); padding: .5rem 0; }
}
"""
#: Size of a cell of a pattern, and width of the margin for tokens, in pixels.
_SIDE, _MARGIN = 20, 34


def hypothesis_page(report: HypothesisReport, title: str) -> str:
    """Return the page of a report on a hypothesis as HTML."""
    parts = [
        f"<h1>{escape(title)}</h1>",
        f"<p class='verdict {'holds' if report.holds else 'fails'}'>{escape(verdict(report))}</p>",
        f"<p>Hypothesis: <code>{escape(report.program)}</code></p>",
        _counterexamples(report),
        _heads(report),
        _probes(report),
        _interventions(report),
    ]
    if report.notes:
        notes = "".join(f"<li>{escape(note)}</li>" for note in report.notes)
        parts.append(f"<h2>Notes</h2><ul>{notes}</ul>")
    parts.append(f"<p class=small>Locum {__version__}, {today()}, seed {report.seed}.</p>")
    return document(title, _STYLE, "".join(parts))


def verdict(report: HypothesisReport) -> str:
    """Return the verdict of a report in two sentences."""
    counted = (
        f"{report.agreement:.1%} of {report.answers:,} answers to {report.inputs:,} inputs agree, and "
        f"all answers agree for {report.input_agreement:.1%} of the inputs."
    )
    if report.holds:
        return f"The hypothesis holds on these inputs. {counted}"
    return f"The hypothesis does not hold: {'; '.join(report.reasons)}. {counted}"


def layer_name(layer: int) -> str:
    """Return the name of the residual stream after ``layer`` layers.

    >>> layer_name(0), layer_name(1), layer_name(2)
    ('embeddings', 'after 1 layer', 'after 2 layers')
    """
    return "embeddings" if layer == 0 else f"after {layer} layer{'s' if layer > 1 else ''}"


def _counterexamples(report: HypothesisReport) -> str:
    if not report.counterexamples:
        return ""
    rows = [
        (" ".join(map(str, one.tokens)), str(one.position), str(one.model), str(one.program))
        for one in report.counterexamples
    ]
    table = _table(("input", "position", "model", "program"), rows)
    return f"<h2>Shortest counterexamples</h2>{table}"


def _heads(report: HypothesisReport) -> str:
    if not report.heads:
        return ""
    rows = [
        (
            head.label,
            f"layer {head.layer}, head {head.head}",
            f"{head.distance:.3f}",
            f"{head.uniform:.3f}",
        )
        for head in report.heads
    ]
    names = (
        "selector of the program",
        "head of the model",
        "distance",
        "distance of uniform attention",
    )
    figures = "".join(map(_patterns, report.heads))
    return (
        f"<h2>Heads</h2>{_table(names, rows)}<p class=small>The distance is the mean total variation "
        "distance between rows of two attention patterns: 0 if they are equal, 1 if they share "
        f"no key.</p>{figures}"
    )


def _patterns(head: HeadMatch) -> str:
    tokens = [str(token) for token in head.tokens]
    figures = (
        (f"{head.label}", head.program_pattern, tokens),
        (
            f"model: layer {head.layer}, head {head.head}; …: other positions",
            head.model_pattern,
            [*tokens, "…"],
        ),
    )
    return (
        "<div class=patterns>"
        + "".join(
            f"<figure>{_heat_map(caption, pattern, tokens, keys)}"
            f"<figcaption>{escape(caption)}</figcaption></figure>"
            for caption, pattern, keys in figures
        )
        + "</div>"
    )


def _heat_map(
    title: str, pattern: Sequence[Sequence[float]], queries: Sequence[str], keys: Sequence[str]
) -> str:
    width, height = _MARGIN + _SIDE * len(keys) + 14, _MARGIN + _SIDE * len(queries)
    parts = []
    for place, key in enumerate(keys):
        x = _MARGIN + _SIDE * place + _SIDE / 2
        parts.append(f'<text x="{x}" y="{_MARGIN - 8}" text-anchor="middle">{escape(key[:5])}</text>')
    for row, query in enumerate(queries):
        y = _MARGIN + _SIDE * row
        label = escape(query[:4])
        parts.append(f'<text x="{_MARGIN - 6}" y="{y + 14}" text-anchor="end">{label}</text>')
        for column, weight in enumerate(pattern[row]):
            x = _MARGIN + _SIDE * column
            box = f'x="{x}" y="{y}" width="{_SIDE}" height="{_SIDE}"'
            shade = min(max(weight, 0.0), 1.0)
            parts.append(f'<rect class="cell" {box}/>')
            parts.append(
                f'<rect class="weight" {box} fill-opacity="{shade:.3f}">'
                f"<title>{weight:.3f}</title></rect>"
            )
    return (
        f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
        f'aria-label="{escape(title)}">{"".join(parts)}</svg>'
    )


def _probes(report: HypothesisReport) -> str:
    if not report.probes:
        return ""
    names = ("s-op", "best", "held out", "embeddings", "most frequent", "by layer")
    rows = [
        (
            f"<code>{escape(probe.label)}</code>",
            layer_name(probe.layer),
            f"{probe.accuracy:.3f}" + (" (R²)" if probe.kind == "R²" else ""),
            f"{probe.embeddings:.3f}",
            f"{probe.most_frequent:.3f}",
            _bars(probe.by_layer),
        )
        for probe in report.probes
    ]
    return (
        f"<h2>Linear probes</h2>{_table(names, rows, is_html=True)}<p class=small>Probes of the "
        "residual stream at the position of each token, fitted on one half of the inputs and measured "
        "on the other half. Bars: embeddings first, then each layer.</p>"
    )


def _bars(scores: Sequence[float]) -> str:
    width, height = 14, 26
    bars = "".join(
        f'<rect class="base" x="{width * place}" y="0" width="{width - 3}" height="{height}"/>'
        f'<rect class="bar" x="{width * place}" y="{height * (1 - share):.1f}" width="{width - 3}" '
        f'height="{height * share:.1f}"><title>{layer_name(place)}: {score:.3f}</title></rect>'
        for place, score in enumerate(scores)
        for share in (min(max(score, 0.0), 1.0),)
    )
    size = width * len(scores)
    return (
        f'<svg viewBox="0 0 {size} {height}" width="{size}" height="{height}" role="img" '
        f'aria-label="accuracy by layer">{bars}</svg>'
    )


def _interventions(report: HypothesisReport) -> str:
    if not report.interventions:
        return ""
    names = ("s-op", "residual stream", "directions", "pairs", "agree", "random directions")
    rows = [
        (
            part.label,
            layer_name(part.layer),
            str(part.dimensions),
            str(part.pairs),
            f"{part.agreement:.1%}",
            f"{part.random:.1%}",
        )
        for part in report.interventions
    ]
    return (
        f"<h2>Interchange interventions</h2>{_table(names, rows)}<p class=small>The subspace of the "
        "residual stream that encodes the s-op is replaced by its value on another input. A pair of "
        "inputs agrees if all answers equal the answers of the program in which the s-op is replaced "
        "in the same way. Pairs on which the program's answer does not change are excluded.</p>"
    )


def _table(names: Sequence[str], rows: Iterable[Sequence[str]], *, is_html: bool = False) -> str:
    rows = list(rows)
    numeric = [all(_is_number(row[i]) for row in rows) for i in range(len(names))]

    def mark(column: int) -> str:
        return " class=number" if numeric[column] else ""

    heads = "".join(f"<th{mark(i)}>{escape(name)}</th>" for i, name in enumerate(names))
    body = "".join(
        "<tr>"
        + "".join(
            f'<td{mark(i)} data-name="{escape(names[i])}">{text if is_html else escape(text)}</td>'
            for i, text in enumerate(row)
        )
        + "</tr>"
        for row in rows
    )
    return f"<table><tr class=heads>{heads}</tr>{body}</table>"


def _is_number(text: Any) -> bool:
    return str(text).replace(".", "", 1).replace("%", "", 1).isdigit()
