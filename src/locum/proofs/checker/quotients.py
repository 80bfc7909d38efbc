"""Compute exactly with quotients of polynomials, and represent the facts of one case.

A monomial is represented by one integer: bits ``WIDTH·v`` to ``WIDTH·v + WIDTH − 1`` contain the
exponent of variable v. The product of two monomials is the sum of their integers, and the order of the
integers is a monomial order. The highest bit of each field is always 0, because the degree of every
polynomial is limited.

>>> x, y = Polynomial.variable(0), Polynomial.variable(1)
>>> (x * x + y * y.scale(-1)).over(x + y.scale(-1)) == x + y, x.over(y)
(True, None)
"""

from __future__ import annotations

import heapq
import operator
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from itertools import repeat
from typing import Any, TypeAlias

from locum.errors import InputError

Rational: TypeAlias = "int | Fraction"
#: Number of bits of an exponent, and maximum degree of a polynomial.
WIDTH = 12
MAX_DEGREE: int = 2 ** (WIDTH - 1) - 1


def simplify(value: Rational) -> Rational:
    """Convert a fraction with denominator 1 to an integer."""
    return value.numerator if isinstance(value, Fraction) and value.denominator == 1 else value


class Polynomial:
    """An immutable polynomial: a mapping from monomials to their non-zero coefficients."""

    __slots__ = ("_hash", "degree", "terms")

    def __init__(self, terms: Mapping[int, Rational], degree: int) -> None:
        if degree > MAX_DEGREE:
            raise InputError(f"polynomial: expected a degree of at most {MAX_DEGREE}, got {degree}")
        self.terms = terms
        #: An upper bound on the total degree.
        self.degree = degree
        self._hash: int | None = None

    @staticmethod
    def constant(value: Rational) -> Polynomial:
        """Return the constant polynomial with this value."""
        return Polynomial({0: value} if value else {}, 0)

    @staticmethod
    def variable(number: int) -> Polynomial:
        """Return the polynomial xₙ, where n is the index ``number`` of a variable."""
        return Polynomial({1 << (WIDTH * number): 1}, 1)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Polynomial) and self.terms == other.terms

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(frozenset(self.terms.items()))
        return self._hash

    def __bool__(self) -> bool:
        return bool(self.terms)

    @property
    def rational(self) -> Rational | None:
        """The value of a constant polynomial, or None if the polynomial contains variables."""
        return self.terms.get(0) if len(self.terms) == 1 else None if self.terms else 0

    @property
    def leading(self) -> Rational:
        """The coefficient of the largest monomial of a non-zero polynomial."""
        return self.terms[max(self.terms)]

    def monic(self) -> Polynomial:
        """Return the polynomial divided by its leading coefficient."""
        return self.scale(Fraction(1) / self.leading)

    def scale(self, factor: Rational) -> Polynomial:
        """Return the polynomial multiplied by a rational number."""
        return Polynomial(_collect((m, c * factor) for m, c in self.terms.items()), self.degree)

    def __add__(self, other: Polynomial) -> Polynomial:
        total = dict(self.terms)
        for monomial, coefficient in other.terms.items():
            total[monomial] = total.get(monomial, 0) + coefficient
        return Polynomial(_collect(total.items()), max(self.degree, other.degree))

    def __mul__(self, other: Polynomial) -> Polynomial:
        total: dict[int, Rational] = {}
        get = total.get
        for shift, factor in self.terms.items():
            for monomial, coefficient in other.terms.items():
                key = monomial + shift
                total[key] = get(key, 0) + coefficient * factor
        terms = _collect(total.items())
        return Polynomial(terms, self.degree + other.degree if terms else 0)

    def __pow__(self, exponent: int) -> Polynomial:
        return reduce(operator.mul, repeat(self, exponent), Polynomial.constant(1))

    def split(self) -> tuple[dict[int, int], Polynomial]:
        """Divide by the greatest common monomial of all terms.

        Return the exponents of this monomial by variable, and the quotient.
        """
        monomials = iter(self.terms)
        common = dict(exponents(next(monomials, 0)))
        for monomial in monomials:
            here = dict(exponents(monomial)) if common else {}
            common = {v: min(p, here[v]) for v, p in common.items() if v in here}
        shift = sum(power << (WIDTH * variable) for variable, power in common.items())
        return common, Polynomial({m - shift: c for m, c in self.terms.items()}, self.degree)

    def over(self, divisor: Polynomial) -> Polynomial | None:
        """Return the quotient by ``divisor``, or None if the division leaves a remainder."""
        lowest, other = min(self.terms, default=0), min(divisor.terms)
        if self.terms and not _divides(other, lowest, _guard(max(lowest, other))):
            return None
        quotient, rest = self.divide(divisor, exact=True)
        return None if rest else quotient

    def divide(self, divisor: Polynomial, exact: bool = False) -> tuple[Polynomial, Polynomial]:
        """Return q and r with self = q·divisor + r.

        With ``exact``, stop as soon as r is not 0; then q and r may be incomplete.
        """
        lead = max(divisor.terms)
        guard = _guard(max(lead, max(self.terms, default=0)))
        left = dict(self.terms)
        heap = [-monomial for monomial in left]
        heapq.heapify(heap)
        quotient: dict[int, Rational] = {}
        rest: dict[int, Rational] = {}
        while heap and not (exact and rest):
            monomial = -heapq.heappop(heap)
            if left.get(monomial) and not _divides(lead, monomial, guard):
                rest[monomial] = left.pop(monomial)
            elif left.get(monomial):
                shift = monomial - lead
                quotient[shift] = simplify(Fraction(left[monomial]) / divisor.terms[lead])
                for m, c in divisor.terms.items():
                    if (m + shift) & guard:
                        raise InputError(f"division: expected powers of at most {MAX_DEGREE}")
                    if m + shift not in left:
                        heapq.heappush(heap, -(m + shift))
                    left[m + shift] = left.get(m + shift, 0) - c * quotient[shift]
        return Polynomial(quotient, _degree(quotient)), Polynomial(rest, _degree(rest))


