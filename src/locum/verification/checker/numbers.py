"""The checker's numbers: quotients of polynomials in entries, exponentials and other unknown values.

A quotient (``quotients.py``) is a polynomial over an integer and a product of *factors*. A factor is
cancelled where an exact division shows that it can be. Two quotients are equal if their difference has
the numerator 0.

:class:`Numbers` gives variables to what is not a rational function of the entries:

- exp(p), unless it is a product of integer powers of exponentials met before: exp(a − m) *is*
  exp(a)/exp(m), so that a softmax does not depend on what was subtracted from its row;
- other functions (|p|, √p, log, tanh, erf) of an argument: equal arguments, equal values;
- *choices*: numbers that depend on an open comparison, such as the maximum of a row. Whatever such a
  number is, it is real; what holds of the variable holds of it.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from locum.verification.checker import enclosures
from locum.verification.checker.polynomials import (
    MAX_DEGREE,
    MAX_TERMS,
    WIDTH,
    Polynomial,
    TooLargeError,
    exponents,
    power_in,
)
from locum.verification.checker.quotients import Powers, Quotient, Rational, Variable
from locum.verification.checker.work import ENCLOSURE, MAX_BYTES, OPERATION, STEPS, Work

#: Variables of one check, at most.
MAX_VARIABLES = 20_000
_ONE = Polynomial.constant(1)


@dataclass
class _State:
    """Everything that grows."""

    variables: list[Variable] = field(default_factory=list)
    factors: list[Polynomial] = field(default_factory=list)
    numbers: dict[Polynomial, int] = field(default_factory=dict)
    known: dict[Hashable, Quotient] = field(default_factory=dict)
    #: What is written in the same way has one number, in every case alike.
    identities: dict[Hashable, int] = field(default_factory=dict)
    #: Signs of squares and of sums of them, of polynomials without content.
    signs: dict[Polynomial, frozenset[int]] = field(default_factory=dict)
    #: Exponents met, reduced by one another: pivot, vector, and the powers of variables it stands for.
    rows: list[tuple[Hashable, dict[Hashable, Fraction], dict[int, Fraction]]] = field(
        default_factory=list
    )

    def copy(self) -> _State:
        return _State(
            list(self.variables), list(self.factors), dict(self.numbers), dict(self.known),
            dict(self.identities), dict(self.signs), list(self.rows),
        )  # fmt: skip


class Numbers:
    """The variables of one check, and arithmetic on them; work is counted and limited."""

    def __init__(self, entries: int, steps: int = STEPS) -> None:
        self.state = _State()
        self.work = Work(steps)
        self.spend = self.work.spend
        self.entries = [self._new(Variable("entry")) for _ in range(entries)]

    def snapshot(self) -> _State:
        """Remember all variables as they are now."""
        return self.state.copy()

    def restore(self, snapshot: _State) -> None:
        """Forget what was met since then."""
        self.spend(len(snapshot.variables) + len(snapshot.known) + len(snapshot.identities))
        self.state = snapshot.copy()
        self.work.forget()

    @property
    def variables(self) -> list[Variable]:
        """What the variables stand for."""
        return self.state.variables

    def _new(self, variable: Variable) -> Quotient:
        if len(self.variables) >= MAX_VARIABLES:
            raise TooLargeError(f"more than {MAX_VARIABLES:,} variables are met")
        self.variables.append(variable)
        return Quotient(Polynomial.variable(len(self.variables) - 1))

    def identity(self, key: Hashable) -> int:
        """Give what is written in the same way the same number.

        The keys of choices are made of these numbers, so they live and are forgotten with the choices:
        a number that meant something else elsewhere would give a choice the bounds of another.
        """
        return self.state.identities.setdefault(key, len(self.state.identities))

    def once(self) -> int:
        """Give a number that nothing else has."""
        return self.identity(("once", len(self.state.identities)))

    @property
    def _length(self) -> int:
        """Bytes of a term: a monomial has a field for every variable, be it used or not."""
        return 150 + len(self.variables) * WIDTH // 8

    def keep(self, values: Iterable[object]) -> None:
        """Count the memory of values that stay."""
        length = self._length
        for value in values:
            if isinstance(value, Quotient):
                self.work.keep(value, len(value.top) * (length + value.top.bits // 8))

    def product(self, a: Polynomial, b: Polynomial) -> Polynomial:
        """Multiply polynomials."""
        if a is _ONE or b is _ONE:
            return b if a is _ONE else a
        # Monomials are as long as there are variables; coefficients take the product of their bits.
        each = 2 + len(self.variables) // 256 + (a.bits * b.bits >> 17)
        self.spend(OPERATION + len(a) * len(b) * each)
        term = self._length + (a.bits + b.bits) // 8
        return a.times(b, min(MAX_TERMS, MAX_BYTES // term))

    # Arithmetic -----------------------------------------------------------------------------------

    def number(self, value: Rational) -> Quotient:
        """Make a constant."""
        value = Fraction(value)
        return Quotient(Polynomial.constant(value.numerator), value.denominator)

    def add(self, a: Quotient, b: Quotient) -> Quotient:
        """Return a + b."""
        # One of the sums is copied, which takes a fraction of the time of products.
        few, many = sorted((len(a.top), len(b.top)))
        each = 2 + len(self.variables) // 256 + (a.top.bits + b.top.bits >> 12)
        self.spend(OPERATION + few * each + many // 2)
        if a.scale == b.scale and a.factors == b.factors:
            return self._normal(a.top + b.top, a.scale, a.factors)
        self.spend(2 * (few + many))
        scale = math.lcm(a.scale, b.scale)
        mine, other = dict(a.factors), dict(b.factors)
        common = {n: max(mine.get(n, 0), other.get(n, 0)) for n in (*mine, *other)}
        tops = []
        for quotient, has in ((a, mine), (b, other)):
            missing = {n: p - has.get(n, 0) for n, p in common.items()}
            tops.append(self._times(quotient.top, missing).scaled(scale // quotient.scale))
        return self._normal(tops[0] + tops[1], scale, tuple(sorted(common.items())))

    def negate(self, a: Quotient) -> Quotient:
        """Return −a."""
        return Quotient(-a.top, a.scale, a.factors)

    def subtract(self, a: Quotient, b: Quotient) -> Quotient:
        """Return a − b."""
        return self.add(a, self.negate(b))

    def multiply(self, a: Quotient, b: Quotient) -> Quotient:
        """Return a · b."""
        powers = dict(a.factors)
        for number, power in b.factors:
            powers[number] = powers.get(number, 0) + power
        top = self.product(a.top, b.top)
        return self._normal(top, a.scale * b.scale, tuple(sorted(powers.items())))

    def divide(self, a: Quotient, b: Quotient) -> Quotient:
        """Return a / b; the caller has made sure that b is not 0."""
        self.spend(OPERATION + self.reading(b.top))
        content = b.top.content
        powers = b.top.least_powers()
        rest = b.top.over_monomial(powers).without(content)
        below = dict(a.factors)
        for variable, power in powers.items():
            self._count(below, Polynomial.variable(variable), power)
        if not rest.is_constant:
            self._count(below, rest, 1)
        for number, power in b.factors:
            below[number] = below.get(number, 0) - power
        top = self._times(a.top, {n: -p for n, p in below.items() if p < 0})
        top = top.scaled(b.scale if content > 0 else -b.scale)
        factors = tuple(sorted((n, p) for n, p in below.items() if p > 0))
        return self.cancelled(self._normal(top, a.scale * abs(content), factors))

    def reading(self, polynomial: Polynomial) -> int:
        """Say how many steps it takes to go through all powers of a polynomial once."""
        return len(polynomial) * (2 + min(polynomial.degree, len(self.variables)))

    def _count(self, below: dict[int, int], factor: Polynomial, power: int) -> None:
        number = self.state.numbers.setdefault(factor, len(self.state.factors))
        if number == len(self.state.factors):
            self.state.factors.append(factor)
        below[number] = below.get(number, 0) + power

    def _times(self, top: Polynomial, powers: Mapping[int, int]) -> Polynomial:
        for number, power in powers.items():
            for _ in range(power):
                top = self.product(top, self.state.factors[number])
        return top

    def power(self, a: Quotient, exponent: int) -> Quotient:
        """Return a to the power of a non-negative integer."""
        if exponent > MAX_DEGREE:
            raise TooLargeError(f"the power {exponent} is beyond {MAX_DEGREE}")
        result = self.number(1)
        while exponent:
            if exponent % 2:
                result = self.multiply(result, a)
            exponent //= 2
            if exponent:
                a = self.multiply(a, a)
        return result

    def factor(self, number: int) -> Polynomial:
        """Return a polynomial that was divided by."""
        return self.state.factors[number]

    def _normal(self, top: Polynomial, scale: int, factors: Powers) -> Quotient:
        """Cancel variables that every term has, and a common divisor of the coefficients."""
        if not top:
            return Quotient(top)
        self.spend(len(factors) * (1 + len(top) // 2) + (3 * len(top) if scale != 1 else 0))
        kept = []
        for number, power in factors:
            factor = self.state.factors[number]
            if len(factor) == 1 and power:
                ((variable, _),) = exponents(next(iter(factor.terms)))
                common = min(power, top.least_power(variable))
                top = top.over_monomial({variable: common} if common else {})
                power -= common
            if power:
                kept.append((number, power))
        if scale != 1:
            divisor = math.gcd(scale, *top.terms.values())
            top, scale = top.without(divisor), scale // divisor
        return Quotient(top, scale, tuple(kept))

    def cancelled(self, a: Quotient) -> Quotient:
        """Cancel every factor that divides the numerator."""
        top, kept = a.top, []
        for number, power in a.factors:
            factor = self.state.factors[number]
            while power:
                self.spend(OPERATION + 2 * (len(top) + len(factor)))
                quotient = top.divided_by(factor, self.spend)
                if quotient is None:
                    break
                top, power = quotient, power - 1
            if power:
                kept.append((number, power))
        return a if top is a.top else self._normal(top, a.scale, tuple(kept))

    # Functions ------------------------------------------------------------------------------------

    def exp(self, argument: Quotient, base: Fraction | None = None) -> Quotient:
        """Return e, or a positive base, to a power."""
        argument = self.cancelled(argument)
        key = ("exp", base, argument.key)
        if key not in self.state.known:
            self.state.known[key] = self._exponential(argument, base)
        return self.state.known[key]

    def _exponential(self, argument: Quotient, base: Fraction | None) -> Quotient:
        self.spend(OPERATION * len(argument.top) * (1 + len(argument.factors)))
        self.spend(len(self.state.rows) * (4 + len(self.variables) // 64))
        whole: dict[Hashable, Fraction] = {
            (base, *self._in_lowest_terms(monomial, argument.factors)): Fraction(
                coefficient, argument.scale
            )
            for monomial, coefficient in argument.top.terms.items()
        }
        vector = dict(whole)
        combination: dict[int, Fraction] = {}
        for pivot, row, made_of in self.state.rows:
            times = vector.get(pivot)
            if times:
                self.spend(OPERATION * (len(row) + len(made_of)))
                for place, value in row.items():
                    left = vector.get(place, Fraction(0)) - times * value
                    if left:
                        vector[place] = left
                    else:
                        del vector[place]
                for variable, power in made_of.items():
                    combination[variable] = combination.get(variable, Fraction(0)) + times * power
        if any(power.denominator != 1 for power in combination.values()):
            # A root of an exponential met before: a variable of its own, of which less is known.
            low, high = self._bounds_of_exponential(whole, 1, base)
            return self._new(Variable("exp", argument, low, high))
        powers = {variable: int(power) for variable, power in combination.items()}
        if vector:
            # The part that is new is an integer multiple of what the new variable stands for.
            divisor = math.gcd(*(value.numerator for value in vector.values()))
            low, high = self._bounds_of_exponential(vector, divisor, base)
            self._new(Variable("exp", None, low, high))
            variable = len(self.variables) - 1
            pivot = next(iter(vector))
            unit = vector[pivot]
            row = {place: value / unit for place, value in vector.items()}
            self.state.rows.append((pivot, row, {variable: divisor / unit}))
            powers[variable] = divisor
        result = self.number(1)
        for variable, exponent in powers.items():
            part = self.power(Quotient(Polynomial.variable(variable)), abs(exponent))
            result = self.multiply(result, part) if exponent > 0 else self.divide(result, part)
        return result

    def _in_lowest_terms(self, monomial: int, factors: Powers) -> tuple[Powers, int]:
        """Return a term of a quotient, with the variables cancelled that stand above and below."""
        kept = []
        for number, power in factors:
            factor = self.state.factors[number]
            if len(factor) == 1:
                ((variable, _),) = exponents(next(iter(factor.terms)))
                common = min(power, power_in(monomial, variable))
                monomial -= common << (WIDTH * variable)
                power -= common
            if power:
                kept.append((number, power))
        return tuple(kept), monomial

    def _bounds_of_exponential(
        self, vector: Mapping[Hashable, Fraction], times: int, base: Fraction | None
    ) -> tuple[Rational | None, Rational | None]:
        """Enclose an exponential of a rational number."""
        constant = vector.get((base, (), 0))
        if constant is None or len(vector) > 1:
            return None, None
        exponent = constant / times
        self._enclosing(exponent)
        return (
            enclosures.enclosure("exp", exponent) if base is None else enclosures.power(base, exponent)
        )

    def _enclosing(self, argument: Fraction) -> None:
        """Count an enclosure at a number; it takes longer for large and for long ones."""
        long = argument.numerator.bit_length() + argument.denominator.bit_length()
        self.spend(ENCLOSURE * (1 + long // 256 + min(math.floor(abs(argument)), 10_000) // 500))

    def function(self, name: str, argument: Quotient) -> Quotient:
        """Return a function known by its argument only: equal arguments, equal values."""
        argument = self.cancelled(argument)
        key = (name, argument.key)
        if key not in self.state.known:
            low: Rational | None = None
            high: Rational | None = None
            if argument.rational is not None and name in ("log", "sqrt", "tanh", "erf"):
                self._enclosing(Fraction(argument.rational))
                low, high = enclosures.enclosure(name, Fraction(argument.rational))
            self.state.known[key] = self._new(Variable(name, argument, low, high))
        return self.state.known[key]

    def choice(
        self,
        key: Hashable,
        low: Rational | None = None,
        high: Rational | None = None,
        integer: bool = False,
    ) -> Quotient:
        """Return a number that depends on what is open; one variable for each key."""
        if ("choice", key) not in self.state.known:
            self.state.known["choice", key] = self._new(Variable("choice", None, low, high, integer))
        return self.state.known["choice", key]

    def behind(self, value: Quotient) -> Variable | None:
        """Return the variable that a quotient is, if it is nothing else."""
        if value.scale != 1 or value.factors or len(value.top) != 1:
            return None
        ((monomial, coefficient),) = value.top.terms.items()
        powers = list(exponents(monomial))
        if coefficient != 1 or len(powers) != 1 or powers[0][1] != 1:
            return None
        return self.variables[powers[0][0]]
