"""Checking a certificate without trusting the prover.

The claim is built anew from its name, so that program and reference are ours, not the
certificate's. Every tree is walked: a branch must have a child for each answer, so the cases cover
everything; at a leaf that is *shown* the program is run by dense execution on the checker's own
numbers (``quotients.py``) under the assumptions on the way there, and the entries must equal the
reference's; a leaf that is *impossible* must have assumptions that add up to a contradiction. In
the end every entry, and every operation that may have no value, must have been settled by some
tree.

What is trusted: dense execution (the meaning of programs), the references, flint's polynomials, and
these modules (this one, ``checked.py``, ``quotients.py``, ``truth.py``); nothing of the search for
proofs.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from locum.errors import ExecutionError, InputError
from locum.execution import dense
from locum.execution.domains import Value
from locum.graph import Node, postorder
from locum.graph import dumps as graph_json
from locum.verification.checker.domain import UNKNOWN, CheckDomain
from locum.verification.checker.quotients import Known, Missing, Quotient, RejectedError, Variables
from locum.verification.claims.claim import Claim
from locum.verification.prover.certificate import FORMAT, digest


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
            from locum.verification.claims.named import claim as build

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
            if not array and not any(isinstance(v, UNKNOWN) for v in [*value, *domain.sites]):
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
            if isinstance(value, UNKNOWN):
                raise RejectedError(f"entry {number} has no definite value in some case")
        difference = domain.quotient(found).minus(domain.quotient(wanted))
        if not domain.case.vanishes(difference.top):
            raise RejectedError(f"entry {number} is not what the reference gives")
