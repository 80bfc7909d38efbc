"""Prove a claim: a proof, a refutation, or neither; the checker checks both.

>>> proof = prove("transpose", 2, 2)
>>> proof.holds, proof.cases
(True, 1)
>>> print(proof.statement)
for all X ∈ ℝ^{2×2}: P⟨X⟩ = Xᵀ, where P is the program 17475b75c3b25372…
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeAlias

from locum.errors import InputError
from locum.html_table import text_rows
from locum.verification.checker.check import Refuted, check
from locum.verification.checker.content import RejectedError
from locum.verification.claims.claim import Claim
from locum.verification.claims.named import claim as named_claim
from locum.verification.prover.certificate import certificate
from locum.verification.prover.limits import Limits
from locum.verification.prover.proof import NotProvenError, Progress, Prover
from locum.verification.prover.refute import counterexample, quick_counterexample

#: A number of a counterexample.
Number: TypeAlias = int | float | Fraction


class _Verdict:
    """What came of a claim."""

    claim: Claim
    #: True: proven; False: refuted; None: neither.
    holds: bool | None

    @property
    def statement(self) -> str:
        """What is proven, refuted, or neither."""
        return self.claim.statement

    def check_command(self, file: object) -> str:
        """Return the command that checks ``file`` again."""
        return f"locum prove check {file}"

    def _about(self, verdict: str) -> dict[str, Any]:
        """Begin a dictionary: the verdict, and what it is about."""
        claim = self.claim
        return {
            "verdict": verdict, "claim": claim.name, "shape": list(claim.shape),
            "recipe": claim.recipe or None, "tolerance": claim.tolerance,
            "statement": claim.statement, "program": claim.hash,
        }  # fmt: skip

    def _repr_html_(self) -> str:
        """Show a verdict in a notebook: what is claimed, the words, and what can be checked again."""
        verdict = {True: "proven", False: "refuted", None: "not proven"}[self.holds]
        rows = [("claim", self.claim.title), ("verdict", verdict), ("in words", str(self))]
        if self.holds is not None:
            rows.append(
                ("to check it again", "save .certificate as JSON, then: locum prove check FILE")
            )
        return text_rows("a claim for all inputs", rows)


@dataclass(frozen=True)
class Proof(_Verdict):
    """The claim holds for all inputs; the checker has accepted the certificate."""

    claim: Claim
    #: What ``locum prove check`` verifies, as JSON.
    certificate: dict[str, Any] = field(repr=False)
    cases: int
    #: Terms of the polynomials that were compared.
    terms: int
    #: Seconds spent searching, and checking.
    seconds: float
    checking: float
    holds: bool = True

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict as JSON, without the certificate."""
        return {
            **self._about("proven"), "cases": self.cases, "terms": self.terms,
            "seconds": self.seconds, "checking_seconds": self.checking,
        }  # fmt: skip

    def __str__(self) -> str:
        s = "" if self.cases == 1 else "s"
        return (
            f"Proven, {self.claim.title}: {self.statement}\n({self.cases:,} case{s}, {self.terms:,} "
            f"terms compared, {self.seconds:.2f} s; checked in {self.checking:.2f} s)"
        )


