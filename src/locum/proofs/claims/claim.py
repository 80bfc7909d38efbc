"""A claim: a program, its inputs, and the formula that it computes.

>>> from locum import tokens
>>> square = about("square", (2,), tokens * tokens, [("s", 1, 2)], lambda s: s * s)
>>> print(square.statement)
for all s ∈ ℝ^{1×2}: P⟨s⟩ = s ⊙ s, where P is the program 6c97c909083a92ab…
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

from locum.constructions import Matrix
from locum.errors import InputError
from locum.execution.domains import Domain, Value
from locum.graph import Node, dumps, loads, postorder, stable_hash
from locum.proofs.checker.case_evaluation import Matrix as Rows
from locum.proofs.checker.case_evaluation import evaluate_formulas
from locum.proofs.claims.formula import Formula, from_json, to_json
from locum.proofs.claims.statement import Token, write_statement
from locum.rasp.handles import SOp

#: A matrix of the input: name, rows, columns.
Input: TypeAlias = tuple[str, int, int]
#: A 1×1 formula, and how it is assumed to compare with 0: "!=" or ">".
Condition: TypeAlias = tuple[Formula, str]
#: Formulas of the inputs → the formula that a program should compute (or rows of 1×1 formulas).
Reference: TypeAlias = Callable[..., Any]


@dataclass(frozen=True)
class Claim:
    """For all inputs that meet the conditions: the program gives the reference."""

    name: str
    shape: tuple[int, ...]
    program: Node
    inputs: tuple[Formula, ...]
    #: Where each token comes from: (matrix, row, column), or an integer.
    layout: tuple[Token, ...]
    #: Where the result lies, row by row.
    places: tuple[tuple[int, ...], ...]
    reference: Formula
    #: Whether entries are integers; else they are real.
    integer: bool = False
    conditions: tuple[Condition, ...] = ()
    #: What errors call the nodes of the program.
    names: Mapping[Node, str] = field(default_factory=dict)
    #: Which form of the construction it is about, if there are several.
    recipe: str = ""
    #: Below which pivots and determinants count as 0, if the construction has such a tolerance.
    tolerance: float | None = None

    @property
    def title(self) -> str:
        """``matmul 3 3 4 (paper)``"""
        words = " ".join([self.name, *map(str, self.shape)])
        details = [self.recipe] if self.recipe else []
        if self.tolerance is not None:
            details.append(f"tolerance {self.tolerance:g}")
        return f"{words} ({', '.join(details)})" if details else words

    @property
    def label(self) -> dict[str, Any]:
        """The name under which the claim can be built again."""
        return {
            "name": self.name, "shape": list(self.shape), "recipe": self.recipe,
            "tolerance": self.tolerance,
        }  # fmt: skip

    @cached_property
    def content(self) -> dict[str, Any]:
        """The claim as certificates contain it (``checker/check.py``)."""
        return {
            "inputs": [x.attribute for x in self.inputs],
            "domain": "integer" if self.integer else "real",
            "formulas": to_json(self.reference, *(formula for formula, _ in self.conditions)),
            "relations": [relation for _, relation in self.conditions],
            "tokens": [token if isinstance(token, int) else list(token) for token in self.layout],
            "places": [list(row) for row in self.places],
            "program": {"hash": self.hash, "graph": json.loads(dumps(self.program))},
        }

    @staticmethod
    def from_content(content: dict[str, Any]) -> Claim:
        """Read the claim of a certificate, without its name."""
        reference, *conditions = from_json(content["formulas"])
        return Claim(
            "", (), loads(json.dumps(content["program"]["graph"])),
            tuple(Formula("input", (), x) for x in content["inputs"]),
            tuple(token if isinstance(token, int) else tuple(token) for token in content["tokens"]),
            tuple(map(tuple, content["places"])), reference, content["domain"] == "integer",
            tuple(zip(conditions, content["relations"], strict=True)),
        )  # fmt: skip

    @cached_property
    def hash(self) -> str:
        """The hash of the program."""
        return stable_hash(self.program)

    @cached_property
    def statement(self) -> str:
        """What is claimed, as a sentence."""
        return write_statement(self)

    @property
    def entries(self) -> list[str]:
        """The names of the indeterminates: ``X[0,1]``."""
        return [
            f"{x.attribute[0]}[{i},{j}]"
            for x in self.inputs for i in range(x.rows) for j in range(x.columns)
        ]  # fmt: skip

    def matrices(self, entries: Sequence[Value]) -> list[Rows]:
        """Arrange the entries, in their order, as matrices."""
        matrices, taken = [], 0
        for x in self.inputs:
            numbers = entries[taken : taken + x.rows * x.columns]
            matrices.append([list(numbers[i * x.columns : (i + 1) * x.columns]) for i in range(x.rows)])
            taken += x.rows * x.columns
        return matrices

    def tokens(self, entries: Sequence[Value]) -> list[Value]:
        """Return the sequence that the program is run on."""
        matrices = self.matrices(entries)
        return [
            token if isinstance(token, int) else matrices[token[0]][token[1]][token[2]]
            for token in self.layout
        ]

    def evaluate(
        self, roots: Sequence[int], entries: Sequence[Value], domain: Domain, known: Any = None
    ) -> dict[int, Rows]:
        """Return the values of rows of the table of formulas, and of the rows below them."""
        names = [x.attribute[0] for x in self.inputs]
        inputs = dict(zip(names, self.matrices(entries), strict=True))
        table = self.content["formulas"]["table"]
        return evaluate_formulas(
            table, roots, inputs, lambda name, *values: domain.meanings[name](*values), known
        )

    def expected(
        self, entries: Sequence[Value], domain: Domain, known: Mapping[int, Rows] | None = None
    ) -> list[Value]:
        """Return what the reference gives, row by row; ``known`` has values of its parts."""
        root = self.content["formulas"]["roots"][0]
        return [value for row in self.evaluate([root], entries, domain, known)[root] for value in row]

    def condition_values(self, entries: Sequence[Value], domain: Domain) -> list[tuple[Value, str]]:
        """Return the values that the conditions are about, each with its relation to 0."""
        roots = self.content["formulas"]["roots"][1:]
        values = self.evaluate(roots, entries, domain)
        return [(values[r][0][0], s) for r, s in zip(roots, self.content["relations"], strict=True)]

    def result(self, values: Any) -> list[Any]:
        """Pick the result, row by row, from the values that the program has at all positions."""
        return [values[place] for row in self.places for place in row]


def about(
    name: str,
    shape: Sequence[int],
    program: Matrix | SOp,
    inputs: Sequence[Input],
    reference: Reference,
    *,
    layout: Sequence[Token] | None = None,
    length: int = 0,
    conditions: Callable[..., Sequence[Condition]] | None = None,
    **options: Any,
) -> Claim:
    """State a claim about a matrix, or about an s-op all of whose positions count.

    ``reference`` maps the inputs, as formulas, to the formula that the program is said to compute, or
    to rows of 1×1 formulas and numbers; ``conditions`` maps them to what is assumed. Tokens are the
    inputs one after another, unless a ``layout`` says otherwise; zeros are added up to ``length``, or
    to what the program needs.
    """
    matrices = tuple(Formula.input(*one) for one in inputs)
    if len({x.attribute[0] for x in matrices}) != len(matrices):
        raise InputError("expected inputs of different names")
    if layout is None:
        layout = [
            (number, i, j)
            for number, x in enumerate(matrices) for i in range(x.rows) for j in range(x.columns)
        ]  # fmt: skip
    if isinstance(program, Matrix):
        view, node = program.places, program.sop.node
        uses_length = any(one.op == "length" for one in postorder(node))
        length = max(length, len(layout), 0 if uses_length else program.needs)
        places = tuple(
            tuple(
                view.offset + i * view.row_stride + j * view.column_stride for j in range(view.columns)
            )
            for i in range(view.rows)
        )
        options["names"] = program.names
    else:
        node, length = program.node, max(length, len(layout))
        places = (tuple(range(length)),)
    formula = Formula.of(reference(*matrices))
    if formula.rows * formula.columns != sum(map(len, places)):
        raise InputError(
            f"expected a reference of the program's {sum(map(len, places))} entries, "
            f"got a {formula.rows}×{formula.columns} matrix"
        )
    padded = (*layout, *[0] * (length - len(layout)))
    assumed = tuple(conditions(*matrices)) if conditions is not None else ()
    return Claim(
        name, tuple(shape), node, matrices, padded, places, formula, conditions=assumed, **options
    )
