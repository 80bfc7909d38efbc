"""Evaluate reference formulas in any number domain: symbols, floats, balls.

The textbook definition of every operation, entry by entry, each scalar operation being the domain's
own. The checker has an evaluator of its own (``checker/reference.py``).

>>> from locum.execution.domains.floats import FloatDomain
>>> x = Formula.input("X", 1, 2)
>>> square = x @ x.T
>>> evaluate([square], [[[1.0, 2.0]]], [x], FloatDomain())[id(square)]
[[5.0]]
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import reduce
from typing import TypeAlias

from locum.execution.domains import Domain, Value
from locum.verification.checker.formulas import Formula
from locum.verification.checker.writing import nodes

Rows: TypeAlias = "list[list[Value]]"


def evaluate(
    formulas: Sequence[Formula],
    matrices: Sequence[Rows],
    inputs: Sequence[Formula],
    domain: Domain,
    known: Mapping[int, Rows] | None = None,
) -> dict[int, Rows]:
    """Evaluate formulas on matrices, the values of ``inputs``; no value raises, as in dense.

    The values of the formulas and of all their parts are by ``id``, and so are those ``known`` before.
    """
    algebra = _Algebra(domain)
    by_name = {x.attribute[0]: rows for x, rows in zip(inputs, matrices, strict=True)}
    values = dict(known or {})
    for formula in nodes(*formulas):
        if id(formula) in values:
            continue
        if formula.op == "input":
            values[id(formula)] = by_name[formula.attribute[0]]
        else:
            operands = [values[id(part)] for part in formula.operands]
            values[id(formula)] = algebra.value(formula, operands)
    return values


class _Algebra:
    """Matrices over the scalars of a domain."""

    def __init__(self, domain: Domain) -> None:
        self.domain = domain
        self.structural: dict[str, Callable[..., Rows]] = {
            "transpose": self.transpose,
            "matmul": self.matmul,
            "hardmax": self.hardmax,
            "layer_norm": lambda a, epsilon: [self.normed(row, epsilon[0][0]) for row in a],
            "determinant": lambda a: [[self.leibniz(a, signed=True)]],
            "permanent": lambda a: [[self.leibniz(a, signed=False)]],
            "cofactors": self.cofactors,
            "inverse": self.inverse,
            "beside": lambda *blocks: [_joined(rows) for rows in zip(*blocks, strict=True)],
            "below": lambda *blocks: _joined(blocks),
        }

    def value(self, formula: Formula, operands: Sequence[Rows]) -> Rows:
        op, attribute = formula.op, formula.attribute
        match op:
            case "constant":
                return [[self.number(attribute[0])] * formula.columns for _ in range(formula.rows)]
            case "identity":
                return [[int(i == j) for j in range(attribute)] for i in range(attribute)]
            case "entries":
                flat = [entry[0][0] for entry in operands]
                return [flat[i : i + formula.columns] for i in range(0, len(flat), formula.columns)]
            case "entry":
                return [[operands[0][attribute[0]][attribute[1]]]]
            case "softmax":
                return self.softmax(operands[0], causal=attribute == "causal")
            case "sort":
                return [self.sorted_groups(row, attribute) for row in operands[0]]
            case "match2":
                return [self.match2(row, attribute) for row in operands[0]]
        if op in self.structural:
            return self.structural[op](*operands)
        return [
            [self.apply(op, *scalars) for scalars in zip(*rows, strict=True)]
            for rows in zip(*operands, strict=True)
        ]

    def number(self, text: str) -> Value:
        value = Fraction(text)
        if value.denominator == 1:
            return int(value)
        return self.apply("divide", value.numerator, value.denominator)

    def apply(self, operation: str, *values: Value) -> Value:
        """Apply an elementwise operation of the table of programs to scalars."""
        return self.domain.meanings[operation](*values)

    def sum(self, values: Sequence[Value]) -> Value:
        return reduce(self.domain.meanings["add"], values)

    def product(self, values: Sequence[Value]) -> Value:
        return reduce(self.domain.meanings["multiply"], values)

    def transpose(self, a: Rows) -> Rows:
        return [list(column) for column in zip(*a, strict=True)]

    def matmul(self, a: Rows, b: Rows) -> Rows:
        return [
            [self.sum([self.apply("multiply", x, y) for x, y in zip(row, column, strict=True)])
             for column in zip(*b, strict=True)]
            for row in a
        ]  # fmt: skip

    def softmax(self, a: Rows, causal: bool) -> Rows:
        """Return exp(x) over the row's sum of exp(x): the definition, nothing subtracted."""
        result = []
        for i, row in enumerate(a):
            kept = min(i + 1, len(row)) if causal else len(row)
            powers = [self.apply("exp", x) for x in row[:kept]]
            total = self.sum(powers)
            weights = [self.apply("divide", power, total) for power in powers]
            result.append(weights + [0] * (len(row) - kept))
        return result

    def normed(self, row: Sequence[Value], epsilon: Value) -> list[Value]:
        """Return (x − mean) / √(variance + ε)."""
        mean = self.apply("divide", self.sum(row), len(row))
        deviations = [self.apply("subtract", x, mean) for x in row]
        total = self.sum([self.apply("multiply", x, x) for x in deviations])
        variance = self.apply("divide", total, len(row))
        root = self.apply("sqrt", self.apply("add", variance, epsilon))
        return [self.apply("divide", x, root) for x in deviations]

    def hardmax(self, a: Rows) -> Rows:
        """Return 1/k at the k entries that no other exceeds."""
        result = []
        for row in a:
            chosen = []
            for i, x in enumerate(row):
                beaten: Value = False
                for j, y in enumerate(row):
                    if i != j:
                        beaten = self.apply("or", beaten, self.apply("greater", y, x))
                chosen.append(self.apply("indicator", self.apply("not", beaten)))
            total = self.sum(chosen)
            result.append([self.apply("divide", x, total) for x in chosen])
        return result

    def leibniz(self, a: Rows, signed: bool) -> Value:
        """Return Σ sgn(π) Π a[i, π(i)], or without the signs."""
        terms = []
        for permutation in itertools.permutations(range(len(a))):
            product = self.product([row[j] for row, j in zip(a, permutation, strict=True)])
            flips = sum(p > q for p, q in itertools.combinations(permutation, 2))
            terms.append(self.apply("negate", product) if signed and flips % 2 else product)
        return self.sum(terms)

    def cofactors(self, a: Rows) -> Rows:
        size = range(len(a))
        result = []
        for i in size:
            row = []
            for j in size:
                minor = [[a[s][t] for t in size if t != j] for s in size if s != i]
                value = self.leibniz(minor, signed=True) if minor else 1
                row.append(self.apply("negate", value) if (i + j) % 2 else value)
            result.append(row)
        return result

    def inverse(self, a: Rows) -> Rows:
        determinant = self.leibniz(a, signed=True)
        adjugate = self.transpose(self.cofactors(a))
        return [[self.apply("divide", x, determinant) for x in row] for row in adjugate]

    def sorted_groups(self, row: Sequence[Value], size: int) -> list[Value]:
        """Sort each group by bubble sort, with maximum and minimum."""
        result = []
        for start in range(0, len(row), size):
            group = list(row[start : start + size])
            for end in range(size - 1, 0, -1):
                for place in range(end):
                    a, b = group[place], group[place + 1]
                    group[place] = self.apply("maximum", a, b)
                    group[place + 1] = self.apply("minimum", a, b)
            result += group
        return result

    def match2(self, row: Sequence[Value], modulus: int) -> list[Value]:
        result = []
        for a in row:
            matched: Value = False
            for b in row:
                rest = self.apply("modulo", self.apply("add", a, b), modulus)
                matched = self.apply("or", matched, self.apply("equal", rest, 0))
            result.append(self.apply("indicator", matched))
        return result


def _joined(lists: Sequence[list[Value]]) -> list[Value]:
    return [value for one in lists for value in one]
