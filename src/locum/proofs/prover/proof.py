"""Proofs for all inputs: a program on indeterminates, case by case, compared with its reference.

Each entry of the result and each operation that may have no value is a *target*. A run in a case shows
a target, or returns the question that the target depends on. The prover splits the case by all answers
to the question, until every leaf of the tree shows the target. A target may hold for all values of a
choice: the row maximum that a stable softmax subtracts cancels. If a target fails at a leaf, the prover
searches for a counterexample (``refute.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from locum.errors import ExecutionError, LocumError
from locum.execution import dense
from locum.execution.domains import Value
from locum.graph import Node, postorder
from locum.proofs.claims.claim import Claim
from locum.proofs.prover.booleans import LimitError, Limits
from locum.proofs.prover.cases import (
    OPEN,
    Assumption,
    Broken,
    Case,
    Question,
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

#: Told how many targets are settled, of how many, in how many cases.
Progress: TypeAlias = Callable[[int, int, int], None]


@dataclass(frozen=True)
class Failed:
    """Why a target is not shown in some case."""

    reason: str


#: What is known of a target in a case: shown (None), open, or failed.
Status: TypeAlias = "Undecided | Failed | None"


@dataclass(frozen=True)
class Branch:
    """A question, and a tree for each answer; or a leaf."""

    question: Question | None = None
    children: tuple[Branch, ...] = ()
    #: Of a leaf that cannot occur: assumptions that contradict one another.
    contradiction: tuple[tuple[str, int], ...] | None = None

    @property
    def leaves(self) -> int:
        """How many cases there are, the impossible ones left out."""
        if self.question is None:
            return int(self.contradiction is None)
        return sum(child.leaves for child in self.children)


@dataclass(frozen=True)
class Tree:
    """Cases that cover everything, and the targets that are shown in each of them."""

    root: Branch
    targets: frozenset[int]


@dataclass
class Evidence:
    """What a proof found out."""

    ring: Ring
    questions: Questions
    hypotheses: list[Assumption]
    trees: list[Tree] = field(default_factory=list)
    entries: int = 0
    targets: int = 0
    terms: int = 0

    @property
    def cases(self) -> int:
        """Leaves of all trees."""
        return sum(tree.root.leaves for tree in self.trees)


class NotProvenError(LocumError):
    """A case that could neither be shown nor be refuted, or a limit that was reached."""

    def __init__(self, problem: str, assumptions: str = "", case: Case | None = None) -> None:
        self.assumptions = assumptions
        #: The case that could not be shown, if it came to that.
        self.case = case
        super().__init__(problem)


class Prover:
    """One attempt at a claim."""

    def __init__(
        self, claim: Claim, limits: Limits | None = None, progress: Progress | None = None
    ) -> None:
        self.claim = claim
        self.limits = limits or Limits()
        self.progress = progress or (lambda done, total, cases: None)

    def prove(self) -> Evidence:
        """Show all targets, or raise :class:`NotProvenError`."""
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
        #: Values that no case changes.
        self.settled: dict[Node, Any] = {}
        self.cases = self.terms = 0
        # The reference comes first: its exponentials are the simplest, and others are made of them.
        root = claim.content["formulas"]["roots"][0]
        domain = SymbolicDomain(self.ring, Case(self.questions))
        self.settled_reference = {
            part: rows
            for part, rows in claim.evaluate([root], self.symbols, domain).items()
            if not any(has_open(row, self.ring) for row in rows)
        }
        evidence = Evidence(self.ring, self.questions, self._hypotheses())
        start = Case(self.questions, evidence.hypotheses)
        self._settle(start)
        #: Signs that are known of what no case changes.
        self.signs = dict(self.ring.signs)
        first = self.run(start)
        evidence.entries = sum(map(len, claim.places))
        evidence.targets = self.targets = len(first)
        left = set(range(len(first)))
        while left:
            target = min(left)
            root, shown = self._explore(start, target, first)
            if target not in shown:
                raise AssertionError("a tree decides the target that it was grown for")
            tree = Tree(root, frozenset(shown & left))
            evidence.trees.append(tree)
            left -= tree.targets
            self.progress(len(first) - len(left), len(first), self.cases)
        evidence.terms = self.terms
        return evidence

    def _hypotheses(self) -> list[Assumption]:
        """Return what the conditions say of the signs of irreducible polynomials."""
        assumptions: list[Assumption] = []
        domain = SymbolicDomain(self.ring, Case(self.questions))
        for value, relation in self.claim.condition_values(self.symbols, domain):
            if not isinstance(value, Ratio) or not is_constant(value.bottom):
                raise NotProvenError(f"{self.claim.title}: a condition is not about a polynomial")
            if self.ring.is_passing(value):
                raise NotProvenError(
                    f"{self.claim.title}: a condition depends on a comparison, as max(a, b) does; "
                    "try conditions about polynomials and absolute values"
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
        """Evaluate once what no case changes; what depends on something open is left to each case."""
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
        """Return whether the closed nodes below, as far as families reach, are settled."""
        reached = postorder(*node.inputs, into=lambda one: bool(one.free) or one not in self.settled)
        return all(one.free or one.op == "family" for one in reached)

    def run(self, case: Case) -> list[Status]:
        """Return the status of every target in a case."""
        self.limits.check_time()
        self.questions.forget_choices()
        domain = SymbolicDomain(self.ring, case)
        values = dense.evaluate(
            self.claim.program, self.tokens, domain, self.claim.names, known=self.settled
        )
        if not isinstance(values, list):
            raise NotProvenError("a claim is about an s-op, not about a selector")
        sites = [Failed(site.reason) if isinstance(site, Broken) else site for site in domain.sites]
        expected = self.claim.expected(self.symbols, domain, self.settled_reference)
        pairs = zip(self.claim.result(values), expected, strict=True)
        status = [self._compare(a, b, case, domain) for a, b in pairs] + sites
        self.ring.signs = dict(self.signs)  # what was noted in this case holds in this case alone
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
        """Return the question that would decide an absolute value in a difference."""
        for slot in self.ring.occurring(difference.top):
            if slot.function == "absolute" and slot.argument is not None:
                positive = case.is_positive(slot.argument)
                if isinstance(positive, Undecided):
                    return positive.question
        return None

    def _explore(
        self, start: Case, target: int, status: list[Status] | None = None
    ) -> tuple[Branch, set[int]]:
        """Search a tree whose leaves all decide the target; return it and what every leaf shows."""
        status = self.run(start) if status is None else status
        if len(status) != self.targets:
            raise NotProvenError("runs of one program differ in the operations that they meet")
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
        if shown is None:  # every answer is impossible, and so is the case
            shown = set(range(len(status)))
        return Branch(here.question, tuple(children)), shown

    def describe(self, case: Case) -> str:
        """Return the assumptions of a case, in words."""
        return ", ".join(self._in_words(one) for one in case.assumptions) or "no assumption"

    def _in_words(self, assumption: Assumption) -> str:
        question, answer = assumption.question, assumption.answer
        if question.relation == "%":
            return f"{question.polynomial} mod {question.modulus} = {answer}"
        relation = {(">", 1): ">", (">", 0): "≤", ("=", 1): "=", ("=", 0): "≠"}[
            question.relation, answer
        ]
        return f"{self.ring.show(self.questions.polynomials[question.polynomial])} {relation} 0"
