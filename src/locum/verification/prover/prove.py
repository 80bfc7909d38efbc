"""``prove``: a claim in, a proof, a refutation or an honest "not proven" out.

>>> proof = prove("transpose", 2, 2)
>>> proof.holds, proof.cases
(True, 1)
>>> print(proof.statement)
for all X ∈ ℝ^{2×2}: T(X) = Xᵀ
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from locum.errors import InputError
from locum.verification.claims.claim import Claim
from locum.verification.claims.named import claim as named_claim
from locum.verification.prover.proof import Evidence, NotProvenError, Progress, Prover
from locum.verification.prover.refute import Counterexample, counterexample
from locum.verification.prover.symbols import Limits


@dataclass(frozen=True)
class Proof:
    """The claim holds for all inputs."""

    claim: Claim
    evidence: Evidence = field(repr=False)
    seconds: float
    holds: bool = True

    @property
    def statement(self) -> str:
        """In words and formula."""
        return self.claim.statement

    @property
    def cases(self) -> int:
        """Cases that were told apart."""
        return self.evidence.cases

    @property
    def terms(self) -> int:
        """Terms of the polynomials that were compared."""
        return self.evidence.terms

    def certificate(self) -> dict[str, Any]:
        """What ``locum check`` verifies, as JSON."""
        from locum.verification.prover.certificate import certificate

        return certificate(self.claim, self.evidence)

    def to_dict(self) -> dict[str, Any]:
        """For scripts."""
        return {
            "verdict": "proven", "claim": self.claim.name, "shape": list(self.claim.shape),
            "statement": self.statement, "cases": self.cases, "terms": self.terms,
            "seconds": self.seconds, "program": self.claim.hash,
        }  # fmt: skip

    def __str__(self) -> str:
        s = "" if self.cases == 1 else "s"
        return (
            f"Proven, {self.statement}\n({self.cases:,} case{s}, {self.terms:,} terms compared, "
            f"{self.seconds:.2f} s)"
        )


@dataclass(frozen=True)
class Refutation:
    """The claim does not hold: numbers show it."""

    claim: Claim
    counterexample: Counterexample
    seconds: float
    holds: bool = False

    @property
    def statement(self) -> str:
        """What does not hold."""
        return self.claim.statement

    @property
    def inputs(self) -> dict[str, list[list[Any]]]:
        """The numbers, by the names of the matrices."""
        matrices = self.claim.matrices(self.counterexample.entries)
        return {name: rows for (name, _, _), rows in zip(self.claim.inputs, matrices, strict=True)}

    def to_dict(self) -> dict[str, Any]:
        """For scripts."""
        found = self.counterexample.found
        return {
            "verdict": "refuted", "claim": self.claim.name, "shape": list(self.claim.shape),
            "statement": self.statement, "counterexample": self.inputs,
            "found": None if found is None else list(found),
            "wanted": list(self.counterexample.wanted), "problem": self.counterexample.problem,
            "seconds": self.seconds, "program": self.claim.hash,
        }  # fmt: skip

    def __str__(self) -> str:
        numbers = ", ".join(f"{name} = {rows}" for name, rows in self.inputs.items())
        return (
            f"Refuted: it is not true that {self.statement}\n"
            f"For {numbers}: {self.counterexample.problem}"
        )


@dataclass(frozen=True)
class Unproven:
    """Neither proven nor refuted, and why."""

    claim: Claim
    reason: str
    #: Assumptions of the case that could not be shown, if it came to that.
    case: str
    seconds: float
    holds: None = None

    @property
    def statement(self) -> str:
        """What is not proven."""
        return self.claim.statement

    def to_dict(self) -> dict[str, Any]:
        """For scripts."""
        return {
            "verdict": "not proven", "claim": self.claim.name, "shape": list(self.claim.shape),
            "statement": self.statement, "reason": self.reason, "case": self.case or None,
            "seconds": self.seconds, "program": self.claim.hash,
        }  # fmt: skip

    def __str__(self) -> str:
        return self.reason + (f"\nin the case {self.case}" if self.case else "")


Verdict: TypeAlias = "Proof | Refutation | Unproven"


def prove(
    what: str | Claim,
    *shape: int,
    recipe: str | None = None,
    seconds: float = 600.0,
    terms: int = 200_000,
    progress: Progress | None = None,
) -> Verdict:
    """A proof for all inputs of a claim by name and shape, or of one of your own (``claim.about``).

    A false claim gives a :class:`Refutation` with numbers; what reaches a limit (``seconds``, ``terms``
    of one polynomial), or cannot be settled, an :class:`Unproven`, which claims nothing.
    """
    if isinstance(what, Claim):
        if shape or recipe:
            raise InputError("a claim of your own has its shape: give prove nothing but the claim")
        claim = what
    else:
        claim = named_claim(what, *shape, recipe=recipe)
    started = time.perf_counter()
    try:
        evidence = Prover(claim, Limits(terms, seconds), progress).prove()
    except NotProvenError as problem:
        found = counterexample(claim)
        spent = time.perf_counter() - started
        if found is not None:
            return Refutation(claim, found, spent)
        return Unproven(claim, str(problem), problem.assumptions, spent)
    return Proof(claim, evidence, time.perf_counter() - started)
