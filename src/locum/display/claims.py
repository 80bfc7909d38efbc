"""Write the claims of the paper as a page: what is proven, refuted, measured and counted.

Formulas are MathML, which browsers render by themselves: the page needs no network and no script.
"""

from __future__ import annotations

import datetime
import html
import json
import re
from collections.abc import Sequence

from locum import __version__
from locum.display.formulas import mathml, name
from locum.display.html import policy
from locum.paper.findings import Finding
from locum.verification.claims.claim import Claim
from locum.verification.prover.prove import Unproven, Verdict

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
math { font-size: 1.05em; } a { color: inherit; } code { font-size: .92em; }
@media (max-width: 44rem) {
  table, tbody, tr, td { display: block; } tr:first-child { display: none; }
  td { border: 0; padding: .2rem 0; } tr { border-bottom: 1px solid var(--line); padding: .6rem 0; }
}
"""


def sentence(claim: Claim) -> str:
    """Return a claim's statement, its formulas as MathML."""
    domain = "ℤ" if claim.integer else "ℝ"
    inputs = ", ".join(
        f"<math>{name(x.attribute[0])}<mo>∈</mo><msup><mi>{domain}</mi>"
        f"<mrow><mn>{x.rows}</mn><mo>×</mo><mn>{x.columns}</mn></mrow></msup></math>"
        for x in claim.inputs
    )
    conditions = " and ".join(
        f"{mathml(value)} {'≠' if relation == '!=' else '&gt;'} 0"
        for value, relation in claim.conditions
    )
    # The tokens and positions are the same words as in the statement.
    read = claim.statement.partition(": ")[2].partition(" = ")[0]
    legend = claim.statement.split("…; ")[1:]
    return (
        f"for all {inputs}{' with ' + conditions if conditions else ''}: {html.escape(read)} = "
        f"{mathml(claim.reference)}, P being <code>{claim.hash[:16]}…</code>"
        f"{html.escape('; ' + legend[0]) if legend else ''}"
    )


def file_of(verdict: Verdict) -> str:
    """Return the name of the file that holds the certificate of a proof or refutation."""
    kind = "refuted" if verdict.holds is False else "proven"
    title = re.sub(r"[^A-Za-z0-9.]+", "-", verdict.claim.title).strip("-")
    return f"{kind}-{title}.json"


def certificates(findings: Sequence[Finding]) -> dict[str, str]:
    """Return the certificates of all proofs and refutations, by the names of their files."""
    verdicts = [v for f in findings for v in (*f.proofs, *f.refutations.values())]
    return {file_of(v): json.dumps(v.certificate) for v in verdicts if not isinstance(v, Unproven)}


def page(findings: Sequence[Finding], folder: str = "certificates") -> str:
    """Write the whole page; ``folder`` holds the certificates, beside it."""
    body = "".join(_table_row(finding, folder) for finding in findings)
    proven = len({v.statement for finding in findings for v in finding.proofs if v.holds})
    refuted = sum(v.holds is False for finding in findings for v in finding.refutations.values())
    style = f"<style>{_STYLE}</style>"
    today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy(style)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>The claims of the paper</title>{style}<h1>The claims of the paper</h1>"
        f"<p class=small>Locum {html.escape(__version__)}, {today}</p>"
        f"<p>{proven} statements are proven here, each at its shape, for all inputs, over the real numbers "
        "(or the integers, where it says ℤ); floating point has an error of its own. "
        f"{refuted} statements, as the paper prints them, are refuted by numbers, and corrected ones proven. "
        "Each has a certificate, which was checked by code that shares nothing with the prover, and can be "
        "checked again by the command beside it. P is the program with the hash named there; P⟨…⟩ is its "
        "result on the tokens between the brackets, at the positions behind them. "
        "<em>Measured</em> means compared with direct computation on numbers, which is not a proof; "
        "<em>counted</em> means that heads and layers are as claimed. <em>All shapes</em> names the theorem in "
        "<code>proofs/</code> (its file, then its name) that <code>make coq</code> checks.</p>"
        f"<table><tr><th>paper</th><th>status</th><th>all inputs</th><th>all shapes</th></tr>{body}</table></html>\n"
    )


def _evidence(verdict: Verdict, folder: str) -> str:
    """Say which program it is about, where the certificate is, and how to check it."""
    if isinstance(verdict, Unproven):
        return f"<br><span class=small>{html.escape(str(verdict))}</span>"
    path = html.escape(f"{folder}/{file_of(verdict)}")
    return (
        f'<br><span class="small">{html.escape(verdict.claim.title)}: <a href="{path}">certificate</a>, '
        f"<code>locum check {path}</code></span>"
    )


def _table_row(finding: Finding, folder: str) -> str:
    item = finding.item
    badges = "".join(
        f'<span class="status {status.split()[0]}">{status}</span>' for status in finding.status
    )
    lines = []
    for verdict in finding.proofs:
        mark = "" if verdict.holds else "<b>not proven:</b> "
        lines.append(f"<li>{mark}{sentence(verdict.claim)}{_evidence(verdict, folder)}</li>")
    for number, verdict in finding.refutations.items():
        problem = html.escape(str(verdict).splitlines()[-1])
        lines.append(
            f"<li><b>{number}: the printed statement is refuted:</b> {sentence(verdict.claim)}. {problem}"
            f"{_evidence(verdict, folder)}</li>"
        )
    known = f"<ul>{''.join(dict.fromkeys(lines))}</ul>" if lines else ""
    theorems = "<br>".join(map(html.escape, item.theorems))
    measured = (
        f"measured: {html.escape(', '.join(item.functions))} on instances, against direct computation"
    )
    return (
        f'<tr id="{html.escape(item.key)}"><td><a href="#{html.escape(item.key)}"><b>{html.escape(item.paper)}</b></a>'
        f"<br><span class=small>{html.escape(item.claim)}</span></td>"
        f"<td>{badges}</td><td>{known or measured}</td><td class=small>{theorems}</td></tr>"
    )
