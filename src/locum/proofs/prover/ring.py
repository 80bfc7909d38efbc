"""Compute with rational functions over ℚ of input entries, values of functions, and choices.

A :class:`Ring` contains a variable for each entry of the input. Other variables represent values of
functions or choices, which are described by a :class:`Slot`. An exponential exp(p) is a product of
powers of variables if p is an integer combination of earlier exponents. For example, exp(a − m) is
exp(a)/exp(m). If p contains a multiple of an earlier exponent that is not an integer multiple, an error
is raised. Otherwise exp(p) is a new variable. Other functions have one variable for each argument. A
*choice* is a number that depends on an undecided comparison, such as the maximum of a row. Only the
bounds of a choice are known.

A :class:`Ratio` is a quotient of polynomials in lowest terms with a monic denominator.

>>> ring = Ring(["x", "y"])
>>> x, y = ring.entries
>>> ring.exp(x - y) * ring.exp(y) == ring.exp(x)
True
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from flint import Ordering, fmpq, fmpq_mpoly, fmpq_mpoly_ctx

from locum.proofs.prover.booleans import Identities, Limits

#: Initial number of slots; a proof that needs more slots starts again with twice as many.
SLOTS = 24
#: Upper limit of the number of slots of one proof.
MAX_SLOTS = 3_000


#: Maximum number of displayed terms of a polynomial, and of levels of nested functions.
_TERMS, _DEPTH = 40, 3
#: Polynomials with fewer terms than this are hashed by their text.
_SHORT = 8

Signs: TypeAlias = frozenset[int]
ANY: Signs = frozenset((-1, 0, 1))


class SlotsError(Exception):
    """Raised if a ring has no free slot."""


class UnsupportedError(ArithmeticError):
    """Raised for an operation on symbols, or a value, that the prover does not support."""


@dataclass(frozen=True)
class Slot:
    """The function or the choice that a variable represents."""

    function: str
    variable: int
    argument: Ratio | None = None
    #: For a power bˣ = exp(x·log b), the base; None for e.
    base: fmpq | None = None
    #: The question on which a choice depends.
    question: Any = None
    #: Bounds of a choice.
    low: fmpq | None = None
    high: fmpq | None = None


class Ring:
    """The ring of all variables of one proof."""

    def __init__(
        self,
        names: Sequence[str],
        *,
        integer: bool = False,
        limits: Limits | None = None,
        slots: int = SLOTS,
    ) -> None:
        self.names = list(names)
        #: Whether entries are integers; otherwise they are real numbers.
        self.integer = integer
        self.limits = limits or Limits()
        self.room = slots
        labels = [f"v{number}" for number in range(len(names) + slots)]
        self.context = fmpq_mpoly_ctx.get(labels, Ordering.lex)
        self.one: fmpq_mpoly = self.context.constant(1)
        self.generators = self.context.gens()
        #: The slots by variable. Permanent slots follow the entries; choices and functions of choices
        #: are at the end.
        self.slots: dict[int, Slot] = {}
        self.lasting = 0
        self.identities = Identities()
        #: Signs of squares and of sums of non-negative terms. They are recorded when the value is
        #: computed, because the expanded polynomial does not show them.
        self.signs: dict[Ratio, Signs] = {}
        self._known: dict[Hashable, Ratio] = {}
        #: The exponents of all exponentials: pivot, reduced vector, and its combination of slots.
        self._rows: list[tuple[Any, dict[Any, fmpq], dict[int, fmpq]]] = []

    @property
    def entries(self) -> list[Ratio]:
        """The variables that represent the entries of the input."""
        return [Ratio(self, self.generators[n], self.one) for n in range(len(self.names))]

    def number(self, value: Any) -> Ratio:
        """Convert a rational number to a constant :class:`Ratio`."""
        return Ratio(self, self.context.constant(value), self.one)

    def reduced(self, top: fmpq_mpoly, bottom: fmpq_mpoly) -> Ratio:
        """Divide two polynomials, and return the quotient in lowest terms with a monic denominator."""
        self.limits.check(top)
        if not is_constant(bottom):
            common = top.gcd(bottom)
            if not is_constant(common):
                top, bottom = _quotient(top, common), _quotient(bottom, common)
        leading = bottom.leading_coefficient()
        if leading == 1:
            return Ratio(self, top, bottom)
        return Ratio(self, top / leading, bottom / leading)

    # Slots ----------------------------------------------------------------------------------------

    def exp(self, argument: Ratio, base: fmpq | None = None) -> Ratio:
        """Return a power of e, or of a positive base, as a product of powers of variables."""
        key = ("exp", str(base), argument)
        if key not in self._known:
            self._known[key] = self._exponential(argument, base)
        return self._known[key]

    def _exponential(self, argument: Ratio, base: fmpq | None) -> Ratio:
        rest = {
            (str(base), *_in_lowest_terms(monomial, argument.bottom)): coefficient
            for monomial, coefficient in argument.top.to_dict().items()
        }
        combination = dict[int, fmpq]()
        for pivot, row, made_of in self._rows:
            factor = rest.get(pivot)
            if factor:
                _subtract(rest, row, factor)
                for slot, coefficient in made_of.items():
                    combination[slot] = combination.get(slot, fmpq(0)) + factor * coefficient
        if any(power.q != 1 for power in combination.values()):
            raise UnsupportedError(f"exponents that are not integer multiples of others: {argument}")
        if rest:
            slot = self._slot("exp", argument=argument, base=base)
            pivot = next(iter(rest))
            scale = rest[pivot]
            made_of = {k: -c / scale for k, c in combination.items()} | {slot: 1 / scale}
            row = {place: value / scale for place, value in rest.items()}
            self._rows.append((pivot, row, made_of))
            return Ratio(self, self.generators[slot], self.one)
        top = bottom = self.one
        for slot, power in combination.items():
            times = int(power.p)
            top = top * self.generators[slot] ** max(times, 0)
            bottom = bottom * self.generators[slot] ** max(-times, 0)
        return Ratio(self, top, bottom)

    def opaque(self, function: str, argument: Ratio) -> Ratio:
        """Return the variable that represents the value of a function for an argument."""
        key = (function, argument)
        if key not in self._known:
            slot = self._slot(function, argument=argument)
            self._known[key] = Ratio(self, self.generators[slot], self.one)
        return self._known[key]

    def choice(self, key: Hashable, question: Any, candidates: Sequence[Any] = ()) -> Ratio:
        """Return a variable for a number that depends on the answer to ``question``.

        The bounds are the smallest and the largest candidate, if all candidates are rational.
        """
        bounds: dict[str, Any] = {}
        if candidates and not any(isinstance(value, Ratio) for value in candidates):
            ends = [fmpq(value) for value in candidates]
            bounds = {"low": min(ends), "high": max(ends)}
        # Slots are kept until ``forget_choices``, also in another case, so bounds are part of the key.
        known = ("choice", question, key, *map(str, bounds.values()))
        if known not in self._known:
            slot = self._slot("choice", question=question, **bounds)
            self._known[known] = Ratio(self, self.generators[slot], self.one)
        return self._known[known]

    def _slot(self, function: str, **parts: Any) -> int:
        if len(self.slots) == self.room:
            raise SlotsError
        if self._passes(function, parts.get("argument")):
            variable = len(self.names) + self.room - 1 - (len(self.slots) - self.lasting)
        else:
            variable = len(self.names) + self.lasting
            self.lasting += 1
        self.slots[variable] = Slot(function, variable, **parts)
        return variable

    def _passes(self, function: str, argument: Ratio | None) -> bool:
        """Return whether a new slot is a choice or a function of a choice.

        Such a slot belongs to one run.
        """
        return function == "choice" or (argument is not None and self.is_passing(argument))

    def is_passing(self, value: Ratio) -> bool:
        """Return whether a choice, or a function of a choice, occurs in a value."""
        first = len(self.names) + self.lasting
        return any(value.top.degrees()[first:]) or any(value.bottom.degrees()[first:])

    def forget_choices(self) -> None:
        """Free all slots of choices and of their functions, which belong to one run in one case."""
        first = len(self.names) + self.lasting
        self.slots = {variable: slot for variable, slot in self.slots.items() if variable < first}
        self._known = {key: value for key, value in self._known.items() if not self.is_passing(value)}
        self._rows = [row for row in self._rows if all(slot < first for slot in row[2])]
        self.signs = {key: signs for key, signs in self.signs.items() if not self.is_passing(key)}

    def note(self, value: Ratio, signs: Signs) -> None:
        """Record the signs that a value can have, for later comparisons with 0."""
        key, side = _multiples(value)
        self.signs[key] = frozenset(side * sign for sign in signs)

    def noted(self, value: Ratio) -> Signs:
        """Return the possible signs of a value, from the record for this value or a multiple of it."""
        if not self.signs or is_constant(value.top):
            return ANY
        key, side = _multiples(value)
        signs = self.signs.get(key, ANY)
        return signs if side > 0 else frozenset(-sign for sign in signs)

    def slot(self, variable: int) -> Slot | None:
        """Return the slot of a variable, or None if the variable is an entry."""
        return self.slots.get(variable)

    def behind(self, polynomial: fmpq_mpoly) -> Slot | None:
        """Return the slot of a polynomial that is a single variable with a slot, otherwise None."""
        if len(polynomial) != 1 or polynomial.total_degree() != 1:
            return None
        ((powers, coefficient),) = polynomial.to_dict().items()
        return self.slot(powers.index(1)) if coefficient == 1 else None

    def occurring(self, *polynomials: fmpq_mpoly) -> Iterator[Slot]:
        """Yield the slots that occur in polynomials, and in the arguments of these slots."""
        for polynomial in polynomials:
            for variable, degree in enumerate(polynomial.degrees()):
                slot = self.slot(variable) if degree else None
                if slot is not None:
                    yield slot
                    if slot.argument is not None:
                        yield from self.occurring(slot.argument.top, slot.argument.bottom)

    def blocking(self, *polynomials: fmpq_mpoly) -> Any:
        """Return the question of the first choice that occurs in polynomials, or None."""
        slots = self.occurring(*polynomials)
        return next((slot.question for slot in slots if slot.question is not None), None)

    # Text -----------------------------------------------------------------------------------------

    def name(self, variable: int, depth: int = _DEPTH) -> str:
        """Return the name of a variable, such as ``X[0,1]`` or ``exp(X[0,0])``."""
        slot = self.slot(variable)
        if slot is None:
            return self.names[variable]
        if slot.argument is None:
            return f"choice {variable}"
        inside = slot.argument.show(depth - 1) if depth else "…"
        return f"{slot.function}({inside})" if slot.base is None else f"{slot.base}^({inside})"

    def show(self, polynomial: fmpq_mpoly, depth: int = _DEPTH) -> str:
        """Format a polynomial: its first terms, with functions nested at most ``depth`` levels."""
        parts = []
        for powers, coefficient in itertools.islice(polynomial.to_dict().items(), _TERMS):
            factors = [
                self.name(variable, depth) + (f"^{power}" if power > 1 else "")
                for variable, power in enumerate(powers)
                if power
            ]
            if not factors or abs(coefficient) != 1:
                factors.insert(0, str(abs(coefficient)))
            parts.append(("- " if coefficient < 0 else "+ ") + "·".join(factors))
        text = " ".join(parts) or "0"
        return text.removeprefix("+ ") + (" + …" if len(polynomial) > _TERMS else "")


class Ratio:
    """A quotient of two polynomials in lowest terms."""

    __slots__ = ("bottom", "ring", "top")

    def __init__(self, ring: Ring, top: fmpq_mpoly, bottom: fmpq_mpoly) -> None:
        self.ring = ring
        self.top = top
        self.bottom = bottom

    @property
    def constant(self) -> fmpq | None:
        """The value of a quotient without variables, or None."""
        if is_constant(self.top) and is_constant(self.bottom):
            return fmpq(self.top.leading_coefficient() if len(self.top) else 0)
        return None

    def __add__(self, other: Any) -> Ratio:
        other = self._lift(other)
        if self.bottom == other.bottom:
            return self.ring.reduced(self.top + other.top, self.bottom)
        self.ring.limits.check_product(self.top, other.bottom)
        self.ring.limits.check_product(other.top, self.bottom)
        top = self.top * other.bottom + other.top * self.bottom
        return self.ring.reduced(top, self.bottom * other.bottom)

    def __neg__(self) -> Ratio:
        return Ratio(self.ring, -self.top, self.bottom)

    def __sub__(self, other: Any) -> Ratio:
        return self + (-self._lift(other))

    def __mul__(self, other: Any) -> Ratio:
        other = self._lift(other)
        self.ring.limits.check_product(self.top, other.top)
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
        return hash((_mark(self.top), _mark(self.bottom)))

    def __str__(self) -> str:
        return f"({self.top})/({self.bottom})"

    __repr__ = __str__

    def show(self, depth: int = _DEPTH) -> str:
        """Format the quotient, with functions nested at most ``depth`` levels."""
        top = self.ring.show(self.top, depth)
        return top if self.bottom.is_one() else f"({top})/({self.ring.show(self.bottom, depth)})"

    def _lift(self, other: Any) -> Ratio:
        return other if isinstance(other, Ratio) else self.ring.number(other)


def _mark(polynomial: fmpq_mpoly) -> Hashable:
    """Return a hashable key that equal polynomials share.

    The key of a long polynomial does not contain its text, because printing it would be slow.
    """
    if len(polynomial) < _SHORT:
        return str(polynomial)
    return len(polynomial), tuple(polynomial.degrees())


def is_constant(polynomial: fmpq_mpoly) -> bool:
    """Return whether a polynomial is a number, without visiting all its terms as flint does."""
    return len(polynomial) < 2 and polynomial.is_constant()


def _in_lowest_terms(monomial: tuple[int, ...], bottom: fmpq_mpoly) -> tuple[Hashable, Hashable]:
    """Return a hashable key of the quotient of ``monomial`` and ``bottom``.

    Common factors are cancelled if ``bottom`` is a single term.
    """
    if len(bottom) > 1:
        return str(bottom), monomial
    ((below, _),) = bottom.to_dict().items()
    pairs = [(a - min(a, b), b - min(a, b)) for a, b in zip(monomial, below, strict=True)]
    return tuple(b for _, b in pairs), tuple(a for a, _ in pairs)


def _multiples(value: Ratio) -> tuple[Ratio, int]:
    """Return a key that all constant multiples of a value share, and the sign of the factor."""
    leading = value.top.leading_coefficient()
    if leading == 1:
        return value, 1
    return Ratio(value.ring, value.top / leading, value.bottom), 1 if leading > 0 else -1


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
