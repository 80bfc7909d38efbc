"""The checker's evaluator of reference formulas, on the scalars of one case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TypeAlias

from locum.verification.checker.formula_table import rational
from locum.verification.checker.formulas import Formula
from locum.verification.checker.scalars import Scalars
from locum.verification.checker.values import Scalar, simple, without_value
from locum.verification.checker.work import OPERATION
from locum.verification.checker.writing import nodes

Matrix: TypeAlias = "list[list[Scalar]]"

#: Operations that may not use every entry of their operand. Formulas are strict as programs are: the
#: operand must have a value everywhere.
_SELECTIVE = ("entry", "softmax", "cofactors")


class Reference:
    """Evaluates formulas: the textbook definition of every operation, entry by entry."""

    def __init__(self, scalars: Scalars, inputs: Mapping[str, Matrix]) -> None:
        self.scalars = scalars
        self.inputs = inputs
        self.values: dict[int, Matrix] = {}

    def evaluate(self, formula: Formula) -> Matrix:
        """Return the matrix that a formula stands for."""
        for part in nodes(formula):
            if id(part) not in self.values:
                self.scalars.numbers.spend(OPERATION * part.rows * part.columns)
                self.values[id(part)] = self._value(part, [self.values[id(o)] for o in part.operands])
                self.scalars.numbers.keep(entry for row in self.values[id(part)] for entry in row)
        return self.values[id(formula)]

    def _do(self, name: str, *values: Scalar) -> Scalar:
        self.scalars.numbers.spend(OPERATION)
        return self.scalars.operations[name](*values)

    def _sum(self, values: Sequence[Scalar]) -> Scalar:
        self.scalars.numbers.spend(OPERATION * len(values))
        return reduce(self.scalars.operations["add"], values)

    def _value(self, formula: Formula, operands: Sequence[Matrix]) -> Matrix:
        rows, columns, attribute = formula.rows, formula.columns, formula.attribute
        if formula.op in _SELECTIVE:
            trouble = without_value([value for row in operands[0] for value in row])
            if trouble is not None:
                return [[trouble] * columns for _ in range(rows)]
        match formula.op:
            case "input":
                return self.inputs[attribute[0]]
            case "constant":
                number = simple(rational(attribute[0]))
                return [[number for _ in range(columns)] for _ in range(rows)]
            case "identity":
                return [[1 if i == j else 0 for j in range(columns)] for i in range(rows)]
            case "entries":
                entries = iter(operands)
                return [[next(entries)[0][0] for _ in range(columns)] for _ in range(rows)]
            case "entry":
                return [[operands[0][attribute[0]][attribute[1]]]]
            case "transpose":
                return [[operands[0][i][j] for i in range(columns)] for j in range(rows)]
            case "matmul":
                return [[self._inner(operands, i, j) for j in range(columns)] for i in range(rows)]
            case "beside":
                return [[entry for part in operands for entry in part[i]] for i in range(rows)]
            case "below":
                return [row for part in operands for row in part]
            case "softmax":
                return [self._softmax(row, i, attribute) for i, row in enumerate(operands[0])]
            case "layer_norm":
                return [self._normed(row, operands[1][0][0]) for row in operands[0]]
            case "hardmax":
                return [self._hardmax(row) for row in operands[0]]
            case "determinant" | "permanent":
                return [[self._expand(operands[0], formula.op == "determinant")]]
            case "cofactors":
                return self._cofactors(operands[0])
            case "inverse":
                return self._inverse(operands[0])
            case "sort":
                return [self._sorted(row, attribute) for row in operands[0]]
            case "match2":
                return [[self._matches(a, row, attribute) for a in row] for row in operands[0]]
        return [
            [self._do(formula.op, *(part[i][j] for part in operands)) for j in range(columns)]
            for i in range(rows)
        ]

    def _inner(self, operands: Sequence[Matrix], i: int, j: int) -> Scalar:
        a, b = operands
        return self._sum([self._do("multiply", a[i][k], b[k][j]) for k in range(len(b))])

    def _softmax(self, row: list[Scalar], number: int, mask: str | None) -> list[Scalar]:
        seen = [mask is None or j <= number for j in range(len(row))]
        weights = [self._do("exp", x) if here else 0 for x, here in zip(row, seen, strict=True)]
        total = self._sum(weights)
        return [self._do("divide", weight, total) for weight in weights]

    def _normed(self, row: list[Scalar], epsilon: Scalar) -> list[Scalar]:
        mean = self._do("divide", self._sum(row), len(row))
        away = [self._do("subtract", x, mean) for x in row]
        squares = self._sum([self._do("multiply", x, x) for x in away])
        spread = self._do("add", self._do("divide", squares, len(row)), epsilon)
        return [self._do("divide", x, self._do("sqrt", spread)) for x in away]

    def _hardmax(self, row: list[Scalar]) -> list[Scalar]:
        greatest = [
            reduce(self.scalars.operations["and"], [self._do("less_equal", y, x) for y in row])
            for x in row
        ]
        weights = [self._do("indicator", one) for one in greatest]
        total = self._sum(weights)
        return [self._do("divide", weight, total) for weight in weights]

    def _expand(self, a: Matrix, signed: bool) -> Scalar:
        """Expand the determinant (or permanent) along the first row, column sets shared."""
        size = len(a)
        below: dict[tuple[int, ...], Scalar] = {(): 1}
        for i in reversed(range(size)):
            here: dict[tuple[int, ...], Scalar] = {}
            for columns in _subsets(size, size - i):
                terms = []
                for place, j in enumerate(columns):
                    minor = below[columns[:place] + columns[place + 1 :]]
                    term = self._do("multiply", a[i][j], minor)
                    terms.append(self._do("negate", term) if signed and place % 2 else term)
                here[columns] = self._sum(terms)
            below = here
        return below[tuple(range(size))]

    def _cofactors(self, a: Matrix) -> Matrix:
        size = len(a)
        result = []
        for i in range(size):
            row = []
            for j in range(size):
                minor = [[a[s][t] for t in range(size) if t != j] for s in range(size) if s != i]
                value = self._expand(minor, signed=True)
                row.append(self._do("negate", value) if (i + j) % 2 else value)
            result.append(row)
        return result

    def _inverse(self, a: Matrix) -> Matrix:
        determinant = self._expand(a, signed=True)
        cofactors = self._cofactors(a)
        size = range(len(a))
        return [[self._do("divide", cofactors[j][i], determinant) for j in size] for i in size]

    def _sorted(self, row: list[Scalar], group: int) -> list[Scalar]:
        """Sort every group by exchanging neighbours, the smallest going to the end first."""
        result = list(row)
        for start in range(0, len(row), group):
            for last in reversed(range(start + 1, start + group)):
                for place in range(start, last):
                    pair = result[place], result[place + 1]
                    result[place : place + 2] = self._do("maximum", *pair), self._do("minimum", *pair)
        return result

    def _matches(self, a: Scalar, row: list[Scalar], modulus: int) -> Scalar:
        rests = [self._do("modulo", self._do("add", a, b), modulus) for b in row]
        matched = [self._do("equal", rest, 0) for rest in rests]
        return self._do("indicator", reduce(self.scalars.operations["or"], matched))


def _subsets(size: int, count: int) -> list[tuple[int, ...]]:
    """Yield all ascending choices of ``count`` numbers below ``size``."""
    subsets: list[tuple[int, ...]] = [()]
    for _ in range(count):
        subsets = [(*one, n) for one in subsets for n in range(one[-1] + 1 if one else 0, size)]
    return subsets
