"""Check a certificate of a proof.

A certificate contains the program, the reference formula and trees of cases. A branch of a tree must
have a child for each answer, so that the cases cover all inputs. At a leaf marked ``"shown"``, the
program and the reference are evaluated under the assumptions of the branches above it, and the entries
must be equal. A leaf marked ``"impossible"`` must have contradictory assumptions. The trees together
must compare every entry. For every operation, one tree must show that the operation has a value.

Each leaf is evaluated from scratch. A value that is the same in all cases must not be reused: it may
have operands that the result does not depend on, and these operands must also have a value.

The result depends on this package and on the program graph (``locum.graph``), which the prover also
uses. It does not depend on the rest of Locum.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from locum.errors import InputError
from locum.verification.checker.content import CERTIFICATE, RejectedError, Subject, read_subject
from locum.verification.checker.evaluate import Evaluator, Site
from locum.verification.checker.formula_table import rational
from locum.verification.checker.knowledge import ANY, Knowledge, Signs
from locum.verification.checker.numbers import Numbers
from locum.verification.checker.polynomials import MAX_DEGREE, Polynomial
from locum.verification.checker.quotients import Quotient
from locum.verification.checker.reference import Matrix, Reference
from locum.verification.checker.scalars import Scalars
from locum.verification.checker.values import Missing, Scalar, is_number
from locum.verification.checker.work import OPERATION, STEPS

#: Polynomials and functions of a certificate, terms of one, and levels of a tree, at most.
MAX_LISTED = 2_000
MAX_TERMS = 20_000
MAX_DEPTH = 150


@dataclass(frozen=True)
class Checked:
    """What a certificate proves."""

    statement: str
    #: The hash of the program.
    program: str
    cases: int
    entries: int
    #: The steps that it needed (``work.py``).
    steps: int


def check(certificate: Any, steps: int = STEPS) -> Checked:
    """Go through a certificate; :class:`RejectedError` if anything is amiss, or takes too much work."""
    checked: Checked = guarded(lambda: _Check(certificate, steps).run())
    return checked


def guarded(action: Any) -> Any:
    """Turn every complaint about a file into a described rejection."""
    try:
        return action()
    except RejectedError:
        raise
    except InputError as error:
        raise RejectedError(str(error)) from None
    except (ArithmeticError, LookupError, TypeError, ValueError, AttributeError) as error:
        problem = f"{type(error).__name__}: {error}"
        raise RejectedError(f"this is not a certificate, or a damaged one ({problem})") from None
    except RecursionError:
        raise RejectedError("this is not a certificate: it is nested too deeply") from None
    except MemoryError:
        raise RejectedError("it takes more memory than there is") from None


class _Check:
    def __init__(self, content: Any, steps: int) -> None:
        self.subject: Subject = read_subject(content, CERTIFICATE)
        self.content = content
        self.numbers = Numbers(self.subject.entries, steps)
        # To read a file takes its time, too: a step for every character.
        self.numbers.spend(len(json.dumps(content)))
        self.cases = 0
        self.compared: set[int] = set()

    def run(self) -> Checked:
        subject, content = self.subject, self.content
        start = assumed(subject, self.numbers)
        self.polynomials = self._polynomials(start)
        self.snapshot = self.numbers.snapshot()
        entries = set(range(sum(map(len, subject.places))))
        left = set(entries)
        #: The operations that each tree does not show to have a value.
        left_open: list[set[Site]] = []
        for tree in content["trees"]:
            shown = set(tree["entries"])
            if not shown <= entries or not all(type(number) is int for number in shown):
                raise RejectedError("a tree is about an entry that there is not")
            left_open.append(self._walk(tree["cases"], start, shown, 0))
            left -= shown
        if left:
            raise RejectedError(f"the certificate does not show entries {sorted(left)[:10]}")
        if self.compared != entries:
            raise RejectedError("some entry is never compared with the reference")
        if set.intersection(*left_open):
            raise RejectedError("the certificate does not show that every operation has a value")
        if type(content["cases"]) is not int or self.cases != content["cases"]:
            raise RejectedError(f"the certificate has {self.cases} cases, not {content['cases']}")
        steps = self.numbers.work.needed
        return Checked(subject.statement, subject.hash, self.cases, len(entries), steps)

    @property
    def tokens(self) -> list[Scalar]:
        return tokens_of(self.subject, self.numbers.entries)

    def _polynomials(self, start: Knowledge) -> list[Polynomial]:
        """Read the polynomials that questions are about."""
        functions, polynomials = self.content["functions"], self.content["polynomials"]
        if len(functions) > MAX_LISTED or len(polynomials) > MAX_LISTED:
            raise RejectedError(f"expected at most {MAX_LISTED:,} functions and polynomials")
        variables = list(self.numbers.entries)
        scalars = Scalars(start, self.subject.integer)
        for row in functions:
            top, bottom = (self._quotient(row[part], variables) for part in ("top", "bottom"))
            argument = scalars.divide(scalars.plain(top), scalars.plain(bottom))
            base = None if row["base"] is None else rational(row["base"])
            if base is not None:
                value = scalars.power(base, argument) if row["function"] == "exp" else None
            else:
                value = scalars.operations[row["function"]](argument)
            if not is_number(value):
                raise RejectedError("a function of the certificate may have no value")
            variables.append(scalars.quotient(value))
        read = []
        for terms in polynomials:
            value = self._quotient(terms, variables)
            for number, _ in value.factors:
                if start.possible(self.numbers.factor(number)) != {1}:
                    raise RejectedError("a polynomial of the certificate has a denominator")
            read.append(value.top)
        return read

    def _quotient(self, terms: Any, variables: list[Quotient]) -> Quotient:
        """Read a polynomial: [coefficient, [[variable, power], …]] for every term."""
        if not isinstance(terms, list) or len(terms) > MAX_TERMS:
            raise RejectedError(f"expected a polynomial of at most {MAX_TERMS:,} terms")
        total = self.numbers.number(0)
        for coefficient, factors in terms:
            self.numbers.spend(OPERATION * (2 + len(factors)))
            term = self.numbers.number(rational(coefficient))
            for variable, power in factors:
                if type(power) is not int or not 1 <= power <= MAX_DEGREE or type(variable) is not int:
                    raise RejectedError(f"expected powers from 1 to {MAX_DEGREE}")
                if not 0 <= variable < len(variables):
                    raise RejectedError("a polynomial of the certificate has an unknown variable")
                term = self.numbers.multiply(term, self.numbers.power(variables[variable], power))
            total = self.numbers.add(total, term)
        return total

    # Trees ----------------------------------------------------------------------------------------

    def _walk(self, node: Any, case: Knowledge, entries: set[int], depth: int) -> set[Site]:
        """Go through a tree; gives the sites that some leaf leaves open."""
        self.numbers.spend(OPERATION)
        if depth > MAX_DEPTH:
            raise RejectedError(f"expected trees of at most {MAX_DEPTH} levels")
        if node == "shown":
            return self._leaf(case, entries)
        if "impossible" in node:
            self.numbers.spend(10 * OPERATION)
            self.numbers.restore(self.snapshot)  # what the case before noted holds there alone
            bounds = [(self._polynomial(number), side) for number, side in node["impossible"]]
            if not case.refuted_by(bounds):
                raise RejectedError("a case is called impossible, but its assumptions do not show it")
            return set()
        answers = node["answers"]
        cases = self._remainders(node, case) if "remainder" in node else self._signs(node, case)
        if not isinstance(answers, list) or len(answers) != len(cases):
            raise RejectedError("a branch does not have a child for each of its answers")
        left_open: set[Site] = set()
        for child, here in zip(answers, cases, strict=True):
            left_open |= self._walk(child, here, entries, depth + 1)
        return left_open

    def _remainders(self, node: Any, case: Knowledge) -> list[Knowledge]:
        modulus, entry = node["modulus"], node["remainder"]
        if type(modulus) is not int or not 1 <= modulus <= 1_000:
            raise RejectedError("expected a modulus from 1 to 1,000")
        if not self.subject.integer or type(entry) is not int or not 0 <= entry < self.subject.entries:
            raise RejectedError("expected a remainder of an entry that is an integer")
        return [case.with_remainder(entry, modulus, rest) for rest in range(modulus)]

    def _signs(self, node: Any, case: Knowledge) -> list[Knowledge]:
        holds: Signs = {">": frozenset((1,)), "=": frozenset((0,))}[node["sign"]]
        polynomial = self._polynomial(node["of"])
        return [case.with_sign(polynomial, holds), case.with_sign(polynomial, ANY - holds)]

    def _polynomial(self, number: Any) -> Polynomial:
        if type(number) is not int or not 0 <= number < len(self.polynomials):
            raise RejectedError("a question is about a polynomial that is not listed")
        return self.polynomials[number]

    def _leaf(self, case: Knowledge, entries: set[int]) -> set[Site]:
        """Evaluate program and reference in a case, and compare these entries."""
        self.cases += 1
        self.numbers.spend(20 * OPERATION)
        self.numbers.restore(self.snapshot)
        case = Knowledge(self.numbers, case.stated, case.remainders)
        scalars = Scalars(case, self.subject.integer)
        evaluator = Evaluator(scalars, self.tokens)
        values = evaluator.evaluate(self.subject.program)
        result = [values[place] for row in self.subject.places for place in row]
        reference = Reference(scalars, inputs_of(self.subject, self.numbers.entries))
        rows = reference.evaluate(self.subject.reference)
        expected = [value for row in rows for value in row]
        self.numbers.spend(OPERATION * len(expected))
        for number in entries:
            self._compare(number, result[number], expected[number], scalars)
        return evaluator.open_sites

    def _compare(self, number: int, actual: Scalar, expected: Scalar, scalars: Scalars) -> None:
        numeric = [scalars.numeric(value) for value in (actual, expected)]
        if not all(map(is_number, numeric)):
            raise RejectedError(f"entry {number} has no definite value in some case")
        a, b = map(scalars.quotient, numeric)
        if not scalars.knowledge.vanishes(self.numbers.subtract(a, b).top):
            raise RejectedError(f"entry {number} is not what the reference gives")
        self.compared.add(number)


def tokens_of(subject: Subject, entries: list[Quotient] | list[Scalar]) -> list[Scalar]:
    """Return the sequence that the program is run on."""
    matrices = list(inputs_of(subject, entries).values())
    return [
        token if isinstance(token, int) else matrices[token[0]][token[1]][token[2]]
        for token in subject.tokens
    ]


def inputs_of(subject: Subject, entries: list[Quotient] | list[Scalar]) -> dict[str, Matrix]:
    """Arrange the entries as the input matrices, by name."""
    values = iter(entries)
    return {
        x.attribute[0]: [[next(values) for _ in range(x.columns)] for _ in range(x.rows)]
        for x in subject.inputs
    }


def assumed(subject: Subject, numbers: Numbers) -> Knowledge:
    """Return what the conditions state."""
    knowledge = Knowledge(numbers)
    scalars = Scalars(knowledge, subject.integer)
    reference = Reference(scalars, inputs_of(subject, numbers.entries))
    for formula, relation in subject.conditions:
        value = reference.evaluate(formula)[0][0]
        if not is_number(value) or isinstance(value, Missing):
            raise RejectedError("a condition may have no value")
        quotient = scalars.quotient(value)
        for number, _ in quotient.factors:
            if knowledge.possible(numbers.factor(number)) != {1}:
                raise RejectedError("a condition is about a quotient: multiply by its denominator")
        if quotient.top.is_constant:
            raise RejectedError("a condition is not about any input")
        allowed: Signs = frozenset((1,)) if relation == ">" else frozenset((-1, 1))
        knowledge = knowledge.with_sign(quotient.top, allowed)
    return knowledge
