"""Write the equations for Coq, and compare them with the accepted ones and with dense execution.

Some equations are the same in every run. After Coq accepted them, ``make coq`` writes their hashes and
the hashes of the files in ``proofs/`` to ``proofs/accepted.txt``. The tests compare the hashes without
Coq.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
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
from locum.proofs.coq.coq_text import BINARY, UNARY, coq_term
from locum.proofs.coq.tie_table import BY_NAME, LAYOUTS, MUTANTS, TIES, state_positions
from locum.proofs.coq.ties import PREAMBLE, Tie, state_inequality

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


#: In the order in which they build on each other; the last imports all of them.
FILES = (
    "Rasp", "Reasoning", "Matrices", "Softmax", "Sums", "Products", "Masks", "Lines", "Scatter",
    "Universal", "Paper", "Heads", "Tiled", "Norm", "Activations",
    "Encoder", "Sequences", "Sorting", "GroupSort", "Maxout", "Inversion", "Hierarchy", "Kinds",
    "Encoding", "Rationals", "Agreement", "Errata", "Constructions",
)  # fmt: skip
#: Random programs in every run: the same ones, and others for each seed.
SAME_PROGRAMS, OTHER_PROGRAMS = 200, 100
#: Random shapes of each tie in a run.
RANDOM_SHAPES = 3
#: The file of hashes, in the folder of the proofs.
ACCEPTED = "accepted.txt"
HEADER = (
    "From Coq Require Import List ZArith QArith.\nImport ListNotations.\nOpen Scope nat_scope.\n"
    f"From Locum Require Import {' '.join(FILES)}.\n{PREAMBLE}\n"
)


def same_equations() -> dict[str, Callable[[], str]]:
    """Return functions that write the equations of every run, by their subjects."""

    def write(tie: Tie) -> Callable[[], str]:
        return lambda: "\n".join(map(tie.stated, dict.fromkeys((*tie.shapes, *tie.sweep()))))

    return {
        "header": lambda: "",
        **{f"tie {tie.name}": write(tie) for tie in TIES},
        "positions": lambda: "\n".join(map(state_positions, LAYOUTS)),
        "mutants": lambda: "\n".join(
            state_inequality(BY_NAME[name], shape, mutant()) for name, shape, mutant in MUTANTS
        ),
        "programs": lambda: _write_programs(0, SAME_PROGRAMS),
    }


def random_equations(seed: int) -> Iterator[str]:
    """Write the equations that depend on a seed."""
    for tie in TIES:
        yield from map(tie.stated, tie.draw(seed, RANDOM_SHAPES))
    yield _write_programs(seed, OTHER_PROGRAMS)


def hash_files(proofs: Path) -> dict[str, str]:
    """Return the hash of each file of the proofs."""
    names = [*(f"{name}.v" for name in FILES), "axioms.txt"]
    return {name: _hash((proofs / name).read_text(encoding="utf-8")) for name in names}


def hash_equations(subject: str, text: str) -> str:
    """Return the hash of the equations on one subject."""
    return _hash(HEADER + text if subject == "header" else text)


def read_accepted(proofs: Path) -> dict[str, str]:
    """Read the hashes of the files and equations that Coq accepted."""
    lines = (proofs / ACCEPTED).read_text(encoding="utf-8").splitlines()
    return {subject: found for found, subject in (line.split("  ", 1) for line in lines)}


def write_accepted(proofs: Path, hashes: Mapping[str, str]) -> bool:
    """Write the hashes of accepted files and equations; return whether the file changed."""
    path = proofs / ACCEPTED
    text = "".join(f"{found}  {subject}\n" for subject, found in hashes.items())
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return False
    path.write_text(text, encoding="utf-8")
    return True


def _write_programs(seed: int, count: int) -> str:
    cases = enumerate(draw_cases(seed, count))
    return "\n".join(case.stated(f"program_{number}") for number, case in cases)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]
