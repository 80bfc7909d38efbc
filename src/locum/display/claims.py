"""Write the claims of the paper as a page: what is proven, refuted, measured and counted.

Formulas are MathML, which browsers render by themselves: the page needs no network and no script.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

from locum.display.html import policy
from locum.paper.findings import Finding

_STYLE = """
:root { --ink: #1b1f24; --soft: #57606a; --line: #d0d7de; --page: #fff; --badge: #eaeef2; --good: #dafbe1;
  --bad: #ffebe9; --open: #fff1c2; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e9ef; --soft: #95a3b3; --line: #2d3742; --page: #0f141a; --badge: #2a333d; --good: #17422a;
    --bad: #55201d; --open: #4d3f10; }
}
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 64rem; padding: 0 1rem;
  color: var(--ink); background: var(--page); overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; }
th, td { border-bottom: 1px solid var(--line); padding: .6rem .5rem; text-align: left; vertical-align: top; }
.status { display: inline-block; border-radius: 1em; padding: 0 .7em; margin: 0 .3em .3em 0; white-space: nowrap;
  background: var(--badge); }
.proven { background: var(--good); } .refuted { background: var(--bad); } .not { background: var(--open); }
ul { margin: .3rem 0; padding-left: 1.2rem; } .small { color: var(--soft); font-size: .9em; }
math { font-size: 1.05em; }
@media (max-width: 44rem) {
  table, tbody, tr, td { display: block; } tr:first-child { display: none; }
  td { border: 0; padding: .2rem 0; } tr { border-bottom: 1px solid var(--line); padding: .6rem 0; }
}
"""

_TOKEN = re.compile(
    r"\^\{([^}]*)\}|\^(\w+)|(max|det|[A-Za-zσ](?:_[A-Za-z])?\d?)|(\d+)|(ᵀ|⁻¹|⁰|…)|(\s+)|(.)"
)
_RAISED = {"ᵀ": "<mi>T</mi>", "⁻¹": "<mn>−1</mn>", "⁰": "<mn>0</mn>"}


_WORDS = re.compile(r"(?!max|det)\b[a-z]{3,}")


def mathml(formula: str) -> str:
    """Return a formula such as ``σ(XAXᵀ)XV`` as MathML.

    >>> mathml("Xᵀ")
    '<math><msup><mi>X</mi><mi>T</mi></msup></math>'
    """
    parts: list[str] = []
    for long, short, name, number, raised, space, other in _TOKEN.findall(formula):
        power = long or short
        if power or raised in _RAISED:
            exponent = _RAISED.get(raised) or f"<mrow>{_row(power)}</mrow>"
            base = parts.pop() if parts else "<mi></mi>"
            parts.append(f"<msup>{base}{exponent}</msup>")
        elif space:
            parts.append('<mspace width="0.25em"/>')
        else:
            parts.append(_atom(name, number, raised or other))
    return f"<math>{''.join(parts)}</math>"


def _row(text: str) -> str:
    return "".join(f"<mn>{c}</mn>" if c.isdigit() else f"<mo>{html.escape(c)}</mo>" for c in text)


def _atom(name: str, number: str, other: str) -> str:
    if name:
        letter, _, index = name.partition("_")
        return f"<msub><mi>{letter}</mi><mi>{index}</mi></msub>" if index else _identifier(name)
    if number:
        return f"<mn>{number}</mn>"
    if other in "ℝℤ":
        return f"<mi>{other}</mi>"
    return f'<mo stretchy="false">{html.escape(other)}</mo>'


def _identifier(name: str) -> str:
    letter, digits = name.rstrip("0123456789"), name[len(name.rstrip("0123456789")) :]
    return f"<msub><mi>{letter}</mi><mn>{digits}</mn></msub>" if digits else f"<mi>{name}</mi>"


def sentence(statement: str) -> str:
    """Return a statement, its words as text and its formulas as MathML."""
    before, colon, formula = statement.partition(": ")
    words = before.removeprefix("for all ")
    inputs, condition, what = words.partition(" with ")
    quantified = ", ".join(mathml(part) for part in inputs.split(", ")) + html.escape(condition + what)
    # What stands before the first words is a formula: "T(X) = σ(X), row by row".
    first, comma, rest = formula.partition(", ")
    if not _WORDS.search(formula):
        shown = mathml(formula)
    elif not _WORDS.search(first) and _WORDS.search(rest):
        shown = mathml(first) + html.escape(comma + rest)
    else:
        shown = html.escape(formula)
    return f"for all {quantified}{colon}{shown}" if words != before else html.escape(statement)


def page(findings: Sequence[Finding]) -> str:
    """Write the whole page."""
    body = "".join(_table_row(finding) for finding in findings)
    proven = sum(bool(verdict.holds) for finding in findings for verdict in finding.proofs)
    refuted = sum(v.holds is False for finding in findings for v in finding.refutations.values())
    style = f"<style>{_STYLE}</style>"
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy(style)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>The claims of the paper</title>{style}<h1>The claims of the paper</h1>"
        f"<p>{proven} statements are proven here for all inputs, by running the program on symbols in every "
        f"case; {refuted} claims, as printed, are refuted by numbers, and their corrections proven. "
        "<em>Measured</em> means compared with direct computation on numbers, which is not a proof; "
        "<em>counted</em> means that heads and layers are as claimed.</p>"
        f"<table><tr><th>paper</th><th>status</th><th>what is known</th></tr>{body}</table></html>\n"
    )


def _table_row(finding: Finding) -> str:
    item = finding.item
    badges = "".join(
        f'<span class="status {status.split()[0]}">{status}</span>' for status in finding.status
    )
    lines = []
    for verdict in finding.proofs:
        mark = "" if verdict.holds else "<b>not proven:</b> "
        recipe = f' <span class="small">({verdict.claim.recipe})</span>' if verdict.claim.recipe else ""
        lines.append(f"<li>{mark}{sentence(verdict.statement)}{recipe}</li>")
    for number, verdict in finding.refutations.items():
        problem = html.escape(str(verdict).splitlines()[-1])
        lines.append(f"<li><b>{number}</b> is not true: {sentence(verdict.statement)}. {problem}</li>")
    known = f"<ul>{''.join(dict.fromkeys(lines))}</ul>" if lines else ""
    return (
        f"<tr><td><b>{html.escape(item.paper)}</b><br><span class=small>{html.escape(item.claim)}</span></td>"
        f"<td>{badges}</td><td>{known or html.escape(', '.join(item.functions))}</td></tr>"
    )
