"""Represent lowered values in normal form: sums of terms

    coefficient · Σ over variables · Π [guards] · Π factors

A *guard* is an Iverson bracket of an affine expression, [e = 0] or [e ≥ 0]. A *factor* is, for example,
a load from a buffer at an affine position, a position itself, a function of other such sums, or a
maximum. A product of matrices is Σ_t X[4·i + t] · A[3·t + j + 12]: terms do not represent matrices
explicitly.

Guards, factors and terms have the method ``substitute``, which replaces a variable by an expression.
Factors and terms also have the method ``variables``, which returns the free variables.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TypeAlias

from locum.execution.fast.symbolic.affine import Affine, Box, Stuck, bounds
from locum.graph import Node

#: The coefficient of a term: an integer or a fraction if possible, so that k · (1/k) is exactly 1.
Coefficient: TypeAlias = "int | Fraction | float"


@dataclass(frozen=True, slots=True)
class Guard:
    """The condition [e = 0] or [e ≥ 0]."""

    e: Affine
    relation: str  # "==" or ">="

    def decided(self, box: Box) -> bool | None:
        """Return True if the bounds of the expression show that the guard holds everywhere in the box.

        Return False if they show that it holds nowhere in the box, else None.
        """
        least, greatest = bounds(self.e, box)
        if self.relation == ">=":
            return True if least >= 0 else False if greatest < 0 else None
        if least == greatest == 0:
            return True
        return False if least > 0 or greatest < 0 else None

    def substitute(self, name: str, value: Affine) -> Guard:
        return Guard(self.e.substitute(name, value), self.relation)

    def negations(self) -> tuple[Guard, ...]:
        """Return disjoint guards, exactly one of which holds where this guard does not hold."""
        if self.relation == ">=":
            return (Guard(-self.e - 1, ">="),)
        return (Guard(self.e - 1, ">="), Guard(-self.e - 1, ">="))


@dataclass(frozen=True, slots=True)
class Load:
    """The value of a node at a position, for one member of each of its free families."""

    node: Node
    heads: tuple[Affine, ...]
    position: Affine

    def substitute(self, name: str, value: Affine) -> Load:
        heads = tuple(h.substitute(name, value) for h in self.heads)
        return Load(self.node, heads, self.position.substitute(name, value))

    def variables(self) -> set[str]:
        return {v for e in (*self.heads, self.position) for v in e.variables}


@dataclass(frozen=True, slots=True)
class Entry:
    """The entry of a ``lookup`` table for an integer; the table is part of the program."""

    node: Node
    key: Affine

    def substitute(self, name: str, value: Affine) -> Entry:
        return Entry(self.node, self.key.substitute(name, value))

    def variables(self) -> set[str]:
        return set(self.key.variables)

    def entries(self) -> dict[object, object]:
        """Return the table as a dictionary."""
        return dict(self.node.table)


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant that is not merged with other constants, since 0 · x may differ from 0 in IEEE 754."""

    value: float

    def substitute(self, name: str, value: Affine) -> Literal:
        return self

    def variables(self) -> set[str]:
        return set()


@dataclass(frozen=True, slots=True)
class Position:
    """An integer determined by loop variables: a position, or the index of a head."""

    e: Affine

    def substitute(self, name: str, value: Affine) -> Position:
        return Position(self.e.substitute(name, value))

    def variables(self) -> set[str]:
        return set(self.e.variables)


@dataclass(frozen=True, slots=True)
class Apply:
    """An elementwise operation applied to sums of terms."""

    op: str
    arguments: tuple[Sum, ...]
    #: The result of :func:`extent`, which is computed once because it is read often.
    extent: tuple[int, int] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "extent", extent(*self.arguments))

    def substitute(self, name: str, value: Affine) -> Apply:
        arguments = tuple(substitute(terms, name, value) for terms in self.arguments)
        return Apply(self.op, arguments)

    def variables(self) -> set[str]:
        return {v for terms in self.arguments for v in free_variables(terms)}


