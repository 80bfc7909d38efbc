"""Check a refutation: numbers for which a program does not give what is claimed.

Program and reference are evaluated at the rational numbers of the file, exactly or in rational
enclosures (``enclosures.py``). The claim is refuted if the conditions hold there, the reference has a
value, and the program has none, or one that is apart. What is merely too large, or not decided by the
enclosures, refutes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from locum.verification.checker.check import guarded, inputs_of, tokens_of
from locum.verification.checker.content import REFUTATION, RejectedError, Subject, read_subject
from locum.verification.checker.evaluate import Evaluator, NoValueError
from locum.verification.checker.formula_table import rational
from locum.verification.checker.knowledge import Knowledge
from locum.verification.checker.numbers import Numbers
from locum.verification.checker.quotients import Quotient
from locum.verification.checker.reference import Matrix, Reference
from locum.verification.checker.scalars import Scalars
from locum.verification.checker.values import Scalar, is_number, simple
from locum.verification.checker.work import STEPS


@dataclass(frozen=True)
class Refuted:
    """What a refutation shows."""

    statement: str
    #: The hash of the program.
    program: str
    #: The input matrices, by name.
    inputs: dict[str, list[list[str]]]
    #: What the program gives, row by row (None where it has no value), and what it should give.
    found: tuple[float, ...] | None
    expected: tuple[float, ...]
    problem: str


def check_refutation(content: Any, steps: int = STEPS) -> Refuted:
    """Evaluate a refutation; :class:`RejectedError` if it does not refute what it says."""
    result: Refuted = guarded(lambda: _check(content, steps))
    return result


def _check(content: Any, steps: int) -> Refuted:
    subject = read_subject(content, REFUTATION)
    entries: list[Scalar] = [simple(rational(text)) for text in content["entries"]]
    if len(entries) != subject.entries:
        raise RejectedError(f"expected {subject.entries} numbers, got {len(entries)}")
    if subject.integer and not all(type(entry) is int for entry in entries):
        raise RejectedError("expected integers, since the claim is about integers")
    scalars = Scalars(Knowledge(Numbers(0, steps)), subject.integer)
    matrices = inputs_of(subject, entries)
    reference = Reference(scalars, matrices)
    _require_conditions(subject, reference, scalars)
    expected = [value for row in reference.evaluate(subject.reference) for value in row]
    if not all(map(is_number, expected)):
        raise RejectedError("the reference has no definite value at these numbers")
    numbers = tuple(_middle(value, scalars) for value in expected)

    def refuted(outputs: tuple[float, ...] | None, problem: str) -> Refuted:
        inputs = {name: [[str(x) for x in row] for row in rows] for name, rows in matrices.items()}
        return Refuted(subject.statement, subject.hash, inputs, outputs, numbers, problem)

    evaluator = Evaluator(scalars, tokens_of(subject, entries))
    try:
        values = evaluator.evaluate(subject.program)
    except NoValueError as error:
        return refuted(None, str(error).replace(" in some case", " there"))
    if evaluator.open_sites:
        raise RejectedError("it is not decided whether the program has a value at these numbers")
    result = [scalars.numeric(values[place]) for row in subject.places for place in row]
    for place, (a, b) in enumerate(zip(result, expected, strict=True)):
        if is_number(a) and scalars.compare("not_equal", a, b) is True:
            outputs = tuple(_middle(value, scalars) for value in result)
            problem = f"entry {place} is {outputs[place]:.9g}, but should be {numbers[place]:.9g}"
            return refuted(outputs, problem)
    raise RejectedError("the program gives what the reference gives, as far as enclosures tell")


def _require_conditions(subject: Subject, reference: Reference, scalars: Scalars) -> None:
    for formula, relation in subject.conditions:
        value: Matrix = reference.evaluate(formula)
        name = "greater" if relation == ">" else "not_equal"
        if scalars.compare(name, value[0][0], 0) is not True:
            raise RejectedError("the numbers do not meet the conditions, as far as enclosures tell")


def _middle(value: Scalar, scalars: Scalars) -> float:
    """Return a number for people."""
    if not isinstance(value, Quotient):
        return float(value) if is_number(value) else float("nan")
    bounds = scalars.knowledge.bounds(value.top)
    if bounds is None:
        return float("nan")
    middle = (bounds[0] + bounds[1]) / (2 * value.scale)
    for number, power in value.factors:
        factor = scalars.knowledge.bounds(scalars.numbers.factor(number))
        if factor is None or factor[0] + factor[1] == 0:
            return float("nan")
        for _ in range(power):
            middle /= (factor[0] + factor[1]) / 2
    return _float(middle)


def _float(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")
