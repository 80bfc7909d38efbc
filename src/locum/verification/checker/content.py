"""What a certificate or a refutation is about, read from JSON and checked piece by piece.

Both kinds of file begin alike: inputs, domain, formulas, tokens, places, program, statement. A
:class:`Subject` is that part; :func:`subject_json` writes it. Everything in a file is data that may be
hostile: sizes are limited, numbers are parsed strictly, and the statement must be the one that is
generated from the rest.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from locum.errors import InputError
from locum.graph import Node, dumps, loads, stable_hash
from locum.verification.checker.evaluate import MAX_LENGTH, require_numbers_only
from locum.verification.checker.formula_table import LARGEST
from locum.verification.checker.formulas import Formula, from_json, to_json
from locum.verification.checker.statement import Token, statement
from locum.verification.checker.writing import nodes

CERTIFICATE = "locum certificate 2"
REFUTATION = "locum refutation 1"
#: Entries of all inputs, and nodes of a program, at most.
MAX_ENTRIES = 2_000
MAX_NODES = 50_000
_RELATIONS = ("!=", ">")
#: What files of both kinds have, and what each has beside; anything else could say what is not shown.
_FIELDS = {
    "format", "claim", "inputs", "domain", "formulas", "relations", "tokens", "places", "program",
    "statement", "digest",
}  # fmt: skip
_OWN_FIELDS = {CERTIFICATE: {"functions", "polynomials", "trees", "cases"}, REFUTATION: {"entries"}}


class RejectedError(InputError):
    """A file that does not show what it says."""


@dataclass(frozen=True)
class Subject:
    """A program, its inputs, and the formula that it is said to compute."""

    program: Node
    inputs: tuple[Formula, ...]
    integer: bool
    conditions: tuple[tuple[Formula, str], ...]
    tokens: tuple[Token, ...]
    places: tuple[tuple[int, ...], ...]
    reference: Formula

    @property
    def hash(self) -> str:
        """The hash of the program."""
        return stable_hash(self.program)

    @property
    def statement(self) -> str:
        """What is claimed, as a sentence."""
        return statement(
            self.inputs, self.integer, self.conditions, self.tokens, self.places, self.reference,
            self.hash,
        )  # fmt: skip

    @property
    def entries(self) -> int:
        """How many entries the inputs have."""
        return sum(x.rows * x.columns for x in self.inputs)


def subject_json(subject: Subject) -> dict[str, Any]:
    """Write a subject as JSON."""
    return {
        "inputs": [x.attribute for x in subject.inputs],
        "domain": "integer" if subject.integer else "real",
        "formulas": to_json(subject.reference, *(formula for formula, _ in subject.conditions)),
        "relations": [sign for _, sign in subject.conditions],
        "tokens": [token if isinstance(token, int) else list(token) for token in subject.tokens],
        "places": [list(row) for row in subject.places],
        "program": {"hash": subject.hash, "graph": json.loads(dumps(subject.program))},
        "statement": subject.statement,
    }


def read_subject(content: Any, kind: str) -> Subject:
    """Read the part that all files have, and compare the statement with what it should say."""
    if not isinstance(content, dict) or content.get("format") != kind:
        raise RejectedError(f"expected a file of the format {kind!r}")
    unknown = sorted(content.keys() - _FIELDS - _OWN_FIELDS[kind])
    if unknown:
        raise RejectedError(f"expected no field {unknown[0][:40]!r}")
    if content.get("digest") != digest(content):
        raise RejectedError("the file was changed: its digest does not fit its content")
    inputs = tuple(Formula("input", (), x) for x in _list(content, "inputs", 100))
    names = [x.attribute[0] for x in inputs]
    if len(set(names)) != len(names) or sum(x.rows * x.columns for x in inputs) > MAX_ENTRIES:
        raise RejectedError(f"expected inputs of different names, {MAX_ENTRIES:,} entries at most")
    if content["domain"] not in ("real", "integer"):
        raise RejectedError("expected the domain real or integer")
    reference, *assumed = from_json(content["formulas"])
    relations = _list(content, "relations", 100)
    if len(relations) != len(assumed) or any(sign not in _RELATIONS for sign in relations):
        raise RejectedError("expected a relation, != or >, for every condition")
    if any(formula.shape != (1, 1) for formula in assumed):
        raise RejectedError("expected conditions that are 1×1 formulas")
    for formula in nodes(reference, *assumed):
        if formula.op == "input" and formula.attribute not in [x.attribute for x in inputs]:
            raise RejectedError("a formula is about a matrix that is not among the inputs")
    tokens = tuple(_token(token, inputs) for token in _list(content, "tokens", MAX_LENGTH))
    places = tuple(_places(row, len(tokens)) for row in _list(content, "places", LARGEST))
    if sum(map(len, places)) != reference.rows * reference.columns:
        raise RejectedError("program and reference differ in their numbers of entries")
    subject = Subject(
        _program(content["program"]), inputs, content["domain"] == "integer",
        tuple(zip(assumed, relations, strict=True)), tokens, places, reference,
    )  # fmt: skip
    if content["program"]["hash"] != subject.hash:
        raise RejectedError("the hash is not that of the program")
    if content["statement"] != subject.statement:
        raise RejectedError("the statement is not what is generated from the rest of the file")
    return subject


def digest(content: dict[str, Any]) -> str:
    """Return the SHA-256 of everything but the digest itself."""
    rest = {key: value for key, value in content.items() if key != "digest"}
    text = json.dumps(rest, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def sealed(content: dict[str, Any]) -> dict[str, Any]:
    """Add the digest."""
    return content | {"digest": digest(content)}


def _list(content: dict[str, Any], name: str, longest: int) -> list[Any]:
    value = content[name]
    if not isinstance(value, list) or len(value) > longest:
        raise RejectedError(f"expected {name} as a list of at most {longest:,}")
    return value


def _token(token: Any, inputs: Sequence[Formula]) -> Token:
    match token:
        case [int(number), int(i), int(j)] if 0 <= number < len(inputs):
            if 0 <= i < inputs[number].rows and 0 <= j < inputs[number].columns:
                return int(number), int(i), int(j)
    if type(token) is int and abs(token) < 2**63:
        return token
    raise RejectedError("expected a token as an integer or as [matrix, row, column]")


def _places(row: Any, length: int) -> tuple[int, ...]:
    if not isinstance(row, list) or not all(type(p) is int and 0 <= p < length for p in row):
        raise RejectedError("expected places that are positions of the tokens")
    return tuple(row)


def _program(content: Any) -> Node:
    match content:
        case {"hash": str(), "graph": {"nodes": list(rows)}} if len(rows) <= MAX_NODES:
            program = loads(json.dumps(content["graph"]))
        case _:
            raise RejectedError(f"expected a program of at most {MAX_NODES:,} nodes, and its hash")
    require_numbers_only(program)
    return program