@dataclass(frozen=True, slots=True)
class Greatest:
    """The maximum of ``values`` over ``sums``, where guards and filters hold.

    If they hold nowhere, the value is the default. With ``sign`` −1, the factor is the minimum.
    """

    sums: tuple[str, ...]
    guards: tuple[Guard, ...]
    filters: tuple[Sum, ...]
    values: Sum
    sign: int
    default: float
    extent: tuple[int, int] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "extent", extent(self.values, *self.filters))

    def substitute(self, name: str, value: Affine) -> Greatest:
        return replace(
            self,
            guards=tuple(g.substitute(name, value) for g in self.guards),
            filters=tuple(substitute(terms, name, value) for terms in self.filters),
            values=substitute(self.values, name, value),
        )

    def variables(self) -> set[str]:
        inside = {v for terms in (self.values, *self.filters) for v in free_variables(terms)}
        inside.update(v for g in self.guards for v in g.e.variables)
        return inside.difference(self.sums)


@dataclass(frozen=True, slots=True)
class PlaceOfGreatest:
    """The first value of the variable ``along`` at which ``values`` is largest."""

    along: str
    values: Sum
    extent: tuple[int, int] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "extent", extent(self.values))

    def substitute(self, name: str, value: Affine) -> PlaceOfGreatest:
        return PlaceOfGreatest(self.along, substitute(self.values, name, value))

    def variables(self) -> set[str]:
        return free_variables(self.values) - {self.along}


@dataclass(frozen=True, slots=True)
class Fetch:
    """The value of a node at a position computed from data.

    For a number that is not a position of the sequence, the value is the default.
    """

    node: Node
    position: Sum
    default: float
    extent: tuple[int, int] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "extent", extent(self.position))

    def substitute(self, name: str, value: Affine) -> Fetch:
        return Fetch(self.node, substitute(self.position, name, value), self.default)

    def variables(self) -> set[str]:
        return free_variables(self.position)


@dataclass(frozen=True, slots=True)
class Scattered:
    """The sum over ``sums`` of the values whose target is the position ``place``."""

    sums: tuple[str, ...]
    target: Sum
    place: Affine
    values: Sum
    extent: tuple[int, int] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "extent", extent(self.target, self.values))

    def substitute(self, name: str, value: Affine) -> Scattered:
        target, values = (substitute(terms, name, value) for terms in (self.target, self.values))
        return Scattered(self.sums, target, self.place.substitute(name, value), values)

    def variables(self) -> set[str]:
        inside = free_variables(self.target) | free_variables(self.values)
        return (inside - set(self.sums)) | set(self.place.variables)


Factor: TypeAlias = (
    Load | Entry | Literal | Position | Apply | Greatest | PlaceOfGreatest | Fetch | Scattered
)


def parts_of(factor: Factor) -> tuple[Sum, ...]:
    """Return the sums of terms that a factor contains."""
    match factor:
        case Apply():
            return factor.arguments
        case Greatest():
            return (factor.values, *factor.filters)
        case PlaceOfGreatest():
            return (factor.values,)
        case Fetch():
            return (factor.position,)
        case Scattered():
            return (factor.target, factor.values)
    return ()


@dataclass(frozen=True, slots=True)
class Term:
    """The product coefficient · Σ over sums · Π guards · Π factors."""

    coefficient: Coefficient
    sums: tuple[str, ...] = ()
    guards: tuple[Guard, ...] = ()
    factors: tuple[Factor, ...] = ()

    def substitute(self, name: str, value: Affine) -> Term:
        return Term(
            self.coefficient,
            self.sums,
            tuple(g.substitute(name, value) for g in self.guards),
            tuple(f.substitute(name, value) for f in self.factors),
        )

    def variables(self) -> set[str]:
        """Return the free variables of the term."""
        inside = {v for f in self.factors for v in f.variables()}
        inside.update(v for g in self.guards for v in g.e.variables)
        return inside.difference(self.sums)

    def guarded(self, guards: Iterable[Guard]) -> Term:
        joined = tuple(dict.fromkeys((*self.guards, *guards)))
        return Term(self.coefficient, self.sums, joined, self.factors)

    def scaled(self, factor: Coefficient) -> Term:
        return Term(self.coefficient * factor, self.sums, self.guards, self.factors)


