"""Write the reproduction of the paper, and the comparison with its rivals, as pages and as Markdown.

A page is one file: no script, no network; it reads at 400 px, in print and in the dark.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from locum import __version__
from locum.display.charts import line_chart
from locum.display.html import document, today
from locum.paper import compare
from locum.paper.errata import SEVERITIES
from locum.paper.report import Report, Row

_STYLE = """
:root { --ink: #1b1f24; --soft: #57606a; --line: #d0d7de; --page: #fff; --badge: #eaeef2;
  --good: #dafbe1; --bad: #ffebe9; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e9ef; --soft: #95a3b3; --line: #2d3742; --page: #0f141a; --badge: #2a333d;
    --good: #17422a; --bad: #55201d; }
}
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 80rem; padding: 0 1rem;
  color: var(--ink); background: var(--page); overflow-wrap: break-word; }
h1 { line-height: 1.2; } h2 { margin-top: 2.5rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .92em; }
th, td { border-bottom: 1px solid var(--line); padding: .5rem; text-align: left; vertical-align: top; }
td[data-name=paper] { min-width: 10rem; max-width: 13rem; } td[data-name=verdict] { min-width: 9rem; }
td[data-name=command] { min-width: 9rem; } td[data-name="as printed"] { max-width: 15rem; }
td[data-name=note], td[data-name=claimed], td[data-name=system] { min-width: 9rem; }
.small { color: var(--soft); font-size: .9em; } code { font-size: .92em; }
dt { font-weight: 600; } dd { margin: 0 0 .7rem; }
.verdict { border-radius: .5em; padding: .1em .5em; background: var(--badge); display: inline-block; }
.right { background: var(--good); } .wrong { background: var(--bad); }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(18rem, 1fr)); gap: 1rem; }
figure { margin: 0; } figcaption { font-size: .9em; } svg { width: 100%; height: auto; }
@media screen and (max-width: 48rem) {
  table, tbody, tr, td { display: block; } tr.heads { display: none; }
  td { border: 0; padding: .15rem 0; max-width: none !important; }
  td::before { content: attr(data-name); display: block; color: var(--soft); font-size: .8em; }
  td:empty { display: none; } tr { border-bottom: 1px solid var(--line); padding: .6rem 0; }
}
@page { size: A4 landscape; margin: 12mm; }
@media print { body { max-width: none; margin: 0; padding: 0; font-size: 9px; }
  h2 { margin-top: 1.2rem; }
  th, td { padding: .15rem .3rem; } tr, figure { break-inside: avoid; } .wide { overflow: visible; }
  td[data-name] { min-width: 0; } .wide table { font-size: 7px; }
  .charts { grid-template-columns: repeat(4, 1fr); } }
