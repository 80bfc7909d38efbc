"""Write the reproduction of the paper as an HTML page and as Markdown.

The page is one file without scripts and without network access. It is readable at a width of 400 px, in
print and in dark mode. CSS rules filter the statements.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from html import escape

from locum import __version__
from locum.interface.display.html import document, today
from locum.paper.errata import ERRATA, SEVERITIES
from locum.paper.evidence import CONTEXT, CORRECTED, OURS, PRINTED, STATUSES, Evidence
from locum.paper.paper_report import Report, Row

_STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #57606a; --line: #d0d7de; --page: #fff;
  --badge: #eaeef2; --code: #f6f8fa; --good: #dafbe1; --bad: #ffd8d3; --part: #ffe3c2;
  --open: #fff5b8; --yes: #1a7f37; --no: #b3261e; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e9ef; --soft: #95a3b3; --line: #2d3742; --page: #0f141a; --badge: #2a333d;
    --code: #171e26; --good: #17422a; --bad: #55201d; --part: #573a12; --open: #4a430f;
    --yes: #57c274; --no: #ff8e85; }
}
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 84rem; padding: 0 1rem;
  color: var(--ink); background: var(--page); overflow-wrap: break-word; }
h1 { line-height: 1.2; } h2 { margin-top: 2.5rem; }
h3 { margin: 1.4rem 0 .3rem; font-size: 1.1rem; } .head h3 { margin: 0; }
a { color: inherit; } h3 a { text-decoration: none; }
table { border-collapse: collapse; width: 100%; font-size: .92em; }
th, td { border-bottom: 1px solid var(--line); padding: .4rem .5rem; text-align: left;
  vertical-align: top; }
.small { color: var(--soft); font-size: .9em; } code { font-size: .92em; }
dt { font-weight: 600; } dd { margin: 0 0 .7rem; }
pre { background: var(--code); border-radius: .4em; padding: .6rem .8rem; margin: .4rem 0;
  font-size: .82em; white-space: pre-wrap; overflow-wrap: anywhere; }
blockquote, .lines { margin: .6rem 0; border-left: 3px solid var(--line); font-family: Georgia, serif; }
blockquote { padding: 0 0 0 1rem; } .lines { padding: 0 0 0 2.2rem; } sub, sup { line-height: 0; }
.comment { list-style: none; color: var(--soft); }
article { border-top: 1px solid var(--line); padding: 1.1rem 0; }
article > p { margin: .35rem 0; }
.sides { display: grid; grid-template-columns: minmax(0, 2fr) minmax(0, 3fr); gap: .5rem 2rem; }
.sides h4 { margin: .6rem 0 .2rem; color: var(--soft); font-size: .85em; text-transform: uppercase;
  letter-spacing: .05em; } .sides p { margin: .35rem 0; }
.head { display: flex; flex-wrap: wrap; gap: .3rem .8rem; align-items: baseline;
  justify-content: space-between; }
.verdict { border-radius: .5em; padding: .1em .6em; background: var(--badge); }
.right .verdict { background: var(--good); } .wording .verdict { background: var(--open); }
.partly .verdict { background: var(--part); }
.wrong .verdict, .fails .verdict { background: var(--bad); }
.dot { display: inline-block; width: .7em; height: .7em; border-radius: 50%; margin-right: .45em;
  border: 1px solid var(--soft); }
.right.dot { background: var(--yes); } .wording.dot { background: #e8d44d; }
.partly.dot { background: #e8923a; } .wrong.dot, .fails.dot { background: var(--no); }
.toc { columns: 19rem; column-gap: 2rem; list-style: none; padding: 0; margin: .6rem 0;
  font-size: .92em; }
.toc li { break-inside: avoid; padding: .1rem 0 .1rem 1.2em; text-indent: -1.2em; }
.toc a, nav a { text-decoration-color: var(--line); }
nav ul { margin: .3rem 0; padding-left: 1.2rem; }
.runs { table-layout: auto; } .runs th { font-weight: 600; color: var(--soft); font-size: .9em; }
.runs td:first-child { width: 1.4rem; } .runs td[data-name="what was run"] { width: 38%; }
.runs td[data-name="about"] { width: 4.5rem; color: var(--soft); }
.runs td[data-name="erratum"] { width: 3rem; }
.yes { color: var(--yes); } .no { color: var(--no); font-weight: 700; }
summary { cursor: pointer; }
.filters { position: sticky; top: 0; background: var(--page); padding: .5rem 0; z-index: 1;
  border-bottom: 1px solid var(--line); }
.filter { position: absolute; opacity: 0; }
.filters label { display: inline-block; border: 1px solid var(--line); border-radius: 1em;
  padding: .1em .8em; margin: .15rem .3rem .15rem 0; cursor: pointer; }
__FILTERS__
article { scroll-margin-top: 6rem; } article:target { display: block !important; }
@media screen and (max-width: 62rem) { .sides { display: block; } }
@media screen and (max-width: 48rem) {
  table, tbody, tr, td { display: block; } tr.heads { display: none; }
  td { border: 0; padding: .15rem 0; max-width: none !important; }
  td::before { content: attr(data-name); display: block; color: var(--soft); font-size: .8em; }
  td:empty { display: none; } tr { border-bottom: 1px solid var(--line); padding: .6rem 0; }
  .runs td { width: auto !important; } .runs td::before { display: none; }
  .runs td:first-child { float: left; padding-right: .5rem; }
  .runs td[data-name=result] { padding-left: 1.3rem; }
  .runs td[data-name=about], .runs td[data-name=erratum] { display: inline; font-size: .85em; }
  .runs td[data-name=about] { padding: 0 .6rem 0 1.3rem; } .runs tr { padding: .4rem 0; }
  .filters { position: static; } article { scroll-margin-top: .5rem; }
}
@page { size: A4; margin: 12mm; }
@media print { body { max-width: none; margin: 0; padding: 0; font-size: 10px; }
  h2 { margin-top: 1.2rem; } .filters, nav { display: none; }
  th, td { padding: .15rem .3rem; } tr { break-inside: avoid; } }
"""

