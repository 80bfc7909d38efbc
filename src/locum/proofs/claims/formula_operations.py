"""Define the operations of formulas: matrices of scalars, entry by entry.

The scalars are floats, symbols of the prover, or values of the checker. A function that applies a named
elementwise operation to scalars determines their arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from itertools import combinations
from typing import Any, TypeAlias

from locum.errors import InputError

Matrix: TypeAlias = "list[list[Any]]"
Inputs: TypeAlias = Mapping[str, Matrix]
#: A function that applies a named elementwise operation to scalars.
Apply: TypeAlias = Callable[..., Any]

_ELEMENTWISE = {
    "add": 2, "subtract": 2, "multiply": 2, "divide": 2, "maximum": 2, "minimum": 2, "negate": 1,
    "absolute": 1, "exp": 1, "log": 1, "sqrt": 1, "tanh": 1, "erf": 1,
}  # fmt: skip


class Formulas:
    """The operations on matrices of scalars; a matrix of an unexpected shape raises an error."""

    def __init__(self, inputs: Inputs, apply: Apply) -> None:
        self.inputs = inputs
        self.apply = apply

    def evaluate(self, op: str, operands: Sequence[Matrix], attribute: Any) -> Matrix:
        """Apply the operation ``op`` to matrices and return the resulting matrix."""
        match op, attribute, operands:
            case "input", [name, rows, columns], []:
                if (len(self.inputs[name]), len(self.inputs[name][0])) == (rows, columns):
                    return self.inputs[name]
            case "constant", [number, rows, columns], [] if are_sizes(rows, columns):
                top, bottom = number.as_integer_ratio()
                entry = top if bottom == 1 else self.apply("divide", top, bottom)
                return [[entry] * columns for _ in range(rows)]
            case "identity", order, [] if are_sizes(order):
                return [[int(i == j) for j in range(order)] for i in range(order)]
            case "entries", [rows, columns], _ if are_sizes(rows, columns):
                flat = [entry for [[entry]] in operands]
                if len(flat) == rows * columns:
                    return [flat[i * columns : (i + 1) * columns] for i in range(rows)]
            case "entry", [i, j], [a] if i in range(len(a)) and j in range(len(a[0])):
                # Every entry of the operand must be defined, even if it is not selected.
                others = [self.apply("multiply", 0, x) for row in a for x in row]
                return [[self.sum([a[i][j], *others])]]
            case "transpose", None, [a]:
                return [list(column) for column in zip(*a, strict=True)]
            case "matmul", None, [a, b]:
                return [[self.inner(row, column) for column in zip(*b, strict=True)] for row in a]
            case "beside", None, _:
                return [[x for row in rows for x in row] for rows in zip(*operands, strict=True)]
            case "below", None, _ if len({len(operand[0]) for operand in operands}) == 1:
                return [row for operand in operands for row in operand]
            case "softmax", None | "causal", [a]:
                return [self.softmax(row, i if attribute else len(row)) for i, row in enumerate(a)]
            case "layer_norm", None, [a, [[epsilon]]]:
                return [self.layer_norm(row, epsilon) for row in a]
            case "hardmax", None, [a]:
                return [self.hardmax(row) for row in a]
            case "determinant" | "permanent" | "cofactors" | "inverse", None, [a]:
                if len(a) == len(a[0]) <= 8:
                    return self.minors(op, a)
            case "sort", group, [a] if are_sizes(group) and len(a[0]) % group == 0:
                return [self.sort(row, group) for row in a]
            case "match2", modulus, [[row]] if are_sizes(modulus):
                return [[self.match2(a, row, modulus) for a in row]]
            case name, None, _ if _ELEMENTWISE.get(name) == len(operands):
                rows = [zip(*rows, strict=True) for rows in zip(*operands, strict=True)]
                return [[self.apply(name, *scalars) for scalars in row] for row in rows]
        raise InputError(f"formula: expected an operation and its operands, got {str(op)[:40]}")

    def sum(self, values: Sequence[Any]) -> Any:
        return reduce(lambda a, b: self.apply("add", a, b), values)

    def inner(self, row: Sequence[Any], column: Sequence[Any]) -> Any:
        return self.sum([self.apply("multiply", a, b) for a, b in zip(row, column, strict=True)])

    def normalise(self, weights: Sequence[Any]) -> list[Any]:
        total = self.sum(weights)
        return [self.apply("divide", weight, total) for weight in weights]

    def softmax(self, row: Sequence[Any], last: int) -> list[Any]:
        """Return the softmax of the entries up to index ``last``, followed by zeros.

        The entries after ``last`` do not influence the result, but they must be defined.
        """
        shown = [self.apply("exp", x) for x in row[: last + 1]]
        return self.normalise(shown + [self.apply("multiply", 0, x) for x in row[last + 1 :]])

    def layer_norm(self, row: Sequence[Any], epsilon: Any) -> list[Any]:
        mean = self.apply("divide", self.sum(row), len(row))
        deviations = [self.apply("subtract", x, mean) for x in row]
        variance = self.apply("divide", self.inner(deviations, deviations), len(row))
        root = self.apply("sqrt", self.apply("add", variance, epsilon))
        return [self.apply("divide", x, root) for x in deviations]

    def hardmax(self, row: Sequence[Any]) -> list[Any]:
        """Return 1/k for each of the k entries that equal the maximum of a row, and 0 elsewhere."""
        below = [[self.apply("less_equal", y, x) for y in row] for x in row]
        greatest = [reduce(lambda a, b: self.apply("and", a, b), truths) for truths in below]
        return self.normalise([self.apply("indicator", one) for one in greatest])

    def expand(self, a: Matrix, signed: bool) -> Any:
        """Compute the determinant (``signed``) or the permanent by expansion along rows.

        Minors that occur several times are computed once.
        """
        minors: dict[tuple[int, ...], Any] = {(): 1}
        for i in reversed(range(len(a))):
            here = {}
            for columns in combinations(range(len(a)), len(a) - i):
                terms = []
                for place, j in enumerate(columns):
                    minor = minors[columns[:place] + columns[place + 1 :]]
                    term = self.apply("multiply", a[i][j], minor)
                    terms.append(self.apply("negate", term) if signed and place % 2 else term)
                here[columns] = self.sum(terms)
            minors = here
        return minors[tuple(range(len(a)))]

    def minors(self, op: str, a: Matrix) -> Matrix:
        size = range(len(a))
        if op in ("determinant", "permanent"):
            return [[self.expand(a, op == "determinant")]]
        if op == "inverse":
            adjugate, determinant = zip(*self.minors("cofactors", a), strict=True), self.expand(a, True)
            return [[self.apply("divide", x, determinant) for x in row] for row in adjugate]
        if len(a) == 1:
            return [[self.apply("add", 1, self.apply("multiply", 0, a[0][0]))]]
        result = []
        for i in size:
            minors = [[[a[s][t] for t in size if t != j] for s in size if s != i] for j in size]
            values = [self.expand(minor, signed=True) for minor in minors]
            result.append([self.apply("negate", x) if (i + j) % 2 else x for j, x in enumerate(values)])
        return result

    def sort(self, row: Sequence[Any], group: int) -> list[Any]:
        """Sort each group of ``group`` consecutive entries of a row in descending order."""
        result = list(row)
        for start in range(0, len(row), group):
            for last in reversed(range(start + 1, start + group)):
                for place in range(start, last):
                    a, b = result[place : place + 2]
                    result[place : place + 2] = self.apply("maximum", a, b), self.apply("minimum", a, b)
        return result

    def match2(self, a: Any, row: Sequence[Any], modulus: int) -> Any:
        rests = [self.apply("modulo", self.apply("add", a, b), modulus) for b in row]
        matched = [self.apply("equal", rest, 0) for rest in rests]
        return self.apply("indicator", reduce(lambda x, y: self.apply("or", x, y), matched))


def are_sizes(*values: Any) -> bool:
    """Return whether all values are positive integers, as sizes of matrices must be."""
    return all(type(value) is int and value >= 1 for value in values)
