"""Rational functions over ℚ in the entries of the input, and in exponentials of them.

A :class:`Ring` has one indeterminate for each entry, and slots for functions of entries. exp(p) is a
slot of its own, or a product of powers of slots: an argument that is a whole-number combination of
arguments met before becomes that product, so that exp(a − m) *is* exp(a)/exp(m), and softmax is
invariant under shifts by mere cancellation. bˣ is exp(x·log b), log b being one more label of the
coordinates. Other functions (absolute values, tanh, …) are slots known by their argument only.

A :class:`Ratio` is a quotient of polynomials in lowest terms with a monic denominator: equal functions
of the indeterminates are equal objects. What holds of indeterminates holds of all numbers put in their
places, exponentials included; the converse is not needed (a claim is refuted by numbers, not by this).

>>> ring = Ring(["x", "y"])
>>> x, y = ring.entries
>>> ring.exp(x - y) * ring.exp(y) == ring.exp(x)
True
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from flint import Ordering, fmpq, fmpq_mpoly, fmpq_mpoly_ctx

#: Functions of entries that one proof may meet.
SLOTS = 48


class LimitError(Exception):
    """A proof grew beyond what was allowed; the message says which limit."""


class UnsupportedError(ArithmeticError):
    """Something that these symbols have no normal form for."""


@dataclass
class Limits:
    """When to give up: polynomials of so many terms, or a moment in time."""

    terms: int = 200_000
    seconds: float = 600.0
    started: float = 0.0

    def start(self) -> None:
        """The clock runs from here."""
        self.started = time.perf_counter()

    def check(self, polynomial: fmpq_mpoly) -> None:
        """Stop if this is too much."""
        if len(polynomial) > self.terms:
            raise LimitError(f"{self.terms:,} terms in one polynomial")
        self.check_time()

    def check_time(self) -> None:
        """Stop if it took too long."""
        if self.started and time.perf_counter() - self.started > self.seconds:
            raise LimitError(f"{self.seconds:g} seconds")


@dataclass(frozen=True)
class Slot:
    """An indeterminate that stands for a function of others."""

    function: str
    argument: Ratio
    #: Of a power bˣ = exp(x·log b), the base; None for e.
    base: fmpq | None
    variable: int


class Ring:
    """The indeterminates of one proof."""

    def __init__(
        self, names: Sequence[str], *, whole: bool = False, limits: Limits | None = None
    ) -> None:
        self.names = list(names)
        #: Whether entries stand for whole numbers; else for real ones.
        self.whole = whole
        self.limits = limits or Limits()
        labels = [f"v{number}" for number in range(len(names) + SLOTS)]
        self.context = fmpq_mpoly_ctx.get(labels, Ordering.lex)
        self.one: fmpq_mpoly = self.context.constant(1)
        self.generators = self.context.gens()
        self.slots: list[Slot] = []
        self._known: dict[tuple[str, str], Ratio] = {}
        #: Of the exponents met: reduced vectors, each with its pivot and its combination of slots.
        self._rows: list[tuple[Any, dict[Any, fmpq], dict[int, fmpq]]] = []

    @property
    def entries(self) -> list[Ratio]:
        """The indeterminates for the entries of the input."""
        return [Ratio(self, self.generators[n], self.one) for n in range(len(self.names))]

    def number(self, value: Any) -> Ratio:
        """A constant."""
        return Ratio(self, self.context.constant(value), self.one)

    def reduced(self, top: fmpq_mpoly, bottom: fmpq_mpoly) -> Ratio:
        """The quotient in lowest terms."""
        self.limits.check(top)
        if not bottom.is_constant():
            common = top.gcd(bottom)
            if not common.is_constant():
                top, bottom = _quotient(top, common), _quotient(bottom, common)
        leading = bottom.leading_coefficient()
        return Ratio(self, top / leading, bottom / leading)

    # Functions ------------------------------------------------------------------------------------

    def exp(self, argument: Ratio, base: fmpq | None = None) -> Ratio:
        """e (or a positive base) to a power, as a product of slots."""
        key = (f"exp {base}", str(argument))
        if key not in self._known:
            self._known[key] = self._exponential(argument, base)
        return self._known[key]

    def _exponential(self, argument: Ratio, base: fmpq | None) -> Ratio:
        denominator = str(argument.bottom)
        vector = {
            (str(base), denominator, monomial): coefficient
            for monomial, coefficient in argument.top.to_dict().items()
        }
        rest, combination = dict(vector), dict[int, fmpq]()
        for pivot, row, made_of in self._rows:
            factor = rest.get(pivot)
            if factor:
                _subtract(rest, row, factor)
                for slot, coefficient in made_of.items():
                    combination[slot] = combination.get(slot, fmpq(0)) + factor * coefficient
        if rest:
            slot = self._slot("exp", argument, base)
            pivot = next(iter(rest))
            scale = rest[pivot]
            made_of = {k: -c / scale for k, c in combination.items()} | {slot: 1 / scale}
            row = {place: value / scale for place, value in rest.items()}
            self._rows.append((pivot, row, made_of))
            return Ratio(self, self.generators[slot], self.one)
        top = bottom = self.one
        for slot, power in combination.items():
            if power.q != 1:
                raise UnsupportedError(
                    f"exponents that are not whole multiples of one another: {argument}"
                )
            times = int(power.p)
            top = top * self.generators[slot] ** max(times, 0)
            bottom = bottom * self.generators[slot] ** max(-times, 0)
        return Ratio(self, top, bottom)

    def opaque(self, function: str, argument: Ratio) -> Ratio:
        """A function known by its argument only: equal arguments, equal values."""
        key = (function, str(argument))
        if key not in self._known:
            slot = self._slot(function, argument, None)
            self._known[key] = Ratio(self, self.generators[slot], self.one)
        return self._known[key]

    def _slot(self, function: str, argument: Ratio, base: fmpq | None) -> int:
        if len(self.slots) == SLOTS:
            raise LimitError(f"{SLOTS} different exponentials and other functions")
        variable = len(self.names) + len(self.slots)
        self.slots.append(Slot(function, argument, base, variable))
        return variable

    def slot(self, variable: int) -> Slot | None:
        """What a variable stands for, if it is not an entry."""
        return self.slots[variable - len(self.names)] if variable >= len(self.names) else None

    # Text -----------------------------------------------------------------------------------------

    def name(self, variable: int) -> str:
        """A variable for people: ``X[0,1]``, ``exp(X[0,0])``."""
        slot = self.slot(variable)
        if slot is None:
            return self.names[variable]
        if slot.base is not None:
            return f"{slot.base}^({slot.argument.show()})"
        return f"{slot.function}({slot.argument.show()})"

    def show(self, polynomial: fmpq_mpoly) -> str:
        """A polynomial for people."""
        parts = []
        for powers, coefficient in polynomial.to_dict().items():
            factors = [
                self.name(variable) + (f"^{power}" if power > 1 else "")
                for variable, power in enumerate(powers)
                if power
            ]
            if not factors or abs(coefficient) != 1:
                factors.insert(0, str(abs(coefficient)))
            parts.append(("- " if coefficient < 0 else "+ ") + "·".join(factors))
        text = " ".join(parts) or "0"
        return text.removeprefix("+ ")


class Ratio:
    """A quotient of polynomials, in lowest terms."""

    __slots__ = ("bottom", "ring", "top")

    def __init__(self, ring: Ring, top: fmpq_mpoly, bottom: fmpq_mpoly) -> None:
        self.ring = ring
        self.top = top
        self.bottom = bottom

    @property
    def constant(self) -> fmpq | None:
        """Its value, if it is a number."""
        if self.top.is_constant() and self.bottom.is_constant():
            return fmpq(self.top.leading_coefficient() if len(self.top) else 0)
        return None

    def __add__(self, other: Any) -> Ratio:
        other = self._lift(other)
        if self.bottom == other.bottom:
            return self.ring.reduced(self.top + other.top, self.bottom)
        top = self.top * other.bottom + other.top * self.bottom
        return self.ring.reduced(top, self.bottom * other.bottom)

    def __neg__(self) -> Ratio:
        return Ratio(self.ring, -self.top, self.bottom)

    def __sub__(self, other: Any) -> Ratio:
        return self + (-self._lift(other))

    def __mul__(self, other: Any) -> Ratio:
        other = self._lift(other)
        return self.ring.reduced(self.top * other.top, self.bottom * other.bottom)

    def __truediv__(self, other: Any) -> Ratio:
        other = self._lift(other)
        if other.top.is_zero():
            raise ZeroDivisionError("division by zero")
        return self.ring.reduced(self.top * other.bottom, self.bottom * other.top)

    def __pow__(self, power: int) -> Ratio:
        if power < 0:
            return self.ring.number(1) / self**-power
        return Ratio(self.ring, self.top**power, self.bottom**power)

    __radd__ = __add__
    __rmul__ = __mul__

    def __rsub__(self, other: Any) -> Ratio:
        return self._lift(other) - self

    def __rtruediv__(self, other: Any) -> Ratio:
        return self._lift(other) / self

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ratio):
            return NotImplemented
        return bool(self.top == other.top and self.bottom == other.bottom)

    def __hash__(self) -> int:
        return hash(str(self))

    def __str__(self) -> str:
        return f"({self.top})/({self.bottom})"

    __repr__ = __str__

    def show(self) -> str:
        """For people."""
        top = self.ring.show(self.top)
        return top if self.bottom.is_one() else f"({top})/({self.ring.show(self.bottom)})"

    def _lift(self, other: Any) -> Ratio:
        return other if isinstance(other, Ratio) else self.ring.number(other)


def _quotient(polynomial: fmpq_mpoly, divisor: fmpq_mpoly) -> fmpq_mpoly:
    quotient, rest = divmod(polynomial, divisor)
    assert rest.is_zero()
    return quotient


def _subtract(vector: dict[Any, fmpq], row: dict[Any, fmpq], factor: fmpq) -> None:
    for place, value in row.items():
        left = vector.get(place, fmpq(0)) - factor * value
        if left:
            vector[place] = left
        else:
            vector.pop(place, None)