Sum: TypeAlias = tuple[Term, ...]


def substitute(terms: Sum, name: str, value: Affine) -> Sum:
    """Replace the variable ``name`` by ``value`` in every term."""
    return tuple(term.substitute(name, value) for term in terms)


def free_variables(terms: Sum) -> set[str]:
    """Return the variables that are free in any of the terms."""
    return {v for term in terms for v in term.variables()}


#: Factors that contain sums of terms.
_COMPOSED = (Apply, Greatest, PlaceOfGreatest, Fetch, Scattered)


def value_bounds(terms: Sum, box: Box) -> tuple[float, float]:
    """Return a lower and an upper bound of a value over the box, infinite if unknown."""
    return _sum_bounds(terms, box, {})


_UNKNOWN = (-math.inf, math.inf)


def _sum_bounds(terms: Sum, box: Box, known: dict[int, tuple[float, float]]) -> tuple[float, float]:
    """Return bounds of a sum; ``known`` caches the bounds of factors, which sums may share."""
    least = greatest = 0.0
    for term in terms:
        low = high = float(term.coefficient)
        for factor in term.factors:
            if id(factor) not in known:
                known[id(factor)] = _factor_bounds(factor, box, known)
            ends = [x * y for x in (low, high) for y in known[id(factor)]]
            low, high = (min(ends), max(ends)) if not any(map(math.isnan, ends)) else _UNKNOWN
        if term.sums:
            low, high = _UNKNOWN
        if term.guards:
            low, high = min(low, 0.0), max(high, 0.0)
        least, greatest = least + low, greatest + high
    return (least, greatest) if not math.isnan(least + greatest) else _UNKNOWN


def _factor_bounds(
    factor: Factor, box: Box, known: dict[int, tuple[float, float]]
) -> tuple[float, float]:
    match factor:
        case Position(e):
            return bounds(e, box)
        case Literal(value) if not math.isnan(value):
            return value, value
        case PlaceOfGreatest(along=along):
            return 0, box[along] - 1
        case Apply(op, arguments):
            ends = [_sum_bounds(argument, box, known) for argument in arguments]
            match op, ends:
                case "add", [(a, b), (c, d)]:
                    return a + c, b + d
                case "subtract", [(a, b), (c, d)]:
                    return a - d, b - c
                case "multiply", [(a, b), (c, d)]:
                    products = [x * y for x in (a, b) for y in (c, d)]
                    if not any(map(math.isnan, products)):
                        return min(products), max(products)
                case "minimum", [(a, b), (c, d)]:
                    return min(a, c), min(b, d)
                case "maximum", [(a, b), (c, d)]:
                    return max(a, c), max(b, d)
                case "if_else", [_, (a, b), (c, d)]:
                    return min(a, c), max(b, d)
                case "floor_divide", [(a, b), (c, d)] if c == d > 0 and math.isfinite(b - a):
                    return a // c, b // c
                case "modulo", [_, (c, d)] if c == d > 0:
                    return 0, c
    return _UNKNOWN


def constant_term(value: Coefficient) -> Sum:
    """Return a number as a sum of terms."""
    return (Term(value),) if value != 0 else ()


def extent(*sums: Sum) -> tuple[int, int]:
    """Return the number of terms and factors, and the maximum number of bits of a coefficient.

    Terms and factors inside other factors are included. Float coefficients have 0 bits.

    >>> extent((Term(5, factors=(Apply("abs", ((Term(2),),)),)),))
    (3, 3)
    """
    length = bits = 0
    for terms in sums:
        for term in terms:
            length += 1 + len(term.factors)
            bits = max(bits, _bits(term.coefficient))
            for factor in term.factors:
                if isinstance(factor, _COMPOSED):
                    length += factor.extent[0]
                    bits = max(bits, factor.extent[1])
    return length, bits


