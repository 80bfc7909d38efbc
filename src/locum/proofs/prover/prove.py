"""Prove a claim: return a proof, a refutation, or the reason why neither was found.

>>> proof = prove("transpose", 2, 2)
>>> proof.holds, proof.cases
(True, 1)
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from flint import fmpq, fmpq_mpoly

from locum.errors import InputError, LocumError
from locum.proofs.checker.check import Refuted, check
from locum.proofs.checker.proof_tree import Branch
from locum.proofs.claims.claim import Claim
from locum.proofs.claims.formula import Formula
from locum.proofs.claims.named import claim as named_claim
from locum.proofs.prover.booleans import Limits
from locum.proofs.prover.proof import Evidence, NotProvenError, Progress, Prover
from locum.proofs.prover.refute import counterexample, quick_counterexample
from locum.text import text_rows


def questions_of(claim: Claim, evidence: Evidence) -> Mapping[str, Formula]:
    """Return the polynomials in the trees of a proof as formulas of the inputs, by name."""
    names: set[str] = set()
    for tree in evidence.trees:
        _collect_names(tree.root, names)
    formulas = _Formulas(claim, evidence)
    polynomials = evidence.questions.polynomials
    return {name: formulas.of_polynomial(polynomials[name]) for name in sorted(names)}


def _collect_names(branch: Branch, names: set[str]) -> None:
    """Add the names of all polynomials below ``branch`` to ``names``."""
    names.update(name for name, _ in branch.contradiction or ())
    if branch.question is not None and branch.question.relation != "%":
        names.add(branch.question.polynomial)
    for child in branch.children:
        _collect_names(child, names)


class _Formulas:
    """The variables of a proof as formulas of the inputs."""

    def __init__(self, claim: Claim, evidence: Evidence) -> None:
        self.ring = evidence.ring
        entries = [x[i, j] for x in claim.inputs for i in range(x.rows) for j in range(x.columns)]
        self.variables = dict(enumerate(entries))

    def of_polynomial(self, polynomial: fmpq_mpoly) -> Formula:
        """Return a polynomial as a sum of products."""
        total: Formula | None = None
        for powers, coefficient in polynomial.to_dict().items():
            term = _constant(coefficient)
            for variable in (v for v, power in enumerate(powers) for _ in range(int(power))):
                term = term * self.of_variable(variable)
            total = term if total is None else total + term
        return _constant(fmpq(0)) if total is None else total

    def of_variable(self, number: int) -> Formula:
        """Return an entry of the inputs, or the function that a variable represents."""
        if number not in self.variables:
            slot = self.ring.slot(number)
            if slot is None or slot.argument is None:
                raise AssertionError("questions are not about choices")
            argument = self.of_polynomial(slot.argument.top) / self.of_polynomial(slot.argument.bottom)
            if slot.base is not None:
                argument = argument * Formula("log", (_constant(slot.base),))
            self.variables[number] = Formula(slot.function, (argument,))
        return self.variables[number]


def _constant(value: fmpq) -> Formula:
    return Formula.constant(Fraction(int(value.p), int(value.q)))


#: A number of a counterexample.
Number: TypeAlias = int | float | Fraction


class _Verdict:
    """The verdict on a claim: proven, refuted, or neither."""

    claim: Claim
    #: True if the claim is proven, False if it is refuted, None otherwise.
    holds: bool | None

    def _about(self, verdict: str) -> dict[str, Any]:
        """Return a dictionary of the entries that all verdicts have in common."""
        claim = self.claim
        return {
            "verdict": verdict, "claim": claim.name, "shape": list(claim.shape),
            "recipe": claim.recipe or None, "tolerance": claim.tolerance,
            "formula": claim.text or None, "program": claim.hash,
        }  # fmt: skip

    def _repr_html_(self) -> str:
        """Return the verdict as HTML for a notebook."""
        verdict = {True: "proven", False: "refuted", None: "not proven"}[self.holds]
        rows = [("claim", self.claim.title), ("verdict", verdict), ("in words", str(self))]
        return text_rows("a claim for all inputs", rows)


@dataclass(frozen=True)
class Proof(_Verdict):
    """A proof that a claim holds for all inputs; the checker has accepted the proof."""

    claim: Claim
    #: Number of cases, without impossible cases.
    cases: int
    #: Total number of terms of the polynomials that were compared.
    terms: int
    #: Wall time of the search and of the check, in seconds.
    seconds: float
    checking: float
    holds: bool = True

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict as a JSON-compatible dictionary."""
        return {
            **self._about("proven"), "cases": self.cases, "terms": self.terms,
            "seconds": self.seconds, "checking_seconds": self.checking,
        }  # fmt: skip

    def __str__(self) -> str:
        s = "" if self.cases == 1 else "s"
        # Without terms, both sides had the same normal form, so their difference was 0.
        compared = (
            f"{self.terms:,} terms compared" if self.terms else "both sides are the same expression"
        )
        return (
            f"Proven for {self.claim.scope}: {self.claim.heading}\n"
            f"({self.cases:,} case{s}, {compared}, "
            f"{self.seconds:.2f} s; checked in {self.checking:.2f} s)"
        )


