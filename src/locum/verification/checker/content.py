"""The claim of a certificate or of a refutation, read from JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar

from locum.errors import InputError, LocumError
from locum.graph import Node, loads, stable_hash
from locum.verification.checker.case import Case, Value
from locum.verification.checker.evaluate import Evaluator, Site
from locum.verification.checker.reference import Matrix, are_sizes, evaluate_formulas

CERTIFICATE = "locum certificate 3"
REFUTATION = "locum refutation 2"
#: The fields of a claim, and of each kind of file; other fields are rejected.
CLAIM_FIELDS = ("inputs", "domain", "formulas", "relations", "tokens", "places", "program")
_FIELDS = {CERTIFICATE: {"questions", "trees"}, REFUTATION: {"entries"}}

T = TypeVar("T")


class RejectedError(InputError):
    """A file that does not show its claim."""


@dataclass(frozen=True)
class Subject:
    """A claim: on the sequence of tokens, the program gives the reference at the places."""

    program: Node
    hash: str
    #: [name, rows, columns] of each input matrix.
    inputs: Sequence[Any]
    #: Whether entries are integers; else they are real numbers.
    integer: bool
    #: Rows [operation, [numbers of earlier rows], attribute].
    table: Sequence[Any]
    reference: int
    #: Rows of the table, each with its relation to 0: != or >.
    conditions: Sequence[tuple[int, str]]
    #: Each an integer or [matrix, row, column].
    tokens: Sequence[Any]
    places: Sequence[int]

    @property
    def entries(self) -> int:
        """The number of entries of the inputs."""
        return sum(rows * columns for _, rows, columns in self.inputs)

    def matrices(self, entries: Sequence[Value]) -> dict[str, Matrix]:
        """Arrange the entries as the input matrices, by name."""
        values = iter(entries)
        return {
            name: [[next(values) for _ in range(columns)] for _ in range(rows)]
            for name, rows, columns in self.inputs
        }

    def formula(self, root: int, case: Case, entries: Sequence[Value]) -> Matrix:
        """Evaluate a row of the table."""
        return evaluate_formulas(self.table, [root], self.matrices(entries), case.apply_strict)[root]

    def expected(self, case: Case, entries: Sequence[Value]) -> list[Value]:
        """Evaluate the reference, row by row."""
        rows = self.formula(self.reference, case, entries)
        expected = [case.to_number(value) for row in rows for value in row]
        if len(expected) != len(self.places):
            raise RejectedError("places: expected as many positions as the reference has entries")
        return expected

    def result(self, case: Case, entries: Sequence[Value]) -> tuple[list[Value], set[Site]]:
        """Evaluate the program; returns the values at the places, and the open sites."""
        matrices = list(self.matrices(entries).values())
        tokens = [t if type(t) is int else matrices[t[0]][t[1]][t[2]] for t in self.tokens]
        evaluator = Evaluator(case, tokens)
        values = evaluator.evaluate(self.program)
        return [case.to_number(values[place]) for place in self.places], evaluator.open_sites


def read_subject(content: Any, kind: str) -> Subject:
    """Read the claim of a file."""
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
    _require(content["program"]["hash"] == stable_hash(program), "hash")
    return Subject(
        program, content["program"]["hash"], inputs, content["domain"] == "integer", table, roots[0],
        list(zip(roots[1:], relations, strict=True)), tokens, places,
    )  # fmt: skip


def _require(holds: bool, field: str) -> None:
    if not holds:
        raise RejectedError(f"{field}: expected another value; see the format in docs/verification.md")


def require_indices(values: Sequence[Any], size: int, field: str) -> None:
    """Require integers from 0 to size − 1."""
    _require(all(type(value) is int and 0 <= value < size for value in values), field)


def require_table(formulas: Any) -> None:
    """Require rows that refer to earlier rows, and roots that are rows."""
    for number, (_, operands, _) in enumerate(formulas["table"]):
        require_indices(operands, number, "formulas")
    require_indices(formulas["roots"], len(formulas["table"]), "formulas")


def reject_errors(function: Callable[[Any], T]) -> Callable[[Any], T]:
    """Return a function that raises every error as a :class:`RejectedError`."""

    @wraps(function)
    def call(content: Any) -> T:
        try:
            return function(content)
        except Exception as error:  # a file can contain anything at any place
            prefix = "" if isinstance(error, LocumError) else f"file: got {type(error).__name__}: "
            raise RejectedError(f"{prefix}{error}") from None

    return call
