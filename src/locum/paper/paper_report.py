"""Reproduce the paper on one page: its statements with quotations, checks and verdicts.

Other modules compute the evidence and list the errata, and the report combines them.
``evidence.decide`` derives every verdict.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from locum.errors import InputError
from locum.paper.errata import ERRATA, SEVERITIES
from locum.paper.evidence import OURS, PRINTED, Evidence, decide, find_wrong
from locum.paper.proven_claims import prove_instance
from locum.paper.statements import STATEMENTS, Statement

#: A function that is called with the number of finished statements, of all statements, and a title.
Progress = Callable[[int, int, str], None]


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
    evidence: tuple[Evidence, ...]
    #: A key of ``evidence.STATUSES``, and the sentence of the verdict.
    status: str
    verdict: str
    #: The errata of the failing evidence.
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
class Report:
    """The report on the whole paper."""

    rows: tuple[Row, ...]
    seconds: float
    #: Number of claims that were proven for all inputs.
    proofs: int
    #: Number of errata of each severity.
    errata: dict[str, int]

    @property
    def unshown(self) -> tuple[str, ...]:
        """The errata that lower no verdict of this report."""
        shown = {number for row in self.rows for number in row.errata}
        return tuple(
            number
            for number, erratum in ERRATA.items()
            if erratum.severity in SEVERITIES and number not in shown
        )

    @property
    def holds(self) -> bool:
        """Whether every row holds, and every erratum lowers a verdict."""
        return all(row.holds for row in self.rows) and not self.unshown

    def to_dict(self) -> dict[str, Any]:
        """Return the report as a JSON-compatible dictionary."""
        return asdict(self) | {"rows": [row.to_dict() for row in self.rows], "holds": self.holds}


def reproduce(progress: Progress = lambda done, total, label: None) -> Report:
    """Run the checks and proofs of all statements, and return the report."""
    started = time.perf_counter()
    rows = []
    for done, statement in enumerate(STATEMENTS.values(), start=1):
        rows.append(examine(statement))
        progress(done, len(STATEMENTS), statement.title)
    claims = {instance for statement in STATEMENTS.values() for instance in statement.claims}
    severities = [erratum.severity for erratum in ERRATA.values()]
    return Report(
        rows=tuple(rows),
        seconds=time.perf_counter() - started,
        proofs=sum(prove_instance(instance).holds is True for instance in claims),
        errata={severity: severities.count(severity) for severity in SEVERITIES},
    )


def reproduce_one(key: str) -> Row:
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
    return examine(statement)


def examine(statement: Statement) -> Row:
    """Run the checks and proofs of a statement, and derive the verdict."""
    started = time.perf_counter()
    evidence = [each for check in statement.checks for each in check()]
    evidence += [
        Evidence("the text", "no run", False, erratum=number) for number in statement.text_only
    ]
    if statement.claims:
        evidence.insert(0, _prove(statement))
    errata = dict.fromkeys(each.erratum for each in find_wrong(evidence) if each.erratum)
    decision = decide(
        evidence,
        {number: erratum.severity for number, erratum in ERRATA.items()},
        proven=bool(statement.claims),
        unchecked=bool(statement.unchecked),
        reading=statement.reading,
        claimed=statement.is_claimed,
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
        errata=tuple(errata),
        theorems=statement.theorems,
        unchecked=statement.unchecked,
        command=f"locum paper report {statement.key}" if evidence else "",
        seconds=time.perf_counter() - started,
    )


def _prove(statement: Statement) -> Evidence:
    """Prove the claims of a statement for all inputs at their shapes."""
    verdicts = [prove_instance(instance) for instance in statement.claims]
    titles = ", ".join(verdict.claim.title for verdict in verdicts)
    unproven = [verdict.claim.title for verdict in verdicts if not verdict.holds]
    result = f"NOT PROVEN: {', '.join(unproven)}" if unproven else "proven"
    about = PRINTED if statement.is_claimed else OURS
    return Evidence(f"for all inputs: {titles}", result, not unproven, about)