#: Maps the names of filters of statements to the displayed statuses.
FILTERS: dict[str, tuple[str, ...]] = {
    "everything": tuple(STATUSES),
    "only what is wrong": ("wrong", "partly", "fails"),
    "wrong or imprecise": ("wrong", "partly", "fails", "wording"),
    "not checked": ("unchecked",),
    "future work": ("unclaimed",),
}
#: Displayed names of the subjects of evidence.
_ABOUT = {PRINTED: "as printed", CORRECTED: "as corrected", OURS: "Locum", CONTEXT: "context"}

_SUMMARY = (
    (
        "Scope",
        (
            "Every label of the paper's source has an entry: sections, propositions, lemmas, theorems, "
            "corollaries, remarks, equations, figures, tables, algorithms and listings. Remarks and "
            "unlabelled passages about the constructions have separate entries."
        ),
    ),
    (
        "Method",
        (
            "Each entry quotes the paper and lists what was run. Algorithms are transcribed line by "
            "line, listings are run as text, and formulas are computed by NumPy. If possible, claims "
            "are proven for all inputs of a shape. The verdict is derived from these runs alone."
        ),
    ),
    (
        "Limits",
        (
            "A run on some shapes is not a proof for all shapes. Theorems for all shapes are checked "
            "by `make coq`, not here. The looped transformers of Giannou et al. are reconstructions. "
            "Statements about other work are checked only where an entry quotes them."
        ),
    ),
)


def report_page(report: Report) -> str:
    """Return the reproduction of the paper as one HTML page."""
    summary = "".join(f"<dt>{name}</dt><dd>{_prose(text)}</dd>" for name, text in _SUMMARY)
    links = "".join(
        f'<li><span class="dot {row.status}"></span>{_link(row)}</li>' for row in report.rows
    )
    body = (
        "<h1>On the Existence of Universal Simulators of Attention: reproduced</h1>"
        f"<p class=small>Locum {escape(__version__)}, {today()}, {report.seconds:.0f} s</p>"
        f"<dl>{summary}<dt>Results</dt><dd>{escape(describe_results(report))}</dd></dl>"
        f"<nav><h2>Contents</h2><ul class=toc>{links}</ul></nav>"
        f"<h2>Statements, in the order of the paper</h2>{_statements(report.rows)}"
    )
    return document("The paper, reproduced", _STYLE.replace("__FILTERS__", _filter_rules()), body)