def _bits(c: Coefficient) -> int:
    if isinstance(c, Fraction):
        return max(c.numerator.bit_length(), c.denominator.bit_length())
    return c.bit_length() if isinstance(c, int) else 0


def everywhere(terms: Sum) -> Iterator[Term]:
    """Yield all terms, including terms inside factors."""
    for term in terms:
        yield term
        for factor in term.factors:
            for part in parts_of(factor):
                yield from everywhere(part)


def fetches(terms: Sum) -> Iterator[Fetch]:
    """Return an iterator over all fetches in the terms."""
    return (f for term in everywhere(terms) for f in term.factors if isinstance(f, Fetch))


def loads(terms: Sum) -> Iterator[Load]:
    """Return an iterator over all loads in the terms."""
    return (f for term in everywhere(terms) for f in term.factors if isinstance(f, Load))


def is_view(terms: Sum) -> bool:
    """Return whether a sum only looks up values, so that no computation would be repeated."""
    if any(t.sums or len(t.factors) > 1 for t in terms):
        return False
    if any(isinstance(f, _COMPOSED) for t in terms for f in t.factors):
        return False
    if any(t.factors and t.coefficient != 1 for t in terms):
        return False
    return len(terms) <= 1 or all(t.guards for t in terms)


def is_multilinear(terms: Sum) -> bool:
    """Return whether no term contains a sum or a composed factor.

    Such terms can be moved into other sums.
    """
    return not any(t.sums for t in terms) and not any(
        isinstance(f, _COMPOSED) for t in terms for f in t.factors
    )


def product(a: Sum, b: Sum) -> Sum:
    """Multiply two sums; distribute over their terms only where no time or precision is lost.

    For example, (x − m)·(x − m) must remain a product of differences, since digits would cancel in x² −
    2xm + m².
    """
    if not a or not b:
        return ()
    for one, other in ((a, b), (b, a)):
        if len(one) == 1 and not one[0].sums and not one[0].factors and not one[0].guards:
            return tuple([t.scaled(one[0].coefficient) for t in other])
    piecewise = all(t.guards for t in a) or all(t.guards for t in b)
    summed = any(t.sums for t in (*a, *b))
    if not summed and (len(a) == len(b) == 1 or (min(len(a), len(b)) == 1 and piecewise)):
        return tuple(_merged(s, t) for s in a for t in b)
    return (Term(1, factors=(Apply("multiply", (a, b)),)),)


def _merged(a: Term, b: Term) -> Term:
    coefficient = a.coefficient * b.coefficient
    return Term(coefficient, (), a.guards, a.factors + b.factors).guarded(b.guards)


def scaled(terms: Sum, factor: Coefficient) -> Sum:
    """Multiply every term by a number."""
    return tuple([t.scaled(factor) for t in terms]) if factor else ()


def guarded(terms: Sum, guards: Iterable[Guard]) -> Sum:
    """Return terms with additional guards; a term is 0 where one of its guards does not hold."""
    guards = tuple(guards)
    return tuple(t.guarded(guards) for t in terms) if guards else terms


def tidy(terms: Sum, limit: int = 64) -> Sum:
    """Combine the plain numbers of a sum into one term, or raise an error for too many terms.

    Loads are not combined, since ∞ − ∞ is not 0.
    """
    plain = [t for t in terms if not (t.sums or t.guards or t.factors)]
    kept = tuple(t for t in terms if t.sums or t.guards or t.factors)
    kept += constant_term(sum(t.coefficient for t in plain))
    if len(kept) > limit:
        raise Stuck(f"a sum of more than {limit} terms")
    return kept
