"""Define the trees of cases of a proof, which the prover finds and the checker verifies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Question:
    """A question about the sign of a polynomial, or about the remainder of an integer entry.

    The relation ``">"`` asks whether the polynomial is positive, and ``"="`` asks whether it is 0. The
    relation ``"%"`` asks for the remainder of the entry ``polynomial`` modulo ``modulus``.
    """

    polynomial: str
    relation: str
    modulus: int = 0

    @property
    def answers(self) -> Sequence[int]:
        """The possible answers: 1 for yes and 0 for no, or the possible remainders."""
        return range(self.modulus) if self.relation == "%" else (1, 0)


@dataclass(frozen=True)
class Branch:
    """A node of a tree of cases: a question with a subtree for each answer, or a leaf."""

    question: Question | None = None
    children: tuple[Branch, ...] = ()
    #: For an impossible leaf, inequalities that contradict each other; otherwise None.
    contradiction: tuple[tuple[str, int], ...] | None = None


@dataclass(frozen=True)
class Tree:
    """A tree of cases that cover all inputs, and the entries that are shown in each possible case."""

    root: Branch
    entries: frozenset[int]
