"""The symbolic domain: a dense run on indeterminates, in one case, is one case of a proof.

Whole numbers, rationals and truth values are what they are in the exact domain; what depends on the
input is a :class:`~locum.verification.prover.symbols.Ratio`. A comparison of such values is answered by
the case; where it leaves the question open, the result is ``Undecided``, which spreads to all that
depends on it and to nothing else: other rows of a softmax go on. So cases multiply only within what one
result depends on.

RASP is strict, so every operation that may have no value (a division, a logarithm) is a *site*: the
domain notes for each whether it is fine, open or broken; a proof settles all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any

import numpy as np
from flint import fmpq, fmpz

from locum.execution.domains import Domain, Pattern, Value
from locum.execution.domains.exact import ExactDomain
from locum.execution.domains.floats import FloatDomain
from locum.graph import COMPARISONS, OPERATIONS, Atom
from locum.verification.prover.cases import Case, Undecided
from locum.verification.prover.symbols import Ratio, Ring, UnsupportedError
from locum.verification.prover.truth import FALSE, TRUE, Truth, known, pattern_of

_EXACT, _FLOAT = ExactDomain(), FloatDomain()
#: Functions that are known by their argument only, and where they are defined.
_OPAQUE: dict[str, str | None] = {"tanh": None, "erf": None, "log": "positive", "sqrt": "not negative"}


@dataclass(frozen=True)
class Broken:
    """What has no value, and why."""

    reason: str


#: What may stand in place of a value.
OPEN = (Undecided, Broken)


def first_open(values: Sequence[Value]) -> Undecided | Broken | None:
    """The first of the values that is none: a broken one before an open one."""
    found = [value for value in values if isinstance(value, OPEN)]
    broken = [value for value in found if isinstance(value, Broken)]
    return (broken or found or [None])[0]


class SymbolicDomain(Domain):
    """Rational functions, in one case."""

    name = "symbolic"

    def __init__(self, ring: Ring, case: Case) -> None:
        self.ring = ring
        self.case = case
        #: For every operation met that may have no value: None if it has one.
        self.sites: list[Undecided | Broken | None] = []
        own: dict[str, Callable[..., Value]] = {
            "add": lambda a, b: self._plain(_numeric(a) + _numeric(b)),
            "subtract": lambda a, b: self._plain(_numeric(a) - _numeric(b)),
            "multiply": lambda a, b: self._plain(_numeric(a) * _numeric(b)),
            "negate": lambda a: self._plain(-_numeric(a)),
            "divide": self._divide,
            "modulo": self._modulo,
            "floor_divide": self._floor_divide,
            "power": self._power,
            "absolute": lambda a: self.ring.opaque("absolute", a),
            "minimum": lambda a, b: self._choose(self._less(a, b), a, b),
            "maximum": lambda a, b: self._choose(self._less(b, a), a, b),
            "exp": lambda a: self._plain(self.ring.exp(_lift(self.ring, a))),
            "equal": self._equal,
            "not_equal": lambda a, b: _negated(self._equal(a, b)),
            "less": self._less,
            "less_equal": lambda a, b: _negated(self._less(b, a)),
            "greater": lambda a, b: self._less(b, a),
            "greater_equal": lambda a, b: _negated(self._less(a, b)),
            "member": self._member,
            "not": lambda a: _negated(self._truth(a)),
            "indicator": lambda a: self._choose(self._truth(a), 1, 0),
        }
        own |= {name: self._function(name) for name in _OPAQUE}
        self.refusals = {
            name: "no rule for symbols is known"
            for name, row in OPERATIONS.items()
            if row.elementwise and name not in own and name not in _EXACT.meanings
        }
        meanings = {name: self._strict(name, own[name]) for name in own}
        logic: dict[str, Callable[..., Value]] = {
            "and": self._and,
            "or": self._or,
            "if_else": self._if_else,
        }
        rest = {name: self._concrete(name) for name in _EXACT.meanings if name not in own | logic}
        self.meanings = {**rest, **meanings, **logic}

    # How operations treat what is open, and what is concrete --------------------------------------

    def _strict(self, name: str, function: Callable[..., Value]) -> Callable[..., Value]:
        """Nothing comes of what is open; concrete values are computed exactly."""
        exact = _EXACT.meanings.get(name)
        risky = name in ("divide", "modulo", "floor_divide", "power", *_OPAQUE)

        @wraps(function)
        def meaning(*values: Value, **attributes: Any) -> Value:
            self.ring.limits.check_time()
            found = first_open(values)
            if found is None:
                if exact is not None and not any(isinstance(value, Ratio) for value in values):
                    try:
                        result = exact(*values, **attributes)
                    except ArithmeticError as error:
                        result = Broken(str(error))
                else:
                    result = function(*values, **attributes)
                found = result if isinstance(result, OPEN) else None
            else:
                result = _within_bounds(name, values, found)
                found = result if isinstance(result, OPEN) else None
            if risky:
                self.sites.append(found)
            return result

        return meaning

    def _concrete(self, name: str) -> Callable[..., Value]:
        """An operation for concrete values only."""

        def meaning(*values: Value, **attributes: Any) -> Value:
            found = first_open(values)
            if found is not None:
                return found
            if any(isinstance(value, Ratio) for value in values):
                raise UnsupportedError(f"{name} of a symbol is not decided by cases")
            return _EXACT.meanings[name](*values, **attributes)

        return meaning

    def _plain(self, value: Value) -> Value:
        """A number, if it is one."""
        if not isinstance(value, Ratio):
            return value
        constant = value.constant
        return value if constant is None else _whole(constant)

    # Comparisons and logic ------------------------------------------------------------------------

    def _less(self, a: Value, b: Value) -> bool | Undecided:
        difference = self._plain(_numeric(b) - _numeric(a))
        if not isinstance(difference, Ratio):
            return bool(difference > 0)
        return self.case.is_positive(difference)

    def _equal(self, a: Value, b: Value) -> bool | Undecided:
        difference = self._plain(_numeric(a) - _numeric(b))
        if not isinstance(difference, Ratio):
            return bool(difference == 0)
        return self.case.is_zero(difference)

    def _truth(self, a: Value) -> Value:
        """Truth as Python sees it: not 0."""
        if isinstance(a, Ratio):
            return _negated(self.case.is_zero(a))
        if isinstance(a, (Undecided, Broken)):
            return a
        return bool(a)

    def _and(self, a: Value, b: Value) -> Value:
        sides = self._truth(a), self._truth(b)
        return False if False in sides else first_open(sides) or True

    def _or(self, a: Value, b: Value) -> Value:
        sides = self._truth(a), self._truth(b)
        return True if True in sides else first_open(sides) or False

    def _if_else(self, condition: Value, then: Value, otherwise: Value) -> Value:
        return self._choose(self._truth(condition), then, otherwise)

    def _choose(self, condition: Value, then: Value, otherwise: Value) -> Value:
        if isinstance(condition, OPEN):
            return condition
        return then if condition else otherwise

    def _member(self, a: Value, *, values: tuple[Atom, ...]) -> Value:
        answers = [self._equal(a, _EXACT.constant(value)) for value in values]
        return True if True in answers else first_open(answers) or False

    # Arithmetic -----------------------------------------------------------------------------------

    def _divide(self, a: Value, b: Value) -> Value:
        zero = self.case.is_zero(b) if isinstance(b, Ratio) else b == 0
        if isinstance(zero, Undecided):
            return zero
        if zero:
            return Broken("division by zero")
        return self._plain(_lift(self.ring, a) / _numeric(b))

    def _modulo(self, a: Value, b: Value) -> Value:
        """Of whole numbers only: the remainder of a polynomial, by those of its entries."""
        if not self.ring.whole or not isinstance(a, Ratio) or isinstance(b, Ratio) or b != int(b):
            raise UnsupportedError("remainders are for whole numbers, by a number")
        if not a.bottom.is_one() or b < 1:
            raise UnsupportedError("remainders are of polynomials, by a positive number")
        modulus, total = int(b), 0
        for powers, coefficient in a.top.to_dict().items():
            if coefficient.q != 1 or any(powers[len(self.ring.names) :]):
                raise UnsupportedError("remainders are of polynomials with whole coefficients")
            product = int(coefficient.p)
            for variable, power in enumerate(powers):
                if power:
                    rest = self.case.remainder(self.ring.names[variable], modulus)
                    if isinstance(rest, Undecided):
                        return rest
                    product *= rest**power
            total += product
        return total % modulus

    def _floor_divide(self, a: Value, b: Value) -> Value:
        rest = self._modulo(a, b)
        return rest if isinstance(rest, OPEN) else self._plain((a - rest) / b)

    def _power(self, a: Value, b: Value) -> Value:
        if isinstance(b, Ratio):
            if isinstance(a, Ratio) or not a > 0:
                raise UnsupportedError("a power with a symbol above needs a positive number below")
            return self.ring.exp(b, base=fmpq(a)) if a != 1 else 1
        if fmpq(b).q != 1:
            raise UnsupportedError("powers of symbols are whole")
        if b < 0:
            return self._divide(1, a ** -int(b))
        return self._plain(a ** int(b))

    def _function(self, name: str) -> Callable[..., Value]:
        return lambda a: self._opaque(name, a)

    def _opaque(self, name: str, a: Value) -> Value:
        argument = _lift(self.ring, a)
        outside: Value = False
        if _OPAQUE[name] == "positive":
            outside = _negated(self._less(0, a))
        elif _OPAQUE[name] == "not negative":
            outside = self._less(a, 0)
        if isinstance(outside, Undecided):
            return outside
        return Broken(f"{name} is not defined there") if outside else self.ring.opaque(name, argument)

    # What a domain has to say ---------------------------------------------------------------------

    def token(self, value: Value, cast: str) -> Value:
        if isinstance(value, Ratio):
            if cast in ("asis", "float") or (cast == "int" and self.ring.whole):
                return value
            raise UnsupportedError(f"a symbol cannot be cast to {cast}")
        return _EXACT.token(value, cast)

    def constant(self, atom: Atom) -> Value:
        return _whole(fmpq(*atom.as_integer_ratio())) if isinstance(atom, float) else atom

    def accepts(self, value: object) -> bool:
        return isinstance(value, Ratio) or _EXACT.accepts(value)

    def mixture(self, values: Sequence[Value]) -> str | None:
        return "symbols and strings do not mix" if any(isinstance(v, str) for v in values) else None

    def is_numeric(self, values: Sequence[Value]) -> bool:
        return True

    def mean(self, values: Sequence[Value]) -> Value:
        total: Value = fmpq(0)
        for value in values:
            total = _numeric(value) + total
        return self._plain(total / len(values))

    # Attention ------------------------------------------------------------------------------------

    def select(self, keys: Sequence[Value], queries: Sequence[Value], predicate: str) -> Pattern:
        if all(type(value) in (int, bool) for value in (*keys, *queries)):
            return _FLOAT.select(keys, queries, predicate)
        holds, answers = self.meanings[COMPARISONS[predicate].operation], dict[tuple[int, int], Truth]()
        rows = []
        for query in queries:
            row = []
            for key in keys:
                pair = (id(key), id(query))
                if pair not in answers:
                    answers[pair] = known(holds(key, query))
                row.append(answers[pair])
            rows.append(row)
        return pattern_of(rows)

    def best(self, selected: Pattern, scores: Sequence[Value]) -> Pattern:
        if selected.dtype == np.bool_ and all(type(score) in (int, bool) for score in scores):
            return _FLOAT.best(selected, scores)
        greater = self.meanings["greater"]
        rows = []
        for chosen in selected:
            here = [known(one) for one in chosen.tolist()]
            row = []
            for k, one in enumerate(here):
                if one is FALSE:
                    row.append(FALSE)
                    continue
                beaten = FALSE
                for other, score in zip(here, scores, strict=True):
                    if other is not FALSE and score is not scores[k]:
                        beaten = beaten | (other & known(greater(score, scores[k])))
                    if beaten is TRUE:
                        break
                row.append(one & ~beaten)
            rows.append(row)
        return pattern_of(rows)

    def aggregate(self, selected: Pattern, values: Sequence[Value], default: Value) -> list[Value]:
        result = []
        for row in selected.tolist():
            result.append(self._mean_of([known(one) for one in row], values, default))
        return result

    def _mean_of(self, row: Sequence[Truth], values: Sequence[Value], default: Value) -> Value:
        undecided = next((one for one in row if one.open is not None), None)
        chosen = [value for value, one in zip(values, row, strict=True) if one is TRUE]
        found = (undecided.open if undecided is not None else None) or first_open(chosen)
        if found is not None:
            return found
        if not chosen:
            return default
        return chosen[0] if len(chosen) == 1 else self.mean(chosen)

    def widths(self, selected: Pattern) -> list[Value]:
        result: list[Value] = []
        for row in selected.tolist():
            truths = [known(one) for one in row]
            count, open_ones = (
                sum(one is TRUE for one in truths),
                [one.open for one in truths if one.open],
            )
            found = first_open(open_ones)
            if isinstance(found, Undecided):
                found = Undecided(found.question, (count, count + len(open_ones)))
            result.append(count if found is None else found)
        return result


def _within_bounds(name: str, values: Sequence[Value], found: Undecided | Broken) -> Value:
    """What an operation gives on an open value, as far as bounds tell; else the open value itself."""
    if len(values) != 2 or not isinstance(found, Undecided):
        return found
    one, other = _range(values[0]), _range(values[1])
    if one is None or other is None:
        return Undecided(found.question)
    (low, high), (least, most) = one, other
    if name == "add":
        return Undecided(found.question, (low + least, high + most))
    if name in ("equal", "not_equal") and (high < least or most < low):
        return name == "not_equal"
    return Undecided(found.question)


def _range(value: Value) -> tuple[int, int] | None:
    if isinstance(value, Undecided):
        return value.bounds
    return (value, value) if type(value) is int else None


def _numeric(value: Value) -> Value:
    """A number that adds and multiplies with fractions and symbols."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, str):
        raise UnsupportedError("strings are no numbers")
    return value


def _lift(ring: Ring, value: Value) -> Ratio:
    return value if isinstance(value, Ratio) else ring.number(_numeric(value))


def _whole(value: fmpq) -> Value:
    return int(value.p) if fmpz(value.q) == 1 else value


def _negated(answer: Value) -> Value:
    return answer if isinstance(answer, OPEN) else not answer
