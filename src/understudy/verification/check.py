"""Checking a certificate without trusting the prover.

The claim is built anew from its name, so that program and reference are ours, not the
certificate's. Every tree is walked: a branch must have a child for each answer, so the cases cover
everything; at a leaf that is *shown* the program is run by dense execution on the checker's own
numbers (``quotients.py``) under the assumptions on the way there, and the entries must equal the
reference's; a leaf that is *impossible* must have assumptions that add up to a contradiction. In
the end every entry, and every operation that may have no value, must have been settled by some
tree.

What is trusted: dense execution (the meaning of programs), the references, flint's polynomials, and
these two modules; nothing of the search for proofs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from flint import fmpq

from understudy.errors import ExecutionError, InputError
from understudy.execution import dense
from understudy.execution.domains import COMPARISONS, Domain, Pattern, Value
from understudy.execution.exact import ExactDomain
from understudy.graph import Atom, Node, postorder
from understudy.graph import dumps as graph_json
from understudy.verification.certificate import FORMAT, digest
from understudy.verification.claim import Claim
from understudy.verification.quotients import Known, Missing, Open, Quotient, RejectedError, Variables
from understudy.verification.truth import FALSE, TRUE, Truth, known, pattern_of

_EXACT = ExactDomain()
_UNKNOWN = (Open, Missing)


@dataclass(frozen=True)
class Checked:
    """What a certificate was found to prove."""

    statement: str
    cases: int
    entries: int


def check(certificate: Any, claim: Claim | None = None) -> Checked:
    """Go through a certificate; :class:`RejectedError` if anything is amiss.

    ``claim`` is needed for certificates of claims of your own, which have no name here.
    """
    try:
        return _Checker(certificate, claim).check()
    except RejectedError:
        raise
    except (InputError, ExecutionError) as error:
        raise RejectedError(f"the certificate is rejected: {error}") from None
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        problem = f"{type(error).__name__}: {error}"
        raise RejectedError(f"this is not a certificate, or a damaged one ({problem})") from None


class _Checker:
    def __init__(self, certificate: Any, claim: Claim | None) -> None:
        if not isinstance(certificate, dict) or certificate.get("format") != FORMAT:
            raise RejectedError(f"this is not a certificate: its format must be {FORMAT!r}")
        if certificate.get("digest") != digest(certificate):
            raise RejectedError("the certificate was changed: its digest does not fit its content")
        if claim is None:
            from understudy.verification.claims import claim as build

            recipe = certificate["recipe"] or None
            claim = build(certificate["claim"], *certificate["shape"], recipe=recipe)
        self.claim = claim
        self.content = certificate
        self.variables = Variables(len(claim.entries), certificate["functions"])
        self.polynomials = [self.variables.polynomial(p) for p in certificate["polynomials"]]
        self.symbols = self.variables.symbols
        self.settled: dict[Node, Any] = {}
        self.cases = 0

    def check(self) -> Checked:
        claim, content = self.claim, self.content
        program = content["program"]
        if program["graph"] != json.loads(graph_json(claim.program)) or program["hash"] != claim.hash:
            raise RejectedError(f"the program is not that of {claim.title}")
        if (content["claim"], tuple(content["shape"]), content["statement"]) != (
            claim.name, claim.shape, claim.statement,
        ):  # fmt: skip
            raise RejectedError(f"the statement is not that of {claim.title}")
        start = Known(self.variables)
        for words, value in claim.assumed(self.symbols, CheckDomain(start, claim.whole)):
            if not isinstance(value, Quotient):
                raise RejectedError(f"the condition {words} is about no variable")
            start = start.with_sign(value.top, frozenset((-1, 1)))
        self.settle(start)
        entries, sites = set(range(sum(map(len, claim.places)))), None
        left = set(entries)
        for tree in content["trees"]:
            shown = set(tree["entries"])
            fine = self.walk(tree["cases"], start, shown)
            sites = fine if sites is None else (sites[0] | fine[0], fine[1])
            left -= shown
        if left or sites is None:
            raise RejectedError(f"the certificate does not show entries {sorted(left)}")
        if len(sites[0]) != sites[1]:
            raise RejectedError("the certificate does not show that all divisions have values")
        if self.cases != content["cases"]:
            raise RejectedError(f"the certificate has {self.cases} cases, not {content['cases']}")
        return Checked(claim.statement, self.cases, len(entries))

    def settle(self, start: Known) -> None:
        """Values that the assumptions of no branch change are computed once."""
        for node in postorder(self.claim.program):
            if node.free or node.op == "family":
                continue
            domain = CheckDomain(start, self.claim.whole)
            value = dense.evaluate(node, self.tokens, domain, known=self.settled)
            array = isinstance(value, np.ndarray) and value.dtype == object
            if not array and not any(isinstance(v, _UNKNOWN) for v in [*value, *domain.sites]):
                self.settled[node] = value

    @property
    def tokens(self) -> list[Value]:
        return self.claim.tokens(self.symbols)

    def walk(self, node: Any, case: Known, entries: set[int]) -> tuple[set[int], int]:
        """Go through a tree; gives the sites that are fine at all its leaves, and their number."""
        if node == "shown":
            return self.leaf(case, entries)
        if "impossible" in node:
            bounds = [(self.polynomials[number], side) for number, side in node["impossible"]]
            if not case.refuted_by(bounds):
                raise RejectedError("a case is called impossible, but its assumptions do not show it")
            return set(), -1
        answers = node["answers"]
        if "remainder" in node:
            modulus, entry = node["modulus"], node["remainder"]
            if not self.claim.whole or len(answers) != modulus or not 0 <= entry < len(self.symbols):
                raise RejectedError("a branch on a remainder does not have all remainders")
            cases = [case.with_remainder(entry, modulus, rest) for rest in range(modulus)]
        else:
            sign = {">": 1, "=": 0}[node["sign"]]
            if len(answers) != 2:
                raise RejectedError("a branch on a sign must have two answers, yes and no")
            polynomial, others = self.polynomials[node["of"]], frozenset((-1, 0, 1)) - {sign}
            cases = [case.with_sign(polynomial, frozenset((sign,))), case.with_sign(polynomial, others)]
        found: tuple[set[int], int] | None = None
        for child, here in zip(answers, cases, strict=True):
            fine, count = self.walk(child, here, entries)
            if count >= 0:
                found = (fine, count) if found is None else (found[0] & fine, count)
        return found if found is not None else (set(), -1)

    def leaf(self, case: Known, entries: set[int]) -> tuple[set[int], int]:
        """Run the program in a case; all these entries must be what the reference gives."""
        self.cases += 1
        domain = CheckDomain(case, self.claim.whole)
        values = dense.evaluate(self.claim.program, self.tokens, domain, known=self.settled)
        sites = list(domain.sites)
        found, wanted = self.claim.found(values), self.claim.wanted(self.symbols, domain)
        if len(found) != len(wanted):
            raise RejectedError("program and reference differ in their numbers of entries")
        for number in entries:
            self.require_equal(number, found[number], wanted[number], domain)
        broken = [site for site in sites if isinstance(site, Missing)]
        if broken:
            raise RejectedError(f"in some case the program has no value: {broken[0].reason}")
        return {number for number, site in enumerate(sites) if site is None}, len(sites)

    def require_equal(self, number: int, found: Value, wanted: Value, domain: CheckDomain) -> None:
        for value in (found, wanted):
            if isinstance(value, _UNKNOWN):
                raise RejectedError(f"entry {number} has no definite value in some case")
        difference = domain.quotient(found).minus(domain.quotient(wanted))
        if not domain.case.vanishes(difference.top):
            raise RejectedError(f"entry {number} is not what the reference gives")


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
            unknown = [value for value in values if isinstance(value, _UNKNOWN)]
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
                self.sites.append(result if isinstance(result, _UNKNOWN) else None)
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
        return value if isinstance(value, _UNKNOWN) else bool(value)

    def _if(self, condition: Value, then: Value, otherwise: Value) -> Value:
        answer = self._truth(condition)
        if isinstance(answer, _UNKNOWN):
            return answer if isinstance(answer, Missing) else Open()
        return then if answer else otherwise

    def _settle(self, sides: Sequence[Value], decisive: bool) -> Value:
        """``and`` is settled by one False, ``or`` by one True."""
        if any(side is decisive for side in sides):
            return decisive
        unknown = [side for side in sides if isinstance(side, _UNKNOWN)]
        return unknown[0] if unknown else not decisive

    def _divide(self, a: Value, b: Value) -> Value:
        zero = self.meanings["equal"](b, 0)
        if isinstance(zero, _UNKNOWN):
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
        holds = self.meanings[COMPARISONS[predicate]]
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
            elif any(isinstance(value, _UNKNOWN) for value in chosen):
                result.append(next(value for value in chosen if isinstance(value, _UNKNOWN)))
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
