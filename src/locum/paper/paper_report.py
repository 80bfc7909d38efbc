"""Reproduce the paper on one page: its statements with quotations, checks and verdicts.

Other modules compute the evidence, findings, figures, comparison and errata, and the report combines
them. ``evidence.decide`` derives every verdict.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from locum import __version__
from locum import constructions as c
from locum.constructions import Matrix
from locum.errors import InputError
from locum.paper import compare as rivals
from locum.paper.cost_evidence import COSTS
from locum.paper.errata import ERRATA, SEVERITIES
from locum.paper.evidence import OURS, PRINTED, Evidence, decide, find_wrong
from locum.paper.findings import Finding, Progress, prove_all, work
from locum.paper.statements import STATEMENTS, Statement
from locum.rasp.python import tokens
from locum.simulators import UniversalSimulator


@dataclass(frozen=True)
class Row:
    """A row of the report: one statement with its printed text, the evidence and the verdict."""

    key: str
    kind: str
    title: str
    line: int
    labelled: bool
    quote: str
    #: The text of the printed listing, and the source code of the transcriptions of the algorithm.
    listing: str
    transcriptions: tuple[str, ...]
    #: The redrawn figure as the text of an SVG file, or an empty string.
    picture: str
    evidence: tuple[Evidence, ...]
    #: A key of ``evidence.STATUSES``, and the sentence of the verdict.
    status: str
    verdict: str
    #: The errata for which there is evidence.
    errata: tuple[str, ...]
    #: Theorems for all shapes, which ``make coq`` checks.
    theorems: tuple[str, ...]
    unchecked: tuple[str, ...]
    command: str
    seconds: float

    @property
    def holds(self) -> bool:
        """Whether Locum's results hold, and errata explain everything that is wrong as printed."""
        return self.status != "fails" and all(each.erratum for each in find_wrong(self.evidence))

    def to_dict(self) -> dict[str, Any]:
        """Return the row as a JSON-compatible dictionary."""
        evidence = [each._asdict() for each in self.evidence]
        return asdict(self) | {"evidence": evidence, "holds": self.holds}


@dataclass(frozen=True)
class Curve:
    """Counts as a function of n, for one chart of the report."""

    title: str
    #: What the y axis counts.
    unit: str
    claimed: str
    #: The values of n, and the counts by name.
    n: tuple[int, ...]
    counts: dict[str, tuple[int, ...]]


@dataclass(frozen=True)
class Table:
    """A table of the paper, with claimed and measured columns."""

    title: str
    names: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Report:
    """The report on the whole paper."""

    rows: tuple[Row, ...]
    comparison: tuple[rivals.Row, ...]
    tables: tuple[Table, ...]
    curves: tuple[Curve, ...]
    environment: dict[str, str]
    hashes: dict[str, str]
    seconds: float
    proofs: int
    refutations: int
    #: Number of errata of each severity.
    errata: dict[str, int]

    @property
    def unshown(self) -> tuple[str, ...]:
        """The errata that no run of this report demonstrates."""
        shown = {number for row in self.rows for number in row.errata}
        return tuple(number for number in ERRATA if number not in shown)

    @property
    def holds(self) -> bool:
        """Whether every row holds, and a run demonstrates every erratum."""
        return all(row.holds for row in self.rows) and not self.unshown

    def to_dict(self) -> dict[str, Any]:
        """Return the report as a JSON-compatible dictionary."""
        rows = [row.to_dict() for row in self.rows]
        comparison = [row.to_dict() for row in self.comparison]
        return asdict(self) | {"rows": rows, "comparison": comparison, "holds": self.holds}


