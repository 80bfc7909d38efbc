"""Check the certificates of proofs, and refutations.

A certificate contains a claim and *trees* of cases. A branch of a tree contains a question and a child
for each answer. A leaf is ``{"shown": hints}`` or ``{"impossible": bounds}``. At each ``shown`` leaf,
the checker evaluates the reference and every node of the program, using the claim and the answers on
the path to the leaf. The program and the reference must agree on the entries that the tree lists. The
facts of an ``impossible`` leaf must contradict each other. Together, the trees must compare every
entry. For every operation that may be undefined, at least one tree must show at all of its ``shown``
leaves that the operation is defined.

A refutation contains a claim and rational numbers for the inputs. The claim is refuted if these numbers
meet the conditions, the reference is defined, and the program is undefined or has a different value. A
comparison that the rational bounds of functions do not decide does not refute a claim.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeAlias, TypeVar

from locum.errors import InputError, LocumError
from locum.graph import Node, loads, stable_hash
from locum.proofs.checker.case_evaluation import (
    Evaluator,
    Matrix,
    Site,
    are_sizes,
    evaluate_formulas,
    read_rational,
)
from locum.proofs.checker.proof_case import COMPARISONS, Case, Hints, NoValueError, Value, is_number
from locum.proofs.checker.quotients import ANY, Polynomial, Quotient, Signs, simplify

CERTIFICATE = "locum certificate 3"
REFUTATION = "locum refutation 2"
#: The fields of a claim, and the additional fields of each format. Every file also has the fields
#: ``format`` and ``claim``. Other fields are rejected.
CLAIM_FIELDS = ("inputs", "domain", "formulas", "relations", "tokens", "places", "program")
_FIELDS = {CERTIFICATE: {"questions", "trees"}, REFUTATION: {"entries"}}

T = TypeVar("T")


class RejectedError(InputError):
    """Raised for a file that does not prove or refute its claim."""


@dataclass(frozen=True)
class Subject:
    """The claim of a file: the program computes the reference formula at ``places``."""

    program: Node
    hash: str
    #: The name, the number of rows and the number of columns of each input matrix.
    inputs: Sequence[Any]
    #: Whether the entries are integers; otherwise they are real numbers.
    integer: bool
    #: The table of formulas: rows [operation, [indices of earlier rows], attribute].
    table: Sequence[Any]
    reference: int
    #: The conditions: rows of the table, each with its relation to 0, != or >.
    conditions: Sequence[tuple[int, str]]
    #: Each token is an integer, or the entry [matrix, row, column] of an input.
    tokens: Sequence[Any]
    places: Sequence[int]

    @property
    def entries(self) -> int:
        """The total number of entries of the input matrices."""
        return sum(rows * columns for _, rows, columns in self.inputs)

    def matrices(self, entries: Sequence[Value]) -> dict[str, Matrix]:
        """Arrange a flat list of entries as a mapping from names to input matrices."""
        values = iter(entries)
        return {
            name: [[next(values) for _ in range(columns)] for _ in range(rows)]
            for name, rows, columns in self.inputs
        }

    def formula(self, root: int, case: Case, entries: Sequence[Value]) -> Matrix:
        """Evaluate row ``root`` of the table of formulas for the given entries in a case."""
        return evaluate_formulas(self.table, [root], self.matrices(entries), case.apply_strict)[root]

    def expected(self, case: Case, entries: Sequence[Value]) -> list[Value]:
        """Evaluate the reference for the given entries in a case, and return its values row by row."""
        rows = self.formula(self.reference, case, entries)
        expected = [case.to_number(value) for row in rows for value in row]
        if len(expected) != len(self.places):
            raise RejectedError("places: expected as many positions as the reference has entries")
        return expected

    def result(self, case: Case, entries: Sequence[Value]) -> tuple[list[Value], set[Site]]:
        """Evaluate the program in a case; return its values at the places, and the open sites."""
        matrices = list(self.matrices(entries).values())
        tokens = [t if type(t) is int else matrices[t[0]][t[1]][t[2]] for t in self.tokens]
        evaluator = Evaluator(case, tokens)
        values = evaluator.evaluate(self.program)
        return [case.to_number(values[place]) for place in self.places], evaluator.open_sites


def read_subject(content: Any, kind: str) -> Subject:
    """Read and validate the claim of a file; ``kind`` is the format that the file must have.

    Content that is not valid raises an error, which is not always :class:`RejectedError`.
    """
    if not isinstance(content, dict) or content.get("format") != kind:
        raise RejectedError(f"file: expected the format {kind!r}")
    if content.keys() != {"format", "claim", *CLAIM_FIELDS} | _FIELDS[kind]:
        raise RejectedError(f"file: expected the fields of the format {kind!r} and no other fields")
    inputs, relations, tokens = content["inputs"], content["relations"], content["tokens"]
    for name, *shape in inputs:
        _require(type(name) is str and len(shape) == 2 and are_sizes(*shape), "inputs")
    _require(len({name for name, _, _ in inputs}) == len(inputs), "inputs")
    table, roots = content["formulas"]["table"], content["formulas"]["roots"]
    require_table(content["formulas"])
    _require(len(roots) == len(relations) + 1 and {"!=", ">"}.issuperset(relations), "relations")
    _require(content["domain"] in ("real", "integer"), "domain")
    cells = {(n, i, j) for n, (_, r, c) in enumerate(inputs) for i in range(r) for j in range(c)}
    _require(all(type(token) is int or tuple(token) in cells for token in tokens), "tokens")
    places = [place for row in content["places"] for place in row]
    require_indices(places, len(tokens), "places")
    _require(bool(places), "places")
    program = loads(json.dumps(content["program"]["graph"]))
    _require(content["program"].keys() == {"hash", "graph"} and not program.free, "program")
    _require(content["program"]["hash"] == stable_hash(program), "hash", "the hash of the graph")
    return Subject(
        program, content["program"]["hash"], inputs, content["domain"] == "integer", table, roots[0],
        list(zip(roots[1:], relations, strict=True)), tokens, places,
    )  # fmt: skip


def _require(holds: bool, field: str, expected: str = "a value that the format allows") -> None:
    if not holds:
        raise RejectedError(f"{field}: expected {expected}, got another; see docs/certificates.md")


def require_indices(values: Sequence[Any], size: int, field: str) -> None:
    """Raise an error unless all ``values`` are integers from 0 to ``size`` − 1."""
    _require(all(type(value) is int and 0 <= value < size for value in values), field)


def require_table(formulas: Any) -> None:
    """Raise an error unless rows refer only to earlier rows, and roots are indices of rows."""
    for number, (_, operands, _) in enumerate(formulas["table"]):
        require_indices(operands, number, "formulas")
    require_indices(formulas["roots"], len(formulas["table"]), "formulas")


def reject_errors(function: Callable[[Any], T]) -> Callable[[Any], T]:
    """Wrap a function so that it raises :class:`RejectedError` instead of any other ``Exception``."""

    @wraps(function)
    def call(content: Any) -> T:
        try:
            return function(content)
        except Exception as error:  # A file can contain any value in any field.
            prefix = "" if isinstance(error, LocumError) else f"file: got {type(error).__name__}: "
            raise RejectedError(f"{prefix}{error}") from None

    return call


#: The answer to a question: (question, possible signs) or (entry, modulus, remainder).
Answer: TypeAlias = "tuple[Any, Signs] | tuple[Any, int, int]"


@dataclass(frozen=True)
class Refuted:
    """A counterexample: the input matrices, and the values of the program and of the reference."""

    inputs: dict[str, list[list[str]]]
    #: The values of the program, row by row; None if the program is undefined.
    found: tuple[float, ...] | None
    expected: tuple[float, ...]
    problem: str


@reject_errors
def check(content: Any) -> int:
    """Check a certificate and return its number of shown leaves, or raise :class:`RejectedError`."""
    subject = read_subject(content, CERTIFICATE)
    require_table(content["questions"])
    cases, left = 0, set(range(len(subject.places)))
    open_sites: list[set[Site]] = []
    for tree in content["trees"]:
        require_indices(tree["entries"], len(subject.places), "entries")
        count, sites = _visit(subject, content, tree["cases"], (), tree["entries"])
        open_sites.append(sites)
        cases += count
        left -= set(tree["entries"]) if count else set()
    if left:
        raise RejectedError(f"the certificate does not prove the entries {sorted(left)[:10]}")
    if set.intersection(*open_sites):
        raise RejectedError("the certificate does not prove that every operation is defined")
    return cases


def _visit(
    subject: Subject, content: Any, node: Any, path: Sequence[Answer], entries: Sequence[int]
) -> tuple[int, set[Site]]:
    """Check the tree of cases below ``node``.

    Return the number of shown leaves, and the sites that are open at one or more of these leaves.
    """
    if "shown" in node:
        hints = iter(node["shown"])
        leaf = Leaf(subject, content, path, lambda *_: next(hints, ([], 1)))
        return 1, leaf.compare(entries)
    if "impossible" in node:
        leaf = Leaf(subject, content, path, lambda *_: ([], 1))
        if not leaf.case.facts.contradict([(leaf.question(n), s) for n, s in node["impossible"]]):
            raise RejectedError("a case is marked as impossible, but its conditions do not prove this")
        return 0, set()
    answers, cases, open_sites = list_answers(node), 0, set[Site]()
    if len(answers) != len(node["answers"]):
        raise RejectedError("branch: expected a child for each answer")
    for answer, child in zip(answers, node["answers"], strict=True):
        count, sites = _visit(subject, content, child, (*path, answer), entries)
        cases, open_sites = cases + count, open_sites | sites
    return cases, open_sites


def list_answers(node: Any) -> list[Answer]:
    """List all possible answers to the question of a branch; exactly one answer is true."""
    match node:
        case {"sign": ">" | "=" as relation, "of": number}:
            holds = COMPARISONS["greater" if relation == ">" else "equal"]
            return [(number, holds), (number, ANY - holds)]
        case {"remainder": entry, "modulus": modulus} if type(modulus) is int and modulus >= 1:
            return [(entry, modulus, rest) for rest in range(modulus)]
    raise RejectedError("branch: expected a sign or a remainder by a modulus of at least 1")


class Leaf:
    """A case at a leaf of a tree: the conditions of the claim, and the answers on the path."""

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

    def question(self, number: Any) -> Polynomial:
        """Return the polynomial whose sign answers the question with the index ``number``."""
        table, roots = self.content["questions"]["table"], self.content["questions"]["roots"]
        require_indices([number], len(roots), "question")
        inputs, apply = self.subject.matrices(self.entries), self.case.apply_strict
        self.known = evaluate_formulas(table, [roots[number]], inputs, apply, self.known)
        return self._numerator(self.known[roots[number]])

    def compare(self, entries: Sequence[int]) -> set[Site]:
        """Require that the program and the reference agree on ``entries`` in this case.

        Return the sites that are open in this case.
        """
        expected = self.subject.expected(self.case, self.entries)
        try:
            result, open_sites = self.subject.result(self.case, self.entries)
        except NoValueError as error:
            raise RejectedError(f"the program is undefined in some case: {error}") from None
        for number in entries:
            a, b = result[number], expected[number]
            if not is_number(a) or not is_number(b):
                raise RejectedError(
                    f"the certificate does not determine the value of entry {number} in some case"
                )
            if not self.case.facts.is_zero((Quotient.of(a) - Quotient.of(b)).top):
                raise RejectedError(f"entry {number} differs from the reference")
        return open_sites


@reject_errors
def check_refutation(content: Any) -> Refuted:
    """Check a refutation and return its counterexample.

    Raise :class:`RejectedError` if the refutation does not refute its claim.
    """
    subject = read_subject(content, REFUTATION)
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
        raise RejectedError("the bounds do not determine the value of the reference at these numbers")
    shown = tuple(_middle(value, case) for value in expected)
    inputs = {name: [[str(x) for x in row] for row in m] for name, m in subject.matrices(point).items()}
    try:
        result, open_sites = subject.result(case, point)
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
