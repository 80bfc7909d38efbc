"""Prove a claim: return a proof with a certificate, a refutation, or the reason why neither was found.

>>> proof = prove("transpose", 2, 2)
>>> proof.holds, proof.cases
(True, 1)
>>> print(proof.statement)
for all X ∈ ℝ^{2×2}: P⟨X⟩ = Xᵀ, where P is the program 17475b75c3b25372…
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeAlias

from flint import fmpq_mpoly

from locum.errors import InputError
from locum.graph import postorder
from locum.proofs.checker.check import (
    CERTIFICATE,
    Answer,
    Leaf,
    Refuted,
    RejectedError,
    check,
    list_answers,
    read_subject,
)
from locum.proofs.checker.proof_case import Exponentials
from locum.proofs.checker.quotients import Quotient, exponents
from locum.proofs.claims.claim import Claim
from locum.proofs.claims.named import claim as named_claim
from locum.proofs.prover.booleans import Limits
from locum.proofs.prover.proof import Branch, Evidence, NotProvenError, Progress, Prover
from locum.proofs.prover.refute import counterexample, quick_counterexample
from locum.proofs.prover.ring import Ring
from locum.text import text_rows

#: The coefficients of the terms of an exponent, by monomial and denominator.
Vector: TypeAlias = dict[Any, Fraction]


def certificate(claim: Claim, evidence: Evidence) -> dict[str, Any]:
    """Write the certificate of a proof as a JSON-compatible dictionary."""
    writer = _Writer(claim, evidence)
    trees = [
        {
            "entries": sorted(target for target in tree.targets if target < evidence.entries),
            "cases": writer.branch(tree.root),
        }
        for tree in evidence.trees
    ]
    content = {
        "format": CERTIFICATE,
        "claim": claim.label,
        **claim.content,
        "questions": {"table": writer.table, "roots": writer.roots},
        "trees": trees,
    }
    operations = {node.op for node in postorder(claim.program)}
    operations |= {op for op, _, _ in content["formulas"]["table"]}
    if operations & {"exp", "power", "softmax"}:
        for tree in trees:
            _add_hints(content, tree["cases"], (), tree["entries"])
    return content


def _add_hints(
    content: dict[str, Any], node: Any, path: tuple[Answer, ...], entries: list[int]
) -> None:
    """Add hints to the shown leaves of a tree, by running the checker with a recorder at each leaf."""
    if "shown" in node:
        recorder = _Recorder(node["shown"])
        Leaf(read_subject(content, CERTIFICATE), content, path, recorder).compare(entries)
    elif "answers" in node:
        for answer, child in zip(list_answers(node), node["answers"], strict=True):
            _add_hints(content, child, (*path, answer), entries)


class _Recorder:
    """A recorder of hints, which write an exponent as a combination of earlier exponents."""

    def __init__(self, hints: list[Any]) -> None:
        self.hints = hints
        #: Reduced exponents: pivot, vector, and the coefficients of the exponents in the vector.
        self.rows: list[tuple[Any, Vector, dict[int, Fraction]]] = []
        self.known = 0

    def __call__(
        self, argument: Quotient, exponentials: Exponentials
    ) -> tuple[list[tuple[int, int]], int]:
        for number in range(self.known, len(exponentials)):
            rest, combination = self._reduce(exponentials[number][0])
            if rest:
                pivot = next(iter(rest))
                scale = rest[pivot]
                parts = {k: -c / scale for k, c in combination.items()} | {number: 1 / scale}
                self.rows.append((pivot, {key: c / scale for key, c in rest.items()}, parts))
        self.known = len(exponentials)
        rest, combination = self._reduce(argument)
        powers = [(number, int(power)) for number, power in combination.items() if power]
        divisor = math.gcd(*(value.numerator for value in rest.values())) or 1
        if any(power.denominator != 1 for power in combination.values()):
            powers, divisor = [], 1
        self.hints.append([powers, divisor])
        return powers, divisor

    def _reduce(self, argument: Quotient) -> tuple[Vector, dict[int, Fraction]]:
        """Subtract multiples of earlier exponents from an exponent.

        Return the remainder, and a mapping from the numbers of earlier exponents to the multiples
        that were subtracted.
        """
        rest, combination = _vector(argument), dict[int, Fraction]()
        for pivot, row, parts in self.rows:
            factor = rest.get(pivot)
            if factor:
                for key, value in row.items():
                    rest[key] = rest.get(key, Fraction(0)) - factor * value
                rest = {key: value for key, value in rest.items() if value}
                for number, value in parts.items():
                    combination[number] = combination.get(number, Fraction(0)) + factor * value
        return rest, combination


def _vector(argument: Quotient) -> Vector:
    """Return the terms of an exponent, with common variables of numerator and denominator cancelled."""
    vector: Vector = {}
    for monomial, coefficient in argument.top.terms.items():
        powers, factors = dict(exponents(monomial)), dict(argument.factors)
        for factor in argument.factors:
            single = list(exponents(max(factor.terms))) if len(factor.terms) == 1 else []
            for variable, _ in single:
                common = min(factors[factor], powers.get(variable, 0))
                factors[factor] -= common
                powers[variable] = powers.get(variable, 0) - common
        below = frozenset((factor, power) for factor, power in factors.items() if power)
        above = frozenset((variable, power) for variable, power in powers.items() if power)
        vector[above, below] = Fraction(coefficient)
    return vector


class _Writer:
    """A writer of trees of cases, and of polynomials as rows of a table of formulas."""

    def __init__(self, claim: Claim, evidence: Evidence) -> None:
        self.questions = evidence.questions
        self.ring: Ring = evidence.ring
        self.places = [
            (x.attribute, [i, j])
            for x in claim.inputs for i in range(x.rows) for j in range(x.columns)
        ]  # fmt: skip
        self.table: list[Any] = []
        self.roots: list[int] = []
        self.rows: dict[str, int] = {}
        self.numbers: dict[str, int] = {}

    def row(self, op: str, operands: list[int], attribute: Any = None) -> int:
        """Return the index of a row of the table; equal rows are written once."""
        key = str((op, operands, attribute))
        if key not in self.rows:
            self.rows[key] = len(self.table)
            self.table.append([op, operands, attribute])
        return self.rows[key]

    def constant(self, value: Any) -> int:
        return self.row("constant", [], [str(value), 1, 1])

    def polynomial(self, polynomial: fmpq_mpoly) -> int:
        """Write a polynomial as a sum of products, and return the index of its row."""
        total: int | None = None
        for powers, coefficient in polynomial.to_dict().items():
            term = self.constant(coefficient)
            for variable in (v for v, power in enumerate(powers) for _ in range(int(power))):
                term = self.row("multiply", [term, self.variable(variable)])
            total = term if total is None else self.row("add", [total, term])
        return self.constant(0) if total is None else total

    def variable(self, number: int) -> int:
        if number < len(self.places):
            matrix, place = self.places[number]
            return self.row("entry", [self.row("input", [], matrix)], place)
        slot = self.ring.slot(number)
        if slot is None or slot.argument is None:
            raise AssertionError("questions are not about choices")
        parts = [self.polynomial(slot.argument.top), self.polynomial(slot.argument.bottom)]
        argument = self.row("divide", parts)
        if slot.base is not None:
            argument = self.row("multiply", [argument, self.row("log", [self.constant(slot.base)])])
        return self.row(slot.function, [argument])

    def number(self, name: str) -> int:
        if name not in self.numbers:
            self.numbers[name] = len(self.roots)
            self.roots.append(self.polynomial(self.questions.polynomials[name]))
        return self.numbers[name]

    def branch(self, branch: Branch) -> Any:
        if branch.contradiction is not None:
            return {"impossible": [[self.number(name), side] for name, side in branch.contradiction]}
        if branch.question is None:
            return {"shown": []}
        question, answers = branch.question, [self.branch(child) for child in branch.children]
        if question.relation == "%":
            entry = self.ring.names.index(question.polynomial)
            return {"remainder": entry, "modulus": question.modulus, "answers": answers}
        return {"sign": question.relation, "of": self.number(question.polynomial), "answers": answers}


#: A number of a counterexample.
Number: TypeAlias = int | float | Fraction


class _Verdict:
    """The verdict on a claim: proven, refuted, or neither."""

    claim: Claim
    #: True if the claim is proven, False if it is refuted, None otherwise.
    holds: bool | None

    @property
    def statement(self) -> str:
        """The claim as a mathematical sentence that begins with "for all"."""
        return self.claim.statement

    def check_command(self, file: object) -> str:
        """Return the shell command that checks the certificate in ``file`` again."""
        return f"locum prove check {file}"

    def _about(self, verdict: str) -> dict[str, Any]:
        """Return a dictionary of the entries that all verdicts have in common."""
        claim = self.claim
        return {
            "verdict": verdict, "claim": claim.name, "shape": list(claim.shape),
            "recipe": claim.recipe or None, "tolerance": claim.tolerance,
            "statement": claim.statement, "program": claim.hash,
        }  # fmt: skip

    def _repr_html_(self) -> str:
        """Return the verdict as HTML for a notebook.

        A proof or a refutation is shown with the command that checks it again.
        """
        verdict = {True: "proven", False: "refuted", None: "not proven"}[self.holds]
        rows = [("claim", self.claim.title), ("verdict", verdict), ("in words", str(self))]
        if self.holds is not None:
            rows.append(
                ("to check it again", "save .certificate as JSON, then: locum prove check FILE")
            )
        return text_rows("a claim for all inputs", rows)


@dataclass(frozen=True)
class Proof(_Verdict):
    """A proof that a claim holds for all inputs; the checker has accepted the certificate."""

    claim: Claim
    #: The certificate that ``locum prove check`` verifies, as JSON.
    certificate: dict[str, Any] = field(repr=False)
    cases: int
    #: Total number of terms of the polynomials that were compared.
    terms: int
    #: Wall time of the search and of the check, in seconds.
    seconds: float
    checking: float
    holds: bool = True

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict as a JSON-compatible dictionary, without the certificate."""
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
            f"Proven, {self.claim.title}: {self.statement}\n({self.cases:,} case{s}, {compared}, "
            f"{self.seconds:.2f} s; checked in {self.checking:.2f} s)"
        )