def reproduce(progress: Progress = lambda done, total, label: None) -> Report:
    """Run the checks of all statements, the proofs and the comparison, and return the report."""
    started = time.perf_counter()

    def proving(done: int, total: int, title: str) -> None:
        progress(done, total + rivals.MEASURED + len(STATEMENTS), title)

    findings = prove_all(progress=proving)
    total = sum(len(finding.proofs) + len(finding.refutations) for finding in findings)
    steps = total + rivals.MEASURED + len(STATEMENTS)
    rows = []
    for done, statement in enumerate(STATEMENTS.values(), start=1):
        rows.append(examine(statement, findings))
        progress(total + done, steps, statement.title)
    comparison = rivals.compare(
        lambda done, _, label: progress(total + len(STATEMENTS) + done, steps, f"comparing {label}")
    )
    return Report(
        rows=tuple(rows),
        comparison=tuple(comparison),
        tables=(_first_table(comparison), _second_table()),
        curves=curves(),
        environment={
            "Locum": __version__,
            "Python": platform.python_version(),
            "NumPy": np.__version__,
            "machine": f"{platform.system()} {platform.machine()}",
        },
        hashes={
            f"U of order ({n}, {n}, {n}), {recipe}": UniversalSimulator(n, n, n, recipe=recipe).hash
            for n in (2, 3)
            for recipe in ("paper", "fetch")
        },
        seconds=time.perf_counter() - started,
        proofs=sum(len(finding.proofs) for finding in findings),
        refutations=sum(len(finding.refutations) for finding in findings),
        errata={
            letter: sum(erratum.severity == letter for erratum in ERRATA.values())
            for letter in SEVERITIES
        },
    )


def reproduce_one(key: str, progress: Progress = lambda done, total, label: None) -> Row:
    """Run the checks and proofs of the statement with this key, and return its row of the report.

    The case of the key is ignored.

    >>> reproduce_one("algo:trans").verdict
    'right in every run'
    """
    statement = {name.casefold(): each for name, each in STATEMENTS.items()}.get(key.casefold())
    if statement is None:
        known = "one of " + ", ".join(STATEMENTS)
        advice = f"locum paper errata {key}" if key.upper() in ERRATA else known
        raise InputError(f"expected the name of a statement, got {key!r}; try {advice}")
    evidence, seconds = _run_checks(statement)
    needed = _find_items(statement, _list_errata(evidence))
    return _judge(statement, evidence, seconds, prove_all(progress=progress, keys=needed))


def examine(statement: Statement, findings: list[Finding]) -> Row:
    """Run the checks of a statement, collect its proofs, and derive the verdict."""
    return _judge(statement, *_run_checks(statement), findings)


def _run_checks(statement: Statement) -> tuple[list[Evidence], float]:
    started = time.perf_counter()
    evidence = [each for check in statement.checks for each in check()]
    return evidence, time.perf_counter() - started


def _list_errata(evidence: list[Evidence]) -> tuple[str, ...]:
    """Return the errata for which there is evidence, in the order of the evidence."""
    return tuple(dict.fromkeys(each.erratum for each in find_wrong(evidence) if each.erratum))


def _find_items(statement: Statement, errata: Collection[str]) -> Collection[str]:
    """Return the keys of the items that a statement shows, or that contain its proofs or refutations."""
    proving = {
        key
        for key, job in work(everything=False).items()
        if any(instance.name in statement.claims for instance in job.proofs)
        or any(number in errata for number in job.refutations)
    }
    return proving.union(statement.items)


def _judge(
    statement: Statement, evidence: list[Evidence], seconds: float, findings: list[Finding]
) -> Row:
    """Add proofs and refutations to the evidence on a statement, and derive the verdict."""
    errata = _list_errata(evidence)
    about = PRINTED if statement.is_claimed else OURS
    proofs = [
        proof
        for finding in findings
        for proof in finding.proofs
        if proof.claim.name in statement.claims
    ]
    if proofs:
        titles = ", ".join(dict.fromkeys(proof.claim.title for proof in proofs))
        unproven = [proof.claim.title for proof in proofs if not proof.holds]
        result = f"NOT PROVEN: {', '.join(unproven)}" if unproven else "proven, certificates checked"
        evidence = [Evidence(f"for all inputs: {titles}", result, not unproven, about), *evidence]
    for finding in findings:
        for number, verdict in finding.refutations.items():
            if number in errata:
                result = str(verdict).splitlines()[-1].strip()
                what = f"for all inputs, as printed, at the shape {verdict.claim.shape}"
                evidence.append(Evidence(what, result, verdict.holds is not False, erratum=number))
                seconds += verdict.seconds
    mine = [finding for finding in findings if finding.item.key in statement.items]
    evidence += [each for finding in mine for each in _describe(finding)]
    decision = decide(
        evidence,
        {number: erratum.severity for number, erratum in ERRATA.items()},
        proven=bool(proofs),
        unchecked=bool(statement.unchecked),
    )
    return Row(
        key=statement.key,
        kind=statement.kind,
        title=statement.title,
        line=statement.line,
        labelled=statement.labelled,
        quote=statement.quote,
        listing=statement.text,
        transcriptions=tuple(statement.sources),
        picture="" if statement.picture is None else statement.picture(),
        evidence=tuple(evidence),
        status=decision.status,
        verdict=decision.sentence,
        errata=errata,
        theorems=tuple(theorem for finding in mine for theorem in finding.item.theorems),
        unchecked=statement.unchecked,
        command=f"locum paper report {statement.key}" if evidence else "",
        seconds=seconds + sum(proof.seconds for proof in proofs),
    )


