"""Write the claims of the paper as a page: what is proven, refuted, measured and counted.

Formulas are MathML, which browsers render by themselves: the page needs no network and no script.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Sequence

from locum import __version__
from locum.display.formulas import mathml, name
from locum.display.html import document, today
from locum.paper.errata import ERRATA
from locum.paper.findings import Finding
from locum.verification.claims.claim import Claim
from locum.verification.prover.prove import Unproven, Verdict

_STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #57606a; --line: #d0d7de; --page: #fff; --badge: #eaeef2; --good: #dafbe1;
  --bad: #ffebe9; --open: #fff1c2; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e9ef; --soft: #95a3b3; --line: #2d3742; --page: #0f141a; --badge: #2a333d; --good: #17422a;
    --bad: #55201d; --open: #4d3f10; }
}
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 58rem; padding: 0 1rem;
  color: var(--ink); background: var(--page); overflow-wrap: break-word; }
h2 { font-size: 1.15rem; margin: 0; } h2 a { text-decoration: none; }
section { border-top: 1px solid var(--line); padding: 1rem 0; }
section > p { margin: .3rem 0; }
.status { display: inline-block; border-radius: 1em; padding: 0 .7em; margin: 0 .3em .3em 0; white-space: nowrap;
  background: var(--badge); }
.proven { background: var(--good); } .refuted { background: var(--bad); } .not { background: var(--open); }
ul { margin: .5rem 0; padding-left: 1.2rem; } li { margin-bottom: .6rem; }
.small { color: var(--soft); font-size: .9em; }
.formula { display: inline-block; max-width: 100%; overflow-x: auto; overflow-y: hidden; padding: .2em 0;
  vertical-align: middle; }
math { font-size: 1.05em; } a { color: inherit; } code { font-size: .92em; overflow-wrap: anywhere; }
td { padding: .15rem .8rem .15rem 0; vertical-align: top; }
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
        f"<span class=formula>{mathml(value)}</span> {'≠' if relation == '!=' else '&gt;'} 0"
        for value, relation in claim.conditions
    )
    # The tokens and positions are the same words as in the statement.
    read = claim.statement.partition(": ")[2].partition(" = ")[0]
    return (
        f"for all {inputs}{' with ' + conditions if conditions else ''}: {_read(read, claim)} = "
        f"<span class=formula>{mathml(claim.reference)}</span>, P being <code>{claim.hash[:16]}…</code>"
    )


def _read(text: str, claim: Claim) -> str:
    """Set the tokens and positions of a statement: names of matrices, and how often a number comes."""
    names = {x.attribute[0] for x in claim.inputs}
    text = re.sub(
        r"[A-Za-z][A-Za-z0-9_]*",
        lambda word: f"<math>{name(word[0])}</math>" if word[0] in names else word[0],
        html.escape(text),
    )
    return re.sub(r"\^\{([0-9]+)\}", r"<sup>\1</sup>", text)


def legend(findings: Sequence[Finding]) -> list[str]:
    """List what the statements say at their ends of the operations in them, each once."""
    verdicts = [v for f in findings for v in (*f.proofs, *f.refutations.values())]
    ends = [verdict.statement.partition("…; ")[2] for verdict in verdicts]
    return list(dict.fromkeys(line for end in ends if end for line in end.split("; ")))


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
    body = "".join(_section(finding, folder) for finding in findings)
    contents = "".join(
        f'<tr><td><a href="#{finding.item.key}">{html.escape(finding.item.paper)}</a></td>'
        f"<td>{_badges(finding)}</td></tr>"
        for finding in findings
    )
    symbols = "".join(f"<li>{_with_indices(html.escape(line))}</li>" for line in legend(findings))
    proven = len({v.statement for finding in findings for v in finding.proofs if v.holds})
    refuted = sum(v.holds is False for finding in findings for v in finding.refutations.values())
    text = (
        "<h1>The claims of the paper</h1>"
        f"<p class=small>Locum {html.escape(__version__)}, {today()}</p>"
        f"<p>{proven} statements are proven here, each at its shape, for all inputs, over the real numbers "
        "(or the integers, where it says ℤ); floating point has an error of its own. "
        f"{refuted} statements, as the paper prints them, are refuted by numbers, and corrected ones proven. "
        "Each has a certificate, which was checked by a checker with its own evaluators and arithmetic. The "
        "command next to a statement checks its certificate again. P is the program with the hash named there; P⟨…⟩ is its "
        "result on the tokens between the brackets, at the positions behind them; symbols are explained below. "
        "<em>Measured</em> means compared with direct computation on numbers, which is not a proof; "
        "<em>counted</em> means that heads and layers are as claimed. <em>For all shapes</em> names the theorem "
        "in <code>proofs/</code> (its file, then its name) that <code>make coq</code> checks. The documentation has this list in "
        "<code>docs/paper.md</code>, how proofs work in <code>docs/verification.md</code> and "
        "<code>docs/proofs.md</code>.</p>"
        f"<table>{contents}</table>{body}"
        f"<section><h2>Symbols</h2><ul><li>σ is the softmax of each row</li>{symbols}</ul></section>"
        f"{_errata(findings)}"
    )
    return document("The claims of the paper", _STYLE, text)


def _evidence(verdict: Verdict, folder: str) -> str:
    """Say which program it is about, where the certificate is, and how to check it."""
    if isinstance(verdict, Unproven):
        return f"<br><span class=small>{html.escape(str(verdict))}</span>"
    path = html.escape(f"{folder}/{file_of(verdict)}")
    return (
        f'<br><span class="small">{html.escape(verdict.claim.title)}: <a href="{path}">certificate</a>, '
        f"<code>{verdict.check_command(path)}</code></span>"
    )


def _badges(finding: Finding) -> str:
    return "".join(
        f'<span class="status {status.split()[0]}">{status}</span>' for status in finding.status
    )


def _section(finding: Finding, folder: str) -> str:
    item = finding.item
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
    theorems = ", ".join(f"<code>{html.escape(theorem)}</code>" for theorem in item.theorems)
    if theorems:
        lines.append(f"<li>For all shapes: {theorems}</li>")
    key = html.escape(item.key)
    details = [f"<code>{html.escape(', '.join(item.functions))}</code>"]
    if item.errata:
        links = ", ".join(f'<a href="#{number}">{number}</a>' for number in item.errata)
        details.append(f"errata {links}")
    details.append(f"<code>{html.escape(item.command)}</code>")
    return (
        f'<section id="{key}"><h2><a href="#{key}">{html.escape(item.paper)}</a></h2>'
        f"<p>{html.escape(item.claim)}</p><p>{_badges(finding)}</p>"
        f"<ul>{''.join(dict.fromkeys(lines))}<li>Measured: {html.escape(item.measured)}</li></ul>"
        f"<p class=small>{' · '.join(details)}</p></section>"
    )


def _errata(findings: Sequence[Finding]) -> str:
    """List the errata that the findings name, each at the place that they link to."""
    numbers = dict.fromkeys(number for finding in findings for number in finding.item.errata)
    rows = "".join(
        f'<li id="{number}"><b>{number}</b>, {_with_code(erratum.where)}: '
        f"{'; '.join(f'<code>{html.escape(quote)}</code>' for quote in erratum.quotes)}. "
        f"{_with_code(erratum.wrong)} Counterexample: {_with_code(erratum.counterexample)} "
        f"Correction: {_with_code(erratum.right)}</li>"
        for number, erratum in ERRATA.items()
        if number in numbers
    )
    return f"<section><h2>Errata</h2><ul>{rows}</ul></section>" if rows else ""


def _with_code(text: str) -> str:
    """Set what stands between backquotes as code, between stars with stress; indices and powers."""
    parts = re.split(r"`([^`]*)`", html.escape(text))
    for place in range(0, len(parts), 2):
        stressed = re.sub(r"\*([^*]+)\*", r"<em>\1</em>", parts[place])
        parts[place] = _with_indices(re.sub(r"\^\(([^)]*)\)", r"<sup>\1</sup>", stressed))
    return "".join(f"<code>{part}</code>" if place % 2 else part for place, part in enumerate(parts))


def _with_indices(text: str) -> str:
    """Set what follows an underscore as an index: Match_3."""
    return re.sub(r"\b([A-Za-zσ]+)_([A-Za-z0-9]+)\b", r"\1<sub>\2</sub>", text)
