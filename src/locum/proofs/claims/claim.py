"""Define a claim: a program, its inputs, and the formula that the program should compute.

>>> from locum import tokens
>>> square = about("square", (2,), tokens * tokens, [("s", 1, 2)], lambda s: s * s)
>>> square.title, square.entries
('square 2', ['s[0,0]', 's[0,1]'])
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

from locum.constructions import Matrix
from locum.errors import InputError
from locum.execution.domains import Domain, Value
from locum.graph import Node, postorder, stable_hash
from locum.proofs.claims.formula import Formula, evaluate_formulas
from locum.proofs.claims.formula_operations import Apply
from locum.proofs.claims.formula_operations import Matrix as Rows
from locum.rasp.handles import SOp

#: An input matrix: its name and its numbers of rows and columns.
Input: TypeAlias = tuple[str, int, int]
#: A token: the entry (matrix, row, column) of an input, or an integer.
Token: TypeAlias = "tuple[int, int, int] | int"
#: A 1×1 formula and the relation to 0 that is assumed for it, "!=" or ">".
Condition: TypeAlias = tuple[Formula, str]
#: A function that maps the inputs, as formulas, to the formula that a program should compute, or to
#: rows of 1×1 formulas and numbers.
Reference: TypeAlias = Callable[..., Any]


@dataclass(frozen=True)
class Claim:
    """The claim that a program computes a reference formula for all inputs that meet the conditions."""

    name: str
    shape: tuple[int, ...]
    program: Node
    inputs: tuple[Formula, ...]
    #: The origin of each token: (matrix, row, column), or an integer.
    layout: tuple[Token, ...]
    #: The positions of the result, row by row.
    places: tuple[tuple[int, ...], ...]
    reference: Formula
    #: Whether the entries are integers; otherwise they are real numbers.
    integer: bool = False
    conditions: tuple[Condition, ...] = ()
    #: Names of the program's nodes in error messages.
    names: Mapping[Node, str] = field(default_factory=dict)
    #: The recipe of the construction, or an empty string for a claim without recipes.
    recipe: str = ""
    #: Relative size up to which pivots and determinants count as 0; None without such a tolerance.
    tolerance: float | None = None
    #: The reference of a named claim as a short text, such as ``σ(X)``.
    text: str = ""

    @property
    def title(self) -> str:
        """The name and the shape, and the recipe and tolerance if any: ``matmul 3 3 4 (paper)``."""
        words = " ".join([self.name, *map(str, self.shape)])
        details = [self.recipe] if self.recipe else []
        if self.tolerance is not None:
            details.append(f"tolerance {self.tolerance:g}")
        return f"{words} ({', '.join(details)})" if details else words

    @property
    def heading(self) -> str:
        """The title, and the formula of a named claim: ``softmax 2 2 (stable) = σ(X)``."""
        return f"{self.title} = {self.text}" if self.text else self.title

    @property
    def scope(self) -> str:
        """The inputs for which the claim is made, in words."""
        words = f"all {'integer' if self.integer else 'real'} inputs"
        return f"{words} that meet the conditions" if self.conditions else words

    @cached_property
    def hash(self) -> str:
        """The hash of the program's graph."""
        return stable_hash(self.program)

    @property
    def entries(self) -> list[str]:
        """The names of all entries of the inputs, such as ``X[0,1]``."""
        return [
            f"{x.attribute[0]}[{i},{j}]"
            for x in self.inputs for i in range(x.rows) for j in range(x.columns)
        ]  # fmt: skip

    def matrices(self, entries: Sequence[Value]) -> list[Rows]:
        """Arrange a flat sequence of entries as the input matrices."""
        matrices, taken = [], 0
        for x in self.inputs:
            numbers = entries[taken : taken + x.rows * x.columns]
            matrices.append([list(numbers[i * x.columns : (i + 1) * x.columns]) for i in range(x.rows)])
            taken += x.rows * x.columns
        return matrices

    def tokens(self, entries: Sequence[Value]) -> list[Value]:
        """Return the sequence of tokens on which the program is run, from the entries of the inputs."""
        matrices = self.matrices(entries)
        return [
            token if isinstance(token, int) else matrices[token[0]][token[1]][token[2]]
            for token in self.layout
        ]

    def evaluate(
        self,
        formulas: Sequence[Formula],
        entries: Sequence[Value],
        apply: Apply,
        known: Mapping[Formula, Rows] | None = None,
    ) -> dict[Formula, Rows]:
        """Evaluate formulas of the inputs, and all formulas of which they consist.

        ``apply`` applies a named operation to scalars. ``known`` contains the values of formulas that
        were evaluated before.
        """
        names = [x.attribute[0] for x in self.inputs]
        inputs = dict(zip(names, self.matrices(entries), strict=True))
        return evaluate_formulas(formulas, inputs, apply, known)

    def expected(
        self, entries: Sequence[Value], apply: Apply, known: Mapping[Formula, Rows] | None = None
    ) -> list[Value]:
        """Evaluate the reference and return its entries row by row; see :meth:`evaluate`."""
        rows = self.evaluate([self.reference], entries, apply, known)[self.reference]
        return [value for row in rows for value in row]

    def condition_values(self, entries: Sequence[Value], apply: Apply) -> list[tuple[Value, str]]:
        """Evaluate the formulas of the conditions, and return each value with its relation to 0."""
        values = self.evaluate([formula for formula, _ in self.conditions], entries, apply)
        return [(values[formula][0][0], relation) for formula, relation in self.conditions]

    def result(self, values: Any) -> list[Any]:
        """Select the entries of the result, row by row, from the values of the program."""
        return [values[place] for row in self.places for place in row]


