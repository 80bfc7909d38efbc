"""Proofs for all inputs: a program run on indeterminates, case by case, against its reference.

What has to be shown are *targets*: every entry of the result equals the reference's, and every site
(a division, a logarithm) has a value. A run in a case decides some of them and leaves others open,
each with the question that stands in its way; the question is answered both ways (or, for a
remainder, in all ways), which makes a tree whose leaves decide the target. Coverage is by
construction: a tree branches on complete sets of answers, from the empty case on. Targets are
settled tree by tree, so that cases of independent rows add up instead of multiplying.

A leaf where a target fails is no proof, unless its assumptions contradict one another. Then numbers are
tried: a counterexample refutes the claim, and if none is found the claim is *not proven*, no more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from locum.errors import ExecutionError, LocumError
from locum.execution import dense
from locum.execution.domains import Value
from locum.graph import Node, postorder
from locum.verification.claims.claim import Claim
from locum.verification.prover.cases import Assumption, Case, Question, Questions, Undecided
from locum.verification.prover.symbolic import OPEN, Broken, SymbolicDomain, first_open
from locum.verification.prover.symbols import LimitError, Limits, Ratio, Ring, UnsupportedError

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

    def __init__(self, problem: str, assumptions: str = "") -> None:
        self.assumptions = assumptions
        super().__init__(problem)


class Prover:
    """One attempt at a claim."""

    def __init__(
        self, claim: Claim, limits: Limits | None = None, progress: Progress | None = None
    ) -> None:
        self.claim = claim
        self.limits = limits or Limits()
        self.progress = progress or (lambda done, total, cases: None)
        self.ring = Ring(claim.entries, whole=claim.whole, limits=self.limits)
        self.questions = Questions(self.ring)
        self.symbols = self.ring.entries
        self.tokens = claim.tokens(self.symbols)
        #: Values that no case changes.
        self.settled: dict[Node, Any] = {}
        self.targets = 0
        self.cases = 0
        self.terms = 0

    def prove(self) -> Evidence:
        """The evidence that all targets are shown, or :class:`NotProvenError`."""
        self.limits.start()
        try:
            return self._prove()
        except LimitError as limit:
            raise NotProvenError(f"{self.claim.title} is not proven within {limit}") from None
        except (UnsupportedError, ExecutionError) as problem:
            raise NotProvenError(f"{self.claim.title} is not proven: {problem}") from None

    def _prove(self) -> Evidence:
        # The reference comes first: its exponentials are the simplest, and others are made of them.
        self.claim.wanted(self.symbols, SymbolicDomain(self.ring, Case(self.questions)))
        evidence = Evidence(self.ring, self.questions, self._hypotheses())
        start = Case(self.questions, evidence.hypotheses)
        self._settle(start)
        first = self.run(start)
        evidence.entries = sum(map(len, self.claim.places))
        evidence.targets = self.targets = len(first)
        left = set(range(len(first)))
        while left:
            target = min(left)
            root, shown = self._explore(start, target)
            if target not in shown:
                raise AssertionError("a tree decides the target that it was grown for")
            tree = Tree(root, frozenset(shown & left))
            evidence.trees.append(tree)
            left -= tree.targets
            self.progress(len(first) - len(left), len(first), self.cases)
        evidence.terms = self.terms
        return evidence

    def _hypotheses(self) -> list[Assumption]:
        found = []
        domain = SymbolicDomain(self.ring, Case(self.questions))
        for words, value in self.claim.assumed(self.symbols, domain):
            if not isinstance(value, Ratio):
                raise NotProvenError(f"{self.claim.title}: the condition {words} is about no symbol")
            _, factors = self.questions.factors(value.top)
            found += [Assumption(Question(name, "="), 0) for name, _ in factors]
        return found

    def _settle(self, start: Case) -> None:
        """Evaluate what needs no case once, instead of in every case."""
        for node in postorder(self.claim.program):
            if node.free or node.op == "family":
                continue
            domain = SymbolicDomain(self.ring, start)
            value = dense.evaluate(node, self.tokens, domain, known=self.settled)
            if not any(isinstance(site, OPEN) for site in domain.sites) and not _has_open(value):
                self.settled[node] = value

    def run(self, case: Case) -> list[Status]:
        """The status of every target in a case."""
        self.limits.check_time()
        domain = SymbolicDomain(self.ring, case)
        values = dense.evaluate(
            self.claim.program, self.tokens, domain, self.claim.names, known=self.settled
        )
        if not isinstance(values, list):
            raise NotProvenError("a claim is about an s-op, not about a selector")
        found = self.claim.found(values)
        sites = [self._site(site) for site in domain.sites]
        wanted = self.claim.wanted(self.symbols, domain)
        if len(wanted) != len(found):
            raise NotProvenError(f"the program gives {len(found)} entries, the reference {len(wanted)}")
        pairs = zip(found, wanted, strict=True)
        return [self._compare(a, b, case) for a, b in pairs] + sites

    def _site(self, site: Undecided | Broken | None) -> Status:
        return Failed(site.reason) if isinstance(site, Broken) else site

    def _compare(self, found: Value, wanted: Value, case: Case) -> Status:
        trouble = first_open((found, wanted))
        if isinstance(trouble, Broken):
            return Failed(trouble.reason)
        if trouble is not None:
            return trouble
        difference = _number(found) - _number(wanted)
        if not isinstance(difference, Ratio):
            return None if difference == 0 else Failed(f"{found} instead of {wanted}")
        self.terms += sum(len(v.top) + len(v.bottom) for v in (found, wanted) if isinstance(v, Ratio))
        if case.vanishes(difference.top):
            return None
        return Failed(f"the difference is {difference.show()}")

    def _explore(self, start: Case, target: int) -> tuple[Branch, set[int]]:
        """A tree whose leaves all decide the target; and all targets shown at every leaf."""
        status = self.run(start)
        if len(status) != self.targets:
            raise NotProvenError("runs of one program differ in the operations that they meet")
        here = status[target]
        if not isinstance(here, Undecided):
            if isinstance(here, Failed):
                raise NotProvenError(
                    f"{self.claim.title} is not proven: {here.reason}", self.describe(start)
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
        """The assumptions of a case, in words."""
        return ", ".join(self._in_words(one) for one in case.assumptions) or "no assumption"

    def _in_words(self, assumption: Assumption) -> str:
        question, answer = assumption.question, assumption.answer
        if question.relation == "%":
            return f"{question.polynomial} mod {question.modulus} = {answer}"
        relation = {(">", 1): ">", (">", 0): "≤", ("=", 1): "=", ("=", 0): "≠"}[
            question.relation, answer
        ]
        return f"{self.ring.show(self.questions.polynomials[question.polynomial])} {relation} 0"


def _number(value: Value) -> Value:
    return int(value) if isinstance(value, bool) else value


def _has_open(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return bool(value.dtype == object)
    return any(isinstance(one, OPEN) for one in value)
