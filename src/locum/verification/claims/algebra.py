"""Matrix algebra in any number domain: what references are written in.

A reference is the plain textbook formula for what a program should compute, written without the
constructions: matrices are lists of rows, and every scalar operation is the domain's own. The same
reference is a formula in symbols, a number in floats and an enclosure in balls.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TypeAlias

from locum.execution.domains import Domain, Value

Rows: TypeAlias = "list[list[Value]]"


class Algebra:
    """Scalars and matrices of a domain."""

    def __init__(self, domain: Domain) -> None:
        self.domain = domain

    def apply(self, operation: str, *values: Value) -> Value:
        """An elementwise operation of the table, on scalars."""
        return self.domain.meanings[operation](*values)

    def sum(self, values: Sequence[Value]) -> Value:
        """v₀ + v₁ + …"""
        total = values[0]
        for value in values[1:]:
            total = self.apply("add", total, value)
        return total

    def product(self, values: Sequence[Value]) -> Value:
        """v₀ · v₁ · …"""
        total = values[0]
        for value in values[1:]:
            total = self.apply("multiply", total, value)
        return total

    def each(self, operation: str, *matrices: Rows) -> Rows:
        """An operation entry by entry."""
        return [
            [self.apply(operation, *entries) for entries in zip(*rows, strict=True)]
            for rows in zip(*matrices, strict=True)
        ]

    def transpose(self, a: Rows) -> Rows:
        """aᵀ"""
        return [list(column) for column in zip(*a, strict=True)]

    def matmul(self, a: Rows, *others: Rows) -> Rows:
        """a·b·…"""
        for b in others:
            a = [
                [self.sum([self.apply("multiply", x, y) for x, y in zip(row, column, strict=True)])
                 for column in zip(*b, strict=True)]
                for row in a
            ]  # fmt: skip
        return a

    def softmax(self, a: Rows) -> Rows:
        """eˣ over the row's sum of eˣ: the definition, nothing taken off."""
        result = []
        for row in a:
            powers = [self.apply("exp", x) for x in row]
            total = self.sum(powers)
            result.append([self.apply("divide", power, total) for power in powers])
        return result

    def relu(self, a: Rows) -> Rows:
        """x where x > 0, else 0."""
        choose = self.domain.meanings["if_else"]
        return [[choose(self.apply("greater", x, 0), x, 0) for x in row] for row in a]

    def attention(self, x: Rows, a: Rows, v: Rows) -> Rows:
        """σ(XAXᵀ)XV"""
        return self.matmul(self.softmax(self.matmul(x, a, self.transpose(x))), self.matmul(x, v))

    def determinant(self, a: Rows) -> Value:
        """Σ sgn(π) Π a[i, π(i)]: Leibniz."""
        terms = []
        for permutation in itertools.permutations(range(len(a))):
            product = self.product([row[j] for row, j in zip(a, permutation, strict=True)])
            flips = sum(p > q for p, q in itertools.combinations(permutation, 2))
            terms.append(self.apply("negate", product) if flips % 2 else product)
        return self.sum(terms)

    def cofactors(self, a: Rows) -> Rows:
        """(−1)^(i+j) times the determinant without row i and column j."""
        size = range(len(a))
        result = []
        for i in size:
            row = []
            for j in size:
                minor = [[a[s][t] for t in size if t != j] for s in size if s != i]
                value = self.determinant(minor) if minor else 1
                row.append(self.apply("negate", value) if (i + j) % 2 else value)
            result.append(row)
        return result

    def sorted(self, values: Sequence[Value]) -> list[Value]:
        """The greatest first, by exchanging neighbours."""
        found = list(values)
        for end in range(len(found) - 1, 0, -1):
            for place in range(end):
                a, b = found[place], found[place + 1]
                found[place] = self.apply("maximum", a, b)
                found[place + 1] = self.apply("minimum", a, b)
        return found


#: Matrices by name, and the algebra → the matrix that a program should give.
Reference: TypeAlias = Callable[..., Rows]