"""

#: What each level of trust assures, and by what.
TRUST = (
    ("dense", "the meaning: selectors as matrices, means as sums", "plain code, compared with NumPy"),
    (
        "fast, heads",
        "the same numbers by products of matrices, and head by head",
        "tested against dense",
    ),
    (
        "compiled",
        "weights compute the program; bounds include rounding",
        "tested against dense; bounds are sound",
    ),
    (
        "symbolic proof",
        "a formula holds for all inputs of one shape, over ℝ",
        "a certificate, checked by other code",
    ),
    ("Coq", "a theorem holds for all shapes, over ℝ", "Coq's kernel, and its axioms of the reals"),
    ("certified floats", "the float result is this close to the real one", "ball arithmetic (flint)"),
)
_SUMMARY = (
    (
        "Scope",
        (
            "Every label of the paper: two tables, three figures, eight listings, five algorithms, "
            "and all propositions, lemmas, theorems, corollaries and remarks. U is built for every "
            "order, not for the demonstration alone."
        ),
    ),
    (
        "Method",
        (
            "Each construction is a RASP program. Heads and layers are counted on its graph; an "
            "instance is compared with NumPy; claims are proven symbolically for all inputs of a "
            "shape, and a checker with its own evaluators and arithmetic accepts each certificate."
        ),
    ),
    (
        "What was easy",
        (
            "Transposition, products, softmax, and Theorem 1 itself: the constructions work as "
            "described, at any shape, once sequences are padded where a product needs room."
        ),
    ),
    (
        "What was hard",
        (
            "Listings that do not compute what they say (E1, E2, E3), a proof of the hierarchy that "
            "pads where softmax must be masked (E15, E16), and rivals whose layouts are not "
            "published: the looped transformers here are reconstructions."
        ),
    ),
)


def report_page(report: Report) -> str:
    """Write the reproduction as one page."""
    rows = "".join(_label_row(row) for row in report.rows)
    errata = ", ".join(f"{count} of {SEVERITIES[kind]}" for kind, count in report.errata.items())
    summary = "".join(f"<dt>{name}</dt><dd>{escape(text)}</dd>" for name, text in _SUMMARY)
    results = (
        f"{report.proofs} claims proven for all inputs in this run, {report.refutations} printed "
        f"statements refuted by numbers, and errata: {errata}. "
        + (
            "Everything holds as stated below."
            if report.holds
            else "SOMETHING DOES NOT HOLD: see below."
        )
    )
    charts = "".join(
        f"<figure>{line_chart(curve.title, curve.n, curve.counts)}"
        f"<figcaption><b>{escape(curve.title)}</b>; claimed: {escape(curve.claimed)}"
        "</figcaption></figure>"
        for curve in report.curves
    )
    versions = "".join(_line(name, version) for name, version in report.environment.items())
    hashes = "".join(_line(name, f"<code>{value}</code>") for name, value in report.hashes.items())
    heads = "".join(
        f"<th>{name}</th>" for name in ("paper", "as printed", "regenerated", "verdict", "command", "s")
    )
    body = (
        "<h1>On the Existence of Universal Simulators of Attention: reproduced</h1>"
        f"<p class=small>Locum {escape(__version__)}, {today()}, {report.seconds:.0f} s</p>"
        f"<dl>{summary}<dt>Results</dt><dd>{escape(results)}</dd></dl>"
        f"<h2>What each level of trust assures</h2>{_table(('level', 'assures', 'rests on'), TRUST)}"
        "<h2>Every label, in the order of the paper</h2>"
        f"<table><tr class=heads>{heads}</tr>{rows}</table>"
        f"{_printed_tables(report)}"
        f"<h2>Cost against n, measured</h2><div class=charts>{charts}</div>"
        f"<h2>The paper's constructions and their rivals</h2>{_comparison(report.comparison)}"
        f"<h2>Versions and hashes</h2><table>{versions}{hashes}</table>"
    )
    return document("The paper, reproduced", _STYLE, body)


def _printed_tables(report: Report) -> str:
    return "".join(
        f"<h2>{escape(table.title)}</h2>{_table(table.names, table.rows)}" for table in report.tables
    )


def compare_page(rows: Sequence[compare.Row]) -> str:
    """Write the comparison alone as one page."""
    heading = "<h1>The paper's constructions and their rivals</h1>"
    return document("Constructions and rivals", _STYLE, f"{heading}{_comparison(rows)}")


def report_markdown(report: Report) -> str:
    """Write the reproduction as Markdown."""
    lines = [
        "# On the Existence of Universal Simulators of Attention: reproduced",
        "",
        (
            f"Locum {__version__}, {today()}, {report.seconds:.0f} s; {report.proofs} claims proven, "
            f"{report.refutations} printed statements refuted."
        ),
        "",
        *(f"**{name}.** {text}\n" for name, text in _SUMMARY),
        "| paper | as printed | regenerated | verdict | command | s |",
        "|---|---|---|---|---|---|",
    ]
    for row in report.rows:
        cells = (
            f"{row.title} (`{row.label}`, line {row.line})", row.printed, row.regenerated, row.verdict,
            f"`{row.command}`" if row.command else "", f"{row.seconds:.1f}",
        )  # fmt: skip
        lines.append(_markdown_row(cells))
    lines += [
        "",
        "## Rivals",
        "",
        *(f"- {sentence}" for sentence in compare.winners(list(report.comparison))),
    ]
    return "\n".join(lines) + "\n"


def _markdown_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


def _comparison(rows: Sequence[compare.Row]) -> str:
    names = (
        "operation", "system", "claimed", "layers × passes", "heads", "d_model", "positions",
        "parameters", "not zero", "errors", "ms", "weights depend on", "loop", "enters as", "note",
    )  # fmt: skip

    def cells(row: compare.Row) -> tuple[str, ...]:
        operation = f"{row.operation} {row.order}".strip()
        rest = (row.weights_depend_on, "yes" if row.loop else "no", row.enters_as, row.note)
        if row.status == "cited":
            return (operation, row.system, row.claimed, "cited, not run", *[""] * 7, *rest)
        return (
            operation, row.system, row.claimed, f"{row.layers} × {row.passes}", str(row.heads),
            str(row.d_model), str(row.tokens), f"{row.parameters:,}", f"{row.nonzeros:,}",
            " ".join(map(compare.shown, row.errors)),
            "" if row.seconds is None else f"{1e3 * row.seconds:.1f}", *rest,
        )  # fmt: skip

    sentences = "".join(f"<li>{escape(sentence)}</li>" for sentence in compare.winners(list(rows)))
    note = (
        "Errors are relative to the greatest entry of NumPy's result; of matrix operations at entries "
        "of about 0.01, 1 and 10. Parameters include zeros and embeddings."
    )
    table = _table(names, map(cells, rows))
    return f"<ul>{sentences}</ul><p class=small>{note}</p><div class=wide>{table}</div>"


def _label_row(row: Row) -> str:
    good = row.verdict.startswith(("right", "same", "regenerated", "grows", "ours"))
    kind = (
        "wrong" if row.verdict.startswith(("wrong", "does not", "other")) else "right" if good else ""
    )
    errata = f"<br><span class=small>{', '.join(row.errata)}</span>" if row.errata else ""
    where = f"{row.kind}, <code>{escape(row.label)}</code>, line {row.line}"
    cells = (
        ("paper", f"<b>{escape(row.title)}</b><br><span class=small>{where}</span>"),
        ("as printed", escape(row.printed)),
        ("regenerated", escape(row.regenerated)),
        ("verdict", f'<span class="verdict {kind}">{escape(row.verdict)}</span>{errata}'),
        ("command", f"<code>{escape(row.command)}</code>" if row.command else ""),
        ("seconds", f"{row.seconds:.1f}" if row.seconds else ""),
    )  # fmt: skip
    return f'<tr id="{escape(row.label)}">' + "".join(_cell(*cell) for cell in cells) + "</tr>"


def _table(names: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    heads = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join(
        "<tr>"
        + "".join(_cell(name, escape(text)) for name, text in zip(names, row, strict=True))
        + "</tr>"
        for row in rows
    )
    return f"<table><tr class=heads>{heads}</tr>{body}</table>"


def _cell(name: str, content: str) -> str:
    return f'<td data-name="{escape(name)}">{content}</td>'


def _line(name: str, value: str) -> str:
    return f"<tr><td>{escape(name)}</td><td>{value}</td></tr>"