@dataclass(frozen=True)
class Refutation(_Verdict):
    """The claim does not hold: numbers show it, and the checker has evaluated them."""

    claim: Claim
    #: What ``locum prove check`` verifies, as JSON.
    certificate: dict[str, Any] = field(repr=False)
    refuted: Refuted
    seconds: float
    holds: bool = False

    @property
    def problem(self) -> str:
        """What is wrong with these numbers."""
        return self.refuted.problem

    @property
    def entries(self) -> tuple[Number, ...]:
        """The numbers, in the order of the inputs' entries; fractions where no float is the number."""
        return tuple(x for rows in self.inputs.values() for row in rows for x in row)

    @property
    def inputs(self) -> dict[str, list[list[Number]]]:
        """The numbers, by the names of the matrices."""
        return {
            name: [[_number(text) for text in row] for row in rows]
            for name, rows in self.refuted.inputs.items()
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict as JSON, without the certificate.

        A fraction that no float equals is a text, as "1/3".
        """
        outputs = self.refuted.found
        plain = {
            name: [[str(x) if isinstance(x, Fraction) else x for x in row] for row in rows]
            for name, rows in self.inputs.items()
        }
        return {
            **self._about("refuted"), "counterexample": plain,
            "found": None if outputs is None else list(outputs),
            "expected": list(self.refuted.expected), "problem": self.problem,
            "seconds": self.seconds,
        }  # fmt: skip

    def __str__(self) -> str:
        numbers = ", ".join(
            f"{name} = [{', '.join('[' + ', '.join(row) + ']' for row in rows)}]"
            for name, rows in self.refuted.inputs.items()
        )
        return (
            f"Refuted, {self.claim.title}: it is not true that {self.statement}\n"
            f"For {numbers}: {self.problem}"
        )


@dataclass(frozen=True)
class Unproven(_Verdict):
    """Neither proven nor refuted, and why."""

    claim: Claim
    reason: str
    #: Assumptions of the case that could not be shown, if it came to that.
    case: str
    seconds: float
    holds: None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict as JSON."""
        more = {"reason": self.reason, "case": self.case or None, "seconds": self.seconds}
        return self._about("not proven") | more

    def __str__(self) -> str:
        return self.reason + (f"\nin the case {self.case}" if self.case else "")


Verdict: TypeAlias = "Proof | Refutation | Unproven"


def prove(
    what: str | Claim,
    *shape: int,
    recipe: str | None = None,
    tolerance: float | None = None,
    seconds: float = 600.0,
    terms: int = 200_000,
    megabytes: int = 1_500,
    progress: Progress | None = None,
) -> Verdict:
    """Prove a claim by name and shape, or one of your own (``claim.about``), for all inputs.

    A false claim gives a :class:`Refutation` with numbers; what reaches a limit (``seconds``
    of processor time, ``megabytes`` of memory, ``terms`` of one polynomial), or cannot be settled, an
    :class:`Unproven`.

    >>> verdict = prove("matmul", 2, 2, 2)
    >>> verdict.holds
    True
    """
    if isinstance(what, Claim):
        if shape or recipe or tolerance is not None:
            raise InputError(
                "expected nothing beside a claim of your own, which has its shape; try prove(claim)"
            )
        claim = what
    else:
        claim = named_claim(what, *shape, recipe=recipe, tolerance=tolerance)
    started = time.perf_counter()
    quick = quick_counterexample(claim)
    if quick is not None:
        return Refutation(claim, *quick, time.perf_counter() - started)
    try:
        evidence = Prover(claim, Limits(terms, seconds, megabytes), progress).prove()
    except NotProvenError as problem:
        refutation = counterexample(claim, problem.case, seconds=min(20.0, seconds))
        spent = time.perf_counter() - started
        if refutation is not None:
            return Refutation(claim, *refutation, spent)
        return Unproven(claim, str(problem), problem.assumptions, spent)
    cases, terms_compared = evidence.cases, evidence.terms
    try:
        content = certificate(claim, evidence)
        del evidence  # its polynomials need much memory
        searched = time.perf_counter()
        check(content)
    except RejectedError as problem:
        reason = f"{claim.title} is not proven: the checker rejects the certificate: {problem}"
        return Unproven(claim, reason, "", time.perf_counter() - started)
    spent = time.perf_counter() - searched
    return Proof(claim, content, cases, terms_compared, searched - started, spent)


def _number(text: str) -> Number:
    """Return an entry as an equal Python number: a rounded one may not be a counterexample."""
    exact = Fraction(text)
    if exact.denominator == 1:
        return exact.numerator
    try:
        near = float(exact)
    except OverflowError:
        return exact
    return near if near == exact else exact
