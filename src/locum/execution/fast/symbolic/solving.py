"""Represent conditions on positions, and solve them for summed variables.

Each rule replaces a term by an equal term with simpler guards, fewer summed variables or smaller
ranges. The rules are applied until none applies, or until a limit is reached. A rule may also raise
:class:`Refine` to split a variable into digits. The rules are local and do not depend on the shapes of
matrices:

- *range*: a guard that holds everywhere in the box is dropped, and a guard that holds nowhere makes the
  term 0;
- *separation* (mixed radix): m·Q + R = 0 splits into conditions on Q and on R if only one multiple of m
  is in the range of R. If ⌊R / m⌋ is constant, m·Q + R ≥ 0 is a bound on Q;
- *pairs*: e ≥ 0 and −e ≥ 0 become e = 0;
- *delta elimination*: an equality determines the value of a summed variable, which is a key or the head
  of a family;
- *interval*: if two bounds of a summed variable have a fixed distance, a smaller variable replaces it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from locum.execution.fast.symbolic.affine import (
    Affine,
    Box,
    Refine,
    Stuck,
    bounds,
    crossing,
    digits,
    number,
    variable,
)
from locum.execution.fast.symbolic.terms import (
    Apply,
    Factor,
    Fetch,
    Greatest,
    Guard,
    PlaceOfGreatest,
    Scattered,
    Sum,
    Term,
)

#: Function that creates a fresh variable from the name of a variable, a mark that makes the new name
#: unique, and a size.
Fresh = Callable[[str, str, int], Affine]

_ROUNDS = 200


def solve_all(terms: Sum, box: Box, fresh: Fresh) -> Sum:
    """Solve the guards of all terms, including terms inside factors.

    Terms whose guards cannot hold are dropped.
    """
    solved = (solve(t, box, fresh) for t in terms)
    return tuple(
        replace(t, factors=tuple(_inside(f, box, fresh) for f in t.factors)) for t in solved if t
    )


def _inside(factor: Factor, box: Box, fresh: Fresh) -> Factor:
    if isinstance(factor, Apply):
        return replace(factor, arguments=tuple(solve_all(a, box, fresh) for a in factor.arguments))
    if isinstance(factor, Greatest):
        return replace(
            factor,
            guards=tuple(g for g in factor.guards if g.decided(box) is not True),
            filters=tuple(solve_all(a, box, fresh) for a in factor.filters),
            values=solve_all(factor.values, box, fresh),
        )
    if isinstance(factor, PlaceOfGreatest):
        return replace(factor, values=solve_all(factor.values, box, fresh))
    if isinstance(factor, Fetch):
        return replace(factor, position=solve_all(factor.position, box, fresh))
    if isinstance(factor, Scattered):
        solved = (solve_all(terms, box, fresh) for terms in (factor.target, factor.values))
        return Scattered(factor.sums, next(solved), factor.place, next(solved))
    return factor


def solve(term: Term, box: Box, fresh: Fresh) -> Term | None:
    """Solve the guards of a term as far as the rules apply; return None if they show that it is 0."""
    for _ in range(_ROUNDS):
        if not term.guards:
            return term
        before = term
        guards = _settled(term, box)
        if guards is None:
            return None
        term = Term(term.coefficient, term.sums, guards, term.factors)
        term = _eliminated(term, box)
        if term.guards == guards:
            narrowed = _narrowed(term, box, fresh)
            if narrowed is None:
                return None
            term = narrowed
        if term == before:
            return term
    raise Stuck("a condition that requires too many rounds of simplification")


def _settled(term: Term, box: Box) -> tuple[Guard, ...] | None:
    """Simplify the guards of a term without substitutions; return None if a guard cannot hold."""
    kept: dict[Guard, None] = {}
    for guard in term.guards:
        decided = guard.decided(box)
        if decided is False:
            return None
        if decided is None:
            parts = _equality(guard.e, box, term.sums) if guard.relation == "==" else None
            if guard.relation == ">=":
                parts = (_bound(guard.e, box, term.sums),)
            if parts is None:
                return None
            kept.update(dict.fromkeys(parts))
    return _paired(tuple(kept))


def _paired(guards: tuple[Guard, ...]) -> tuple[Guard, ...]:
    """Combine each pair of guards e ≥ 0 and −e ≥ 0 into e = 0."""
    joined: dict[Guard, None] = {}
    for guard in guards:
        if guard.relation == ">=" and Guard(-guard.e, ">=") in guards:
            if Guard(-guard.e, "==") not in joined:
                joined[Guard(guard.e, "==")] = None
        else:
            joined[guard] = None
    return tuple(joined)


def _bases(e: Affine) -> list[int]:
    return sorted({abs(k) for _, k in e.parts if abs(k) > 1}, reverse=True)


def _bound(e: Affine, box: Box, sums: tuple[str, ...]) -> Guard:
    """Simplify e ≥ 0: m·Q + R ≥ 0 becomes Q + ⌊R / m⌋ ≥ 0 if ⌊R / m⌋ is constant."""
    for base in _bases(e):
        quotient, rest = digits(e, base)
        least, greatest = bounds(rest, box)
        if least // base == greatest // base:
            return Guard(quotient + least // base, ">=")
        if any(v in sums for v in quotient.variables):
            _split(rest, base, box, ())
    return Guard(e, ">=")


def _equality(e: Affine, box: Box, sums: tuple[str, ...]) -> tuple[Guard, ...] | None:
    """Split e = 0 into several equalities if base and range allow it; return None if it cannot hold."""
    for base in _bases(e):
        quotient, rest = digits(e, base)
        least, greatest = bounds(rest, box)
        first, last = -(-least // base), greatest // base  # multiples of the base within the range
        if first > last:
            return None
        if first == last:
            separated = (Guard(quotient + first, "=="), Guard(rest - first * base, "=="))
            return tuple(g for g in separated if g.decided(box) is not True)
        if any(v in sums for v in quotient.variables):
            _split(rest, base, box, sums)
    return (Guard(e, "=="),)


def _split(rest: Affine, base: int, box: Box, but_not: tuple[str, ...]) -> None:
    """Raise :class:`Refine` to split a variable into digits if it exceeds one period of the base."""
    for v, k in rest.parts:
        period = base // abs(k)
        if v not in but_not and base % abs(k) == 0 and box[v] > period > 1:
            raise Refine(v, "split", period)


def _eliminated(term: Term, box: Box) -> Term:
    """Eliminate one delta, if any: Σ_v [v = e] f(v) is f(e) if e is within the range of v."""
    for guard in term.guards:
        if guard.relation != "==":
            continue
        for v, k in guard.e.parts:
            if v in term.sums and abs(k) == 1:
                value = guard.e.without(v) * -k
                within = (Guard(value, ">="), Guard(number(box[v] - 1) - value, ">="))
                rest = tuple(g for g in term.guards if g != guard)
                sums = tuple(s for s in term.sums if s != v)
                free = Term(term.coefficient, sums, rest, term.factors)
                return free.substitute(v, value).guarded(within)
    return term


def _narrowed(term: Term, box: Box, fresh: Fresh) -> Term | None:
    """Apply the interval rule: replace a variable that takes a fixed number of values.

    If v takes the values from L to H, it is replaced by L + u, where u has a smaller range than v. If v
    takes no value, the term is 0 and None is returned.
    """
    for v in term.sums:
        lower = [-g.e.without(v) for g in term.guards if g.relation == ">=" and g.e.coefficient(v) == 1]
        upper = [g.e.without(v) for g in term.guards if g.relation == ">=" and g.e.coefficient(v) == -1]
        if not lower and not upper:
            continue
        choice = _interval(lower, upper, box[v])
        if choice is None:
            continue
        first, size = choice
        if size <= 0:
            return None
        if size >= box[v]:  # this size must decrease, otherwise the procedure would not terminate
            continue
        u = fresh(v, f"{first}", size)
        within = (Guard(first + u, ">="), Guard(number(box[v] - 1) - first - u, ">="))
        bounded = {
            *(Guard(variable(v) - e, ">=") for e in lower if e == first),
            *(Guard(e - variable(v), ">=") for e in upper if e == first + (size - 1)),
        }
        rest = tuple(g for g in term.guards if g not in bounded)
        sums = tuple(s for s in term.sums if s != v) + u.variables
        free = Term(term.coefficient, sums, rest, term.factors)
        return free.substitute(v, first + u).guarded(within)
    return term


def _interval(lower: list[Affine], upper: list[Affine], size: int) -> tuple[Affine, int] | None:
    """Return start and length of the shortest interval of known length, or None if there is none."""
    lower, upper = [*lower, number(0)], [*upper, number(size - 1)]
    lengths = [
        (span.constant + 1, first)
        for first in lower
        for last in upper
        if (span := last - first).is_constant
    ]
    if not lengths:
        return None
    length, first = min(lengths, key=lambda interval: interval[0])
    return first, length


_LIMIT = 16


@dataclass(frozen=True, slots=True)
class GuardedCases:
    """A condition as a disjunction of mutually exclusive conjunctions of guards."""

    cases: tuple[tuple[Guard, ...], ...]

    def settled(self, box: Box) -> GuardedCases:
        """Simplify the condition over a box by removing guards that are decided there."""
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
        """True, False, or None if the condition is not decided."""
        return False if not self.cases else True if self.cases == ((),) else None

    def terms(self) -> Sum:
        """Return terms whose sum is 1 where the condition is true, and 0 elsewhere."""
        return tuple(Term(1, guards=case) for case in self.cases)


TRUE = GuardedCases(((),))
FALSE = GuardedCases(())


def comparison(predicate: str, a: Affine, b: Affine) -> GuardedCases:
    """Return the condition that ``a`` and ``b`` satisfy a comparison predicate."""
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
    """Return the conjunction of two conditions."""
    cases = tuple(tuple(dict.fromkeys((*x, *y))) for x in a.cases for y in b.cases)
    if len(cases) > _LIMIT:
        raise Stuck("a condition of too many cases")
    return GuardedCases(cases)


def negation(a: GuardedCases) -> GuardedCases:
    """Return the negation of a condition."""
    result = TRUE
    for case in a.cases:
        # not (g and h) is: not g, or g and not h. These exclude each other.
        outside: list[tuple[Guard, ...]] = []
        for place, guard in enumerate(case):
            outside += [(*case[:place], other) for other in guard.negations()]
        result = both(result, GuardedCases(tuple(outside)))
    return result


def either(a: GuardedCases, b: GuardedCases) -> GuardedCases:
    """Return the disjunction of two conditions: ``a``, or ``b`` where ``a`` is false."""
    rest = both(negation(a), b)
    return GuardedCases(a.cases + rest.cases)


def cut_for(condition: GuardedCases, box: Box, roots: Collection[str]) -> Refine | None:
    """Return a cut of a root variable that helps to decide the condition, or None if there is none."""
    for case in condition.cases:
        for guard in case:
            cut = _cut(guard, box, roots)
            if cut is not None:
                return cut
    return None


def _cut(guard: Guard, box: Box, roots: Collection[str]) -> Refine | None:
    """Return a cut where the guard changes, if it is undecided for at most one value of a variable.

    Otherwise, return None. Thus, positions inside and outside a matrix become two boxes, but j ≤ i does
    not become n boxes.
    """
    if guard.decided(box) is not None or not all(v in roots for v in guard.e.variables):
        return None
    v, k = max(guard.e.parts, key=lambda part: abs(part[1]))
    least, greatest = bounds(guard.e.without(v), box)
    if greatest - least >= abs(k) and len(guard.e.parts) > 1:
        return None
    # k·v + rest ≥ 0 is undecided for the values of v between these two, as is k·v + rest = 0.
    edges = {crossing(k, least), crossing(k, greatest)}
    if guard.relation == "==":
        edges |= {crossing(k, least - 1), crossing(k, greatest - 1)}
    inner = sorted(at for at in edges if 0 < at < box[v])
    return Refine(v, "cut", inner[0]) if inner else None