@dataclass(frozen=True)
class Refutation(_Verdict):
    """A refutation of a claim by a counterexample, which the checker has verified."""

    claim: Claim
    refuted: Refuted
    seconds: float
    holds: bool = False

    @property
    def problem(self) -> str:
        """The difference from the reference at the counterexample, or why the program is undefined."""
        return self.refuted.problem

    @property
    def entries(self) -> tuple[Number, ...]:
        """The entries of the inputs of the counterexample, in order.

        An entry is an integer, a float, or a fraction if no float is equal to the entry.
        """
        return tuple(x for rows in self.inputs.values() for row in rows for x in row)

    @property
    def inputs(self) -> dict[str, list[list[Number]]]:
        """The input matrices of the counterexample, by name."""
        return {
            name: [[_number(entry) for entry in row] for row in rows]
            for name, rows in self.refuted.inputs.items()
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict as a JSON-compatible dictionary.

        A fraction that no float represents exactly is written as a string such as "1/3".
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
            f"{name} = [{', '.join('[' + ', '.join(map(str, row)) + ']' for row in rows)}]"
            for name, rows in self.refuted.inputs.items()
        )
        return f"Refuted: {self.claim.heading}\nFor {numbers}: {self.problem}"


@dataclass(frozen=True)
class Unproven(_Verdict):
    """A claim that is neither proven nor refuted, with the reason."""

    claim: Claim
    reason: str
    #: Assumptions of the case that could not be shown, if any.
    case: str
    seconds: float
    holds: None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict as a JSON-compatible dictionary."""
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
    """Search for a proof of a claim for all inputs, and for a counterexample.

    ``what`` is a claim, for example from :func:`about`, or the name of a claim, followed by its
    ``shape``. The result is a :class:`Proof`, a :class:`Refutation` with a counterexample, or an
    :class:`Unproven`. The search for a proof stops at a limit: ``seconds`` of CPU time, ``megabytes``
    of additional memory, or ``terms`` of one polynomial. If no proof is found, the search for a
    counterexample takes up to about 20 seconds more.

    >>> verdict = prove("matmul", 2, 2, 2)
    >>> verdict.holds
    True
    """
    if isinstance(what, Claim):
        if shape or recipe or tolerance is not None:
            raise InputError(
                "expected no further argument after a claim, which has a shape; try prove(claim)"
            )
        claim = what
    else:
        claim = named_claim(what, *shape, recipe=recipe, tolerance=tolerance)
    started = time.perf_counter()
    quick = quick_counterexample(claim)
    if quick is not None:
        return Refutation(claim, quick, time.perf_counter() - started)
    try:
        evidence = Prover(claim, Limits(terms, seconds, megabytes), progress).prove()
    except NotProvenError as problem:
        refutation = counterexample(claim, problem.case, seconds=min(20.0, seconds))
        spent = time.perf_counter() - started
        if refutation is not None:
            return Refutation(claim, refutation, spent)
        return Unproven(claim, str(problem), problem.assumptions, spent)
    terms_compared, trees = evidence.terms, evidence.trees
    questions = questions_of(claim, evidence)
    del evidence  # Free the memory of its polynomials.
    searched = time.perf_counter()
    try:
        cases = check(claim, trees, questions)
    except LocumError as problem:
        reason = f"{claim.title} is not proven: the checker rejects the proof: {problem}"
        return Unproven(claim, reason, "", time.perf_counter() - started)
    spent = time.perf_counter() - searched
    return Proof(claim, cases, terms_compared, searched - started, spent)


def _number(exact: int | Fraction) -> Number:
    """Convert a rational number to an equal int, float or fraction.

    The number is not rounded, because a rounded entry may not be a counterexample.
    """
    if isinstance(exact, int):
        return exact
    try:
        near = float(exact)
    except OverflowError:
        return exact
    return near if near == exact else exact
