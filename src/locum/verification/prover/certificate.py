"""Write a proof as JSON: everything that ``locum prove check`` needs.

A certificate contains the claim (``checker/content.py``), the polynomials that questions are about, as
formulas of the input, and the trees of cases. Each tree has the entries that it shows. A branch has a
question. A leaf is shown, with hints for its exponentials, or impossible, with bounds that contradict
one another.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, TypeAlias

from flint import fmpq_mpoly

from locum.graph import postorder
from locum.verification.checker.case import Exponentials
from locum.verification.checker.check import Answer, Leaf, list_answers
from locum.verification.checker.content import CERTIFICATE, read_subject
from locum.verification.checker.quotients import Quotient, exponents
from locum.verification.claims.claim import Claim
from locum.verification.prover.proof import Branch, Evidence
from locum.verification.prover.ring import Ring

#: Terms of an exponent, by monomial and denominator, with their coefficients.
Vector: TypeAlias = dict[Any, Fraction]


def certificate(claim: Claim, evidence: Evidence) -> dict[str, Any]:
    """Return the certificate of a proof."""
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
    """Add the hints to the leaves of a tree: the checker evaluates them and asks for hints."""
    if "shown" in node:
        recorder = _Recorder(node["shown"])
        Leaf(read_subject(content, CERTIFICATE), content, path, recorder).compare(entries)
    elif "answers" in node:
        for answer, child in zip(list_answers(node), node["answers"], strict=True):
            _add_hints(content, child, (*path, answer), entries)


class _Recorder:
    """Expresses exponents by the exponents of earlier exponentials, and records how."""

    def __init__(self, hints: list[Any]) -> None:
        self.hints = hints
        #: Reduced exponents: pivot, vector, and the exponentials that they are combinations of.
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
        """Return what is left of an exponent, and the combination that was subtracted."""
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
    """Return the terms of an exponent; variables above and below the bar are cancelled."""
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
    """Writes trees, and polynomials as rows of a table of formulas."""

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
        """Return the number of a row; equal rows are written once."""
        key = str((op, operands, attribute))
        if key not in self.rows:
            self.rows[key] = len(self.table)
            self.table.append([op, operands, attribute])
        return self.rows[key]

    def constant(self, value: Any) -> int:
        return self.row("constant", [], [str(value), 1, 1])

    def polynomial(self, polynomial: fmpq_mpoly) -> int:
        """Write a polynomial as a sum of products."""
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
