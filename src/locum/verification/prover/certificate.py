"""Write a proof as JSON: everything that ``locum check`` needs to go through it again.

A certificate holds what is claimed (``checker/content.py``), the functions and polynomials that
questions are about, and the trees of cases: for each the entries shown in it, and at every branch the
question; leaves are shown, or impossible by assumptions that contradict one another.

A polynomial is a list of terms ``[coefficient, [[variable, power], …]]``; variables are numbered, the
entries of the input first, then the functions.
"""

from __future__ import annotations

from typing import Any

from flint import fmpq_mpoly

from locum.verification.checker.content import CERTIFICATE, sealed, subject_json
from locum.verification.claims.claim import Claim
from locum.verification.prover.proof import Branch, Evidence
from locum.verification.prover.ring import Ring


def certificate(claim: Claim, evidence: Evidence) -> dict[str, Any]:
    """Return the certificate of a proof."""
    writer = _Writer(evidence)
    trees = [
        {
            "entries": sorted(target for target in tree.targets if target < evidence.entries),
            "cases": writer.branch(tree.root),
        }
        for tree in evidence.trees
    ]
    return sealed(
        {
            "format": CERTIFICATE,
            "claim": claim.label,
            **subject_json(claim.subject),
            "functions": writer.functions,
            "polynomials": writer.polynomials,
            "trees": trees,
            "cases": evidence.cases,
        }
    )


class _Writer:
    """Writes trees; every polynomial and every function once."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        self.ring: Ring = evidence.ring
        self.functions: list[Any] = []
        self.polynomials: list[Any] = []
        self.numbers: dict[str, int] = {}
        #: Variables of the ring → variables of the certificate.
        self.variables = {number: number for number in range(len(self.ring.names))}

    def terms(self, polynomial: fmpq_mpoly) -> list[Any]:
        """Return a polynomial as JSON; functions are listed as they are met."""
        result = []
        for powers, coefficient in polynomial.to_dict().items():
            factors = [[self.variable(v), int(power)] for v, power in enumerate(powers) if power]
            result.append([str(coefficient), factors])
        return result

    def variable(self, number: int) -> int:
        if number not in self.variables:
            slot = self.ring.slot(number)
            if slot is None or slot.argument is None:
                raise AssertionError("questions are not about choices")
            row = {
                "function": slot.function,
                "base": None if slot.base is None else str(slot.base),
                "top": self.terms(slot.argument.top),
                "bottom": self.terms(slot.argument.bottom),
            }
            self.variables[number] = len(self.ring.names) + len(self.functions)
            self.functions.append(row)
        return self.variables[number]

    def number(self, name: str) -> int:
        if name not in self.numbers:
            terms = self.terms(self.evidence.questions.polynomials[name])
            self.numbers[name] = len(self.polynomials)
            self.polynomials.append(terms)
        return self.numbers[name]

    def branch(self, branch: Branch) -> Any:
        if branch.contradiction is not None:
            return {"impossible": [[self.number(name), side] for name, side in branch.contradiction]}
        if branch.question is None:
            return "shown"
        question, answers = branch.question, [self.branch(child) for child in branch.children]
        if question.relation == "%":
            entry = self.ring.names.index(question.polynomial)
            return {"remainder": entry, "modulus": question.modulus, "answers": answers}
        return {"sign": question.relation, "of": self.number(question.polynomial), "answers": answers}
