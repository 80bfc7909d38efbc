"""Represent conditions on positions as disjoint conjunctions of guards.

``indices < 12 and indices % 4 == 0`` is known before any input is: over a box of positions it is true,
false, or true on a part that can be cut out. A condition is a tuple of conjunctions (tuples of guards)
of which at most one holds at a time, so that what depends on it is a plain sum of guarded terms.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from locum.execution.fast.symbolic.affine import Affine, Box, bounds, crossing
from locum.execution.fast.symbolic.signals import Refine, Stuck
from locum.execution.fast.symbolic.terms import Guard, Sum, Term

_LIMIT = 16


@dataclass(frozen=True, slots=True)
class GuardedCases:
    """A disjoint disjunction of conjunctions of guards."""

    cases: tuple[tuple[Guard, ...], ...]

    def settled(self, box: Box) -> GuardedCases:
        """Simplify it over a box: drop what is decided there."""
        cases = []
        for case in self.cases:
            decided = [(guard, guard.decided(box)) for guard in case]
            if any(holds is False for _, holds in decided):
                continue
            cases.append(tuple(guard for guard, holds in decided if holds is None))
        if () in cases:
            return TRUE
        return GuardedCases(tuple(dict.fromkeys(cases)))

    @property
    def value(self) -> bool | None:
        """True, False, or None if it depends on the position."""
        return False if not self.cases else True if self.cases == ((),) else None

    def terms(self) -> Sum:
        """Return terms that are 1 where it holds and 0 elsewhere."""
        return tuple(Term(1, guards=case) for case in self.cases)


TRUE = GuardedCases(((),))
FALSE = GuardedCases(())


def comparison(predicate: str, a: Affine, b: Affine) -> GuardedCases:
    """Compare two expressions."""
    e = a - b
    match predicate:
        case "==":
            return GuardedCases(((Guard(e, "=="),),))
        case "!=":
            return negation(comparison("==", a, b))
        case ">=":
            return GuardedCases(((Guard(e, ">="),),))
        case ">":
            return GuardedCases(((Guard(e - 1, ">="),),))
        case "<=":
            return GuardedCases(((Guard(-e, ">="),),))
        case _:
            return GuardedCases(((Guard(-e - 1, ">="),),))


def both(a: GuardedCases, b: GuardedCases) -> GuardedCases:
    """Return a and b."""
    cases = tuple(tuple(dict.fromkeys((*x, *y))) for x in a.cases for y in b.cases)
    if len(cases) > _LIMIT:
        raise Stuck("a condition of too many cases")
    return GuardedCases(cases)


def negation(a: GuardedCases) -> GuardedCases:
    """Return not a."""
    result = TRUE
    for case in a.cases:
        # not (g and h) is: not g, or else g and not h. These exclude each other.
        outside: list[tuple[Guard, ...]] = []
        for place, guard in enumerate(case):
            outside += [(*case[:place], other) for other in guard.negations()]
        result = both(result, GuardedCases(tuple(outside)))
    return result


def either(a: GuardedCases, b: GuardedCases) -> GuardedCases:
    """Return a or b: a, or else b."""
    rest = both(negation(a), b)
    return GuardedCases(a.cases + rest.cases)


def cut_for(condition: GuardedCases, box: Box, roots: Collection[str]) -> Refine | None:
    """Return a cut of a root variable that helps to decide the condition, or None."""
    for case in condition.cases:
        for guard in case:
            cut = _cut(guard, box, roots)
            if cut is not None:
                return cut
    return None


def _cut(guard: Guard, box: Box, roots: Collection[str]) -> Refine | None:
    """Cut where the guard begins or ceases to hold, if all but one value of a variable are clear.

    So positions inside and outside a matrix become two boxes, but j ≤ i does not become n.
    """
    if guard.decided(box) is not None or not all(v in roots for v in guard.e.variables):
        return None
    v, k = max(guard.e.parts, key=lambda part: abs(part[1]))
    least, greatest = bounds(guard.e.without(v), box)
    if greatest - least >= abs(k) and len(guard.e.parts) > 1:
        return None
    # k·v + rest ≥ 0 is undecided for the values of v between these two, k·v + rest = 0 as well.
    edges = {crossing(k, least), crossing(k, greatest)}
    if guard.relation == "==":
        edges |= {crossing(k, least - 1), crossing(k, greatest - 1)}
    inner = sorted(at for at in edges if 0 < at < box[v])
    return Refine(v, "cut", inner[0]) if inner else None