def _describe(finding: Finding) -> list[Evidence]:
    """Return the counts of heads, and the check of Locum's functions, as evidence."""
    item = finding.item
    functions = ", ".join(f"`{name}`" for name in item.functions)
    what = f"our {functions}: {item.measured}"
    evidence = [Evidence(what, "agrees" if finding.checked else "DISAGREES", finding.checked, OURS)]
    if finding.heads:
        counted = "; ".join(
            f"{recipe}: {', '.join(map(str, heads)) or 'none'}"
            for recipe, heads in finding.heads.items()
        )
        expected = item.claimed_heads is None or finding.counted
        evidence.append(Evidence("heads by layer, counted", counted, expected, OURS))
    return evidence


def _first_table(comparison: list[rivals.Row]) -> Table:
    """Build Table 1: Locum's constructions in the paper's recipes, and the looped transformers."""
    chosen = ("ours, paper", rivals.RECONSTRUCTED)
    rows = [
        (
            f"{row.operation} {row.order}", row.system, row.claimed,
            f"{row.layers} layers × {row.passes}, {row.heads} heads",
            f"{(row.tokens or 0) * (1 if row.system in chosen[:1] else row.d_model or 0):,}",
            rivals.shown(row.error),
        )
        for row in comparison
        if row.status == "measured" and row.operation in ("transposition", "multiplication", "inversion")
        and (row.system in chosen or row.system.startswith(f"{rivals.RECONSTRUCTED},"))
    ]  # fmt: skip
    names = ("operation", "system", "claimed", "measured", "numbers of input", "worst relative error")
    return Table("Table 1 of the paper, with measured columns", names, tuple(rows))


def _second_table() -> Table:
    """Build Table 2 with the numbers of heads at several orders."""
    orders = range(2, 7)
    rows = tuple(
        (name, cost, *(str(sum(build(r).sop.architecture.heads)) for r in orders))
        for name, cost, build in COSTS
    )
    names = ("operation", "claimed cost", *(f"heads at r = c = {r}" for r in orders))
    return Table("Table 2 of the paper, with measured columns", names, rows)


def _product(r: int, recipe: str) -> Matrix:
    first, second = c.concatenate(tokens, (r, r), (r, r))
    return c.matmul(first, second, recipe)


def curves() -> tuple[Curve, ...]:
    """Count the heads, layers and tokens of U, and the heads of a product, as functions of n."""
    sizes = tuple(range(1, 9))
    simulators = {
        recipe: [UniversalSimulator(n, n, n, recipe=recipe) for n in sizes]
        for recipe in ("paper", "fetch", "tiled")
    }

    def of_u(unit: str, claimed: str, count: Callable[[UniversalSimulator], int]) -> Curve:
        counts = {recipe: tuple(map(count, each)) for recipe, each in simulators.items()}
        return Curve(f"{unit.capitalize()} of U of order (n, n, n)", unit, claimed, sizes, counts)

    products = {
        recipe: tuple(sum(_product(n, recipe).sop.architecture.heads) for n in sizes)
        for recipe in ("paper", "fetch", "tiled", "scatter")
    }
    return (
        of_u("heads", "polynomial in n", lambda U: sum(U.architecture.heads)),
        of_u("layers", "independent of n", lambda U: len(U.architecture.heads)),
        of_u("tokens", "n·d + d² + d·d_v = 3n²", lambda U: U.length),
        Curve("Heads of a product of two n × n matrices", "heads", "O(rc) = O(n²)", sizes, products),
    )
