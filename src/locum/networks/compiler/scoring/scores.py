"""Define scores of selectors as products of linear combinations of s-ops.

A selector is a conjunction of conditions, and each condition becomes a *penalty*: 0 if it holds, and −1
or less otherwise. Penalties are added, so the sum is 0 exactly where all conditions hold. Every penalty
is a sum of products (function of the query) · (function of the key), plus a function of the query
alone:

- The condition ``key == query`` for integers usually becomes −(q − k)² = 2q·k − k² − q².
- A condition on few values becomes Σ_c [query in class c]·[c selects the key] − 1.
- A condition on positions is scored in the same way, with classes of positions. If any two rows of its
  pattern are equal or disjoint, the condition becomes an equality of class numbers.

The condition ``best`` adds the rank of the key to a multiple of the other penalties. All scores of RASP
selectors are integers, so ties between selected keys are exact in floating point. Selectors without
such scores, such as comparisons of real numbers, are rewritten first (``broadcasting.py``).
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
    """A linear combination of s-ops, Σ coefficient · s-op, plus a constant."""

    terms: tuple[tuple[Node, float], ...] = ()
    constant: float = 0.0

    def times(self, factor: float) -> Linear:
        """Return the combination multiplied by a factor."""
        return Linear(tuple((node, factor * c) for node, c in self.terms), factor * self.constant)

    def map(self, change: Callable[[Node], Node]) -> Linear:
        """Apply ``change`` to each s-op of the combination."""
        return Linear(tuple((change(node), c) for node, c in self.terms), self.constant)

    def plus(self, other: Linear) -> Linear:
        """Return the sum of two combinations."""
        total = dict(self.terms)
        for node, coefficient in other.terms:
            total[node] = total.get(node, 0.0) + coefficient
        terms = tuple((node, c) for node, c in total.items() if c)
        return Linear(terms, self.constant + other.constant)


#: The empty linear combination.
NOTHING = Linear()


def term(node: Node, coefficient: float = 1.0) -> Linear:
    """Return the linear combination of a single s-op."""
    return Linear(((node, coefficient),))


def looked_up(node: Node, table: Mapping[Atom, Atom]) -> Node:
    """Return the s-op that looks up the value of ``node`` in a table."""
    check_time()
    return build("lookup", node, table=canonical_table(table))


def at_positions(values: Sequence[Atom]) -> Node:
    """Return the s-op whose value at position i is ``values[i]``.

    Unless all values are identical, the s-op is undefined at later positions.
    """
    if len(set(map(identity, values))) == 1:
        return constant(values[0])
    return looked_up(build("indices"), dict(enumerate(values)))


def numbered(numbers: Sequence[int]) -> Node:
    """Return the s-op whose value at position i is ``numbers[i]``.

    If the numbers are 0, 1, …, return the position itself.
    """
    in_order = list(numbers) == list(range(len(numbers)))
    return build("indices") if in_order else at_positions(numbers)


def rank(node: Node, among: Sequence[Atom]) -> Node:
    """Return the s-op whose value is the index of the value of ``node`` in ``among``.

    ``among`` contains all possible values of ``node``. Raise CompileError if it contains NaN.
    """
    if any(value != value for value in among):
        raise CompileError("expected numbers that can be ordered, got NaN", abbreviate(node))
    if whole_numbers(among) and tuple(among) == tuple(range(len(among))):
        return node
    return looked_up(node, {value: place for place, value in enumerate(among)})


def whole_numbers(values: Sequence[Atom]) -> bool:
    """Return whether all values are integers or booleans whose squares are less than 2⁴⁰."""
    return all(isinstance(v, int) and abs(v) < 2**20 for v in values)


def indicator(node: Node, values: Sequence[Atom], chosen: Pattern) -> Linear:
    """Return the combination that is 1 if the value of ``node`` is chosen, and 0 otherwise.

    ``chosen`` is a mask of ``values``, the possible values.
    """
    if chosen.all():
        return Linear(constant=1.0)
    return term(looked_up(node, dict(zip(values, map(int, chosen.tolist()), strict=True))))


def one_hot(node: Node, values: Sequence[Atom]) -> list[Linear]:
    """Return one combination for each possible value: 1 if ``node`` has this value, otherwise 0.

    The last combination is 1 minus all others.
    """
    hot = [term(build("indicator", build("equal", node, constant(value)))) for value in values[:-1]]
    rest = Linear(tuple((linear.terms[0][0], -1.0) for linear in hot), 1.0)
    return [*hot, rest]


def sum_of(hot: Sequence[Linear], chosen: Pattern) -> Linear:
    """Return the sum of the chosen one-hot combinations.

    If the last combination, which is 1 minus all others, is chosen, coefficients cancel.
    """
    coefficient = -1.0 if chosen[-1] else 1.0
    others = np.flatnonzero(chosen[:-1] != chosen[-1]).tolist()
    return Linear(tuple((hot[place].terms[0][0], coefficient) for place in others), float(chosen[-1]))


@dataclass(frozen=True)
class Scores:
    """The score of a head, Σ query·key + ``offset``.

    For a hard head without ``best``, the score is 0 at selected keys and at most −``gap`` at other
    keys that no causal mask hides.
    """

    pairs: tuple[tuple[Linear, Linear], ...]
    #: A function of the query, which is the same for all keys and thus relevant only if there is a
    #: sink.
    offset: Linear = NOTHING
    gap: float = 1.0
    #: The largest amount that ``best`` may add to the score of a selected key.
    bonus: float = 0.0
    #: "hard", or "softmax" for a head whose attention weights are the softmax of these scores.
    kind: str = "hard"
    how: tuple[str, ...] = ()

    def plus(self, other: Scores) -> Scores:
        """Return the scores of the conjunction of two conditions."""
        return Scores(
            self.pairs + other.pairs, self.offset.plus(other.offset), how=self.how + other.how
        )

    def map(self, change: Callable[[Node], Node]) -> Scores:
        """Apply ``change`` to each s-op of the scores."""
        pairs = tuple((query.map(change), key.map(change)) for query, key in self.pairs)
        return replace(self, pairs=pairs, offset=self.offset.map(change))

    @property
    def nodes(self) -> Iterator[Node]:
        """The s-ops that occur in the scores."""
        for query, key in (*self.pairs, (self.offset, Linear())):
            for node, _ in (*query.terms, *key.terms):
                yield node


class Unscored(Exception):  # noqa: N818  (a signal between stages, not an error)
    """Raised for a selector that has no scores and must therefore be rewritten."""


def quadratic(query: Node, key: Node) -> Scores:
    """Return the scores −(q − k)²: 0 if two integers are equal, and at most −1 otherwise."""
    pairs = (
        (term(query, 2.0), term(key)),
        (Linear(constant=-1.0), term(build("multiply", key, key))),
    )
    return Scores(pairs, term(build("multiply", query, query), -1.0), how=("equality by squares",))


def binary(queries: Sequence[int], keys: Sequence[int]) -> Scores:
    """Return the scores of an equality of numbers: a product of ±1 and ±1 for each binary digit.

    The scores, including the offset, are 0 if all digits are equal, and −2 or less otherwise.
    """
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