def meanings_in(domain: Domain) -> Apply:
    """Return the function that applies a named operation of ``domain`` to scalars."""
    return lambda name, *values: domain.meanings[name](*values)


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
    integer: bool = False,
    **options: Any,
) -> Claim:
    """Return a claim about a program that returns a matrix, or about all positions of an s-op.

    ``reference`` maps the inputs, as formulas, to the formula that the program is claimed to compute,
    or to rows of 1×1 formulas and numbers. ``conditions`` maps the inputs to the assumptions: a list of
    pairs of a 1×1 formula and ``"!="`` or ``">"``, which compares the formula with 0. With
    ``integer=True``, the entries are integers. The tokens are the entries of the inputs in order,
    unless a ``layout`` is given. Zeros are appended up to ``length``. For a matrix whose program does
    not use the length of the sequence, zeros are also appended up to the length that the program needs.
    The ``name`` and the ``shape`` form the title.

    >>> from locum import tokens
    >>> stated = about(
    ...     "reciprocal", (1,), 1 / tokens, [("s", 1, 1)], lambda s: 1 / s,
    ...     conditions=lambda s: [(s, "!=")],
    ... )
    >>> stated.reference, stated.conditions
    (1×1 formula (divide), ((1×1 formula (input), '!='),))
    """
    matrices = tuple(Formula.input(*one) for one in inputs)
    if len({x.attribute[0] for x in matrices}) != len(matrices):
        raise InputError("expected inputs with different names, got the same name twice")
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
    padded = (*(_read_token(token, matrices) for token in layout), *[0] * (length - len(layout)))
    assumed = _read_conditions(conditions(*matrices)) if conditions is not None else ()
    return Claim(
        name, tuple(shape), node, matrices, padded, places, formula, integer, assumed, **options
    )


def _read_token(token: Any, inputs: Sequence[Formula]) -> Token:
    """Check a token of a layout and return it."""
    match token:
        case int() if type(token) is int:
            return token
        case (int(number), int(i), int(j)) if 0 <= number < len(inputs):
            if 0 <= i < inputs[number].rows and 0 <= j < inputs[number].columns:
                return number, i, j
    raise InputError(
        "layout: expected integers and entries (matrix, row, column) of the inputs, "
        f"got {token!r:.60}; try (0, 0, 0) for the first entry of the first input"
    )


def _read_conditions(conditions: Any) -> tuple[Condition, ...]:
    """Check the conditions of a claim and return them."""
    listed = conditions if isinstance(conditions, (list, tuple)) else [conditions]
    for condition in listed:
        match condition:
            case (Formula(shape=(1, 1)), "!=" | ">"):
                continue
        raise InputError(
            "conditions: expected a list of pairs of a 1×1 formula and '!=' or '>', "
            f"got {condition!r:.60}; try conditions=lambda X: [(X[0, 0], '>')]"
        )
    return tuple(listed)
