"""S-ops that say one thing about a value: a table of it, its rank, whether it is one of some.

Scores are made of these, and so is what is brought to a query. An s-op and its values come in; s-ops
(or linear combinations of them) come out, which are embeddings where the values are of positions or of
tokens, and tables for a feed-forward elsewhere.

>>> numbered([2, 0, 1]), numbered([0, 1, 2]), numbered([7, 7])
(<lookup: {0: 2, 1: 0, 2: 1}[indices]>, <indices: indices>, <constant: 7>)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from locum.compiler.program.conditions import Pattern
from locum.compiler.scoring.linear import Linear, term
from locum.errors import CompileError
from locum.graph import Atom, Node, abbreviate, build
from locum.graph.atoms import canonical_table, identity
from locum.graph.operations import constant


def looked_up(node: Node, table: Mapping[Atom, Atom]) -> Node:
    """Return the value that the table has for the s-op's own."""
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
