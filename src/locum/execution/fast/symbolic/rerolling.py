"""Combine terms that differ only in their numbers into a sum over a new variable.

The RASP text of the paper has no families: Listing 3 adds up twelve separate heads. Lowering results
in twelve terms [p = t] Σ_j x[j + 2·l] · x[4·j + 6 + m]. These terms are equal except for integers that
grow in equal steps. A run of such terms becomes a sum Σ_u of one term, in which u multiplies the step.
Matching runs of equal length are combined again, so r·c heads become a sum over two variables.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from locum.execution.fast.symbolic.affine import Affine, Box, IndexScope, variable
from locum.execution.fast.symbolic.terms import (
    Apply,
    Entry,
    Factor,
    Greatest,
    Guard,
    Load,
    Position,
    Sum,
    Term,
)
from locum.graph import Node

#: Minimum length of a run that is combined.
_SHORTEST = 3

#: Function that creates a variable of a given size, as expressions that together take all its values.
Ranges = Callable[[int], list[Affine]]


def rerolled(terms: Sum, box: Box, ranges: Ranges) -> Sum:
    """Combine runs of matching terms in a sum, until no run is long enough."""
    while len(terms) >= _SHORTEST:
        shorter = _once(terms, box, ranges)
        if len(shorter) == len(terms):
            break
        terms = shorter
    return terms


def _once(terms: Sum, box: Box, ranges: Ranges) -> Sum:
    sums: list[Term] = []
    for _, group in itertools.groupby(terms, key=lambda t: _skeleton(t, box)):
        sums += _rolled(list(group), ranges)
    return tuple(sums)


def _rolled(alike: list[Term], ranges: Ranges) -> Iterator[Term]:
    """Combine terms with the same skeleton.

    Each run of at least three terms whose numbers grow in equal steps becomes one term for each range
    of the new variable. All other terms are unchanged.
    """
    numbers = [tuple(_numbers(term)) for term in alike]
    start = 0
    while start < len(alike):
        stop = start + 1
        if stop < len(alike):
            step = _difference(numbers[start], numbers[stop])
            while stop < len(alike) and _difference(numbers[stop - 1], numbers[stop]) == step:
                stop += 1
        if stop - start < _SHORTEST:
            yield alike[start]
            start += 1
            continue
        for u in ranges(stop - start):
            moved = _moved(alike[start], u, step)
            yield replace(moved, sums=moved.sums + u.variables)
        start = stop


def _moved(term: Term, u: Affine, step: tuple[int, ...]) -> Term:
    """Add u times its step to each affine expression of a term."""
    steps = iter(step)
    return _mapped(term, lambda e: e + u * next(steps))


def _difference(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(y - x for x, y in zip(a, b, strict=True))


def _skeleton(term: Term, box: Box) -> tuple[object, ...]:
    """Return a term without the constants of its affine expressions, as a hashable tuple.

    The summed variables are named in the order of their first occurrence.
    """
    bare = _mapped(term, lambda e: Affine(e.parts))
    names: dict[str, str] = {}
    for e in _expressions(bare):
        for v in e.variables:
            if v in term.sums and v not in names:
                names[v] = f"#{len(names)}:{box[v]}"
    for old, new in names.items():
        bare = bare.substitute(old, variable(new))
    unused = sorted(box[v] for v in term.sums if v not in names)
    return (bare.coefficient, len(term.sums), tuple(unused), bare.guards, bare.factors)


def _numbers(term: Term) -> Iterator[int]:
    return (e.constant for e in _expressions(term))


def _expressions(term: Term) -> list[Affine]:
    """List all affine expressions of a term in a fixed order."""
    expressions: list[Affine] = []

    def note(e: Affine) -> Affine:
        expressions.append(e)
        return e

    _mapped(term, note)
    return expressions


def _mapped(term: Term, change: Callable[[Affine], Affine]) -> Term:
    """Apply ``change`` to every affine expression of a term."""
    guards = tuple(Guard(change(g.e), g.relation) for g in term.guards)
    return replace(term, guards=guards, factors=tuple(_factor(f, change) for f in term.factors))


def _factor(factor: Factor, change: Callable[[Affine], Affine]) -> Factor:
    match factor:
        case Load(node, heads, position):
            return Load(node, tuple(change(h) for h in heads), change(position))
        case Entry(node, key):
            return Entry(node, change(key))
        case Position(e):
            return Position(change(e))
        case Apply(op, arguments):
            return Apply(op, tuple(tuple(_mapped(t, change) for t in a) for a in arguments))
        case Greatest():
            return replace(
                factor,
                guards=tuple(Guard(change(g.e), g.relation) for g in factor.guards),
                filters=tuple(tuple(_mapped(t, change) for t in f) for f in factor.filters),
                values=tuple(_mapped(t, change) for t in factor.values),
            )
    return factor  # other factors occur only in IEEE arithmetic, where terms are not combined


#: For each family in scope, the index of its member as an expression.
Heads: TypeAlias = Mapping[Node, Affine]


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys that a query selects: one position for each value of ``sums`` where the guards hold.

    ``filters`` are comparisons of data that further restrict the keys.
    """

    position: Affine
    sums: tuple[str, ...]
    guards: tuple[Guard, ...]
    filters: tuple[Node, ...]

    def count(self, scope: IndexScope) -> int:
        """Return the number of keys, without regard to guards and filters."""
        return math.prod(scope.box[v] for v in self.sums)


def direction(values: Node, score: Node) -> int | None:
    """Return +1 if the score is the value, −1 if one of them is the negation of the other, else None.

    With +1, the highest score belongs to the largest value; with −1, it belongs to the smallest value.
    """
    if values is score:
        return 1
    if (score.op == "negate" and score.inputs[0] is values) or (
        values.op == "negate" and values.inputs[0] is score
    ):
        return -1
    return None