def exponents(monomial: int) -> Iterator[tuple[int, int]]:
    """Yield a pair of variable and exponent for each variable that occurs in a monomial."""
    variable = 0
    while monomial:
        skip = ((monomial & -monomial).bit_length() - 1) // WIDTH
        monomial >>= skip * WIDTH
        variable += skip
        yield variable, monomial & (1 << WIDTH) - 1
        monomial >>= WIDTH
        variable += 1


def _collect(terms: Iterable[tuple[int, Rational]]) -> dict[int, Rational]:
    return {m: c if type(c) is int else simplify(c) for m, c in terms if c}


def _degree(terms: Iterable[int]) -> int:
    return max((sum(power for _, power in exponents(m)) for m in terms), default=0)


def _guard(largest: int) -> int:
    # Return a mask of the highest bit of each field, up to the last field of a monomial.
    return int(("1" + "0" * (WIDTH - 1)) * (largest.bit_length() // WIDTH + 1), 2)


def _divides(divisor: int, monomial: int, guard: int) -> bool:
    """Return whether no exponent of ``divisor`` exceeds the exponent of the same variable in
    ``monomial``.

    Then no field of the difference borrows the highest bit that ``guard`` sets.
    """
    return ((monomial | guard) - divisor) & guard == guard


class Quotient:
    """A polynomial divided by powers of *factors*, which are non-zero monic polynomials.

    A factor that divides the numerator is cancelled. ``signs`` contains the signs that the quotient can
    have.
    """

    __slots__ = ("factors", "signs", "top")

    def __init__(self, top: Polynomial, factors: Mapping[Polynomial, int] | None = None) -> None:
        self.factors: dict[Polynomial, int] = {}
        for factor, power in (factors or {}).items():
            while power and (quotient := top.over(factor)) is not None:
                top, power = quotient, power - 1
            if power:
                self.factors[factor] = power
        self.top = top
        self.signs = frozenset((-1, 0, 1))

    @staticmethod
    def of(value: Rational | Quotient) -> Quotient:
        """Convert a rational number to a quotient, and return a quotient unchanged."""
        return value if isinstance(value, Quotient) else Quotient(Polynomial.constant(value))

    @property
    def key(self) -> Hashable:
        """A hashable key of the quotient: its numerator, and the powers of its factors."""
        return self.top, frozenset(self.factors.items())

    @property
    def rational(self) -> Rational | None:
        """The value of a quotient without variables, or None if it contains variables."""
        return None if self.factors else self.top.rational

    def __add__(self, other: Quotient) -> Quotient:
        common = dict(self.factors)
        for factor, power in other.factors.items():
            common[factor] = max(power, common.get(factor, 0))
        tops = [self.top, other.top]
        for factor, power in common.items():
            tops[0] = tops[0] * factor ** (power - self.factors.get(factor, 0))
            tops[1] = tops[1] * factor ** (power - other.factors.get(factor, 0))
        return Quotient(tops[0] + tops[1], common)

    def __sub__(self, other: Quotient) -> Quotient:
        return self + Quotient(other.top.scale(-1), other.factors)

    def __mul__(self, other: Quotient) -> Quotient:
        powers = dict(self.factors)
        for factor, power in other.factors.items():
            powers[factor] = powers.get(factor, 0) + power
        return Quotient(self.top * other.top, powers)

    def inverse(self) -> Quotient:
        """Return 1 / self; the quotient must not be 0."""
        powers, rest = self.top.split()
        below = {Polynomial.variable(variable): power for variable, power in powers.items()}
        if rest.rational is None:
            below[rest.monic()] = 1
        top = Polynomial.constant(simplify(Fraction(1) / rest.leading))
        for factor, power in self.factors.items():
            top = top * factor**power
        return Quotient(top, below)

    def __pow__(self, exponent: int) -> Quotient:
        if exponent < 0:
            return self.inverse() ** -exponent
        powers = {factor: power * exponent for factor, power in self.factors.items()}
        return Quotient(self.top**exponent, powers)


#: A set of signs that a value can have: a subset of {−1, 0, 1}.
Signs: TypeAlias = frozenset[int]
ANY: Signs = frozenset((-1, 0, 1))
Bounds: TypeAlias = "tuple[Rational, Rational] | None"


def multiply_signs(one: Signs, other: Signs, power: int = 1) -> Signs:
    """Return the signs that a · bᵖ can have for p ≥ 1, from the signs of a and b."""
    return frozenset(a * (b if power % 2 else b * b) for a in one for b in other)


def sign_of(value: Rational) -> int:
    """Return the sign of a number: −1, 0 or 1."""
    return (value > 0) - (value < 0)


@dataclass(frozen=True)
class Variable:
    """A variable of a case: its kind, the argument if it represents a function, and its bounds."""

    kind: str
    argument: Quotient | None = None
    bounds: Bounds = None


class Facts:
    """The variables of one case, and the facts known about them."""

    def __init__(self) -> None:
        self.variables: list[Variable] = []
        #: The possible signs of non-constant monic polynomials.
        self.stated: dict[Polynomial, Signs] = {}
        #: The remainders of integer entries, by (entry, modulus).
        self.remainders: dict[tuple[int, int], int] = {}
        self._signs: dict[Polynomial, Signs] = {}

    def new(self, variable: Variable) -> Quotient:
        """Add a variable to the case, and return it as a quotient."""
        self.variables.append(variable)
        return Quotient(Polynomial.variable(len(self.variables) - 1))

    def state(self, polynomial: Polynomial, signs: Signs) -> None:
        """Add the fact that the sign of a polynomial is one of ``signs``.

        A fact about a constant polynomial is ignored.
        """
        if polynomial.rational is None:
            signs = multiply_signs(signs, frozenset((sign_of(polynomial.leading),)))
            self.stated[polynomial.monic()] = self.stated.get(polynomial.monic(), ANY) & signs
            self._signs.clear()

    def sign(self, value: Quotient) -> Signs:
        """Return the signs that a quotient can have; the factors of its denominator are not 0."""
        signs = self.sign_of_polynomial(value.top)
        for factor, power in value.factors.items():
            signs = multiply_signs(signs, self.sign_of_polynomial(factor) - {0}, power)
        return signs & value.signs

    def sign_of_polynomial(self, polynomial: Polynomial) -> Signs:
        """Return the signs that a polynomial can have, from its known factors and its terms."""
        if polynomial.rational is not None:
            return frozenset((sign_of(polynomial.rational),))
        if polynomial not in self._signs:
            signs: Signs = frozenset((sign_of(polynomial.leading),))
            powers, rest = polynomial.monic().split()
            for variable, power in powers.items():
                signs = multiply_signs(signs, self._sign_of_variable(variable), power)
            for factor, stated in self.stated.items():
                while rest.rational is None and (quotient := rest.over(factor)) is not None:
                    signs = multiply_signs(signs, stated & self._sign_of_sum(factor))
                    rest = quotient
            if rest.rational is None:
                signs = multiply_signs(signs, self._sign_of_sum(rest))
            self._signs[polynomial] = signs
        return self._signs[polynomial]

    def _sign_of_variable(self, number: int) -> Signs:
        signs, variable = self.stated.get(Polynomial.variable(number), ANY), self.variables[number]
        if variable.kind == "exp":
            return signs & {1}
        if variable.kind in ("absolute", "sqrt") and variable.argument is not None:
            return signs & multiply_signs(frozenset((1,)), self.sign(variable.argument), 2)
        return signs & _signs_between(variable.bounds)

    def _sign_of_sum(self, polynomial: Polynomial) -> Signs:
        """Return the signs that a sum of terms can have.

        If positive and negative terms are both possible, return the signs between the bounds of the
        sum.
        """
        found: set[int] = set()
        strict = False
        for monomial, coefficient in polynomial.terms.items():
            signs: Signs = frozenset((sign_of(coefficient),))
            for variable, power in exponents(monomial):
                signs = multiply_signs(signs, self._sign_of_variable(variable), power)
            found |= signs
            strict = strict or 0 not in signs
        if {-1, 1} <= found:
            return _signs_between(self.bounds(Quotient(polynomial)))
        return frozenset(found - {0} if strict else found)

    def bounds(self, value: Quotient) -> Bounds:
        """Return rational bounds of a quotient.

        Return None if a variable has no bounds, or if the bounds of a factor of the denominator contain
        0.
        """
        total = self._bounds_of_polynomial(value.top)
        for factor, power in value.factors.items():
            below = self._bounds_of_polynomial(factor)
            if total is None or below is None or below[0] <= 0 <= below[1]:
                return None
            for _ in range(power):
                total = _multiply_bounds(total, (1 / Fraction(below[1]), 1 / Fraction(below[0])))
        return total

    def _bounds_of_polynomial(self, polynomial: Polynomial) -> Bounds:
        low: Rational = 0
        high: Rational = 0
        for monomial, coefficient in polynomial.terms.items():
            term = (coefficient, coefficient)
            for number, power in exponents(monomial):
                bounds = self.variables[number].bounds
                if bounds is None:
                    return None
                for _ in range(power):
                    term = _multiply_bounds(term, bounds)
            low, high = low + term[0], high + term[1]
        return low, high

    def is_zero(self, polynomial: Polynomial) -> bool:
        """Return whether the facts show that a polynomial is 0.

        This is the case if 0 is the only possible sign of the polynomial. It is also the case if the
        polynomial is reduced to 0 by division by polynomials that the facts state to be 0.
        """
        if self.sign_of_polynomial(polynomial) == {0}:
            return True
        zeros: list[Polynomial] = []
        for zero, signs in self.stated.items():
            if signs == {0} and (rest := _reduce(zero, zeros)):
                zeros = [one for one in (_reduce(z, [rest]) for z in zeros) if one] + [rest]
        return not _reduce(polynomial, zeros)

    def contradict(self, bounds: Sequence[tuple[Polynomial, int]]) -> bool:
        """Return whether the inequalities in ``bounds`` contradict each other.

        A pair (p, s) with s = ±1 represents s·p ≥ 0, which must follow from the facts. The sum of all
        s·p must be a negative constant, or 0 although one of the inequalities is strict. A polynomial
        without a possible sign is a contradiction by itself.
        """
        total, strict = Polynomial.constant(0), False
        for polynomial, side in bounds:
            signs = self.sign_of_polynomial(polynomial)
            if type(side) is not int or side not in (1, -1) or not signs or -side in signs:
                return not signs
            total, strict = total + polynomial.scale(side), strict or 0 not in signs
        value = total.rational
        return bool(bounds) and value is not None and (value < 0 or (value == 0 and strict))


def _reduce(polynomial: Polynomial, zeros: Sequence[Polynomial]) -> Polynomial:
    """Subtract multiples of the polynomials ``zeros`` from a polynomial, and return the remainder."""
    for zero in [*zeros] * (len(zeros) + 1):
        _, polynomial = polynomial.divide(zero)
    return polynomial


def _multiply_bounds(one: tuple[Rational, Rational], other: tuple[Rational, Rational]) -> Any:
    ends = [x * y for x in one for y in other]
    return min(ends), max(ends)


def _signs_between(bounds: Bounds) -> Signs:
    """Return the signs of the numbers between two bounds; without bounds, all signs are possible."""
    return ANY if bounds is None else frozenset(range(sign_of(bounds[0]), sign_of(bounds[1]) + 1))
