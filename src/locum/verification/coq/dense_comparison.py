"""Compare dense execution with the executable semantics of ``proofs/Rationals.v`` on random programs.

A :class:`Case` is a random program, tokens, and the values of dense execution. ``stated`` writes it as
an equation that Coq decides by computation. Programs have the operations of ``proofs/Rasp.v`` whose
values are rational; tokens are integers, halves and booleans.

>>> case = draw_cases(seed=0, count=1)[0]
>>> case.stated("example").startswith("Example example : runQ [")
True
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeVar

from locum.errors import ExecutionError, LocumError
from locum.execution import DOMAINS, dense
from locum.execution.domains import Domain, Value
from locum.execution.domains.exact import ExactDomain
from locum.execution.fuzzing import SeededDraws
from locum.graph import PREDICATES, Node, Sort, postorder, sort_of
from locum.graph.atoms import canonical_set
from locum.graph.operations import PREDICATE_OF
from locum.graph.random_programs import grow
from locum.verification.coq.terms import BINARY, UNARY, coq_term

T = TypeVar("T")

#: Operations of ``Rasp.v`` whose values may be irrational: ``Rationals.v`` does not compute them.
_IRRATIONAL = ("exp", "log", "sqrt", "tanh", "sin", "erf")
_ELEMENTWISE = (
    *(op for op in UNARY if op not in _IRRATIONAL),
    *BINARY,
    *PREDICATE_OF,
    "member",
    "if_else",
)
_SELECTORS = ("select", "select", "selector_and", "selector_or", "selector_not", "best")
_ATTENTION = ("aggregate", "aggregate", "selector_width")
#: Elementwise operations once, attention more often.
_OPERATIONS = (*_ELEMENTWISE, *_SELECTORS * 3, *_ATTENTION * 3)
#: Errors of dense execution that mean "no value" in ``Rasp.v``.
_NO_VALUE = ("ZeroDivisionError", "average", "not real")
_LARGEST_EXPONENT = 8
#: Operations of a program: drawn at most, and used at least.
_LARGEST_PROGRAM, _SMALLEST_PROGRAM = 30, 5
#: Numbers n/2ᵏ with |n| < 2⁴⁰ and k ≤ 10: sums and products of a few are exact in float64.
_LARGEST_NUMERATOR, _LARGEST_DENOMINATOR = 2**40, 2**10


@dataclass(frozen=True)
class Case:
    """A program, its tokens and its values; None where dense execution raises an error."""

    program: Node
    tokens: tuple[Any, ...]
    values: tuple[Any, ...] | None

    def stated(self, name: str) -> str:
        """Write the equation that Coq decides."""
        tokens = "; ".join(map(_value, self.tokens))
        expected = "NoValue"
        if self.values is not None:
            expected = f"Value [{'; '.join(map(_value, self.values))}]"
        return (
            f"Example {name} : runQ [{tokens}] (\n{coq_term(self.program)}) = {expected}.\n"
            f"Proof. vm_cast_no_check (@eq_refl (outcome (list valueQ)) ({expected})). Qed.\n"
        )


def draw_cases(seed: int, count: int) -> list[Case]:
    """Draw random programs, run each of them in dense execution, and return the results."""
    draw = random.Random(seed)
    cases: list[Case] = []
    while len(cases) < count:
        program = grow(_Draws(draw), _LARGEST_PROGRAM, sorts=(Sort.SOP,))
        tokens = tuple(_draw_number(draw) for _ in range(draw.randint(1, 6)))
        operations = [node.op for node in postorder(program) if node.inputs]
        if len(operations) < _SMALLEST_PROGRAM or not {*operations} & {*_ATTENTION}:
            continue
        try:
            values = _run(program, tokens, _Rationals())
        except _IrrationalError:
            continue
        cases.append(Case(program, tokens, values))
        _require_same_floats(cases[-1])
    return cases


class _IrrationalError(Exception):
    """A power that may be irrational, or is too large to compare."""


def _power(base: Any, exponent: Any) -> Any:
    power = Fraction(DOMAINS["exact"].result(exponent))
    if abs(power) > _LARGEST_EXPONENT or (power.denominator != 1 and base > 0):
        raise _IrrationalError
    return ExactDomain.meanings["power"](base, exponent)


class _Rationals(ExactDomain):
    """The exact domain without powers that ``Rationals.v`` does not compute."""

    meanings: Mapping[str, Callable[..., Value]] = {**ExactDomain.meanings, "power": _power}


def _run(program: Node, tokens: tuple[Any, ...], domain: Domain) -> tuple[Any, ...] | None:
    """Return the values of a program in dense execution, None if it has no value."""
    try:
        values = dense.evaluate(program, tokens, domain)
    except ExecutionError as error:
        if error.kind not in _NO_VALUE:
            raise
        return None
    return tuple(map(domain.result, values))


def _require_same_floats(case: Case) -> None:
    """Raise an error if float64 holds all values of a case, and the float domain has other values."""
    if not _floats_are_exact(case):
        return
    floats = _run(case.program, case.tokens, DOMAINS["float"])
    if _typed(floats) != _typed(case.values):
        raise LocumError(
            "dense execution: expected equal values in the domains exact and float, got "
            f"{case.values} and {floats} for the tokens {case.tokens} and the program\n"
            f"{coq_term(case.program)}"
        )


def _typed(values: tuple[Any, ...] | None) -> list[tuple[bool, Any]] | None:
    """Return values that are equal if the values are: True is not 1, and 2.0 is 2."""
    return None if values is None else [(isinstance(value, bool), value) for value in values]


def _floats_are_exact(case: Case) -> bool:
    """Return whether float64 holds every intermediate value of a program without families."""
    nodes = list(postorder(case.program))
    if case.values is None or any(node.op == "sum_over" for node in nodes):
        return False
    domain = DOMAINS["exact"]
    roots = [node for node in nodes if sort_of(node) is Sort.SOP]
    results = dense.evaluate_all(roots, case.tokens, domain)
    fractions = [Fraction(domain.result(value)) for result in results for value in result]
    return all(
        abs(value.numerator) < _LARGEST_NUMERATOR
        and value.denominator <= _LARGEST_DENOMINATOR
        and value.denominator.bit_count() == 1
        for value in fractions
    )


def _value(value: Any) -> str:
    """Write a value of ``Rationals.v``."""
    if isinstance(value, bool):
        return f"BoolQ {str(value).lower()}"
    fraction = Fraction(value)
    return f"NumQ (({fraction.numerator}) # {fraction.denominator})"


def _draw_number(draw: random.Random) -> Any:
    """Draw an integer, a half or a boolean."""
    match draw.randrange(6):
        case 0:
            return draw.random() < 0.5
        case 1:
            return draw.randint(-5, 9) / 2
        case _:
            return draw.randint(-3, 5)


class _Draws(SeededDraws):
    """The decisions of :func:`grow`, for programs of numbers and booleans."""

    def attribute(self, name: str) -> Any:
        match name:
            case "cast":
                return "asis"
            case "predicate":
                return self.draw.choice(PREDICATES)
            case "values":
                return canonical_set([_draw_number(self.draw) for _ in range(self.draw.randint(0, 3))])
        return _draw_number(self.draw)

    def operations(self) -> Sequence[str]:
        return _OPERATIONS
