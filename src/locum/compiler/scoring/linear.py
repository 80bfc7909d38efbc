"""Linear combinations of s-ops, of which scores are made: Σ cᵢ·xᵢ + c."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from locum.graph import Node


@dataclass(frozen=True)
class Linear:
    """Σ coefficient · s-op, plus a constant."""

    terms: tuple[tuple[Node, float], ...] = ()
    constant: float = 0.0

    def times(self, factor: float) -> Linear:
        """Multiply all of it."""
        return Linear(tuple((node, factor * c) for node, c in self.terms), factor * self.constant)

    def map(self, change: Callable[[Node], Node]) -> Linear:
        """Return the same combination of other s-ops."""
        return Linear(tuple((change(node), c) for node, c in self.terms), self.constant)

    def plus(self, other: Linear) -> Linear:
        """Return the sum of both."""
        total = dict(self.terms)
        for node, coefficient in other.terms:
            total[node] = total.get(node, 0.0) + coefficient
        terms = tuple((node, c) for node, c in total.items() if c)
        return Linear(terms, self.constant + other.constant)


#: The empty sum.
NOTHING = Linear()


def term(node: Node, coefficient: float = 1.0) -> Linear:
    """Return one s-op as a combination."""
    return Linear(((node, coefficient),))
