"""Reproduce the paper on one page: every label as printed, as regenerated, with a verdict.

Nothing is computed here that another module computes: findings, figures, the comparison and the errata
are what the report puts together.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from locum import __version__
from locum import constructions as c
from locum.constructions import Matrix
from locum.language.python import tokens
from locum.paper import compare as rivals
from locum.paper.checks import SQUARE
from locum.paper.errata import ERRATA, SEVERITIES
from locum.paper.figure2 import PRINTED, figure2
from locum.paper.findings import Finding, Progress, prove_all
from locum.paper.items import ITEMS
from locum.paper.labels import LABELS, Label
from locum.simulators import UniversalSimulator


@dataclass(frozen=True)
class Row:
    """One label: as printed, as regenerated, the verdict, and how to see it again."""

    label: str
    kind: str
    title: str
    line: int
    printed: str
    regenerated: str
    verdict: str
    command: str
    seconds: float
    errata: tuple[str, ...] = ()


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
    """A table of the paper, with what was measured beside what is claimed."""

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
    holds: bool
    errata: dict[str, int] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return asdict(self) | {"comparison": [row.to_dict() for row in self.comparison]}


def reproduce(progress: Progress = lambda done, total, label: None) -> Report:
    """Regenerate everything the paper prints."""
    started = time.perf_counter()
    findings: dict[str, Finding] = {}
    spent: dict[str, float] = {}

    def proving(done: int, total: int, title: str) -> None:
        progress(done, total + rivals.MEASURED, title)

    for finding in prove_all(progress=proving):
        findings[finding.item.key] = finding
        spent[finding.item.key] = sum(
            verdict.seconds for verdict in (*finding.proofs, *finding.refutations.values())
        )
    comparison = rivals.compare(
        lambda done, total, label: progress(total + done, 2 * total, f"comparing {label}")
    )
    rows = tuple(_row(label, findings, spent) for label in LABELS.values())
    verdicts = [v for f in findings.values() for v in f.proofs]
    refuted = [v for f in findings.values() for v in f.refutations.values()]
    counts = {letter: sum(e.severity == letter for e in ERRATA.values()) for letter in SEVERITIES}
    return Report(
        rows=rows,
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
        proofs=len(verdicts),
        refutations=len(refuted),
        holds=all(finding.holds for finding in findings.values()),
        errata=counts,
    )


def _row(label: Label, findings: dict[str, Finding], spent: dict[str, float]) -> Row:
    regenerated, verdict, command, seconds = "—", "claims nothing", "", 0.0
    if label.item:
        finding = findings[label.item]
        started = time.perf_counter()
        special = _SPECIAL.get(label.label)
        regenerated, verdict = (
            special() if special else (_regenerated(label, finding), _verdict(label, finding))
        )
        command = ITEMS[label.item].command
        seconds = time.perf_counter() - started + spent[label.item]
    return Row(
        label.label, label.kind, label.title, label.line, label.printed, regenerated, verdict,
        command, seconds, label.errata,
    )  # fmt: skip


def _regenerated(label: Label, finding: Finding) -> str:
    """Say what was built, counted, checked and proven of an item."""
    parts = []
    if finding.heads:
        counted = "; ".join(
            f"{recipe}: {', '.join(map(str, heads)) or 'no'} heads"
            for recipe, heads in finding.heads.items()
        )
        parts.append(f"{counted} (by layer)")
    parts.append("an instance agrees with NumPy" if finding.checked else "an instance DISAGREES")
    if finding.proofs:
        shapes = "; ".join(verdict.claim.title for verdict in finding.proofs)
        parts.append(f"proven for all inputs: {shapes}")
    if finding.item.theorems:
        parts.append(f"for all shapes, by `make coq`: {', '.join(finding.item.theorems)}")
    for number, verdict in finding.refutations.items():
        if number in label.errata:
            parts.append(f"{number} refuted as printed: {str(verdict).splitlines()[-1].strip()}")
    return ". ".join(parts) + "."


def _verdict(label: Label, finding: Finding) -> str:
    if not finding.holds:
        return "does not hold"
    proven = ", proven for all inputs at these shapes" if finding.proofs else ", on instances"
    errata = ", ".join(label.errata)
    if any(number in finding.refutations for number in label.errata):
        return f"wrong as printed (refuted by numbers), right as corrected in {errata}{proven}"
    return (f"right up to {errata}" if errata else "right") + proven


def _figure() -> tuple[str, str]:
    demonstration = figure2(base=2.718)
    steps, errors = [], {}
    for name, printed in PRINTED.items():
        step = demonstration[name]
        errors[name] = float(np.abs(step.matrix - step.direct).max())
        digits = " ".join(f"{value:.3f}" for value in step.matrix.ravel())
        same = "as printed" if demonstration.agrees(name) else f"printed: {printed.matrix}"
        steps.append(f"{printed.name} = {digits} ({same})")
    ends = ("softmax", "output")
    text = f"{'; '.join(steps)}; errors {' and '.join(f'{errors[name]:.6e}' for name in ends)}"
    good = demonstration.reproduced and all(
        f"{errors[name]:.6e}" == f"{PRINTED[name].error:.6e}" for name in ends
    )
    return text, "same digits, with 2.718 for e (E1)" if good else "other digits"


def _inverse() -> tuple[str, str]:
    program = c.inverse(Matrix(tokens, 3, 3), "paper", order=3)
    result = np.asarray(program.run(SQUARE.ravel().tolist()))
    error = float(np.abs(result - np.linalg.inv(SQUARE)).max())
    digits = "; ".join(" ".join(f"{value:.6f}" for value in line) for line in result)
    return (
        f"A⁻¹ = ({digits}), within {error:.0e} of NumPy's; {program.sop.architecture}",
        "regenerated; the figure prints no digits of the result" if error < 1e-12 else "other digits",
    )


_SPECIAL: dict[str, Callable[[], tuple[str, str]]] = {
    "fig:simulationexample": _figure,
    "fig:completeinverse": _inverse,
    "tab:comparison": lambda: (
        "with measured columns, below",
        "ours as claimed or with fewer layers; E20 on the table's claims; the rivals are reconstructions",
    ),
    "tab:1": lambda: ("with measured columns, below", "grows as claimed; E20 on what the columns mean"),
}


def _first_table(comparison: list[rivals.Row]) -> Table:
    """Make Table 1: ours in the paper's recipes beside the looped transformers."""
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

    def counted(name: str, claimed: str, build: Callable[[int], Matrix]) -> tuple[str, ...]:
        return name, claimed, *(str(sum(build(r).sop.architecture.heads)) for r in orders)

    rows = (
        counted("transposition", "O(1)", lambda r: c.transpose(Matrix(tokens, r, r), "paper")),
        counted("softmax", "O(r)", lambda r: c.softmax(Matrix(tokens, r, r), stable=False)),
        counted("multiplication", "O(rc)", lambda r: _product(r, "paper")),
        counted("MaxMin of 2r numbers", "O(1)", lambda r: c.maxmin(Matrix(tokens, 1, 2 * r), "paper")),
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
