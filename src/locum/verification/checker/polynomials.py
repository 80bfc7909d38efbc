"""Polynomials with integer coefficients in a growing number of variables: the checker's arithmetic.

A monomial is one integer: the exponent of variable v stands in the v-th field of :data:`WIDTH` bits.
Multiplying monomials is adding integers, and comparing them is a monomial order. A :class:`Polynomial`
maps monomials to coefficients that are not 0. Nothing here uses any other arithmetic library.

>>> x, y = Polynomial.variable(0), Polynomial.variable(1)
>>> product = (x + y) * (x - y)
>>> product == x * x - y * y
True
>>> product.divided_by(x - y) == x + y, product.divided_by(x + Polynomial.constant(1)) is None
(True, True)
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from locum.errors import InputError

#: Bits of one exponent; the highest of them stays 0, which makes divisibility one subtraction.
WIDTH = 12
#: The greatest total degree, the most terms of a polynomial, the most bits of a coefficient.
MAX_DEGREE: int = 2 ** (WIDTH - 1) - 1
MAX_TERMS = 300_000
MAX_BITS = 20_000


class TooLargeError(InputError):
    """Something grew beyond what the checker goes through."""


#: Told of work about to be done, in products of terms; raises where it is too much.
Spend: TypeAlias = Callable[[int], None]


def free(_: int) -> None:
    """Let all work be done."""


def limited_bits(number: int) -> None:
    """Refuse an integer of too many bits."""
    if number.bit_length() > MAX_BITS:
        raise TooLargeError(f"a number has more than {MAX_BITS:,} bits")


class Polynomial:
    """A sum of terms; never changed once made."""

    __slots__ = ("_hash", "bits", "degree", "terms")

    def __init__(self, terms: Mapping[int, int], degree: int, bits: int) -> None:
        self.terms = terms
        #: Bounds on the total degree, and on the bits of a coefficient: work is counted by them.
        self.degree = degree
        self.bits = bits
        self._hash: int | None = None

    @staticmethod
    def constant(value: int) -> Polynomial:
        """Make a constant."""
        return Polynomial({0: value} if value else {}, 0, value.bit_length())

    @staticmethod
    def variable(number: int) -> Polynomial:
        """Make the variable of that number."""
        return Polynomial({1 << (WIDTH * number): 1}, 1, 1)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Polynomial) and self.terms == other.terms

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(frozenset(self.terms.items()))
        return self._hash

    def __bool__(self) -> bool:
        return bool(self.terms)

    def __len__(self) -> int:
        return len(self.terms)

    @property
    def is_constant(self) -> bool:
        """Whether no variable occurs."""
        return not self.terms or (len(self.terms) == 1 and 0 in self.terms)

    def __neg__(self) -> Polynomial:
        return Polynomial({m: -c for m, c in self.terms.items()}, self.degree, self.bits)

    def __add__(self, other: Polynomial) -> Polynomial:
        return self._sum(other, 1)

    def __sub__(self, other: Polynomial) -> Polynomial:
        return self._sum(other, -1)

    def _sum(self, other: Polynomial, sign: int) -> Polynomial:
        total = dict(self.terms)
        for monomial, coefficient in other.terms.items():
            value = total.get(monomial, 0) + sign * coefficient
            if value:
                total[monomial] = value
            else:
                del total[monomial]
        degree, bits = max(self.degree, other.degree), max(self.bits, other.bits) + 1
        return Polynomial(_limited(total), degree, bits)

    def __mul__(self, other: Polynomial) -> Polynomial:
        return self.times(other, MAX_TERMS)

    def times(self, other: Polynomial, most: int) -> Polynomial:
        """Multiply; refuse a product of more terms than ``most``."""
        small, large = sorted((self, other), key=len)
        degree = self.degree + other.degree
        if degree > MAX_DEGREE and small:
            raise TooLargeError(f"a polynomial of degree {degree} is beyond {MAX_DEGREE}")
        total: dict[int, int] = {}
        get = total.get
        for shift, factor in small.terms.items():
            for monomial, coefficient in large.terms.items():
                key = monomial + shift
                total[key] = get(key, 0) + coefficient * factor
            _limited(total, most)
        bits = _bits(total)
        return Polynomial({m: c for m, c in total.items() if c}, degree, bits)

    def scaled(self, factor: int) -> Polynomial:
        """Multiply by an integer."""
        if factor == 1:
            return self
        limited_bits(factor)
        terms = {m: c * factor for m, c in self.terms.items()} if factor else {}
        return Polynomial(terms, self.degree, _bits(terms))

    # Content --------------------------------------------------------------------------------------

    @property
    def content(self) -> int:
        """The greatest common divisor of the coefficients, with the sign of the leading one."""
        if not self.terms:
            return 1
        divisor = math.gcd(*self.terms.values())
        return divisor if self.terms[max(self.terms)] > 0 else -divisor

    def without(self, divisor: int) -> Polynomial:
        """Divide all coefficients by an integer that divides them."""
        if divisor == 1:
            return self
        return Polynomial({m: c // divisor for m, c in self.terms.items()}, self.degree, self.bits)

    def least_powers(self) -> dict[int, int]:
        """Return the greatest monomial that divides every term, as exponents by variable."""
        common: dict[int, int] | None = None
        for monomial in self.terms:
            here = dict(exponents(monomial))
            if common is None:
                common = here
            else:
                common = {v: min(p, here[v]) for v, p in common.items() if v in here}
            if not common:
                return {}
        return common or {}

    def least_power(self, variable: int) -> int:
        """Return the power of a variable that divides every term."""
        least = MAX_DEGREE
        for monomial in self.terms:
            least = min(least, power_in(monomial, variable))
            if not least:
                break
        return least

    def over_monomial(self, powers: Mapping[int, int]) -> Polynomial:
        """Divide by a monomial that divides every term."""
        if not powers:
            return self
        shift = sum(power << (WIDTH * variable) for variable, power in powers.items())
        return Polynomial({m - shift: c for m, c in self.terms.items()}, self.degree, self.bits)

    @property
    def variables(self) -> set[int]:
        """The variables that occur."""
        union = 0
        for monomial in self.terms:
            union |= monomial
        return {variable for variable, _ in exponents(union)}

    # Division -------------------------------------------------------------------------------------

    def divided_by(self, divisor: Polynomial, spend: Spend = free) -> Polynomial | None:
        """Divide exactly; None where the quotient is not a polynomial with integer coefficients."""
        if not self.terms:
            return self
        if not _may_divide(self, divisor):
            return None
        quotient, rest = self._division(divisor, spend, exact=True)
        return None if rest else Polynomial(quotient, self.degree, _bits(quotient))

    def remainder(self, divisor: Polynomial, spend: Spend = free) -> Polynomial:
        """Subtract a multiple of the divisor from a positive multiple of this, as far as it goes."""
        _, rest = self._division(divisor, spend, exact=False) if self.terms else ({}, {})
        degree = max((sum(power for _, power in exponents(m)) for m in rest), default=0)
        return Polynomial(rest, degree, _bits(rest))

    def _division(
        self, divisor: Polynomial, spend: Spend, exact: bool
    ) -> tuple[dict[int, int], dict[int, int]]:
        """Divide term by term, the greatest first; ``exact`` stops at the first term that is left."""
        lead = max(divisor.terms)
        leading = divisor.terms[lead]
        guard = _guard(max(max(self.terms), lead))
        others = [(m, c) for m, c in divisor.terms.items() if m != lead]
        # Coefficients are multiplied, and may be long.
        each = 1 + (self.bits + divisor.bits >> 11) + (self.bits * divisor.bits >> 17)
        left = dict(self.terms)
        heap = [-monomial for monomial in left]
        heapq.heapify(heap)
        quotient: dict[int, int] = {}
        rest: dict[int, int] = {}
        while heap:
            monomial = -heapq.heappop(heap)
            coefficient = left.pop(monomial, 0)
            if not coefficient:
                continue
            divides = ((monomial | guard) - lead) & guard == guard
            if divides and coefficient % leading and not exact:
                factor = abs(leading) // math.gcd(leading, coefficient)
                coefficient *= factor
                limited_bits(coefficient)
                spend((len(left) + len(rest)) * each)
                left = {m: c * factor for m, c in left.items()}
                rest = {m: c * factor for m, c in rest.items()}
            if not divides or coefficient % leading:
                rest[monomial] = coefficient
                if exact:
                    return quotient, rest
                continue
            spend(2 + len(divisor) * each)
            shift, ratio = monomial - lead, coefficient // leading
            quotient[shift] = ratio
            for m, c in others:
                key = m + shift
                if key & guard:
                    raise TooLargeError(f"a power in a division is beyond {MAX_DEGREE}")
                before = left.get(key)
                if before is None:
                    heapq.heappush(heap, -key)
                    left[key] = -c * ratio
                else:
                    left[key] = before - c * ratio
            _limited(left)
        return quotient, rest


def exponents(monomial: int) -> Iterator[tuple[int, int]]:
    """List the (variable, exponent) of a monomial."""
    mask = (1 << WIDTH) - 1
    variable = 0
    while monomial:
        skip = ((monomial & -monomial).bit_length() - 1) // WIDTH
        variable += skip
        monomial >>= skip * WIDTH
        yield variable, monomial & mask
        monomial >>= WIDTH
        variable += 1


def power_in(monomial: int, variable: int) -> int:
    """Return the exponent of a variable in a monomial."""
    mask = (1 << WIDTH) - 1
    return (monomial >> (WIDTH * variable)) & mask


def _guard(largest: int) -> int:
    """Return the highest bit of every field that occurs."""
    fields = largest.bit_length() // WIDTH + 1
    return int(("1" + "0" * (WIDTH - 1)) * fields, 2)


def _may_divide(top: Polynomial, bottom: Polynomial) -> bool:
    """Return whether the leading and the trailing terms allow an exact division."""
    for end in (max, min):
        a, b = end(top.terms), end(bottom.terms)
        guard = _guard(max(a, b))
        if ((a | guard) - b) & guard != guard or top.terms[a] % bottom.terms[b]:
            return False
    return True


def _limited(terms: dict[int, int], most: int = MAX_TERMS) -> dict[int, int]:
    if len(terms) > most:
        raise TooLargeError(f"a polynomial has more than {most:,} terms")
    return terms


def _bits(terms: Mapping[int, int]) -> int:
    """Return the bits of the longest coefficient, which must not be too many."""
    values = terms.values()
    longest = max(max(values, default=0), -min(values, default=0))
    limited_bits(longest)
    return longest.bit_length()
