"""Scores of selectors: linear combinations of s-ops and features of values.

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

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from locum.errors import CompileError
from locum.graph import Atom, Node, abbreviate, build
from locum.graph.atoms import canonical_table, identity
from locum.graph.operations import constant
from locum.networks.compiler.compile_limits import check_time
from locum.networks.compiler.program.sources import Pattern


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


def looked_up(node: Node, table: Mapping[Atom, Atom]) -> Node:
    """Return the value that the table has for the s-op's own."""
    check_time()
    return build("lookup", node, table=canonical_table(table))


def at_positions(values: Sequence[Atom]) -> Node:
    """Return the s-op with these values at the positions 0, 1, …, an error past the last."""
    if len(set(map(identity, values))) == 1:
        return constant(values[0])
    return looked_up(build("indices"), dict(enumerate(values)))


def numbered(numbers: Sequence[int]) -> Node:
    """Return the s-op with these numbers at the positions: the position itself, if they are equal."""
    in_order = list(numbers) == list(range(len(numbers)))
    return build("indices") if in_order else at_positions(numbers)


def rank(node: Node, among: Sequence[Atom]) -> Node:
    """Return the index of its value among these, which are all it takes."""
    if any(value != value for value in among):
        raise CompileError("expected numbers that can be ordered, got NaN", abbreviate(node))
    if whole_numbers(among) and tuple(among) == tuple(range(len(among))):
        return node
    return looked_up(node, {value: place for place, value in enumerate(among)})


def whole_numbers(values: Sequence[Atom]) -> bool:
    """Return whether these are integers whose squares are exact."""
    return all(isinstance(v, int) and abs(v) < 2**20 for v in values)


def indicator(node: Node, values: Sequence[Atom], chosen: Pattern) -> Linear:
    """Return 1 where the value is one of the chosen, else 0."""
    if chosen.all():
        return Linear(constant=1.0)
    return term(looked_up(node, dict(zip(values, map(int, chosen.tolist()), strict=True))))


def one_hot(node: Node, values: Sequence[Atom]) -> list[Linear]:
    """Return for each value whether it is the one; the last follows from the others."""
    hot = [term(build("indicator", build("equal", node, constant(value)))) for value in values[:-1]]
    rest = Linear(tuple((linear.terms[0][0], -1.0) for linear in hot), 1.0)
    return [*hot, rest]


def sum_of(hot: Sequence[Linear], chosen: Pattern) -> Linear:
    """Return Σ of the chosen; the last one is 1 minus all others, so its coefficients cancel."""
    coefficient = -1.0 if chosen[-1] else 1.0
    others = np.flatnonzero(chosen[:-1] != chosen[-1]).tolist()
    return Linear(tuple((hot[place].terms[0][0], coefficient) for place in others), float(chosen[-1]))


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
