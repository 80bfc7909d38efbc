"""Write the equations that Coq checks, draw random programs for them, and store accepted hashes.

Some equations are the same in every run. After Coq has accepted these equations, ``make coq`` writes
their hashes, and the hashes of the files in ``proofs/``, to ``proofs/accepted.txt``. The tests compare
the hashes without running Coq.
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

#: Operations of ``Rasp.v`` with irrational values, which ``Rationals.v`` does not compute.
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
#: Operations of random programs: each elementwise operation once, selectors and attention more often.
_OPERATIONS = (*_ELEMENTWISE, *_SELECTORS * 3, *_ATTENTION * 3)
#: Kinds of errors of dense execution that correspond to "no value" in ``Rasp.v``.
_NO_VALUE = ("ZeroDivisionError", "average", "not real")
_LARGEST_EXPONENT = 8
#: Maximum number of operations that are drawn for a random program, without sums over families, and
#: minimum number of operations that its result uses.
_LARGEST_PROGRAM, _SMALLEST_PROGRAM = 30, 5
#: If all values of a program are n/2ᵏ with |n| < 2⁴⁰ and k ≤ 10, float64 is assumed to be exact.
_LARGEST_NUMERATOR, _LARGEST_DENOMINATOR = 2**40, 2**10


@dataclass(frozen=True)
class Case:
    """A random program, its tokens, and its values, which are None if the program is undefined."""

    program: Node
    tokens: tuple[Any, ...]
    values: tuple[Any, ...] | None

    def stated(self, name: str) -> str:
        """Write the Coq equation that the program returns these values on these tokens."""
        tokens = "; ".join(map(_value, self.tokens))
        expected = "NoValue"
        if self.values is not None:
            expected = f"Value [{'; '.join(map(_value, self.values))}]"
        return (
            f"Example {name} : runQ [{tokens}] (\n{coq_term(self.program)}) = {expected}.\n"
            f"Proof. vm_cast_no_check (@eq_refl (outcome (list valueQ)) ({expected})). Qed.\n"
        )


def draw_cases(seed: int, count: int) -> list[Case]:
    """Draw random programs with attention, and run them in dense execution on random tokens."""
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
    """Raised for a power that may be irrational, or whose exponent is too large."""


def _power(base: Any, exponent: Any) -> Any:
    power = Fraction(DOMAINS["exact"].result(exponent))
    if abs(power) > _LARGEST_EXPONENT or (power.denominator != 1 and base > 0):
        raise _IrrationalError
    return ExactDomain.meanings["power"](base, exponent)


class _Rationals(ExactDomain):
    """The exact domain, restricted to powers that ``Rationals.v`` computes."""

    meanings: Mapping[str, Callable[..., Value]] = {**ExactDomain.meanings, "power": _power}


def _run(program: Node, tokens: tuple[Any, ...], domain: Domain) -> tuple[Any, ...] | None:
    """Return the values of a program in dense execution, or None if the program is undefined."""
    try:
        values = dense.evaluate(program, tokens, domain)
    except ExecutionError as error:
        if error.kind not in _NO_VALUE:
            raise
        return None
    return tuple(map(domain.result, values))


def _require_same_floats(case: Case) -> None:
    """Raise an error if the float domain returns other values than the exact domain.

    Undefined programs, programs with families, and programs with values that float64 may not represent
    are not compared.
    """
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
    """Return values with a flag for booleans, so that True differs from 1, but 2.0 equals 2."""
    return None if values is None else [(isinstance(value, bool), value) for value in values]


def _floats_are_exact(case: Case) -> bool:
    """Return whether all values of a program are small fractions, which float64 represents.

    Return False for undefined programs and for programs with families.
    """
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
    """Write a boolean or a rational number as a Coq value of ``Rationals.v``."""
    if isinstance(value, bool):
        return f"BoolQ {str(value).lower()}"
    fraction = Fraction(value)
    return f"NumQ (({fraction.numerator}) # {fraction.denominator})"


def _draw_number(draw: random.Random) -> Any:
    """Draw an integer, a multiple of 1/2, or a boolean."""
    match draw.randrange(6):
        case 0:
            return draw.random() < 0.5
        case 1:
            return draw.randint(-5, 9) / 2
        case _:
            return draw.randint(-3, 5)


class _Draws(SeededDraws):
    """The random decisions of :func:`grow`, restricted to programs of numbers and booleans."""

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


#: The files of ``proofs/`` in the order of their dependencies; the last file imports all others.
FILES = (
    "Rasp", "Reasoning", "Matrices", "Softmax", "Sums", "Products", "Masks", "Lines", "Scatter",
    "Universal", "Paper", "Heads", "Tiled", "Norm", "Activations",
    "Encoder", "Sequences", "Sorting", "GroupSort", "Maxout", "Inversion", "Hierarchy", "Kinds",
    "Encoding", "Rationals", "Agreement", "Errata", "Constructions",
)  # fmt: skip
#: Numbers of random programs in a run: programs of a fixed seed, and programs of another seed.
SAME_PROGRAMS, OTHER_PROGRAMS = 200, 100
#: Number of random shapes of each tie in a run.
RANDOM_SHAPES = 3
#: The name of the file of hashes in the folder of the proofs.
ACCEPTED = "accepted.txt"
HEADER = (
    "From Coq Require Import List ZArith QArith.\nImport ListNotations.\nOpen Scope nat_scope.\n"
    f"From Locum Require Import {' '.join(FILES)}.\n{PREAMBLE}\n"
)


def same_equations() -> dict[str, Callable[[], str]]:
    """Return functions that write the equations that are the same in every run, by subject."""

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
    """Yield the equations at random shapes and of random programs that depend on a seed."""
    for tie in TIES:
        yield from map(tie.stated, tie.draw(seed, RANDOM_SHAPES))
    yield _write_programs(seed, OTHER_PROGRAMS)


def hash_files(proofs: Path) -> dict[str, str]:
    """Return the hash of each Coq file, and of ``axioms.txt``, in the folder of the proofs."""
    names = [*(f"{name}.v" for name in FILES), "axioms.txt"]
    return {name: _hash((proofs / name).read_text(encoding="utf-8")) for name in names}


def hash_equations(subject: str, text: str) -> str:
    """Return the hash of the text of the equations on one subject."""
    return _hash(HEADER + text if subject == "header" else text)


def read_accepted(proofs: Path) -> dict[str, str]:
    """Read the hashes of the files and equations that Coq accepted, by subject."""
    lines = (proofs / ACCEPTED).read_text(encoding="utf-8").splitlines()
    return {subject: found for found, subject in (line.split("  ", 1) for line in lines)}


def write_accepted(proofs: Path, hashes: Mapping[str, str]) -> bool:
    """Write the hashes of accepted files and equations; return whether the file of hashes changed."""
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
