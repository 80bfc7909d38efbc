"""Prove claims for all inputs: run a program on symbols, case by case, and compare the result with the
reference.

Each entry of the result, and each operation that may be undefined, is a *target*. A run in a case shows
a target, returns the question on which the target depends, or fails. The prover splits the case by all
answers to this question, until the target is shown at every possible leaf of the tree. A target can
also be shown without deciding a choice. For example, the row maximum that a stable softmax subtracts
cancels. If a target fails at a leaf, ``prove`` searches for a counterexample (``refute.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from locum.errors import ExecutionError, LocumError
from locum.execution import dense
from locum.execution.domains import Value
from locum.graph import Node, postorder
from locum.proofs.checker.proof_tree import Branch, Question, Tree
from locum.proofs.claims.claim import Claim, meanings_in
from locum.proofs.prover.booleans import LimitError, Limits
from locum.proofs.prover.cases import (
    OPEN,
    Assumption,
    Broken,
    Case,
    Questions,
    Undecided,
    first_open,
)
from locum.proofs.prover.ring import (
    MAX_SLOTS,
    SLOTS,
    Ratio,
    Ring,
    SlotsError,
    UnsupportedError,
    is_constant,
)
from locum.proofs.prover.symbolic import SymbolicDomain, has_open

#: A function that is called with the number of shown targets, of all targets, and of cases.
Progress: TypeAlias = Callable[[int, int, int], None]


@dataclass(frozen=True)
class Failed:
    """The status of a target that cannot be shown in some case, with the reason."""

    reason: str


#: The status of a target in a case: shown (None), undecided, or failed.
Status: TypeAlias = "Undecided | Failed | None"


@dataclass
class Evidence:
    """The result of a successful proof search: trees of cases, and the questions in them."""

    ring: Ring
    questions: Questions
    hypotheses: list[Assumption]
    trees: list[Tree] = field(default_factory=list)
    entries: int = 0
    terms: int = 0


class NotProvenError(LocumError):
    """Raised if the prover does not support a claim, cannot show a target, or reaches a limit."""

    def __init__(self, problem: str, assumptions: str = "", case: Case | None = None) -> None:
        self.assumptions = assumptions
        #: The case that could not be shown, if any.
        self.case = case
        super().__init__(problem)


class Prover:
    """An attempt to prove one claim for all inputs, within limits of time and memory."""

    def __init__(
        self, claim: Claim, limits: Limits | None = None, progress: Progress | None = None
    ) -> None:
        self.claim = claim
        self.limits = limits or Limits()
        self.progress = progress or (lambda done, total, cases: None)

    def prove(self) -> Evidence:
        """Search for trees of cases that together show every target, and return them as evidence.

        Raise :class:`NotProvenError` if a target fails, a limit is reached or the claim is not
        supported.
        """
        self.limits.start()
        slots = SLOTS
        while True:
            try:
                return self._prove(slots)
            except SlotsError:
                slots *= 2
                if slots > MAX_SLOTS:
                    problem = f"{self.claim.title} is not proven within {MAX_SLOTS:,} symbols"
                    raise NotProvenError(problem) from None
            except LimitError as limit:
                raise NotProvenError(f"{self.claim.title} is not proven within {limit}") from None
            except (UnsupportedError, ExecutionError) as problem:
                raise NotProvenError(f"{self.claim.title} is not proven: {problem}") from None

    def _prove(self, slots: int) -> Evidence:
        claim = self.claim
        self.ring = Ring(claim.entries, integer=claim.integer, limits=self.limits, slots=slots)
        self.questions = Questions(self.ring)
        self.symbols = self.ring.entries
        self.tokens = claim.tokens(self.symbols)
        #: Values that are the same in all cases.
        self.settled: dict[Node, Any] = {}
        self.cases = self.terms = 0
        # Evaluate the reference first: its exponentials are the simplest, and exponentials of the
        # program are products of their powers.
        apply = meanings_in(SymbolicDomain(self.ring, Case(self.questions)))
        self.settled_reference = {
            part: rows
            for part, rows in claim.evaluate([claim.reference], self.symbols, apply).items()
            if not any(has_open(row, self.ring) for row in rows)
        }
        evidence = Evidence(self.ring, self.questions, self._hypotheses())
        start = Case(self.questions, evidence.hypotheses)
        self._settle(start)
        #: Known signs of values that are the same in all cases.
        self.signs = dict(self.ring.signs)
        first = self.run(start)
        evidence.entries = sum(map(len, claim.places))
        self.targets = len(first)
        left = set(range(len(first)))
        while left:
            target = min(left)
            root, shown = self._explore(start, target, first)
            if target not in shown:
                raise AssertionError("a tree decides the target that it was grown for")
            entries = frozenset(one for one in shown & left if one < evidence.entries)
            evidence.trees.append(Tree(root, entries))
            left -= shown
            self.progress(len(first) - len(left), len(first), self.cases)
        evidence.terms = self.terms
        return evidence

    def _hypotheses(self) -> list[Assumption]:
        """Convert the conditions of the claim to assumptions about signs of irreducible polynomials.

        Raise an error for conditions that cannot be converted.
        """
        assumptions: list[Assumption] = []
        apply = meanings_in(SymbolicDomain(self.ring, Case(self.questions)))
        for value, relation in self.claim.condition_values(self.symbols, apply):
            if not isinstance(value, Ratio) or not is_constant(value.bottom):
                raise NotProvenError(
                    f"{self.claim.title}: expected conditions on polynomials, got another condition"
                )
            if self.ring.is_passing(value):
                raise NotProvenError(
                    f"{self.claim.title}: expected conditions on polynomials and absolute values, got "
                    "one that depends on a comparison, such as max(a, b)"
                )
            sign, factors = self.questions.factors(value.top)
            if relation == "!=":
                assumptions += [Assumption(Question(name, "="), 0) for name, _ in factors]
            elif len(factors) == 1 and factors[0][1] == 1:
                name = factors[0][0]
                if sign > 0:
                    assumptions.append(Assumption(Question(name, ">"), 1))
                else:
                    assumptions += [Assumption(Question(name, r), 0) for r in (">", "=")]
            else:
                raise NotProvenError(f"{self.claim.title}: a condition has several factors")
        return assumptions

    def _settle(self, start: Case) -> None:
        """Evaluate the nodes whose values are the same in all cases, and store these values.

        Nodes with open values or free families are evaluated in each case.
        """
        domain = SymbolicDomain(self.ring, start)
        for node in postorder(self.claim.program):
            if node.free or node.op == "family" or not self._inputs_are_settled(node):
                continue
            domain.sites.clear()
            value = dense.evaluate(node, self.tokens, domain, known=self.settled)
            if not any(isinstance(site, OPEN) for site in domain.sites) and not has_open(
                value, self.ring
            ):
                self.settled[node] = value

    def _inputs_are_settled(self, node: Node) -> bool:
        """Return whether all nodes without free families on which ``node`` depends are settled.

        Nodes with free families are never settled themselves; the nodes below them are tested instead.
        """
        reached = postorder(*node.inputs, into=lambda one: bool(one.free) or one not in self.settled)
        return all(one.free or one.op == "family" for one in reached)

    def run(self, case: Case) -> list[Status]:
        """Run the program in a case and return the status of every target."""
        self.limits.check_time()
        self.questions.forget_choices()
        domain = SymbolicDomain(self.ring, case)
        values = dense.evaluate(
            self.claim.program, self.tokens, domain, self.claim.names, known=self.settled
        )
        if not isinstance(values, list):
            raise NotProvenError("expected an s-op in a claim, got a selector")
        sites = [Failed(site.reason) if isinstance(site, Broken) else site for site in domain.sites]
        expected = self.claim.expected(self.symbols, meanings_in(domain), self.settled_reference)
        pairs = zip(self.claim.result(values), expected, strict=True)
        status = [self._compare(a, b, case, domain) for a, b in pairs] + sites
        self.ring.signs = dict(self.signs)  # Signs found in this case hold only in this case.
        return status

    def _compare(self, actual: Value, expected: Value, case: Case, domain: SymbolicDomain) -> Status:
        trouble = first_open((actual, expected))
        if isinstance(trouble, Broken):
            return Failed(trouble.reason)
        if trouble is not None:
            return trouble
        a, b = map(domain.elementwise.numeric, (actual, expected))
        difference = domain.elementwise.plain(domain.elementwise.lift(a) - b)
        if not isinstance(difference, Ratio):
            return None if difference == 0 else Failed(f"{actual} instead of {expected}")
        self.terms += sum(len(v.top) + len(v.bottom) for v in (a, b) if isinstance(v, Ratio))
        if case.vanishes(difference.top):
            return None
        question = self.ring.blocking(difference.top) or self._sign_question(difference, case)
        if question is not None:
            return Undecided(question)
        return Failed(f"the difference is {difference.show()}")

    def _sign_question(self, difference: Ratio, case: Case) -> Question | None:
        """Return a question that helps to decide an absolute value in ``difference``, or None."""
        for slot in self.ring.occurring(difference.top):
            if slot.function == "absolute" and slot.argument is not None:
                positive = case.is_positive(slot.argument)
                if isinstance(positive, Undecided):
                    return positive.question
        return None

    def _explore(
        self, start: Case, target: int, status: list[Status] | None = None
    ) -> tuple[Branch, set[int]]:
        """Split the case ``start`` until ``target`` is shown in every case, and return the tree.

        Also return all targets that every possible leaf shows. ``status`` is the result of :meth:`run`
        in the case ``start``, if it is known. Raise :class:`NotProvenError` if the target fails in a
        case.
        """
        status = self.run(start) if status is None else status
        if len(status) != self.targets:
            raise NotProvenError("different runs of one program execute different operations")
        here = status[target]
        if not isinstance(here, Undecided):
            if isinstance(here, Failed):
                raise NotProvenError(
                    f"{self.claim.title} is not proven: {here.reason}", self.describe(start), start
                )
            self.cases += 1
            return Branch(), {number for number, one in enumerate(status) if one is None}
        children, shown = [], None
        for answer in here.question.answers:
            case = start.extended(here.question, answer)
            contradiction = case.contradiction()
            if contradiction is not None:
                children.append(Branch(contradiction=tuple(contradiction)))
                continue
            child, also = self._explore(case, target)
            children.append(child)
            shown = also if shown is None else shown & also
        if shown is None:  # Every answer is impossible, so the case is impossible.
            shown = set(range(len(status)))
        return Branch(here.question, tuple(children)), shown

    def describe(self, case: Case) -> str:
        """Return the assumptions of a case as text, such as ``X[0,0] > 0, X[0,1] ≤ 0``."""
        return ", ".join(self._in_words(one) for one in case.assumptions) or "no assumption"

    def _in_words(self, assumption: Assumption) -> str:
        question, answer = assumption.question, assumption.answer
        if question.relation == "%":
            return f"{question.polynomial} mod {question.modulus} = {answer}"
        relation = {(">", 1): ">", (">", 0): "≤", ("=", 1): "=", ("=", 0): "≠"}[
            question.relation, answer
        ]
        return f"{self.ring.show(self.questions.polynomials[question.polynomial])} {relation} 0"
