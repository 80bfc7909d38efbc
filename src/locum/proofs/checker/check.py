"""Check proofs and counterexamples of claims, without the prover's evaluators and arithmetic.

A proof consists of *trees* of cases (``proof_tree.py``). At each leaf that is not impossible, the
checker evaluates the reference and every node of the program, using the conditions of the claim and the
answers on the path to the leaf. The program and the reference must agree on the entries that the tree
lists. The inequalities of an impossible leaf must contradict each other. Together, the trees must
compare every entry. For every operation that may be undefined, at least one tree must show at all of
its leaves that the operation is defined.

A counterexample consists of rational numbers for the inputs. It refutes the claim if these numbers meet
the conditions, the reference is defined, and the program is undefined or has a different value. A
comparison that the rational bounds of functions do not decide does not refute a claim.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from locum.errors import InputError
from locum.graph import postorder
from locum.graph.traversal import walk
from locum.proofs.checker.case_evaluation import Evaluator, Site
from locum.proofs.checker.exponentials import Combination, keep_exponent
from locum.proofs.checker.proof_case import (
    COMPARISONS,
    Case,
    Combine,
    NoValueError,
    Value,
    is_number,
)
from locum.proofs.checker.proof_tree import Branch, Question, Tree
from locum.proofs.checker.quotients import ANY, Polynomial, Quotient, Rational, simplify
from locum.proofs.claims.claim import Claim
from locum.proofs.claims.formula import Formula
from locum.proofs.claims.formula_operations import Matrix

#: The answers on the path to a leaf.
Path: TypeAlias = Sequence[tuple[Question, int]]
#: Operations of programs and formulas that compute exponentials.
_EXPONENTIAL = frozenset(("exp", "power", "softmax"))


class RejectedError(InputError):
    """Raised for a proof or a counterexample that does not prove or refute its claim."""


@dataclass(frozen=True)
class Refuted:
    """A counterexample: the input matrices, and the values of the program and of the reference."""

    inputs: dict[str, list[list[Rational]]]
    #: The values of the program, row by row; None if the program is undefined.
    found: tuple[float, ...] | None
    expected: tuple[float, ...]
    problem: str


def check(claim: Claim, trees: Sequence[Tree], questions: Mapping[str, Formula]) -> int:
    """Check a proof and return its number of cases, or raise an error.

    ``questions`` contains the 1×1 formula of each polynomial in the trees. An error that is not a
    :class:`RejectedError` states a limit of the checker.
    """
    _require_no_free_family(claim)
    formulas = [claim.reference, *(formula for formula, _ in claim.conditions)]
    operations = {node.op for node in postorder(claim.program)}
    operations |= {part.op for part in walk(formulas, lambda formula: formula.operands)}
    proof = _Proof(claim, questions, bool(operations & _EXPONENTIAL))
    cases, left = 0, set(range(sum(map(len, claim.places))))
    open_sites: list[set[Site]] = []
    for tree in trees:
        count, sites = proof.visit(tree.root, (), tree.entries)
        open_sites.append(sites)
        cases += count
        left -= tree.entries if count else set()
    if left:
        raise RejectedError(f"the proof does not show the entries {sorted(left)[:10]}")
    if set.intersection(*open_sites):
        raise RejectedError("the proof does not show that every operation is defined")
    return cases


def _require_no_free_family(claim: Claim) -> None:
    if claim.program.free:
        raise RejectedError("program: expected families that are summed over, got a free family")


@dataclass(frozen=True)
class _Proof:
    """A claim, and the formulas of the questions in its proof."""

    claim: Claim
    questions: Mapping[str, Formula]
    #: Whether exponentials are written as products of powers of earlier exponentials.
    combines: bool

    def visit(self, branch: Branch, path: Path, entries: frozenset[int]) -> tuple[int, set[Site]]:
        """Check the tree of cases below ``branch``.

        Return the number of possible leaves, and the sites that are open at one or more of them.
        """
        if branch.question is not None:
            return self._visit_children(branch, branch.question, path, entries)
        if branch.contradiction is None:
            leaf = _Leaf(self, path, Combination() if self.combines else keep_exponent)
            return 1, leaf.compare(entries)
        leaf = _Leaf(self, path, keep_exponent)
        bounds = [(leaf.evaluate(name), side) for name, side in branch.contradiction]
        if not leaf.case.facts.contradict(bounds):
            raise RejectedError("a case is marked as impossible, but its conditions do not prove this")
        return 0, set()

    def _visit_children(
        self, branch: Branch, question: Question, path: Path, entries: frozenset[int]
    ) -> tuple[int, set[Site]]:
        if len(branch.children) != len(question.answers) or not branch.children:
            raise RejectedError("branch: expected a child for each answer, and at least one answer")
        cases, open_sites = 0, set[Site]()
        for answer, child in zip(question.answers, branch.children, strict=True):
            count, sites = self.visit(child, (*path, (question, answer)), entries)
            cases, open_sites = cases + count, open_sites | sites
        return cases, open_sites


class _Leaf:
    """A case at a leaf of a tree: the conditions of the claim, and the answers on the path."""

    def __init__(self, proof: _Proof, path: Path, combine: Combine) -> None:
        self.claim, self.questions = proof.claim, proof.questions
        self.case = Case(len(self.claim.entries), self.claim.integer, combine)
        self.entries = self.case.entries
        self.known: dict[Formula, Matrix] = {}
        for formula, relation in self.claim.conditions:
            signs = COMPARISONS["greater" if relation == ">" else "not_equal"]
            value = self.claim.evaluate([formula], self.entries, self.case.apply_strict)[formula]
            self.case.facts.state(self._numerator(value), signs)
        for question, answer in path:
            self._state(question, answer)

    def _state(self, question: Question, answer: int) -> None:
        """Add the answer to a question to the facts of the case."""
        if question.relation != "%":
            signs = COMPARISONS["greater" if question.relation == ">" else "equal"]
            self.case.facts.state(self.evaluate(question.polynomial), signs if answer else ANY - signs)
        elif self.claim.integer:
            key = self.claim.entries.index(question.polynomial), question.modulus
            self.case.facts.remainders.setdefault(key, answer)
        else:
            raise RejectedError("question: expected a remainder of an integer, got a real number")

    def _numerator(self, matrix: Matrix) -> Polynomial:
        """Return the numerator of the entry of a 1×1 matrix.

        Each factor of the denominator must be known to be positive.
        """
        [[value]] = matrix
        if not is_number(value):
            raise RejectedError("condition or question: expected a number that has a value")
        quotient = Quotient.of(value)
        if any(self.case.facts.sign_of_polynomial(one) != {1} for one in quotient.factors):
            raise RejectedError("condition or question: expected no denominator")
        return quotient.top

    def evaluate(self, name: str) -> Polynomial:
        """Return the polynomial ``name`` of the questions."""
        formula = self.questions[name]
        self.known = self.claim.evaluate([formula], self.entries, self.case.apply_strict, self.known)
        return self._numerator(self.known[formula])

    def compare(self, entries: frozenset[int]) -> set[Site]:
        """Require that the program and the reference agree on ``entries`` in this case.

        Return the sites that are open in this case.
        """
        expected = _expect(self.claim, self.case, self.entries)
        try:
            result, open_sites = _run(self.claim, self.case, self.entries)
        except NoValueError as error:
            raise RejectedError(f"the program is undefined in some case: {error}") from None
        for number in sorted(entries):
            a, b = result[number], expected[number]
            if not is_number(a) or not is_number(b):
                raise RejectedError(
                    f"the proof does not determine the value of entry {number} in some case"
                )
            if not self.case.facts.is_zero((Quotient.of(a) - Quotient.of(b)).top):
                raise RejectedError(f"entry {number} differs from the reference")
        return open_sites


def _expect(claim: Claim, case: Case, entries: Sequence[Value]) -> list[Value]:
    """Evaluate the reference in a case, and return its values row by row."""
    return [case.to_number(value) for value in claim.expected(entries, case.apply_strict)]


def _run(claim: Claim, case: Case, entries: Sequence[Value]) -> tuple[list[Value], set[Site]]:
    """Evaluate the program in a case; return its values at the places, and the open sites."""
    evaluator = Evaluator(case, claim.tokens(entries))
    values = evaluator.evaluate(claim.program)
    return [case.to_number(value) for value in claim.result(values)], evaluator.open_sites


def check_refutation(claim: Claim, point: Sequence[int | Fraction]) -> Refuted:
    """Check a counterexample and return its description.

    Raise an error if the numbers ``point`` do not refute the claim.
    """
    _require_no_free_family(claim)
    numbers: list[Value] = [simplify(x) for x in point]
    if len(numbers) != len(claim.entries) or (claim.integer and {*map(type, numbers)} != {int}):
        raise RejectedError(f"entries: expected {len(claim.entries)} numbers of the claim's domain")
    case = Case(0, claim.integer)
    for formula, relation in claim.conditions:
        [[value]] = claim.evaluate([formula], numbers, case.apply_strict)[formula]
        if case.compare("greater" if relation == ">" else "not_equal", value, 0) is not True:
            raise RejectedError("entries: expected numbers that meet the conditions")
    expected = _expect(claim, case, numbers)
    if not all(map(is_number, expected)):
        raise RejectedError("the bounds do not determine the value of the reference at these numbers")
    shown = tuple(_middle(value, case) for value in expected)
    names = [one.attribute[0] for one in claim.inputs]
    inputs = dict(zip(names, claim.matrices(numbers), strict=True))
    try:
        result, open_sites = _run(claim, case, numbers)
    except NoValueError as error:
        return Refuted(inputs, None, shown, f"the program is undefined at these numbers: {error}")
    if open_sites:
        raise RejectedError(
            "the bounds do not determine whether the program is defined at these numbers"
        )
    for place, (a, b) in enumerate(zip(result, expected, strict=True)):
        if case.compare("not_equal", a, b) is True:
            found = tuple(_middle(value, case) for value in result)
            gap = _middle(case.apply("subtract", a, b), case)
            problem = f"entry {place} {_describe(found[place], shown[place], gap)}"
            return Refuted(inputs, found, shown, problem)
    raise RejectedError("the bounds do not show that the program and the reference differ")


def _middle(value: Value, case: Case) -> float:
    """Return the midpoint of the bounds of a value as a float for display.

    Return NaN without bounds, and an infinity if the midpoint is too large for a float.
    """
    bounds = case.facts.bounds(Quotient.of(value)) if is_number(value) else None
    low, high = bounds or (math.nan, math.nan)
    try:
        return float((low + high) / 2)
    except OverflowError:
        return math.inf if low + high > 0 else -math.inf


def _describe(found: float, expected: float, gap: float) -> str:
    """Describe how ``found`` differs from ``expected``; ``gap`` is their difference."""
    texts = f"{found:.9g}", f"{expected:.9g}"
    if texts[0] != texts[1] and "nan" not in texts:
        return f"is {texts[0]}, but should be {texts[1]}"
    words = "exceeds" if gap > 0 else "is less than" if gap < 0 else "differs from"
    return f"{words} the expected value" + (f" by {abs(gap):.2g}" if 0 < abs(gap) < math.inf else "")
