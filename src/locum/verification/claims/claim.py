"""A claim: a program, the inputs it is about, and the formula it is said to compute.

``Claim`` has all that a proof, a certificate and a counterexample need: the graph, which tokens are
indeterminates and which are fixed (blanks, sizes), where the result lies, and the reference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

from locum.constructions import Matrix
from locum.execution.domains import Domain, Value
from locum.graph import Node, postorder, stable_hash
from locum.language.handles import SOp
from locum.verification.claims.algebra import Algebra, Reference, Rows

#: A matrix of the input: name, rows, columns.
Input: TypeAlias = tuple[str, int, int]
#: What must not be 0 for the claim to be made: in words, and as a value.
Conditions: TypeAlias = Callable[..., "list[tuple[str, Value]]"]


@dataclass(frozen=True)
class Claim:
    """For all inputs (that meet the conditions): the program gives the reference."""

    name: str
    shape: tuple[int, ...]
    #: In words and as a formula: ``for all X …: U⟨T, X⟩ = σ(XAXᵀ)XV``.
    statement: str
    program: Node
    inputs: tuple[Input, ...]
    #: Where each token comes from: (matrix, row, column), or a number.
    layout: tuple[tuple[int, int, int] | int, ...]
    #: Where the result lies, row by row.
    places: tuple[tuple[int, ...], ...]
    reference: Reference
    #: Whether entries are whole numbers; else they are real.
    whole: bool = False
    #: What is assumed not to be 0.
    conditions: Conditions | None = None
    names: Mapping[Node, str] = field(default_factory=dict)
    #: Which form of the construction it is about, if there are several.
    recipe: str = ""

    @property
    def title(self) -> str:
        """``matmul 3 3 4 (paper)``"""
        words = " ".join([self.name, *map(str, self.shape)])
        return f"{words} ({self.recipe})" if self.recipe else words

    @cached_property
    def hash(self) -> str:
        """Of the program."""
        return stable_hash(self.program)

    @property
    def entries(self) -> list[str]:
        """The names of the indeterminates: ``X[0,1]``."""
        return [
            f"{name}[{i},{j}]" for name, rows, columns in self.inputs
            for i in range(rows) for j in range(columns)
        ]  # fmt: skip

    def matrices(self, entries: Sequence[Value]) -> list[Rows]:
        """The entries, in their order, as matrices."""
        found, taken = [], 0
        for _, rows, columns in self.inputs:
            numbers = entries[taken : taken + rows * columns]
            found.append([list(numbers[i * columns : (i + 1) * columns]) for i in range(rows)])
            taken += rows * columns
        return found

    def tokens(self, entries: Sequence[Value]) -> list[Value]:
        """The sequence that the program is run on."""
        matrices = self.matrices(entries)
        return [
            source if isinstance(source, int) else matrices[source[0]][source[1]][source[2]]
            for source in self.layout
        ]

    def wanted(self, entries: Sequence[Value], domain: Domain) -> list[Value]:
        """What the reference gives, row by row."""
        rows = self.reference(Algebra(domain), *self.matrices(entries))
        return [value for row in rows for value in row]

    def assumed(self, entries: Sequence[Value], domain: Domain) -> list[tuple[str, Value]]:
        """What is assumed not to be 0."""
        if self.conditions is None:
            return []
        return self.conditions(Algebra(domain), *self.matrices(entries))

    def found(self, values: Any) -> list[Any]:
        """The result, row by row, out of the values that the program has at all positions."""
        return [values[place] for row in self.places for place in row]


def about(
    name: str,
    shape: Sequence[int],
    statement: str,
    program: Matrix | SOp,
    inputs: Sequence[Input],
    reference: Reference,
    *,
    layout: Sequence[tuple[int, int, int] | int] | None = None,
    length: int = 0,
    **options: Any,
) -> Claim:
    """A claim about a matrix, or about an s-op all of whose positions count.

    Tokens are the inputs one after another, unless a ``layout`` says otherwise; blanks are added up to
    ``length``, or to what the program needs.
    """
    if layout is None:
        layout = [
            (number, i, j) for number, (_, rows, columns) in enumerate(inputs)
            for i in range(rows) for j in range(columns)
        ]  # fmt: skip
    if isinstance(program, Matrix):
        view, node = program.places, program.sop.node
        uses_length = any(one.op == "length" for one in postorder(node))
        length = max(length, len(layout), 0 if uses_length else program.needs or 0)
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
    padded = (*layout, *[0] * (length - len(layout)))
    return Claim(
        name, tuple(shape), statement, node, tuple(inputs), padded, places, reference, **options
    )
