"""Reproduce the paper on one page: every statement as printed, what was run, and the verdict.

Nothing is computed here that another module computes: evidence, findings, figures, the comparison and
the errata are what the report puts together. Every verdict is ``evidence.decide`` of what was run.
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
    """One statement: as printed, what was run, and the verdict that follows."""

    key: str
    kind: str
    title: str
    line: int
    labelled: bool
    quote: str
    #: The listing that is printed there, and the transcriptions of the algorithm, as text.
    listing: str
    transcriptions: tuple[str, ...]
    evidence: tuple[Evidence, ...]
    #: A key of ``evidence.STATUSES``, and the sentence of the verdict.
    status: str
    verdict: str
    #: The errata that something was found for.
    errata: tuple[str, ...]
    #: Theorems for all shapes, which ``make coq`` checks.
    theorems: tuple[str, ...]
    unchecked: tuple[str, ...]
    command: str
    seconds: float

    @property
    def holds(self) -> bool:
        """Tell whether our side holds, and an erratum explains whatever is wrong as printed."""
        return self.status != "fails" and all(each.erratum for each in find_wrong(self.evidence))

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        evidence = [each._asdict() for each in self.evidence]
        return asdict(self) | {"evidence": evidence, "holds": self.holds}


@dataclass(frozen=True)
class Curve:
    """What was counted against n, for a chart."""

    title: str
    claimed: str
    #: The values of n, and for each name those of the count.
    n: tuple[int, ...]
    counts: dict[str, tuple[int, ...]]


@dataclass(frozen=True)
class Table:
    """A table of the paper: claimed and measured columns."""

    title: str
    names: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Report:
    """The whole reproduction."""

    rows: tuple[Row, ...]
    comparison: tuple[rivals.Row, ...]
    tables: tuple[Table, ...]
    curves: tuple[Curve, ...]
    environment: dict[str, str]
    hashes: dict[str, str]
    seconds: float
    proofs: int
    refutations: int
    #: How many errata there are of each severity.
    errata: dict[str, int]

    @property
    def unshown(self) -> tuple[str, ...]:
        """List the errata that no run of this report shows."""
        shown = {number for row in self.rows for number in row.errata}
        return tuple(number for number in ERRATA if number not in shown)

    @property
    def holds(self) -> bool:
        """Tell whether every row holds, and every erratum is shown by something that was run."""
        return all(row.holds for row in self.rows) and not self.unshown

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        rows = [row.to_dict() for row in self.rows]
        comparison = [row.to_dict() for row in self.comparison]
        return asdict(self) | {"rows": rows, "comparison": comparison, "holds": self.holds}


def reproduce(progress: Progress = lambda done, total, label: None) -> Report:
    """Run everything that the paper states."""
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
    """Run what one statement needs, and nothing else.

    >>> reproduce_one("algo:trans").verdict
    'right in every run'
    """
    if key not in STATEMENTS:
        known = ", ".join(STATEMENTS)
        raise InputError(f"expected the name of a statement, got {key!r}; try one of {known}")
    statement = STATEMENTS[key]
    evidence, seconds = _run_checks(statement)
    needed = _find_items(statement, _list_errata(evidence))
    return _judge(statement, evidence, seconds, prove_all(progress=progress, keys=needed))


def examine(statement: Statement, findings: list[Finding]) -> Row:
    """Run the checks of a statement, collect what is proven, and derive the verdict."""
    return _judge(statement, *_run_checks(statement), findings)


def _run_checks(statement: Statement) -> tuple[list[Evidence], float]:
    started = time.perf_counter()
    evidence = [each for check in statement.checks for each in check()]
    return evidence, time.perf_counter() - started


def _list_errata(evidence: list[Evidence]) -> tuple[str, ...]:
    """List the errata that something was found for, in the order of the evidence."""
    return tuple(dict.fromkeys(each.erratum for each in find_wrong(evidence) if each.erratum))


def _find_items(statement: Statement, errata: Collection[str]) -> Collection[str]:
    """Find the items that a statement shows, and those with its proofs and refutations."""
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
    """Add what is proven and refuted to what was run, and derive the verdict."""
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
    """Say what was counted and checked of our own functions."""
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
    """Make Table 1: our constructions in the paper's recipes, and the looped transformers."""
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
    """Make Table 2: heads in all, counted at several orders."""
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
    """Count heads, layers and tokens of U against n, and heads of a product."""
    sizes = tuple(range(1, 9))
    simulators = {
        recipe: [UniversalSimulator(n, n, n, recipe=recipe) for n in sizes]
        for recipe in ("paper", "fetch", "tiled")
    }

    def of_u(title: str, claimed: str, count: Callable[[UniversalSimulator], int]) -> Curve:
        counts = {recipe: tuple(map(count, each)) for recipe, each in simulators.items()}
        return Curve(title, claimed, sizes, counts)

    products = {
        recipe: tuple(sum(_product(n, recipe).sop.architecture.heads) for n in sizes)
        for recipe in ("paper", "fetch", "tiled", "scatter")
    }
    heads = "heads of U of order (n, n, n), all layers"
    return (
        of_u(heads, "polynomial in n", lambda U: sum(U.architecture.heads)),
        of_u("layers of U of order (n, n, n)", "independent of n", lambda U: len(U.architecture.heads)),
        of_u("tokens that U reads", "n·d + d² + d·d_v = 3n²", lambda U: U.length),
        Curve("heads of a product of two n × n matrices, all layers", "O(rc) = O(n²)", sizes, products),
    )
