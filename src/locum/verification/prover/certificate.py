"""A proof as JSON: everything that ``locum check`` needs to go through it again.

A certificate holds the claim (by name, shape and recipe), the program's graph and hash, the
functions that stand as indeterminates, all polynomials that questions are about, and the trees of
cases: for each the entries shown in it, and at every branch the question; leaves are shown, or
impossible by assumptions that contradict one another. ``check.py`` verifies it without any of the
prover's code.

A polynomial is a list of terms ``[coefficient, [[variable, power], …]]``; variables are numbered, the
entries of the input first, then the functions.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from flint import fmpq_mpoly

from locum.graph import dumps
from locum.verification.claims.claim import Claim
from locum.verification.prover.proof import Branch, Evidence

FORMAT = "locum certificate 1"


def certificate(claim: Claim, evidence: Evidence) -> dict[str, Any]:
    """The certificate of a proof."""
    writer = _Writer(evidence)
    trees = [
        {
            "entries": sorted(target for target in tree.targets if target < evidence.entries),
            "cases": writer.branch(tree.root),
        }
        for tree in evidence.trees
    ]
    slots = [
        {
            "function": slot.function,
            "base": None if slot.base is None else str(slot.base),
            "top": terms_of(slot.argument.top),
            "bottom": terms_of(slot.argument.bottom),
        }
        for slot in evidence.ring.slots
    ]
    content = {
        "format": FORMAT,
        "claim": claim.name,
        "shape": list(claim.shape),
        "recipe": claim.recipe,
        "statement": claim.statement,
        "program": {"hash": claim.hash, "graph": json.loads(dumps(claim.program))},
        "functions": slots,
        "polynomials": writer.polynomials,
        "trees": trees,
        "cases": evidence.cases,
    }
    return content | {"digest": digest(content)}


def digest(content: dict[str, Any]) -> str:
    """SHA-256 of a certificate's content: no number of it can be changed unnoticed."""
    rest = {key: value for key, value in content.items() if key != "digest"}
    text = json.dumps(rest, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def terms_of(polynomial: fmpq_mpoly) -> list[Any]:
    """A polynomial as JSON."""
    return [
        [str(coefficient), [[v, int(power)] for v, power in enumerate(powers) if power]]
        for powers, coefficient in polynomial.to_dict().items()
    ]


class _Writer:
    """Writes trees; every polynomial once."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        self.polynomials: list[Any] = []
        self.numbers: dict[str, int] = {}

    def number(self, name: str) -> int:
        if name not in self.numbers:
            self.numbers[name] = len(self.polynomials)
            self.polynomials.append(terms_of(self.evidence.questions.polynomials[name]))
        return self.numbers[name]

    def branch(self, branch: Branch) -> Any:
        if branch.contradiction is not None:
            return {"impossible": [[self.number(name), side] for name, side in branch.contradiction]}
        if branch.question is None:
            return "shown"
        question, answers = branch.question, [self.branch(child) for child in branch.children]
        if question.relation == "%":
            entry = self.evidence.ring.names.index(question.polynomial)
            return {"remainder": entry, "modulus": question.modulus, "answers": answers}
        return {"sign": question.relation, "of": self.number(question.polynomial), "answers": answers}