def describe_results(report: Report) -> str:
    """Return a text with the numbers of verdicts, proofs and errata, and the problems."""
    counts = Counter(row.status for row in report.rows)
    verdicts = ", ".join(
        f"{counts[status]} {words}" for status, words in STATUSES.items() if counts[status]
    )
    errata = ", ".join(
        f"{count} of severity {kind} ({SEVERITIES[kind]})" for kind, count in report.errata.items()
    )
    problems = [row.title for row in report.rows if not row.holds] + list(report.unshown)
    end = f" PROBLEMS: {', '.join(problems)}." if problems else ""
    return (
        f"{len(report.rows)} statements: {verdicts}. {report.proofs} claims were proven for all "
        f"inputs of one shape. Errata: {errata}.{end}"
    )


# Statements -----------------------------------------------------------------------------------


def _filter_rules() -> str:
    """Return the CSS rules that hide the statements excluded by the selected filter."""
    rules = []
    for number, shown in enumerate(FILTERS.values()):
        hidden = [status for status in STATUSES if status not in shown]
        chosen = f"#filter-{number}:checked"
        label = f"{chosen} ~ .filters label[for=filter-{number}]"
        rules.append(f"{label} {{ background: var(--badge); font-weight: 600; }}")
        rules += [f"{chosen} ~ article.{status} {{ display: none; }}" for status in hidden]
    return "\n".join(rules)


def _statements(rows: Sequence[Row]) -> str:
    buttons, labels = [], []
    for number, (name, shown) in enumerate(FILTERS.items()):
        checked = "" if number else " checked"
        count = sum(row.status in shown for row in rows)
        buttons.append(f'<input class=filter type=radio name=filter id="filter-{number}"{checked}>')
        labels.append(f'<label for="filter-{number}">{escape(name)} ({count})</label>')
    cards = "".join(map(_card, rows))
    return f"<div>{''.join(buttons)}<div class=filters>{''.join(labels)}</div>{cards}</div>"


def _link(row: Row) -> str:
    return f'<a href="#{escape(row.key)}">{escape(row.title)}</a>'


def _card(row: Row) -> str:
    """Return one statement as HTML: quotation, evidence and verdict."""
    place = f"label <code>{escape(row.key)}</code>" if row.labelled else "no label"
    head = (
        f"<div class=head><h3>{_link(row)}</h3><span class=verdict>{escape(row.verdict)}</span></div>"
        f"<p class=small>{escape(row.kind)}, {place}, line {row.line} of the source</p>"
    )
    printed = _quote(row)
    if row.listing:
        printed += f"<pre>{escape(row.listing)}</pre>"
    parts = []
    if row.transcriptions:
        code = escape("\n\n".join(row.transcriptions).rstrip())
        parts.append(f"<details><summary>Transcription in NumPy</summary><pre>{code}</pre></details>")
    if row.evidence:
        parts.append(_runs(row.evidence))
    elif not row.quote:
        parts.append("<p>Its statements have separate entries.</p>")
    parts += [f"<p>{_prose(text)}</p>" for text in explain_errata(row)]
    if row.unchecked:
        parts.append(f"<p>{escape(list_unchecked(row))}</p>")
    if row.theorems:
        names = ", ".join(f"<code>{escape(theorem)}</code>" for theorem in row.theorems)
        parts.append(f"<p class=small>For all shapes, by <code>make coq</code>: {names}</p>")
    if row.command:
        parts.append(f"<p class=small><code>{escape(row.command)}</code>, {row.seconds:.1f} s</p>")
    body = "".join(parts)
    if printed:
        columns = f"<div><h4>Paper</h4>{printed}</div><div><h4>Locum</h4>{body}</div>"
        body = f"<div class=sides>{columns}</div>"
    return f'<article id="{escape(row.key)}" class={row.status}>{head}{body}</article>'


def explain_errata(row: Row) -> list[str]:
    """Return the problem and the correction of each erratum of a statement, in one line each."""
    errata = [ERRATA[number] for number in row.errata if number in ERRATA]
    return [f"{each.number} ({each.severity}): {each.wrong} — Right: {each.right}" for each in errata]


def list_unchecked(row: Row) -> str:
    """Return a sentence that lists the parts of a statement that are not checked."""
    return f"Not checked: {'; '.join(row.unchecked).removesuffix('.')}."


def _quote(row: Row) -> str:
    if not row.quote:
        return ""
    if row.kind == "algorithm":
        lines = "".join(
            f"<li{' class=comment' if line.startswith('▷') else ''}>{set_scripts(line)}</li>"
            for line in row.quote.splitlines()
        )
        return f"<ol class=lines>{lines}</ol>"
    return f"<blockquote>{set_scripts(row.quote)}</blockquote>"


