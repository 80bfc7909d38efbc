"""Selectors as scores: q·k is greatest exactly where the selector holds.

A selector is a conjunction of conditions, and each condition becomes a *penalty*: 0 where it holds,
−1 or less where it does not. Penalties add up, so all conditions hold exactly where the sum is 0.
Every penalty is a sum of products (something of the query) · (something of the key), plus something
of the query alone:

- ``key == query`` for integers: −(q − k)² = 2q·k − k² − q²;
- anything about finitely many values: Σ_c [query in class c]·[the condition holds for c and the key]
  − 1;
- anything about positions alone: the same, on the pattern itself; where rows are equal or disjoint
  (each key belongs to one class, as in a permutation, or "the same row") they are an equality of
  class numbers.

All of these are integers, so ties between selected keys are exact in floating point. What has no
such form (comparisons of real numbers, maxima of them) is rewritten first: see ``broadcasting.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from locum.compiler.scoring.features import numbered
from locum.compiler.scoring.linear import NOTHING, Linear, term
from locum.graph import Node, build


@dataclass(frozen=True)
class Scores:
    """How a head scores: Σ query·key + offset is 0 where the selector holds and ≤ −gap elsewhere."""

    pairs: tuple[tuple[Linear, Linear], ...]
    #: What depends on the query alone: it only matters where a sink competes.
    offset: Linear = NOTHING
    gap: float = 1.0
    #: How much a ``best`` may add to the score of a selected key.
    bonus: float = 0.0
    #: "hard"; or "softmax" for a head that is meant to weigh all keys by e to the power of its scores.
    kind: str = "hard"
    how: tuple[str, ...] = ()

    def plus(self, other: Scores) -> Scores:
        """Return both conditions."""
        return Scores(
            self.pairs + other.pairs, self.offset.plus(other.offset), how=self.how + other.how
        )

    def map(self, change: Callable[[Node], Node]) -> Scores:
        """Return the same scores of other s-ops."""
        pairs = tuple((query.map(change), key.map(change)) for query, key in self.pairs)
        return replace(self, pairs=pairs, offset=self.offset.map(change))

    @property
    def nodes(self) -> Iterator[Node]:
        """The s-ops it is made of."""
        for query, key in (*self.pairs, (self.offset, Linear())):
            for node, _ in (*query.terms, *key.terms):
                yield node


class Unscored(Exception):  # noqa: N818  (a signal between stages, not an error)
    """A selector that has no scores as it is."""


def quadratic(query: Node, key: Node) -> Scores:
    """Return the score −(q − k)², for integers."""
    pairs = (
        (term(query, 2.0), term(key)),
        (Linear(constant=-1.0), term(build("multiply", key, key))),
    )
    return Scores(pairs, term(build("multiply", query, query), -1.0), how=("equality by squares",))


def binary(queries: Sequence[int], keys: Sequence[int]) -> Scores:
    """Score ±1 for each binary digit: 0 where all agree, −2 or less where one does not."""
    lowest = min(*queries, *keys)
    bits = max(1, (max(*queries, *keys) - lowest).bit_length())
    pairs = []
    for bit in range(bits):
        q, k = (
            numbered([2 * ((number - lowest) >> bit & 1) - 1 for number in numbers])
            for numbers in (queries, keys)
        )
        pairs.append((term(q), term(k)))
    return Scores(tuple(pairs), Linear(constant=-float(bits)), how=(f"{bits} binary digits",))
