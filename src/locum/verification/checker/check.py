"""Check a certificate of a proof, or a refutation.

A certificate contains a claim and *trees* of cases. A branch of a tree asks a question and has a child
for each answer. A leaf is ``{"shown": hints}`` or ``{"impossible": bounds}``. At each leaf, the checker
evaluates the reference and every node of the program, from the claim and the answers above the leaf.
The entries of a tree must be equal at each of its shown leaves, and an impossible leaf must contradict
itself. The trees must compare every entry, and for every operation one tree must show at all of its
leaves that the operation has a value.

A refutation contains a claim and rational numbers. The claim is refuted if the conditions hold at these
numbers, the reference has a value, and the program has no value or another value. A comparison that the
rational bounds of functions do not decide refutes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from locum.verification.checker import content as files
from locum.verification.checker.case import COMPARISONS, Case, Hints, NoValueError, Value, is_number
from locum.verification.checker.content import RejectedError, Subject, require_indices
from locum.verification.checker.evaluate import Site
from locum.verification.checker.facts import ANY, Signs
from locum.verification.checker.quotients import Polynomial, Quotient, simplify
from locum.verification.checker.reference import Matrix, evaluate_formulas, read_rational

#: An answer: (question, signs) or (entry, modulus, remainder).
Answer: TypeAlias = "tuple[Any, Signs] | tuple[Any, int, int]"


@dataclass(frozen=True)
class Refuted:
    """The input matrices of a refutation, and what the program and the reference give."""

    inputs: dict[str, list[list[str]]]
    #: Row by row; None if the program has no value.
    found: tuple[float, ...] | None
    expected: tuple[float, ...]
    problem: str


@files.reject_errors
def check(content: Any) -> int:
    """Check a certificate and return the number of cases; raises :class:`RejectedError`."""
    subject = files.read_subject(content, files.CERTIFICATE)
    files.require_table(content["questions"])
    cases, left = 0, set(range(len(subject.places)))
    open_sites: list[set[Site]] = []
    for tree in content["trees"]:
        require_indices(tree["entries"], len(subject.places), "entries")
        count, sites = _visit(subject, content, tree["cases"], (), tree["entries"])
        open_sites.append(sites)
        cases += count
        left -= set(tree["entries"]) if count else set()
    if left:
        raise RejectedError(f"the certificate does not show entries {sorted(left)[:10]}")
    if set.intersection(*open_sites):
        raise RejectedError("the certificate does not show that every operation has a value")
    return cases


def _visit(
    subject: Subject, content: Any, node: Any, path: Sequence[Answer], entries: Sequence[int]
) -> tuple[int, set[Site]]:
    """Check a tree; returns the number of shown leaves, and the sites that are open at one of them."""
    if "shown" in node:
        hints = iter(node["shown"])
        leaf = Leaf(subject, content, path, lambda *_: next(hints, ([], 1)))
        return 1, leaf.compare(entries)
    if "impossible" in node:
        leaf = Leaf(subject, content, path, lambda *_: ([], 1))
        if not leaf.case.facts.contradict([(leaf.question(n), s) for n, s in node["impossible"]]):
            raise RejectedError("a case is called impossible, but its facts do not show it")
        return 0, set()
    answers, cases, open_sites = list_answers(node), 0, set[Site]()
    if len(answers) != len(node["answers"]):
        raise RejectedError("branch: expected a child for each answer")
    for answer, child in zip(answers, node["answers"], strict=True):
        count, sites = _visit(subject, content, child, (*path, answer), entries)
        cases, open_sites = cases + count, open_sites | sites
    return cases, open_sites


def list_answers(node: Any) -> list[Answer]:
    """List all answers to the question of a branch; one of them holds."""
    match node:
        case {"sign": ">" | "=" as relation, "of": number}:
            holds = COMPARISONS["greater" if relation == ">" else "equal"]
            return [(number, holds), (number, ANY - holds)]
        case {"remainder": entry, "modulus": modulus} if type(modulus) is int and modulus >= 1:
            return [(entry, modulus, rest) for rest in range(modulus)]
    raise RejectedError("branch: expected a sign or a remainder by a modulus of at least 1")


class Leaf:
    """A case: the conditions of the claim and the answers above a leaf."""

    def __init__(self, subject: Subject, content: Any, path: Sequence[Answer], hints: Hints) -> None:
        self.subject, self.content = subject, content
        self.case = Case(subject.entries, subject.integer, hints)
        self.entries = self.case.entries
        self.known: dict[int, Matrix] = {}
        for root, relation in subject.conditions:
            signs = COMPARISONS["greater" if relation == ">" else "not_equal"]
            value = subject.formula(root, self.case, self.entries)
            self.case.facts.state(self._numerator(value), signs)
        for answer in path:
            if len(answer) == 2:
                self.case.facts.state(self.question(answer[0]), answer[1])
            else:
                require_indices([answer[0]], len(self.entries) * subject.integer, "remainder")
                self.case.facts.remainders.setdefault(answer[:2], answer[2])

    def _numerator(self, matrix: Matrix) -> Polynomial:
        """Return the numerator of a 1×1 matrix; the denominator must be positive."""
        [[value]] = matrix
        if not is_number(value):
            raise RejectedError("condition or question: expected a number that has a value")
        quotient = Quotient.of(value)
        if any(self.case.facts.sign_of_polynomial(one) != {1} for one in quotient.factors):
            raise RejectedError("condition or question: expected no denominator")
        return quotient.top

    def question(self, number: Any) -> Polynomial:
        """Return the polynomial that a question is about."""
        table, roots = self.content["questions"]["table"], self.content["questions"]["roots"]
        require_indices([number], len(roots), "question")
        inputs, apply = self.subject.matrices(self.entries), self.case.apply_strict
        self.known = evaluate_formulas(table, [roots[number]], inputs, apply, self.known)
        return self._numerator(self.known[roots[number]])

    def compare(self, entries: Sequence[int]) -> set[Site]:
        """Evaluate reference and program, compare entries, and return the open sites."""
        expected = self.subject.expected(self.case, self.entries)
        try:
            result, open_sites = self.subject.result(self.case, self.entries)
        except NoValueError as error:
            raise RejectedError(f"the program has no value in some case: {error}") from None
        for number in entries:
            a, b = result[number], expected[number]
            if not is_number(a) or not is_number(b):
                raise RejectedError(f"entry {number} has no definite value in some case")
            if not self.case.facts.is_zero((Quotient.of(a) - Quotient.of(b)).top):
                raise RejectedError(f"entry {number} is not what the reference gives")
        return open_sites


@files.reject_errors
def check_refutation(content: Any) -> Refuted:
    """Check a refutation; raises :class:`RejectedError` if it does not refute its claim."""
    subject = files.read_subject(content, files.REFUTATION)
    point: list[Value] = [simplify(read_rational(text)) for text in content["entries"]]
    if len(point) != subject.entries or (subject.integer and {type(x) for x in point} != {int}):
        raise RejectedError(f"entries: expected {subject.entries} numbers of the domain of the claim")
    case = Case(0, subject.integer)
    for root, relation in subject.conditions:
        [[value]] = subject.formula(root, case, point)
        if case.compare("greater" if relation == ">" else "not_equal", value, 0) is not True:
            raise RejectedError("entries: expected numbers that meet the conditions")
    expected = subject.expected(case, point)
    if not all(map(is_number, expected)):
        raise RejectedError("the reference has no definite value at these numbers")
    shown = tuple(_middle(value, case) for value in expected)
    inputs = {name: [[str(x) for x in row] for row in m] for name, m in subject.matrices(point).items()}
    try:
        result, open_sites = subject.result(case, point)
    except NoValueError as error:
        return Refuted(inputs, None, shown, f"the program has no value there: {error}")
    if open_sites:
        raise RejectedError("it is not decided whether the program has a value at these numbers")
    for place, (a, b) in enumerate(zip(result, expected, strict=True)):
        if case.compare("not_equal", a, b) is True:
            found = tuple(_middle(value, case) for value in result)
            gap = _middle(case.apply("subtract", a, b), case)
            problem = f"entry {place} {_describe(found[place], shown[place], gap)}"
            return Refuted(inputs, found, shown, problem)
    raise RejectedError("the program gives what the reference gives, as far as the bounds decide")


def _middle(value: Value, case: Case) -> float:
    """Return a float for display: the middle of the bounds; nan if there are none."""
    bounds = case.facts.bounds(Quotient.of(value)) if is_number(value) else None
    low, high = bounds or (math.nan, math.nan)
    try:
        return float((low + high) / 2)
    except OverflowError:
        return math.inf if low + high > 0 else -math.inf


def _describe(found: float, expected: float, gap: float) -> str:
    """Compare two numbers in words, by their gap if they look equal."""
    texts = f"{found:.9g}", f"{expected:.9g}"
    if texts[0] != texts[1] and "nan" not in texts:
        return f"is {texts[0]}, but should be {texts[1]}"
    words = "exceeds" if gap > 0 else "is less than" if gap < 0 else "differs from"
    return f"{words} what it should be" + (f" by {abs(gap):.2g}" if 0 < abs(gap) < math.inf else "")
