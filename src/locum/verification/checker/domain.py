"""The checker's domain: dense execution on unreduced quotients, in one case of a certificate.

What the case does not tell is open, and stays open in all that depends on it; operations that may have
no value are noted as sites. Written independently of the prover's domain (``domain.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flint import fmpq

from locum.execution.domains import Domain, Pattern, Value
from locum.execution.domains.exact import ExactDomain
from locum.graph import COMPARISONS, Atom
from locum.verification.checker.quotients import Known, Missing, Open, Quotient, RejectedError
from locum.verification.prover.truth import FALSE, TRUE, Truth, known, pattern_of

_EXACT = ExactDomain()
#: What may stand in place of a value.
UNKNOWN = (Open, Missing)


class CheckDomain(Domain):
    """The checker's numbers, in one case."""

    name = "checked"

    def __init__(self, case: Known, whole: bool) -> None:
        self.case = case
        self.whole = whole
        self.sites: list[Open | Missing | None] = []
        q = self.quotient
        own: dict[str, Callable[..., Value]] = {
            "add": lambda a, b: q(a).plus(q(b)),
            "subtract": lambda a, b: q(a).minus(q(b)),
            "multiply": lambda a, b: q(a).times(q(b)),
            "negate": lambda a: Quotient(-a.top, a.bottom),
            "divide": self._divide,
            "modulo": self._modulo,
            "power": self._power,
            "absolute": lambda a: case.variables.opaque("absolute", a),
            "exp": lambda a: case.variables.exponential(q(a), None),
            "equal": lambda a, b: self._sign(a, b, frozenset((0,))),
            "not_equal": lambda a, b: self._sign(a, b, frozenset((-1, 1))),
            "less": lambda a, b: self._sign(a, b, frozenset((-1,))),
            "less_equal": lambda a, b: self._sign(a, b, frozenset((-1, 0))),
            "greater": lambda a, b: self._sign(a, b, frozenset((1,))),
            "greater_equal": lambda a, b: self._sign(a, b, frozenset((0, 1))),
            "minimum": lambda a, b: self._if(self.meanings["less"](a, b), a, b),
            "maximum": lambda a, b: self._if(self.meanings["greater"](a, b), a, b),
        }
        logic: dict[str, Callable[..., Value]] = {
            "if_else": self._if,
            "indicator": lambda a: self._if(a, 1, 0),
            "not": lambda a: self._if(a, False, True),
            "and": lambda a, b: self._settle([self._truth(a), self._truth(b)], False),
            "or": lambda a, b: self._settle([self._truth(a), self._truth(b)], True),
        }
        self.refusals = dict.fromkeys(("log", "sqrt", "tanh", "erf"), "certificates do not speak of it")
        names = {*_EXACT.meanings, *own} - set(logic) - set(self.refusals)
        self.meanings = {**{name: self._meaning(name, own.get(name)) for name in names}, **logic}

    def quotient(self, value: Value) -> Quotient:
        """A value as a quotient."""
        return value if isinstance(value, Quotient) else self.case.variables.number(fmpq(value))

    def _meaning(self, name: str, own: Callable[..., Value] | None) -> Callable[..., Value]:
        """Open values stay open, concrete ones are computed exactly, others by the checker's rule."""

        def meaning(*values: Value, **attributes: Any) -> Value:
            unknown = [value for value in values if isinstance(value, UNKNOWN)]
            if unknown:
                result = _bounded(name, values, unknown)
            elif own is None or (
                name in _EXACT.meanings and not any(isinstance(value, Quotient) for value in values)
            ):
                if any(isinstance(value, Quotient) for value in values):
                    raise RejectedError(f"the checker has no rule for {name}")
                try:
                    result = _EXACT.meanings[name](*values, **attributes)
                except ArithmeticError as error:
                    result = Missing(str(error))
            else:
                result = self._plain(own(*values, **attributes))
            if name in ("divide", "modulo", "floor_divide", "power"):
                self.sites.append(result if isinstance(result, UNKNOWN) else None)
            return result

        return meaning

    def _plain(self, value: Value) -> Value:
        """A quotient without variables as a number."""
        if isinstance(value, Quotient) and value.top.is_constant() and value.bottom.is_constant():
            above = value.top.leading_coefficient() if len(value.top) else 0
            ratio = fmpq(above) / value.bottom.leading_coefficient()
            return int(ratio.p) if ratio.q == 1 else ratio
        return value

    def _sign(self, a: Value, b: Value, holds: frozenset[int]) -> bool | Open:
        difference = self.quotient(a).minus(self.quotient(b))
        signs = self.case.possible(difference.top * difference.bottom)  # the quotient's sign
        return True if signs <= holds else False if not signs & holds else Open()

    def _truth(self, value: Value) -> Value:
        if isinstance(value, Quotient):
            return self.meanings["not_equal"](value, 0)
        return value if isinstance(value, UNKNOWN) else bool(value)

    def _if(self, condition: Value, then: Value, otherwise: Value) -> Value:
        answer = self._truth(condition)
        if isinstance(answer, UNKNOWN):
            return answer if isinstance(answer, Missing) else Open()
        return then if answer else otherwise

    def _settle(self, sides: Sequence[Value], decisive: bool) -> Value:
        """``and`` is settled by one False, ``or`` by one True."""
        if any(side is decisive for side in sides):
            return decisive
        unknown = [side for side in sides if isinstance(side, UNKNOWN)]
        return unknown[0] if unknown else not decisive

    def _divide(self, a: Value, b: Value) -> Value:
        zero = self.meanings["equal"](b, 0)
        if isinstance(zero, UNKNOWN):
            return zero
        return Missing("division by zero") if zero else self.quotient(a).over(self.quotient(b))

    def _power(self, a: Value, b: Value) -> Value:
        if isinstance(b, Quotient):
            if isinstance(a, Quotient) or not a > 0:
                raise RejectedError("the checker has no rule for such a power")
            return self.case.variables.exponential(b, fmpq(a))
        if fmpq(b).q != 1 or b < 0:
            raise RejectedError("the checker has no rule for such a power")
        return Quotient(a.top ** int(b), a.bottom ** int(b))

    def _modulo(self, a: Value, b: Value) -> Value:
        if not self.whole or isinstance(b, Quotient) or type(b) is not int or b < 1:
            raise RejectedError("remainders are of whole numbers, by a number")
        if not a.bottom.is_one():
            raise RejectedError("remainders are of polynomials")
        total = 0
        for powers, coefficient in a.top.to_dict().items():
            if coefficient.q != 1:
                raise RejectedError("remainders are of polynomials with whole coefficients")
            product = int(coefficient.p)
            for variable, power in enumerate(powers):
                if power:
                    rest = self.case.remainders.get((variable, b))
                    if rest is None:
                        return Open()
                    product *= rest**power
            total += product
        return total % b

    # What a domain has to say ---------------------------------------------------------------------

    def token(self, value: Value, cast: str) -> Value:
        if not isinstance(value, Quotient):
            return _EXACT.token(value, cast)
        if cast in ("asis", "float") or (cast == "int" and self.whole):
            return value
        raise RejectedError(f"a variable cannot be cast to {cast}")

    def constant(self, atom: Atom) -> Value:
        return _EXACT.constant(atom)

    def accepts(self, value: object) -> bool:
        return True

    def mixture(self, values: Sequence[Value]) -> str | None:
        return None

    def is_numeric(self, values: Sequence[Value]) -> bool:
        return True

    def mean(self, values: Sequence[Value]) -> Value:
        total = self.quotient(values[0])
        for value in values[1:]:
            total = total.plus(self.quotient(value))
        return self._plain(Quotient(total.top, total.bottom * len(values)))

    def select(self, keys: Sequence[Value], queries: Sequence[Value], predicate: str) -> Pattern:
        holds = self.meanings[COMPARISONS[predicate].operation]
        return pattern_of([[known(holds(key, query)) for key in keys] for query in queries])

    def best(self, selected: Pattern, scores: Sequence[Value]) -> Pattern:
        greater = self.meanings["greater"]
        rows = []
        for row in selected.tolist():
            here: list[Truth] = [known(one) for one in row]
            chosen = []
            for k, one in enumerate(here):
                beaten = FALSE
                for other, mine in enumerate(here):
                    if one is not FALSE and mine is not FALSE and beaten is not TRUE and other != k:
                        beaten = beaten | (mine & known(greater(scores[other], scores[k])))
                chosen.append(one & ~beaten)
            rows.append(chosen)
        return pattern_of(rows)

    def aggregate(self, selected: Pattern, values: Sequence[Value], default: Value) -> list[Value]:
        result: list[Value] = []
        for row in selected.tolist():
            truths: list[Truth] = [known(one) for one in row]
            chosen = [v for v, one in zip(values, truths, strict=True) if one is TRUE]
            if any(one.value is None for one in truths):
                result.append(Open())
            elif any(isinstance(value, UNKNOWN) for value in chosen):
                result.append(next(value for value in chosen if isinstance(value, UNKNOWN)))
            elif len(chosen) > 1:
                result.append(self.mean(chosen))
            else:
                result.append(chosen[0] if chosen else default)
        return result

    def widths(self, selected: Pattern) -> list[Value]:
        result: list[Value] = []
        for row in selected.tolist():
            truths: list[Truth] = [known(one) for one in row]
            sure, may = (sum(one.value is v for one in truths) for v in (True, None))
            result.append(Open(sure, sure + may) if may else sure)
        return result


def _bounded(name: str, values: Sequence[Value], unknown: Sequence[Open | Missing]) -> Value:
    """What bounds tell of an operation on an open number: sums have bounds, what is apart differs."""
    for one in unknown:
        if isinstance(one, Missing):
            return one
    if len(values) == 2:
        spans = [
            (v.low, v.high) if isinstance(v, Open) else (v, v) if type(v) is int else (None, None)
            for v in values
        ]
        (a, b), (c, d) = spans
        if a is not None and b is not None and c is not None and d is not None:
            if name == "add":
                return Open(a + c, b + d)
            if name in ("equal", "not_equal") and (b < c or d < a):
                return name == "not_equal"
    return Open()
