"""Write a page about the claims of the paper: proofs, refutations, measurements and counts.

Formulas are MathML that is generated from the claims, so the page needs no script.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Sequence

from locum import __version__
from locum.interface.display.html import document, today
from locum.paper.errata import ERRATA
from locum.paper.findings import Finding
from locum.proofs.claims.claim import Claim
from locum.proofs.claims.formula import Formula
from locum.proofs.claims.statement import ENTRY_BY_ENTRY, FUNCTIONS, list_parts
from locum.proofs.prover.prove import Unproven, Verdict

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
    """Return the statement of a claim as HTML, with formulas as MathML."""
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
    # Tokens and positions are copied from the text of the statement.
    read = claim.statement.partition(": ")[2].partition(" = ")[0]
    return (
        f"for all {inputs}{' with ' + conditions if conditions else ''}: {_read(read, claim)} = "
        f"<span class=formula>{mathml(claim.reference)}</span>, P being <code>{claim.hash[:16]}…</code>"
    )


def _read(text: str, claim: Claim) -> str:
    """Format names of matrices and repeated numbers in the tokens and positions of a statement."""
    names = {x.attribute[0] for x in claim.inputs}
    text = re.sub(
        r"[A-Za-z][A-Za-z0-9_]*",
        lambda word: f"<math>{name(word[0])}</math>" if word[0] in names else word[0],
        html.escape(text),
    )
    return re.sub(r"\^\{([0-9]+)\}", r"<sup>\1</sup>", text)


def legend(findings: Sequence[Finding]) -> list[str]:
    """Return the explanations of operations at the ends of statements, without repetitions."""
    verdicts = [v for f in findings for v in (*f.proofs, *f.refutations.values())]
    ends = [verdict.statement.partition("…; ")[2] for verdict in verdicts]
    return list(dict.fromkeys(line for end in ends if end for line in end.split("; ")))


def file_of(verdict: Verdict) -> str:
    """Return the name of the certificate file of a proof or refutation."""
    kind = "refuted" if verdict.holds is False else "proven"
    title = re.sub(r"[^A-Za-z0-9.]+", "-", verdict.claim.title).strip("-")
    return f"{kind}-{title}.json"


def certificates(findings: Sequence[Finding]) -> dict[str, str]:
    """Return a mapping from file names to the certificates of all proofs and refutations as JSON."""
    verdicts = [v for f in findings for v in (*f.proofs, *f.refutations.values())]
    return {file_of(v): json.dumps(v.certificate) for v in verdicts if not isinstance(v, Unproven)}


def page(findings: Sequence[Finding], folder: str = "certificates") -> str:
    """Return the page of claims as HTML.

    ``folder`` is the name of the folder next to the page that contains the certificates.
    """
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
        f"<p>{proven} statements are proven for all inputs of a shape, over the real numbers (or the integers, "
        "marked ℤ). Floating-point execution has additional errors. "
        f"{refuted} printed statements are refuted by counterexamples, and the corrected statements are proven. "
        "A checker with separate evaluators and arithmetic has checked a certificate of each statement. The "
        "command next to a statement checks the certificate again. P is the program with the given hash. P⟨…⟩ is the "
        "result of P on the tokens between the brackets, at the positions after the brackets. Symbols are explained below. "
        "<em>Measured</em> means compared with a direct computation on numbers, which is not a proof. "
        "<em>Counted</em> means that the numbers of heads and layers are as claimed. <em>For all shapes</em> lists the theorems "
        "in <code>proofs/</code> (file and name) that <code>make coq</code> checks. The documentation contains this list in "
        "<code>docs/paper.md</code>, and describes proofs in <code>docs/verification.md</code> and "
        "<code>docs/proofs.md</code>.</p>"
        f"<table>{contents}</table>{body}"
        f"<section><h2>Symbols</h2><ul><li>σ is the softmax of each row</li>{symbols}</ul></section>"
        f"{_errata(findings)}"
    )
    return document("The claims of the paper", _STYLE, text)


def _evidence(verdict: Verdict, folder: str) -> str:
    """Return the title of a claim, a link to its certificate, and the command that checks it.

    For an unproven claim, return the text of the verdict.
    """
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
    """Return a list of the errata of the findings, each with an anchor for links."""
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
    """Format code in backquotes, emphasis in asterisks, and subscripts and superscripts as HTML."""
    parts = re.split(r"`([^`]*)`", html.escape(text))
    for place in range(0, len(parts), 2):
        stressed = re.sub(r"\*([^*]+)\*", r"<em>\1</em>", parts[place])
        parts[place] = _with_indices(re.sub(r"\^\(([^)]*)\)", r"<sup>\1</sup>", stressed))
    return "".join(f"<code>{part}</code>" if place % 2 else part for place, part in enumerate(parts))


def _with_indices(text: str) -> str:
    """Format the text after an underscore as a subscript, as in Match_3."""
    return re.sub(r"\b([A-Za-zσ]+)_([A-Za-z0-9]+)\b", r"\1<sub>\2</sub>", text)


_SUM, _PRODUCT, _ATOM = range(3)
#: Greek letters by their names in the names of inputs.
_GREEK = {"epsilon": "ε", "omega": "ω", "phi": "φ"}
_WORDS = FUNCTIONS


def mathml(formula: Formula) -> str:
    """Return a formula as MathML.

    >>> mathml(Formula.input("X", 2, 3).T)
    '<math><msup><mi>X</mi><mi>T</mi></msup></math>'
    """
    parts: dict[int, tuple[str, int]] = {}
    for part in list_parts(formula):
        parts[id(part)] = _set(part, [parts[id(operand)] for operand in part.operands])
    return f"<math>{parts[id(formula)][0]}</math>"


def name(text: str) -> str:
    """Format a name of a matrix as MathML; text after an underscore, or final digits, are a subscript.

    >>> name("W_Q"), name("A0"), name("epsilon")
    ('<msub><mi>W</mi><mi>Q</mi></msub>', '<msub><mi>A</mi><mn>0</mn></msub>', '<mi>ε</mi>')
    """
    letter, _, index = text.partition("_")
    if index:
        return f"<msub><mi>{_letter(letter)}</mi><mi>{_letter(index)}</mi></msub>"
    stem = text.rstrip("0123456789")
    digits = text[len(stem) :]
    base = _letter(stem)
    return f"<msub><mi>{base}</mi><mn>{digits}</mn></msub>" if digits else f"<mi>{base}</mi>"


def _letter(text: str) -> str:
    return html.escape(_GREEK.get(text, text))


def _sign(text: str) -> str:
    return f'<mo stretchy="false">{html.escape(text)}</mo>'


def _call(word: str, inside: str) -> tuple[str, int]:
    return f"<mi>{word}</mi>{_sign('(')}{inside}{_sign(')')}", _ATOM


def _set(formula: Formula, operands: Sequence[tuple[str, int]]) -> tuple[str, int]:
    def part(number: int, level: int) -> str:
        text, own = operands[number]
        return text if own >= level else f"{_sign('(')}{text}{_sign(')')}"

    op, attribute = formula.op, formula.attribute
    if op in ENTRY_BY_ENTRY and sum(one.op == "constant" for one in formula.operands) == 1:
        operands = [
            (_number(one.attribute[0]), _ATOM) if one.op == "constant" else text
            for one, text in zip(formula.operands, operands, strict=True)
        ]
    inside = _sign(",").join(text for text, _ in operands)
    match op:
        case "input":
            return name(attribute[0]), _ATOM
        case "constant":
            number = _number(attribute[0])
            if formula.shape == (1, 1):
                return number, _ATOM
            shape = f"<mrow><mn>{attribute[1]}</mn>{_sign('×')}<mn>{attribute[2]}</mn></mrow>"
            return f"<msub>{number}{shape}</msub>", _ATOM
        case "identity":
            return f"<msub><mi>I</mi><mn>{attribute}</mn></msub>", _ATOM
        case "entries" | "below" | "beside":
            columns = {"entries": attribute and attribute[1], "below": 1}.get(op, len(operands))
            rows = [operands[i : i + columns] for i in range(0, len(operands), columns)]
            cells = "".join(
                f"<mtr>{''.join(f'<mtd>{text}</mtd>' for text, _ in row)}</mtr>" for row in rows
            )
            return f"{_sign('[')}<mtable>{cells}</mtable>{_sign(']')}", _ATOM
        case "entry":
            i, j = attribute
            place = f"<mrow><mn>{i}</mn>{_sign(',')}<mn>{j}</mn></mrow>"
            return f"<msub>{_grouped(part(0, _ATOM))}{place}</msub>", _ATOM
        case "transpose":
            return f"<msup>{_grouped(part(0, _ATOM))}<mi>T</mi></msup>", _ATOM
        case "inverse":
            return f"<msup>{_grouped(part(0, _ATOM))}<mn>−1</mn></msup>", _ATOM
        case "matmul":
            return part(0, _PRODUCT) + part(1, _PRODUCT), _PRODUCT
        case "add" | "subtract":
            return part(0, _SUM) + _sign("+" if op == "add" else "−") + part(1, _PRODUCT), _SUM
        case "multiply":
            symbol = _sign("·" if formula.shape == (1, 1) else "⊙")
            return part(0, _ATOM) + symbol + part(1, _ATOM), _SUM
        case "divide":
            return f"<mfrac><mrow>{operands[0][0]}</mrow><mrow>{operands[1][0]}</mrow></mfrac>", _ATOM
        case "negate":
            return _sign("−") + part(0, _PRODUCT), _SUM
        case "absolute":
            return f"{_sign('|')}{inside}{_sign('|')}", _ATOM
        case "softmax":
            symbol = "<msub><mi>σ</mi><mtext>causal</mtext></msub>" if attribute else "<mi>σ</mi>"
            return f"{symbol}{_sign('(')}{inside}{_sign(')')}", _ATOM
        case "sort" | "match2":
            word = "sort" if op == "sort" else "Match"
            symbol = f"<msub><mi>{word}</mi><mn>{attribute}</mn></msub>"
            return f"{symbol}{_sign('(')}{inside}{_sign(')')}", _ATOM
    return _call(_WORDS.get(op, op), inside)


def _number(text: str) -> str:
    top, _, bottom = text.partition("/")
    return f"<mfrac><mn>{top}</mn><mn>{bottom}</mn></mfrac>" if bottom else f"<mn>{top}</mn>"


def _grouped(text: str) -> str:
    return text if text.startswith("<mi>") and text.count("<mi>") == 1 else f"<mrow>{text}</mrow>"