@dataclass(frozen=True)
class Refutation(_Verdict):
    """A refutation of a claim by a counterexample, which the checker has verified."""

    claim: Claim
    #: The refutation that ``locum prove check`` verifies, as JSON.
    certificate: dict[str, Any] = field(repr=False)
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
            name: [[_number(text) for text in row] for row in rows]
            for name, rows in self.refuted.inputs.items()
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict as a dictionary, without the certificate.

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
            f"{name} = [{', '.join('[' + ', '.join(row) + ']' for row in rows)}]"
            for name, rows in self.refuted.inputs.items()
        )
        return (
            f"Refuted, {self.claim.title}: it is not true that {self.statement}\n"
            f"For {numbers}: {self.problem}"
        )


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
        del evidence  # Free the memory of its polynomials.
        searched = time.perf_counter()
        check(content)
    except RejectedError as problem:
        reason = f"{claim.title} is not proven: the checker rejects the certificate: {problem}"
        return Unproven(claim, reason, "", time.perf_counter() - started)
    spent = time.perf_counter() - searched
    return Proof(claim, content, cases, terms_compared, searched - started, spent)


def _number(text: str) -> Number:
    """Convert the text of a rational number to an equal int, float or fraction.

    The number is not rounded, because a rounded entry may not be a counterexample.
    """
    exact = Fraction(text)
    if exact.denominator == 1:
        return exact.numerator
    try:
        near = float(exact)
    except OverflowError:
        return exact
    return near if near == exact else exact