def set_scripts(text: str) -> str:
    """Format a quotation as HTML, with subscripts and superscripts.

    >>> set_scripts("W_Q ∈ ℝ^{d×d_v}")
    'W<sub>Q</sub> ∈ ℝ<sup>d×d<sub>v</sub></sup>'
    """
    written, place = [], 0
    while place < len(text):
        letter = text[place]
        tag = {"_": "sub", "^": "sup"}.get(letter)
        if tag is None or place + 1 == len(text):
            written.append(escape(letter))
            place += 1
            continue
        inside, place = _take_group(text, place + 1)
        written.append(f"<{tag}>{set_scripts(inside)}</{tag}>")
    return "".join(written)


def _take_group(text: str, start: int) -> tuple[str, int]:
    """Return one character, or the content of a group in braces, and the position after it."""
    if text[start] != "{":
        return text[start], start + 1
    depth, end = 0, start
    while True:
        depth += {"{": 1, "}": -1}.get(text[end], 0)
        end += 1
        if depth == 0:
            return text[start + 1 : end - 1], end


def _runs(evidence: Sequence[Evidence]) -> str:
    names = ("", "what was run", "result", "about", "erratum")
    heads = "".join(f"<th>{name}</th>" for name in names)
    rows = []
    for each in evidence:
        mark = "<span class=yes>✓</span>" if each.holds else "<span class=no>✗</span>"
        if each.about == CONTEXT:
            mark = "·"
        shown = each.erratum if not each.holds else ""
        texts = (mark, _prose(each.what), _prose(each.result), _ABOUT[each.about], shown)
        cells = "".join(
            f'<td data-name="{name}">{text}</td>' for name, text in zip(names, texts, strict=True)
        )
        rows.append(f"<tr>{cells}</tr>")
    return f"<table class=runs><tr class=heads>{heads}</tr>{''.join(rows)}</table>"


def _prose(text: str) -> str:
    """Format a sentence as HTML, with text in backquotes as code."""
    parts = escape(text, quote=False).split("`")
    return "".join(f"<code>{part}</code>" if place % 2 else part for place, part in enumerate(parts))


# Markdown -----------------------------------------------------------------------------------


def report_markdown(report: Report) -> str:
    """Return the reproduction of the paper as Markdown."""
    lines = [
        "# On the Existence of Universal Simulators of Attention: reproduced",
        "",
        f"Locum {__version__}, {today()}, {report.seconds:.0f} s.",
        "",
        *(f"**{name}.** {text}\n" for name, text in _SUMMARY),
        f"**Results.** {describe_results(report)}",
        "",
        "## Contents",
        "",
        "| statement | verdict | errata |",
        "|---|---|---|",
        *(
            _markdown_row((f"[{row.title}](#{row.key})", row.verdict, ", ".join(row.errata)))
            for row in report.rows
        ),
        "",
        "## Statements",
        "",
        *(line for row in report.rows for line in _markdown_section(row)),
    ]
    return "\n".join(lines) + "\n"


def _markdown_section(row: Row) -> list[str]:
    place = f"label `{row.key}`" if row.labelled else "no label"
    lines = [f'<a id="{row.key}"></a>', "", f"### {row.title}", ""]
    lines += [f"{row.kind}, {place}, line {row.line} of the source. **{row.verdict}**", ""]
    if row.quote:
        numbered = row.kind == "algorithm"
        quote = row.quote.splitlines()
        lines += [
            f"> {f'{n}. ' if numbered and not line.startswith('▷') else ''}{line}"
            for n, line in enumerate(quote, start=1)
        ]
        lines.append("")
    for code, language in ((row.listing, "text"), ("\n\n".join(row.transcriptions).rstrip(), "python")):
        if code:
            lines += [f"```{language}", code, "```", ""]
    if row.evidence:
        lines += ["| | what was run | result | about | erratum |", "|---|---|---|---|---|"]
        for each in row.evidence:
            mark = "" if each.about == CONTEXT else "✓" if each.holds else "✗"
            shown = each.erratum if not each.holds else ""
            lines.append(_markdown_row((mark, each.what, each.result, _ABOUT[each.about], shown)))
        lines.append("")
    lines += [line for text in explain_errata(row) for line in (text, "")]
    if row.unchecked:
        lines += [list_unchecked(row), ""]
    if row.theorems:
        lines += [f"For all shapes, by `make coq`: {', '.join(row.theorems)}", ""]
    return lines


def _markdown_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"
