"""The checker's numbers: quotients of polynomials, not reduced, and what a case says of their signs.

This is the checker's own arithmetic, smaller than the prover's and independent of it: nothing is
cancelled or factored. Two quotients are equal if the crosswise products are. A sign is known if the
polynomial is a product of polynomials whose signs the case states, of exponentials, and of something
plainly positive.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from flint import Ordering, fmpq, fmpq_mpoly, fmpq_mpoly_ctx

from locum.errors import InputError

ANY = frozenset((-1, 0, 1))


class RejectedError(InputError):
    """A certificate that does not prove what it says."""


@dataclass(frozen=True)
class Open:
    """A value that the case does not tell; a number of keys may at least lie between bounds."""

    low: int | None = None
    high: int | None = None


@dataclass(frozen=True)
class Missing:
    """A value that there is none of: a division by zero, say."""

    reason: str


@dataclass(frozen=True)
class Function:
    """A variable that stands for a function of others."""

    name: str
    base: fmpq | None
    top: fmpq_mpoly
    bottom: fmpq_mpoly
    variable: fmpq_mpoly


class Quotient:
    """top / bottom."""

    __slots__ = ("bottom", "top")

    def __init__(self, top: fmpq_mpoly, bottom: fmpq_mpoly) -> None:
        self.top = top
        self.bottom = bottom

    def plus(self, other: Quotient) -> Quotient:
        """The sum."""
        if self.bottom == other.bottom:
            return Quotient(self.top + other.top, self.bottom)
        top = self.top * other.bottom + other.top * self.bottom
        return Quotient(top, self.bottom * other.bottom)

    def minus(self, other: Quotient) -> Quotient:
        """The difference."""
        return self.plus(Quotient(-other.top, other.bottom))

    def times(self, other: Quotient) -> Quotient:
        """The product."""
        return Quotient(self.top * other.top, self.bottom * other.bottom)

    def over(self, other: Quotient) -> Quotient:
        """The quotient; the caller has made sure that it exists."""
        return Quotient(self.top * other.bottom, self.bottom * other.top)

    def equals(self, other: Quotient) -> bool:
        """Whether they are the same function."""
        return bool(self.top * other.bottom == other.top * self.bottom)


class Variables:
    """The indeterminates of a certificate: entries, then functions."""

    def __init__(self, entries: int, functions: Sequence[Any]) -> None:
        names = [f"u{number}" for number in range(entries + len(functions))]
        self.context = fmpq_mpoly_ctx.get(names or ["u"], Ordering.degrevlex)
        self.entries = entries
        self.point = [fmpq(7 * number**2 + 3, 11 + number) for number in range(len(names) or 1)]
        self.one: fmpq_mpoly = self.context.constant(1)
        generators = self.context.gens()
        self.symbols = [Quotient(generators[n], self.one) for n in range(entries)]
        self.functions: list[Function] = []
        for number, row in enumerate(functions):
            top, bottom = self.polynomial(row["top"]), self.polynomial(row["bottom"])
            base = None if row["base"] is None else fmpq(*map(int, _parts(row["base"])))
            variable = generators[entries + number]
            if bottom.is_zero() or (base is not None and base <= 0):
                raise RejectedError(f"function {number} of the certificate has no value")
            self.functions.append(Function(row["function"], base, top, bottom, variable))

    def number(self, value: Any) -> Quotient:
        """A constant."""
        return Quotient(self.context.constant(value), self.one)

    def polynomial(self, terms: Any) -> fmpq_mpoly:
        """A polynomial as the certificate writes it; of functions, only those before it."""
        known = self.entries + len(self.functions) if hasattr(self, "functions") else self.entries
        table: dict[tuple[int, ...], fmpq] = {}
        for coefficient, factors in terms:
            powers = [0] * self.context.nvars()
            for variable, power in factors:
                if not 0 <= variable < known or power < 1:
                    raise RejectedError("a polynomial of the certificate has an unknown variable")
                powers[variable] = power
            table[tuple(powers)] = fmpq(*map(int, _parts(coefficient)))
        return self.context.from_dict(table)

    def exponential(self, argument: Quotient, base: fmpq | None) -> Quotient:
        """e (or a base) to a power: 1, a listed one, its inverse, or the quotient of two listed."""
        if argument.top.is_zero():
            return self.number(1)
        nothing = (self.number(0), self.one)
        listed = [nothing] + [
            (Quotient(one.top, one.bottom), one.variable)
            for one in self.functions
            if one.name == "exp" and one.base == base
        ]
        # Values at one point tell which pairs can be meant; then the pair is verified as polynomials.
        value, values = self._at_point(argument), [self._at_point(power) for power, _ in listed]
        for (plus, above), first in zip(listed, values, strict=True):
            for (minus, below), second in zip(listed, values, strict=True):
                if value is not None and first is not None and second is not None:
                    fits = value == first - second
                else:
                    fits = True
                if fits and argument.plus(minus).equals(plus):
                    return Quotient(above, below)
        raise RejectedError("the program meets an exponential that the certificate does not list")

    def _at_point(self, value: Quotient) -> fmpq | None:
        """The value at an arbitrary point; None if it has none there."""
        below = value.bottom(*self.point)
        return value.top(*self.point) / below if below != 0 else None

    def opaque(self, name: str, argument: Quotient) -> Quotient:
        """A listed function of this very argument."""
        for one in self.functions:
            if one.name == name and argument.equals(Quotient(one.top, one.bottom)):
                return Quotient(one.variable, self.one)
        raise RejectedError(f"the program meets a function ({name}) that the certificate does not list")


@dataclass
class Known:
    """What a case states: signs of polynomials, remainders of entries."""

    variables: Variables
    signs: list[tuple[fmpq_mpoly, frozenset[int]]] = field(default_factory=list)
    remainders: dict[tuple[int, int], int] = field(default_factory=dict)

    def with_sign(self, polynomial: fmpq_mpoly, allowed: frozenset[int]) -> Known:
        """This, and a further statement; statements about one polynomial are drawn together."""
        found, signs = allowed, []
        for other, before in self.signs:
            if other == polynomial:
                found = found & before
            else:
                signs.append((other, before))
        return Known(self.variables, [*signs, (polynomial, found)], dict(self.remainders))

    def with_remainder(self, entry: int, modulus: int, rest: int) -> Known:
        """This, and the remainder of an entry."""
        remainders = {**self.remainders, (entry, modulus): rest}
        return Known(self.variables, list(self.signs), remainders)

    def possible(self, polynomial: fmpq_mpoly) -> frozenset[int]:
        """The signs that a polynomial can have in this case."""
        found = {1}
        stated = [(p, s) for p, s in self.signs if not p.is_constant()]
        for one in self.variables.functions:
            if one.name == "exp":
                stated.append((one.variable, frozenset((1,))))
        for factor, signs in stated:
            power = 0
            while not polynomial.is_constant():
                quotient, rest = divmod(polynomial, factor)
                if not rest.is_zero():
                    break
                polynomial, power = quotient, power + 1
            if power:
                found = {a * b**power for a in found for b in signs}
        for one in self.variables.functions:
            if one.name == "absolute" and not polynomial.is_constant():
                quotient, rest = divmod(polynomial, one.variable)
                if rest.is_zero():  # |p| has the sign of p²
                    inner = self.possible(one.top) if not one.top.is_zero() else frozenset((0,))
                    squares = {s * s for s in inner}
                    others = self.possible(quotient)
                    return frozenset(a * b * c for a in found for b in squares for c in others)
        return frozenset(a * b for a in found for b in self.plain(polynomial))

    def plain(self, polynomial: fmpq_mpoly) -> frozenset[int]:
        """What its terms alone tell of the sign: even powers and exponentials are not negative."""
        positive = [
            any(f.variable == generator and f.name == "exp" for f in self.variables.functions)
            for generator in self.variables.context.gens()
        ]
        sides, strict = set(), False
        for powers, coefficient in polynomial.to_dict().items():
            free = [p for p, sure in zip(powers, positive, strict=True) if p and not sure]
            if any(p % 2 for p in free):
                return ANY
            sides.add(1 if coefficient > 0 else -1)
            strict = strict or not free
        if len(sides) > 1:
            return ANY
        return frozenset(sides if strict else {*sides, 0})

    def vanishes(self, polynomial: fmpq_mpoly) -> bool:
        """Whether a polynomial is 0 here: multiples of what is 0 may be taken off."""
        zeros = [p for p, signs in self.signs if signs == {0}]
        for _ in range(len(zeros) + 1):
            for zero in zeros:
                polynomial = divmod(polynomial, zero)[1]
        if polynomial.is_zero():
            return True
        reduced: list[fmpq_mpoly] = []
        for zero in zeros:  # the zeros by one another, then again
            for other in reduced:
                zero = divmod(zero, other)[1]
            if not zero.is_zero():
                reduced = [divmod(one, zero)[1] for one in reduced]
                reduced = [one for one in reduced if not one.is_zero()] + [zero]
        for _ in range(len(reduced) + 1):
            for zero in reduced:
                polynomial = divmod(polynomial, zero)[1]
        return bool(polynomial.is_zero())

    def refuted_by(self, bounds: Sequence[tuple[fmpq_mpoly, int]]) -> bool:
        """Whether ±p ≥ 0, all stated here, add up to something that cannot be."""
        total, strict = self.variables.context.constant(0), False
        for polynomial, side in bounds:
            signs = self.stated(polynomial)
            if not signs:
                return True
            if side not in (1, -1) or -side in signs:
                return False
            total = total + side * polynomial
            strict = strict or 0 not in signs
        if not bounds or not total.is_constant():
            return False
        value = total.leading_coefficient() if len(total) else 0
        return bool(value < 0 or (value == 0 and strict))

    def stated(self, polynomial: fmpq_mpoly) -> frozenset[int]:
        """What is stated of one polynomial, together with what its terms tell."""
        for other, signs in self.signs:
            if other == polynomial:
                return signs & self.plain(polynomial)
        return self.plain(polynomial)


def _parts(text: str) -> tuple[str, str]:
    above, _, below = text.partition("/")
    return above, below or "1"
